"""MMLU-Pro: 12,032 questions of 14 fields with up to ten options (EMPO Table 2); only tested on.

Hub id ``TIGER-Lab/MMLU-Pro``; local file ``mmlu_pro_test.jsonl`` with the hub's fields: ``question``, ``options`` (a
list), ``answer`` (a letter) and ``category``. The options stand in the prompt; gold is the letter. The paper gives
the mean over all questions, not over fields.

Prompt: ``boxed`` of :mod:`explorl.tasks.prompts`. Grader: ``choice``, on the content of the last box.
"""

from __future__ import annotations

import os
from string import ascii_uppercase

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key
from explorl.tasks.source import Row, Source, rows, text_field

GRADER = "choice"
ANSWER_FROM = "boxed"
LETTERS = ascii_uppercase[:16]
"""A to P, which the paper's prompt provides for; the data have at most ten options."""
SOURCES = {
    "test": Source("mmlu_pro", "mmlu_pro_test.jsonl", "TIGER-Lab/MMLU-Pro",
                   "b189ec765aa7ed75c8acfea42df31fdae71f97be", "test"),
}


def load(split: str = "test", *, limit: int | None = None, data_dir: str | os.PathLike | None = None
         ) -> list[Problem]:
    """The problems, in their published order: one field after another.

    Args:
        split: ``test``.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown split, data not available, or a malformed row (with its number).
    """
    if split not in SOURCES:
        raise ConfigError("split", split, f"one of {', '.join(SOURCES)}")
    table = rows(SOURCES[split], data_dir)[:limit]
    return [_problem(row, f"{SOURCES[split].file}, row {i}") for i, row in enumerate(table, start=1)]


def splits(*, data_dir: str | os.PathLike | None = None) -> Split:
    """No training part, no select part: all of it is the test part."""
    return Split((), (), tuple(load(data_dir=data_dir)))


def with_options(stem: str, options: list[str]) -> str:
    """A question and its lettered options, one a line.

    >>> print(with_options("Which?", ["this", "that"]))
    Which?
    A. this
    B. that
    """
    return "\n".join([stem, *(f"{letter}. {option}" for letter, option in zip(LETTERS, options))])


def _problem(row: Row, where: str) -> Problem:
    stem = text_field(row, ("question",), where)
    options = row.get("options")
    if not isinstance(options, list) or not 2 <= len(options) <= len(LETTERS):
        raise ConfigError(f"{where}, options", options, f"a list of 2 to {len(LETTERS)} options")
    options = [str(option).strip() for option in options]
    gold = text_field(row, ("answer",), where)
    letters = LETTERS[: len(options)]
    if len(gold) != 1 or gold not in letters or not options[letters.index(gold)]:
        raise ConfigError(f"{where}, answer", gold, f"the letter, A to {letters[-1]}, of an option that is not empty")
    prompt = with_options(stem, options)
    meta = {"task": "mmlu_pro", "options": tuple(options), "subject": row.get("category")}
    return Problem(prompt, gold, canonical_key(prompt), meta)
