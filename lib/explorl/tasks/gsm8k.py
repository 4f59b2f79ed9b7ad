"""GSM8K: grade-school word problems, 7,473 to train on and 1,319 to test on (SD-E² §4.1).

Hub id ``openai/gsm8k``, configuration ``main``; local files ``gsm8k_train.jsonl`` and ``gsm8k_test.jsonl``
with the same fields, ``question`` and ``answer``. The reference answer follows ``####``.
"""

from __future__ import annotations

import os

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key, without
from explorl.tasks.source import Row, Source, rows, text_field

REVISION = "740312add88f781978c0658806c59bc2815b9866"
SOURCES = {
    split: Source("gsm8k", f"gsm8k_{split}.jsonl", "openai/gsm8k", REVISION, split, config="main")
    for split in ("train", "test")
}


def load(split: str, *, limit: int | None = None, data_dir: str | os.PathLike | None = None) -> list[Problem]:
    """The problems of one published split, in their published order.

    Args:
        split: ``train`` or ``test``.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown split, data not available, or a malformed row (with its number).
    """
    if split not in SOURCES:
        raise ConfigError("split", split, f"one of {', '.join(SOURCES)}")
    table = rows(SOURCES[split], data_dir)[:limit]
    return [_problem(row, f"{SOURCES[split].file}, row {i}") for i, row in enumerate(table, start=1)]


def splits(*, select: float = 0.05, seed: int = 0, data_dir: str | os.PathLike | None = None) -> Split:
    """Train, select, test; ``select`` is a seeded share of train, since the paper does not say what its
    development split was.

    Args:
        select: share of the training questions set aside for choosing settings, in [0, 1).
        seed: of that choice.
        data_dir: as in :func:`load`.
    """
    test = load("test", data_dir=data_dir)
    train = without(load("train", data_dir=data_dir), test)
    dealt = split_by_key(train, (1.0 - select, select, 0.0), seed)
    return Split(dealt.train, dealt.select, tuple(test))


def _problem(row: Row, where: str) -> Problem:
    question = text_field(row, ("question",), where)
    solution, mark, gold = text_field(row, ("answer",), where).rpartition("####")
    if not mark or not gold.strip():
        end = (solution + mark + gold)[-40:]
        raise ConfigError(f"{where}, answer", end, "a solution that ends in '#### number'")
    meta = {"task": "gsm8k", "solution": solution.strip()}
    return Problem(question, gold.strip(), canonical_key(question), meta)
