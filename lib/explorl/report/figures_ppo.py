"""The figure of PPO's critic: how much of the returns' variance it explains while it learns."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from explorl.errors import ConfigError
from explorl.report import style
from explorl.report.stats import seed_interval

Curves = tuple[np.ndarray, Mapping[str, np.ndarray]]
HELD_OUT, DOTTED = style.BLUE, (0, (1, 1.2))


def explained_variance(fresh: Curves, held_out: Curves, *, line: float | None = None, floor: float = -1.0,
                       title: str = "") -> Figure:
    """One panel per arm: every seed as a thin line, the mean as a thick one, the held-out problems as dots.

    Args:
        fresh: steps (points,) and arm → (seeds, points), on each batch before the critic trains on it; NaN where none.
        held_out: the same on problems that are never trained on, at its own steps; arms without it have no dots.
        line: a value that the critic should pass, marked.
        floor: the least value that is drawn, < 0; the lowest one is told where it lies below.
        title: over all panels.
    """
    steps, arms = fresh
    if not arms:
        raise ConfigError("fresh", "no arm", "at least one arm with a critic")
    told = []
    with style.look():
        fig, panels = style.canvas(max(4.6, 3.6 * len(arms)), 3.6, columns=len(arms), sharey=True, sharex=True)
        for index, (panel, (arm, values)) in enumerate(zip(panels, arms.items())):
            paint = style.colour(arm, index)
            _fresh(panel, np.asarray(steps), np.asarray(values, dtype=np.float64), paint, floor)
            ends = _held_out(panel, np.asarray(held_out[0]), held_out[1].get(arm), floor)
            panel.axhline(0, color=style.INK, linewidth=1)
            if line is not None:
                panel.axhline(line, color=style.RED, linewidth=1.2, linestyle=(0, (4, 2)))
            panel.set_title(style.display_name(arm), fontsize=10, color=paint)
            panel.set(ylim=(floor, 1.02), xlabel="optimiser steps")
            panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            style.tidy(panel)
            told.append(_told(arm, values, ends, line))
        if line is not None:
            panels[0].annotate(f"{line:g}", xy=(0, line), xycoords=("axes fraction", "data"), xytext=(3, 3),
                               textcoords="offset points", color=style.RED, fontsize=9, fontweight="bold")
        panels[0].set_ylabel("explained variance")
        fig.legend(handles=_keys(), loc="outside upper left", ncols=3, fontsize=9, title=title or None,
                   alignment="left")
    return style.describe(fig, f"Explained variance of the critic, 1 is perfect and 0 no better than a constant. "
                               f"{' '.join(told)}")


def _fresh(panel, steps: np.ndarray, values: np.ndarray, paint: str, floor: float) -> None:
    """Seeds and their mean; the lowest value as a number where it is below the frame."""
    for row in values:
        seen = np.isfinite(row)
        panel.plot(steps[seen], row[seen], color=paint, linewidth=0.8, alpha=0.4)
    shown = np.isfinite(values).any(axis=0)
    panel.plot(steps[shown], np.nanmean(values[:, shown], axis=0), color=paint)
    if np.nanmin(values) < floor:
        words = f"lowest {np.nanmin(values):.3g}, at step {steps[np.nanargmin(values) % len(steps)]:g}"
        panel.annotate(words.replace("-", "−"), xy=(0.99, 0.03), xycoords="axes fraction", ha="right", fontsize=8.5,
                       color=paint)


def _held_out(panel, steps: np.ndarray, values: np.ndarray | None, floor: float) -> np.ndarray:
    """Dots of every seed, joined in their mean; returns the seeds' last values."""
    if values is None:
        return np.zeros(0)
    values = np.asarray(values, dtype=np.float64)
    shown = np.isfinite(values).any(axis=0)
    for row in values:
        panel.plot(steps, np.maximum(row, floor), "o", color=HELD_OUT, markersize=3.5, alpha=0.7, markeredgewidth=0)
    mean = np.nanmean(values[:, shown], axis=0)
    panel.plot(steps[shown], np.maximum(mean, floor), color=HELD_OUT, linestyle=DOTTED, linewidth=1.8)
    ends = values[:, np.flatnonzero(shown)[-1]]
    return ends[np.isfinite(ends)]


def _keys() -> list:
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=style.INK, linewidth=2, label="new batches: mean"),
            Line2D([], [], color=style.INK, linewidth=0.8, alpha=0.6, label="one seed"),
            Line2D([], [], color=HELD_OUT, linestyle=DOTTED, linewidth=1.8, marker="o", markersize=3.5,
                   label="held-out problems: mean and seeds")]


def _told(arm: str, values: np.ndarray, ends: np.ndarray, line: float | None) -> str:
    columns = np.flatnonzero(np.isfinite(values).any(axis=0))
    first, last = (np.nanmean(np.asarray(values)[:, column]) for column in columns[[0, -1]])
    text = f"{style.display_name(arm)}: on new batches from {first:.2g} to {last:.2g}"
    if len(ends):
        mean, low, high, n = seed_interval(ends)
        text += f", at the end {mean:.2g} on held-out problems" + (f" [{low:.2g}, {high:.2g}]" if n > 1 else "")
        if line is not None:
            text += f", above {line:g} in {int((ends > line).sum())} of {n} seeds"
    return f"{text}."
