"""Paper against record: which record speaks for a row of a paper's table, and what it says about the claim.

The claim of a row is that its arm beats the baseline that the chapter names for it, else the arm that the same
table ranks just below it. The verdict is one of four, and no other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from explorl.errors import ConfigError
from explorl.report import paper_rows
from explorl.report.paper_rows import (ALIKE, ALIKE_TOO, BACKBONES, METRIC_OF_PAPER, REFERENCES, TASK_OF_TABLE,
                                       TOY_START, TOY_TABLES, stand)
from explorl.report.records import MetricRow, Record
from explorl.report.stats import Estimate, seed_interval

__all__ = ["FULL_SCALES", "TASK_OF_TABLE", "TOY_TABLES", "VERDICTS", "command", "difference", "find", "full_record",
           "reference_arm", "setting", "toy_record", "verdict"]

VERDICTS = ("holds at our scale", "direction only", "not seen", "not tested")
FULL_SCALES = ("t4_paper", "t4")


def verdict(difference: Estimate | None) -> str:
    """One of :data:`VERDICTS` for a measured difference whose sign the paper says is positive.

    >>> verdict(Estimate(0.02, 0.01, 0.03, 5)), verdict(Estimate(0.02, -0.01, 0.05, 5)), verdict(None)
    ('holds at our scale', 'direction only', 'not tested')
    """
    if difference is None or not math.isfinite(difference.value):
        return VERDICTS[3]
    if difference.low > 0:
        return VERDICTS[0]
    return VERDICTS[1] if difference.value > 0 else VERDICTS[2]


def find(record: Record | None, arm: str, metric: str) -> MetricRow | None:
    """The record's row for an arm and a metric, in the paper's or the record's name; None without one."""
    if record is None or not _holds(record, arm):
        return None
    arm, tested = stand(record.chapter, arm).arm, record.params.get("eval_tasks") or ()
    alone = ("acc",) if [metric] == [f"acc_{task}" for task in tested] else ()
    for name in (*METRIC_OF_PAPER.get(metric, (metric,)), *alone):
        for row in record.metrics:
            if (row.arm, row.metric) == (arm, name) and row.value is not None:
                return row
    return None


def _holds(record: Record, row: str | None) -> bool:
    """Whether a record has the arm of a paper's row, on the model and with the settings that the row names."""
    if row is None:
        return False
    arm, ending, settings = stand(record.chapter, row)
    fits = ending.casefold() in str(record.params.get("backbone", "")).casefold()
    return fits and paper_rows.agree(record.params, settings) and any(found.arm == arm for found in record.metrics)


def difference(record: Record | None, arm: str, reference: str, metric: str, others: Sequence[Record] = ()
               ) -> Estimate | None:
    """How much better an arm is than another, in the unit of the record.

    The reference is taken from the same record, else from the first of ``others`` that was made alike
    (:func:`setting`): a paper's table may be filled one run per cell. With two or more common seeds: mean of
    the per-seed differences with its t interval. With one seed: Newcombe's interval of two proportions, where
    there are counts; else a value without an interval.
    """
    a = find(record, arm, metric)
    found = (find(r, reference, metric) for r in [record, *others] if r and setting(r) == setting(record))
    b = next((row for row in found if row), None)
    if a is None or b is None:
        return None
    left, right = ({s.seed: s.value for s in row.seeds if s.value is not None} for row in (a, b))
    gaps = [left[seed] - right[seed] for seed in left if seed in right]
    if len(gaps) >= 2:
        return seed_interval(gaps)
    if a.pooled and b.pooled:
        return _newcombe(a, b)
    return Estimate(a.value - b.value, -math.inf, math.inf, len(gaps))


def setting(record: Record, ignoring: Sequence[str] = ()) -> tuple:
    """What must agree before arms of two records are compared: chapter, scale, and the parameters made alike.

    Args:
        record: any.
        ignoring: parameters that may differ, because they are what is varied.
    """
    names = [name for name in (*ALIKE, *ALIKE_TOO.get(record.chapter, ())) if name not in ignoring]
    return record.chapter, record.scale, *(repr(record.params.get(name)) for name in names)


def _newcombe(a: MetricRow, b: MetricRow) -> Estimate:
    p, q = a.pooled.k / a.pooled.n, b.pooled.k / b.pooled.n
    down = math.hypot(p - a.pooled.low, b.pooled.high - q)
    up = math.hypot(a.pooled.high - p, q - b.pooled.low)
    return Estimate(p - q, p - q - down, p - q + up, 1)


def reference_arm(paper: pd.DataFrame, table: str, model: str, arm: str, metric: str, chapter: str = ""
                  ) -> str | None:
    """The arm that this one is claimed to beat; None for missing values.

    In a chapter of :data:`explorl.report.paper_rows.REFERENCES` the arm's own baseline, in others the arm ranked just
    below it in the paper's table, if there is one.
    """
    rows = paper[(paper.table == table) & (paper.model == model) & (paper.metric == metric)]
    rows = rows[rows.value.notna()]
    own = rows[rows.row == arm]
    if own.empty:
        return None
    if chapter in REFERENCES:
        named = paper_rows.reference(chapter, table, arm)
        return named if named in set(rows.row) else None
    below = rows[rows.value < own.value.iloc[0]].sort_values("value")
    return None if below.empty else str(below.row.iloc[-1])


def full_record(records: Sequence[Record], chapter: str, table: str, model: str, arm: str,
                reference: str | None) -> Record | None:
    """The run at the paper's model and data that holds this arm; better scale, then more seeds, first."""
    model += stand(chapter, arm).ending
    fit = [r for r in records if r.chapter == chapter and r.scale in FULL_SCALES
           and _is_model(str(r.params.get("backbone", "")), model)
           and paper_rows.made_for(r.params, chapter, table, arm)]
    return _best(fit, arm, reference)


def toy_record(records: Sequence[Record], chapter: str, table: str, arm: str, reference: str | None
               ) -> Record | None:
    """The toy run that holds this arm (and its reference, if one does), with the most seeds.

    A run whose policy starts elsewhere than the chapter's (:data:`explorl.report.paper_rows.TOY_START`; wrong, say) is
    no stand-in for a paper's table. Of runs that are equal otherwise, the one with more arms speaks.
    """
    if table not in TOY_TABLES.get(chapter, ()):
        return None
    toys, start = [r for r in records if r.chapter == chapter and r.scale == "toy"], TOY_START.get(chapter, "right")
    return _best([r for r in toys if r.params.get("start", start) == start], arm, reference)


def _best(records: Sequence[Record], arm: str, reference: str | None) -> Record | None:
    def worth(record: Record) -> tuple:
        name = stand(record.chapter, arm).arm
        seeds = max(len(row.seeds) for row in record.metrics if row.arm == name)
        return (_holds(record, reference), record.scale == FULL_SCALES[0], seeds,
                len({row.arm for row in record.metrics}), record.created)

    return max((r for r in records if _holds(r, arm)), key=worth, default=None)


def _is_model(backbone: str, model: str) -> bool:
    """Whether a backbone is the paper's model; a tuned model is not its base, nor the other way round."""
    tuned = ["instruct" in name.casefold() for name in (backbone, model)]
    return tuned[0] == tuned[1] and any(n in backbone.casefold() for n in BACKBONES.get(model, (model.casefold(),)))


def command(params_dir: Path, chapter: str, table: str, model: str, arm: str) -> str | None:
    """The command that would make the missing run, read off the parameter files; None without a file for it.

    Raises:
        ConfigError: a parameter file is not a mapping.
    """
    named, ending, _ = stand(chapter, arm)
    prefix, found = f"table{table.split()[0]}_", []
    for path in sorted((params_dir / chapter).glob("**/*.yaml")):
        values = _values(path, path.stat().st_mtime_ns)
        if (values.get("scale") in FULL_SCALES and named in values.get("arms", ())
                and paper_rows.made_for(paper_rows.filled(chapter, values), chapter, table, arm)
                and _is_model(str(values.get("backbone", "")), model + ending)):
            found.append((not path.stem.startswith(prefix), FULL_SCALES.index(values["scale"]), len(values["arms"]),
                          path.relative_to(params_dir).as_posix()))
    return f"python -m explorl run params/{min(found)[-1]}" if found else None


@functools.lru_cache(maxsize=1024)
def _values(path: Path, changed_ns: int) -> Mapping[str, object]:
    """A parameter file, read once for all cells of a table; ``changed_ns`` tells a new content from the old."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise ConfigError(path.name, type(values).__name__, "a mapping of parameter names to values")
    return values
