"""The figures of the SD-E² chapter: similarity, staircase, valley, z-scores. Arrays in, Figure out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from explorl.errors import ConfigError
from explorl.report import style


def similarity_matrix(cosines: np.ndarray, kept: Sequence[int], *, delta: float, labels: Sequence[str] = (),
                      title: str = "") -> Figure:
    """Cosines between the strategies of one completion; the kept ones framed and bold (eq 10–15).

    Args:
        cosines: (m, m) in [−1, 1], symmetric.
        kept: indices of the strategies that the greedy pass keeps, in order.
        delta: the redundancy threshold; pairs above it are underlined.
        labels: (m,) names; numbers by default.
    """
    table = np.asarray(cosines, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not len(table):
        raise ConfigError("cosines", table.shape, "a square matrix, one row per strategy")
    m, chosen = len(table), [int(i) for i in kept]
    names = list(labels) or [f"strategy {i + 1}" for i in range(m)]
    with style.look():
        fig, (axes,) = style.canvas(3.2 + 0.62 * m, 1.3 + 0.56 * m, layout="compressed")
        sns.heatmap(table, ax=axes, cmap=style.SEQUENTIAL, vmin=0, vmax=1, square=True, linewidths=2,
                    linecolor=(0, 0, 0, 0), cbar_kws={"label": "cosine", "shrink": 0.8})
        for i in range(m):
            for j in range(m):
                _cell(axes, i, j, table[i, j], above=i != j and table[i, j] > delta)
        for i in chosen:
            axes.add_patch(Rectangle((i + 0.03, i + 0.03), 0.94, 0.94, fill=False, edgecolor=style.ORANGE,
                                     linewidth=2.6, clip_on=False))
        axes.set_xticks(np.arange(m) + 0.5, [str(i + 1) for i in range(m)], rotation=0)
        axes.set_yticks(np.arange(m) + 0.5, names, rotation=0)
        for i, (below, beside) in enumerate(zip(axes.get_xticklabels(), axes.get_yticklabels())):
            for tick in (below, beside):
                tick.set(color=style.ORANGE if i in chosen else style.INK,
                         fontweight="bold" if i in chosen else "normal")
        axes.tick_params(length=0)
        axes.set_title(title or f"kept {len(chosen)} of {m} at δ = {delta:g}")
    told = "; ".join(f"{names[i]} and {names[j]} {table[i, j]:.2f}" for i in range(m) for j in range(i))
    return style.describe(fig, f"Similarity matrix of {m} strategies at threshold {delta:g}. Kept: "
                               f"{', '.join(names[i] for i in chosen) or 'none'}. Cosines: {told or 'none'}.")


def _cell(axes, i: int, j: int, value: float, above: bool) -> None:
    """One number of the matrix, dark on light and light on dark; in a ring of ``[ ]`` where it is above δ."""
    text = f"[{value:.2f}]" if above else f"{value:.2f}"
    axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", fontsize=9,
              color="white" if value > 0.6 else "#27323c", fontweight="bold" if above else "normal")


def uniq_staircase(deltas: Sequence[float], counts: Mapping[str, Sequence[int]], *,
                   delta: float | None = None, title: str = "") -> Figure:
    """How many strategies count as different, as the threshold δ rises (eq 15).

    Args:
        deltas: (points,) thresholds, rising.
        counts: name → (points,) Uniq(δ).
        delta: the threshold in use, marked by a dashed line.
    """
    x = np.asarray(deltas, dtype=np.float64)
    with style.look():
        fig, (axes,) = style.canvas(6.4, 3.4)
        ends: dict[str, tuple[float, str]] = {}
        for index, (name, values) in enumerate(counts.items()):
            if len(values) != len(x):
                raise ConfigError(f"counts[{name!r}]", f"{len(values)} values", f"{len(x)} values")
            paint = style.colour(name, index)
            axes.step(x, np.asarray(values) + 0.04 * index, where="post", color=paint)
            ends[name] = (values[-1] + 0.04 * index, paint)
        if delta is not None:
            axes.axvline(delta, color=style.INK, linestyle="--", linewidth=1)
            axes.annotate(f"δ = {delta:g}", xy=(delta, 0.02), xycoords=("data", "axes fraction"),
                          xytext=(4, 0), textcoords="offset points", fontsize=9)
        top = max((max(v) for v in counts.values()), default=1)
        axes.set(xlabel="threshold δ", ylabel="Uniq(δ)", title=title, ylim=(0, top + 0.6), xlim=(x[0], x[-1]))
        axes.set_yticks(range(0, top + 1))
        style.tidy(axes)
        places = style.spread(np.array([y for y, _ in ends.values()]), 0.07 * (top + 0.6))
        for (name, (_, paint)), place in zip(ends.items(), places):
            axes.annotate(style.display_name(name), xy=(x[-1], place), xytext=(6, 0), va="center", color=paint,
                          textcoords="offset points", fontweight="bold", fontsize=9, annotation_clip=False)
    told = "; ".join(f"{style.display_name(n)} from {v[0]} to {v[-1]}" for n, v in counts.items())
    return style.describe(fig, f"Number of kept strategies as the threshold rises from {x[0]:g} to "
                               f"{x[-1]:g}: {told}.")


def valley(counts: Sequence[int], rewards: Mapping[float, Sequence[float]], *, by_count: Sequence[float] = (),
           single: float | None = None, title: str = "") -> Figure:
    """What failing with m all-different strategies is paid, for several mean cosines c̄ (eq 17–18, 48).

    Args:
        counts: (points,) numbers of strategies m.
        rewards: mean cosine c̄ → (points,) R_sd.
        by_count: (points,) what GRPO-CFEE pays for the same counts; empty to leave it out.
        single: what one strategy is paid; the dashed line below which more strategies pay less.
    """
    m = np.asarray(counts)
    shades = sns.light_palette(style.BLUE, n_colors=len(rewards) + 4, reverse=True)
    with style.look():
        fig, (axes,) = style.canvas(6.8, 4.0)
        ends: dict[str, tuple[float, object]] = {}
        for shade, (mean_cosine, values) in reversed(list(zip(shades, rewards.items()))):
            axes.plot(m, values, marker="o", markersize=4.5, color=shade)
            ends[f"c̄ = {mean_cosine:g}"] = (float(values[-1]), shade)
        if len(by_count):
            axes.plot(m, by_count, color=style.ORANGE, linestyle=(0, (3, 3)), zorder=4)
            ends["GRPO-CFEE"] = (float(by_count[-1]), style.ORANGE)
        if single is not None:
            axes.axhline(single, color=style.RED, linestyle=":", linewidth=1.6)
            axes.axhspan(0, single, color=style.RED, alpha=0.08, linewidth=0)
            axes.annotate("less than one strategy", xy=(m[-1], single), xytext=(0, -3), va="top", ha="right",
                          textcoords="offset points", color=style.RED, fontsize=9)
        axes.set(xlabel="number of strategies m, all different", ylabel="exploration reward", title=title,
                 xlim=(m[0] - 0.2, m[-1] + 0.2), xticks=m, ylim=(0, None))
        style.tidy(axes)
        places = style.spread(np.array([y for y, _ in ends.values()]), 0.06 * axes.get_ylim()[1])
        for (name, (_, paint)), place in zip(ends.items(), places):
            axes.annotate(name, xy=(m[-1] + 0.2, place), xytext=(6, 0), textcoords="offset points",
                          va="center", color=paint, fontweight="bold", fontsize=9, annotation_clip=False)
    return style.describe(fig, _valley_words(m, rewards, single))


def _valley_words(m: np.ndarray, rewards: Mapping[float, Sequence[float]], single: float | None) -> str:
    words = []
    for mean_cosine, values in rewards.items():
        below = [int(k) for k, v in zip(m, values) if single is not None and v < single - 1e-12]
        place = "has no valley"
        if below:
            place = f"pays less than one strategy at m = {', '.join(map(str, below))}"
        words.append(f"mean cosine {mean_cosine:g} {place} and ends at {float(values[-1]):.2f}")
    return f"Exploration reward against number of strategies: {'; '.join(words)}."


def z_scores(raw: Mapping[str, Sequence[float]], scaled: Mapping[str, Sequence[float]], *,
             labels: Sequence[str], title: str = "") -> Figure:
    """Raw components beside the same after batch z-scoring (eq 27–29): one dot per completion.

    Args:
        raw, scaled: component → (N,), the same names in both.
        labels: (N,) completions; the first and last of each component are named.
    """
    if list(raw) != list(scaled):
        raise ConfigError("scaled", list(scaled), f"the components of raw, {list(raw)}")
    with style.look():
        fig, axes = style.canvas(7.2, 0.9 + 0.62 * len(raw), columns=2, sharey=True)
        for panel, values, name in zip(axes, (raw, scaled), ("raw", "z-scored over the batch")):
            for row, component in enumerate(raw):
                _strip(panel, np.asarray(values[component], dtype=np.float64), row, component, labels)
            panel.axvline(0, color=style.INK, linewidth=0.8)
            panel.set_yticks(range(len(raw)), [style.display_name(c) for c in raw])
            panel.set(title=name, ylim=(len(raw) - 0.4, -0.7))
            panel.margins(x=0.14)
            style.tidy(panel, "x")
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    told = "; ".join(f"{style.display_name(c)} standard deviation {np.std(raw[c], dtype=float):.3f} raw, "
                     f"{np.std(scaled[c], dtype=float):.3f} scaled" for c in raw)
    return style.describe(fig, f"Components before and after z-scoring of {len(labels)} completions: {told}.")


def _strip(panel, values: np.ndarray, row: int, component: str, labels: Sequence[str]) -> None:
    """Dots of one component; equal values share a place and name their completions once above it."""
    places, inverse = np.unique(values.round(9), return_inverse=True)
    lift, close = 0, 0.13 * (np.ptp(values) or 1)
    for place_index, place in enumerate(places):
        lift = (lift + 1) % 3 if place_index and place - places[place_index - 1] < close else 0
        who = [labels[i] for i in np.flatnonzero(inverse == place_index)]
        panel.plot(place, row, "o", color=style.colour(component), markersize=6 + len(who), alpha=0.85)
        panel.annotate(" ".join(who) if len(who) <= 3 else f"{len(who)} of {len(labels)}", xy=(place, row),
                       xytext=(0, (7, -14, 16)[lift]), textcoords="offset points", ha="center", fontsize=7)
