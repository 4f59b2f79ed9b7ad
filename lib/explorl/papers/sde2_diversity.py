"""How far apart the strategies of one completion are: cosine, Div, Uniq and g (SD-E² eq 10–15, 43).

Cosines are float64, with a slack of ``tie_tol`` around δ: 4/5 in float32 is above 0.8. The cosine with a zero
vector, which the paper leaves undefined, is 0.
"""

from __future__ import annotations

import numpy as np

from explorl.papers.sde2_config import Config


def pairwise_cosine(H: np.ndarray) -> np.ndarray:
    """Cosine of every pair of embeddings, κ of eq 10.

    Args:
        H: (m, d) one embedding per strategy, in the order of the text (eq 11).

    Returns:
        (m, m) float64 in [−1, 1]; 0 wherever a zero vector takes part.

    >>> pairwise_cosine([[1, 0], [4, 3]])[0].round(3).tolist()
    [1.0, 0.8]
    """
    H = np.asarray(H, dtype=np.float64)
    if not len(H):
        return np.zeros((0, 0))
    norms = np.linalg.norm(H, axis=1, keepdims=True)
    unit = np.divide(H, norms, out=np.zeros_like(H), where=norms > 0)
    return np.clip(unit @ unit.T, -1.0, 1.0)


def div(H: np.ndarray, single_div: float = 1.0) -> float:
    """Div = 1 − mean pairwise cosine, clipped to [0, 1] (eq 13–14); ``single_div`` for one, 0 for none.

    >>> round(div([[1, 0], [4, 3]]), 3), div([[1, 0]]), div([])
    (0.2, 1.0, 0.0)
    """
    return spread(pairwise_cosine(H), single_div)


def uniq(
    H: np.ndarray,
    delta: float,
    *,
    uniq_against: str = "kept",
    delta_inclusive: bool = True,
    tie_tol: float = 1e-6,
) -> list[int]:
    """The strategies that are not redundant, greedily in the order of the text (eq 15); Uniq is their number.

    Args:
        H: (m, d) embeddings.
        delta: δ in (0, 1). A strategy is kept if its cosine to every kept one is at most δ.
        uniq_against: "kept", or "all_previous" to compare with dropped strategies too.
        delta_inclusive: whether cosine = δ is kept.
        tie_tol: slack around δ.

    Returns:
        Indices of the kept strategies, ascending.

    >>> uniq([[1, 0], [12, 5], [3, 4]], 0.8), uniq([[12, 5], [1, 0], [3, 4]], 0.8)
    ([0, 2], [0])
    """
    return kept(pairwise_cosine(H), delta, uniq_against, delta_inclusive, tie_tol)


def novelty(H: np.ndarray, config: Config = Config()) -> float:
    """g = Uniq · Div in [0, m] (eq 43).

    >>> round(novelty([[1, 0], [4, 3]]), 3)
    0.4
    """
    similarity = pairwise_cosine(H)
    return len(kept_by(similarity, config.delta, config)) * spread(similarity, config.single_div)


def spread(similarity: np.ndarray, single_div: float) -> float:
    """:func:`div` from (m, m) cosines."""
    m = len(similarity)
    if m < 2:
        return float(single_div) * m
    mean = (similarity.sum() - np.trace(similarity)) / (m * (m - 1))
    return float(np.clip(1.0 - mean, 0.0, 1.0))


def kept(
    similarity: np.ndarray, delta: float, uniq_against: str, delta_inclusive: bool, tie_tol: float
) -> list[int]:
    """:func:`uniq` from (m, m) cosines."""
    limit = delta + tie_tol if delta_inclusive else delta - tie_tol
    chosen: list[int] = []
    for i, row in enumerate(similarity):
        earlier = row[chosen] if uniq_against == "kept" else row[:i]
        if not earlier.size or earlier.max() <= limit:
            chosen.append(i)
    return chosen


def kept_by(similarity: np.ndarray, delta: float, config: Config) -> list[int]:
    """:func:`kept` with the config's readings."""
    return kept(similarity, delta, config.uniq_against, config.delta_inclusive, config.tie_tol)
