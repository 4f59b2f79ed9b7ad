"""The figures of the EMPO chapter that show groups of answers: clusters, certainty, partitions, pushes, gate.

Arrays in, Figure out. What a run did to such groups is in :mod:`explorl.report.figures_empo_runs`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from explorl.errors import ConfigError
from explorl.report import style

KINDS = ("right", "wrong", "blank")
CONFIDENT = 0.4
"""H/ln G below which a group counts as confident."""


class Cluster(NamedTuple):
    """One cluster of a group, as :func:`cluster_bars` draws it.

    Attributes:
        label: the answer, as its first member wrote it.
        count: members, ≥ 1.
        kind: one of :data:`KINDS`.
    """

    label: str
    count: int
    kind: str


def cluster_bars(groups: Mapping[str, Sequence[Cluster]], *, title: str = "") -> Figure:
    """One bar per group, cut into its clusters by share, with the majority's share and the entropy beside it.

    Args:
        groups: name → clusters; drawn from the largest, blanks last.
    """
    paints = {"right": style.RIGHT, "wrong": style.WRONG, "blank": style.FAINT}
    told = []
    with style.look():
        fig, (axes,) = style.canvas(7.2, 1.0 + 0.42 * len(groups))
        for row, (name, clusters) in enumerate(groups.items()):
            for cluster in clusters:
                if cluster.kind not in KINDS or cluster.count < 1:
                    raise ConfigError(f"groups[{name!r}]", cluster, f"one of {', '.join(KINDS)}, count ≥ 1")
            left, total = 0.0, sum(cluster.count for cluster in clusters)
            for cluster in sorted(clusters, key=lambda c: (c.kind == "blank", -c.count)):
                share = cluster.count / total
                axes.barh(row, share, left=left, height=0.7, color=paints[cluster.kind], linewidth=0)
                axes.plot([left + share] * 2, [row - 0.35, row + 0.35], color="white", linewidth=1.4)
                _fit(axes, cluster.label, left, share, row)
                left += share
            entropy = _entropy([c.count for c in clusters])
            axes.annotate(f"H = {entropy:.2f}", xy=(1.01, row), va="center", fontsize=9)
            told.append(f"{name}: " + ", ".join(f"{c.label or 'blank'} ×{c.count} {c.kind}" for c in clusters)
                        + f", H = {entropy:.2f}")
        axes.set_yticks(range(len(groups)), list(groups), parse_math=False)
        axes.set(xlim=(0, 1.12), ylim=(len(groups) - 0.4, -0.6), xlabel="share of the group, p(c)", title=title)
        axes.set_xticks(np.linspace(0, 1, 5))
        style.tidy(axes, "")
        _key(axes, {"right": style.RIGHT, "wrong": style.WRONG, "no answer": style.INK})
    return style.describe(fig, f"Clusters of {len(groups)} groups. {'; '.join(told)}.")


def _fit(axes, label: str, left: float, share: float, row: int) -> None:
    """A cluster's answer inside its piece, cut to what has room."""
    room = int(58 * share)
    if room >= 2 and label:
        text = label if len(label) <= room else label[: room - 1] + "…"
        axes.text(left + share / 2, row, text, ha="center", va="center", fontsize=8,
                  color="white", parse_math=False)


def _key(axes, words: Mapping[str, str]) -> None:
    """Coloured words above the right end of a panel, in place of a legend."""
    left = 0.0
    for word, paint in reversed(words.items()):
        axes.annotate(word, xy=(1, 1), xycoords="axes fraction", ha="right", va="bottom", color=paint, fontsize=9,
                      xytext=(left, 5), textcoords="offset points", fontweight="bold")
        left -= 6.1 * len(word) + 14


def _entropy(counts: Sequence[int]) -> float:
    shares = np.asarray(counts, dtype=np.float64) / sum(counts)
    return float(-(shares * np.log(shares)).sum()) + 0.0


def certainty(entropy: Sequence[float], accuracy: Sequence[float], majority_right: Sequence[bool], *,
              confident: float = CONFIDENT, title: str = "") -> Figure:
    """Entropy against correctness, one dot per group, coloured by whether the majority is right.

    Args:
        entropy: (groups,) H/ln G in [0, 1].
        accuracy: (groups,) share of right answers.
        majority_right: (groups,) flags.
        confident: the corner that is shaded reaches up to this entropy.
    """
    h, acc, led = (np.asarray(v, dtype=np.float64) for v in (entropy, accuracy, majority_right))
    if not len(h) == len(acc) == len(led):
        raise ConfigError("accuracy, majority_right", f"{len(acc)} and {len(led)}", f"{len(h)} values each")
    corner = int(((h < confident) & (led == 0)).sum())
    with style.look():
        fig, (axes,) = style.canvas(6.4, 4.0)
        axes.add_patch(Rectangle((-0.04, -0.06), confident + 0.04, 0.36, color=style.WRONG, alpha=0.10, linewidth=0))
        for flag, paint, mark in ((1, style.RIGHT, "o"), (0, style.WRONG, "D")):
            seen = Counter(zip(h[led == flag].round(6), acc[led == flag].round(6)))
            for (x, y), times in seen.items():
                axes.plot(x, y, mark, color=paint, alpha=0.7, markersize=4 + 3 * math.sqrt(times), markeredgewidth=0)
        axes.text(-0.02, 0.27, f"confident and wrong: {corner}", color=style.WRONG, fontsize=9, fontweight="bold",
                  va="top")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.06, 1.06), xlabel="semantic entropy, H / ln G",
                 ylabel="share of right answers", title=title)
        style.tidy(axes, "both")
        _key(axes, {"● majority right": style.RIGHT, "◆ majority wrong": style.WRONG})
    return style.describe(fig, f"Entropy against accuracy of {len(h)} groups; larger marks are several groups. "
                               f"{int(led.sum())} majorities are right. {corner} groups are confident and wrong: "
                               f"entropy below {confident:g} of its maximum, and the majority is wrong.")


def partitions(items: Sequence[str], rows: Mapping[str, Sequence[int]], *, title: str = "") -> Figure:
    """The same answers under several clustering rules: cells of one colour, and one number, are one cluster.

    Args:
        items: (G,) answers in sampling order.
        rows: rule → (G,) cluster numbers.
    """
    palette = (style.BLUE, style.ORANGE, style.GREEN, style.PINK, style.RED, style.SKY)
    with style.look():
        fig, (axes,) = style.canvas(2.4 + 0.86 * len(items), 0.9 + 0.46 * len(rows))
        for row, (name, ids) in enumerate(rows.items()):
            if len(ids) != len(items):
                raise ConfigError(f"rows[{name!r}]", f"{len(ids)} numbers", f"{len(items)}, one per answer")
            for column, number in enumerate(ids):
                axes.add_patch(Rectangle((column + 0.04, row + 0.08), 0.92, 0.84, linewidth=0,
                                         color=palette[number % len(palette)]))
                axes.text(column + 0.5, row + 0.5, str(number), ha="center", va="center", color="white",
                          fontweight="bold")
        axes.set_xticks(np.arange(len(items)) + 0.5, items, parse_math=False)
        axes.set_yticks(np.arange(len(rows)) + 0.5, list(rows))
        axes.xaxis.tick_top()
        axes.tick_params(length=0)
        axes.set(xlim=(0, len(items)), ylim=(len(rows), 0))
        axes.spines[:].set_visible(False)
        axes.grid(False)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    told = "; ".join(f"{name}: {' '.join(map(str, ids))}" for name, ids in rows.items())
    return style.describe(fig, f"Cluster numbers of the answers {', '.join(items)}. {told}.")


def pushes(curves: Mapping[int, tuple[Sequence[float], Sequence[float]]], *, title: str = "") -> Figure:
    """How hard a member of a cluster is pushed, against the cluster's share, in groups of two clusters (eq 5).

    Args:
        curves: G → (shares, advantages) of the cluster's members, shares rising in (0, 1).
    """
    palette = (style.SKY, style.BLUE, style.ORANGE, style.PINK)
    told = []
    with style.look():
        fig, (axes,) = style.canvas(6.6, 3.6)
        axes.axhline(0, color=style.INK, linewidth=0.8)
        axes.axvline(0.5, color=style.INK, linewidth=0.8, linestyle=":")
        for index, (size, (shares, values)) in enumerate(curves.items()):
            paint = palette[index % len(palette)]
            axes.plot(shares, values, marker="o", markersize=3.5, color=paint)
            axes.annotate(f"G = {size}: {values[0]:.2f}", xy=(shares[0], values[0]), xytext=(9, -8), color=paint,
                          textcoords="offset points", fontsize=9, fontweight="bold", va="center")
            told.append(f"for G = {size} from {values[0]:.2f} for a lone answer to {values[-1]:+.2f} for all but one")
        axes.set(xlim=(0, 1), xlabel="share of the answer's cluster", ylabel="advantage of its members", title=title)
        style.tidy(axes)
    return style.describe(fig, f"Advantage against cluster share, two clusters: {'; '.join(told)}.")


def gate_histogram(entropy: Sequence[float], majority_right: Sequence[bool], group_size: int, *,
                   low: float = 0.0, high: float | None = None, title: str = "") -> Figure:
    """How many groups have which entropy, and which the two thresholds keep (eq 7).

    Args:
        entropy: (groups,) H in nats.
        majority_right: (groups,) flags.
        group_size: G.
        low, high: δ_low and δ_high in nats; None is ln G.
    """
    h, led = np.asarray(entropy, dtype=np.float64), np.asarray(majority_right, dtype=bool)
    top = math.log(group_size)
    upper = top if high is None else high
    edges = np.linspace(-0.05, top + 0.05, 15)
    kept = int(((h > low + 1e-9) & (h < upper - 1e-9)).sum())
    with style.look():
        fig, (axes,) = style.canvas(6.6, 3.2)
        axes.hist([h[led], h[~led]], bins=edges, stacked=True, color=[style.RIGHT, style.WRONG], rwidth=0.92)
        for place, word, side in ((low, "δ low", "left"), (upper, "δ high", "right")):
            axes.axvline(place, color=style.INK, linestyle="--", linewidth=1.2)
            axes.annotate(word, xy=(place, 0.98), xycoords=("data", "axes fraction"), va="top", ha=side,
                          xytext=(4 if side == "left" else -4, 0), textcoords="offset points", fontsize=9)
        axes.set(xlabel="semantic entropy H (nats)", ylabel="groups", title=title)
        style.tidy(axes)
        _key(axes, {"majority right": style.RIGHT, "majority wrong": style.WRONG})
    return style.describe(fig, f"Histogram of the entropy of {len(h)} groups of {group_size}. Between the thresholds "
                               f"{low:.2f} and {upper:.2f} nats lie {kept}; {int((h <= low + 1e-9).sum())} are at or "
                               "below the lower one.")
