"""What the trainer asks of a paper: three questions, each with plain GRPO's answer as the default.

==========  ==========================================================  ============================
seam        question                                                    plain GRPO
==========  ==========================================================  ============================
rollout     how do prompts become completions?                          G independent samples
reward      what is each completion worth, component by component?      is the answer right?
advantage   how do rewards become a weight per completion or token?     (r - group mean) / group std
==========  ==========================================================  ============================

A paper subclasses :class:`Method` and overrides the seams it changes. It never sees the trainer, and the
trainer never sees a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from explorl.errors import ConfigError


@dataclass(frozen=True)
class Batch:
    """One generation batch of N = B·G completions, group-major: rows iG … iG+G−1 answer prompt i.

    Attributes:
        prompts: N prompt texts.
        completions: N completion texts, as decoded (hostile until parsed).
        gold: N reference answers; empty strings where a task has none.
        group_size: G ≥ 1, completions per prompt.
        step: optimiser steps taken so far, ≥ 0.
        completion_ids: N lists of token ids, end-of-sequence included; empty when only text is known.
        truncated: N flags, true where the token limit cut the completion.
        columns: the data set's other columns, N entries each.
    """

    prompts: Sequence[str]
    completions: Sequence[str]
    gold: Sequence[str]
    group_size: int
    step: int = 0
    completion_ids: Sequence[Sequence[int]] = ()
    truncated: Sequence[bool] = ()
    columns: Mapping[str, Sequence] = field(default_factory=dict)

    def __post_init__(self):
        n = len(self.completions)
        if self.group_size < 1 or n % self.group_size:
            raise ConfigError("group_size", self.group_size, f"a positive divisor of the {n} completions")
        for name in ("prompts", "gold"):
            if len(getattr(self, name)) != n:
                raise ConfigError(name, f"{len(getattr(self, name))} entries", f"{n} entries, one per completion")

    @property
    def lengths(self) -> np.ndarray:
        """(N,) completion lengths in tokens."""
        return np.array([len(ids) for ids in self.completion_ids], dtype=np.int64)


@dataclass(frozen=True)
class Advantages:
    """What the loss multiplies the log-probabilities by.

    Attributes:
        values: (N,) floats, or N arrays of (T_i,) floats for a weight per token.
        keep: (N,) flags; rows that are false get no gradient. None keeps all.
    """

    values: np.ndarray | list[np.ndarray]
    keep: np.ndarray | None = None


def group_normalise(rewards: np.ndarray, group_size: int, *, eps: float = 1e-6, ddof: int = 0) -> np.ndarray:
    """Group-relative advantages Â = (r − μ_group) / (σ_group + eps); SD-E² eq 31–32.

    Args:
        rewards: (N,) floats, group-major.
        group_size: G, a divisor of N.
        eps: added to the standard deviation, > 0.
        ddof: 0 for the population standard deviation (the papers), 1 for the sample one (TRL).

    Returns:
        (N,) float64. A group without contrast gives zeros, also where G = 1.

    >>> group_normalise(np.array([1.0, 0.0, 0.5, 0.5]), 2).round(3).tolist()
    [1.0, -1.0, 0.0, 0.0]
    """
    grouped = np.asarray(rewards, dtype=np.float64).reshape(-1, group_size)
    centred = grouped - grouped.mean(axis=1, keepdims=True)
    flat = np.ptp(grouped, axis=1, keepdims=True) == 0
    if group_size <= ddof:
        return np.zeros(grouped.size)
    std = grouped.std(axis=1, ddof=ddof, keepdims=True)
    return np.where(flat, 0.0, centred / (std + eps)).reshape(-1)


class Method:
    """Plain GRPO, and the base of every paper's method.

    Attributes:
        name: the arm's name in records and figures.
        rollout: None for TRL's own sampling, or ``f(prompts, trainer) -> dict`` in TRL's ``rollout_func`` form.
    """

    name: str = "grpo"
    rollout: Callable | None = None

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """Reward seam, first half: named components, (N,) each. Never raises on text."""
        raise NotImplementedError(f"{type(self).__name__} must say what a completion is worth")

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """Reward seam, second half: components → (N,) total reward."""
        raise NotImplementedError(f"{type(self).__name__} must say how its components add up")

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """Advantage seam: (N,) total reward → advantages."""
        return Advantages(group_normalise(total, batch.group_size))

    def diagnostics(self, total: np.ndarray, components: Mapping[str, np.ndarray], advantages: Advantages,
                    batch: Batch) -> dict[str, float]:
        """What else to log about a training batch: name → number; what is not finite is left out."""
        return {}

    def still(self) -> Method:
        """The same method, for looking on: it does not learn from the batches that it is shown."""
        return self

    def state_dict(self) -> dict:
        """What a checkpoint must hold to go on exactly as before (JSON values or tensors)."""
        return {}

    def load_state_dict(self, state: dict) -> None:
        """Take up the state of a checkpoint."""


def message_text(message: object) -> str:
    """The text of a plain or a conversational prompt or completion; '' for anything else.

    >>> message_text("42"), message_text([{"role": "assistant", "content": "42"}]), message_text(None)
    ('42', '42', '')
    """
    if isinstance(message, str):
        return message
    turns = message if isinstance(message, Sequence) else ()
    return "\n".join(str(turn.get("content") or "") for turn in turns if isinstance(turn, Mapping))
