"""What happened during training: the arms' evaluations, put together over seeds and drawn as small panels."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

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
WINDOW, DIGITS = 5, 4
"""Steps behind a kept training value, and its significant digits."""
NO_CURVES = "No evaluation during training was asked for (eval_every = 0), so there is no curve to draw."
NOT_LOGGED = "No arm of this run logged what is shown here while it trained, so there is no curve to draw."
Kind = Literal["eval", "train"]


def points(results: Sequence[Mapping], metric: str, kind: Kind = "eval") -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A metric's values during training.

    Args:
        results: of :func:`explorl.arms.train_arms`, or of a file that :func:`save` wrote; arms that were not trained
            have no curve.
        metric: its name in the curve, such as ``acc_strict``.
        kind: ``eval`` for evaluations; ``train`` for what the trainer logged: every step of this run, means over
            windows (:data:`WINDOW`) from a file.

    Returns:
        Steps (points,), ascending, and arm → (seeds, points); NaN where a seed has no value there.

    >>> rows = [{"kind": "eval", "step": 0, "uniq": 1.0}, {"kind": "eval", "step": 5, "uniq": 2.0}]
    >>> steps, found = points([{"arm": "sde2", "seed": 0, "curve": rows}], "uniq")
    >>> steps.tolist(), found["sde2"].tolist()
    ([0, 5], [[1.0, 2.0]])
    """
    seen: dict[str, dict[int, dict[int, float]]] = {}
    for result in results:
        found = {row["step"]: row[metric] for row in _rows(result, kind) if _known(row.get(metric))}
        if found:
            seen.setdefault(result["arm"], {})[result["seed"]] = found
    steps = sorted({step for seeds in seen.values() for values in seeds.values() for step in values})
    curves = {arm: np.array([[values.get(step, np.nan) for step in steps] for values in seeds.values()])
              for arm, seeds in seen.items()}
    return np.array(steps, dtype=np.int64), curves


def _rows(result: Mapping, kind: Kind) -> list[Mapping]:
    """The rows of one kind; those of a file's training columns are put together again."""
    columns = result.get("train", {}) if kind == "train" else {}
    kept = [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]
    return [row for row in result["curve"] if row["kind"] == kind] + kept


def _known(value: object) -> bool:
    return value is not None and math.isfinite(value)


def save(results: Sequence[Mapping], folder: str | os.PathLike | None, train: Sequence[str] = ()) -> None:
    """Write the evaluations of a run beside its record, ``folder/curves.json``; does nothing without a folder.

    Args:
        results: of :func:`explorl.arms.train_arms`.
        folder: the record's.
        train: training metrics to keep as well, as means over :data:`WINDOW` steps to :data:`DIGITS` digits; an arm
            that has none of a name keeps nothing of it.
    """
    if folder:
        kept = [{"arm": r["arm"], "seed": r["seed"], "curve": _rows(r, "eval")} | _windows(_rows(r, "train"), train)
                for r in results]
        text = ",\n".join(json.dumps(entry, allow_nan=False, separators=(",", ":")) for entry in kept)
        write_atomic(Path(folder) / FILE, f"[{text}]\n")


def _windows(rows: Sequence[Mapping], names: Sequence[str]) -> dict[str, dict[str, list]]:
    """Columns of means, one entry per window at the last of its steps; None where no step of it has a value."""
    windows: dict[int, list[Mapping]] = {}
    for row in rows:
        windows.setdefault((row["step"] - 1) // WINDOW, []).append(row)
    columns = {name: [_mean([row.get(name) for row in windows[i]]) for i in sorted(windows)] for name in names}
    columns = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    steps = [max(row["step"] for row in windows[i]) for i in sorted(windows)]
    return {"train": {"step": steps} | columns} if columns else {}


def _mean(values: Sequence[object]) -> float | None:
    """Of those that are finite, to :data:`DIGITS` significant digits; None without one."""
    found = [value for value in values if _known(value)]
    return float(f"{np.mean(found):.{DIGITS}g}") if found else None


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
    return len({result["seed"] for result in results if result["curve"] or result.get("train")})


def show(results: Sequence[Mapping], panels: Mapping[str, str], *, percent: Sequence[str] = (),
         kind: Kind = "eval") -> Html:
    """The learning curves of several metrics, or a sentence where nothing was measured.

    Args:
        results: of :func:`explorl.arms.train_arms`.
        panels: metric → title of its panel; metrics without a value are left out.
        percent: those of the metrics that are shares, to be shown in percent.
        kind: as for :func:`points`.
    """
    curves = {metric: found for metric in panels if (found := points(results, metric, kind))[1]}
    if not curves:
        return Html(f"<p>{escape(NO_CURVES if kind == 'eval' else NOT_LOGGED)}</p>")
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
    told = "; ".join(f"{panels[metric]}: " + ", ".join(_told(arm, values) for arm, values in arms.items())
                     for metric, (_, arms) in curves.items())
    return style.describe(fig, f"Learning curves, mean over seeds. {told}.")


def _told(arm: str, values: np.ndarray) -> str:
    """From the first point at which the arm has a value to the last."""
    columns = np.flatnonzero(np.isfinite(values).any(axis=0))
    first, last = (np.nanmean(values[:, column]) for column in columns[[0, -1]])
    return f"{style.display_name(arm)} from {first:.3g} to {last:.3g}"


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
