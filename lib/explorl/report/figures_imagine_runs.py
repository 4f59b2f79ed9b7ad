"""The figures of the IMAGINE chapter that show what training did: loss, length, bonus, advantages, sensitivity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from explorl.errors import ConfigError
from explorl.report import style
from explorl.report.stats import seed_interval, spearman

KINDS: Mapping[str, tuple[str, str]] = {
    "right": ("correct", style.RIGHT), "format": ("wrong, well formed", style.ORANGE),
    "none": ("no answer", style.WRONG),
}
"""Kind of completion → its name and colour."""
KEPT = ("components/rnd_loss/mean", "components/bonus/mean", "components/novelty_error/mean", "components/score/mean",
        "components/oc/mean", "critic/explained_variance", "critic/held_out_explained_variance", "critic/value_loss",
        "dapo/flat_first", "dapo/flat_left", "dapo/rounds", "dapo/replaced", "signal/flat_groups",
        "signal/against_answer", "imagine/novelty_length_rho", "imagine/bonus_median", "imagine/bonus_max",
        "imagine/bonus_truncated", "imagine/wrong_lifted", "imagine/all_wrong_groups")
"""What the chapter keeps of its arms' training beside their evaluations, as the trainer names it."""


def rnd_loss(steps: Sequence[float], losses: Mapping[str, np.ndarray], *, title: str = "") -> Figure:
    """The predictor's loss over training on a logarithmic axis (Fig. 6): geometric mean over seeds in a t band.

    Args:
        steps: (points,) optimiser steps, rising.
        losses: arm → (seeds, points), > 0 or NaN; arms without the bonus train a predictor that is not paid for.
    """
    ends, told = {}, []
    with style.look():
        fig, (axes,) = style.canvas(6.8, 3.8)
        axes.set_yscale("log")
        for index, (arm, values) in enumerate(losses.items()):
            mean, low, high = _log_band(arm, values, len(steps))
            paint, shown = style.colour(arm, index), np.isfinite(mean)
            if not shown.any():
                continue
            axes.fill_between(steps, low, high, color=paint, alpha=0.16, linewidth=0)
            axes.plot(steps, mean, color=paint, linestyle=style.dashes(arm))
            ends[arm] = math.log10(mean[shown][-1])
            told.append(f"{style.display_name(arm)} from {mean[shown][0]:.2g} to {mean[shown][-1]:.2g}")
        axes.set(xlabel="optimiser steps", ylabel="predictor's loss", title=title, xlim=(min(steps), max(steps)))
        style.tidy(axes)
        bottom, top = np.log10(axes.get_ylim())
        for arm, place in zip(ends, style.spread(np.array(list(ends.values())), 0.065 * (top - bottom))):
            axes.annotate(style.display_name(arm), xy=(max(steps), 10**place), xytext=(6, 0), va="center", fontsize=9,
                          textcoords="offset points", color=style.colour(arm, list(losses).index(arm)),
                          fontweight="bold", annotation_clip=False)
    return style.describe(fig, f"The predictor's loss over {max(steps):g} steps: {'; '.join(told)}.")


def _log_band(arm: str, values: np.ndarray, points: int) -> np.ndarray:
    """(3, points): geometric mean, low, high over the seeds that have a value; a lone seed has no band."""
    table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if table.shape[1] != points or (table <= 0).any():
        raise ConfigError(f"losses[{arm!r}]", table.shape, f"(seeds, {points}) values above 0")
    result = np.full((3, points), np.nan)
    for column, seen in enumerate(np.log10(table).T):
        seen = seen[np.isfinite(seen)]
        if len(seen):
            mean, low, high, n = seed_interval(seen)
            result[:, column] = (mean, low, high) if n > 1 else (mean, mean, mean)
    return 10**result


def novelty_length(seeds: Mapping[object, tuple[Sequence[float], Sequence[float]]], *, cap: int | None = None,
                   title: str = "") -> Figure:
    """Does the error follow length? One panel per seed, with Spearman's ρ in its heading.

    Args:
        seeds: seed → (lengths in tokens, errors > 0) of one batch of 4 or more; five to a row.
        cap: the longest length that sampling allows, marked.
    """
    columns = min(5, len(seeds))
    rows, rhos = -(-len(seeds) // columns), {}
    with style.look():
        fig, axes = style.canvas(7.2, 0.6 + 1.9 * rows, columns=columns, rows=rows, sharex=True, sharey=True)
        for panel, (seed, (lengths, errors)) in zip(axes, seeds.items()):
            if min(errors) <= 0:
                raise ConfigError(f"seeds[{seed!r}]", min(errors), "errors above 0")
            rhos[seed] = spearman(lengths, errors).value
            paint = style.BLUE if rhos[seed] >= 0 else style.RED
            panel.plot(lengths, errors, "o", color=paint, markersize=3, alpha=0.45, markeredgewidth=0)
            if cap is not None:
                panel.axvline(cap, color=style.INK, linestyle=":", linewidth=1)
            panel.set_title(f"seed {seed}\nρ = {rhos[seed]:+.2f}", fontsize=9, color=paint)
            panel.set_yscale("log")
            panel.xaxis.set_major_locator(MaxNLocator(3, integer=True))
            style.tidy(panel)
        for spare in axes[len(seeds):]:
            spare.set_axis_off()
        fig.supxlabel("length (tokens)", fontsize=10, color=style.INK)
        fig.supylabel("novelty error", fontsize=10, color=style.INK)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    told = ", ".join(f"{rho:+.2f} for seed {seed}" for seed, rho in rhos.items())
    return style.describe(fig, f"Novelty error against length. Rank correlation: {told}.")


def bonus_histogram(bonuses: Sequence[float], truncated: Sequence[bool], *, alpha: float, title: str = "") -> Figure:
    """How large the bonuses of one batch's wrong answers are, whole and cut off, on a logarithmic count (eq 9).

    Args:
        bonuses: (N,) of wrong answers, before the decay, in [0, α].
        truncated: (N,) flags: cut off at the longest length.
        alpha: α, the largest bonus.
    """
    values, cut = np.asarray(bonuses, dtype=np.float64), np.asarray(truncated, dtype=bool)
    if len(values) != len(cut) or not len(values):
        raise ConfigError("truncated", f"{len(cut)} flags", f"{len(values)}, one per bonus, and at least one")
    median, total = float(np.median(values)), float(values.sum())
    share = float(values[cut].sum() / total) if total else 0.0
    with style.look():
        fig, (axes,) = style.canvas(6.8, 3.4)
        axes.hist([values[~cut], values[cut]], bins=np.linspace(0, alpha, 21), color=[style.BLUE, style.ORANGE],
                  linewidth=0, rwidth=0.9)
        axes.set_yscale("log")
        axes.set_ylim(0.7, 3 * axes.get_ylim()[1])
        axes.axvline(median, color=style.RED, linestyle="--", linewidth=1.4)
        axes.annotate(f"median {median:.3g}", xy=(median, 0.99), xycoords=("data", "axes fraction"), xytext=(5, 0),
                      textcoords="offset points", color=style.RED, fontsize=9, fontweight="bold", va="top")
        words = ((f"whole: {int((~cut).sum())} answers, {1 - share:.0%} of all bonus", style.BLUE),
                 (f"cut off: {int(cut.sum())} answers, {share:.0%} of all bonus", style.ORANGE))
        for row, (word, paint) in enumerate(words):
            axes.annotate(word, xy=(0.99, 0.99 - 0.09 * row), xycoords="axes fraction", ha="right", va="top",
                          fontsize=9, color=paint, fontweight="bold")
        axes.set(xlim=(0, alpha), xlabel=f"bonus, at most α = {alpha:g}", ylabel="wrong answers", title=title)
        style.tidy(axes)
    return style.describe(fig, f"Histogram of the bonuses of {len(values)} wrong answers: median {median:.3g} of at "
                               f"most {alpha:g}. The {int(cut.sum())} that were cut off take {share:.0%} of all bonus.")


def advantages(before: Sequence[float], after: Sequence[float], kinds: Sequence[str], *, title: str = "") -> Figure:
    """Advantages before (outline) and after (filled) the bonus is added, one panel per kind of completion (eq 7).

    Args:
        before, after: (N,) Â_old and Â_new.
        kinds: (N,) each one of :data:`KINDS`.
    """
    old, new, which = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64), np.asarray(kinds)
    if not len(old) == len(new) == len(which) or not set(which) <= set(KINDS):
        raise ConfigError("kinds", sorted(set(which)), f"{len(old)} of {', '.join(KINDS)}")
    both, told = np.concatenate([old, new]), []
    edges = np.linspace(both.min() - 0.05, both.max() + 0.05, 41)
    with style.look():
        fig, axes = style.canvas(7.2, 4.8, rows=len(KINDS), sharex=True)
        for panel, (kind, (name, paint)) in zip(axes, KINDS.items()):
            mine = which == kind
            panel.hist(new[mine], bins=edges, color=paint, alpha=0.75, linewidth=0)
            panel.hist(old[mine], bins=edges, histtype="step", color=style.INK, linewidth=1.3)
            panel.axvline(0, color=style.INK, linewidth=0.8, linestyle=":")
            words = f"{name}: {int(mine.sum())}"
            if mine.any():
                words += f"; above 0: {(old[mine] > 0).mean():.0%} before, {(new[mine] > 0).mean():.0%} after"
            panel.set_title(words, fontsize=9, color=paint)
            panel.yaxis.set_major_locator(MaxNLocator(3, integer=True))
            style.tidy(panel)
            told.append(words)
        axes[-1].set_xlabel("advantage: outline without, filled with the bonus")
        fig.supylabel("completions", fontsize=10, color=style.INK)
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    return style.describe(fig, f"Histograms of advantages without and with the bonus. {'. '.join(told)}.")


def sensitivity(alphas: Sequence[float], gammas: Sequence[float], values: np.ndarray, *,
                reference: float | None = None, chosen: tuple[float, float] | None = None, title: str = "") -> Figure:
    """Accuracy over a grid of α and γ (Fig. 8): mean over seeds in percent; ``[ ]`` where the reference is not beaten.

    Args:
        alphas, gammas: rows and columns of the grid.
        values: (seeds, alphas, gammas) in [0, 1]; NaN where there is no run.
        reference: accuracy without the bonus.
        chosen: (α, γ) in use, framed.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 3 or table.shape[1:] != (len(alphas), len(gammas)):
        raise ConfigError("values", table.shape, f"(seeds, {len(alphas)}, {len(gammas)})")
    known = np.isfinite(table)
    mean = 100 * np.where(known, table, 0).sum(axis=0) / np.where(known.any(axis=0), known.sum(axis=0), np.nan)
    bottom, top = np.nanmin(mean), np.nanmax(mean)
    below, told = 0, []
    with style.look():
        fig, (axes,) = style.canvas(2.6 + 0.8 * len(gammas), 1.3 + 0.5 * len(alphas))
        image = axes.imshow(mean, cmap=style.SEQUENTIAL, aspect="auto", vmin=bottom, vmax=top)
        for i, alpha in enumerate(alphas):
            for j, gamma in enumerate(gammas):
                under = reference is not None and mean[i, j] <= 100 * reference
                below += bool(under)
                _number(axes, i, j, mean[i, j], under, mean[i, j] > 0.55 * bottom + 0.45 * top)
                told.append(f"α = {alpha:g}, γ = {gamma:g}: {mean[i, j]:.1f}")
        if chosen is not None:
            place = list(gammas).index(chosen[1]) - 0.47, list(alphas).index(chosen[0]) - 0.47
            axes.add_patch(Rectangle(place, 0.94, 0.94, fill=False, edgecolor=style.ORANGE, linewidth=2.6))
        axes.set_xticks(range(len(gammas)), [f"{g:g}" for g in gammas])
        axes.set_yticks(range(len(alphas)), [f"{a:g}" for a in alphas])
        axes.set(xlabel="decay γ", ylabel="largest bonus α", title=title)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        axes.grid(False)
        fig.colorbar(image, label="accuracy (%)").outline.set_visible(False)
    against = "" if reference is None else f" {below} cells do not beat the {100 * reference:.1f} without a bonus."
    return style.describe(fig, f"Accuracy in percent over α and γ, mean of {len(table)} seeds. {'; '.join(told)}."
                               + against)


def _number(axes, row: int, column: int, value: float, under: bool, dark: bool) -> None:
    """One cell's number, light on dark and dark on light; the dash where there is no run."""
    text = "–" if not math.isfinite(value) else f"[{value:.1f}]" if under else f"{value:.1f}"
    axes.text(column, row, text, ha="center", va="center", fontsize=9, fontweight="normal" if under else "bold",
              color=style.INK if not math.isfinite(value) else "white" if dark else "#27323c")
