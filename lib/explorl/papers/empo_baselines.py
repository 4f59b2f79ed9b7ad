"""What EMPO is compared with: the majority vote, the answer key, and chance.

All read, cluster and normalise as EMPO does, so that only the reward differs. None has a gate: ``kept`` is 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from explorl.errors import require
from explorl.papers.empo import Clustered
from explorl.papers.empo_clusters import Clustering, Equal
from explorl.papers.empo_config import Config
from explorl.papers.method import Batch


def vote(found: Clustering, *, ties: str = "earliest") -> np.ndarray:
    """1 for the answers of the largest cluster, else 0: TTRL's reward.

    Args:
        found: one group.
        ties: ``earliest``: of equally large clusters that are not blank, the first; a group of blanks has none.
            ``all``: every one of the largest wins, blanks too, as the verl code has it
            (``compute_metrics.py:11-14, 209-210`` of QingyangZhang/EMPO at c5eccd4): a group of all-different
            or all-blank answers pays everybody 1.

    Returns:
        (G,) float64.

    Raises:
        ConfigError: unknown ``ties``.

    >>> from explorl.papers.empo import cluster
    >>> tied = cluster(["7", "3", "3", "7", ""], str.__eq__)
    >>> vote(tied).tolist(), vote(tied, ties="all").tolist()
    ([1.0, 0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 0.0])
    """
    require(ties in ("earliest", "all"), "ties", ties, "earliest or all")
    return found.majority if ties == "earliest" else (found.p == found.p.max()).astype(np.float64)


class MajorityVote(Clustered):
    """TTRL (arXiv 2504.16084) on EMPO's clusters: a right answer is what most of the group says.

    Deviations: it votes with the samples that it trains on, as EMPO's scripts do, not with extra ones.

    Args:
        config, equal, gold_equal: as in :class:`~explorl.papers.empo.Clustered`.
        ties: as in :func:`vote`.
    """

    name = "vote"

    def __init__(self, config: Config, equal: Equal, gold_equal: Equal | None = None, *, ties: str = "earliest"):
        super().__init__(config, equal, gold_equal)
        require(ties in ("earliest", "all"), "ties", ties, "earliest or all")
        self.ties = ties

    def pay(self, groups: Sequence[Clustering], found: Mapping[str, np.ndarray], batch: Batch
            ) -> tuple[np.ndarray, np.ndarray]:
        """1 for the majority."""
        paid = [vote(group, ties=self.ties) for group in groups]
        return np.concatenate(paid) if paid else np.zeros(0), np.ones(len(batch.completions))


class Supervised(Clustered):
    """GRPO with the answer key (eq 2): 1 for an answer that equals the reference, else 0."""

    name = "supervised"

    def pay(self, groups: Sequence[Clustering], found: Mapping[str, np.ndarray], batch: Batch
            ) -> tuple[np.ndarray, np.ndarray]:
        """``oc``. Raises ConfigError where a reference answer is missing."""
        for gold in batch.gold:
            require(bool(str(gold).strip()), "gold", gold, "a reference answer for every completion")
        return found["oc"].copy() if groups else np.zeros(0), np.ones(len(batch.completions))


class RandomReward(Clustered):
    """Control: U(0, 1) for any answer, 0 for none (``rewards.py:84-147``); what the paper calls w/ Rand.

    Args:
        config, equal, gold_equal: as in :class:`~explorl.papers.empo.Clustered`.
        seed: ≥ 0; the draws follow from it and the batch's step, one per completion.
    """

    name = "random"

    def __init__(self, config: Config, equal: Equal, gold_equal: Equal | None = None, *, seed: int = 0):
        super().__init__(config, equal, gold_equal)
        whole = isinstance(seed, int) and not isinstance(seed, bool) and seed >= 0
        require(whole, "seed", seed, "a whole number from 0 up")
        self.seed = seed

    def pay(self, groups: Sequence[Clustering], found: Mapping[str, np.ndarray], batch: Batch
            ) -> tuple[np.ndarray, np.ndarray]:
        """A draw for each answer."""
        draws = np.random.default_rng([self.seed, batch.step]).random(len(batch.completions))
        return np.where(found["blank"] > 0, 0.0, draws), np.ones(len(batch.completions))
