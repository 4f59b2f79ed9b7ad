"""Every setting of EMPO, with its default, and every reading that paper and published code leave open."""

from __future__ import annotations

from dataclasses import dataclass

from explorl.errors import require, require_amount
from explorl.text.clusters import RULES

_CHOICES = {
    "reward": ("p", "log_p"),
    "rule": RULES,
    "blank": ("zero", "share", "minus_half"),
    "gate": ("entropy", "frequency", "none"),
    "filtered": ("drop", "zero"),
    "answer_from": ("boxed", "final_tag", "anywhere"),
}


@dataclass(frozen=True)
class Config:
    """Settings of EMPO's reward, gate and advantage; checked when made.

    Readings:
        reward: ``p``: the share p(c) (eq 6); ``log_p``: log p(c), what the first public mathematics code paid.
        rule: who wins where an answer equals several clusters; see :func:`explorl.text.clusters.greedy`.
        blank: what a completion without an answer earns: ``zero``; its ``share`` 1/G (verl code);
            ``minus_half``: −0.5 (natural-reasoning code). It is a cluster of one in p and H in any case. Under
            ``log_p`` ``zero`` is the same as ``share``, log(1/G): 0 would be the largest reward there is.
        gate: ``entropy``: δ_low < H < δ_high (eq 7); ``frequency``: the largest share is at least
            ``min_share`` (written in the verl code, and not called there); ``none``.
        filtered: a group outside the gate is left out of the loss (``drop``: eq 7), or counts in it with reward
            and advantage ``zero`` (TRL code).
        answer_from: the last ``boxed`` content; the ``final_tag``, <final_answer> or <answer>; or ``anywhere``,
            as :func:`explorl.text.answers.extract` looks for it.

    Numbers:
        delta_low_nats: δ_low ≥ 0, in nats; H must be above it. The paper names none, the code has none: 0.
        delta_high_nats: δ_high in nats; H must be below it. None is ln G, decided by counting clusters, since
            H rounds to just below ln G at G = 3, 6, 7, 10, ….
        min_share: for ``frequency``, in [0, 1].
        adv_eps: ε > 0 beside the standard deviation (TRL code 1e-4, verl code 1e-6).
        adv_clip: largest |A|, > 0; None does not clip. See :func:`explorl.papers.empo.normalise`.

    Raises:
        ConfigError: a value that is not allowed, an empty gate, or ``minus_half`` under ``log_p``, where −0.5
            is more than most answers earn.

    >>> Config(delta_low_nats=1.0, delta_high_nats=0.5)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: delta_high_nats = 0.5: must be above delta_low_nats (1.0), else no group is kept
    """

    reward: str = "p"
    rule: str = "first_match"
    blank: str = "zero"
    gate: str = "entropy"
    delta_low_nats: float = 0.0
    delta_high_nats: float | None = None
    min_share: float = 0.25
    filtered: str = "drop"
    adv_eps: float = 1e-4
    adv_clip: float | None = None
    answer_from: str = "boxed"

    def __post_init__(self):
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            require(isinstance(value, str) and value in allowed, name, value, "one of " + ", ".join(allowed))
        require_amount("delta_low_nats", self.delta_low_nats)
        require_amount("min_share", self.min_share)
        require(self.min_share <= 1, "min_share", self.min_share, "a number from 0 to 1")
        require_amount("adv_eps", self.adv_eps, above_zero=True)
        for name in ("delta_high_nats", "adv_clip"):
            if getattr(self, name) is not None:
                require_amount(name, getattr(self, name), above_zero=True)
        high, low = self.delta_high_nats, self.delta_low_nats
        require(high is None or high > low, "delta_high_nats", high,
                f"above delta_low_nats ({low}), else no group is kept")
        require(self.reward != "log_p" or self.blank != "minus_half", "blank", self.blank,
                "zero or share with reward = 'log_p': −0.5 is more than log p of most answers")
