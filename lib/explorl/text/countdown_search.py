"""Countdown solved by trying everything: a witness for a target, or the certainty that there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from explorl.errors import ConfigError

MAX_NUMBERS = 6
"""With four numbers a search takes up to about a millisecond, with six up to a minute."""

Term = tuple[int | Fraction, str]


def solve(numbers: Sequence[int], target: int, *, integer_steps: bool = False) -> str | None:
    """An expression that uses every number exactly once and has the value ``target``, or None if there is none.

    No intermediate value of it is negative: a difference is taken the other way round instead, which loses no
    target of at least 0.

    Args:
        numbers: one to :data:`MAX_NUMBERS`, whole and ≥ 0.
        target: whole and ≥ 0.
        integer_steps: only divisions without a remainder, as in the usual generators of the game; otherwise any.

    Raises:
        ConfigError: too many numbers, or a negative one.

    >>> solve([3, 5, 2], 16), solve([8, 3, 8, 3], 24), solve([8, 3, 8, 3], 24, integer_steps=True)
    ('(5 + 3) * 2', '8 / (3 - (8 / 3))', None)
    """
    if not 1 <= len(numbers) <= MAX_NUMBERS or min(numbers) < 0:
        raise ConfigError("numbers", list(numbers), f"1 to {MAX_NUMBERS} whole numbers of at least 0")
    if target < 0:
        raise ConfigError("target", target, "at least 0")
    found = _search([(int(n), str(n)) for n in numbers], int(target), integer_steps)
    return found.removeprefix("(").removesuffix(")") if found and found.startswith("(") else found


def needs_times_or_divide(numbers: Sequence[int], target: int) -> bool:
    """Whether plus and minus alone miss the target: no choice of signs makes the numbers sum to it.

    >>> needs_times_or_divide([44, 19, 35], 98), needs_times_or_divide([3, 5, 2], 16)
    (False, True)
    """
    return all(sum(sign * n for sign, n in zip(signs, numbers, strict=True)) != target
               for signs in product((1, -1), repeat=len(numbers)))


def _search(terms: list[Term], target: int, integer_steps: bool) -> str | None:
    if len(terms) == 1:
        return terms[0][1] if terms[0][0] == target else None
    if len(terms) == 2:
        return _last(*terms, target)
    for i, left in enumerate(terms[:-1]):
        for j in range(i + 1, len(terms)):
            rest = terms[:i] + terms[i + 1 : j] + terms[j + 1 :]
            for combined in _combined(left, terms[j], integer_steps):
                found = _search([combined, *rest], target, integer_steps)
                if found:
                    return found
    return None


def _last(left: Term, right: Term, target: int) -> str | None:
    """Two terms combined to the target, without making the values."""
    (a, x), (b, y) = left, right
    if a + b == target:
        return f"({x} + {y})"
    if a - b == target:
        return f"({x} - {y})"
    if b - a == target:
        return f"({y} - {x})"
    if a * b == target:
        return f"({x} * {y})"
    if b and a == target * b:
        return f"({x} / {y})"
    return f"({y} / {x})" if a and b == target * a else None


def _combined(left: Term, right: Term, integer_steps: bool) -> Iterator[Term]:
    """What two terms can become; the larger stands first, since the smaller first gives only signs."""
    (a, x), (b, y) = (left, right) if left[0] >= right[0] else (right, left)
    yield a + b, f"({x} + {y})"
    yield a - b, f"({x} - {y})"
    yield a * b, f"({x} * {y})"
    for over, under, u, v in ((a, b, x, y), (b, a, y, x)):
        if under and over % under == 0:
            yield over // under, f"({u} / {v})"
        elif under and not integer_steps:
            yield Fraction(over, under), f"({u} / {v})"
