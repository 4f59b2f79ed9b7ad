"""One group of completions, as EMPO reads it: answers, clusters of meaning, p(c) and H (Algorithm 1, eq 3–4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import require
from explorl.papers.empo_config import Config
from explorl.text import answers, clusters, strategies

Equal = Callable[[str, str], bool]
"""``equal(earlier, later)``: do two answers mean the same?"""


def about(equal: Equal, question: str) -> Equal:
    """The same equality with the question at hand, where it has a use for one."""
    return equal.about(question) if hasattr(equal, "about") else equal


def of_group(equal: Equal) -> Equal:
    """The equality with a time budget for the answers of one group, where it keeps one."""
    return equal.group() if hasattr(equal, "group") else equal


def read(completion: str, config: Config = Config()) -> str:
    r"""The answer of a completion, or '' where it gives none. Never raises on text.

    Args:
        completion: as decoded.
        config: ``answer_from`` says where the answer is.

    >>> read(r"so \boxed{\frac{1}{2}}."), read("It is 7."), read("It is 7.", Config(answer_from="anywhere"))
    ('\\frac{1}{2}', '', '7')
    """
    if not isinstance(completion, str):
        return ""
    if config.answer_from == "boxed":
        return answers.last_boxed(completion) or ""
    if config.answer_from == "anywhere":
        return answers.extract(completion)[0]
    parsed = strategies.parse(completion)
    return parsed.final if parsed.source in ("FA", "ANS") else ""


@dataclass(frozen=True)
class Clustering:
    """One group's answers, by meaning.

    Attributes:
        answers: G answers in sampling order, '' for a blank.
        ids: G cluster numbers, from 0 in order of first appearance.
        blank: (G,) flags of answers that are none; each is a cluster of its own.
        p: (G,) p(c) = |c|/G of each answer's cluster, in (0, 1] (eq 3).
        entropy_nats: H = −Σ p(c) log p(c) in nats, 0 … ln G (eq 4).
        leader: number of the largest cluster that is not blank, the earliest of equally large ones; −1 if all
            are blank.
        reasons: G codes: ``ok``, ``blank``, or why the equality could not go by an answer's meaning.
    """

    answers: tuple[str, ...]
    ids: tuple[int, ...]
    blank: np.ndarray
    p: np.ndarray
    entropy_nats: float
    leader: int
    reasons: tuple[str, ...]

    @property
    def n_clusters(self) -> int:
        """How many clusters there are, blanks included."""
        return len(set(self.ids))

    @property
    def majority(self) -> np.ndarray:
        """(G,) 1.0 where the answer is in the leading cluster."""
        return (np.array(self.ids) == self.leader).astype(np.float64)


def cluster(texts: Sequence[str], equal: Equal, config: Config = Config()) -> Clustering:
    """Cluster one group's answers by meaning (Algorithm 1) and measure the clusters (eq 3–4).

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: whether two answers mean the same. Its ``group()``, if it has one, bounds what the group costs.
        config: ``rule`` decides where an answer equals several clusters.

    Raises:
        ConfigError: no answers.

    >>> found = cluster(["7", "3", "7", ""], str.__eq__)
    >>> found.ids, found.p.tolist(), round(found.entropy_nats, 4), found.leader
    ((0, 1, 0, 2), [0.5, 0.25, 0.5, 0.25], 1.0397, 0)
    """
    require(len(texts) > 0, "answers", "none", "at least one answer")
    view = of_group(equal)
    ids = clusters.fast(texts, view, rule=config.rule)
    blank = np.array([clusters.is_blank(text) for text in texts])
    sizes = clusters.sizes(ids)
    unspoken = {number for number, none in zip(ids, blank, strict=True) if none}
    spoken = [0 if number in unspoken else size for number, size in enumerate(sizes)]
    leader = spoken.index(max(spoken)) if any(spoken) else -1
    shares = np.array([sizes[number] for number in ids]) / len(ids)
    plain = tuple("" if none else text for text, none in zip(texts, blank, strict=True))
    why = getattr(view, "reason", lambda text: "ok")
    reasons = tuple("blank" if none else why(text) for text, none in zip(texts, blank, strict=True))
    return Clustering(plain, tuple(ids), blank, shares, clusters.entropy_nats(ids), leader, reasons)


def columns(groups: Sequence[Clustering]) -> dict[str, np.ndarray]:
    """What clustering says about each of N answers; (N,) float64 each.

    >>> columns([cluster(["7", "7"], str.__eq__)])["p"].tolist()
    [1.0, 1.0]
    """
    def spread(value: Callable[[Clustering], object]) -> np.ndarray:
        rows = [np.broadcast_to(np.asarray(value(group), dtype=np.float64), len(group.ids)) for group in groups]
        return np.concatenate(rows) if rows else np.zeros(0)

    return {
        "p": spread(lambda group: group.p),
        "entropy_nats": spread(lambda group: group.entropy_nats),
        "cluster": spread(lambda group: group.ids),
        "n_clusters": spread(lambda group: group.n_clusters),
        "blank": spread(lambda group: group.blank),
        "majority": spread(lambda group: group.majority),
    }
