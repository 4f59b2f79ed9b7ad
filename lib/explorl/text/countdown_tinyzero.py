"""The verdict of TinyZero's Countdown scorer, holes included, without running text as code.

What it does differently from :func:`explorl.text.countdown.score`: only the last line is searched; every run of
digits counts as a number, so ``2.5`` uses a 2 and a 5; ``.``, ``**`` and ``//`` pass; the value is Python's own
(integers, floats, complex numbers) and may miss the target by 1e-5; and there is no limit of time.

Source: ``verl/utils/reward_score/countdown.py`` of Jiayi-Pan/TinyZero at 95df88f, unchanged in Gaojingtong/IMAGINE at
44d1632. Deviations: a power whose exact value has more than :data:`MAX_BITS` bits gets the reason ``hangs`` instead
of the time it would take (``99**98**97`` never ends there); an answer of more than :data:`MAX_CHARS` characters is
wrong; of a line only the last :data:`WINDOW_CHARS` characters are searched; a carriage return between tokens is wrong.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

from explorl.text.expression import EXACT, ExpressionError, evaluate, postfix

TEMPLATES = ("base", "qwen-instruct")
MAX_BITS = 100_000
MAX_CHARS = 2_000
WINDOW_CHARS = 100_000
MAX_DEPTH = 200
TOLERANCE = 1e-5

_NOT_ARITHMETIC = re.compile(r"[^0-9+\-*/(). \t\f]")
_NOT_TOKEN = re.compile(r"[^0-9+\-*/()]")
_TOKEN = re.compile(r"[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+|\*\*|//|[-+*/().]")


def verdict(text: object, numbers: Sequence[int], target: int, *, template: str = "base"
            ) -> tuple[str | None, str, str]:
    """(answer, reason, detail) as the official scorer decides; ``answer`` is None where it finds none.

    Args:
        text: the completion alone.
        numbers: those given.
        target: the value to hit.
        template: the prompt before the completion. The scorer reads from the first ``Assistant:`` on, which the
            ``base`` prompt holds and the ``qwen-instruct`` prompt does not, so there a completion can cut itself off.

    >>> verdict("<answer>7//2+5</answer>", [7, 2, 5], 8)
    ('7//2+5', 'ok', '')
    >>> verdict("<answer>6+4</answer>\\n", [6, 4], 10), verdict("<answer>9**9**9</answer>", [9, 9, 9], 1)[1]
    ((None, 'no_answer', ''), 'hangs')
    """
    answer = _last_line_answer(text, template)
    if answer is None:
        return None, "no_answer", ""
    if len(answer) > MAX_CHARS:
        return answer, "too_long", str(len(answer))
    try:
        if sorted(int(run) for run in re.findall(r"\d+", answer)) != sorted(numbers):
            raise ExpressionError("numbers")
        value = evaluate(postfix(_tokens(answer), max_depth=MAX_DEPTH), _PYTHON)
        right = bool(abs(value - target) < TOLERANCE)
    except ExpressionError as error:
        return answer, error.reason, error.detail
    except (OverflowError, TypeError) as error:  # a float too large; // between complex numbers
        return answer, "no_number", type(error).__name__
    return (answer, "ok", "") if right else (answer, "value", _short(value))


def _last_line_answer(text: object, template: str) -> str | None:
    if not isinstance(text, str):
        return None
    before, mark, after = text.partition("Assistant:")
    line = (after if mark and template == "qwen-instruct" else text).rpartition("\n")[2][-WINDOW_CHARS:]
    found, position = None, 0
    while True:  # the first closing tag after an opening one ends it, and what lies between may hold another
        begin = line.find("<answer>", position) + len("<answer>")
        end = line.find("</answer>", begin)
        if begin < len("<answer>") or end < 0:
            return found
        found, position = line[begin:end].strip(), end + len("</answer>")


def _tokens(answer: str) -> list:
    if not answer:
        raise ExpressionError("empty")
    if wrong := _NOT_ARITHMETIC.search(answer):
        raise ExpressionError("character", wrong[0])
    return [_number(token) if token[0].isdigit() or len(token) > 1 and token[0] == "." else _sign(token)
            for token in _TOKEN.findall(answer)]


def _number(token: str) -> int | float:
    if "." in token:
        return float(token)
    if token[0] == "0" and token.strip("0"):
        raise ExpressionError("leading_zero", token[:20])
    return int(token)


def _sign(token: str) -> str:
    if _NOT_TOKEN.search(token):
        raise ExpressionError("character", token)
    return token


def _power(base, exponent):
    """``base ** exponent`` as Python has it, unless its exact value is too long to be worked out."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent > 0:
        if abs(base) > 1 and base.bit_length() * exponent > MAX_BITS:
            raise ExpressionError("hangs", "**")
    return operator.pow(base, exponent)


def _short(value) -> str:
    exact = isinstance(value, int) and value.bit_length() > 200
    return f"about 2**{value.bit_length()}" if exact else str(value)


_PYTHON: dict[str, Callable] = EXACT | {"//": operator.floordiv, "**": _power}
