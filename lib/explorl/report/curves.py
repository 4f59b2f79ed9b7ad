"""What happened during training: the arms' evaluations, put together over seeds and drawn as small panels."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from explorl import places
from explorl.errors import ConfigError
from explorl.report import claims, style
from explorl.report.html import Html, escape
from explorl.report.records import FILE as RECORD
from explorl.report.records import read, write_atomic
from explorl.report.stats import seed_interval

FILE = "curves.json"
NO_CURVES = "No evaluation during training was asked for (eval_every = 0), so there is no curve to draw."


def points(results: Sequence[Mapping], metric: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A metric's values during training.

    Args:
        results: of :func:`explorl.arms.train_arms`; arms that were not trained have no curve.
        metric: its name in the curve, such as ``acc_strict``.

    Returns:
        Steps (points,), ascending, and arm → (seeds, points); NaN where a seed has no value there.

    >>> rows = [{"kind": "eval", "step": 0, "uniq": 1.0}, {"kind": "eval", "step": 5, "uniq": 2.0}]
    >>> steps, found = points([{"arm": "sde2", "seed": 0, "curve": rows}], "uniq")
    >>> steps.tolist(), found["sde2"].tolist()
    ([0, 5], [[1.0, 2.0]])
    """
    seen: dict[str, dict[int, dict[int, float]]] = {}
    for result in results:
        rows = [row for row in result["curve"] if row["kind"] == "eval" and row.get(metric) is not None]
        if rows:
            seen.setdefault(result["arm"], {})[result["seed"]] = {row["step"]: row[metric] for row in rows}
    steps = sorted({step for seeds in seen.values() for values in seeds.values() for step in values})
    curves = {arm: np.array([[values.get(step, np.nan) for step in steps] for values in seeds.values()])
              for arm, seeds in seen.items()}
    return np.array(steps, dtype=np.int64), curves


def save(results: Sequence[Mapping], folder: str | os.PathLike | None) -> None:
    """Write the evaluations of a run beside its record, ``folder/curves.json``; does nothing without a folder."""
    if folder:
        kept = [{"arm": r["arm"], "seed": r["seed"], "curve": [row for row in r["curve"] if row["kind"] == "eval"]}
                for r in results]
        write_atomic(Path(folder) / FILE, json.dumps(kept, allow_nan=False) + "\n")


def best(results: Sequence[Mapping], chapter: str, scale: str, *, folder: Path | None = None, **having: object
         ) -> tuple[Sequence, str]:
    """The curves with the most seeds: those of this run, or those kept beside a record of the same scale.

    Args:
        results: of this run.
        chapter, scale: of this run.
        folder: of all records; by default the committed ones.
        having: parameters and the values that a record must have.

    Returns:
        The results, and whose they are: ``this run`` or the record's name.

    Raises:
        ConfigError: a file of curves, or the record beside it, can't be read.
    """
    found, name = results, "this run"
    for path in sorted((folder or places.committed_results_dir()).glob(f"{chapter}/*/{FILE}")):
        record = path.with_name(RECORD)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError("/".join(path.parts[-3:]), type(error).__name__, "readable JSON; delete it and "
                              "make the run again") from error
        if record.is_file() and claims.by_evidence([read(record)], scale=scale, **having) and (
                _seeds(kept) > _seeds(found)):
            found, name = kept, f"{chapter}/{path.parent.name}"
    return found, name


def _seeds(results: Sequence[Mapping]) -> int:
    return len({result["seed"] for result in results if result["curve"]})


def show(results: Sequence[Mapping], panels: Mapping[str, str], *, percent: Sequence[str] = ()) -> Html:
    """The learning curves of several metrics, or a sentence where no evaluation was made.

    Args:
        results: of :func:`explorl.arms.train_arms`.
        panels: metric → title of its panel; metrics without a value are left out.
        percent: those of the metrics that are shares, to be shown in percent.
    """
    curves = {metric: found for metric in panels if (found := points(results, metric))[1]}
    if not curves:
        return Html(f"<p>{escape(NO_CURVES)}</p>")
    return style.embed(grid(curves, panels, percent=percent))


def grid(curves: Mapping[str, tuple[np.ndarray, Mapping[str, np.ndarray]]], panels: Mapping[str, str], *,
         percent: Sequence[str] = ()) -> Figure:
    """Small panels, two in a row: mean over seeds in a 95 % t band, one colour per arm in all of them.

    Args:
        curves: metric → steps and curves, as :func:`points` gives them; at least one.
        panels: metric → title.
        percent: metrics that are shown in percent.
    """
    rows = (len(curves) + 1) // 2
    with style.look():
        fig, axes = style.canvas(7.2, 0.5 + 2.1 * rows, columns=2, rows=rows)
        handles: dict[str, object] = {}
        for axis, (metric, (steps, arms)) in zip(axes, curves.items()):
            scale = 100.0 if metric in percent else 1.0
            for index, (arm, values) in enumerate(arms.items()):
                handles[arm] = _line(axis, steps, scale * values, arm, index)
            axis.set_title(f"{panels[metric]} (%)" if metric in percent else panels[metric], fontsize=10)
            axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
            axis.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            style.tidy(axis)
        for spare in axes[len(curves):]:
            spare.set_axis_off()
        for axis in axes[max(0, len(curves) - 2):len(curves)]:
            axis.set_xlabel("optimiser steps")
        fig.get_layout_engine().set(h_pad=0.1, w_pad=0.1)
        fig.legend(list(handles.values()), [style.display_name(arm) for arm in handles], loc="outside upper left",
                   ncols=4, fontsize=9)
    told = "; ".join(f"{panels[metric]}: " + ", ".join(
        f"{style.display_name(arm)} from {np.nanmean(v[:, 0]):.3g} to {np.nanmean(v[:, -1]):.3g}"
        for arm, v in arms.items()) for metric, (_, arms) in curves.items())
    return style.describe(fig, f"Learning curves, mean over seeds. {told}.")


def _line(axis, steps: np.ndarray, values: np.ndarray, arm: str, index: int):
    """One arm in one panel; a lone seed has no band."""
    mean, low, high = (np.full(len(steps), np.nan) for _ in range(3))
    for column in range(len(steps)):
        seen = values[np.isfinite(values[:, column]), column]
        if len(seen):
            mean[column], low[column], high[column], _ = seed_interval(seen)
    paint = style.colour(arm, index)
    band = np.isfinite(low) & np.isfinite(high)
    axis.fill_between(steps, low, high, where=band, color=paint, alpha=0.16, linewidth=0)
    line, = axis.plot(steps, mean, color=paint, linestyle=style.dashes(arm),
                      marker="o" if len(steps) < 3 else None)
    return line
