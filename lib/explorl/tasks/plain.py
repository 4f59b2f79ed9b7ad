"""Questions as plain text without chat markup, as IMAGINE asks GSM8K and AIME; in our own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explorl.errors import require
from explorl.tasks.problem import Problem, Split

INSTRUCTIONS = {
    "hash": 'Think it through in steps, then write the number that answers the question after "####".',
    "answer": "Think it through in steps. Let the last line be of the form Answer: N, where N is an integer.",
}
"""Form of the answer, as :mod:`explorl.text.marked` reads it → the words behind the question."""


def render(problem: Problem, form: str) -> str:
    """The text that the policy continues.

    Args:
        problem: the question.
        form: of :data:`INSTRUCTIONS`.

    Raises:
        ConfigError: unknown form.

    >>> render(Problem("2 + 2?", "4", "k"), "answer").splitlines()[0][:24]
    '2 + 2? Think it through '
    """
    require(form in INSTRUCTIONS, "form", form, "one of " + ", ".join(INSTRUCTIONS))
    return f"{problem.prompt} {INSTRUCTIONS[form]}\n"


def asked(problems: Split, form: str) -> Split:
    """The same split, each prompt as :func:`render` has it."""
    def put(part: Sequence[Problem]) -> tuple[Problem, ...]:
        return tuple(replace(problem, prompt=render(problem, form)) for problem in part)

    return Split(put(problems.train), put(problems.select), put(problems.test))
