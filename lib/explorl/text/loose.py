r"""An imitation of the grader of EMPO's verl code, to show what a loose equality does to clusters. Never a default.

That grader (``empo_verify.py`` of QingyangZhang/EMPO at c5eccd4) says equal if any of three stages does: strings
without units, percent and degree signs; numbers within 0.2 %, after rounding both to the fewer decimals of the
two, or their mantissas likewise, π being 3.14159…, 3.14 or 180; math-verify at a precision of 3 digits, or a number
inside the reference interval. The last two are tried again on what follows the last ``=``.

Deviations: no text is evaluated as code (the original does); expressions with letters are left to math-verify; the
list of units is shorter; no language model is asked.
"""

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal

from explorl.text.math_equality import Verdict, ask, tractable

TOLERANCE = 2e-3 * 1.01
Ask = Callable[..., Verdict]

_UNITS = re.compile(
    r"(^|\W)(?:degrees?|inch(?:es)?|feet|ft|miles?|cm|mm|kg|lb|yards?|gallons?|lit(?:er|re)s?|met(?:er|re)s?|mph|"
    r"kmph|days?|hours?|hr|minutes?|min|seconds?|sec|months?|years?|yr|percent|square|cubic|sq|units?|men|women|"
    r"apples?|coins?|rupees?|rs|am|pm)(?=$|\W)"
)
_CLEAN = (
    (re.compile(r"\\text\{(.+?)\}"), r"\1", True),  # only around the whole
    (re.compile(r"\\!|\\left(?![a-z])|\\right(?![a-z])|\n"), "", False),
    (re.compile(r"\\[dt]frac"), r"\\frac", False),
    (re.compile(r"(?<=.)\\text\{[^{}]*\}$"), "", False),
    (_UNITS, r"\1", False),
    (re.compile(r"\^\s*(?:\{\\circ\}|\\circ)|\\?[$%]"), "", False),
    (re.compile(r"^[^=]{0,2}=(?=[^=]*$)"), "", False),
    (re.compile(r"\s+"), "", False),
    (re.compile(r"^(-?)0?\.5$"), r"\1\\frac{1}{2}", True),
    (re.compile(r"(-?[0-9]+)/([0-9]+)"), r"\\frac{\1}{\2}", True),
)
_FRACTION = re.compile(r"-?[0-9]+/0*[1-9][0-9]*")
_TUPLE = re.compile(r"([(\[])([^()\[\]]*)([)\]])")
_COMMA = re.compile(r"(?<=[0-9])(?:,|\{,\})(?=[0-9]{3}(?:$|[^0-9]))")
_YES, _NO = {"true", "t", "yes", "y"}, {"false", "f", "no", "n"}


def loosely_accepts(gold: str, pred: str, ask: Ask = ask) -> bool:
    """Whether the loose grader takes ``pred`` for ``gold``; not symmetric, not transitive, and often wrong.

    Args:
        gold: the reference answer, without its box.
        pred: the answer to judge.
        ask: puts a question to math-verify: :func:`explorl.text.math_equality.ask`, or that of a budget.

    Returns:
        False if either is blank or no string. Never raises on text.

    >>> loosely_accepts("2024", "2025"), loosely_accepts("3", "3.49"), loosely_accepts("36", "35")
    (True, True, False)
    """
    if not (isinstance(gold, str) and isinstance(pred, str) and gold.strip() and pred.strip()):
        return False
    if gold.strip() == pred.strip():
        return True
    if not (tractable(gold) and tractable(pred)):
        return False
    if _cleaned(gold) == _cleaned(pred):
        return True
    tries = list(dict.fromkeys([(gold, pred), (gold.split("=")[-1], pred.split("=")[-1])]))
    if any(_close(*pair, ask) for pair in tries):
        return True
    return any(ask("loose", *pair).equal for pair in tries)


def _cleaned(answer: str) -> str:
    """Stage 1: the string without units and spelling."""
    for pattern, instead, whole in _CLEAN:
        if not whole:
            answer = pattern.sub(instead, answer) or answer
        elif found := pattern.fullmatch(answer.strip()):
            answer = found.expand(instead)
    return answer


def _close(gold: str, pred: str, ask: Ask) -> bool:
    """Stage 2: element by element, the numbers close."""
    golds, preds = _elements(gold), _elements(pred)
    brackets_differ = len(golds) > 1 and (golds[0], golds[-1]) != (preds[0], preds[-1])
    if len(golds) != len(preds) or brackets_differ:
        return False
    return all(_close_elements(one, other, ask) for one, other in zip(golds, preds, strict=True))


def _elements(answer: str) -> list[str]:
    """The parts of a tuple or an interval between its two brackets; of anything else, the whole."""
    plain = _COMMA.sub("", _CLEAN[0][0].sub(r"\1", answer.strip()) if answer.startswith(r"\text{") else answer)
    plain = _UNITS.sub(r"\1", re.sub(r"\\?[$%]|\^\s*(?:\{\\circ\}|\\circ)", "", plain)).strip().lower() or plain
    split = _TUPLE.fullmatch(plain)
    return [split[1], *(part.strip() for part in split[2].split(",")), split[3]] if split else [plain]


def _close_elements(gold: str, pred: str, ask: Ask) -> bool:
    if gold == pred or {gold, pred} <= _YES or {gold, pred} <= _NO:
        return True
    if _FRACTION.fullmatch(gold) and _FRACTION.fullmatch(pred):
        return False
    both_plain = _plain_number(gold) is not None and _plain_number(pred) is not None
    rounded = both_plain or "pi" in gold or "pi" in pred
    for x, y in zip(_values(gold, ask), _values(pred, ask), strict=False):
        if abs(x - y) / (abs(x) or 1) <= TOLERANCE or (rounded and _close_when_rounded(x, y)):
            return True
    return False


def _values(text: str, ask: Ask) -> list[float]:
    """What an element is worth under the three readings of π; none if it is no number."""
    plain = _plain_number(text)
    if plain is not None:
        return [plain] * 3
    if not tractable(text) or not re.search(r"[0-9]|\\pi", text):
        return []
    return ask("values", text).reply or []


def _plain_number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def _close_when_rounded(gold: float, pred: float) -> bool:
    """Within 0.2 % once rounded to the fewer decimals of the two; or their mantissas, at equal exponents."""
    places = min(_decimals(gold), _decimals(pred))
    x, y = round(gold, places), round(pred, places)
    if x == 0:
        return False  # the original divides by it, and gives this stage up
    if abs(x - y) / abs(x) <= TOLERANCE:
        return True
    (base_x, exponent_x), (base_y, exponent_y) = (f"{number:.2e}".split("e") for number in (gold, pred))
    if exponent_x != exponent_y:
        return False
    places = min(_decimals(float(base_x)), _decimals(float(base_y)))
    unit = Decimal(1).scaleb(-places)
    x, y = (Decimal(base).quantize(unit, ROUND_HALF_EVEN) for base in (base_x, base_y))
    return abs(x - y) <= TOLERANCE


def _decimals(number: float) -> int:
    """Decimal places that a number needs, to within 1e-6."""
    digits = format(Decimal(str(number)).normalize(), "f").partition(".")[2]
    return next((k for k in range(1, len(digits)) if abs(number - round(number, k)) <= 1e-6), len(digits))
