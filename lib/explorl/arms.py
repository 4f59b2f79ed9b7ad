"""Train the arms of a run: every arm under every seed, each in a process of its own, several at a time.

An arm that has finished once is read back, one that was interrupted goes on from its last checkpoint. Runs
that differ only in their seeds or their list of arms share their work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tqdm.std import tqdm

from explorl import places
from explorl.errors import ConfigError
from explorl.params_model import NOT_TRAINING, UNTRAINED, RunParams
from explorl.report import provenance
from explorl.report.records import write_atomic

RESULT, CURVE, LOG = "result.json", "train/curve.jsonl", "log.txt"
POLL_S, HEARTBEAT_S, GRACE_S = 0.2, 300.0, 10.0
LOG_LINES = 15
DECIDES_NUMBERS = ("torch", "transformers", "trl", "peft", "unsloth", "sentence-transformers")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class ArmFailed(RuntimeError):
    """An arm ended without a result; the message ends with the last lines of its log."""


@dataclass
class Job:
    """One arm under one seed, and its process while it runs."""

    arm: str
    seed: int
    folder: Path
    process: subprocess.Popen | None = None
    log: IO | None = None
    started: float = 0.0

    @property
    def label(self) -> str:
        return f"{self.arm} (seed {self.seed})"

    @property
    def done(self) -> bool:
        return (self.folder / RESULT).is_file()

    def steps(self) -> int:
        """Optimiser steps taken so far."""
        try:
            with (self.folder / CURVE).open("rb") as rows:
                return sum(b'"kind": "train"' in row for row in rows)
        except OSError:
            return 0


def train_arms(params: RunParams, *, jobs: int | None = None, progress: bool = True,
               command: Callable[[RunParams, Job, Path], list[str]] | None = None) -> list[dict]:
    """Train and evaluate every arm of a run under every seed.

    Args:
        params: of the run.
        jobs: processes at a time, ≥ 1; None takes the parameters' word, else one per core (with a GPU, one).
        progress: a bar on a terminal, else a line per finished arm and one every five minutes.
        command: what to start for a job; by default ``python -m explorl arm``.

    Returns:
        One result per arm and seed, in the order of ``params.arms`` and ``params.seeds``; see
        :func:`explorl.one_arm.run_arm`.

    Raises:
        ArmFailed: an arm failed. Finished arms are kept, running ones stopped; the next call goes on.
        ConfigError: ``jobs`` is below 1.
    """
    root = group_folder(params)
    write_atomic(root / "params.json", json.dumps(params.model_dump(), indent=1))
    every = [Job(arm, seed, root / f"{arm}-s{seed}") for arm in params.arms for seed in params.seeds]
    width = _width(params, jobs)
    waiting = [job for job in every if not job.done]
    with _reporter(every, params.steps, progress) as report, _stopping_all() as running:
        while waiting or running:
            while waiting and len(running) < width:
                running.append(_start(waiting.pop(0), params, root, command or arm_command))
            time.sleep(POLL_S)
            for job in [job for job in running if job.process.poll() is not None]:
                running.remove(job)
                _finish(job)
                report(job)
            report(None)
    return [read_result(job.folder) for job in every]


def group_folder(params: RunParams) -> Path:
    """The folder that the arms of all runs with the same training share: ``runs/<hash>``.

    The hash covers the parameters that training depends on, the library's source and the packages that decide
    numbers.
    """
    versions = provenance.versions(DECIDES_NUMBERS)
    return places.runs_dir() / provenance.joined(params.hash(without=NOT_TRAINING),
                                                 provenance.source_hash(params.chapter, params.chosen_modules),
                                                 json.dumps(versions))


def read_result(folder: Path) -> dict:
    """What an arm left behind: its result, with ``curve`` and ``items`` as lists of rows."""
    result = json.loads((folder / RESULT).read_text(encoding="utf-8"))
    for name, file in (("curve", folder / CURVE), ("items", folder / "items.jsonl")):
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        result[name] = [json.loads(line) for line in lines]
    return result | {"folder": str(folder)}


def arm_command(params: RunParams, job: Job, params_file: Path) -> list[str]:
    """The command line of one job. ``-P`` keeps the current folder off the import path."""
    return [sys.executable, "-P", "-m", "explorl", "arm", "--params", str(params_file), "--arm", job.arm,
            "--seed", str(job.seed), "--out", str(job.folder), "--parent", str(os.getpid())]


def _width(params: RunParams, jobs: int | None) -> int:
    wanted = jobs if jobs is not None else params.jobs
    if wanted is None:
        return 1 if provenance.gpu_name() else provenance.cores()
    if wanted < 1:
        raise ConfigError("jobs", wanted, "a whole number ≥ 1")
    return wanted


def _start(job: Job, params: RunParams, root: Path, command: Callable) -> Job:
    """Start a job in a session of its own, so that an interrupt reaches it through us and not twice."""
    job.folder.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "TOKENIZERS_PARALLELISM": "false"}
    if not provenance.gpu_name():
        environment |= ONE_THREAD  # the sums, and so the weights, depend on the number of threads
    job.log = (job.folder / LOG).open("ab")
    job.started = time.monotonic()
    job.process = subprocess.Popen(command(params, job, root / "params.json"), stdin=subprocess.DEVNULL,
                                   stdout=job.log, stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
    return job


def _finish(job: Job) -> None:
    job.log.close()
    if job.process.returncode != 0 or not job.done:
        text = (job.folder / LOG).read_text(encoding="utf-8", errors="replace")
        tail = "\n  ".join(text.splitlines()[-LOG_LINES:])
        raise ArmFailed(f"{job.label} ended with exit code {job.process.returncode} and no result. Its log, "
                        f"{job.folder / LOG}, ends:\n  {tail}")


@contextmanager
def _stopping_all() -> Iterator[list[Job]]:
    """A list of running jobs; whatever happens, none of them outlives the block."""
    running: list[Job] = []
    try:
        yield running
    finally:
        for job in running:
            job.process.terminate()
        deadline = time.monotonic() + GRACE_S
        for job in running:
            try:
                job.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                job.process.kill()
                job.process.wait()
            job.log.close()


@contextmanager
def _reporter(every: list[Job], steps: int, progress: bool) -> Iterator[Callable[[Job | None], None]]:
    """Yields ``report(job)``: call it with a job that finished, or with None now and then."""
    per_job = {id(job): 0 if job.arm in UNTRAINED else steps for job in every}
    bar = tqdm(total=sum(per_job.values()), unit="step", desc="arms", leave=False,
               disable=None if progress else True)
    last = [time.monotonic()]

    def report(job: Job | None) -> None:
        now = time.monotonic()
        if bar.disable and (job is None) and now - last[0] < HEARTBEAT_S:
            return
        taken = sum(per_job[id(j)] if j.done else min(j.steps(), per_job[id(j)]) for j in every)
        bar.n = taken
        bar.refresh()
        finished = sum(j.done for j in every)
        if progress and (job or now - last[0] >= HEARTBEAT_S):
            what = f"{job.label}: {now - job.started:.0f} s" if job else f"{taken} of {bar.total} steps"
            tqdm.write(f"[arm {finished}/{len(every)}] {what}", file=sys.stdout)
            last[0] = now

    with bar:
        yield report
