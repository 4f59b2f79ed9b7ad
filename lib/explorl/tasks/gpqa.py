"""GPQA: graduate questions of biology, physics and chemistry with four options (EMPO Table 2); only tested on.

Hub id ``Idavidrein/gpqa``, configuration ``gpqa_main``, 448 questions. The hub asks for an account and for consent to
the authors' conditions, one of which is not to publish the questions as plain text. It is read at ``main``: its commit
could not be established. Local file ``gpqa_main.jsonl`` with the hub's fields: ``Question``, ``Correct Answer``,
``Incorrect Answer 1`` to ``3``, ``High-level domain``.

The paper's numbers rest on 340 of the 448: 70 of biology, 140 of physics, 130 of chemistry, those that a script of the
authors could split. Which ones is not published. By default we take the first 70, 140 and 130 in the published
order: as many of each field, not the same questions. ``subset="main"`` takes all.

Prompt: ``boxed`` of :mod:`explorl.tasks.prompts`. Grader: ``choice``, on the content of the last box.
"""

from __future__ import annotations

import os
import random
from collections import Counter

from explorl.errors import ConfigError
from explorl.tasks.mmlu_pro import LETTERS, with_options
from explorl.tasks.problem import Problem, Split, canonical_key
from explorl.tasks.source import Row, Source, rows, text_field

GRADER = "choice"
ANSWER_FROM = "boxed"
SOURCES = {
    "main": Source("gpqa", "gpqa_main.jsonl", "Idavidrein/gpqa", "main", "train", config="gpqa_main", gated=True),
}
PAPER_COUNTS = {"Biology": 70, "Physics": 140, "Chemistry": 130}
SUBSETS = ("paper_counts", "main")
ANSWERS = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def load(subset: str = "paper_counts", *, limit: int | None = None, data_dir: str | os.PathLike | None = None,
         seed: int = 0) -> list[Problem]:
    """The problems, in their published order, each with its options in an order of its own.

    Args:
        subset: ``paper_counts`` (the first 340 by field) or ``main`` (all).
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.
        seed: of the order of the options.

    Raises:
        ConfigError: unknown subset, data not available, or a malformed row (with its number).
    """
    if subset not in SUBSETS:
        raise ConfigError("subset", subset, f"one of {', '.join(SUBSETS)}")
    source = SOURCES["main"]
    problems = [_problem(row, f"{source.file}, row {i}", seed)
                for i, row in enumerate(rows(source, data_dir), start=1)]
    if subset == "paper_counts":
        seen: Counter[str] = Counter()
        problems = [p for p in problems if _nth(seen, p.meta["subject"]) <= PAPER_COUNTS[p.meta["subject"]]]
    return problems[:limit]


def splits(*, data_dir: str | os.PathLike | None = None, subset: str = "paper_counts", seed: int = 0) -> Split:
    """No training part, no select part: all of the subset is the test part."""
    return Split((), (), tuple(load(subset, data_dir=data_dir, seed=seed)))


def _nth(seen: Counter[str], field: str) -> int:
    seen[field] += 1
    return seen[field]


def _problem(row: Row, where: str, seed: int) -> Problem:
    stem = text_field(row, ("Question",), where)
    answers = [text_field(row, (name,), where) for name in ANSWERS]
    field = text_field(row, ("High-level domain",), where)
    if field not in PAPER_COUNTS:
        raise ConfigError(f"{where}, High-level domain", field, f"one of {', '.join(PAPER_COUNTS)}")
    order = random.Random(f"{seed} {canonical_key(stem)}").sample(range(len(answers)), len(answers))
    options = [answers[i] for i in order]
    prompt = with_options(stem, options)
    meta = {"task": "gpqa", "options": tuple(options), "subject": field}
    return Problem(prompt, LETTERS[order.index(0)], canonical_key(prompt), meta)
