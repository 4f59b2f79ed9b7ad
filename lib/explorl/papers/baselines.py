"""What SD-E² is compared with: outcome-only GRPO, GRPO-CFL, GRPO-CFEE, a shuffled control, a majority vote.

All read completions with SD-E²'s parser and answer comparison, so that only the reward differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import ConfigError, require, require_amount
from explorl.papers import sde2
from explorl.papers.method import Advantages, Batch, Method
from explorl.papers.sde2 import Config, Encode, group_advantages


@dataclass(frozen=True)
class LengthPenalty:
    """R_L = −max(0, T − T₀)/(T_max − T₀) with T in tokens.

    Ours: the paper never defines the R_L of eq 24. After the z-score only its shape matters, not its slope.

    Attributes:
        free_tokens: T₀ ≥ 0, tokens that cost nothing.
        max_tokens: T_max > T₀, where the penalty reaches −1.

    >>> LengthPenalty(256, 1536)([100, 896, 1536]).tolist()
    [0.0, -0.5, -1.0]
    """

    free_tokens: int = 256
    max_tokens: int = 1536

    def __post_init__(self):
        require(self.free_tokens >= 0, "length_free_tokens", self.free_tokens, "a whole number from 0 up")
        allowed = f"above length_free_tokens ({self.free_tokens})"
        require(self.max_tokens > self.free_tokens, "max_completion_tokens", self.max_tokens, allowed)

    def __call__(self, lengths: Sequence[int]) -> np.ndarray:
        """(N,) lengths in tokens → (N,) penalties ≤ 0."""
        over = np.asarray(lengths, dtype=np.float64) - self.free_tokens
        return 0.0 - np.maximum(over, 0.0) / (self.max_tokens - self.free_tokens)


def outcome(
    completions: Sequence[str],
    gold: str | Sequence[str],
    encode: Encode | None = None,
    config: Config = Config(),
    *,
    lengths: Sequence[int] | None = None,
) -> dict[str, np.ndarray]:
    """Components of every baseline: ``oc``, ``re``, ``fa`` (eq 16, 19, 22) and ``rd`` = R_rd^cnt (eq 48).

    The form and the diagnostics of :func:`explorl.papers.sde2.components`; without an encoder, those about
    diversity are left out.

    >>> outcome(["<final_answer>18</final_answer>"], "18")["oc"].tolist()
    [1.0]
    """
    return sde2.components(completions, gold, encode, config, lengths=lengths)


def cfee(
    completions: Sequence[str],
    gold: str | Sequence[str],
    encode: Encode | None = None,
    config: Config = Config(),
    *,
    lengths: Sequence[int] | None = None,
) -> dict[str, np.ndarray]:
    """Components of GRPO-CFEE (eq 46–48): exploration is paid by the number of blocks, whatever they say.

    R_rd^cnt = α χ + (1 − χ) min{β_cap, ρ n_strategies}, in ``rd``.

    >>> cfee(["<final_answer>18</final_answer>"], "18")["rd"].tolist()
    [0.0]
    """
    return outcome(completions, gold, encode, config, lengths=lengths)


def cfl(
    completions: Sequence[str],
    gold: str | Sequence[str],
    encode: Encode | None = None,
    config: Config = Config(),
    *,
    lengths: Sequence[int],
    penalty: LengthPenalty = LengthPenalty(),
) -> dict[str, np.ndarray]:
    """Components of GRPO-CFL (eq 24): ``oc``, ``fa`` and ``l`` = R_L.

    >>> cfl(["<final_answer>18</final_answer>"], "18", lengths=[896])["l"].tolist()
    [-0.5]
    """
    found = outcome(completions, gold, encode, config, lengths=lengths)
    return found | {"l": penalty(lengths)}


def majority_vote(completions: Sequence[str], config: Config = Config()) -> str:
    """The final answer that most of a group's completions give, as first written; '' if none gives any.

    Equal answers are counted together; of equally frequent ones the first wins.

    >>> majority_vote([f"<final_answer>{x}</final_answer>" for x in ("20", "18", "18.0")])
    '18'
    """
    readings = [sde2.read(completion, config) for completion in completions]
    counts = Counter(reading.answer for reading in readings if reading.answer is not None)
    if not counts:
        return ""
    best = counts.most_common(1)[0][0]
    return next(reading.parsed.final for reading in readings if reading.answer == best)


class _Weighted(Method):
    """A weighted sum of z-scored components, with SD-E²'s normalisation (eq 27–32)."""

    def __init__(self, config: Config = Config(), encode: Encode | None = None):
        self.config, self.encode = config, encode

    @property
    def weights(self) -> dict[str, float]:
        """w by component."""
        raise NotImplementedError

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """What the batch's completions are worth."""
        lengths = batch.lengths if len(batch.completion_ids) else None
        return outcome(batch.completions, batch.gold, self.encode, self.config, lengths=lengths)

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """Σ_k w_k R̃_k."""
        return sde2.weigh(components, self.weights, self.config, group_size=batch.group_size)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """Eq 31–32."""
        return group_advantages(total, batch.group_size, self.config)


class Outcome(_Weighted):
    """Plain GRPO: only whether the final answer is right."""

    name = "outcome"

    @property
    def weights(self) -> dict[str, float]:
        return {"oc": 1.0}


class CFEE(_Weighted):
    """GRPO-CFEE (eq 46): w_oc R_oc + w_fa R_fa + w_re R_re + w_rd R_rd^cnt.

    Args:
        config: weights, α, β_cap, ρ and the rest.
        encode: only for diagnostics; None saves its cost.
        w_rd: weight ≥ 0 of the counted exploration.
    """

    name = "cfee"

    def __init__(self, config: Config = Config(), encode: Encode | None = None, *, w_rd: float = 1.0):
        super().__init__(config, encode)
        require_amount("w_rd", w_rd)
        self.w_rd = w_rd

    @property
    def weights(self) -> dict[str, float]:
        c = self.config
        return {"oc": c.w_oc, "fa": c.w_fa, "re": c.w_re, "rd": self.w_rd}


class CFL(_Weighted):
    """GRPO-CFL (eq 24): w_oc R_oc + w_fa R_fa + w_L R_L.

    Args:
        config: weights, γ and the rest.
        penalty: R_L.
        w_l: weight ≥ 0 of the length.
        encode: only for diagnostics; None saves its cost.
    """

    name = "cfl"

    def __init__(
        self,
        config: Config = Config(),
        penalty: LengthPenalty = LengthPenalty(),
        *,
        w_l: float = 1.0,
        encode: Encode | None = None,
    ):
        super().__init__(config, encode)
        require_amount("w_l", w_l)
        self.penalty, self.w_l = penalty, w_l

    @property
    def weights(self) -> dict[str, float]:
        return {"oc": self.config.w_oc, "fa": self.config.w_fa, "l": self.w_l}

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """Raises ConfigError where the batch has no token ids: without them there are no lengths."""
        if len(batch.completion_ids) != len(batch.completions):
            raise ConfigError("completion_ids", f"{len(batch.completion_ids)} entries", "one per completion")
        return super().components(batch) | {"l": self.penalty(batch.lengths)}


class Shuffled(Method):
    """Control: another method with one component dealt out to the wrong completions before it is added up.

    The component keeps its distribution and loses its meaning. What :meth:`components` returns stays true, so
    logs and metrics can be compared. With SD-E², "sd" includes the bonus α for a right strategy.

    Args:
        method: the method to disturb.
        component: the one to permute over the whole batch.
        seed: ≥ 0; the permutation follows from it and the batch's step.
    """

    def __init__(self, method: Method, component: str = "sd", seed: int = 0):
        require(isinstance(seed, int) and seed >= 0, "seed", seed, "a whole number from 0 up")
        self.method, self.component, self.seed = method, component, seed
        self.name, self.rollout = f"{method.name}_shuffled", method.rollout
        self.config, self.encode = getattr(method, "config", None), getattr(method, "encode", None)

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """The method's own, in place."""
        return self.method.components(batch)

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The method's sum over the disturbed components."""
        if self.component not in components:
            raise ConfigError("component", self.component, f"one of {', '.join(components)}")
        order = np.random.default_rng([self.seed, batch.step]).permutation(len(batch.completions))
        dealt = {**components, self.component: np.asarray(components[self.component])[order]}
        return self.method.aggregate(dealt, batch)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """The method's own."""
        return self.method.advantages(total, components, batch)

    def state_dict(self) -> dict:
        """The method's own."""
        return self.method.state_dict()

    def load_state_dict(self, state: dict) -> None:
        """The method's own."""
        self.method.load_state_dict(state)
