"""One arm under one seed, from parameters to a result file: what ``python -m explorl arm`` does."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorl import arms_sde2
from explorl.arms import RESULT
from explorl.params_model import UNTRAINED, SDE2Params
from explorl.report import provenance
from explorl.report.records import write_atomic
from explorl.tasks import Problem, Split, splits

CURVE_PROBLEMS = 64
"""Problems of the select split that a point of a learning curve is measured on, at most."""
TEST_SEED, CURVE_SEED = 1_000_003, 1_000_033
WATCH_S = 1.0


def run_arm(params: SDE2Params, arm: str, seed: int, folder: Path) -> dict[str, Any]:
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


def _run(params: SDE2Params, arm: str, seed: int, folder: Path) -> None:
    start = time.monotonic()
    policy = load_policy(params, seed)  # first: on a GPU it imports Unsloth, which must come before TRL
    problems = asked(params, arm, splits(params.task))
    encode = arms_sde2.encoder(params)

    def test() -> None:
        chosen = problems.test[: params.eval_problems]
        metrics, items = _evaluate(params, policy, chosen, encode, seed + TEST_SEED)
        write_atomic(folder / "items.jsonl", "".join(json.dumps(item) + "\n" for item in items))
        write_atomic(folder / "test.json", json.dumps(metrics))

    trained: Mapping[str, Any] = {}
    if arm in UNTRAINED:
        test()
    else:
        trained = _train(params, arm, seed, folder, policy, problems, encode, test)
    result = {
        "arm": arm, "seed": seed, "steps": trained.get("steps", 0),
        "metrics": json.loads((folder / "test.json").read_text(encoding="utf-8")),
        "problems": len(problems.test[: params.eval_problems]), "policy": policy.describe(),
        "seconds": trained.get("seconds", time.monotonic() - start),
        "peak_memory_mb": trained.get("peak_memory_mb") or provenance.peak_memory_mb(),
    }
    write_atomic(folder / RESULT, json.dumps(result, indent=1))


def _train(params, arm, seed, folder, policy, problems: Split, encode, test) -> dict[str, Any]:
    """Train; the test comes with the last evaluation, so that a kill in it repeats it on the same weights."""
    from explorl.train.arm import train

    def evaluate(policy: Any, step: int) -> dict[str, float]:
        if step == params.steps:
            test()
        if not params.eval_every:
            return {}
        metrics, _ = _evaluate(params, policy, problems.select[:CURVE_PROBLEMS], encode, seed + CURVE_SEED)
        return {name: entry["value"] for name, entry in metrics.items()}

    method = arms_sde2.method(params, arm, encode, seed)
    return train(policy, problems.train, method, params.train_config(seed), folder / "train",
                 evaluate=evaluate, eval_every=params.eval_every or params.steps,
                 tag={"encoder": params.encoder})


def load_policy(params: SDE2Params, seed: int):
    """The policy that the parameters name, untrained."""
    from explorl.train import policies

    return policies.load(params.backbone, lora_r=params.lora_r, lora_alpha=params.lora_alpha,
                         lora_dropout=params.lora_dropout, max_sequence_tokens=params.max_sequence_tokens,
                         load_in_4bit=params.load_in_4bit, seed=seed)


def asked(params: SDE2Params, arm: str, problems: Split) -> Split:
    """The problems as an arm's policy reads them: in the toy world as they are, else a chat in its style."""
    from explorl.tasks.prompts import messages

    if params.backbone == "toy":
        return problems
    style = "single_trace" if arm == "single_trace" else "multi_strategy"

    def put(part: Sequence[Problem]) -> tuple[Problem, ...]:
        return tuple(replace(problem, prompt=messages(problem, style)) for problem in part)

    return Split(put(problems.train), put(problems.select), put(problems.test))


def _evaluate(params: SDE2Params, policy, problems: Sequence[Problem], encode, seed: int
              ) -> tuple[dict, list[dict]]:
    from explorl.train.evaluate import sample

    groups = sample(policy.model, policy.tokenizer, [p.prompt for p in problems], n=params.eval_samples,
                    temperature=params.eval_temperature, top_p=params.eval_top_p,
                    max_new_tokens=params.max_completion_tokens, seed=seed,
                    batch_size=256 if params.backbone == "toy" else 16)
    return arms_sde2.measure(params, problems, groups, encode)


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
