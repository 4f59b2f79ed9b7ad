"""Paper against record: which record speaks for a row of a paper's table, and what it says about the claim.

The claim of a row is that its arm beats the arm that the same table ranks just below it. The verdict is one
of four, and no other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import yaml

from explorl.errors import ConfigError
from explorl.report.records import MetricRow, Record
from explorl.report.stats import Estimate, seed_interval

VERDICTS = ("holds at our scale", "direction only", "not seen", "not tested")
FULL_SCALES = ("t4_paper", "t4")

TASK_OF_TABLE: Mapping[str, Mapping[str, str]] = {
    "sde2": {"1": "gsm8k", "2": "aime", "3": "medmcqa", "5": "gsm8k"},
    "empo": {"1A": "numina", "1B": "", "2": "natural", "3": "numina", "v3-3": "numina"},
}
"""The data set that a table's arms are trained on; empty for a table that no run of ours speaks for (EMPO's 1B was
trained and graded by other code than 1A)."""
TOY_TABLES: Mapping[str, tuple[str, ...]] = {"sde2": ("1", "5"), "empo": ("1A",)}
"""Tables whose arms are also trained in the toy world; it stands in for no other data set."""
METRIC_OF_PAPER: Mapping[str, tuple[str, ...]] = {
    "acc": ("acc_strict", "acc"), "s_acc": ("s_acc",), "n_strategies": ("n_strategies", "STR"),
    "tokens": ("tokens", "TOK"), "acc_avg": ("acc_avg", "acc"),
}
"""The paper's metric → the names under which a record may hold it, best first."""
STANDS_FOR: Mapping[str, Mapping[str, tuple[str, str]]] = {"empo": {"instruct": ("base", "-Instruct")}}
"""A row of the paper that is no arm of ours → the arm that measures it, on the model with this ending."""
BACKBONES: Mapping[str, tuple[str, ...]] = {"Llama-3.1-8B-Instruct": ("llama-3.1-8b", "llama-3.2-3b")}
"""Where a paper names one model in two ways, either counts."""
ALIKE = ("task", "backbone", "steps", "prompts_per_step", "group_size", "learning_rate",
         "max_completion_tokens", "eval_problems", "eval_samples", "eval_tasks", "equality", "start")
"""Parameters that must agree before arms of two records are compared."""


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
    if record is None:
        return None
    arm, ending = _stands_for(record.chapter, arm)
    if ending.casefold() not in str(record.params.get("backbone", "")).casefold():
        return None
    for name in METRIC_OF_PAPER.get(metric, (metric,)):
        for row in record.metrics:
            if (row.arm, row.metric) == (arm, name) and row.value is not None:
                return row
    return None


def difference(record: Record | None, arm: str, reference: str, metric: str, others: Sequence[Record] = ()
               ) -> Estimate | None:
    """How much better an arm is than another, in the unit of the record.

    The reference is taken from the same record, else from the first of ``others`` that was made alike
    (:data:`ALIKE`): a paper's table may be filled one run per cell. With two or more common seeds: mean of
    the per-seed differences with its t interval. With one seed: Newcombe's interval of two proportions, where
    there are counts; else a value without an interval.
    """
    a = find(record, arm, metric)
    found = (find(r, reference, metric) for r in [record, *others] if r and _setting(r) == _setting(record))
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


def _setting(record: Record) -> tuple:
    return record.chapter, record.scale, *(repr(record.params.get(name)) for name in ALIKE)


def _newcombe(a: MetricRow, b: MetricRow) -> Estimate:
    p, q = a.pooled.k / a.pooled.n, b.pooled.k / b.pooled.n
    down = math.hypot(p - a.pooled.low, b.pooled.high - q)
    up = math.hypot(a.pooled.high - p, q - b.pooled.low)
    return Estimate(p - q, p - q - down, p - q + up, 1)


def reference_arm(paper: pd.DataFrame, table: str, model: str, arm: str, metric: str) -> str | None:
    """The arm ranked just below this one in the paper's table; None for the lowest and for missing values."""
    rows = paper[(paper.table == table) & (paper.model == model) & (paper.metric == metric)]
    rows = rows[rows.value.notna()]
    own = rows[rows.row == arm]
    if own.empty:
        return None
    below = rows[rows.value < own.value.iloc[0]].sort_values("value")
    return None if below.empty else str(below.row.iloc[-1])


def full_record(records: Sequence[Record], chapter: str, table: str, model: str, arm: str,
                reference: str | None) -> Record | None:
    """The run at the paper's model and data that holds this arm; better scale, then more seeds, first."""
    task = TASK_OF_TABLE.get(chapter, {}).get(table)
    arm, ending = _stands_for(chapter, arm)
    model += ending
    fit = [r for r in records if r.chapter == chapter and r.scale in FULL_SCALES
           and r.params.get("task") == task and _is_model(str(r.params.get("backbone", "")), model)]
    return _best(fit, arm, reference)


def toy_record(records: Sequence[Record], chapter: str, table: str, arm: str, reference: str | None
               ) -> Record | None:
    """The toy run that holds this arm (and its reference, if one does), with the most seeds.

    A run whose policy starts out wrong is no stand-in for a paper's table.
    """
    if table not in TOY_TABLES.get(chapter, ()):
        return None
    toys = [r for r in records if r.chapter == chapter and r.scale == "toy"]
    return _best([r for r in toys if r.params.get("start", "right") == "right"], arm, reference)


def _best(records: Sequence[Record], arm: str, reference: str | None) -> Record | None:
    def worth(record: Record) -> tuple:
        arms = {row.arm for row in record.metrics}
        seeds = max(len(row.seeds) for row in record.metrics if row.arm == arm)
        return reference in arms, record.scale == FULL_SCALES[0], seeds, record.created

    holding = [r for r in records if any(row.arm == arm for row in r.metrics)]
    return max(holding, key=worth, default=None)


def _stands_for(chapter: str, row: str) -> tuple[str, str]:
    return STANDS_FOR.get(chapter, {}).get(row, (row, ""))


def _is_model(backbone: str, model: str) -> bool:
    """Whether a backbone is the paper's model; a tuned model is not its base, nor the other way round."""
    tuned = ["instruct" in name.casefold() for name in (backbone, model)]
    return tuned[0] == tuned[1] and any(n in backbone.casefold() for n in BACKBONES.get(model, (model.casefold(),)))


def command(params_dir: Path, chapter: str, table: str, model: str, arm: str) -> str | None:
    """The command that would make the missing run, read off the parameter files; None without a file for it.

    Raises:
        ConfigError: a parameter file is not a mapping.
    """
    task, found = TASK_OF_TABLE.get(chapter, {}).get(table), []
    arm, ending = _stands_for(chapter, arm)
    for path in sorted((params_dir / chapter).glob("**/*.yaml")):
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ConfigError(path.name, type(values).__name__, "a mapping of parameter names to values")
        if (values.get("scale") in FULL_SCALES and values.get("task") == task
                and arm in values.get("arms", ()) and _is_model(str(values.get("backbone", "")), model + ending)):
            named = path.stem.startswith((f"table{table}", f"table_{table}", f"t{table}_"))
            found.append((not named, FULL_SCALES.index(values["scale"]), len(values["arms"]),
                          path.relative_to(params_dir).as_posix()))
    return f"python -m explorl run params/{min(found)[-1]}" if found else None
