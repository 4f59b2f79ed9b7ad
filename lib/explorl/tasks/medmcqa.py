"""MedMCQA: medical questions with four options (SD-E² §4.1: 7,500 random training rows, 4,183 to validate).

Hub id ``openlifescienceai/medmcqa``; local files ``medmcqa_train.jsonl`` and ``medmcqa_validation.jsonl``
with the hub's fields: ``question``, ``opa`` … ``opd`` and ``cop``, the right option from 0 to 3. The paper's
sampling seed is not given, so our 7,500 are not theirs. The options stand in the prompt; gold is a letter.
"""

from __future__ import annotations

import os
import random

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key, without
from explorl.tasks.source import Row, Source, rows, text_field

REVISION = "91c6572c454088bf71b679ad90aa8dffcd0d5868"
SOURCES = {
    split: Source("medmcqa", f"medmcqa_{split}.jsonl", "openlifescienceai/medmcqa", REVISION, split)
    for split in ("train", "validation")
}
TRAIN_SAMPLE = 7500
LETTERS = "ABCD"


def load(
    split: str, *, limit: int | None = None, data_dir: str | os.PathLike | None = None, seed: int = 0
) -> list[Problem]:
    """The problems of one split: a random 7,500 of train (all, where there are fewer), or all of validation.

    Args:
        split: ``train``, ``validation``, or ``test``, which means validation: the test answers are hidden.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.
        seed: of the sample from train.

    Raises:
        ConfigError: unknown split, data not available, or a malformed row (with its number).
    """
    split = "validation" if split == "test" else split
    if split not in SOURCES:
        raise ConfigError("split", split, "one of train, validation, test")
    table = rows(SOURCES[split], data_dir)
    chosen = range(len(table))
    if split == "train" and len(table) > TRAIN_SAMPLE:
        chosen = random.Random(seed).sample(chosen, TRAIN_SAMPLE)
    return [_problem(table[i], f"{SOURCES[split].file}, row {i + 1}") for i in list(chosen)[:limit]]


def splits(*, select: float = 0.05, seed: int = 0, data_dir: str | os.PathLike | None = None) -> Split:
    """Train, select, test (= validation); ``select`` is a seeded share of the 7,500.

    Args:
        select: share of the training questions set aside for choosing settings, in [0, 1).
        seed: of that choice and of the sample.
        data_dir: as in :func:`load`.
    """
    test = load("validation", data_dir=data_dir)
    train = without(load("train", data_dir=data_dir, seed=seed), test)
    dealt = split_by_key(train, (1.0 - select, select, 0.0), seed)
    return Split(dealt.train, dealt.select, tuple(test))


def _problem(row: Row, where: str) -> Problem:
    stem = text_field(row, ("question",), where)
    options = [text_field(row, (name,), where) for name in ("opa", "opb", "opc", "opd")]
    right = row.get("cop")
    if isinstance(right, bool) or right not in (0, 1, 2, 3):
        raise ConfigError(f"{where}, cop", right, "0, 1, 2 or 3")
    prompt = "\n".join([stem, *(f"{letter}. {option}" for letter, option in zip(LETTERS, options))])
    meta = {"task": "medmcqa", "options": tuple(options), "subject": row.get("subject_name")}
    return Problem(prompt, LETTERS[int(right)], canonical_key(prompt), meta)
