r"""Symbolic equality of two LaTeX answers, around math-verify.

math-verify's own time limits use signals and so fail outside the main thread; sympy can spend hours on
``9^{9^9}``. Here a cheap structural check turns away such answers, and math-verify runs in a helper process
(:mod:`explorl.text.math_worker`) in which every comparison has a limit of processor time. So :func:`math_equal`
works in any thread, and a busy machine does not change its verdicts.
"""

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from explorl.text.math_process import WORKER as _WORKER

MAX_CHARS = 500
MAX_NESTING = 12
MAX_DIGITS = 100
CPU_SECONDS = 1.0
"""Processor time for one comparison; one that needs more is judged unequal."""

REASONS = ("ok", "blank", "no_text", "too_long", "too_deep", "unbalanced", "long_number", "bomb")
"""What :func:`reason` says of an answer; only ``ok`` ones are worked out."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,59}|[1-9][0-9]{0,2}(?:(?:,|\{,\})[0-9]{3}){1,19})")
_DECIMAL = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?")
_RATIO = re.compile(r"(-?)(?:\\[dt]?frac\{(-?[0-9]{1,60})\}\{([0-9]{1,60})\}|([0-9]{1,60})/([0-9]{1,60}))")
_BRACKET = re.compile(r"\\.|[{}()\[\]]", re.DOTALL)
_LONG_DIGITS = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")
_POWER = r"\s*(?:\^|\*\*)[\s{(+-]*"
_HUGE_POWER = re.compile(rf"{_POWER}[0-9]{{5}}|[0-9]{_POWER}[0-9]+[\s}})]*{_POWER}(?:[5-9]|[0-9]{{2}})")
_HUGE_FACTORIAL = re.compile(r"[0-9]{4}[\s)}\]]*!|[0-9][\s)}\]]*![\s)}\]]*!")


class Verdict(NamedTuple):
    """What the helper process made of a question: ``finished`` unless a limit of processor time ended it."""

    reply: object
    seconds: float = 0.0
    finished: bool = True

    @property
    def equal(self) -> bool:
        return self.reply is True


@lru_cache(maxsize=4096)
def ask(question: str, *answers: str, seconds: float = CPU_SECONDS) -> Verdict:
    """Put a question of :mod:`explorl.text.math_worker` to the helper process; verdicts are remembered.

    Raises:
        RuntimeError: if math-verify cannot be started at all.
    """
    reply, spent = _WORKER.ask(seconds, question, *answers)
    return Verdict(reply, spent, finished=reply is not None)


def math_equal(a: str, b: str) -> bool:
    r"""Whether two LaTeX answers mean the same: equal strings, or math-verify says so *in both directions*.

    One direction alone is not symmetric (``1<x<2`` accepts ``(1,2)``, not the reverse), and a clustering of
    answers needs a symmetric test. The relation is still not transitive: 50\% equals 50 and 1/2.

    Args:
        a: an answer without its box, such as ``\frac{1}{2}``.
        b: the other one.

    Returns:
        False if either is blank, is no string, or (unless the strings are equal) has more than ``MAX_CHARS``
        characters, is nested deeper than ``MAX_NESTING``, has unmatched braces, a number of more than
        ``MAX_DIGITS`` digits, or a power or factorial too large to work out, or needs more than
        ``CPU_SECONDS``. Never raises on text.

    Raises:
        RuntimeError: if math-verify cannot be started at all.

    >>> math_equal(r"\frac{1}{2}", "0.5"), math_equal("1<x<2", "(1,2)"), math_equal("", "")
    (True, False, False)
    """
    return judge("both", a, b)


def math_accepts(gold: str, pred: str) -> bool:
    r"""Whether math-verify takes ``pred`` for ``gold``: one direction of :func:`math_equal`, so not symmetric.

    Args:
        gold: the reference answer, without its box.
        pred: the answer to judge.

    Returns:
        As :func:`math_equal`, with the same limits.

    >>> math_accepts("1<x<2", "(1,2)"), math_accepts("(1,2)", "1<x<2")
    (True, False)
    """
    return judge("one", gold, pred)


def judge(way: str, a: str, b: str, ask: Callable[..., Verdict] = ask) -> bool:
    """Compare ``both`` ways, or ``one`` way with ``a`` as gold; math-verify is asked only where it must be.

    >>> judge("both", "x=5", "5"), judge("one", "(1,2)", "1<x<2")
    (True, False)
    """
    cheap = decided(a, b)
    if cheap is not None:
        return cheap
    a, b = a.strip(), b.strip()
    return ask(way, *(sorted((a, b)) if way == "both" else (a, b))).equal


def decided(a: object, b: object) -> bool | None:
    """Equality where it can be told without math-verify; ``None`` where math-verify has to be asked.

    Blanks and what is no string equal nothing; equal strings are equal; plain numbers are compared by value; an
    answer that is not :func:`tractable` equals only itself.

    >>> decided("1,000", "1000"), decided("9^{9^9}", "3"), decided("x=5", "5")
    (True, False, None)
    """
    if not (isinstance(a, str) and isinstance(b, str)):
        return False
    a, b = a.strip(), b.strip()
    if not a or not b or a == b:
        return a == b != ""
    by_value = _by_value(a, b)
    if by_value is not None:
        return by_value
    return None if tractable(a) and tractable(b) else False


def integer(answer: str) -> int | None:
    """The value of a plain integer, thousands commas included; ``None`` for anything else, also ``007``.

    math-verify compares two of these by ``==`` and nothing else.

    >>> integer("1,000"), integer("007"), integer("12,34")
    (1000, None, None)
    """
    return int(answer.replace("{,}", "").replace(",", "")) if _INTEGER.fullmatch(answer) else None


def rational(answer: str) -> Fraction | None:
    r"""The value of a plain integer, decimal or fraction of integers; ``None`` for anything else.

    >>> rational(r"-\frac{1}{2}"), rational("0.50"), rational(r"50\%")
    (Fraction(-1, 2), Fraction(1, 2), None)
    """
    whole = integer(answer)
    if whole is not None:
        return Fraction(whole)
    if _DECIMAL.fullmatch(answer):
        return Fraction(answer)
    ratio = _RATIO.fullmatch(answer)
    if not ratio:
        return None
    sign, *parts = (part for part in ratio.groups() if part is not None)
    above, below = map(int, parts)
    return Fraction(-above if sign else above, below) if below else None


def _by_value(a: str, b: str) -> bool | None:
    """Equality of two plain numbers where math-verify could only agree; ``None`` where it has to be asked.

    Its decimals are rounded to 1e-6 and have 15 digits or more, so it is asked about neighbours, and about equals
    of which one is a long decimal. A percentage may be taken for x or for x/100, so it is asked unless both are
    far.
    """
    xs, ys = _readings(a), _readings(b)
    if not xs or not ys:
        return None
    if len(xs) == len(ys) == 1:
        if xs == ys:
            return True if "." not in a + b or max(len(a), len(b)) <= 15 else None
        if "." not in a + b:
            return False
    return False if all(_far(x, y) for x in xs for y in ys) else None


def _readings(answer: str) -> list[Fraction]:
    """The values that a plain number or percentage may be taken for."""
    value = rational(answer.removesuffix(r"\%"))
    if value is None:
        return []
    return [value, value / 100] if answer.endswith(r"\%") else [value]


def _far(x: Fraction, y: Fraction) -> bool:
    return abs(x - y) > max(Fraction(1, 10**5), max(abs(x), abs(y)) / 10**9)


def tractable(answer: str) -> bool:
    r"""Whether an answer is small and simple enough to be worked out.

    >>> tractable(r"\frac{1}{2}"), tractable("9^{9^9}")
    (True, False)
    """
    return reason(answer) in ("ok", "blank")


def reason(answer: object) -> str:
    r"""Why an answer is, or is not, compared by its meaning: one of ``REASONS``.

    >>> reason(r"\frac{1}{2}"), reason("9^{9^9}"), reason(r"\frac{1}{2"), reason(" ")
    ('ok', 'bomb', 'unbalanced', 'blank')
    """
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        return "blank"
    if not isinstance(answer, str):
        return "no_text"
    if len(answer) > MAX_CHARS:
        return "too_long"
    nesting = _nesting(answer)
    if nesting > MAX_NESTING:
        return "unbalanced" if math.isinf(nesting) else "too_deep"
    if _LONG_DIGITS.search(answer):
        return "long_number"
    return "bomb" if _HUGE_POWER.search(answer) or _HUGE_FACTORIAL.search(answer) else "ok"


def _nesting(answer: str) -> float:
    """How deep brackets of any kind are nested; infinity if the braces that group do not match."""
    depth = deepest = groups = 0
    for token in _BRACKET.findall(answer):
        depth += (token[-1] in "{([") - (token[-1] in "})]")
        groups += (token == "{") - (token == "}")
        if groups < 0:
            return math.inf
        deepest = max(deepest, depth)
    return math.inf if groups else deepest
