"""Natural Reasoning: free-form questions of all fields, 18,000 of which EMPO trains on (§4.1, Algorithm 4).

``simple`` is the authors' own selection, ``qingyangzhang/natural_reasoning_simple`` (read at ``main``: its commit could
not be established). ``full`` is ``facebook/natural_reasoning``, 1.1 million questions and 4.2 GB, from which
:func:`load` selects as the paper words it: no over-long question or reference answer, and a response of
Llama-3.3-70B-Instruct of at most 4,096 tokens. The paper's two other limits could not be recovered, nor how its 18,000
were drawn: our limits, our way to count tokens and our sample are not theirs.

Local files ``natural_reasoning_simple.jsonl`` and ``natural_reasoning.jsonl`` with the hub's fields: ``question``,
``reference_answer`` (blank for one question in five of the full set) and ``responses``, a list of ``response_model``
and ``response``. There is no test part: give the run ``eval_tasks``.

Prompt: ``boxed`` of :mod:`explorl.tasks.prompts`. Grader: ``verifier``, on the content of the last box.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from explorl.errors import ConfigError
from explorl.tasks.problem import Problem, Split, canonical_key, split_by_key
from explorl.tasks.source import Row, Source, each, text_field

GRADER = "verifier"
ANSWER_FROM = "boxed"
SOURCES = {
    "simple": Source("natural", "natural_reasoning_simple.jsonl", "qingyangzhang/natural_reasoning_simple", "main",
                     "train"),
    "full": Source("natural", "natural_reasoning.jsonl", "facebook/natural_reasoning",
                   "8c9292b8932b86f90360ca6b152c2e23ca9252ab", "train"),
}
FETCHED = ("simple",)
TRAIN_SAMPLE = 18_000


def estimated_tokens(text: str) -> int:
    """A rough count for English: one token per four characters, rounded up.

    >>> estimated_tokens("four tokens here"), estimated_tokens("")
    (4, 0)
    """
    return -(-len(text) // 4)


@dataclass(frozen=True)
class Limits:
    """What a row may be at most, in tokens; None does not ask. The first two are ours, the third is the paper's.

    Attributes:
        question_tokens: of the question.
        reference_tokens: of the reference answer; with a limit, a row without one is left out too.
        response_tokens: of the Llama response; a row without one passes.
    """

    question_tokens: int | None = 512
    reference_tokens: int | None = 64
    response_tokens: int | None = 4096

    def __post_init__(self):
        for name, value in vars(self).items():
            if value is not None and value < 1:
                raise ConfigError(name, value, "None or at least 1")

    def admit(self, problem: Problem, response: str, count: Callable[[str], int]) -> bool:
        """Whether a problem stays."""
        if self.reference_tokens is not None and not problem.gold:
            return False
        lengths = ((problem.prompt, self.question_tokens), (problem.gold, self.reference_tokens),
                   (response, self.response_tokens))
        return all(limit is None or count(text) <= limit for text, limit in lengths)


def load(source: str = "simple", *, limits: Limits | None = None, sample: int | None = TRAIN_SAMPLE, seed: int = 0,
         count: Callable[[str], int] = estimated_tokens, data_dir: str | os.PathLike | None = None
         ) -> list[Problem]:
    """The problems of one source that keep the limits, or a random ``sample`` of them, in their published order.

    Args:
        source: ``simple`` (the authors' selection) or ``full``.
        limits: None asks for nothing of ``simple``, and for :class:`Limits` of ``full``.
        sample: problems to keep, ≥ 1; None, or more than there are, keeps all.
        seed: of the sample.
        count: text → tokens; a tokenizer's own count is better than the default.
        data_dir: folder with local files; wins over ``EXPLORL_DATA`` and the hub.

    Raises:
        ConfigError: unknown source, wrong sample, data not available, or a malformed row (with its number).
    """
    if source not in SOURCES:
        raise ConfigError("source", source, f"one of {', '.join(SOURCES)}")
    if sample is not None and sample < 1:
        raise ConfigError("sample", sample, "None or at least 1")
    if limits is None:
        limits = Limits() if source == "full" else Limits(None, None, None)
    kept = [problem for problem, response in _everything(source, data_dir) if limits.admit(problem, response, count)]
    if sample is None or sample >= len(kept):
        return kept
    return [kept[i] for i in sorted(random.Random(seed).sample(range(len(kept)), sample))]


def splits(*, select: float = 0.02, seed: int = 0, data_dir: str | os.PathLike | None = None,
           solutions: bool = False, **options) -> Split:
    """Train and select; the test part is empty.

    Args:
        select: share of the questions set aside for choosing settings, in [0, 1).
        seed: of that choice and of the sample.
        data_dir: as in :func:`load`.
        solutions: keep only questions with a Llama response, which stands in ``meta["solution"]``.
        options: ``source``, ``limits``, ``sample``, ``count`` of :func:`load`.

    Raises:
        ConfigError: as :func:`load`; or ``solutions`` are asked for and no question has one.
    """
    problems = load(seed=seed, data_dir=data_dir, **options)
    if solutions:
        problems = [problem for problem in problems if "solution" in problem.meta]
        if not problems:
            raise ConfigError("solutions", solutions, "false, or the data have Llama responses (source 'full' has)")
    return split_by_key(problems, (1.0 - select, select, 0.0), seed)


def _everything(source: str, data_dir: str | os.PathLike | None) -> Iterator[tuple[Problem, str]]:
    for number, row in enumerate(each(SOURCES[source], data_dir), start=1):
        yield _problem(row, f"{SOURCES[source].file}, row {number}")


def _problem(row: Row, where: str) -> tuple[Problem, str]:
    question = text_field(row, ("question",), where)
    if "reference_answer" not in row:
        raise ConfigError(f"{where}, reference_answer", None, "the reference answer, which may be blank")
    gold = str(row["reference_answer"] or "").strip()
    response = _llama(row, where)
    meta = {"task": "natural"} | ({"solution": response} if response else {})
    return Problem(question, gold, canonical_key(question), meta), response


def _llama(row: Row, where: str) -> str:
    answers = row.get("responses") or []
    if not isinstance(answers, list) or not all(isinstance(answer, dict) for answer in answers):
        raise ConfigError(f"{where}, responses", answers, "a list of response_model and response, or none")
    texts = [str(a.get("response") or "").strip() for a in answers
             if "llama" in str(a.get("response_model")).casefold()]
    return next(iter(texts), "")
