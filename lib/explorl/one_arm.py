"""One arm under one seed, from parameters to a result file: what ``python -m explorl arm`` does."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from explorl.arms import RESULT
from explorl.params_model import UNTRAINED, RunParams
from explorl.report import provenance
from explorl.report.records import write_atomic
from explorl.tasks import Problem, Split

CURVE_PROBLEMS = 64
CURVE_SAMPLES = 16
"""Problems of the select split that a point of a learning curve is measured on, and samples for each, at most."""
TEST_SEED, CURVE_SEED = 1_000_003, 1_000_033
WATCH_S = 1.0


def run_arm(params: RunParams, arm: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train one arm (or take the policy as it is) and evaluate it on the test split; does nothing twice.

    Args:
        params: of the run.
        arm: one of the parameters' arms.
        seed: of training and sampling.
        folder: this arm's own; gets ``result.json``, ``items.jsonl`` (a row per test problem), ``train/``.

    Returns:
        ``arm``, ``seed``, ``steps``, ``metrics`` (name → value, and k of n for proportions), ``problems``,
        ``policy``, ``seconds``, ``peak_memory_mb``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with only_here(folder):
        if not (folder / RESULT).is_file():
            _run(params, arm, seed, folder)
    return json.loads((folder / RESULT).read_text(encoding="utf-8"))


def chapter_arms(params: RunParams) -> ModuleType:
    """The module that says what the arms of a run's chapter are, such as :mod:`explorl.arms_sde2`.

    It has ``problems(params, arm)`` → Split, ``tool(params)`` → what rewards and measures need (an encoder,
    an equality), ``tag(params)``, ``start(params, arm, problems, tool, policy, seed)`` → a method and what makes
    its trainer, and ``measure(params, problems, groups, tool)`` → metrics and a row per problem.
    """
    return importlib.import_module(f"explorl.arms_{params.chapter}")


def _run(params: RunParams, arm: str, seed: int, folder: Path) -> None:
    start = time.monotonic()
    policy = load_policy(params, seed)  # first: on a GPU it imports Unsloth, which must come before TRL
    chapter = chapter_arms(params)
    problems, tool = chapter.problems(params, arm), chapter.tool(params)

    def test() -> None:
        chosen = problems.test[: params.eval_problems]
        metrics, items = _evaluate(params, policy, chosen, tool, seed + TEST_SEED)
        write_atomic(folder / "items.jsonl", "".join(json.dumps(item) + "\n" for item in items))
        write_atomic(folder / "test.json", json.dumps(metrics))

    trained: Mapping[str, Any] = {}
    if arm in UNTRAINED:
        test()
    else:
        trained = _train(params, arm, seed, folder, policy, problems, tool, test)
    result = {
        "arm": arm, "seed": seed, "steps": trained.get("steps", 0),
        "metrics": json.loads((folder / "test.json").read_text(encoding="utf-8")),
        "problems": len(problems.test[: params.eval_problems]), "policy": policy.describe(),
        "seconds": trained.get("seconds", time.monotonic() - start),
        "peak_memory_mb": trained.get("peak_memory_mb") or provenance.peak_memory_mb(),
    }
    write_atomic(folder / RESULT, json.dumps(result, indent=1))


def _train(params, arm, seed, folder, policy, problems: Split, tool, test) -> dict[str, Any]:
    """Train; the test comes with the last evaluation, so that a kill in it repeats it on the same weights."""
    from explorl.train.arm import train

    def evaluate(policy: Any, step: int) -> dict[str, float]:
        if step == params.steps:
            test()
        if not params.eval_every:
            return {}
        few = params.model_copy(update={"eval_samples": min(params.eval_samples, CURVE_SAMPLES)})
        metrics, _ = _evaluate(few, policy, problems.select[:CURVE_PROBLEMS], tool, seed + CURVE_SEED)
        return {name: entry["value"] for name, entry in metrics.items()}

    chapter = chapter_arms(params)
    method, make = chapter.start(params, arm, problems, tool, policy, seed)
    return train(policy, problems.train, method, params.train_config(seed, arm), folder / "train",
                 evaluate=evaluate, eval_every=params.eval_every or params.steps, tag=chapter.tag(params), make=make)


def load_policy(params: RunParams, seed: int):
    """The policy that the parameters name, untrained."""
    from explorl.train import policies

    return policies.load(params.backbone, lora_r=params.lora_r, lora_alpha=params.lora_alpha,
                         lora_dropout=params.lora_dropout, max_sequence_tokens=params.max_sequence_tokens,
                         load_in_4bit=params.load_in_4bit, seed=seed, start=getattr(params, "start", "habits"))


def _evaluate(params: RunParams, policy, problems: Sequence[Problem], tool, seed: int) -> tuple[dict, list[dict]]:
    from explorl.train.evaluate import sample
    from explorl.train.preflight import evaluation_batch

    groups = sample(policy.model, policy.tokenizer, [p.prompt for p in problems], n=params.eval_samples,
                    temperature=params.eval_temperature, top_p=params.eval_top_p,
                    max_new_tokens=params.max_completion_tokens, seed=seed,
                    batch_size=256 if params.backbone == "toy" else evaluation_batch(params))
    return chapter_arms(params).measure(params, problems, groups, tool)


@contextmanager
def only_here(folder: Path) -> Iterator[None]:
    """Wait until no other process works in the folder; the lock ends with the process, however it ends."""
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def end_with_parent(parent: int) -> None:
    """End this process at once when its parent is gone, so that a killed notebook leaves nothing running."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()
