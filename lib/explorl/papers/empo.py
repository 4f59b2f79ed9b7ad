r"""EMPO (arXiv 2504.05812): pay an answer by how many of its group's answers mean the same. No labels.

Read it in the order of the chapter:

1. :mod:`~explorl.papers.empo_config`: the settings, and what each open question of the paper became;
2. :mod:`~explorl.papers.empo_clusters`: the answer of a completion, clusters of meaning (Algorithm 1), p(c) and
   H (eq 3–4);
3. here: the reward (eq 6), the gate (eq 7), the advantage (eq 5), and how a trainer calls it;
4. :mod:`~explorl.papers.empo_baselines`: majority vote, supervised outcome, random reward;
5. :mod:`~explorl.papers.empo_variants`: what the published code really paid;
6. :mod:`~explorl.papers.empo_metrics`: what the tables report.

Whether two answers mean the same is always an argument, ``equal(earlier, later) -> bool``; such functions are in
:mod:`explorl.text.equivalence` and :mod:`explorl.judges`. One with a method ``about(question)`` is given its
group's question first.

Source: QingyangZhang/EMPO at c5eccd4. Deviations from the paper: no threshold has a published value, so the
gate is the open interval (0, ln G); a blank answer earns nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from explorl.errors import require
from explorl.papers.empo_clusters import Clustering, Equal, about, cluster, columns, of_group, read
from explorl.papers.empo_config import Config
from explorl.papers.method import Advantages, Batch, Method, group_normalise, message_text

__all__ = [
    "Config", "Equal", "about", "of_group", "read", "Clustering", "cluster", "columns", "KEPT", "FLAT",
    "reward", "gate", "rewards", "normalise", "Clustered", "EMPO", "reward_function",
]

KEPT = "kept"
FLAT = 1e-9
"""Rewards of a group that differ by less are equal, and an entropy this near to a threshold is on it."""


# What does an answer earn, and does its group count? (eq 6–7)


def reward(found: Clustering, config: Config = Config()) -> np.ndarray:
    """r_i = p(c) of the answer's cluster (eq 6), or log p(c); before the gate.

    With unnormalised rewards the expected gradient of p(c) is half that of Σ p(c)², the collision probability;
    that of log p(c) is the gradient of −H.

    Args:
        found: one group.
        config: ``reward`` and ``blank``.

    Returns:
        (G,) float64.

    >>> reward(cluster(["7", "7", "3", ""], str.__eq__)).tolist()
    [0.5, 0.5, 0.25, 0.0]
    """
    if config.reward == "log_p":
        return np.log(found.p)
    unspoken = {"zero": 0.0, "minus_half": -0.5, "share": 1 / len(found.ids)}[config.blank]
    return np.where(found.blank, unspoken, found.p)


def gate(found: Clustering, config: Config = Config()) -> str:
    """Whether the group counts: "kept", or the reason why not (eq 7).

    Bounds are open: a group on a bound is left out.

    Returns:
        ``kept``; ``alone`` (a group of one), ``unanimous`` (one cluster), ``entropy_low``, ``all_different``
        (G clusters) or ``entropy_high`` from the entropy gate, ``share_low`` from the frequency gate.

    >>> [gate(cluster(group, str.__eq__)) for group in (["7", "7"], ["7", "3"], ["7", "7", "3"])]
    ['unanimous', 'all_different', 'kept']
    """
    if config.gate == "none":
        return KEPT
    if config.gate == "frequency":
        return KEPT if found.p.max() >= config.min_share - FLAT else "share_low"
    if found.entropy_nats <= config.delta_low_nats + FLAT:
        return "alone" if len(found.ids) == 1 else "unanimous" if found.n_clusters == 1 else "entropy_low"
    if config.delta_high_nats is None:
        return KEPT if found.n_clusters < len(found.ids) else "all_different"
    return KEPT if found.entropy_nats < config.delta_high_nats - FLAT else "entropy_high"


def rewards(
    texts: Sequence[str], equal: Equal, config: Config = Config()
) -> tuple[np.ndarray, list[int], float, bool]:
    """One group, from its answers to its rewards (eq 3–7); all rewards are 0 where the gate leaves it out.

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: whether two answers mean the same.
        config: the settings.

    Returns:
        rewards (G,), cluster numbers, entropy in nats, whether the group is kept.

    >>> rewards(["7", "7", "3", ""], str.__eq__)[0].tolist(), rewards(["7", "7"], str.__eq__)[::3]
    ([0.5, 0.5, 0.25, 0.0], (array([0., 0.]), False))
    """
    found = cluster(texts, equal, config)
    keep = gate(found, config) == KEPT
    return np.where(keep, reward(found, config), 0.0), list(found.ids), found.entropy_nats, keep


# How much is each answer pushed? (eq 5)


def normalise(rewards: np.ndarray, group_size: int, config: Config = Config()) -> np.ndarray:
    """A_i = (r_i − mean)/(std + ε) in each group, with the sample standard deviation (eq 5).

    A group of one, and one whose rewards differ by less than :data:`FLAT`, gets exact zeros; published code
    gives NaN (TRL) or +1 (verl) for one, and lets rounding through.

    The clip of eq 1 and 7, min(A, clip(1, 1 − ε, 1 + ε) A), clips nothing: clip(1, …) is 1. ``adv_clip`` is what
    the words beside it say, a bound on |A|. Near a consensus it holds back the lone dissenter, who gets
    −(G − 1)/√G where each of the others gets +1/√G.

    Args:
        rewards: (N,) group-major.
        group_size: G, a divisor of N.
        config: ``adv_eps`` and ``adv_clip``.

    Returns:
        (N,) float64.

    >>> normalise(np.array([0.75, 0.75, 0.75, 0.25, 0.1, 0.1, 0.1, 0.1]), 4).round(3).tolist()
    [0.5, 0.5, 0.5, -1.499, 0.0, 0.0, 0.0, 0.0]
    """
    grouped = np.asarray(rewards, dtype=np.float64).reshape(-1, group_size)
    contrast = np.where(np.ptp(grouped, axis=1, keepdims=True) < FLAT, 0.0, grouped)
    advantages = group_normalise(contrast, group_size, eps=config.adv_eps, ddof=1)
    return advantages if config.adv_clip is None else np.clip(advantages, -config.adv_clip, config.adv_clip)


# How does a trainer call it?


class Clustered(Method):
    """What EMPO and its baselines share: read, cluster, then :meth:`pay`.

    Args:
        config: the settings.
        equal: whether two answers mean the same.
        gold_equal: ``gold_equal(gold, answer)``, for ``oc``; by default ``equal``.
    """

    def __init__(self, config: Config, equal: Equal, gold_equal: Equal | None = None):
        gold_equal = equal if gold_equal is None else gold_equal
        for name, value in (("equal", equal), ("gold_equal", gold_equal)):
            require(callable(value), name, value, "a function of two answers")
        self.config, self.equal, self.gold_equal = config, equal, gold_equal

    def read(self, completion: str) -> str:
        """A completion's answer, '' where it gives none."""
        return read(completion, self.config)

    def clustering(self, batch: Batch, start: int) -> Clustering:
        """The group of the batch that begins at row ``start``."""
        texts = [self.read(completion) for completion in batch.completions[start : start + batch.group_size]]
        return cluster(texts, about(self.equal, batch.prompts[start]), self.config)

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """(N,) each: ``reward`` and what explains it.

        ``p``, ``entropy_nats``, ``kept`` (1 or 0), ``cluster``, ``n_clusters``, ``blank``, ``majority`` (in the
        leading cluster). ``oc``, whether the answer equals the reference, only where there are references (NaN
        for a completion without one); EMPO's reward never sees it.
        """
        starts = range(0, len(batch.completions), batch.group_size)
        groups = [self.clustering(batch, start) for start in starts]
        found = columns(groups) | self.graded(groups, batch)
        paid, kept = self.pay(groups, found, batch)
        return {"reward": paid, "kept": kept} | found

    def pay(self, groups: Sequence[Clustering], found: Mapping[str, np.ndarray], batch: Batch
            ) -> tuple[np.ndarray, np.ndarray]:
        """(N,) rewards and (N,) flags, 1.0 where the row's group is kept."""
        raise NotImplementedError(f"{type(self).__name__} must say what an answer is worth")

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The reward is the one component that pays."""
        return np.asarray(components["reward"], dtype=np.float64)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """Eq 5; with ``filtered`` = "drop", groups outside the gate are left out of the loss (eq 7).

        With "zero" they count in the mean over the batch, which shrinks the step. The share that is kept is
        logged as ``components/kept/mean``.
        """
        values = normalise(total, batch.group_size, self.config)
        kept = np.asarray(components["kept"], dtype=bool)
        return Advantages(values, kept if self.config.filtered == "drop" else None)

    def graded(self, groups: Sequence[Clustering], batch: Batch) -> dict[str, np.ndarray]:
        """``oc``; each different answer of a group is compared with the reference once."""
        golds, size = [str(gold).strip() for gold in batch.gold], batch.group_size
        if not any(golds):
            return {}
        oc = np.full(len(golds), np.nan)
        for number, group in enumerate(groups):
            same = of_group(about(self.gold_equal, batch.prompts[number * size]))
            right: dict[tuple[str, str], float] = {}
            for row, answer in enumerate(group.answers, start=number * size):
                key = golds[row], answer
                if golds[row] and key not in right:
                    right[key] = float(bool(answer and same(*key)))
                oc[row] = right.get(key, np.nan)
        return {"oc": oc}


class EMPO(Clustered):
    """EMPO on the trainer's reward and advantage seams. No KL term: train with ``beta_kl`` = 0 (§3.3)."""

    def __init__(self, config: Config, equal: Equal, gold_equal: Equal | None = None):
        super().__init__(config, equal, gold_equal)
        self.name = "empo" if config.reward == "p" else "empo_log"

    def pay(self, groups: Sequence[Clustering], found: Mapping[str, np.ndarray], batch: Batch
            ) -> tuple[np.ndarray, np.ndarray]:
        """Eq 6 where eq 7 holds, else 0."""
        kept = np.repeat([float(gate(group, self.config) == KEPT) for group in groups], batch.group_size)
        paid = [reward(group, self.config) for group in groups]
        before = np.concatenate(paid) if paid else np.zeros(0)
        return np.where(kept > 0, before, 0.0), kept


def reward_function(
    config: Config, equal: Equal, *, group_size: int | None = None
) -> Callable[..., list[float]]:
    """EMPO as a reward function for an unmodified ``trl.GRPOTrainer(reward_funcs=[...])``.

    The data set needs no answers. Groups outside the gate get rewards 0, hence no advantage, and count in the
    mean. TRL forms the advantages itself, as :func:`normalise` does, without the exact zeros.

    Args:
        config: the settings.
        equal: whether two answers mean the same.
        group_size: G; None takes each run of equal prompts as a group, which holds unless one prompt follows
            itself in the data.

    Raises:
        ConfigError: a setting is wrong; when called, not as many prompts as completions, or groups of
            ``group_size`` that do not come out even or mix prompts.
    """
    require(callable(equal), "equal", equal, "a function of two answers")
    whole = isinstance(group_size, int) and not isinstance(group_size, bool) and group_size >= 1
    require(group_size is None or whole, "group_size", group_size, "None or a whole number ≥ 1")

    def empo(*, completions: Sequence, prompts: Sequence = (), **columns) -> list[float]:
        asked = [message_text(prompt) for prompt in prompts]
        n = len(completions)
        require(len(asked) == n, "prompts", f"{len(asked)} entries", f"{n} entries, one per completion")
        found = [read(message_text(completion), config) for completion in completions]
        starts = [i for i in range(n)
                  if (i % group_size == 0 if group_size else i == 0 or asked[i] != asked[i - 1])]
        paid: list[float] = []
        for start, stop in pairwise([*starts, n]):
            paid += rewards(found[start:stop], about(equal, asked[start]), config)[0].tolist()
        return paid

    return empo
