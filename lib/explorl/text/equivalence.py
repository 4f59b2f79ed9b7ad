r"""Whether two answers mean the same: one interface, several back ends, by name.

EMPO clusters by "bidirectional entailment" of the final answers. For mathematics that is math-verify in both
directions; the other back ends are for other tasks, or show what the published code really did.

================  =========================================================================================
name              two answers are equal if
================  =========================================================================================
``math``          math-verify says so in both directions (:func:`explorl.text.answers.math_equal`)
``math_one_way``  math-verify takes the later one for the earlier one (first public code); not symmetric
``numeric``       their canonical forms are equal (:func:`explorl.text.answers.same`)
``choice``        they name the same letter, or the same option text
``exact``         they are the same string, once written alike (TRL code since June 2025)
``loose``         the verl code's grader might say so; it takes 2024 for 2025: for teaching only
================  =========================================================================================
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from explorl.errors import ConfigError
from explorl.text import math_equality
from explorl.text.answers import canonical
from explorl.text.clusters import EQUALS_NOTHING
from explorl.text.loose import loosely_accepts
from explorl.text.math_budget import Budget

NAMES = ("math", "numeric", "choice", "exact", "loose", "math_one_way")

_WHOLE_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed)\s*\{([^{}]*)\}")
_UNIT = re.compile(r"(?<=[0-9])(?:\\[ ,]|~|\s)*\\(?:text|mathrm)\s*\{[^{}]*\}$")


class Equivalence(Protocol):
    """What clustering asks of a back end. ``equal(a, b)``: ``a`` is the earlier answer, the representative."""

    name: str

    def __call__(self, a: str, b: str) -> bool:
        """Whether the two mean the same; never raises on text."""

    def bucket(self, answer: str) -> Hashable | None:
        """A key that decides alone: two answers that both have one are equal exactly if the keys are."""

    def about(self, question: str) -> "Equivalence":
        """The same judge with the question at hand; one that does not read it returns itself."""

    def group(self) -> "Equivalence":
        """A view for the answers of one group: it may bound, and remember, what the group costs."""

    def reason(self, answer: str) -> str:
        """``ok``, or why the answer is not compared by its meaning: a code."""


@dataclass(frozen=True)
class Keyed:
    """A back end under which answers are equal if their keys are: an equivalence in the strict sense."""

    name: str
    key: Callable[[str], Hashable]

    def __call__(self, a: str, b: str) -> bool:
        return self.bucket(a) == self.bucket(b)

    def bucket(self, answer: str) -> Hashable:
        return EQUALS_NOTHING if self.reason(answer) in ("blank", "no_text") else self.key(answer)

    def about(self, question: str) -> "Keyed":
        return self

    def group(self) -> "Keyed":
        return self

    def reason(self, answer: str) -> str:
        known = math_equality.reason(answer)
        if known in ("blank", "no_text"):
            return known
        return "unreadable" if self.key(answer) is EQUALS_NOTHING else "ok"


@dataclass(frozen=True)
class Verified:
    """A back end that asks math-verify: without a budget, each question has ``math_equality.CPU_SECONDS``.

    In a :meth:`group`, comparisons that the group cannot afford count as unequal, and their answers have the
    reason ``slow`` or ``skipped``.
    """

    name: str
    compare: Callable[[str, str, Callable[..., math_equality.Verdict]], bool]
    key: Callable[[str], Hashable | None] = lambda answer: None
    budget: Budget | None = None

    def __call__(self, a: str, b: str) -> bool:
        return self.compare(a, b, self.budget.ask if self.budget else math_equality.ask)

    def bucket(self, answer: str) -> Hashable | None:
        return self.key(answer) if isinstance(answer, str) else None

    def about(self, question: str) -> "Verified":
        return self

    def group(self) -> "Verified":
        return self if self.budget else replace(self, budget=Budget())

    def reason(self, answer: str) -> str:
        given_up = self.budget.reasons if self.budget else {}
        return given_up.get(str(answer).strip()) or math_equality.reason(answer)


def load(name: str) -> Equivalence:
    r"""The back end of that name: see the table at the top of this module.

    Raises:
        ConfigError: unknown name.

    >>> load("math")(r"\frac{1}{2}", "0.5"), load("exact")(r"\frac{1}{2}", "0.5")
    (True, False)
    """
    if name not in NAMES:
        raise ConfigError("equality", name, "one of " + ", ".join(NAMES))
    return _LOADED[name]


def exact(a: str, b: str) -> bool:
    r"""Equal strings, once written alike: no arithmetic, and case counts. A blank equals nothing.

    >>> exact(r"5\text{ cm}", "5"), exact("1/2", "0.5"), exact("Paris", "paris")
    (True, False, False)
    """
    return load("exact")(a, b)


def written_alike(answer: str) -> str:
    r"""The string that ``exact`` compares: as the published extraction leaves it.

    Without a unit after a number, the dollar sign, the braces of ``1{,}000`` and a ``\text{…}`` around the whole.
    """
    plain = answer.replace("{,}", ",").replace(r"\$", "").strip().strip("$").strip()
    whole = _WHOLE_TEXT.fullmatch(plain)
    return whole[1].strip() if whole else _UNIT.sub("", plain)


def _canonical(mode: str) -> Callable[[str], Hashable]:
    def key(answer: str) -> Hashable:
        form = canonical(answer, mode)
        return EQUALS_NOTHING if form is None else form

    return key


_LOADED: dict[str, Equivalence] = {
    "math": Verified("math", partial(math_equality.judge, "both"), math_equality.integer),
    "math_one_way": Verified("math_one_way", partial(math_equality.judge, "one"), math_equality.integer),
    "numeric": Keyed("numeric", _canonical("numeric")),
    "choice": Keyed("choice", _canonical("choice")),
    "exact": Keyed("exact", written_alike),
    "loose": Verified("loose", lambda a, b, ask: loosely_accepts(b, a, ask)),
}
