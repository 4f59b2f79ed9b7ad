"""AIME 1983–2025: competition problems with integer answers, split 80:20 (SD-E² §4.1: 963 → 770 and 193).

The paper names no source. We read ``gneubig/aime-1983-2024`` (933 rows; the 2024 I paper is not among them)
and ``MathArena/aime_2025`` (30 rows): 963 together, the paper's count. Whether the authors used these files
is not known, and the paper's split seed is not given, so our test part is not theirs.

Local files: ``aime_1983_2024.jsonl`` (``Question``, ``Answer``, ``Year``) and ``aime_2025.jsonl``
(``problem``, ``answer``); either naming is read in both.
"""

from __future__ import annotations

import os

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key
from explorl.tasks.source import Row, Source, rows, text_field

SPLIT_SEED = 0
SOURCES = {
    "1983-2024": Source(
        "aime", "aime_1983_2024.jsonl", "gneubig/aime-1983-2024",
        "5d610df981dec508dd93d0a16333a029ac1739d8", "train",
    ),
    "2025": Source(
        "aime", "aime_2025.jsonl", "MathArena/aime_2025",
        "c94da77eb22bbd6439e62a323bec18493a421302", "train",
    ),
}


def load(split: str, *, limit: int | None = None, data_dir: str | os.PathLike | None = None) -> list[Problem]:
    """The problems of one part of our seeded 80:20 split, or all of them.

    Args:
        split: ``train``, ``test`` or ``all``.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown split, data not available, or a malformed row (with its number).
    """
    if split not in ("train", "test", "all"):
        raise ConfigError("split", split, "one of train, test, all")
    problems = _everything(data_dir)
    if split != "all":
        problems = list(getattr(split_by_key(problems, (0.8, 0.0, 0.2), SPLIT_SEED), split))
    return problems[:limit]


def splits(*, select: float = 0.05, seed: int = 0, data_dir: str | os.PathLike | None = None) -> Split:
    """Train, select, test; the test part is that of :func:`load`, ``select`` is a share of its train part.

    Args:
        select: share of the training questions set aside for choosing settings, in [0, 1).
        seed: of that choice.
        data_dir: as in :func:`load`.
    """
    outer = split_by_key(_everything(data_dir), (0.8, 0.0, 0.2), SPLIT_SEED)
    inner = split_by_key(outer.train, (1.0 - select, select, 0.0), seed)
    return Split(inner.train, inner.select, outer.test)


def _everything(data_dir: str | os.PathLike | None) -> list[Problem]:
    return [
        _problem(row, years, f"{source.file}, row {i}")
        for years, source in SOURCES.items()
        for i, row in enumerate(rows(source, data_dir), start=1)
    ]


def _problem(row: Row, years: str, where: str) -> Problem:
    question = text_field(row, ("Question", "problem"), where)
    gold = text_field(row, ("Answer", "answer"), where)
    if not (gold.isascii() and gold.isdigit() and int(gold) <= 999):
        raise ConfigError(f"{where}, Answer", gold, "an integer from 0 to 999")
    year = str(row.get("Year") or years)
    return Problem(question, gold, canonical_key(question), {"task": "aime", "year": year})
