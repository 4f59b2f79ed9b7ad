"""Data sets as problems: question, reference answer, key. One module each, the mathematics benchmarks in one; this
page picks by name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key

__all__ = ["DATA_SETS", "EVALUATION", "TASKS", "Problem", "Split", "canonical_key", "evaluation", "fetch", "grader",
           "module", "split_by_key", "splits"]

BENCHMARKS = ("math500", "amc23", "aime24", "minerva", "olympiad")
DATA_SETS = ("gsm8k", "aime", "medmcqa", "numina", "natural", *BENCHMARKS, "mmlu_pro", "gpqa", "countdown",
             "dapo_math")
TASKS = ("digits", *DATA_SETS)
EVALUATION = tuple(task for task in DATA_SETS if task not in ("numina", "natural", "countdown", "dapo_math"))
"""Data sets that have a part to test on and one gold answer to compare with."""


def module(task: str) -> ModuleType:
    """The module of a task.

    Raises:
        ConfigError: unknown task.

    >>> module("gsm8k").__name__, module("amc23").__name__
    ('explorl.tasks.gsm8k', 'explorl.tasks.math_benchmarks')
    """
    if task not in TASKS:
        raise ConfigError("task", task, f"one of {', '.join(TASKS)}")
    return importlib.import_module(f"explorl.tasks.{'math_benchmarks' if task in BENCHMARKS else task}")


def grader(task: str) -> str:
    """The equality that decides whether an answer of this task is right, by its name in ``text.equivalence``.

    >>> grader("minerva"), grader("mmlu_pro"), grader("natural"), grader("gsm8k")
    ('math', 'choice', 'verifier', 'numeric')
    """
    return getattr(module(task), "GRADER", "choice" if task == "medmcqa" else "numeric")


def splits(task: str, **options) -> Split:
    """Train, select and test of a task. A benchmark has only a test part, a training set none.

    Args:
        task: one of :data:`TASKS`.
        options: those of the task's own ``splits``, or of ``load`` for digits.
    """
    chosen = module(task)
    if task in BENCHMARKS:
        return chosen.splits(task, **options)
    return chosen.load(**options) if task == "digits" else chosen.splits(**options)


def evaluation(names: Sequence[str], **options) -> list[Problem]:
    """The test parts of several tasks, one after another; ``meta["task"]`` tells them apart.

    A question that stands in two of them is asked twice, once for each.

    Args:
        names: of :data:`EVALUATION`, each once.
        options: those of ``splits``, such as ``data_dir``.

    Raises:
        ConfigError: a name that is not of these, or given twice; or data not available.
    """
    for name in names:
        if name not in EVALUATION or list(names).count(name) > 1:
            raise ConfigError("eval_tasks", name, f"one of {', '.join(EVALUATION)}, each once")
    return [problem for name in names for problem in splits(name, **options).test]


def fetch(task: str) -> int:
    """Download a data set into the hub's cache, so that it can be read offline; returns the number of rows.

    Raises:
        ConfigError: not a data set of the hub, or the hub cannot be reached.
    """
    from explorl.tasks.source import table

    if task not in DATA_SETS:
        raise ConfigError("task", task, f"one of {', '.join(DATA_SETS)}")
    chosen = module(task)
    sources = {name: source for name, source in chosen.SOURCES.items() if source.task == task}
    return sum(len(table(sources[name])) for name in getattr(chosen, "FETCHED", sources))
