"""Scoring an answer that stands behind a mark: ``#### 18`` (GSM8K), ``Answer: 18`` (AIME), ``<final_answer>``.

The score is IMAGINE's (eq 8): 1 for the right answer, 0.1 for another one in the right form, 0 without the mark. Two
readings: ``strict``, ours, takes the last mark and compares values; ``published`` does what ``gsm8k.py`` and ``aime.py``
of Gaojingtong/IMAGINE do (44d1632; the second at 8b83391, deleted since), where a dot after the number costs the answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from explorl.errors import require
from explorl.text.answers import canonical, same
from explorl.text.countdown import FORMAT, NOTHING, RIGHT, Score
from explorl.text.strategies import MAX_CHARS, parse

__all__ = ["FORMS", "RULES", "Score", "extract", "score"]

FORMS = ("hash", "answer", "final_tag")
RULES = ("strict", "published")
MAX_ANSWER = 256
"""Characters behind a mark that are read."""

_HASH = re.compile(r"####[ \t]*(\S[^\n]{0,%d})" % MAX_ANSWER)
_ANSWER = re.compile(r"^[^\S\n]*Answer:[ \t]*(\S[^\n]{0,%d})" % MAX_ANSWER, re.MULTILINE)
_PUBLISHED_HASH = re.compile(r"#### (-?[0-9.,]+)", re.ASCII)
_PUBLISHED_ANSWER = re.compile(r"Answer:\s*(-?[0-9]+)", re.ASCII)


def score(text: str, gold: str, *, form: str, rules: str = "strict") -> Score:
    """The reward of one completion; never raises on text.

    Args:
        text: the completion, without the prompt. Anything but a string has no answer.
        gold: the reference answer.
        form: how an answer is marked: one of :data:`FORMS`.
        rules: ``strict`` or ``published`` (which knows no ``final_tag``).

    Returns:
        A :class:`Score`; reasons ``ok``, ``value`` (well formed, and another value), ``no_answer`` (no mark, or no
        number behind it where the form wants one).

    Raises:
        ConfigError: unknown ``form`` or ``rules``.

    >>> [score(text, "18", form="hash").reward for text in ("so #### 18.00", "#### 20, no, #### $18", "#### 20", "18")]
    [1.0, 1.0, 0.1, 0.0]
    >>> [score(text, "18", form="hash", rules="published").reward for text in ("so #### 18.00", "so #### 18")]
    [0.1, 1.0]
    """
    require(form in FORMS, "form", form, "one of " + ", ".join(FORMS))
    require(rules in RULES, "rules", rules, "one of " + ", ".join(RULES))
    if rules == "published":
        return _published(text if isinstance(text, str) else "", gold, form)
    answer = extract(text, form)
    if answer is None or (form != "final_tag" and (canonical(answer) or ("",))[0] != "num"):
        return Score(NOTHING, "no_answer", answer)
    return Score(RIGHT, "ok", answer) if same(answer, gold) else Score(FORMAT, "value", answer)


def extract(text: str, form: str) -> str | None:
    """What stands behind the last mark; None without one.

    >>> extract("#### 3 apples", "hash"), extract("Answer: 7\\nbye", "answer"), extract("7", "answer")
    ('3 apples', '7', None)
    """
    if not isinstance(text, str):
        return None
    text = text[-MAX_CHARS:]
    if form == "final_tag":
        found = parse(text)
        return found.final if found.source == "FA" else None
    marks = {"hash": _HASH, "answer": _ANSWER}[form].findall(text)
    return marks[-1].strip() if marks else None


def _published(text: str, gold: str, form: str) -> Score:
    """The first match in the whole text, or on the last line alone, compared as a string."""
    require(form in _PUBLISHED, "form", form, "hash or answer with rules = 'published'")
    return _PUBLISHED[form](text, gold)


def _published_hash(text: str, gold: str) -> Score:
    found = _PUBLISHED_HASH.search(text)
    if found is None:
        return Score(NOTHING, "no_answer")
    answer = found[1].replace(",", "").replace("$", "")
    return Score(RIGHT, "ok", answer) if answer == gold else Score(FORMAT, "value", answer)


def _published_answer(text: str, gold: str) -> Score:
    """Its test for a missing answer never fires, so that no completion gets 0."""
    found = _PUBLISHED_ANSWER.search(text.rpartition("\n")[2])
    if found is None:
        return Score(FORMAT, "no_answer")
    return Score(RIGHT, "ok", found[1]) if found[1] == gold else Score(FORMAT, "value", found[1])


_PUBLISHED: dict[str, Callable[[str, str], Score]] = {"hash": _published_hash, "answer": _published_answer}
