"""IMAGINE's outcome scores as reward functions for an unmodified ``trl.GRPOTrainer(reward_funcs=[…])``.

The bonus is no reward: it is added after TRL has formed the advantages, where no reward function reaches. What fits
here is the score of eq 8 that it stands on: 1 right, 0.1 well formed, 0 neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from explorl.errors import require
from explorl.papers.method import message_text
from explorl.text import countdown, marked

Reward = Callable[..., list[float]]


def countdown_reward(*, rules: str = "strict", template: str = "base") -> Reward:
    """Countdown's score; the data set has columns ``numbers`` and ``target``.

    Args:
        rules: one of :data:`explorl.text.countdown.RULES`.
        template: of the prompt; only ``rules`` = "tinyzero" reads it.

    Raises:
        ConfigError: unknown rules or template; when called, not one ``numbers`` and ``target`` for each completion.

    >>> reward = countdown_reward()
    >>> texts = ["<answer>6*4</answer>", "<answer>6+4</answer>", "24"]
    >>> reward(completions=texts, numbers=[[6, 4]] * 3, target=[24] * 3)
    [1.0, 0.1, 0.0]
    """
    countdown.score("", [1], 1, rules=rules, template=template)

    def countdown_score(*, completions: Sequence, numbers: Sequence, target: Sequence, **columns) -> list[float]:
        for name, column in (("numbers", numbers), ("target", target)):
            _aligned(name, column, completions)
        return [countdown.score(message_text(text), given, wanted, rules=rules, template=template).reward
                for text, given, wanted in zip(completions, numbers, target)]

    return countdown_score


def marked_reward(form: str, *, rules: str = "strict") -> Reward:
    """The score of an answer behind a mark; the data set has a column ``gold``.

    Args:
        form: one of :data:`explorl.text.marked.FORMS`: ``hash`` for GSM8K, ``answer`` for AIME.
        rules: one of :data:`explorl.text.marked.RULES`.

    Raises:
        ConfigError: unknown form or rules; when called, not one ``gold`` for each completion.

    >>> marked_reward("hash")(completions=["so #### 18", "#### 3", "18"], gold=["18"] * 3)
    [1.0, 0.1, 0.0]
    """
    marked.score("", "", form=form, rules=rules)

    def marked_score(*, completions: Sequence, gold: Sequence, **columns) -> list[float]:
        _aligned("gold", gold, completions)
        return [marked.score(message_text(text), str(answer), form=form, rules=rules).reward
                for text, answer in zip(completions, gold)]

    return marked_score


def lost_answers(completions: Sequence[str], numbers: Sequence[Sequence[int]], targets: Sequence[int], *,
                 template: str = "base") -> Mapping[str, float]:
    """How often layout alone costs a right Countdown answer its reward under TinyZero's rules, and the reverse.

    Args:
        completions: N texts, without the prompt.
        numbers, targets: of their problems.
        template: of the prompt.

    Returns:
        ``lost``: share of the N that are right and score 0 there; ``false``: share that score 1 there and are not
        right; ``hangs``: share that would hold up the trainer. NaN for no completions.

    >>> lost_answers(["<answer>6*4</answer>\\nDone."], [[6, 4]], [24])["lost"]
    1.0
    """
    for name, column in (("numbers", numbers), ("targets", targets)):
        _aligned(name, column, completions)
    ours, theirs = ([countdown.score(*row, rules=rules, template=template)
                     for row in zip(completions, numbers, targets)] for rules in ("strict", "tinyzero"))
    pairs = list(zip(ours, theirs))
    found = {"lost": [a.reward == 1 and b.reward == 0 for a, b in pairs],
             "false": [a.reward < 1 and b.reward == 1 for a, b in pairs],
             "hangs": [b.reason == "hangs" for b in theirs]}
    return {name: float(np.mean(flags)) if flags else float("nan") for name, flags in found.items()}


def _aligned(name: str, column: Sequence, completions: Sequence) -> None:
    require(len(column) == len(completions), name, f"{len(column)} entries", f"{len(completions)}, one per completion")
