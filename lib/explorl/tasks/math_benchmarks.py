"""The five mathematics benchmarks of EMPO's Table 1 (§4.1): MATH-500, AMC23, AIME24, Minerva, OlympiadBench.

They are only tested on. The paper's repository counts 500, 40, 30, 272 and 675 of them; the copies on the hub that
we read have the same, save OlympiadBench, whose English text-only competition part has 674 there. A local file with
the same fields takes its place. The reference answer is the field ``answer``, for Minerva the last box of
``solution``, for OlympiadBench ``final_answer`` without its dollar signs.

Prompt: ``boxed`` of :mod:`explorl.tasks.prompts`. Grader: ``math``, on the content of the last box.
Minerva is read at ``main``: its commit on the hub could not be established.
"""

from __future__ import annotations

import os

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key
from explorl.tasks.source import Row, Source, rows, text_field
from explorl.text.answers import last_boxed

GRADER = "math"
ANSWER_FROM = "boxed"
SOURCES = {
    "math500": Source("math500", "math500.jsonl", "HuggingFaceH4/MATH-500",
                      "6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be", "test"),
    "amc23": Source("amc23", "amc23.jsonl", "math-ai/amc23", "80815d37005feb82cd7f8fbc6901d5d3eff43057", "test"),
    "aime24": Source("aime24", "aime24.jsonl", "HuggingFaceH4/aime_2024",
                     "2fe88a2f1091d5048c0f36abc874fb997b3dd99a", "train"),
    "minerva": Source("minerva", "minerva_math.jsonl", "knoveleng/Minerva-Math", "main", "train"),
    "olympiad": Source("olympiad", "olympiadbench.jsonl", "Hothan/OlympiadBench",
                       "91184b52131e7fc9455fef848035173aea8cc01a", "train", config="OE_TO_maths_en_COMP"),
}


def load(task: str, *, limit: int | None = None, data_dir: str | os.PathLike | None = None) -> list[Problem]:
    """The problems of one benchmark, in their published order.

    Args:
        task: one of :data:`SOURCES`.
        limit: keep the first ``limit`` ≥ 1 problems, or all.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown benchmark, data not available, or a malformed row (with its number).
    """
    if task not in SOURCES:
        raise ConfigError("task", task, f"one of {', '.join(SOURCES)}")
    table = rows(SOURCES[task], data_dir)[:limit]
    return [_problem(task, row, f"{SOURCES[task].file}, row {i}") for i, row in enumerate(table, start=1)]


def splits(task: str, *, data_dir: str | os.PathLike | None = None) -> Split:
    """No training part, no select part: all of the benchmark is the test part."""
    return Split((), (), tuple(load(task, data_dir=data_dir)))


def _problem(task: str, row: Row, where: str) -> Problem:
    question = text_field(row, ("question", "problem"), where)
    meta = {"task": task} | {name: row[name] for name in ("subject", "level", "type") if row.get(name) is not None}
    return Problem(question, _gold(task, row, where), canonical_key(question), meta)


def _gold(task: str, row: Row, where: str) -> str:
    if task == "minerva" and not row.get("answer"):
        solution = text_field(row, ("solution",), where)
        gold = last_boxed(solution)
        if gold is None:
            raise ConfigError(f"{where}, solution", solution[-40:], r"a solution with a \boxed answer")
        return gold
    if task == "olympiad":
        answers = row.get("final_answer")
        answers = [answers] if isinstance(answers, str) else answers
        if not isinstance(answers, list) or not all(isinstance(a, str) and a.strip(" $") for a in answers or [""]):
            raise ConfigError(f"{where}, final_answer", answers, "a list of answers that are not empty")
        return ", ".join(answer.replace("$", "").strip() for answer in answers)
    gold = row.get("answer")
    if isinstance(gold, float) and gold.is_integer():
        return str(int(gold))
    return text_field(row, ("answer",), where)
