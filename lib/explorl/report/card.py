"""The card at the head of a chapter and the provenance at its foot: what it costs, where its numbers come from."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas.io.formats.style import Styler

from explorl import params, places
from explorl.params_model import RunParams
from explorl.report import records as record_files
from explorl.report.records import Record
from explorl.report.tables import MISSING, styled
from explorl.train import preflight


def scales(chapter: str, names: tuple[str, ...] = ("toy", "t4", "t4_paper")) -> Styler:
    """What a run costs at each scale: measured where a record is kept, else an estimate that says so.

    Args:
        chapter: such as ``sde2``.
        names: files of ``params/<chapter>/``.
    """
    kept = record_files.read_all(places.committed_results_dir(), chapter)
    rows = [_scale_row(params.load(chapter, name), kept) for name in names]
    columns = ["scale", "policy", "task", "arms × seeds", "steps", "time", "memory", "basis"]
    return styled(pd.DataFrame(rows, columns=columns))


def _scale_row(p: RunParams, kept: Sequence[Record]) -> list[str]:
    """From the run's own record, else from a longer one of the same scale and steps, per arm and seed."""
    alike = [r for r in kept if r.scale == p.scale and r.params.get("steps") == p.steps]
    record = next((r for r in alike if r.run == p.run), alike[0] if alike else None)
    start = [p.scale, p.backbone.rsplit("/", 1)[-1], p.task, f"{len(p.arms)} × {len(p.seeds)}", str(p.steps)]
    if record is not None:
        gpu = record.hardware.get("gpu")
        each = record.seconds / (len(record.params["arms"]) * len(record.params["seeds"]))
        return [*start, _duration(each * len(p.arms) * len(p.seeds) / 60), f"{record.peak_memory_mb / 1024:.1f} GB",
                f"measured on {gpu or str(record.hardware.get('cores')) + ' cores'}"]
    if p.backbone in preflight.CPU_BACKBONES:
        return [*start, MISSING, MISSING, "not run yet"]
    need, (low, high) = preflight.estimate(p), preflight.minutes(p)
    return [*start, f"{_duration(low)} – {_duration(high)}", f"{need.need_gib:.1f} GiB", "estimate, not run yet"]


def _duration(minutes: float) -> str:
    """Minutes, hours or days, whichever reads best.

    >>> _duration(7.2), _duration(150), _duration(6000)
    ('7 min', '2.5 h', '4.2 days')
    """
    if minutes < 100:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.1f} h" if minutes < 48 * 60 else f"{minutes / 1440:.1f} days"


def provenance(record: Record) -> Styler:
    """Where a run's numbers come from: seeds, code, packages, machine."""
    dirty = " (with changes)" if record.git_dirty else ""
    facts = {
        "run": f"{record.chapter}/{record.run}, scale {record.scale}",
        "made": record.created,
        "seeds": ", ".join(map(str, record.params["seeds"])),
        "arms": ", ".join(record.params["arms"]),
        "time of all arms": _duration(record.seconds / 60) if record.seconds >= 60 else f"{record.seconds:.0f} s",
        "commit": f"{(record.git_commit or 'no repository')[:10]}{dirty}",
        "inputs": record.inputs_hash,
        "packages": ", ".join(f"{name} {version}" for name, version in record.versions.items()),
        "machine": ", ".join(f"{name}: {value}" for name, value in record.hardware.items() if value),
    }
    return styled(pd.DataFrame(list(facts.items()), columns=["what", "value"]))
