"""The reward of Countdown: is the answer an expression over the given numbers, each used once, that hits the target?

A completion is asked to end in ``<answer>(8 - 3) * 2</answer>``. :func:`score` gives 1 for a right expression, 0.1
for any other closed answer and 0 without one. Values are exact fractions, nothing is run as code, and every verdict
has a reason code. ``rules="tinyzero"`` gives the verdict of the scorer that IMAGINE trained with, holes included.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral

from explorl.errors import ConfigError
from explorl.text import countdown_tinyzero
from explorl.text.countdown_search import needs_times_or_divide, solve
from explorl.text.expression import ExpressionError, evaluate, postfix

__all__ = ["REASONS", "RULES", "TEMPLATES", "Score", "extract", "needs_times_or_divide", "score", "solve"]

RULES = ("strict", "lenient", "tinyzero")
TEMPLATES = countdown_tinyzero.TEMPLATES
RIGHT, FORMAT, NOTHING = 1.0, 0.1, 0.0
REASONS = (
    "ok", "value", "numbers", "division_by_zero", "no_answer", "empty", "too_long", "character", "operator",
    "leading_zero", "number_size", "operand", "trailing", "parenthesis", "nesting", "unary", "no_number", "hangs",
)
"""``ok``; ``value``, another value; ``numbers``, not exactly the given ones; ``no_answer``, no closed tag;
``character``, one that no expression has; ``operator``, ``**`` or ``//``; ``operand``, one is missing;
``trailing``, two operands in a row; ``unary``, a sign where ``allow_unary`` is off. Of ``tinyzero`` alone:
``no_number``, a result that cannot be compared; ``hangs``, a power that Python would not finish in time."""

WINDOW_CHARS = 100_000
"""The answer is looked for in this many characters at the end of a completion."""
MAX_CHARS = 256
MAX_DEPTH = 100
MAX_DIGITS = 6

_TAG = re.compile(r"</?answer>")
_SPECIAL = re.compile(r"<\|[A-Za-z0-9_]{1,32}\|>")
_NOT_ARITHMETIC = re.compile(r"[^0-9+\-*/() \t\r\n]")
_NO_OPERATOR = re.compile(r"\*\*|//")
_TOKEN = re.compile(r"[0-9]+|[-+*/()]")
_ASCII = str.maketrans({"×": "*", "·": "*", "⋅": "*", "÷": "/", "−": "-", "–": "-", "$": "", "`": ""})


@dataclass(frozen=True, slots=True)
class Score:
    """A verdict.

    Attributes:
        reward: 1.0 right, 0.1 an answer that is not, 0.0 no answer.
        reason: one of :data:`REASONS`.
        answer: what stands between the tags, without spaces around it; None without a closed pair.
        detail: the character, token or value that the reason speaks of, or "".
    """

    reward: float
    reason: str
    answer: str | None = None
    detail: str = ""


def score(text: str, numbers: Sequence[int], target: int, *, rules: str = "strict", allow_unary: bool = True,
          template: str = "base") -> Score:
    """The reward of one completion (outcome reward of IMAGINE §4.1; for accuracy count the 1.0s alone).

    Args:
        text: the completion alone, without its prompt; anything may stand in it.
        numbers: those given, whole and ≥ 0; each must be used exactly once.
        target: whole.
        rules: ``strict``; ``lenient``, which also reads × · ⋅ ÷ − –, drops ``$``, backticks and one final period,
            and ``= target`` on either side; ``tinyzero``, see :mod:`explorl.text.countdown_tinyzero`.
        allow_unary: whether a sign may stand before a number or parenthesis; ``tinyzero`` always lets it.
        template: which prompt the completion follows, ``base`` or ``qwen-instruct``; only ``tinyzero`` reads it.

    Raises:
        ConfigError: wrong ``numbers``, ``target``, ``rules`` or ``template``; never on text.

    Source: the rule and the rewards are those of TinyZero (``verl/utils/reward_score/countdown.py`` at 95df88f, which
    IMAGINE at 44d1632 leaves unchanged). Deviations of ``strict``: the tag may span or precede other lines, decimals,
    powers and floor division are no part of the game, and values are compared exactly, not to 1e-5.

    >>> score("So <answer>8 / (3 - 8/3)</answer>", [8, 3, 8, 3], 24)
    Score(reward=1.0, reason='ok', answer='8 / (3 - 8/3)', detail='')
    >>> score("<answer>2.5*4</answer>", [2, 5, 4], 10).reason, score("ten", [2, 5, 4], 10).reward
    ('character', 0.0)
    """
    _check(numbers, target, rules, template)
    if rules == "tinyzero":
        found = countdown_tinyzero.verdict(text, numbers, target, template=template)
    else:
        found = _verdict(text, numbers, target, rules == "lenient", allow_unary)
    answer, reason, detail = found
    return Score(NOTHING if answer is None else RIGHT if reason == "ok" else FORMAT, reason, answer, detail)


def extract(text: object) -> str | None:
    """The content of the last ``<answer>…</answer>`` that holds neither tag, without spaces around it.

    Special tokens such as ``<|endoftext|>`` are no part of the text. Time linear in its length.

    >>> extract("<answer>1</answer> or <answer><answer>\\n2</answer>"), extract("<answer>3")
    ('2', None)
    """
    if not isinstance(text, str):
        return None
    text = _SPECIAL.sub("", text[-WINDOW_CHARS:])
    begin, found = None, None
    for tag in _TAG.finditer(text):
        if tag[0] == "<answer>":
            begin = tag.end()
        elif begin is not None:
            found, begin = (begin, tag.start()), None
    return text[found[0] : found[1]].strip() if found else None


def _verdict(text: object, numbers: Sequence[int], target: int, lenient: bool, allow_unary: bool
             ) -> tuple[str | None, str, str]:
    """(answer, reason, detail) of the strict and the lenient rules."""
    answer = extract(text)
    if answer is None:
        return None, "no_answer", ""
    try:
        tokens = _tokens(_cleaned(answer, target) if lenient else answer)
        program = postfix(tokens, max_depth=MAX_DEPTH, allow_unary=allow_unary)
        if sorted(item for item in program if not isinstance(item, str)) != sorted(numbers):
            raise ExpressionError("numbers")
        value = evaluate([item if isinstance(item, str) else Fraction(item) for item in program])
    except ExpressionError as error:
        return answer, error.reason, error.detail
    return (answer, "ok", "") if value == target else (answer, "value", str(value))


def _cleaned(answer: str, target: int) -> str:
    """What the lenient rules make of an answer."""
    if len(answer) > MAX_CHARS:
        return answer
    plain = answer.translate(_ASCII).strip().removesuffix(".").strip()
    left, sign, right = (part.strip() for part in plain.partition("="))
    if sign and right == str(target):
        return left
    return right if sign and left == str(target) else plain


def _tokens(answer: str) -> list[int | str]:
    """The tokens of an answer.

    Raises:
        ExpressionError: it is empty or too long, or something in it is no token.
    """
    if not answer:
        raise ExpressionError("empty")
    if len(answer) > MAX_CHARS:
        raise ExpressionError("too_long", str(len(answer)))
    if sign := _NO_OPERATOR.search(answer):
        raise ExpressionError("operator", sign[0])
    if wrong := _NOT_ARITHMETIC.search(answer):
        raise ExpressionError("character", wrong[0])
    return [_number(token) if token.isdigit() else token for token in _TOKEN.findall(answer)]


def _number(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ExpressionError("number_size", digits[:20])
    if digits[0] == "0" and len(digits) > 1:
        raise ExpressionError("leading_zero", digits)
    return int(digits)


def _check(numbers: Sequence[int], target: int, rules: str, template: str) -> None:
    if rules not in RULES:
        raise ConfigError("rules", rules, "one of " + ", ".join(RULES))
    if template not in TEMPLATES:
        raise ConfigError("template", template, "one of " + ", ".join(TEMPLATES))
    if not isinstance(target, Integral) or isinstance(target, bool):
        raise ConfigError("target", target, "a whole number")
    if not len(numbers) or not all(isinstance(n, Integral) and not isinstance(n, bool) and n >= 0 for n in numbers):
        raise ConfigError("numbers", numbers, "one or more whole numbers of at least 0")
