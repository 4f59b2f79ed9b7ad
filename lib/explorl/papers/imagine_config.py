"""Every setting of IMAGINE, with its default, and every reading that paper and published code leave open."""

from __future__ import annotations

from dataclasses import dataclass

from explorl.errors import require, require_amount

SOURCES = ("rnd", "none", "uniform", "constant", "length", "shuffled")
_CHOICES = {
    "novelty_input": ("flat_bn", "pooled"),
    "embedding": ("shared", "own", "frozen"),
    "pad": ("own", "zero"),
    "novelty_scale": ("minmax", "quantile", "rank", "running_std"),
    "minmax_scope": ("batch", "group"),
    "novelty_order": ("reward_then_update", "update_then_reward"),
    "integration": ("post", "pre"),
    "ppo_bonus": ("post_whiten_last", "pre_whiten_last"),
    "bonus_source": SOURCES,
    "control_level": ("matched", "alpha"),
    "lone": ("raise", "score"),
}
_SWITCHES = ("error_mask", "center_bonus")
_WHOLE = {"emb_dim": 1, "out_dim": 1, "max_prompt_tokens": 0, "max_completion_tokens": 1, "seed": 0}


@dataclass(frozen=True)
class Config:
    """Settings of the novelty, of the bonus and of where it is added; checked when made.

    The bonus (eq 6, 9):
        alpha: α ≥ 0, the largest bonus; a literal 0.5 in the published code.
        decay_gamma: γ > 0 of the factor γ/(γ + n), n the reward calls completed before.
        error_mask: right answers get none (eq 6).
        novelty_scale: how errors become numbers up to 1. ``minmax`` (eq 9); ``quantile`` puts 0 and 1 at the 5 %
            and 95 % quantiles, so that one long row does not set the scale; ``rank``; ``running_std`` divides by
            the deviation of all errors so far (eq 4–5; the result is not bounded).
        minmax_scope: the rows that set the scale: the ``batch`` (published code) or the ``group``.
        center_bonus: subtract the mean bonus of the group's paid rows, so that only differences are left.

    Where it is added (eq 7):
        integration: ``post``: to the advantage; ``pre``: to the score, before the group is normalised.
        ppo_bonus: at the last token, after whitening (the paper) or before (the published code).
        adv_eps: ε > 0 beside the group's standard deviation; 1e-10 in the published code.
        lone: a group of one: ``raise``, or its ``score`` is its advantage (published code).

    Who gets it (the controls that the paper lacks):
        bonus_source: ``rnd``; ``none``: novelty is measured and not paid; ``uniform`` draws; a ``constant``;
            ``length``; ``shuffled``: RND's own bonuses, dealt out to other wrong rows.
        control_level: ``matched``: constant, uniform and length pay as much in all as RND would, to the same
            rows; ``alpha``: they span [0, α], which is far more than what most rows get from RND.

    The networks (eq 5):
        novelty_input: ``flat_bn``: every position has its own inputs, normalised over the batch (published code);
            ``pooled``: mean of fixed token vectors, normalised by itself. They measure different things.
        embedding: with ``flat_bn``: ``shared`` by both networks and trained (published code); ``own``: the
            target's is fixed; ``frozen``: one, fixed. The normalisation's scale and shift go with it.
        pad: what stands at empty positions: an index of its ``own``, or token ``zero`` (published code).
        novelty_order: whether errors are read before the predictor is updated (published code) or after
            (Algorithm 1).
        emb_dim, hidden, out_dim: sizes of the token vectors, the hidden layers and the output.
        lr, weight_decay: of the predictor's AdamW.
        max_prompt_tokens, max_completion_tokens: positions; a longer prompt loses its beginning, a longer
            completion its end.
        seed: of the networks and of the controls' draws.

    >>> Config(alpha=-1)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: alpha = -1: must be a finite number from 0 up
    """

    alpha: float = 0.5
    decay_gamma: float = 40.0
    error_mask: bool = True
    novelty_scale: str = "minmax"
    minmax_scope: str = "batch"
    center_bonus: bool = False
    integration: str = "post"
    ppo_bonus: str = "post_whiten_last"
    adv_eps: float = 1e-6
    lone: str = "raise"
    bonus_source: str = "rnd"
    control_level: str = "matched"
    novelty_input: str = "flat_bn"
    embedding: str = "shared"
    pad: str = "own"
    novelty_order: str = "reward_then_update"
    emb_dim: int = 16
    hidden: tuple[int, ...] = (16, 8)
    out_dim: int = 1
    lr: float = 1e-3
    weight_decay: float = 0.01
    max_prompt_tokens: int = 256
    max_completion_tokens: int = 1024
    seed: int = 0

    def __post_init__(self):
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            require(isinstance(value, str) and value in allowed, name, value, "one of " + ", ".join(allowed))
        for name in _SWITCHES:
            require(isinstance(getattr(self, name), bool), name, getattr(self, name), "True or False")
        for name, low in _WHOLE.items():
            value = getattr(self, name)
            require(_whole(value, low), name, value, f"a whole number from {low} up")
        for name in ("alpha", "weight_decay"):
            require_amount(name, getattr(self, name))
        for name in ("decay_gamma", "adv_eps", "lr"):
            require_amount(name, getattr(self, name), above_zero=True)
        sizes = isinstance(self.hidden, (tuple, list)) and all(_whole(size, 1) for size in self.hidden)
        require(sizes, "hidden", self.hidden, "whole numbers from 1 up, one for each hidden layer")
        object.__setattr__(self, "hidden", tuple(self.hidden))
        if self.novelty_scale == "running_std":
            require(self.minmax_scope == "batch", "minmax_scope", self.minmax_scope,
                    "batch with novelty_scale = 'running_std': the deviation is that of all errors so far")

    @property
    def max_positions(self) -> int:
        """Positions of a row: prompt, then completion."""
        return self.max_prompt_tokens + self.max_completion_tokens


def _whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


OFFICIAL = Config(adv_eps=1e-10, lone="score", pad="zero", ppo_bonus="pre_whiten_last")
"""Gaojingtong/IMAGINE at 44d1632, so far as settings go; its missing guards are in
:mod:`explorl.papers.imagine_published`."""
