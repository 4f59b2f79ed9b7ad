"""Which run speaks for a cell of a paper's table: its data set, its arm, the settings that its row names, its rival."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from explorl.params_model import CHAPTERS


class Stand(NamedTuple):
    """The arm of ours that measures a row of a paper.

    Attributes:
        arm: its name.
        ending: of the model's name, where the row is of another model than its table.
        settings: parameters and the values that the row names.
    """

    arm: str
    ending: str = ""
    settings: Mapping[str, object] = {}


TASK_OF_TABLE: Mapping[str, Mapping[str, str]] = {
    "sde2": {"1": "gsm8k", "2": "aime", "3": "medmcqa", "5": "gsm8k"},
    "empo": {"1A": "numina", "1B": "", "2": "natural", "3": "numina", "v3-3": "numina"},
    "imagine": {"1 GSM8K": "gsm8k", "1 Countdown-34": "countdown_34", "1 Countdown-4": "countdown_4", "2": "dapo_math",
                "3": "gsm8k", "4 Countdown-4": "countdown_4", "4 Countdown-34": "countdown_4", "6": "countdown_34",
                "7": "countdown_4", "9": "countdown_4", "10": "countdown_34", "11": "countdown_4"},
}
"""The data set that a table's arms are trained on; empty for a table that no run of ours speaks for (EMPO's 1B was
trained and graded by other code than 1A)."""
TESTED_ON: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "imagine": {"2": ("aime24",), "4 Countdown-4": ("countdown_4",), "4 Countdown-34": ("countdown_34",)},
}
"""Chapter → table → benchmarks that its runs are tested on; the chapter's other tables have their own test set."""
TOY_TABLES: Mapping[str, tuple[str, ...]] = {"sde2": ("1", "5"), "empo": ("1A",), "imagine": ("1 GSM8K",)}
"""Tables whose arms are also trained in the toy world; it stands in for no other data set."""
TOY_START: Mapping[str, str] = {"imagine": "habits"}
"""What the toy policy of a chapter starts from where it stands in for a paper's table; else ``right``."""
METRIC_OF_PAPER: Mapping[str, tuple[str, ...]] = {
    "acc": ("acc_strict", "acc"), "s_acc": ("s_acc",), "n_strategies": ("n_strategies", "STR"),
    "tokens": ("tokens", "TOK"), "acc_avg": ("acc_avg", "acc"),
    "pass_at_1": ("acc",), "avg_at_8": ("acc",), "avg_at_32": ("acc",),
}
"""The paper's metric → the names under which a record may hold it, best first."""
IN_TABLE: Mapping[str, Mapping[tuple[str, str], str]] = {
    "imagine": {("4 Countdown-4", "acc"): "acc_countdown_4", ("4 Countdown-34", "acc"): "acc_countdown_34"},
}
"""Chapter → (table, the paper's metric) → the record's, where a run is tested on several sets."""
STANDS_FOR: Mapping[str, Mapping[str, Stand]] = {
    "empo": {"instruct": Stand("base", "-Instruct")},
    "imagine": {f"{arm}_g{size}": Stand(arm, settings={"group_size": size})
                for arm in ("grpo", "imagine") for size in (2, 3, 4)}
    | {f"grpo_beta_{beta}": Stand("grpo", settings={"beta_kl": beta}) for beta in (0.001, 0.01)}
    | {f"grpo_temp_{heat}": Stand("grpo", settings={"rollout_temperature": heat}) for heat in (0.3, 0.6)},
}
"""A row of the paper that is no arm of ours → what measures it."""
PLAIN: Mapping[str, Mapping[str, object]] = {
    "imagine": {"group_size": 5, "beta_kl": 0.0, "rollout_temperature": 1.0, "alpha": 0.5, "decay_gamma": 40.0},
}
"""Settings that some of a chapter's tables and figures vary → their value in every row that doesn't name them."""
BACKBONES: Mapping[str, tuple[str, ...]] = {
    "Llama-3.1-8B-Instruct": ("llama-3.1-8b", "llama-3.2-3b"), "deepseek-7b": ("deepseek-llm-7b", "deepseek-7b"),
    "not stated": ("qwen2.5-3b", "qwen2.5-7b"),
}
"""Where a paper names one model in two ways, or none, either counts."""
ALIKE = ("task", "backbone", "steps", "prompts_per_step", "group_size", "learning_rate",
         "max_completion_tokens", "eval_problems", "eval_samples", "eval_tasks", "equality", "start")
"""Parameters that must agree before arms of two records are compared."""
ALIKE_TOO: Mapping[str, tuple[str, ...]] = {
    "imagine": ("alpha", "decay_gamma", "beta_kl", "rollout_temperature", "num_iterations", "loss_type", "template",
                "novelty_input", "novelty_scale", "minmax_scope", "center_bonus", "embedding", "pad", "novelty_order",
                "ppo_bonus", "gae_gamma", "gae_lambda", "eval_temperature"),
}
"""Further ones of a chapter. Not among them: what makes its arms differ, as IMAGINE's error mask does."""
REFERENCES: Mapping[str, Mapping[tuple[str, str], str]] = {
    "imagine": {("", "imagine"): "grpo", ("", "imagine_ppo"): "ppo", ("", "imagine_dapo"): "dapo",
                ("", "trajectory_aware"): "grpo", ("", "error_conditioned"): "trajectory_aware",
                ("10", "imagine"): "error_conditioned"}
    | {("", f"imagine_g{size}"): f"grpo_g{size}" for size in (2, 3, 4)},
}
"""Chapter → (table, or empty for any; row) → the row that it is claimed to beat; rows without one claim nothing.
A chapter that isn't here claims for each row that it beats the one just below."""


def stand(chapter: str, row: str) -> Stand:
    """What measures a row of a paper's table: itself, unless :data:`STANDS_FOR` knows better.

    >>> stand("imagine", "grpo_g2").arm, stand("imagine", "grpo")
    ('grpo', Stand(arm='grpo', ending='', settings={}))
    """
    return STANDS_FOR.get(chapter, {}).get(row, Stand(row))


def agree(params: Mapping[str, object], settings: Mapping[str, object]) -> bool:
    """Whether a run's parameters have these values."""
    return all(name in params and params[name] == value for name, value in settings.items())


def made_for(params: Mapping[str, object], chapter: str, table: str, row: str) -> bool:
    """Whether a run's parameters are those of a row: its data set, its benchmarks, and the settings that tables vary.

    Args:
        params: of a record, or of a parameter file (:func:`filled`).
        chapter, table, row: of the paper.
    """
    benchmarks = TESTED_ON.get(chapter, {}).get(table, ())
    tested = list(params.get("eval_tasks") or ())
    right_tests = chapter not in TESTED_ON or (set(benchmarks) <= set(tested) if benchmarks else not tested)
    settings = {**PLAIN.get(chapter, {}), **stand(chapter, row).settings}
    return params.get("task") == TASK_OF_TABLE.get(chapter, {}).get(table) and right_tests and agree(params, settings)


def filled(chapter: str, values: Mapping[str, object]) -> dict[str, object]:
    """A parameter file's values, and the defaults of what it leaves out."""
    known = CHAPTERS[chapter].model_fields if chapter in CHAPTERS else {}
    return {name: field.default for name, field in known.items() if not field.is_required()} | dict(values)


def in_table(chapter: str, table: str, metric: str) -> str:
    """The metric to look up in a record for a paper's metric in one of its tables."""
    return IN_TABLE.get(chapter, {}).get((table, metric), metric)


def reference(chapter: str, table: str, row: str) -> str | None:
    """The row that a row is claimed to beat, by the chapter's own list; None where it claims nothing."""
    own = REFERENCES.get(chapter, {})
    return own.get((table, row), own.get(("", row)))
