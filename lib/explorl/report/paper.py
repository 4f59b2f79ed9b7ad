"""What a paper reports, and whether a printed percentage can be a share of the stated test set."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pandas as pd
import yaml
from scipy import stats as sp

from explorl.errors import ConfigError
from explorl.tasks import EVALUATION

COLUMNS = ("table", "model", "row", "metric", "value", "decimals", "n", "count", "low", "high",
           "plus_minus", "status", "source", "note")
STATUSES = ("printed", "derived", "not_recovered")
SHARES = ("acc", "s_acc", *(f"acc_{task}" for task in EVALUATION),
          *(f"{kind}_at_{k}" for kind in ("pass", "avg") for k in (1, 8, 32)))
"""Metrics that are a share of n test items."""


def load(paper: str) -> pd.DataFrame:
    """Every reported number of a paper.

    Args:
        paper: such as ``sde2``.

    Returns:
        One row per cell with the columns of :data:`COLUMNS`. ``value``, ``low``, ``high`` and
        ``plus_minus`` (in the value's unit, as printed) are NaN where they are not known; ``n`` and
        ``count`` are nullable integers; accuracies are in percent, printed with ``decimals`` digits.

    Raises:
        ConfigError: unknown paper.

    >>> load("sde2").query("table == '1' and row == 'sde2' and metric == 'acc'").value.tolist()
    [82.03, 75.44, nan]
    """
    folder = files("explorl.paper_tables")
    known = sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))
    if paper not in known:
        raise ConfigError("paper", paper, f"one of {', '.join(known)}")
    document = yaml.safe_load((folder / f"{paper}.yaml").read_text(encoding="utf-8"))
    frame = pd.DataFrame(document["cells"], columns=list(COLUMNS))
    frame["decimals"] = frame.decimals.fillna(document.get("decimals", 2))
    numbers = {"value": float, "low": float, "high": float, "plus_minus": float, "decimals": int, "n": "Int64",
               "count": "Int64"}
    return frame.astype(numbers)


def achievable(value_pct: float, n: int, decimals: int = 2) -> int | None:
    """The number k of right answers for which 100·k/n rounds to the printed percentage, or None.

    None means that no number of right answers among ``n`` gives the printed digits: the value is an average,
    belongs to another n, or is misprinted. Where several k fit, the nearest is given. A value half-way
    between two roundings fits both.

    Args:
        value_pct: as printed, in percent.
        n: size of the test set, ≥ 1.
        decimals: digits printed after the point, ≥ 0.

    Raises:
        ConfigError: n < 1 or decimals < 0.

    >>> achievable(82.03, 1319), achievable(75.15, 1319)
    (1082, None)
    """
    if n < 1:
        raise ConfigError("n", n, "at least 1")
    if decimals < 0:
        raise ConfigError("decimals", decimals, "at least 0")
    k = round(value_pct * n / 100)
    half_unit = 0.5 * 10.0**-decimals
    fits = abs(100 * k / n - value_pct) <= half_unit * (1 + 1e-9)
    return k if fits and 0 <= k <= n else None


def audit(frame: pd.DataFrame) -> pd.DataFrame:
    """The accuracy cells of a paper's table with the k that :func:`achievable` finds at their n.

    Args:
        frame: as :func:`load` gives it.

    Returns:
        The rows whose metric is a share (:data:`SHARES`) and whose value and n are known, with ``k`` (nullable
        integer), ``fits``, and ``below`` and ``above``: the two percentages around the printed one that n allows.
    """
    cells = frame[frame.metric.isin(SHARES) & frame.value.notna() & frame.n.notna()].copy()
    found = [achievable(v, int(n), int(d)) for v, n, d in zip(cells.value, cells.n, cells.decimals)]
    exact = cells.value * cells.n.astype(float) / 100
    cells["k"] = pd.array(found, dtype="Int64")
    cells["fits"] = cells.k.notna()
    cells["below"] = 100 * np.floor(exact) / cells.n.astype(float)
    cells["above"] = 100 * np.ceil(exact) / cells.n.astype(float)
    return cells


def welch(a: float, b: float, a_deviation: float, b_deviation: float, runs: int) -> float:
    """Two-sided p of Welch's t test for two printed averages, if their ± is the standard deviation over runs.

    Args:
        a, b: averages over runs.
        a_deviation, b_deviation: sample standard deviations of the runs, > 0, in the unit of the averages.
        runs: of either, ≥ 2.

    Raises:
        ConfigError: fewer than two runs, or a deviation that is not above 0.

    >>> round(welch(82.51, 80.82, 1.21, 1.02, 5), 3)
    0.045
    """
    if runs < 2:
        raise ConfigError("runs", runs, "at least 2")
    if not (a_deviation > 0 and b_deviation > 0):
        raise ConfigError("a_deviation, b_deviation", f"{a_deviation} and {b_deviation}", "above 0")
    return float(sp.ttest_ind_from_stats(a, a_deviation, runs, b, b_deviation, runs, equal_var=False).pvalue)
