"""What each test problem's group of answers looked like, kept beside a record, so that figures need no new run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from explorl import places
from explorl.errors import ConfigError
from explorl.report import claims
from explorl.report.records import FILE as RECORD
from explorl.report.records import read as read_record
from explorl.report.records import write_atomic
from explorl.report.stats import pass_at_k

FILE = "samples.json"
FIELDS = ("key", "n", "right", "entropy_nats", "majority_right", "p_majority", "n_clusters", "blank")
"""What is kept of an item row: everything but its text."""
DIGITS = 4


def save(results: Sequence[Mapping], folder: str | os.PathLike | None) -> None:
    """Write the test items of a run beside its record, ``folder/samples.json``; does nothing without a folder.

    Columns instead of rows, and numbers to :data:`DIGITS` digits: some 45 bytes per problem, arm and seed.

    Args:
        results: of :func:`explorl.arms.train_arms`.
        folder: the record's.
    """
    if folder:
        kept = [{"arm": r["arm"], "seed": r["seed"],
                 "items": {name: [_short(row[name]) for row in r["items"]] for name in FIELDS}} for r in results]
        text = ",\n".join(json.dumps(entry, allow_nan=False, separators=(",", ":")) for entry in kept)
        write_atomic(Path(folder) / FILE, f"[{text}]\n")


def _short(value: object) -> object:
    return round(value, DIGITS) if isinstance(value, float) else value


def read(path: str | os.PathLike) -> list[dict]:
    """The items of a file that :func:`save` wrote.

    Returns:
        Per arm and seed ``arm``, ``seed`` and ``items``, a row of :data:`FIELDS` for each test problem.

    Raises:
        ConfigError: the file can't be read, or is not of this form.
    """
    path = Path(path)
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return [{"arm": e["arm"], "seed": e["seed"], "items": _rows(e["items"])} for e in entries]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError("/".join(path.parts[-3:]), type(error).__name__, "items as samples.save writes them; delete "
                          "it and make the run again") from error


def _rows(columns: Mapping[str, Sequence]) -> list[dict]:
    return [dict(zip(FIELDS, row)) for row in zip(*(columns[name] for name in FIELDS), strict=True)]


def best(results: Sequence[Mapping], chapter: str, scale: str, *, folder: Path | None = None, **having: object
         ) -> tuple[Sequence, str]:
    """The items with the most seeds: those of this run, or those kept beside a record of the same scale.

    Args:
        results: of this run; may be empty.
        chapter, scale: of this run.
        folder: of all records; by default the committed ones.
        having: parameters and the values that a record must have, such as ``start="wrong"``.

    Returns:
        The results, and whose they are: ``this run`` or the record's name.

    Raises:
        ConfigError: a file of items, or the record beside it, can't be read.
    """
    found, name = results, "this run"
    for path in sorted((folder or places.committed_results_dir()).glob(f"{chapter}/*/{FILE}")):
        record = path.with_name(RECORD)
        if record.is_file() and claims.by_evidence([read_record(record)], scale=scale, **having):
            kept = read(path)
            if _seeds(kept) > _seeds(found):
                found, name = kept, f"{chapter}/{path.parent.name}"
    return found, name


def _seeds(results: Sequence[Mapping]) -> int:
    return len({result["seed"] for result in results if result["items"]})


def of_arm(results: Sequence[Mapping], arm: str) -> dict[int, list[dict]]:
    """Seed → item rows of one arm."""
    return {result["seed"]: list(result["items"]) for result in results if result["arm"] == arm}


def arms(results: Sequence[Mapping]) -> list[str]:
    """The arms that have items, in order."""
    return list(dict.fromkeys(result["arm"] for result in results if result["items"]))


def column(rows: Sequence[Mapping], name: str) -> np.ndarray:
    """One field of item rows, (items,) float64."""
    return np.array([row[name] for row in rows], dtype=np.float64)


def pass_curve(results: Sequence[Mapping], arm: str, ks: Sequence[int]) -> np.ndarray:
    """pass@k of an arm, unbiased, averaged over problems: (seeds, len(ks)) in [0, 1].

    Args:
        results: of a run, or of :func:`read`.
        arm: its name.
        ks: each at most the number of samples per problem.

    >>> rows = [{"n": 4, "right": 1}, {"n": 4, "right": 4}]
    >>> pass_curve([{"arm": "base", "seed": 0, "items": rows}], "base", [1, 2]).tolist()
    [[0.625, 0.75]]
    """
    return np.array([[np.mean([pass_at_k(row["n"], row["right"], k) for row in rows]) for k in ks]
                     for rows in of_arm(results, arm).values()])


def by_start(results: Sequence[Mapping], arm: str, *, base: str = "base") -> dict[str, np.ndarray]:
    """An arm's accuracy on the problems whose majority was right, and wrong, *before* training.

    Args:
        results: of a run that has the arm and the base.
        arm: its name.
        base: the untrained arm, which says where each problem's majority stood.

    Returns:
        ``right`` and ``wrong``: (seeds,) accuracy in [0, 1]; NaN over no problems, no entry for a seed without base.
    """
    before, after = of_arm(results, base), of_arm(results, arm)
    found: dict[str, list[float]] = {"right": [], "wrong": []}
    for seed in sorted(before.keys() & after.keys()):
        stood = {row["key"]: bool(row["majority_right"]) for row in before[seed]}
        for name, flag in (("right", True), ("wrong", False)):
            part = [row["right"] / row["n"] for row in after[seed] if stood.get(row["key"]) is flag]
            found[name].append(float(np.mean(part)) if part else float("nan"))
    return {name: np.array(values) for name, values in found.items()}


def sides(results: Sequence[Mapping], arm: str, *, base: str = "base") -> dict[str, int]:
    """How many problems' majority changed sides by training, all common seeds together.

    Returns:
        As :func:`explorl.papers.empo_metrics.transitions`.
    """
    from explorl.papers.empo_metrics import transitions

    before, after = ({(seed, row["key"]): bool(row["majority_right"]) for seed, rows in of_arm(results, name).items()
                      for row in rows} for name in (base, arm))
    common = before.keys() & after.keys()
    return transitions({key: before[key] for key in common}, {key: after[key] for key in common})
