"""What EMPO's tables and figures report about groups of answers: how sure, how right, and how well these agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import require
from explorl.papers.empo_clusters import Clustering, Equal, cluster
from explorl.papers.empo_config import Config


@dataclass(frozen=True)
class Measured:
    """One problem's group of answers.

    Attributes:
        n: answers.
        right: right ones among them.
        entropy_nats: H in nats (eq 4), 0 … ln n.
        n_clusters: clusters of meaning, blanks included.
        blank: answers that are none.
        p_majority: share of the largest cluster that is not blank; 0 if all are blank.
        majority_right: whether that cluster's first answer is right; clusters need not be pure, since
            "equal" is not transitive.
        cluster_shares, cluster_right: the same two of every cluster that is not blank.
    """

    n: int
    right: int
    entropy_nats: float
    n_clusters: int
    blank: int
    p_majority: float
    majority_right: bool
    cluster_shares: tuple[float, ...]
    cluster_right: tuple[bool, ...]

    @property
    def accuracy(self) -> float:
        """Share of right answers, in [0, 1]."""
        return self.right / self.n


def measure(texts: Sequence[str], right: Sequence[bool], equal: Equal, config: Config = Config()) -> Measured:
    """Measure one problem's answers.

    Args:
        texts: n ≥ 1 answers in sampling order, '' for a blank.
        right: n flags.
        equal: whether two answers mean the same.
        config: ``rule``.

    Raises:
        ConfigError: no answers, or a different number of flags.

    >>> found = measure(["7", "7", "3", ""], [False, False, True, False], str.__eq__)
    >>> found.accuracy, found.p_majority, found.majority_right, found.n_clusters
    (0.25, 0.5, False, 3)
    """
    require(len(right) == len(texts), "right", f"{len(right)} flags", f"{len(texts)} flags, one per answer")
    return of_clusters(cluster(texts, equal, config), right)


def of_clusters(found: Clustering, right: Sequence[bool]) -> Measured:
    """As :func:`measure`, from clusters that are there already.

    >>> of_clusters(cluster(["7", "3"], str.__eq__), [True, False]).cluster_right
    (True, False)
    """
    firsts = [found.ids.index(number) for number in range(found.n_clusters)]
    spoken = [first for first in firsts if not found.blank[first]]
    shares = tuple(float(found.p[first]) for first in spoken)
    truths = tuple(bool(right[first]) for first in spoken)
    leads = found.leader >= 0
    return Measured(
        n=len(found.ids), right=sum(map(bool, right)), entropy_nats=found.entropy_nats,
        n_clusters=found.n_clusters, blank=int(found.blank.sum()), p_majority=max(shares, default=0.0),
        majority_right=leads and bool(right[firsts[found.leader]]), cluster_shares=shares, cluster_right=truths,
    )


def metrics(groups: Sequence[Measured]) -> dict[str, float]:
    """Means over problems, each problem counted once.

    Returns:
        In [0, 1]: ``acc``, ``blank`` (share of answers that are none), ``majority_right``, ``p_majority``. In
        nats: ``entropy_nats``. ``n_clusters``. Also ``acc`` and ``entropy`` ``_where_right`` and
        ``_where_wrong``: over problems whose majority is right, and wrong (or missing). NaN over no problems.

    >>> sure = measure(["7", "7", "7", "3"], [False, False, False, True], str.__eq__)
    >>> found = metrics([sure])
    >>> found["acc"], found["acc_where_wrong"], found["majority_right"]
    (0.25, 0.25, 0.0)
    """
    acc = np.array([group.accuracy for group in groups], dtype=np.float64)
    entropy = np.array([group.entropy_nats for group in groups], dtype=np.float64)
    led = np.array([group.majority_right for group in groups], dtype=bool)
    return {
        "acc": _mean(acc),
        "entropy_nats": _mean(entropy),
        "n_clusters": _mean([group.n_clusters for group in groups]),
        "blank": _mean([group.blank / group.n for group in groups]),
        "majority_right": _mean(led),
        "p_majority": _mean([group.p_majority for group in groups]),
        "acc_where_right": _mean(acc[led]),
        "acc_where_wrong": _mean(acc[~led]),
        "entropy_where_right": _mean(entropy[led]),
        "entropy_where_wrong": _mean(entropy[~led]),
    }


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


@dataclass(frozen=True)
class Reliability:
    """How often a cluster of a given share is right; see :func:`calibration`.

    Attributes:
        edges: (bins + 1,) ends of the bins in [0, 1].
        count: (bins,) clusters in each.
        share: (bins,) their mean share, NaN in an empty bin.
        right: (bins,) the part of them that is right, NaN in an empty bin.
        error: expected calibration error in [0, 1], Σ count/n · |right − share|; NaN without clusters.
    """

    edges: np.ndarray
    count: np.ndarray
    share: np.ndarray
    right: np.ndarray
    error: float


def calibration(shares: Sequence[float], right: Sequence[bool], *, bins: int = 10) -> Reliability:
    """Is a cluster that holds a share p of its group right with probability p?

    Args:
        shares: (n,) in [0, 1]: of every cluster (``Measured.cluster_shares`` of all problems, joined), or of
            the majorities alone (``p_majority``).
        right: (n,) flags, whether that cluster is right.
        bins: of equal width, ≥ 1; each holds its lower end, the last its upper end too.

    Raises:
        ConfigError: different lengths, a share outside [0, 1], or no bins.

    >>> table = calibration([0.25, 0.75, 0.75], [False, True, False], bins=2)
    >>> table.count.tolist(), table.right.tolist(), round(table.error, 4)
    ([1, 2], [0.0, 0.5], 0.25)
    """
    p, hits = np.asarray(shares, dtype=np.float64), np.asarray(right, dtype=np.float64)
    require(isinstance(bins, int) and bins >= 1, "bins", bins, "a whole number ≥ 1")
    require(p.shape == hits.shape and p.ndim == 1, "right", hits.shape, f"{len(p)} flags, one per share")
    inside = bool(((p >= 0) & (p <= 1)).all())
    require(inside, "shares", f"{p.min(initial=0):g} to {p.max(initial=0):g}", "shares from 0 to 1")
    place = np.minimum(np.floor(p * bins).astype(int), bins - 1)
    count = np.bincount(place, minlength=bins)
    empty = np.where(count > 0, count, np.nan)
    share = np.bincount(place, weights=p, minlength=bins) / empty
    truth = np.bincount(place, weights=hits, minlength=bins) / empty
    error = float(np.nansum(count * np.abs(truth - share)) / len(p)) if len(p) else float("nan")
    return Reliability(np.linspace(0, 1, bins + 1), count, share, truth, error)


def transitions(before: Mapping[object, bool], after: Mapping[object, bool]) -> dict[str, int]:
    """How many problems changed sides between two runs, by whether their majority (or answer) is right.

    Args:
        before, after: problem → right?, over the same problems.

    Returns:
        ``right_right``, ``right_wrong``, ``wrong_right``, ``wrong_wrong``; they add up to the problems.

    Raises:
        ConfigError: a problem is in one run only.

    >>> transitions({"a": True, "b": False}, {"a": False, "b": False})
    {'right_right': 0, 'right_wrong': 1, 'wrong_right': 0, 'wrong_wrong': 1}
    """
    lone = before.keys() ^ after.keys()
    require(not lone, "after", f"{len(lone)} problems in one run only", "over the same problems as before")
    found = dict.fromkeys(("right_right", "right_wrong", "wrong_right", "wrong_wrong"), 0)
    for key, was in before.items():
        found[f"{'right' if was else 'wrong'}_{'right' if after[key] else 'wrong'}"] += 1
    return found
