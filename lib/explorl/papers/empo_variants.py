"""What the published EMPO code pays a group, where it differs from the paper. For teaching and comparison only.

=====================  ===========================  ==========  ==============  =================================
variant                equality (pass it in)        rule        blank earns     gate
=====================  ===========================  ==========  ==============  =================================
``trl_first_release``  math-verify, one way         last match  log(1/G)        H < ln G in floating point
``trl_head``           equal strings                last match  0               H < ln G in floating point
``verl_head``          a loose cascade              first       1/G             none (its call is commented out)
``verl_voting``        a loose cascade              first       1 if all tie    none
``natural_official``   a verifier model, one way    last match  −0.5            largest share ≥ 0.2
=====================  ===========================  ==========  ==============  =================================

By name in :mod:`explorl.text.equivalence`: ``math_one_way``, ``exact`` and ``loose``. Source: QingyangZhang/EMPO,
``rewards.py`` at 59e5726 (first release) and c5eccd4, ``compute_metrics.py`` at c5eccd4. No variant has a lower
threshold. A group with no contrast pays everybody the same, which teaches as little as 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from explorl.papers.empo_baselines import vote
from explorl.papers.empo_clusters import Clustering, Equal, cluster
from explorl.papers.empo_config import Config

MAX_WORDS = 400
"""Words of an answer, and of a question, that are compared for copying."""
COPIED, MIN_SHARE, NO_ANSWER = 0.8, 0.2, -0.5

_LAST, _FIRST = Config(rule="last_match"), Config()
_WORD = re.compile(r"[a-z0-9]+")

Paid = tuple[np.ndarray, list[int]]


def trl_first_release(texts: Sequence[str], equal: Equal) -> Paid:
    """log p(c) (``rewards.py:411`` at 59e5726), the gradient of −H, also for blanks; gated as :func:`trl_head`.

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: ``math_one_way`` to be as published.

    Returns:
        rewards (G,), cluster numbers.

    >>> trl_first_release(["7", "7", "3", ""], str.__eq__)[0].round(3).tolist()
    [-0.693, -0.693, -1.386, -1.386]
    """
    found = cluster(texts, equal, _LAST)
    return np.log(found.p) if _below_log_g(found) else np.zeros(len(texts)), list(found.ids)


def trl_head(texts: Sequence[str], equal: Equal) -> Paid:
    """p(c), 0 for a blank and for a group with H ≥ ln G (``rewards.py:194-207``).

    H is rounded: at G = 3, 6, 7, 10, 14, … the H of an all-different group falls just below ln G and the group
    passes. With a blank in it, it trains.

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: ``exact`` to be as published.

    >>> [trl_head(group, str.__eq__)[0].round(3).tolist() for group in (["1", "2"], ["1", "2", ""])]
    [[0.0, 0.0], [0.333, 0.333, 0.0]]
    """
    found = cluster(texts, equal, _LAST)
    return np.where(found.blank, 0.0, found.p) * _below_log_g(found), list(found.ids)


def _below_log_g(found: Clustering) -> bool:
    """H < ln G with H = −Σ p log p as floating point has it."""
    p = np.array([found.p[found.ids.index(number)] for number in range(found.n_clusters)])
    return bool(-np.sum(p * np.log(p)) < np.log(len(found.ids)))


def verl_head(texts: Sequence[str], equal: Equal) -> Paid:
    """p(c), also for blanks (``compute_metrics.py:211-213``); no gate.

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: ``loose`` to be as published.

    >>> verl_head(["7", "7", "3", ""], str.__eq__)[0].tolist()
    [0.5, 0.5, 0.25, 0.25]
    """
    found = cluster(texts, equal, _FIRST)
    return found.p.copy(), list(found.ids)


def verl_voting(texts: Sequence[str], equal: Equal) -> Paid:
    """1 for every answer of every largest cluster, blanks too (``compute_metrics.py:209-210``).

    >>> verl_voting(["7", "3", ""], str.__eq__)[0].tolist()
    [1.0, 1.0, 1.0]
    """
    found = cluster(texts, equal, _FIRST)
    return vote(found, ties="all"), list(found.ids)


def natural_official(texts: Sequence[str], equal: Equal, question: str) -> Paid:
    """The natural-reasoning reward (``rewards.py:333-345``), with rules that are nowhere in the paper.

    −0.5 for a blank; 0 for an answer that copies the question (contained in it, or ROUGE-L precision above
    0.8); 0 for all others where several clusters are there and none holds a fifth of the group; else p(c).

    Args:
        texts: G ≥ 1 answers in sampling order.
        equal: a judge, called one way.
        question: what was asked.

    >>> natural_official(["Paris", "Lyon", "Paris", ""], str.__eq__, "Paris or Lyon or Rome?")[0].tolist()
    [0.0, 0.0, 0.0, -0.5]
    """
    found = cluster(texts, equal, _LAST)
    scattered = found.n_clusters > 1 and found.p.max() < MIN_SHARE
    copied = np.array([not none and copies(answer, question)
                       for answer, none in zip(found.answers, found.blank, strict=True)])
    paid = np.where(copied | scattered, 0.0, found.p)
    return np.where(found.blank, NO_ANSWER, paid), list(found.ids)


def copies(answer: str, question: str) -> bool:
    """Whether an answer only repeats the question: contained in it, or nearly all its words in the same order.

    >>> copies("lyon", "London or Lyon?"), copies("The city Lyon", "London or Lyon?")
    (True, False)
    """
    if answer.lower() in question.lower():
        return True
    words, asked = (_WORD.findall(text.lower())[:MAX_WORDS] for text in (answer, question))
    return bool(words) and _in_common(words, asked) / len(words) > COPIED


def _in_common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for j, other in enumerate(b, start=1):
            before, row[j] = row[j], before + 1 if word == other else max(row[j], row[j - 1])
    return row[-1]
