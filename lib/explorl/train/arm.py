"""One arm of an experiment: one method, one seed, trained to the end however often it is interrupted."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorl.errors import ConfigError
from explorl.papers.method import Method
from explorl.train import resume
from explorl.train.config import TrainConfig
from explorl.train.evaluate import preserved_randomness
from explorl.train.trainer import build

NOT_IN_CURVE = ("step_time", "epoch")  # the first differs between two runs of the same inputs


def train(
    policy: Any,
    problems: Sequence[Any],
    method: Method,
    config: TrainConfig,
    out_dir: str | Path,
    *,
    evaluate: Callable[[Any, int], Mapping[str, Any]] | None = None,
    eval_every: int = 0,
    on_step: Callable[[dict[str, Any]], None] | None = None,
    tag: Mapping[str, Any] | None = None,
    make: Callable[..., Any] = build,
) -> dict[str, Any]:
    """Train a policy with a method, or go on where an interrupted call with the same inputs stopped.

    A call after a kill gives the same curve and weights as an uninterrupted one (same software, hardware and
    thread count). A call after the end returns the stored result at once, and leaves ``policy`` untrained.

    Args:
        policy: has ``model``, ``tokenizer`` and ``describe()``; its model is trained in place.
        problems: have ``prompt``, ``gold`` and ``meta``.
        method: answers the trainer's three seams.
        config: the numbers of the run; ``save_every`` 0 starts anew after an interruption.
        out_dir: this run's own folder.
        evaluate: ``evaluate(policy, step)`` → JSON values for the curve; may use global randomness freely.
        eval_every: steps between evaluations, which also come before the first step and after the last;
            0 never evaluates.
        on_step: called with every new row of the curve.
        tag: further JSON that identifies the run (the encoder, say).
        make: makes the trainer, in the form of :func:`explorl.train.trainer.build`.

    Returns:
        ``hash``, ``method``, ``tag``, ``steps``, ``seconds`` (over all parts of an interrupted run),
        ``peak_memory_mb``, and ``curve``: rows of ``{"kind": "train" | "eval", "step": …, metrics…}``. The
        same without the curve stands in ``result.json``, the curve in ``curve.jsonl``.

    Raises:
        ConfigError: the folder holds another run; the message names what differs.
    """
    if eval_every < 0 or (eval_every and evaluate is None):
        raise ConfigError("eval_every", eval_every, "0, or ≥ 1 together with evaluate")
    folder = Path(out_dir)
    inputs = {
        "config": {k: v for k, v in asdict(config).items() if k != "threads"}, "eval_every": eval_every,
        "method": resume.describe_method(method), "policy": resume.describe(policy.describe()),
        "problems": resume.digest(problems), "tag": resume.describe(tag or {}),
    }
    key = resume.claim(folder, inputs)
    if not (folder / "result.json").exists():
        with torch_threads(config.threads):
            _run(policy, problems, method, config, folder, evaluate, eval_every, on_step, key, inputs, make)
    return {**resume.read_json(folder / "result.json"), "curve": resume.read_rows(folder / "curve.jsonl")}


def _run(policy, problems, method, config, folder, evaluate, eval_every, on_step, key, inputs, make) -> None:
    checkpoint = resume.rewind(folder, lambda rows, step: _whole(rows, step, eval_every, config.steps))
    before = resume.read_json(checkpoint / resume.DONE)["seconds"] if checkpoint else 0.0
    recorder = curve_recorder(policy, folder, evaluate, eval_every, on_step, before)
    trainer = make(policy.model, policy.tokenizer, method, problems, config, folder, [recorder])
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    resume.write_json(folder / "result.json", {
        "hash": key, "method": method.name, "tag": inputs["tag"], "steps": config.steps,
        "seconds": recorder.seconds(), "peak_memory_mb": peak_memory_mb(),
    })


def _whole(rows: list[dict], step: int, eval_every: int, steps: int) -> bool:
    """Whether the rows up to a step hold each training step once, and each evaluation that was due."""
    trained = [row["step"] for row in rows if row["kind"] == "train"]
    evaluated = [row["step"] for row in rows if row["kind"] == "eval"]
    due = [s for s in range(step + 1) if s % eval_every == 0 or s == steps] if eval_every else []
    return trained == list(range(1, step + 1)) and evaluated == due


def curve_recorder(policy, folder: Path, evaluate, eval_every: int, on_step, seconds_before: float) -> Any:
    """A Transformers callback that writes the curve, evaluates, and marks checkpoints whole."""
    from transformers import TrainerCallback

    class CurveRecorder(TrainerCallback):
        """A step's rows are written before its checkpoint: a whole checkpoint has a whole curve behind it."""

        def __init__(self):
            self.start = time.monotonic()

        def seconds(self) -> float:
            return seconds_before + time.monotonic() - self.start

        def row(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
            row = {"kind": kind, "step": step, **values}
            resume.append_row(folder / "curve.jsonl", row)
            if on_step is not None:
                on_step(row)

        def evaluate_if_due(self, state) -> None:
            if eval_every and (state.global_step % eval_every == 0 or state.global_step == state.max_steps):
                with preserved_randomness():
                    values = evaluate(policy, state.global_step)
                self.row("eval", state.global_step, values)

        def on_train_begin(self, args, state, control, **kwargs):
            if state.global_step == 0:
                self.evaluate_if_due(state)

        def on_log(self, args, state, control, logs=None, **kwargs):
            if "loss" in logs:  # the closing summary has none
                self.row("train", state.global_step, {k: v for k, v in logs.items() if k not in NOT_IN_CURVE})
                self.evaluate_if_due(state)

        def on_save(self, args, state, control, **kwargs):
            checkpoint = folder / f"checkpoint-{state.global_step}"
            resume.write_json(checkpoint / resume.DONE, {"seconds": self.seconds()})

    return CurveRecorder()


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Torch's CPU thread count within the block; 0 leaves it."""
    import torch

    before = torch.get_num_threads()
    if count:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def peak_memory_mb() -> float | None:
    """Peak memory in MiB: of the GPU where there is one, else resident; None where unknown (Windows)."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    if sys.platform == "win32":
        return None
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
