"""From text to an answer, and from two answers to "the same" or "not the same".

:func:`canonical` is N(·) of SD-E² (Appendix E says only that it is numeric and used for *every* comparison);
exact fractions, no tolerance. :func:`math_equal` compares LaTeX answers symbolically. Nothing here evaluates
text as code.
"""

import re
from fractions import Fraction
from math import isfinite
from numbers import Rational
from string import punctuation
from typing import Literal

from explorl.errors import ConfigError
from explorl.text.math_equality import math_equal
from explorl.text.strategies import parse, preprocess

__all__ = ["canonical", "extract", "last_boxed", "math_equal", "same"]

Canonical = tuple[Literal["num"], Fraction] | tuple[Literal["txt"], str]

MAX_ANSWER_CHARS = 10_000
"""A longer string is no answer: its canonical form is ``None``."""
WINDOW_CHARS = 100_000
"""Outside the schema, an answer is looked for in this many characters at the end of a text."""
MAX_DIGITS = 400
"""A number with more digits, or a larger power of ten, is compared as text."""

MODES = ("numeric", "choice")
NUM_PICKS = ("last", "single")

_BOX = re.compile(r"(?P<box>\\boxed\s*\{)|\\.|[{}]", re.DOTALL)
_STYLED = re.compile(r"\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"([+-]?)\s*\\[dt]?frac\s*\{([^{}]+)\}\s*\{([^{}]+)\}")
_SIGNS = re.compile("[$£€%*`]")
_DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+"
_NUMBER = re.compile(rf"(?<!\w)[+-]?(?:{_DIGITS})(?:[eE][+-]?[0-9]+)?(?:\s*/\s*(?:{_DIGITS}))?")
_CUE = re.compile(r"\banswer\s+is\b\s*:?|^[ \t]*A[ \t]*:", re.IGNORECASE | re.MULTILINE)
_SENTENCE_END = re.compile(r"\n|\.(?=\s|$)")

_ONLY_LETTER = re.compile(r"\W*([A-Da-d])\W*")
_LEADING_LETTER = re.compile(r"\(?([A-Da-d])\s?[).:]|\(([A-Da-d])\)|([A-D]) - ")
_NAMED_LETTER = re.compile(
    r"\b(?i:answer|option|choice)(?i:\s+is)?\s*:?\s*\(?([A-D]\b(?!')|[a-d](?=\W*$))|\(([A-D])\)",
)


def canonical(x: object, mode: str = "numeric", num_pick: str = "last") -> Canonical | None:
    """The canonical form N(x) of an answer, so that equal answers have equal forms (Appendix E).

    ``numeric``: the content of the last box if there is one; ``$ £ € % * ``` and everything up to the last
    ``=`` removed; then the last number in it, exactly (thousands separators, decimals, ``a/b``, ``1e3``);
    without a number the casefolded text without surrounding punctuation. 50% is 50. A mixed number counts as
    its last part. ``choice``: a letter A-D if the answer names one (``B``, ``(b)``, ``B. Aspirin``, ``the
    answer is B``), else the casefolded option text; "Hepatitis B" names none.

    Args:
        x: the answer; whole numbers, fractions and finite floats are accepted too, for gold answers.
        mode: ``numeric`` or ``choice``.
        num_pick: ``last`` number, or ``single``: a number only if there is exactly one.

    Returns:
        ``("num", Fraction)``, ``("txt", str)``, or ``None`` for a missing answer: blank, no text, or longer
        than ``MAX_ANSWER_CHARS``.

    Raises:
        ConfigError: on an unknown ``mode`` or ``num_pick``; never on text.

    >>> canonical("It costs $1,018.50."), canonical("(B) Aspirin", mode="choice"), canonical(" ")
    (('num', Fraction(2037, 2)), ('txt', 'b'), None)
    """
    if mode not in MODES:
        raise ConfigError("mode", mode, "one of " + ", ".join(MODES))
    if num_pick not in NUM_PICKS:
        raise ConfigError("num_pick", num_pick, "one of " + ", ".join(NUM_PICKS))
    if isinstance(x, Rational) and not isinstance(x, bool) and mode == "numeric":
        return "num", Fraction(x)
    if isinstance(x, float) and isfinite(x):
        x = repr(x)
    if not isinstance(x, str) or len(x) > MAX_ANSWER_CHARS:
        return None
    text = preprocess(x)
    text = _STYLED.sub(r"\1", last_boxed(text) or text)
    return _choice(text) if mode == "choice" else _numeric(text, num_pick)


def same(x: object, y: object, mode: str = "numeric", num_pick: str = "last") -> bool:
    """Whether two answers have the same canonical form; a missing answer is the same as nothing.

    >>> same("1/2", "0.5"), same("50%", "0.5"), same("", "")
    (True, False, False)
    """
    left = canonical(x, mode, num_pick)
    return left is not None and left == canonical(y, mode, num_pick)


def last_boxed(text: str) -> str | None:
    r"""The content of the ``\boxed{…}`` that opens last among those that are closed; ``None`` if it is blank.

    Only the last ``WINDOW_CHARS`` characters are read.

    >>> last_boxed(r"first \boxed{1}, then \boxed{\frac{1}{2}} and \boxed{cut")
    '\\frac{1}{2}'
    """
    if not isinstance(text, str) or "\\boxed" not in text:
        return None
    text = text[-WINDOW_CHARS:]
    open_braces: list[int | None] = []  # where the content begins, for a box; None for any other brace
    begin, end = -1, -1
    for token in _BOX.finditer(text):
        if token["box"]:
            open_braces.append(token.end())
        elif token[0] == "{":
            open_braces.append(None)
        elif token[0] == "}" and open_braces:
            start = open_braces.pop()
            if start is not None and start > begin:
                begin, end = start, token.start()
    return text[begin:end].strip() or None if begin >= 0 else None


def extract(text: str) -> tuple[str, str]:
    r"""The answer of a free-form solution, and where it was found.

    Tried in this order: the schema's tags (``FA``, ``ANS``, ``SO``, see
    :func:`explorl.text.strategies.parse`); the last box (``BOX``); the line after the last ``####``
    (``HASH``); the sentence after the last ``A:`` that begins a line or the last "answer is" (``CUE``); the
    last number near the end (``NUM``).

    Args:
        text: a completion, or a solution as a data set gives it.

    Returns:
        (answer, source); ``("", "NONE")`` if there is none.

    >>> extract("She sells 9 eggs at $2.\nA: 18"), extract("I give up.")
    (('18', 'CUE'), ('', 'NONE'))
    """
    if not isinstance(text, str):
        return "", "NONE"
    parsed = parse(text)
    if parsed.final:
        return parsed.final, parsed.source
    tail = text[-WINDOW_CHARS:]
    marked = tail.rpartition("####")
    found = {
        "BOX": last_boxed(tail) or "",
        "HASH": marked[2].strip().partition("\n")[0].strip() if marked[1] else "",
        "CUE": _after_cue(tail),
        "NUM": ([""] + [number[0] for number in _NUMBER.finditer(tail[-MAX_ANSWER_CHARS:])])[-1],
    }
    return next(((answer, source) for source, answer in found.items() if answer), ("", "NONE"))


def _after_cue(text: str) -> str:
    cues = list(_CUE.finditer(text))
    return _SENTENCE_END.split(text[cues[-1].end() :].lstrip(), maxsplit=1)[0].strip() if cues else ""


def _numeric(text: str, num_pick: str) -> Canonical | None:
    if fraction := _FRACTION.fullmatch(text.strip("$ ")):
        text = "{}{}/{}".format(*fraction.groups())
    text = _SIGNS.sub("", text).replace("{,}", ",").rpartition("=")[2].strip().removesuffix(".").strip()
    numbers = _NUMBER.findall(text)
    if numbers and (num_pick == "last" or len(numbers) == 1):
        value = _exact(numbers[-1])
        if value is not None:
            return "num", value
    return _text(text)


def _exact(number: str) -> Fraction | None:
    """The value of a number token; ``None`` if it is too large to be one, or divides by zero."""
    parts = number.replace(",", "").split("/")
    for part in parts:
        mantissa, _, exponent = part.lower().partition("e")
        if len(mantissa) > MAX_DIGITS or len(exponent) > 5 or abs(int(exponent or 0)) > MAX_DIGITS:
            return None
    values = [Fraction(part.strip()) for part in parts]
    if len(values) == 1:
        return values[0]
    return values[0] / values[1] if values[1] else None


def _choice(text: str) -> Canonical | None:
    text = text.strip("$*` ")
    letter = _ONLY_LETTER.fullmatch(text) or _LEADING_LETTER.match(text)
    named = {next(filter(None, found)).casefold() for found in _NAMED_LETTER.findall(text)}
    if letter:
        return "txt", next(filter(None, letter.groups())).casefold()
    return ("txt", named.pop()) if len(named) == 1 else _text(text)


def _text(text: str) -> Canonical | None:
    plain = text.casefold().strip(punctuation + " ")
    return ("txt", plain) if plain else None
