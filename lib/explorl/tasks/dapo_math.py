"""DAPO-Math-17k: competition problems with whole-number answers, to train on; IMAGINE tests such runs on AIME 2024.

Hub id ``open-r1/DAPO-Math-17k-Processed`` (at ``main``: its commits could not be established), configuration ``en``;
local file ``dapo_math.jsonl`` with its fields ``prompt`` (the question alone) and ``solution`` (the answer alone). The
published code read all of the set; the English part is ours to choose. It has no test part: give the run
``eval_tasks: [aime24]``, and questions of that test are left out of training.

Prompt: ``answer`` of :mod:`explorl.tasks.plain`. Scorer: form ``answer`` of :mod:`explorl.text.marked`.
"""

from __future__ import annotations

import os

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key
from explorl.tasks.source import Row, Source, rows, text_field

SOURCES = {
    "train": Source("dapo_math", "dapo_math.jsonl", "open-r1/DAPO-Math-17k-Processed", "main", "train", config="en"),
}


def load(split: str = "train", *, limit: int | None = None, data_dir: str | os.PathLike | None = None
         ) -> list[Problem]:
    """The problems, in their published order.

    Args:
        split: ``train``, the only one.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown split, data not available, or a malformed row (with its number).
    """
    if split != "train":
        raise ConfigError("split", split, "train: this set has no other")
    source = SOURCES["train"]
    return [_problem(row, f"{source.file}, row {i}") for i, row in enumerate(rows(source, data_dir)[:limit], start=1)]


def splits(*, select: float = 0.02, seed: int = 0, data_dir: str | os.PathLike | None = None) -> Split:
    """Train and select; the test part is empty.

    Args:
        select: share of the questions set aside for choosing settings, in [0, 1).
        seed: of that choice.
        data_dir: as in :func:`load`.
    """
    return split_by_key(load(data_dir=data_dir), (1.0 - select, select, 0.0), seed)


def _problem(row: Row, where: str) -> Problem:
    question, gold = text_field(row, ("prompt",), where), text_field(row, ("solution",), where)
    return Problem(question, gold, canonical_key(question), {"task": "dapo_math"})
