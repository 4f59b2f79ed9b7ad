"""A bound on what the answers of one group cost in processor time of math-verify."""

from collections import Counter

from explorl.text.math_equality import Verdict, ask

PAIR_SECONDS = 0.2
"""Processor time for one question; one that needs more is answered by no."""
GROUP_SECONDS = 0.4
"""Once a group's questions have taken this together, every further one is answered by no."""
STRIKES = 2
"""An answer that was in so many questions that were given up is asked about no more."""


class Budget:
    """Puts a group's questions to the helper process while they are affordable.

    What is remembered from earlier counts as much as when it was asked first, so the same answers get the same
    verdicts.

    Attributes:
        seconds: processor time so far.
        reasons: why some answers were not compared with all others: ``slow`` if a question with it was given up,
            ``skipped`` if one was not asked any more.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.reasons: dict[str, str] = {}
        self._strikes: Counter[str] = Counter()

    def ask(self, question: str, *answers: str) -> Verdict:
        """As :func:`explorl.text.math_equality.ask`, within the budget."""
        if self.seconds >= GROUP_SECONDS or any(self._strikes[answer] >= STRIKES for answer in answers):
            for answer in answers:
                self.reasons.setdefault(answer, "skipped")
            return Verdict(None, 0.0, finished=False)
        verdict = ask(question, *answers, seconds=PAIR_SECONDS)
        self.seconds += verdict.seconds
        if not verdict.finished:
            self._strikes.update(answers)
            self.reasons.update(dict.fromkeys(answers, "slow"))
        return verdict
