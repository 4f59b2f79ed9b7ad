"""Numbers with their uncertainty: proportions, pairs, seeds, ranks, pass@k.

Every function takes counts or arrays and returns proportions in [0, 1] (or the unit of its input), never
percent. Intervals are two-sided at ``confidence``, 95 % unless said otherwise.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats as sp

from explorl.errors import ConfigError


class Interval(NamedTuple):
    """Lower and upper end, in the unit of the estimate."""

    low: float
    high: float


class Estimate(NamedTuple):
    """A value, its interval, and the number n of things (seeds, items, pairs) behind it."""

    value: float
    low: float
    high: float
    n: int


class Paired(NamedTuple):
    """Two systems on the same items: see :func:`paired`."""

    difference: float
    low: float
    high: float
    p_value: float
    only_a: int
    only_b: int
    n: int


def _check_level(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ConfigError("confidence", confidence, "a number between 0 and 1, such as 0.95")


def _check_counts(k: int, n: int) -> None:
    if n < 1:
        raise ConfigError("n", n, "at least 1: there is no rate without a trial")
    if not 0 <= k <= n:
        raise ConfigError("k", k, f"between 0 and n = {n}")


def pass_at_k(n: int, c: int, k: int) -> float:
    """Unbiased chance that k samples hold a right one, from c right among n drawn.

    pass@k = 1 − C(n−c, k)/C(n, k), written as the product ∏ (1 − k/i) over i = n−c+1 … n, which never forms
    a large factorial.

    Args:
        n: samples drawn, ≥ 1.
        c: right ones among them, 0 … n.
        k: samples allowed, 1 … n.

    Returns:
        A probability in [0, 1].

    Raises:
        ConfigError: a count is out of range; k > n has no unbiased estimate.

    >>> round(pass_at_k(10, 3, 2), 4)
    0.5333
    """
    _check_counts(c, n)
    if not 1 <= k <= n:
        raise ConfigError("k", k, f"between 1 and n = {n}: draw more samples for a larger k")
    if n - c < k:
        return 1.0
    return 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))


def wilson(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a proportion; stays in [0, 1] and is sane at 0 and n.

    Args:
        k: successes, 0 … n.
        n: trials, ≥ 1.
        confidence: two-sided level in (0, 1).

    >>> [round(100 * x, 2) for x in wilson(1082, 1319)]
    [79.87, 84.01]
    """
    _check_counts(k, n)
    _check_level(confidence)
    low, high = sp.binomtest(int(k), int(n)).proportion_ci(confidence, method="wilson")
    return Interval(float(low), float(high))


def wald(k: int, n: int, confidence: float = 0.95) -> Interval:
    """Normal-approximation interval p ± z·√(p(1−p)/n), as SD-E²'s tables print it.

    It may leave [0, 1] (3 of 4 gives an upper end of 1.17) and is a point at 0 and n: for matching printed
    tables only.

    >>> [round(100 * x, 2) for x in wald(1082, 1319)]
    [79.96, 84.1]
    """
    _check_counts(k, n)
    _check_level(confidence)
    rate = k / n
    half = float(sp.norm.ppf(0.5 + confidence / 2)) * math.sqrt(rate * (1 - rate) / n)
    return Interval(rate - half, rate + half)


def paired(a: Sequence[int], b: Sequence[int], *, confidence: float = 0.95, resamples: int = 9999,
           seed: int = 0) -> Paired:
    """Compare two systems that answered the same items.

    The p-value is McNemar's exact test (only the items on which they differ carry information). The interval
    of the difference resamples items: BCa bootstrap, plain percentile where BCa is undefined.

    Args:
        a, b: (n,) of 0/1 or false/true, item i of a is item i of b.
        confidence: two-sided level in (0, 1).
        resamples: bootstrap draws, ≥ 1.
        seed: seed of those draws.

    Returns:
        ``difference`` = mean(a) − mean(b) in [−1, 1] with its interval, ``p_value``, ``only_a`` and
        ``only_b`` (items that one alone got right), ``n``.

    Raises:
        ConfigError: different lengths, no items, or values that are not 0/1.

    >>> paired([1, 1, 1, 0], [1, 0, 0, 0]).difference
    0.5
    """
    x, y = _indicators("a", a), _indicators("b", b)
    if len(x) != len(y) or not len(x):
        raise ConfigError("b", f"{len(y)} items", f"as long as a ({len(x)} items), and not empty")
    _check_level(confidence)
    gap = x - y
    only_a, only_b = int((gap > 0).sum()), int((gap < 0).sum())
    p_value = sp.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    low, high = _bootstrap_mean(gap, confidence, resamples, seed)
    return Paired(float(gap.mean()), low, high, float(p_value), only_a, only_b, len(gap))


def _indicators(name: str, values: Sequence[int]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isin(array, (0.0, 1.0)).all():
        raise ConfigError(name, f"array of shape {array.shape}", "a flat list of 0 and 1, one per item")
    return array


def _bootstrap_mean(values: np.ndarray, confidence: float, resamples: int, seed: int) -> Interval:
    if np.ptp(values) == 0:
        return Interval(float(values[0]), float(values[0]))
    for method in ("BCa", "percentile"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sp.DegenerateDataWarning)
            drawn = sp.bootstrap((values,), np.mean, confidence_level=confidence, n_resamples=resamples,
                                 method=method, batch=500, rng=np.random.default_rng(seed))
        low, high = drawn.confidence_interval
        if np.isfinite([low, high]).all():
            break
    return Interval(float(low), float(high))


def seed_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Mean over seeds with Student's t interval.

    Args:
        values: (seeds,) one number per seed, finite.
        confidence: two-sided level in (0, 1).

    Returns:
        Estimate in the unit of ``values``. One seed says nothing about spread: its interval is (−inf, inf).

    Raises:
        ConfigError: no value, or one that is not finite.

    >>> [round(x, 3) for x in seed_interval([0.4, 0.5, 0.6])[:3]]
    [0.5, 0.252, 0.748]
    """
    x = np.asarray(values, dtype=np.float64).reshape(-1)
    _check_level(confidence)
    if not len(x) or not np.isfinite(x).all():
        raise ConfigError("values", list(map(float, x)), "at least one finite number per seed")
    if len(x) == 1:
        return Estimate(float(x[0]), -math.inf, math.inf, 1)
    half = sp.t.ppf(0.5 + confidence / 2, len(x) - 1) * x.std(ddof=1) / math.sqrt(len(x))
    return Estimate(float(x.mean()), float(x.mean() - half), float(x.mean() + half), len(x))


def spearman(x: Sequence[float], y: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Spearman's rank correlation with the Bonett–Wright interval (Fisher z, variance (1 + ρ²/2)/(n − 3)).

    A perfect order would give a point; its interval is taken at the next order down (two neighbours swapped),
    so that four concordant pairs do not look like certainty.

    Args:
        x, y: (n,) finite numbers, n ≥ 4, pair i belongs together.
        confidence: two-sided level in (0, 1).

    Returns:
        Estimate in [−1, 1]. Where x or y never varies there is no order: value NaN, interval [−1, 1].

    Raises:
        ConfigError: fewer than 4 pairs, different lengths, or values that are not finite.

    >>> round(spearman([1, 2, 3, 4, 5], [1, 2, 3, 5, 4]).value, 2)
    0.9
    """
    a, b = (np.asarray(v, dtype=np.float64).reshape(-1) for v in (x, y))
    _check_level(confidence)
    if len(a) != len(b) or len(a) < 4 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ConfigError("x, y", f"{len(a)} and {len(b)} values", "at least 4 finite pairs")
    n = len(a)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return Estimate(math.nan, -1.0, 1.0, n)
    rho = float(np.clip(sp.spearmanr(a, b).statistic, -1, 1))
    next_down = 1 - 12 / (n * (n * n - 1))
    inner = math.copysign(min(abs(rho), next_down), rho)
    half = float(sp.norm.ppf(0.5 + confidence / 2)) * math.sqrt((1 + inner**2 / 2) / (n - 3))
    low, high = math.tanh(math.atanh(inner) - half), math.tanh(math.atanh(inner) + half)
    return Estimate(rho, min(low, rho), max(high, rho), n)


def coverage_by_chance(p: float, m: float) -> float:
    """Chance that one of m independent draws is right, each with probability p: 1 − (1 − p)^m.

    The column to print beside a "some strategy was right" score. SD-E²'s MedMCQA numbers, p = 0.4876 and
    4.19 strategies, give 0.939 where the paper reports 0.9446.

    Args:
        p: chance of one draw, in [0, 1].
        m: draws, ≥ 0; an average, so it need not be whole.

    >>> round(coverage_by_chance(0.4876, 4.19), 3)
    0.939
    """
    if not 0 <= p <= 1:
        raise ConfigError("p", p, "a probability between 0 and 1")
    if not m >= 0:
        raise ConfigError("m", m, "a number of draws, 0 or more")
    return 1.0 - (1.0 - p) ** m
