"""What SD-E²'s tables report (eq 25–26, Appendix D), from the components of evaluated completions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def metrics(components: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Accuracy, strategies and redundancy of N completions.

    Redundancy is measured at ``delta_eval``, the same for all models, over completions with at least one
    embedded strategy; the paper names RR@δ and Uniqueness and defines neither.

    Args:
        components: of :func:`explorl.papers.sde2.components`.

    Returns:
        Percent: ``ACC_strict`` (from <final_answer> only), ``ACC_fallback`` (eq 7), ``S-ACC`` (eq 26), and
        ``S-ACC_by_chance``: what independent strategies, each as often right as ACC_strict, would reach.
        Means: ``STR`` (#STR: valid blocks, not distinct ones), ``uniq``, ``outcomes`` (distinct), ``TOK``.
        In [0, 1]: ``RR``, ``uniqueness`` (macro: mean over completions), ``RR_micro``, ``RR_solved`` and
        ``RR_unsolved`` (macro, split by χ), ``saturated`` and ``valley`` (shares of the unsolved).
        NaN where there is nothing to measure. Without embeddings, only what needs none.

    >>> ones = np.ones(1)
    >>> found = metrics({"correct_strict": ones, "correct_fallback": ones, "chi": ones,
    ...                  "n_strategies": 2 * ones, "n_outcomes": ones})
    >>> found["ACC_strict"], found["STR"]
    (100.0, 2.0)
    """
    strict, strategies = _mean(components["correct_strict"]), _mean(components["n_strategies"])
    found = {
        "ACC_strict": 100 * strict,
        "ACC_fallback": 100 * _mean(components["correct_fallback"]),
        "S-ACC": 100 * _mean(components["chi"]),
        "S-ACC_by_chance": 100 * (1 - (1 - strict) ** strategies),
        "STR": strategies,
        "outcomes": _mean(components["n_outcomes"]),
    }
    if "uniq_eval" in components:
        found |= _diversity(components)
    if "length_tokens" in components:
        found["TOK"] = _mean(components["length_tokens"])
    return found


def _diversity(components: Mapping[str, np.ndarray]) -> dict[str, float]:
    kept, m_eff, solved = components["uniq_eval"], components["m_eff"], components["chi"] > 0
    some = m_eff > 0
    share = np.divide(kept, m_eff, out=np.full(len(kept), np.nan), where=some)
    return {
        "uniq": _mean(kept),
        "uniqueness": _mean(share[some]),
        "RR": 1 - _mean(share[some]),
        "RR_micro": 1 - kept.sum() / m_eff.sum() if some.any() else float("nan"),
        "RR_solved": 1 - _mean(share[some & solved]),
        "RR_unsolved": 1 - _mean(share[some & ~solved]),
        "saturated": _mean(components["saturated"][~solved]),
        "valley": _mean(components["valley"][~solved]),
    }


def _mean(x: np.ndarray) -> float:
    return float(np.mean(x)) if len(x) else float("nan")
