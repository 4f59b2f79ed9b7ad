"""Records: one JSON file per run that was really made, ``results/<chapter>/<run>/result.json``.

A record holds the numbers with their uncertainty, the parameters, and where they came from. It is written
whole or not at all, and holds no path and no host name.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from explorl.errors import ConfigError
from explorl.report.stats import seed_interval, wilson

SCHEMA_VERSION = 1
FILE = "result.json"

Number = Annotated[float, Field(allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


class SeedValue(_Part):
    """The value of a metric under one seed; None where it is not defined (nothing to be redundant, say)."""

    seed: int
    value: Number | None


class Pooled(_Part):
    """A proportion over all items of all seeds: k of n, with its Wilson interval."""

    k: int
    n: int
    low: Number
    high: Number


class MetricRow(_Part):
    """One number of one arm.

    Attributes:
        arm: such as ``sde2``.
        metric: such as ``acc_strict``; proportions are in [0, 1].
        value: the mean over seeds.
        n: items (problems) behind each seed's value.
        low, high: 95 % interval, by the method named in ``interval``; None where there is none.
        interval: ``t`` over two or more seeds, ``wilson`` over the items of one seed, or ``none``.
        seeds: the value under each seed.
        pooled: for proportions, all seeds' items together.
    """

    arm: str
    metric: str
    value: Number | None
    n: Annotated[int, Field(ge=0)]
    low: Number | None
    high: Number | None
    interval: Literal["t", "wilson", "none"]
    seeds: list[SeedValue]
    pooled: Pooled | None = None


class Record(_Part):
    """One run: what came out, of what, with what, on what.

    Attributes:
        schema_version: of this layout.
        chapter, run, scale: as in the parameters.
        metrics: the numbers.
        params: every parameter.
        versions: package → version.
        hardware: plain facts about the machine.
        git_commit: the library's commit, and whether files differed from it; None without a repository.
        seconds: processor-occupying time of all arms together (wall-clock, summed).
        peak_memory_mb: the largest arm's peak resident memory.
        inputs_hash: of the parameters, the notebook's code and the library's source.
        created: UTC, ISO 8601.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    chapter: str
    run: str
    scale: str
    metrics: list[MetricRow]
    params: dict[str, Any]
    versions: dict[str, str]
    hardware: dict[str, str | int | float | None]
    git_commit: str | None
    git_dirty: bool | None
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    peak_memory_mb: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    inputs_hash: str
    created: str

    @model_validator(mode="after")
    def _no_paths(self):
        for place, text in _texts(self.model_dump(), "record"):
            if text.startswith(("/", "~/")) or text[1:3] in (":\\", ":/"):
                raise ValueError(f"{place} holds a path of this machine: {text!r}")
        return self

    def value(self, arm: str, metric: str) -> MetricRow:
        """The row of one arm and metric.

        Raises:
            ConfigError: there is none.
        """
        for row in self.metrics:
            if (row.arm, row.metric) == (arm, metric):
                return row
        known = ", ".join(sorted({f"{row.arm}/{row.metric}" for row in self.metrics}))
        raise ConfigError("metric", f"{arm}/{metric}", f"one of {known}")


def metric_row(arm: str, metric: str, by_seed: Mapping[int, float | None], *, n: int,
               counts: Mapping[int, tuple[int, int]] | None = None) -> MetricRow:
    """Put one metric's seeds together: mean, 95 % interval, and the pooled proportion where counts are given.

    Args:
        arm, metric: the names.
        by_seed: seed → value; None or not finite where undefined (left out of the mean).
        n: items behind each value.
        counts: for a proportion of independent items, seed → (k, n).

    >>> row = metric_row("sde2", "acc", {0: 0.4, 1: 0.6}, n=10, counts={0: (4, 10), 1: (6, 10)})
    >>> row.value, row.interval, row.pooled.k
    (0.5, 't', 10)
    """
    finite = {s: v if v is not None and math.isfinite(v) else None for s, v in by_seed.items()}
    seeds = [SeedValue(seed=s, value=v) for s, v in finite.items()]
    found = [s.value for s in seeds if s.value is not None]
    pooled = _pooled(counts) if counts else None
    mean = sum(found) / len(found) if found else None
    low = high = None
    interval: Literal["t", "wilson", "none"] = "none"
    if len(found) >= 2:
        _, low, high, _ = seed_interval(found)
        interval = "t"
    elif pooled:
        low, high, interval = pooled.low, pooled.high, "wilson"
    return MetricRow(arm=arm, metric=metric, value=mean, n=n, low=low, high=high, interval=interval,
                     seeds=seeds, pooled=pooled)


def _pooled(counts: Mapping[int, tuple[int, int]]) -> Pooled | None:
    k, n = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    if not n:
        return None
    low, high = wilson(k, n)
    return Pooled(k=k, n=n, low=low, high=high)


def write_atomic(path: Path, text: str) -> None:
    """Write a text file whole or not at all: to a hidden neighbour first, which then takes the file's name.

    Raises:
        OSError: it could not be written; ``path`` is as it was before.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def save(record: Record, folder: Path) -> Path:
    """Write ``folder/result.json``; the same record gives the same bytes."""
    path = Path(folder) / FILE
    text = json.dumps(record.model_dump(), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_atomic(path, text + "\n")
    return path


def validate(values: object, *, source: str = "record") -> Record:
    """JSON values → a record.

    Raises:
        ConfigError: not a record of this schema; names the first wrong place.
    """
    try:
        return Record.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "content"
        raise ConfigError(f"{source}: {where}", _short(first["input"]), f"as schema {SCHEMA_VERSION} has it "
                          f"({first['msg']})") from error


def read(path: Path) -> Record:
    """One record.

    Raises:
        ConfigError: not JSON, or not a record.
    """
    source = "/".join(path.parts[-3:])
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(source, type(error).__name__, "a readable JSON record") from error
    return validate(values, source=source)


def read_all(folder: Path, chapter: str | None = None) -> list[Record]:
    """Every record under ``folder/<chapter>/<run>/``, by chapter and run.

    Raises:
        ConfigError: one of them is no record.
    """
    return [read(path) for path in sorted(Path(folder).glob(f"{chapter or '*'}/*/{FILE}"))]


def _short(value: object) -> object:
    text = repr(value)
    return value if len(text) <= 80 else text[:77] + "…"


def _texts(value: object, place: str) -> Iterable[tuple[str, str]]:
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{place}.{key}")
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from _texts(inner, f"{place}[{i}]")
