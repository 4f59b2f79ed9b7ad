"""From novelty to a bonus: scale it, keep it from right answers, let it decay (eq 6 and 9); and the controls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorl.errors import ConfigError, require
from explorl.papers.imagine_config import Config

LOW, HIGH = 0.05, 0.95
"""Quantiles that ``novelty_scale`` = "quantile" takes for 0 and 1."""
STD_EPS = 1e-8


def scale(errors: Sequence[float], config: Config = Config(), *, group_size: int | None = None,
          std: float | None = None) -> np.ndarray:
    """Errors r on the scale of the bonus, before α: (r − min)/(max − min) (eq 9).

    Errors that are all equal give zeros; the published code gives NaN. Dividing r by a deviation first (eq 5)
    changes nothing here. However small the errors have become, the largest still gets 1.

    Args:
        errors: (N,) ≥ 0.
        config: ``novelty_scale``, ``minmax_scope``.
        group_size: G; needed where the scope is the group.
        std: deviation of all errors so far; needed with ``running_std``, which gives r/(std + 1e-8).

    Returns:
        (N,) float64 in [0, 1], but with ``running_std`` ≥ 0.

    Raises:
        ConfigError: an error that is negative, infinite or NaN; a missing argument.

    >>> scale([0.01, 0.03, 0.02, 0.05, 0.042]).round(6).tolist(), scale([0.2, 0.2]).tolist()
    ([0.0, 0.5, 0.25, 1.0, 0.8], [0.0, 0.0])
    """
    errors = _checked("errors", errors)
    if config.novelty_scale == "running_std":
        require(std is not None and 0 <= std < math.inf, "std", std, "the finite deviation of all errors so far")
        return errors / (std + STD_EPS)
    grouped = errors.reshape(1, -1)
    if config.minmax_scope == "group":
        grouped = _groups(errors, group_size, "minmax_scope = 'group'")
    if config.novelty_scale == "rank":
        return _unit(_ranks(grouped)).reshape(-1)
    if config.novelty_scale == "quantile" and grouped.size:
        ends = np.quantile(grouped, [LOW, HIGH], axis=1)[..., None]
        grouped = np.clip(grouped, *ends)
    return _unit(grouped).reshape(-1)


def decay(step: int, config: Config = Config()) -> float:
    """γ/(γ + n), the part of α that is left after n reward calls (eq 9).

    >>> [round(decay(n), 3) for n in (0, 10, 40, 120, 249)]
    [1.0, 0.8, 0.5, 0.25, 0.138]
    """
    whole = isinstance(step, (int, np.integer)) and not isinstance(step, bool) and step >= 0
    require(whole, "step", step, "a whole number from 0 up")
    return config.decay_gamma / (config.decay_gamma + int(step))


def bonus(errors: Sequence[float], correct: Sequence[bool], step: int, config: Config = Config(), *,
          group_size: int | None = None, lengths: Sequence[int] | None = None, std: float | None = None
          ) -> np.ndarray:
    """R* = γ/(γ + n) · α · scaled novelty for wrong answers, 0 for right ones (eq 6, 9).

    The scale is set by all rows, right ones among them, before the mask.

    Args:
        errors: (N,) squared gaps r ≥ 0, group-major.
        correct: (N,) flags; an answer with a credit for its format alone is not correct.
        step: n ≥ 0, reward calls completed before this one.
        config: the settings. With a ``bonus_source`` other than ``rnd``, the control's bonus.
        group_size: G, a divisor of N; needed with ``minmax_scope`` = "group" or ``center_bonus``.
        lengths: (N,) lengths in tokens; needed with ``bonus_source`` = "length".
        std: needed with ``novelty_scale`` = "running_std".

    Returns:
        (N,) float64 in [0, α]; what may leave it: ``running_std``, ``center_bonus``, matched controls.

    Raises:
        ConfigError: an error that is not finite, different numbers of entries, or a missing argument.

    Source: ``main_iMENTOR.py:53-56, 125-137`` of Gaojingtong/IMAGINE at 44d1632. Deviations: equal errors give
    zeros; everything else that differs has a setting.

    >>> bonus([0.01, 0.03, 0.02, 0.05, 0.042], [True, False, False, False, False], 10).round(6).tolist()
    [0.0, 0.2, 0.1, 0.4, 0.32]
    """
    errors = _checked("errors", errors)
    correct = np.asarray(correct, dtype=bool)
    require(correct.shape == errors.shape, "correct", f"shape {correct.shape}", f"shape {errors.shape}")
    paid = ~correct if config.error_mask else np.ones(errors.shape, dtype=bool)
    factor = config.alpha * decay(step, config)
    found = np.where(paid, factor * scale(errors, config, group_size=group_size, std=std), 0.0)
    found = _control(found, paid, factor, step, config, group_size, lengths)
    if config.center_bonus:
        found = _centred(found, paid, group_size)
    return found


def _control(found: np.ndarray, paid: np.ndarray, factor: float, step: int, config: Config,
             group_size: int | None, lengths: Sequence[int] | None) -> np.ndarray:
    """What a bonus source makes of RND's bonuses; draws follow from the seed and n."""
    source, generator = config.bonus_source, np.random.default_rng([config.seed, int(step)])
    if source == "rnd":
        return found
    if source == "shuffled":
        dealt = found.copy()
        dealt[paid] = generator.permutation(found[paid])
        return dealt
    if source == "length":
        require(lengths is not None and len(lengths) == len(found), "lengths", lengths, "one for each completion")
        share = scale(np.asarray(lengths, dtype=np.float64), _plain(config), group_size=group_size)
    else:
        share = {"none": np.zeros, "constant": np.ones, "uniform": generator.random}[source](len(found))
    other = np.where(paid, factor * share, 0.0)
    if config.control_level == "matched" and other.any():
        other *= found.sum() / other.sum()
    return other


def _plain(config: Config) -> Config:
    """Lengths go on the same scale, but have no running deviation."""
    return replace(config, novelty_scale="minmax") if config.novelty_scale == "running_std" else config


def _centred(found: np.ndarray, paid: np.ndarray, group_size: int | None) -> np.ndarray:
    grouped, flags = (_groups(x, group_size, "center_bonus") for x in (found, paid))
    mean = grouped.sum(axis=1, keepdims=True) / np.maximum(flags.sum(axis=1, keepdims=True), 1)
    return np.where(flags, grouped - mean, 0.0).reshape(-1)


def _unit(grouped: np.ndarray) -> np.ndarray:
    """Each row of a matrix from 0 to 1; a row of equal values gives zeros."""
    if not grouped.size:
        return grouped
    low, span = grouped.min(axis=1, keepdims=True), np.ptp(grouped, axis=1, keepdims=True)
    return np.divide(grouped - low, span, out=np.zeros_like(grouped), where=span > 0)


def _ranks(grouped: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(grouped, axis=1) if grouped.size else grouped


def _groups(values: np.ndarray, group_size: int | None, needed_by: str) -> np.ndarray:
    whole = isinstance(group_size, (int, np.integer)) and group_size >= 1 and len(values) % group_size == 0
    require(whole, "group_size", group_size, f"a divisor of the {len(values)} completions with {needed_by}")
    return values.reshape(-1, group_size)


def _checked(name: str, values: Sequence[float]) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    require(values.ndim == 1, name, f"shape {values.shape}", "a number for each completion")
    bad = values[~(np.isfinite(values) & (values >= 0))]
    if bad.size:
        raise ConfigError(name, bad[0].item(), f"finite and ≥ 0 in all {len(values)} completions")
    return values
