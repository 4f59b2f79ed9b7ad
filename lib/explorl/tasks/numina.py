"""NuminaMath-CoT, the 20,000 questions that EMPO trains on (§4.1): competition and school mathematics.

Hub id ``RLHFlow/numia_prompt_dpo1`` (the authors' choice, so spelt); local file ``numina_20k.jsonl`` with its fields,
``problem``, ``gt`` and ``data_source``. EMPO does not read the reference answer, so it may be blank; a question may
not. The set holds some questions twice. It has no test part: give the run ``eval_tasks``. Worked solutions, which
only supervised fine-tuning needs, are looked up by question in ``AI-MO/NuminaMath-CoT`` (local file
``numina_cot.jsonl``: ``problem``, ``solution``).

Prompt: ``boxed`` of :mod:`explorl.tasks.prompts`. Grader: ``math``, on the content of the last box.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key
from explorl.tasks.source import Row, Source, each, rows, text_field

GRADER = "math"
ANSWER_FROM = "boxed"
SOURCES = {
    "train": Source("numina", "numina_20k.jsonl", "RLHFlow/numia_prompt_dpo1",
                    "4dce4fb1d7370f1fc93da9fc6bf324421b9a2e52", "train"),
    "solutions": Source("numina", "numina_cot.jsonl", "AI-MO/NuminaMath-CoT",
                        "9d8d210c9f6a36c8f3cd84045668c9b7800ef517", "train"),
}
FETCHED = ("train",)


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
    table = rows(source, data_dir)[:limit]
    return [_problem(row, f"{source.file}, row {i}") for i, row in enumerate(table, start=1)]


def splits(*, select: float = 0.02, seed: int = 0, data_dir: str | os.PathLike | None = None,
           solutions: bool = False) -> Split:
    """Train and select; the test part is empty.

    Args:
        select: share of the questions set aside for choosing settings, in [0, 1).
        seed: of that choice.
        data_dir: as in :func:`load`.
        solutions: keep only questions whose worked solution is found, and put it in ``meta["solution"]``.
    """
    problems = load(data_dir=data_dir)
    if solutions:
        problems = with_solutions(problems, data_dir=data_dir)
    return split_by_key(problems, (1.0 - select, select, 0.0), seed)


def with_solutions(problems: Sequence[Problem], *, data_dir: str | os.PathLike | None = None) -> list[Problem]:
    """Those of ``problems`` whose worked solution is known, with it in ``meta["solution"]``.

    Raises:
        ConfigError: data not available, or none of the questions is among the worked ones.
    """
    wanted = {problem.key for problem in problems}
    found: dict[str, str] = {}
    for row in each(SOURCES["solutions"], data_dir):
        key = canonical_key(str(row.get("problem") or ""))
        if key in wanted and str(row.get("solution") or "").strip():
            found.setdefault(key, str(row["solution"]).strip())
    solved = [replace(p, meta={**p.meta, "solution": found[p.key]}) for p in problems if p.key in found]
    if not solved:
        raise ConfigError("solutions", SOURCES["solutions"].hub, "worked solutions of at least one of the questions")
    return solved


def _problem(row: Row, where: str) -> Problem:
    question = text_field(row, ("problem",), where)
    if "gt" not in row:
        raise ConfigError(f"{where}, gt", None, "the reference answer, which may be blank")
    gold = "" if row["gt"] is None else str(row["gt"]).strip()
    return Problem(question, gold, canonical_key(question), {"task": "numina", "origin": row.get("data_source")})
