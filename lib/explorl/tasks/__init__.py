"""Data sets as problems: question, reference answer, key. One module each; this page picks by name."""

from __future__ import annotations

import importlib
from types import ModuleType

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key

__all__ = ["DATA_SETS", "TASKS", "Problem", "Split", "canonical_key", "fetch", "module", "split_by_key",
           "splits"]

TASKS = ("digits", "gsm8k", "aime", "medmcqa")
DATA_SETS = ("gsm8k", "aime", "medmcqa")


def module(task: str) -> ModuleType:
    """The module of a task.

    Raises:
        ConfigError: unknown task.

    >>> module("gsm8k").__name__
    'explorl.tasks.gsm8k'
    """
    if task not in TASKS:
        raise ConfigError("task", task, f"one of {', '.join(TASKS)}")
    return importlib.import_module(f"explorl.tasks.{task}")


def splits(task: str, **options) -> Split:
    """Train, select and test of a task.

    Args:
        task: one of :data:`TASKS`.
        options: those of the task's own ``splits``, or of ``load`` for digits.
    """
    chosen = module(task)
    return chosen.load(**options) if task == "digits" else chosen.splits(**options)


def fetch(task: str) -> int:
    """Download a data set into the hub's cache, so that it can be read offline; returns the number of rows.

    Raises:
        ConfigError: not a data set of the hub, or the hub cannot be reached.
    """
    from explorl.tasks.source import from_hub

    if task not in DATA_SETS:
        raise ConfigError("task", task, f"one of {', '.join(DATA_SETS)}")
    return sum(len(from_hub(source)) for source in module(task).SOURCES.values())
