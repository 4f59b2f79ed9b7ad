"""One run: a chapter's notebook executed with one set of parameters, and the record that comes of it.

In the notebook a run is two calls: ``results = train_arms(params)`` and
``record = finish(params, results, out_dir)``. From outside it is one: ``execute(params, out)``.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from explorl import places
from explorl.arms import ArmFailed, train_arms
from explorl.errors import ConfigError
from explorl.params_model import RunParams
from explorl.report import provenance, records
from explorl.report.records import MetricRow, Record

__all__ = ["ArmFailed", "RunFailed", "execute", "finish", "inputs_hash", "is_done", "metrics_table",
           "train_arms"]

NOTEBOOK = "run.ipynb"
INPUTS = "EXPLORL_INPUTS_HASH"


class RunFailed(RuntimeError):
    """A chapter's cell failed; the message names the error and where the partial notebook lies."""


def metrics_table(results: Sequence[dict]) -> list[MetricRow]:
    """The arms' results as rows of a record: one per arm and metric, seeds put together.

    Args:
        results: of :func:`explorl.arms.train_arms`.
    """
    rows = []
    for arm in dict.fromkeys(result["arm"] for result in results):
        mine = {result["seed"]: result for result in results if result["arm"] == arm}
        for name in dict.fromkeys(name for result in mine.values() for name in result["metrics"]):
            found = {seed: r["metrics"][name] for seed, r in mine.items() if name in r["metrics"]}
            counts = {seed: (entry["k"], entry["n"]) for seed, entry in found.items() if "k" in entry}
            rows.append(records.metric_row(arm, name, {seed: entry["value"] for seed, entry in found.items()},
                                           n=min(mine[seed]["problems"] for seed in found), counts=counts))
    return rows


def finish(params: RunParams, results: Sequence[dict], out_dir: str | os.PathLike | None = None) -> Record:
    """The run's record; written to ``out_dir/result.json`` where a folder is given.

    Args:
        params: of the run.
        results: of :func:`explorl.arms.train_arms`.
        out_dir: papermill's ``out_dir``; None (the book, Colab) writes nothing.

    Raises:
        ConfigError: no results.
    """
    if not results:
        raise ConfigError("results", [], "at least one arm's result")
    commit, dirty = provenance.git_state()
    record = Record(
        chapter=params.chapter, run=params.run, scale=params.scale, metrics=metrics_table(results),
        params=_without_paths(params.model_dump()), versions=provenance.versions(),
        hardware=provenance.hardware(),
        git_commit=commit, git_dirty=dirty, seconds=sum(result["seconds"] for result in results),
        peak_memory_mb=max(result["peak_memory_mb"] for result in results),
        inputs_hash=os.environ.get(INPUTS) or inputs_hash(params),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if out_dir:
        records.save(record, Path(out_dir))
    return record


def inputs_hash(params: RunParams) -> str:
    """What a record depends on: the parameters, the notebook's code, and the library's source."""
    notebook = places.chapter_notebook(params.chapter)
    code = provenance.notebook_hash(notebook) if notebook else "no notebook"
    return provenance.joined(params.hash(), provenance.source_hash(params.chapter, params.chosen_modules), code)


def is_done(params: RunParams, out: Path) -> bool:
    """Whether ``out`` holds a record of this run that was made from the same inputs."""
    record = _record_in(record_folder(params, out))
    return record is not None and record.inputs_hash == inputs_hash(params)


def _record_in(folder: Path) -> Record | None:
    try:
        return records.read(folder / records.FILE)
    except ConfigError:  # absent, or of another schema: to be made anew
        return None


def record_folder(params: RunParams, out: Path) -> Path:
    """``out/<chapter>/<run>``."""
    return Path(out) / params.chapter / params.run


def execute(params: RunParams, out: Path, *, force: bool = False, progress: bool = True
            ) -> tuple[Record, bool]:
    """Execute the chapter's notebook with papermill and read back its record.

    The executed notebook stands beside the record, as far as it came. The chapter's arms go on from where an
    earlier, interrupted call left them.

    Args:
        params: of the run.
        out: parent of the records, usually ``results``.
        force: also where a record from the same inputs is there.
        progress: papermill's bar on stderr, and the arms' lines.

    Returns:
        The record, and whether it was made now.

    Raises:
        ConfigError: the chapter's notebook, or papermill, is not there, or ``out`` can't be written.
        RunFailed: a cell failed, or the chapter wrote no record.
    """
    folder = record_folder(params, out).resolve()
    if not force and is_done(params, out):
        return records.read(folder / records.FILE), False
    notebook = places.chapter_notebook(params.chapter)
    if notebook is None:
        raise ConfigError("chapter", params.chapter, "one with a notebook: use a checkout of the repository")
    _prepare(folder)
    started, path = time.time_ns(), folder / records.FILE
    runs = str(places.runs_dir())  # of our current folder: the notebook's is another
    with _environment({INPUTS: inputs_hash(params), "EXPLORL_SCALE": None, "EXPLORL_RUNS": runs}):
        _papermill(params, notebook, folder, progress)
    if not path.is_file() or path.stat().st_mtime_ns < started:
        raise RunFailed(f"{params.chapter}/{params.run}: the notebook wrote no record: its last cell "
                        "should call explorl.run.finish(params, results, out_dir)")
    return records.read(path), True


def _prepare(folder: Path) -> None:
    """Make the folder, see that it can be written, and set aside what is no record of this schema.

    The chapter reads all records; an unreadable one would fail the very run that is to replace it.
    """
    path = folder / records.FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if path.exists() and _record_in(folder) is None:
            path.replace(path.with_suffix(".unreadable"))
    except OSError as error:
        raise ConfigError("out", str(folder), f"a folder that can be written ({error.strerror})") from error


def _papermill(params: RunParams, notebook: Path, folder: Path, progress: bool) -> None:
    try:
        import jupytext
        import papermill
        from papermill.exceptions import PapermillExecutionError
    except ImportError as error:
        raise ConfigError("environment", error.name, "installed: pip install 'explorl[batch]'") from error
    content = jupytext.read(notebook)
    content.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    values = {name: value for name, value in params.model_dump().items() if value is not None}
    target = folder / NOTEBOOK
    logging.getLogger("papermill").setLevel(logging.ERROR)  # it warns of names that our check has let pass
    try:
        papermill.execute_notebook(content, str(target), parameters=values | {"out_dir": str(folder)},
                                   kernel_name="python3", cwd=str(notebook.parent), progress_bar=progress,
                                   stdout_file=_ArmLines() if progress else None)
    except PapermillExecutionError as error:
        raise RunFailed(f"{params.chapter}/{params.run}: {error.ename} in cell {error.exec_count}: "
                        f"{error.evalue}\nThe notebook as far as it came: {target}") from error


class _ArmLines:
    """Passes on what the arms report of themselves, and no other output of the notebook."""

    def write(self, text: str) -> None:
        lines = [line for line in text.splitlines() if line.startswith("[arm ")]
        sys.stderr.write("".join(f"\n{line}" for line in lines))

    def flush(self) -> None:
        sys.stderr.flush()


@contextmanager
def _environment(changes: dict[str, str | None]) -> Iterator[None]:
    """Environment variables for the block; None takes one away."""
    before = {name: os.environ.get(name) for name in changes}
    _set(changes)
    try:
        yield
    finally:
        _set(before)


def _set(values: dict[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _without_paths(values: dict) -> dict:
    """Parameters for a record: of a local model folder only its name."""
    return {name: Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
            for name, value in values.items()}
