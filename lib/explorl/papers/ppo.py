"""PPO's advantages: generalised advantage estimation, whitening, and IMAGINE's bonus on the last token.

Pure mathematics on (N, T) arrays, completions left-aligned. A trainer brings values and takes what comes out.

Source: ``core_algos.py:70-107`` of Gaojingtong/IMAGINE at 44d1632; GAE is arXiv 1506.02438.
"""

from __future__ import annotations

import numpy as np

from explorl.errors import require

PLACEMENTS = ("post_whiten_last", "pre_whiten_last")
WHITEN_EPS = 1e-8


def at_last_token(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """(N,) numbers → (N, T): each at its completion's last token, 0 elsewhere; lost where there is no token.

    >>> at_last_token(np.array([1.0, 2.0]), np.array([[1, 1], [1, 0]])).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    mask = np.asarray(mask, dtype=bool)
    if not mask.shape[1]:
        return np.zeros(mask.shape)
    last = mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    place = (np.arange(mask.shape[1]) == last[:, None]) & mask
    return np.where(place, np.asarray(values, dtype=np.float64)[:, None], 0.0)


def gae(rewards: np.ndarray, values: np.ndarray, mask: np.ndarray, gamma: float = 1.0, lam: float = 1.0
        ) -> tuple[np.ndarray, np.ndarray]:
    """Â_t = Σ_k (γλ)^k δ_{t+k} with δ_t = r_t + γ V_{t+1} − V_t, and the critic's targets Â + V.

    Beyond a completion's last token reward and value are 0. With γ = λ = 1 (IMAGINE's setting) Â is what is still
    to come less what the critic expected.

    Args:
        rewards, values: (N, T) floats.
        mask: (N, T), true on a completion's tokens, which come first.
        gamma, lam: in [0, 1].

    Returns:
        advantages and returns, (N, T) float64, 0 outside the mask.

    Raises:
        ConfigError: different shapes, a mask with gaps, or γ or λ outside [0, 1].

    >>> [x.round(2).tolist() for x in gae([[0, 0, 1]], [[0.2, 0.3, 0.4]], [[1, 1, 1]])]
    [[[0.8, 0.7, 0.6]], [[1.0, 1.0, 1.0]]]
    """
    rewards, values, mask = _aligned(rewards, values, mask)
    for name, value in (("gamma", gamma), ("lam", lam)):
        require(0 <= value <= 1, name, value, "a number from 0 to 1")
    advantages = np.zeros(rewards.shape)
    later, following = np.zeros(len(rewards)), np.zeros(len(rewards))
    for t in reversed(range(rewards.shape[1])):
        later = rewards[:, t] + gamma * following - values[:, t] + gamma * lam * later
        advantages[:, t], following = later, values[:, t]
    return advantages, advantages + values


def whiten(values: np.ndarray, mask: np.ndarray, *, eps: float = WHITEN_EPS) -> np.ndarray:
    """(x − mean)/√(variance + ε) over all tokens of the batch, with the sample variance; 0 outside the mask.

    Values that are all equal give zeros, and so does a single one.

    >>> whiten(np.array([[1.0, 3.0], [2.0, 9.0]]), np.array([[1, 1], [1, 0]])).round(3).tolist()
    [[-1.0, 1.0], [0.0, 0.0]]
    """
    mask = np.asarray(mask, dtype=bool)
    values = np.where(mask, np.asarray(values, dtype=np.float64), 0.0)
    inside = values[mask]
    if inside.size < 2 or np.ptp(inside) == 0:
        return np.zeros(values.shape)
    return np.where(mask, (values - inside.mean()) / np.sqrt(inside.var(ddof=1) + eps), 0.0)


def advantages(rewards: np.ndarray, values: np.ndarray, mask: np.ndarray, bonus: np.ndarray | None = None, *,
               placement: str = "post_whiten_last", gamma: float = 1.0, lam: float = 1.0
               ) -> tuple[np.ndarray, np.ndarray]:
    """GAE, whitening, and the bonus at the last token (eq 7 under PPO).

    The critic never learns of the bonus: the returns are without it. ``post_whiten_last`` (the paper) raises the
    last token and nothing else. ``pre_whiten_last`` (the published code) whitens afterwards, which divides the
    bonus by the deviation and lowers every other token of the batch.

    Args:
        rewards, values, mask, gamma, lam: as in :func:`gae`.
        bonus: (N,); None for none.
        placement: one of :data:`PLACEMENTS`, the ``ppo_bonus`` of IMAGINE's settings.

    Returns:
        advantages and returns, (N, T) float64.

    >>> advantages([[0, 1]], [[0, 0]], [[1, 1]], np.array([0.5]))[0].tolist()
    [[0.0, 0.5]]
    """
    require(placement in PLACEMENTS, "ppo_bonus", placement, "one of " + ", ".join(PLACEMENTS))
    raw, returns = gae(rewards, values, mask, gamma, lam)
    extra = np.zeros(raw.shape) if bonus is None else at_last_token(np.asarray(bonus), mask)
    if placement == "pre_whiten_last":
        return whiten(raw + extra, mask), returns
    return whiten(raw, mask) + extra, returns


def explained_variance(returns: np.ndarray, values: np.ndarray, mask: np.ndarray) -> float:
    """1 − var(returns − values)/var(returns) over all tokens: 1 for a perfect critic, 0 for a constant one.

    NaN where the returns do not vary: then there is nothing to explain.

    >>> explained_variance(np.array([[1.0, 0.0]]), np.array([[0.9, 0.1]]), np.array([[1, 1]])).__round__(3)
    0.96
    """
    mask = np.asarray(mask, dtype=bool)
    known, guess = (np.asarray(x, dtype=np.float64)[mask] for x in (returns, values))
    if not known.size or np.ptp(known) == 0:
        return float("nan")
    return float(1 - (known - guess).var() / known.var())


def _aligned(rewards: np.ndarray, values: np.ndarray, mask: np.ndarray
             ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mask = np.asarray(mask, dtype=bool)
    rewards, values = (np.asarray(x, dtype=np.float64) for x in (rewards, values))
    same = mask.ndim == 2 and rewards.shape == values.shape == mask.shape
    require(same, "rewards", f"shape {rewards.shape}, values {values.shape}, mask {mask.shape}", "of one shape (N, T)")
    gaps = (mask[:, 1:] & ~mask[:, :-1]).any()
    require(not gaps, "mask", "a token after a gap", "true on each completion's first tokens, false after")
    return np.where(mask, rewards, 0.0), np.where(mask, values, 0.0), mask
