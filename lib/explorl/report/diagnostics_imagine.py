"""What IMAGINE's bonus did in training, arm by arm: novelty against length, how much it paid, whom it lifted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from explorl.report import curves, style
from explorl.report.stats import Estimate, seed_interval
from explorl.report.tables import MISSING, styled

RHO, MEDIAN, CUT = "imagine/novelty_length_rho", "imagine/bonus_median", "imagine/bonus_truncated"
LIFTED, ALL_WRONG = "imagine/wrong_lifted", "imagine/all_wrong_groups"


def by_seed(results: Sequence[Mapping], name: str, *, last: int = 10, first: bool = False
            ) -> dict[str, dict[int, float]]:
    """A training metric's mean over the last steps.

    Args:
        results: of a run, or of a file of :func:`curves.save`.
        name: of the metric, such as ``imagine/bonus_median``.
        last: how many steps count, ≥ 1; of kept window means those that end in them.
        first: take the first steps instead of the last.

    Returns:
        Arm → seed → mean; a seed without a value there has no entry, an arm without a seed neither.

    >>> rows = [{"kind": "train", "step": n, "x": n / 10} for n in (1, 2, 3)]
    >>> by_seed([{"arm": "imagine", "seed": 7, "curve": rows}], "x", last=2)
    {'imagine': {7: 0.25}}
    """
    found: dict[str, dict[int, float]] = {}
    for result in results:
        steps, values = curves.points([result], name, kind="train")
        if not len(steps):
            continue
        end = max(_steps(results))
        inside = steps <= last if first else steps > end - last
        if inside.any():
            found.setdefault(result["arm"], {})[result["seed"]] = float(values[result["arm"]][0, inside].mean())
    return found


def over_seeds(results: Sequence[Mapping], name: str, **which: object) -> dict[str, Estimate]:
    """Arm → mean over seeds of :func:`by_seed`, with its t interval."""
    return {arm: seed_interval(list(seeds.values())) for arm, seeds in by_seed(results, name, **which).items()}


def table(results: Sequence[Mapping], *, last: int = 10) -> Styler:
    """One row per arm that has any of the measures.

    Args:
        results: of a run, or of a file of :func:`curves.save`.
        last: steps at the end, and for the share of all-wrong groups at the beginning too.
    """
    rho = by_seed(results, RHO, last=last)
    columns = {
        "median bonus": (over_seeds(results, MEDIAN, last=last), 1.0),
        "bonus to cut-off answers, %": (over_seeds(results, CUT, last=last), 100.0),
        "wrong answers pushed up, %": (over_seeds(results, LIFTED, last=last), 100.0),
        "all-wrong groups at first, %": (over_seeds(results, ALL_WRONG, last=last, first=True), 100.0),
        "at last, %": (over_seeds(results, ALL_WRONG, last=last), 100.0),
    }
    arms = [arm for arm in dict.fromkeys(result["arm"] for result in results)
            if arm in rho or any(arm in values for values, _ in columns.values())]
    rows = [[style.display_name(arm), _signed(rho.get(arm, {})),
             *(_text(values.get(arm), scale) for values, scale in columns.values())] for arm in arms]
    frame = pd.DataFrame(rows, columns=["arm", "ρ of novelty and length, by seed", *columns])
    return styled(frame, f"Means over the last {last} steps; mean over seeds [95 % interval].")


def _steps(results: Sequence[Mapping]) -> list[int]:
    kept = [step for result in results for step in result.get("train", {}).get("step", ())]
    return kept + [row["step"] for result in results for row in result["curve"] if row["kind"] == "train"]


def _signed(values: Mapping[int, float]) -> str:
    return ", ".join(f"{value:+.2f}" for _, value in sorted(values.items())) or MISSING


def _text(found: Estimate | None, scale: float) -> str:
    """Percent with one digit after the point, other numbers with two significant ones."""
    if found is None:
        return MISSING
    words = [f"{value * scale:.1f}" if scale != 1 else f"{value:.2g}" for value in found[:3]]
    return f"{words[0]} [{words[1]}, {words[2]}]" if np.isfinite(found.low) else words[0]
