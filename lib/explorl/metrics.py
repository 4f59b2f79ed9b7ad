"""The forms that a metric takes in a record: a mean, a proportion with its counts, pass@k."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from explorl.report.stats import pass_at_k

Metric = dict[str, float | int | None]


def mean(values: Iterable[float]) -> Metric:
    """The mean of what is given. JSON has no NaN: the mean of nothing, or one that is not finite, is None.

    >>> mean([1, 2]), mean([])
    ({'value': 1.5}, {'value': None})
    """
    values = np.asarray(values, dtype=np.float64)
    found = float(values.mean()) if values.size else float("nan")
    return {"value": found if np.isfinite(found) else None}


def proportion(shares: Iterable[float]) -> Metric:
    """Mean over problems, and the count that an interval may rest on: at most one per problem.

    Args:
        shares: (P,) or (P, S): right answers of each problem, as a share or sample by sample.

    >>> proportion([[1, 0], [1, 1]])
    {'value': 0.75, 'k': 2, 'n': 2}
    """
    shares = np.asarray(shares, dtype=np.float64)
    value, n = float(shares.mean()), len(shares)
    return {"value": value, "k": round(value * n), "n": n}


def pass_at(right: np.ndarray) -> dict[str, Metric]:
    """pass@k for k = 2, 4, 8 … up to the samples drawn.

    Args:
        right: (P, S) flags.

    >>> pass_at(np.array([[True, False]]))
    {'pass_at_2': {'value': 1.0}}
    """
    samples, counts = right.shape[1], right.sum(axis=1).tolist()
    ks = [2**i for i in range(1, samples.bit_length()) if 2**i <= samples]
    return {f"pass_at_{k}": mean([pass_at_k(samples, count, k) for count in counts]) for k in ks}
