"""A problem, and splits that never share one."""

from __future__ import annotations

import hashlib
import math
import random
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorl.errors import ConfigError


@dataclass(frozen=True)
class Problem:
    """One question with its reference answer.

    Attributes:
        prompt: the question alone, without instructions or chat template.
        gold: the reference answer, as published (a string, never a number).
        key: identifies the question whatever its spacing and case; see :func:`canonical_key`.
        meta: facts about the row: always ``task``, and what the data set adds.
    """

    prompt: str
    gold: str
    key: str
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Split:
    """Three lists without a shared key: to train on, to choose settings with, and to report once."""

    train: tuple[Problem, ...]
    select: tuple[Problem, ...]
    test: tuple[Problem, ...]

    def __post_init__(self):
        seen: dict[str, str] = {}
        for name in ("train", "select", "test"):
            for problem in getattr(self, name):
                other = seen.setdefault(problem.key, name)
                if other != name:
                    raise ConfigError("split", problem.prompt[:60], f"in one part, not in {other} and {name}")

    def tested_on(self, problems: Sequence[Problem]) -> Split:
        """The same split with another test part; questions of the other parts that are among it are left out."""
        return Split(tuple(without(self.train, problems)), tuple(without(self.select, problems)), tuple(problems))


def canonical_key(question: str) -> str:
    """16 hexadecimal digits that two spellings of the same question share.

    Unicode compatibility forms, case, spacing and punctuation at the ends do not count.

    >>> canonical_key("What is  2 + 2?") == canonical_key("what is 2 + 2")
    True
    """
    text = unicodedata.normalize("NFKC", question).casefold()
    text = re.sub(r"\s+", " ", text).strip(" .?!:")
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def split_by_key(problems: Sequence[Problem], fractions: Sequence[float], seed: int) -> Split:
    """Deal problems into train, select and test so that every copy of a question lands in one part.

    The deal depends on the set of keys and the seed, not on the order of ``problems``; within a part
    the order of ``problems`` is kept.

    Args:
        problems: any number of problems, copies allowed.
        fractions: three shares of the distinct keys, each in [0, 1], that sum to 1.
        seed: any integer.

    Raises:
        ConfigError: ``fractions`` is not three shares that sum to 1.

    >>> ten = [Problem(f"{i}?", "0", canonical_key(f"{i}?")) for i in range(10)]
    >>> [len(part) for part in vars(split_by_key(ten, (0.8, 0.0, 0.2), seed=1)).values()]
    [8, 0, 2]
    """
    allowed = "three shares in [0, 1] that sum to 1"
    if len(fractions) != 3 or not all(0 <= share <= 1 for share in fractions):
        raise ConfigError("fractions", fractions, allowed)
    if not math.isclose(sum(fractions), 1.0, abs_tol=1e-9):
        raise ConfigError("fractions", fractions, allowed)
    keys = sorted({problem.key for problem in problems})
    random.Random(seed).shuffle(keys)
    first = round(fractions[0] * len(keys))
    second = round((fractions[0] + fractions[1]) * len(keys))
    parts = (set(keys[:first]), set(keys[first:second]), set(keys[second:]))
    return Split(*(tuple(p for p in problems if p.key in part) for part in parts))


def without(problems: Iterable[Problem], others: Iterable[Problem]) -> list[Problem]:
    """``problems`` less those whose key is among ``others``.

    >>> a = Problem("1?", "1", "k1")
    >>> without([a, Problem("2?", "2", "k2")], [a])[0].key
    'k2'
    """
    banned = {problem.key for problem in others}
    return [problem for problem in problems if problem.key not in banned]
