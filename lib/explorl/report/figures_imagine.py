"""The figures of the IMAGINE chapter that show the idea: visited ground, states, flipped signs, decay, what is novel.

Arrays in, Figure out. What a run's batches did is in :mod:`explorl.report.figures_imagine_runs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from explorl.errors import ConfigError
from explorl.report import style
from explorl.report.stats import seed_interval

FLOOR = 1e-3
"""Errors below this share of the largest are drawn as this share."""


def visited(x: Sequence[float], y: Sequence[float], errors: np.ndarray, path: np.ndarray, reached: Sequence[int], *,
            times: Sequence[int] = (), title: str = "") -> Figure:
    """The predictor's error over a plane, falling where the path has been: one small panel per moment (eq 5).

    Args:
        x, y: (columns,) and (rows,) the grid, rising, evenly spaced.
        errors: (moments, rows, columns), > 0, squared errors; one logarithmic scale for all panels.
        path: (points, 2) where the training went, in order.
        reached: (moments,) how many points of the path were visited by then.
        times: (moments,) steps, for the panels' headings; by default those of ``reached``.
    """
    table, walk = np.asarray(errors, dtype=np.float64), np.asarray(path, dtype=np.float64)
    across, up = (np.asarray(v, dtype=np.float64) for v in (x, y))
    _check_plane(across, up, table, walk, reached)
    steps = list(times) or list(reached)
    halves = [(axis, (axis[1] - axis[0]) / 2) for axis in (across, up)]
    edges = [v for axis, half in halves for v in (axis[0] - half, axis[-1] + half)]
    norm, told = LogNorm(max(table.min(), FLOOR * table.max()), table.max()), []
    with style.look():
        fig, axes = style.canvas(7.2, 2.0 + 2.2 / len(table), columns=len(table), sharex=True, sharey=True)
        for panel, plane, points, step in zip(axes, table, reached, steps):
            image = panel.imshow(plane, origin="lower", extent=edges, norm=norm, cmap=style.SEQUENTIAL, aspect="equal",
                                 interpolation="bilinear")
            _walk(panel, walk, int(points))
            on, off = _on_and_off(across, up, plane, walk[: int(points)])
            panel.set_title(f"step {step}", fontsize=10)
            panel.set_xlabel(_ratio(on, off), fontsize=9)
            panel.set(xticks=[], yticks=[], xlim=edges[:2], ylim=edges[2:])
            panel.spines[:].set_visible(False)
            panel.grid(False)
            told.append(f"step {step}, {_ratio(on, off)}")
        bar = fig.colorbar(image, ax=list(axes), label="predictor's error", shrink=0.8, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_minor_locator(NullLocator())
        bar.set_ticks([norm.vmin, norm.vmax], labels=[f"{norm.vmin:.2g}", f"{norm.vmax:.2g}"])
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return style.describe(fig, f"The predictor's error over a plane at {len(table)} moments, with the path of the "
                               f"training on it; pale is familiar. {'; '.join(told)}.")


def _check_plane(x: np.ndarray, y: np.ndarray, table: np.ndarray, walk: np.ndarray, reached: Sequence[int]) -> None:
    for name, axis in (("x", x), ("y", y)):
        gaps = np.diff(axis)
        if len(axis) < 2 or not (gaps > 0).all() or not np.allclose(gaps, gaps[0]):
            raise ConfigError(name, axis.tolist(), "two or more rising, evenly spaced values")
    if table.shape != (len(reached), len(y), len(x)) or not (table > 0).all():
        raise ConfigError("errors", table.shape, f"({len(reached)}, {len(y)}, {len(x)}) values above 0")
    if walk.ndim != 2 or walk.shape[1] != 2 or any(not 0 <= n <= len(walk) for n in reached):
        raise ConfigError("path", walk.shape, f"(points, 2), with at least {max(reached, default=0)} points")


def _walk(panel, walk: np.ndarray, points: int) -> None:
    """The visited part of the path, with a dot where it stands, and the rest of it faint."""
    panel.plot(*walk[max(points - 1, 0):].T, color=style.ORANGE, linewidth=1.3, linestyle=(0, (1.5, 1.5)))
    panel.plot(*walk[:points].T, color=style.ORANGE, linewidth=1.8)
    panel.plot(*walk[max(points - 1, 0)], "o", color=style.RED, markersize=6, markeredgecolor="white",
               markeredgewidth=0.9)


def _on_and_off(x: np.ndarray, y: np.ndarray, plane: np.ndarray, walk: np.ndarray) -> tuple[float, float]:
    """Mean error at the grid points next to the visited path, and at all others; NaN where there are none."""
    seen = np.zeros(plane.shape, dtype=bool)
    for a, b in walk:
        seen[np.abs(y - b).argmin(), np.abs(x - a).argmin()] = True
    return tuple(float(plane[where].mean()) if where.any() else float("nan") for where in (seen, ~seen))


def _ratio(on: float, off: float) -> str:
    return "nothing visited" if np.isnan(on) else f"error on the path:\n{on / off:.2g} × elsewhere"


def states(counts: Sequence[int], lengths: Sequence[int], *, title: str = "") -> Figure:
    """What the predictor is fed: every prefix of a response, or every response once (Fig. 4 of the paper).

    Args:
        counts: (longest,) responses that still run at prefix length 1, 2, …, as
            :func:`explorl.papers.imagine_tokens.states_per_prefix` gives them.
        lengths: (N,) of the responses, in tokens.
    """
    running, ends = np.asarray(counts), np.sort(np.asarray(lengths))
    if running.sum() != ends.sum() or len(running) != ends.max(initial=0):
        raise ConfigError("counts", f"{len(running)} values, sum {running.sum()}", f"{ends.max(initial=0)} values, "
                          f"sum {ends.sum()}")
    with style.look():
        fig, (axes,) = style.canvas(6.8, 3.2)
        axes.fill_between(np.arange(len(running) + 1), np.append(running, running[-1]), step="post", color=style.BLUE,
                          alpha=0.35, linewidth=0)
        axes.plot(ends, np.full(len(ends), 0.25), "o", color=style.ORANGE, markersize=7, clip_on=False)
        for row, (words, paint) in enumerate(((f"every prefix: {running.sum()} inputs", style.BLUE),
                                              (f"every response once: {len(ends)} inputs", style.ORANGE))):
            axes.annotate(words, xy=(0.98, 0.95 - 0.1 * row), xycoords="axes fraction", color=paint, va="top",
                          ha="right", fontweight="bold")
        axes.set(xlim=(0, len(running) * 1.02), ylim=(0, running.max() + 0.3), xlabel="prefix length (tokens)",
                 ylabel="inputs of this length", title=title)
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        style.tidy(axes)
    return style.describe(fig, f"Inputs of the predictor by prefix length, for {len(ends)} responses of "
                               f"{', '.join(map(str, ends))} tokens: {running.sum()} if every prefix is a state, "
                               f"{len(ends)} if every response is one.")


def sign_flip(labels: Sequence[str], right: Sequence[bool], panels: Mapping[str, Sequence[float]], *, title: str = ""
              ) -> Figure:
    """One group's advantages with the bonus added at different places; whose sign turns is said beside its bar.

    Args:
        labels: (G,) answers.
        right: (G,) flags, for the colours.
        panels: heading → (G,) advantages; the first is without a bonus, and the others are compared with it.
    """
    tables = {name: np.asarray(values, dtype=np.float64) for name, values in panels.items()}
    for name, values in tables.items():
        if len(values) != len(labels) or len(right) != len(labels):
            raise ConfigError(f"panels[{name!r}]", f"{len(values)} values", f"{len(labels)}, one per answer")
    plain, told = next(iter(tables.values())), []
    limit = 1.75 * max(np.abs(values).max() for values in tables.values())
    with style.look():
        fig, axes = style.canvas(7.2, 1.0 + 0.4 * len(labels), columns=len(tables), sharey=True, sharex=True)
        for panel, (name, values) in zip(axes, tables.items()):
            turned = (plain * values < 0) & (np.abs(plain) > 1e-9)
            paints = [style.RIGHT if ok else style.WRONG for ok in right]
            panel.barh(range(len(values)), values, height=0.6, color=paints, linewidth=0)
            for row, (value, turn) in enumerate(zip(values, turned)):
                panel.annotate(f"{value:+.2f}" + (" turns" if turn else ""), xy=(value, row), va="center", fontsize=8,
                               xytext=(4 if value >= 0 else -4, 0), textcoords="offset points",
                               ha="left" if value >= 0 else "right", fontweight="bold" if turn else "normal",
                               color=style.ORANGE if turn else style.INK)
            panel.axvline(0, color=style.INK, linewidth=0.8)
            panel.set_title(name, fontsize=10)
            style.tidy(panel, "x")
            turns = [label for label, turn in zip(labels, turned) if turn]
            told.append(f"{name}: " + ", ".join(f"{label} {v:+.2f}" for label, v in zip(labels, values))
                        + (f"; the sign of {', '.join(turns)} turns" if turns else ""))
        axes[0].set(xlim=(-limit, limit), ylim=(len(labels) - 0.5, -0.5))
        axes[0].set_yticks(range(len(labels)), labels, parse_math=False)
        fig.supxlabel("advantage", fontsize=10, color=style.INK)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return style.describe(fig, f"Advantages of a group of {len(labels)}, {sum(map(bool, right))} right. "
                               f"{'. '.join(told)}.")


def decay_curve(factors: Sequence[float], *, marks: Sequence[int] = (0, 10, 40, 120), title: str = "") -> Figure:
    """The bonus's factor γ/(γ + n) over the steps, and what it sums to: the run's steps of full bonus (eq 9).

    Args:
        factors: (steps,) from n = 0 on, in (0, 1].
        marks: steps whose factor is written out; the last step's always is.
    """
    values = np.asarray(factors, dtype=np.float64)
    sums, last = np.cumsum(values), len(values) - 1
    places = [n for n in marks if n < last] + [last]
    with style.look():
        fig, axes = style.canvas(7.2, 3.0, columns=2)
        axes[0].plot(values, color=style.BLUE)
        for n in places:
            axes[0].plot(n, values[n], "o", color=style.BLUE, markersize=6)
            axes[0].annotate(f"{values[n]:.2g}", xy=(n, values[n]), xytext=(5, 5) if n < last else (2, 8),
                             ha="left" if n < last else "right", textcoords="offset points", color=style.BLUE,
                             fontsize=9, fontweight="bold")
        axes[0].set(xlabel="completed steps n", ylabel="share of the full bonus", ylim=(0, 1.12))
        axes[1].plot(np.arange(1, last + 2), sums, color=style.ORANGE)
        axes[1].plot(last + 1, sums[-1], "o", color=style.ORANGE, markersize=6)
        axes[1].annotate(f"{sums[-1]:.2f} in {last + 1} steps", xy=(last + 1, sums[-1]), xytext=(-6, 8), ha="right",
                         textcoords="offset points", color=style.ORANGE, fontsize=9, fontweight="bold")
        axes[1].set(xlabel="steps", ylabel="steps of full bonus so far", ylim=(0, 1.2 * sums[-1]))
        for axis in axes:
            style.tidy(axis)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return style.describe(fig, f"The bonus's factor falls from {values[0]:.3g} to {values[-1]:.3g} over {last + 1} "
                               f"steps: {', '.join(f'{values[n]:.2g} at n = {n}' for n in places)}. In all it is "
                               f"worth {sums[-1]:.2f} steps of full bonus.")


def novel_kinds(aucs: Mapping[str, Mapping[str, Sequence[float]]], *, title: str = "") -> Figure:
    """What the predictor finds less familiar than what it was trained on: AUC, mean and 95 % t interval over seeds.

    Args:
        aucs: way of reading → kind of text → (seeds,) AUC in [0, 1]; all ways with the same kinds. Small dots are
            seeds.
    """
    kinds = list(next(iter(aucs.values())))
    lift, told = 0.26, []
    with style.look():
        fig, (axes,) = style.canvas(6.8, 1.1 + 0.3 * len(kinds) * (1 + 0.5 * len(aucs)))
        axes.axvline(0.5, color=style.INK, linestyle="--", linewidth=1)
        for index, (way, found) in enumerate(aucs.items()):
            if list(found) != kinds:
                raise ConfigError(f"aucs[{way!r}]", list(found), f"the kinds {', '.join(kinds)}")
            paint = (style.BLUE, style.ORANGE, style.GREEN, style.PINK)[index % 4]
            for row, values in enumerate(found.values()):
                place = row + lift * (index - (len(aucs) - 1) / 2)
                words = _dots(axes, values, place, paint, label=way if row == 0 else None)
                told.append(f"{way}, {kinds[row]} {words}")
        axes.set_yticks(range(len(kinds)), kinds)
        axes.set(xlim=(0, 1.02), ylim=(len(kinds) - 0.5, -0.5), title=title,
                 xlabel="AUC against familiar text (0.5: no difference)")
        style.tidy(axes, "x")
        fig.legend(loc="outside upper left", ncols=3, fontsize=9)
    return style.describe(fig, f"How often a text's error is above that of a familiar text. {'; '.join(told)}.")


def _dots(axes, values: Sequence[float], place: float, paint: str, label: str | None) -> str:
    """Seeds, their mean and its interval, cut at 0 and 1, in one row; returns the numbers in words."""
    mean, low, high, _ = seed_interval(values)
    bounded = bool(np.isfinite(low))
    if bounded:
        axes.plot([max(low, 0), min(high, 1)], [place, place], color=paint, linewidth=2.4, alpha=0.55)
    axes.plot(values, np.full(len(values), place), "o", color=paint, markersize=3.5, alpha=0.7)
    axes.plot(mean, place, "o", color=paint, markersize=8, label=label)
    return f"{mean:.2f}" + (f" [{low:.2f}, {high:.2f}]" if bounded else "")
