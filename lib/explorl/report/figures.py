"""Figures that any chapter can use: learning curves, a forest of arms, bars per component, gaming policies.

Every function takes arrays, returns a matplotlib Figure with an alternative text
(:func:`explorl.report.style.alt_text`), and reads no file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from explorl.errors import ConfigError
from explorl.report import style
from explorl.report.stats import Estimate, seed_interval


def learning_curves(steps: Sequence[float], curves: Mapping[str, np.ndarray], *, ylabel: str, title: str = "",
                    percent: bool = True, confidence: float = 0.95, chance: float | None = None) -> Figure:
    """One line per arm (mean over seeds) in a band (t interval), each named at its right end.

    Args:
        steps: (points,) optimiser steps.
        curves: arm → (seeds, points); NaN where a seed has no value. One seed gives a line without a band.
        ylabel: what is measured.
        percent: values in [0, 1] shown as percent.
        confidence: level of the band.
        chance: a reference value drawn as a dashed line, in the unit of the curves.

    Raises:
        ConfigError: a curve's last axis differs from ``steps``.
    """
    scale = 100.0 if percent else 1.0
    x = np.asarray(steps, dtype=np.float64)
    with style.look():
        fig, (axes,) = style.canvas(6.8, 3.8)
        ends = {}
        for index, (arm, values) in enumerate(curves.items()):
            mean, low, high = (scale * part for part in _band(arm, values, len(x), confidence))
            paint = style.colour(arm, index)
            axes.fill_between(x, low, high, color=paint, alpha=0.18, linewidth=0)
            axes.plot(x, mean, color=paint, zorder=3, linestyle=style.dashes(arm))
            ends[arm] = mean[np.isfinite(mean)][-1] if np.isfinite(mean).any() else math.nan
        if chance is not None:
            axes.axhline(scale * chance, color=style.INK, linewidth=1, linestyle=":")
        axes.set(xlabel="optimiser steps", ylabel=f"{ylabel} (%)" if percent else ylabel, title=title)
        axes.set_xlim(x.min(), x.max())
        style.tidy(axes)
        _name_ends(axes, ends)
    told = "; ".join(f"{style.display_name(a)} ends at {v:.3g}" for a, v in ends.items())
    return style.describe(fig, f"Learning curves of {ylabel} over {x.max():g} steps. {told}.")


def _band(arm: str, values: np.ndarray, points: int, confidence: float) -> np.ndarray:
    """(3, points): mean, low, high over the seeds that have a value; a lone seed has no band."""
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if table.shape[-1] != points:
        raise ConfigError(f"curves[{arm!r}]", table.shape, f"(seeds, {points}), one value per step")
    result = np.full((3, points), np.nan)
    for column in range(points):
        seen = table[np.isfinite(table[:, column]), column]
        if len(seen):
            mean, low, high, n = seed_interval(seen, confidence)
            result[:, column] = (mean, low, high) if n > 1 else (mean, mean, mean)
    return result


def _name_ends(axes, ends: Mapping[str, float]) -> None:
    """Write each arm's name beside the end of its line, moved apart where they would overlap."""
    names = [arm for arm, y in ends.items() if math.isfinite(y)]
    low, high = axes.get_ylim()
    places = style.spread(np.array([ends[n] for n in names]), 0.065 * (high - low))
    for name, place in zip(names, places):
        axes.annotate(style.display_name(name), xy=(axes.get_xlim()[1], place), xytext=(6, 0), va="center",
                      textcoords="offset points", color=style.colour(name, list(ends).index(name)),
                      fontweight="bold", fontsize=9, annotation_clip=False)


def forest(estimates: Mapping[str, Estimate], *, xlabel: str, title: str = "", percent: bool = True,
           unit: str = "seeds", reference: float | None = None) -> Figure:
    """One row per arm: a dot with its interval, and the numbers written out.

    Args:
        estimates: arm → (value, low, high, n), from the top down. Infinite ends draw the dot alone.
        xlabel: what is measured.
        percent: values in [0, 1] shown as percent.
        unit: what n counts, "seeds" or "items".
        reference: a value marked by a dashed vertical line, same unit as the estimates.
    """
    scale = 100.0 if percent else 1.0
    with style.look():
        fig, (axes,) = style.canvas(6.8, 0.9 + 0.42 * max(len(estimates), 1))
        for row, (arm, (value, low, high, n)) in enumerate(estimates.items()):
            paint = style.colour(arm, row)
            bounded = math.isfinite(low) and math.isfinite(high)
            if bounded:
                axes.plot([scale * low, scale * high], [row, row], color=paint, linewidth=2.4)
            axes.plot(scale * value, row, "o", color=paint, markersize=8)
            words = _interval_words(scale * value, scale * low, scale * high)
            words += f"   {n} {unit if n != 1 else unit.removesuffix('s')}"
            axes.annotate(words, xy=(1.02, row), xycoords=("axes fraction", "data"), va="center", fontsize=9)
        if reference is not None:
            axes.axvline(scale * reference, color=style.INK, linestyle="--", linewidth=1)
        axes.set_yticks(range(len(estimates)), [style.display_name(a) for a in estimates])
        axes.set(xlabel=f"{xlabel} (%)" if percent else xlabel, title=title)
        axes.set_ylim(len(estimates) - 0.5, -0.5)
        style.tidy(axes, "x")
    told = "; ".join(f"{style.display_name(a)} {_interval_words(scale * e[0], scale * e[1], scale * e[2])}"
                     for a, e in estimates.items())
    return style.describe(fig, f"Forest plot of {xlabel}: {told}.")


def _interval_words(value: float, low: float, high: float) -> str:
    """The estimate in one decimal, with its interval where it has one."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return f"{value:.1f} (no interval)"
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def component_bars(labels: Sequence[str], components: Mapping[str, Sequence[float]], *,
                   total: str | None = None, title: str = "") -> Figure:
    """Small bars side by side: one panel per component, one row per completion, values written at the bars.

    Args:
        labels: (N,) completions, from the top.
        components: name → (N,) values.
        total: name of the component drawn last in bold grey, e.g. "advantage"; it must be in ``components``.
    """
    names = list(components)
    with style.look():
        fig, axes = style.canvas(1.5 + 1.55 * len(names), 0.9 + 0.3 * len(labels), columns=len(names),
                                 sharey=True)
        for index, (name, panel) in enumerate(zip(names, axes)):
            values = np.asarray(components[name], dtype=np.float64)
            if values.shape != (len(labels),):
                raise ConfigError(f"components[{name!r}]", values.shape, f"({len(labels)},), one per label")
            paint = style.INK if name == total else style.colour(name, index)
            panel.barh(range(len(labels)), values, color=paint, height=0.62)
            _write_values(panel, values)
            panel.set_title(style.display_name(name), fontsize=9, color=paint)
            panel.set_yticks(range(len(labels)), labels)
            panel.set_xticks([])
            panel.axvline(0, color=style.INK, linewidth=0.8)
            panel.spines[:].set_visible(False)
            panel.grid(False)
        axes[0].invert_yaxis()
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    told = "; ".join(
        f"{label}: " + ", ".join(f"{style.display_name(name)} {components[name][i]:.2f}" for name in names)
        for i, label in enumerate(labels))
    return style.describe(fig, f"Bars per completion and component. {told}.")


def _write_values(panel, values: np.ndarray, margin: float = 0.55) -> None:
    """Numbers at the bar ends, and room for them on both sides."""
    low, high = min(values.min(initial=0), 0), max(values.max(initial=0), 0)
    room = margin * ((high - low) or 1)
    panel.set_xlim(low - room * (low < 0), high + room)
    for row, value in enumerate(values):
        panel.annotate(f"{value:.2f}", xy=(value, row), xytext=(-3 if value < 0 else 3, 0), va="center",
                       ha="right" if value < 0 else "left", textcoords="offset points", fontsize=8)


def gaming_gallery(labels: Sequence[str], rewards: Sequence[float], honest: Sequence[bool], *,
                   xlabel: str = "total reward", title: str = "", correct: Sequence[bool] = ()) -> Figure:
    """Scripted policies by what they are paid: honest ones against those that game the reward.

    Args:
        labels: (N,) policies.
        rewards: (N,) what each is paid.
        honest: (N,) true for a policy that tries to solve the problem.
        correct: (N,) true where the final answer is right; marked ✓ or ✗ when given.
    """
    values, fair = np.asarray(rewards, dtype=np.float64), np.asarray(honest, dtype=bool)
    if not len(labels) == len(values) == len(fair) or len(correct) not in (0, len(labels)):
        raise ConfigError("labels, rewards, honest, correct",
                          f"of {len(labels)}, {len(values)}, {len(fair)}, {len(correct)} entries",
                          "of equal length")
    order = np.argsort(-values, kind="stable")
    with style.look():
        fig, (axes,) = style.canvas(6.8, 1.0 + 0.36 * len(labels))
        axes.barh(range(len(order)), values[order], height=0.62,
                  color=[style.BLUE if fair[i] else style.RED for i in order])
        _write_values(axes, values[order], 0.12)
        marks = [f"{labels[i]}  {'✓' if correct[i] else '✗'}" if len(correct) else labels[i] for i in order]
        axes.set_yticks(range(len(order)), marks)
        axes.invert_yaxis()
        axes.axvline(0, color=style.INK, linewidth=0.8)
        axes.set(xlabel=xlabel, title=title)
        style.tidy(axes, "x")
        for word, height, paint in (("honest", 0.10, style.BLUE), ("gaming", 0.02, style.RED)):
            axes.annotate(word, xy=(0.99, height), xycoords="axes fraction", color=paint, weight="bold",
                          ha="right")
    told = "; ".join(f"{labels[i]} ({'honest' if fair[i] else 'gaming'}) {values[i]:.2f}" for i in order)
    return style.describe(fig, f"Policies by {xlabel}: {told}.")
