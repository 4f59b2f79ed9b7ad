r"""Whether two answers mean the same: one interface, several back ends, by name.

EMPO clusters by "bidirectional entailment" of the final answers. For mathematics that is math-verify in both
directions; the other back ends are for other tasks, or show what the published code really did.
"""

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from explorl.errors import ConfigError
from explorl.text.answers import canonical, same
from explorl.text.math_equality import math_accepts, math_equal

_WHOLE_TEXT = re.compile(r"\\(?:text|textbf|mathrm|mathbf|boxed)\s*\{([^{}]*)\}")
_UNIT = re.compile(r"(?<=[0-9])(?:\\[ ,]|~|\s)*\\(?:text|mathrm)\s*\{[^{}]*\}$")

NAMES = ("math", "numeric", "choice", "exact", "loose", "math_one_way")


class Equivalence(Protocol):
    """What clustering asks of a back end. ``equal(a, b)``: ``a`` is the earlier answer, the representative."""

    name: str

    def __call__(self, a: str, b: str) -> bool:
        """Whether the two mean the same; never raises on text."""

    def bucket(self, answer: str) -> Hashable | None:
        """A key that decides alone: two answers that have one are equal exactly if the keys are."""

    def about(self, question: str) -> "Equivalence":
        """The same judge with the question at hand; one that does not read it returns itself."""


@dataclass(frozen=True)
class Text:
    """A back end that reads only the two answers."""

    name: str
    equal: Callable[[str, str], bool]
    key: Callable[[str], Hashable | None] = lambda answer: None

    def __call__(self, a: str, b: str) -> bool:
        return self.equal(a, b)

    def bucket(self, answer: str) -> Hashable | None:
        return self.key(answer)

    def about(self, question: str) -> "Text":
        return self


def load(name: str) -> Equivalence:
    r"""The text back end of that name.

    ``math``: :func:`explorl.text.answers.math_equal`, both directions. ``math_one_way``: math-verify with the
    representative as gold only (first public code). ``numeric``, ``choice``: equal canonical forms
    (:func:`explorl.text.answers.same`). ``exact``: equal strings (TRL code since June 2025). ``loose``: imitates
    the grader of the verl code, which takes 2024 for 2025; for teaching only.

    Raises:
        ConfigError: unknown name.

    >>> load("math")(r"\frac{1}{2}", "0.5"), load("exact")(r"\frac{1}{2}", "0.5")
    (True, False)
    """
    if name not in NAMES:
        raise ConfigError("equality", name, "one of " + ", ".join(NAMES))
    return _LOADERS[name]()


def exact(a: str, b: str) -> bool:
    r"""Equal strings, once written alike: no arithmetic, and case counts. A blank equals nothing.

    Written alike means what the published extraction leaves: without a unit after a number, the dollar sign,
    the braces of ``1{,}000`` and a ``\text{…}`` around the whole.

    >>> exact(r"5\text{ cm}", "5"), exact("1/2", "0.5"), exact("Paris", "paris")
    (True, False, False)
    """
    return isinstance(a, str) and isinstance(b, str) and written_alike(a) == written_alike(b) != ""


def written_alike(answer: str) -> str:
    r"""What :func:`exact` compares."""
    plain = answer.replace("{,}", ",").replace(r"\$", "").strip().strip("$").strip()
    whole = _WHOLE_TEXT.fullmatch(plain)
    return whole[1].strip() if whole else _UNIT.sub("", plain)


def _canonical_key(mode: str) -> Callable[[str], Hashable]:
    def key(answer: str) -> Hashable:
        form = canonical(answer, mode)
        return object() if form is None else form  # no answer equals nothing, not even itself

    return key


_LOADERS: dict[str, Callable[[], Equivalence]] = {
    "math": lambda: Text("math", math_equal),
    "math_one_way": lambda: Text("math_one_way", math_accepts),
    "numeric": lambda: Text("numeric", lambda a, b: same(a, b, "numeric"), _canonical_key("numeric")),
    "choice": lambda: Text("choice", lambda a, b: same(a, b, "choice"), _canonical_key("choice")),
    "exact": lambda: Text("exact", exact, written_alike),
    "loose": lambda: Text("loose", exact),
}
