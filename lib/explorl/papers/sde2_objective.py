"""The clipped term and the two KL forms of SD-E²'s objective (eq 33–37), as small as they are.

The trainer has its own, tested against these.
"""

from __future__ import annotations

import numpy as np

from explorl.errors import require


def clip_term(ratio: np.ndarray, advantage: np.ndarray, epsilon: float = 0.2) -> np.ndarray:
    """min(r Â, clip(r, 1−ε, 1+ε) Â), elementwise (eq 34–35).

    Args:
        ratio: r > 0, new over old probability, of a sequence (eq 33) or of a token.
        advantage: Â, broadcast against ``ratio``.
        epsilon: in (0, 1).

    >>> clip_term([1.5, 0.5], [1.0, -1.0]).tolist()
    [1.2, -0.8]
    """
    require(0 < epsilon < 1, "epsilon", epsilon, "a number above 0 and below 1")
    r, a = np.asarray(ratio, dtype=np.float64), np.asarray(advantage, dtype=np.float64)
    return np.minimum(r * a, np.clip(r, 1 - epsilon, 1 + epsilon) * a)


def kl_exact(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """KL(p ‖ q) in nats over the last axis, the whole vocabulary (eq 36).

    Args:
        log_p, log_q: (..., V) log-probabilities of the policy and of the reference.

    >>> kl_exact(np.log([0.5, 0.5]), np.log([0.25, 0.75])).round(6).item()
    0.143841
    """
    log_p, log_q = np.asarray(log_p, dtype=np.float64), np.asarray(log_q, dtype=np.float64)
    return np.sum(np.exp(log_p) * (log_p - log_q), axis=-1)


def kl_k3(log_p: np.ndarray, log_q: np.ndarray) -> np.ndarray:
    """q/p − ln(q/p) − 1 for sampled tokens: what trainers use; its mean under p is :func:`kl_exact`.

    >>> kl_k3(np.log([0.5]), np.log([0.25])).round(6).item()
    0.193147
    """
    difference = np.asarray(log_q, dtype=np.float64) - np.asarray(log_p, dtype=np.float64)
    return np.expm1(difference) - difference
