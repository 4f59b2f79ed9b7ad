"""The figures of the EMPO chapter that show what training did: pass@k, reliability, changed sides, two faces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from explorl.errors import ConfigError
from explorl.papers.empo_metrics import Reliability
from explorl.report import style
from explorl.report.stats import seed_interval

SIDES = ("right_right", "wrong_right", "right_wrong", "wrong_wrong")
_SIDE_NAMES = {"right_right": "stays right", "wrong_right": "becomes right", "right_wrong": "becomes wrong",
               "wrong_wrong": "stays wrong"}


def pass_at_k(ks: Sequence[int], curves: Mapping[str, np.ndarray], *, base: str = "base", title: str = "") -> Figure:
    """pass@k against k on a logarithmic axis: mean over seeds in a 95 % t band, one line per arm.

    Where the base overtakes an arm that is ahead at k = 1, a ring marks the first k at which it is level.

    Args:
        ks: rising, ≥ 1.
        curves: arm → (seeds, len(ks)) in [0, 1]; one seed gives a line without a band.
        base: the arm that the others are compared with.
    """
    means, ends = {}, {}
    with style.look():
        fig, (axes,) = style.canvas(6.8, 3.9)
        for index, (arm, values) in enumerate(curves.items()):
            table = np.atleast_2d(np.asarray(values, dtype=np.float64))
            if table.shape[1] != len(ks):
                raise ConfigError(f"curves[{arm!r}]", table.shape, f"(seeds, {len(ks)}), one value per k")
            mean, low, high = np.array([seed_interval(column)[:3] for column in table.T]).T
            paint = style.colour(arm, index)
            if len(table) > 1:
                axes.fill_between(ks, 100 * low, 100 * high, color=paint, alpha=0.15, linewidth=0)
            axes.plot(ks, 100 * mean, color=paint, marker="o", markersize=4, linestyle=style.dashes(arm))
            means[arm], ends[arm] = mean, 100 * mean[-1]
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(list(ks)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:g}"))
        axes.set(xlabel="samples k", ylabel="pass@k (%)", title=title, xlim=(min(ks), max(ks)))
        style.tidy(axes)
        found = crossings(ks, means, base)
        for arm, k in found.items():
            axes.plot(k, 100 * means[arm][list(ks).index(k)], "o", markersize=12, fillstyle="none", zorder=5,
                      color=style.colour(arm, list(curves).index(arm)), markeredgewidth=1.6)
        _name(axes, ends, list(curves))
    told = "; ".join(f"{style.display_name(arm)} from {100 * mean[0]:.1f} to {100 * mean[-1]:.1f}"
                     for arm, mean in means.items())
    crossed = "; ".join(f"{style.display_name(base)} is level with {style.display_name(arm)} from k = {k} on"
                        for arm, k in found.items()) or "the base overtakes no arm"
    return style.describe(fig, f"pass@k in percent for k from {min(ks)} to {max(ks)}: {told}; {crossed}.")


def crossings(ks: Sequence[int], means: Mapping[str, np.ndarray], base: str = "base") -> dict[str, int]:
    """Arm → the smallest k from which on the base is at least as good, for arms that are ahead of it at the first k.

    Args:
        ks: rising.
        means: arm → (len(ks),) pass@k, the base among them; else nothing is found.

    >>> crossings([1, 2, 4], {"base": np.array([.2, .4, .6]), "empo": np.array([.4, .4, .5])})
    {'empo': 2}
    """
    found = {}
    for arm, values in means.items():
        if arm == base or base not in means or not values[0] > means[base][0]:
            continue
        behind = np.asarray(values) > np.asarray(means[base]) + 1e-12
        last = int(np.flatnonzero(behind)[-1])
        if last + 1 < len(ks):
            found[arm] = int(ks[last + 1])
    return found


def _name(axes, ends: Mapping[str, float], order: Sequence[str]) -> None:
    """Each arm's name beside the end of its line, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    places = style.spread(np.array(list(ends.values())), 0.065 * (high - low))
    for arm, place in zip(ends, places):
        axes.annotate(style.display_name(arm), xy=(axes.get_xlim()[1], place), xytext=(6, 0), va="center",
                      textcoords="offset points", color=style.colour(arm, order.index(arm)), fontweight="bold",
                      fontsize=9, annotation_clip=False)


def reliability(tables: Mapping[str, Reliability], *, title: str = "") -> Figure:
    """How often a cluster with share p of its group is right; on the diagonal, p is what it says.

    Args:
        tables: arm → its table, of :func:`explorl.papers.empo_metrics.calibration`; dots grow with the count.
    """
    with style.look():
        fig, (axes,) = style.canvas(5.4, 4.4)
        axes.plot([0, 1], [0, 1], color=style.INK, linewidth=1, linestyle=":")
        for index, (arm, table) in enumerate(tables.items()):
            seen, paint = table.count > 0, style.colour(arm, index)
            x, y = table.share[seen], table.right[seen]
            axes.plot(x, y, color=paint, linewidth=1.4, linestyle=style.dashes(arm))
            axes.scatter(x, y, s=14 + 160 * table.count[seen] / table.count.sum(), color=paint, alpha=0.8, linewidth=0)
            axes.annotate(f"{style.display_name(arm)}, error {table.error:.2f}", xy=(0.98, 0.03 + 0.07 * index),
                          xycoords="axes fraction", color=paint, fontsize=9, fontweight="bold", ha="right")
        axes.set(xlim=(0, 1.03), ylim=(-0.03, 1.03), xlabel="share of the majority, p(c)",
                 ylabel="share of those majorities that are right", title=title)
        style.tidy(axes, "both")
    told = "; ".join(f"{style.display_name(arm)}: expected calibration error {table.error:.3f} over "
                     f"{int(table.count.sum())} groups" for arm, table in tables.items())
    return style.describe(fig, f"Reliability diagram of the majority's share. {told}.")


def sides(counts: Mapping[str, Mapping[str, int]], *, title: str = "") -> Figure:
    """How many problems' majority stays right, becomes right, becomes wrong, stays wrong; one bar per arm.

    Args:
        counts: arm → the four of :data:`SIDES`, as :func:`explorl.papers.empo_metrics.transitions` gives them.
    """
    paints = {"right_right": style.RIGHT, "wrong_right": style.GREEN, "right_wrong": style.ORANGE,
              "wrong_wrong": style.WRONG}
    with style.look():
        fig, (axes,) = style.canvas(7.0, 1.3 + 0.42 * len(counts))
        for row, found in enumerate(counts.values()):
            left, total = 0.0, max(sum(found[side] for side in SIDES), 1)
            for side in SIDES:
                width = 100 * found[side] / total
                axes.barh(row, width, left=left, height=0.64, color=paints[side], linewidth=0,
                          label=_SIDE_NAMES[side] if row == 0 else None)
                if width > 4:
                    axes.text(left + width / 2, row, str(found[side]), ha="center", va="center", color="white",
                              fontsize=8, fontweight="bold")
                left += width
        axes.set_yticks(range(len(counts)), [style.display_name(arm) for arm in counts])
        axes.set(xlim=(0, 100), ylim=(len(counts) - 0.5, -0.5), xlabel="test problems (%)", title=title)
        style.tidy(axes, "x")
        fig.legend(loc="outside upper left", ncols=4, fontsize=9)
    told = "; ".join(f"{style.display_name(arm)}: " + ", ".join(f"{_SIDE_NAMES[s]} {found[s]}" for s in SIDES)
                     for arm, found in counts.items())
    return style.describe(fig, f"Where the majority stands after training, by where it stood before. {told}.")


def two_faces(starts: Mapping[str, Mapping[str, np.ndarray]], *, title: str = "") -> Figure:
    """Exact training on one question: probability of the right answer and entropy, one column per start.

    Args:
        starts: start → arm → (steps, 2): p of the right answer, and H in nats.
    """
    with style.look():
        fig, axes = style.canvas(7.2, 4.6, columns=len(starts), rows=2, sharex=True, sharey="row")
        told = []
        for column, (start, arms) in enumerate(starts.items()):
            for index, (arm, values) in enumerate(arms.items()):
                for row in (0, 1):
                    axes[row * len(starts) + column].plot(values[:, row], color=style.colour(arm, index), label=(
                        style.display_name(arm) if row == column == 0 else None), linestyle=style.dashes(arm))
                told.append(f"{start}, {style.display_name(arm)}: p from {values[0, 0]:.2f} to {values[-1, 0]:.3f}, "
                            f"entropy from {values[0, 1]:.2f} to {values[-1, 1]:.2f}")
            axes[column].set_title(start, fontsize=10)
            axes[len(starts) + column].set_xlabel("steps")
        axes[0].set_ylabel("p(right answer)")
        axes[len(starts)].set_ylabel("entropy (nats)")
        for axis in axes:
            axis.set_ylim(bottom=-0.03)
            style.tidy(axis)
        fig.legend(loc="outside upper left", ncols=5, fontsize=9)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return style.describe(fig, f"Exact gradient ascent on one question. {'; '.join(told)}.")
