"""Scoring lines as IMAGINE does: the outcome's score, how unfamiliar the text is, the bonus, and the advantage.

Lines come in windows of whole groups. A window is one batch: it sets the scale of its bonuses, and after it the
predictor takes one step, so that the next window is judged by a predictor that has read this one, as in training.
Tokens are the bytes of the text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import IO

import numpy as np

from explorl.errors import ConfigError, require
from explorl.papers import imagine
from explorl.score import Line, parse_line, plain, read_lines, write
from explorl.score_empo import groups
from explorl.text import countdown, marked
from explorl.text.countdown import Score

FORMS = ("countdown", *marked.FORMS)
WINDOW = 64
BYTES = 256
MAX_NUMBERS = 16


@dataclass(frozen=True)
class Scored(Line):
    """A line with its verdict and its bytes; the text itself is not kept."""

    answer: str = ""
    verdict: Score = Score(0.0, "no_answer")
    asked: bytes = b""
    written: bytes = b""


class Scorer:
    """Scores windows one after another; see :func:`scorer`."""

    def __init__(self, config: imagine.Config, form: str):
        self.config, self.form = config, form
        self.novelty = imagine.Novelty(BYTES, config)

    def read(self, number: int, raw: bytes) -> Scored:
        """One line's bytes → its verdict, or its error. Needs ``completion``, ``group`` and ``gold``; for Countdown
        ``gold`` is the target, and ``numbers`` a list."""
        line = parse_line(number, raw, needed=("completion", "group", "gold"), optional=("prompt",))
        known = {field.name: getattr(line, field.name) for field in fields(Line)} | {"completion": "", "prompt": ""}
        if line.error:
            return Scored(**known)
        verdict, error = self._verdict(line, raw)
        if error:
            return Scored(**known | {"error": error})
        room = self.config.max_prompt_tokens
        return Scored(**known, verdict=verdict, answer=verdict.answer or "",
                      asked=line.prompt.encode()[-room:] if room else b"",
                      written=line.completion.encode()[: self.config.max_completion_tokens])

    def _verdict(self, line: Line, raw: bytes) -> tuple[Score, str]:
        nothing = Score(0.0, "no_answer")
        if self.form != "countdown":
            return marked.score(line.completion, line.gold, form=self.form), ""
        numbers = json.loads(raw.decode("utf-8-sig")).get("numbers")
        whole = isinstance(numbers, list) and all(type(x) is int and 0 <= x <= 10**6 for x in numbers)
        if not whole or not 1 <= len(numbers) <= MAX_NUMBERS:
            return nothing, f"numbers: must be a list of 1 to {MAX_NUMBERS} whole numbers up to a million"
        if not (line.gold.strip().isascii() and line.gold.strip().isdigit() and len(line.gold.strip()) <= 9):
            return nothing, "gold: must be the target, a whole number, as text"
        return countdown.score(line.completion, numbers, int(line.gold)), ""

    def __call__(self, lines: Sequence[Scored]) -> list[dict]:
        """A row for each line of one window."""
        scores = np.array([line.verdict.reward for line in lines])
        right = scores >= imagine.RIGHT
        n, errors = self.novelty.calls, np.full(len(lines), np.nan)
        paid = np.zeros(len(lines))
        if len(lines) > 1:  # one row has no batch to be normalised over
            ids, mask = imagine.layout([list(x.asked) for x in lines], [list(x.written) for x in lines], self.config)
            errors, _ = self.novelty.observe(ids, mask)
            paid = imagine.bonus(errors, right, n, self.config, lengths=[len(line.written) for line in lines],
                                 std=self.novelty.running.std)
        found = zip(lines, scores, right, errors, paid, self._advantages(lines, scores, paid), strict=True)
        return [{"group": line.group, "answer": line.answer, "score": plain(score), "oc": float(ok),
                 "novelty_error": plain(error), "bonus": plain(extra), "advantage": plain(push), "n": n,
                 "reason": line.verdict.reason} for line, score, ok, error, extra, push in found]

    def _advantages(self, lines: Sequence[Scored], scores: np.ndarray, paid: np.ndarray) -> np.ndarray:
        """Group by group; NaN in a group of one, which has nothing to be compared with."""
        found, start = np.full(len(lines), np.nan), 0
        for _, members in groupby(lines, key=lambda line: line.group):
            stop = start + len(list(members))
            if stop - start > 1:
                found[start:stop] = imagine.integrate(scores[start:stop], paid[start:stop], stop - start, self.config)
            start = stop
        return found


def scorer(values: Mapping[str, object]) -> Scorer:
    """What scores windows.

    Args:
        values: fields of :class:`explorl.papers.imagine.Config`, and ``form``: how an answer is marked, one of
            :data:`FORMS`, default countdown.

    Raises:
        ConfigError: unknown setting or form, a value out of range, or a setting that needs groups of one size.
    """
    values = dict(values)
    form = values.pop("form", "countdown")
    known = [field.name for field in fields(imagine.Config)]
    for unknown in set(values) - set(known):
        raise ConfigError(unknown, values[unknown], f"a setting: {', '.join(known)}, form")
    config = imagine.Config(**values)
    require(isinstance(form, str) and form in FORMS, "form", form, "one of " + ", ".join(FORMS))
    why = "here: groups may differ in size"
    require(config.minmax_scope == "batch", "minmax_scope", config.minmax_scope, f"batch {why}")
    require(not config.center_bonus, "center_bonus", True, f"false {why}")
    return Scorer(config, form)


def score_windows(source: IO[bytes], target: IO[str], score: Scorer, *, window: int = WINDOW) -> int:
    """Read JSON lines, write one JSON line for each, in order; returns the number of bad lines.

    Args:
        source: bytes; blank lines are skipped. Lines of one ``group`` follow one another.
        target: text.
        score: of :func:`scorer`.
        window: whole groups are put together until there are so many lines, ≥ 2.
    """
    return sum(write(lines, target, score) for lines in windows(groups(read_lines(source, score.read)), window))


def windows(found: Iterator[list[Scored]], size: int) -> Iterator[list[Scored]]:
    """Groups, put together until a window has ``size`` lines; the last one has what is left."""
    waiting: list[Scored] = []
    for group in found:
        waiting += group
        if len(waiting) >= size:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
