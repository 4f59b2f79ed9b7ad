"""What IMAGINE's figures show, and what the bonus really follows: length, position, failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from explorl.errors import require
from explorl.papers.imagine_bonus import decay
from explorl.papers.imagine_config import Config
from explorl.papers.imagine_novelty import Novelty, layout

PROBE = 8731
"""Keeps the probes' draws apart from those of data made with the same seed."""


# What follows from the equations alone?


def binary_advantages(right: int, group_size: int) -> tuple[float, float]:
    """Advantages of a right and of a wrong answer where k of G are right: √((G−k)(G−1)/(Gk)), −√(k(G−1)/(G(G−k))).

    The same for any two score levels, ε left out.

    >>> tuple(round(a, 4) for a in binary_advantages(1, 5))
    (1.7889, -0.4472)
    """
    require(0 < right < group_size, "right", right, f"between 1 and {group_size - 1}: both kinds must be there")
    k, g = right, group_size
    return float(np.sqrt((g - k) * (g - 1) / (g * k))), -float(np.sqrt(k * (g - 1) / (g * (g - k))))


def lifted_until(right: int, group_size: int, config: Config = Config()) -> float:
    """The n before which the largest bonus lifts a wrong answer above 0 where k of G are right: γ(α/|A| − 1).

    0 where it never does.

    >>> [round(lifted_until(1, size), 2) for size in (5, 8, 16)], lifted_until(2, 5)
    ([4.72, 16.57, 40.0], 0.0)
    """
    wrong = -binary_advantages(right, group_size)[1]
    return max(0.0, config.decay_gamma * (config.alpha / wrong - 1))


def decay_budget(steps: int, config: Config = Config()) -> float:
    """Σ γ/(γ + n) over n = 0 … steps − 1: how many steps of full bonus the whole run is worth.

    >>> round(decay_budget(250), 2)
    79.67
    """
    return float(sum(decay(n, config) for n in range(steps)))


# What does the bonus follow?


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's ρ, ties at their mean rank; NaN where either is constant.

    >>> rank_correlation([1, 2, 3], [10, 20, 15]), rank_correlation([1, 1], [1, 2])
    (0.5, nan)
    """
    from scipy.stats import rankdata

    require(len(a) == len(b), "b", f"{len(b)} entries", f"{len(a)} entries")
    if len(a) < 2 or np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(round(np.corrcoef(rankdata(a), rankdata(b))[0, 1], 12))


def auc(novel: Sequence[float], familiar: Sequence[float]) -> float:
    """How often an error of the first is larger than one of the second, ties counted half; 0.5 is no difference.

    >>> auc([3, 2], [1, 2])
    0.875
    """
    novel, familiar = np.asarray(novel, dtype=np.float64), np.asarray(familiar, dtype=np.float64)
    require(novel.size > 0 and familiar.size > 0, "novel", f"{novel.size} and {familiar.size} errors", "some of each")
    gap = novel[:, None] - familiar[None, :]
    return float(((gap > 0) + 0.5 * (gap == 0)).mean())


def shifted(ids: Sequence[int], filler: int, by: int = 1) -> list[int]:
    """The same response a few positions later, at its old length.

    >>> shifted([1, 2, 3], 9)
    [9, 1, 2]
    """
    return ([filler] * by + list(ids))[: len(ids)]


def gibberish(ids: Sequence[int], vocab_size: int, generator: np.random.Generator) -> list[int]:
    """As many tokens, drawn uniformly."""
    return generator.integers(vocab_size, size=len(ids)).tolist()


def what_scores_as_novel(novelty: Novelty, familiar: Sequence[Sequence[int]], others: Sequence[Sequence[int]], *,
                         prompts: Sequence[Sequence[int]] | None = None, seed: int = 0) -> dict[str, float]:
    """AUC of four kinds of text against responses that the predictor was trained on.

    The familiar and one other kind are scored together, in one batch, as training would.

    Args:
        novelty: trained; is not changed.
        familiar: N ≥ 2 lists of token ids.
        others: N lists: responses of another kind, such as a new strategy.
        prompts: N lists of token ids; None for none.
        seed: of the draws.

    Returns:
        ``same`` (0.5 by construction), ``shifted`` (by one token, which is the last one seen of another row),
        ``others``, ``gibberish``.
    """
    generator, n = np.random.default_rng([seed, PROBE]), len(familiar)
    require(len(others) == n, "others", f"{len(others)} entries", f"{n} entries")
    prompts = [[]] * n if prompts is None else list(prompts)
    kinds = {
        "same": [list(ids) for ids in familiar],
        "shifted": [shifted(ids, (list(familiar[i - 1]) or [0])[-1]) for i, ids in enumerate(familiar)],
        "others": [list(ids) for ids in others],
        "gibberish": [gibberish(ids, novelty.vocab_size, generator) for ids in familiar],
    }
    found = {}
    for name, rows in kinds.items():
        errors = novelty.errors(*layout(prompts * 2, [*familiar, *rows], novelty.config))
        found[name] = auc(errors[n:], errors[:n])
    return found


def by_group_accuracy(bonus: Sequence[float], correct: Sequence[bool], group_size: int) -> dict[int, float]:
    """Mean bonus of groups with 0, 1, … G right answers; those that occur.

    The published code once had such a probe, commented out.

    >>> by_group_accuracy([0.4, 0.2, 0.0, 0.1], [False, False, True, False], 2)
    {0: 0.30000000000000004, 1: 0.05}
    """
    right = np.asarray(correct, dtype=bool).reshape(-1, group_size).sum(axis=1)
    means = np.asarray(bonus, dtype=np.float64).reshape(-1, group_size).mean(axis=1)
    return {int(k): float(means[right == k].mean()) for k in np.unique(right)}


def summary(components: Mapping[str, np.ndarray], advantages: Sequence[float], lengths: Sequence[int],
            truncated: Sequence[bool], group_size: int, *, right: str = "oc") -> dict[str, float]:
    """What a training batch's bonus did, as numbers for a record; NaN where there is nothing to tell.

    Args:
        components: of :class:`~explorl.papers.imagine.IMAGINE`.
        advantages: (N,) with the bonus.
        lengths: (N,) in tokens.
        truncated: (N,) flags.
        group_size: G, a divisor of N.
        right: the component that says which answers are right.

    Returns:
        ``novelty_length_rho``; ``bonus_median`` and ``bonus_max`` over wrong rows; ``bonus_truncated``, the share
        of all bonus that truncated rows get; ``wrong_lifted``, the share of wrong rows with an advantage above 0;
        ``all_wrong_groups``, the share of groups without a right answer.
    """
    correct = np.asarray(components[right]) >= 1
    paid, wrong = np.asarray(components["bonus"], dtype=np.float64), ~correct
    total = float(paid.sum())
    return {
        "novelty_length_rho": rank_correlation(components["novelty_error"], np.asarray(lengths)),
        "bonus_median": float(np.median(paid[wrong])) if wrong.any() else float("nan"),
        "bonus_max": float(paid[wrong].max()) if wrong.any() else float("nan"),
        "bonus_truncated": float(paid[np.asarray(truncated, dtype=bool)].sum() / total) if total else float("nan"),
        "wrong_lifted": float((np.asarray(advantages)[wrong] > 0).mean()) if wrong.any() else float("nan"),
        "all_wrong_groups": float((~correct.reshape(-1, group_size).any(axis=1)).mean()),
    }
