"""Claims of the form "this arm beats that one", each with its measured difference and a verdict of fixed words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from explorl.report import style, verdicts
from explorl.report.metric_names import METRICS
from explorl.report.records import Record
from explorl.report.stats import Estimate
from explorl.report.tables import MISSING, interval_text, styled

Pair = tuple[str, str]


def measure(pair: Pair, records: Sequence[Record], metric: str = "acc_strict"
            ) -> tuple[Estimate | None, Record | None]:
    """The difference of two arms in the first record that holds both, and that record; None where none does.

    Args:
        pair: the arm that is claimed to be better, and the other.
        records: best evidence first.
        metric: a share in [0, 1].
    """
    for record in records:
        found = verdicts.difference(record, *pair, metric)
        if found is not None:
            return found, record
    return None, None


def by_evidence(records: Sequence[Record], *, scale: str | None = None, **having: object) -> list[Record]:
    """Records in the order in which they may speak: most seeds first, newer first among equals.

    Args:
        records: any.
        scale: only those of this scale; None takes all.
        having: parameters and the values that they must have, such as ``start="right"``.
    """
    def seeds(record: Record) -> int:
        return max((len(row.seeds) for row in record.metrics), default=0)

    found = [record for record in records if scale in (None, record.scale)
             and all(record.params.get(name) == value for name, value in having.items())]
    return sorted(found, key=lambda record: (seeds(record), record.created), reverse=True)


def table(pairs: Sequence[Pair], records: Sequence[Record], metric: str = "acc_strict") -> Styler:
    """One row per claim: difference in points with its 95 % interval, seeds, the record, and the verdict.

    >>> table([("sde2", "cfee")], []).data.verdict.tolist()
    ['not tested']
    """
    rows = []
    for pair in pairs:
        found, record = measure(pair, records, metric)
        rows.append([f"{style.display_name(pair[0])} > {style.display_name(pair[1])}", in_points(found),
                     str(found.n) if found else MISSING, f"{record.chapter}/{record.run}" if record else MISSING,
                     verdicts.verdict(found)])
    columns = ["claim", "difference in points", "seeds", "record", "verdict"]
    return styled(pd.DataFrame(rows, columns=columns), f"Verdicts: {', '.join(verdicts.VERDICTS)}.")


def in_points(found: Estimate | None) -> str:
    """A difference of shares as ``+10.2 [+9.2, +11.2]``, or the dash where there is none."""
    if found is None:
        return MISSING
    text = f"{100 * found.value:+.1f}"
    return f"{text} [{100 * found.low:+.1f}, {100 * found.high:+.1f}]" if np.isfinite(found.low) else text


def estimates(record: Record, metric: str = "acc_strict") -> dict[str, Estimate]:
    """Arm → its value with interval, in the form that :func:`explorl.report.figures.forest` draws."""
    found = {}
    for row in record.metrics:
        if row.metric == metric and row.value is not None:
            low = -np.inf if row.low is None else row.low
            high = np.inf if row.high is None else row.high
            found[row.arm] = Estimate(row.value, low, high, len(row.seeds))
    return found


def arms(record: Record, metrics: Sequence[str]) -> Styler:
    """The arms of one run under each other: value [95 % interval] of each metric.

    Args:
        record: of the run.
        metrics: the record's names; one that this run does not have is left out.
    """
    known = {row.metric for row in record.metrics}
    shown = [metric for metric in metrics if metric in known]
    rows = []
    for arm in dict.fromkeys(row.arm for row in record.metrics):
        found = [verdicts.find(record, arm, metric) for metric in shown]
        rows.append([style.display_name(arm), *(interval_text(row, METRICS.get(metric, ("", ""))[1] == "%")
                                                for metric, row in zip(shown, found))])
    headings = [" ".join(METRICS.get(metric, (metric.replace("_", " "), ""))).strip() for metric in shown]
    seeds, n = (max((f(row) for row in record.metrics), default=0) for f in (lambda r: len(r.seeds), lambda r: r.n))
    return styled(pd.DataFrame(rows, columns=["arm", *headings]), f"{seeds} seed(s), {n} test problems each.")
