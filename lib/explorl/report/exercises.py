"""Check a reader's function against cases, and say which one differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np


def check(function: Callable, cases: Sequence[tuple[tuple, object]], *, tolerance: float = 1e-9) -> str:
    """The first case on which a function differs, or that all agree.

    Args:
        function: the reader's.
        cases: pairs of arguments and expected value (a number, or a list of numbers).
        tolerance: largest difference that still counts as equal.

    >>> check(lambda x: x + 1, [((1,), 2), ((2,), 4)])
    'case 2 of 2: (2,) gives 3, expected 4'
    """
    for number, (arguments, expected) in enumerate(cases, 1):
        try:
            found = function(*arguments)
        except NotImplementedError:
            return "not written yet: replace the line that raises"
        same = np.shape(found) == np.shape(expected) and found is not None
        if not same or not np.allclose(found, expected, rtol=0, atol=tolerance):
            return f"case {number} of {len(cases)}: {arguments} gives {found}, expected {expected}"
    return f"all {len(cases)} cases agree"
