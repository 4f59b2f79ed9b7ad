"""What the three seams cost: step time of the seam trainer over bare TRL with the same rewards.

``python benchmarks/trainer.py`` prints one JSON line. Promise: ``ratio`` ≤ 1.03. Both train the toy policy,
untrained, from the same weights on the same prompts and samples, in alternating runs, so that a drift of the machine
meets both alike; the ratio is that of the medians over all steps after each run's first three, in processor seconds
of one thread.
"""

import argparse
import json
import statistics
import tempfile
import time

import numpy as np
import torch
import trl
from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback

from explorl.papers.method import Advantages, Batch, Method
from explorl.tasks import splits
from explorl.train import toy_policy
from explorl.train.config import TrainConfig, trl_config
from explorl.train.trainer import build, dataset

PROMISE = 1.03
WARM_UP = 3
PARTS = ("oc", "re", "fa", "sd")


def parts(completions, gold) -> dict[str, np.ndarray]:
    """Four components, cheap on purpose: the seams are measured, not a paper's mathematics."""
    right = np.array([g in c for c, g in zip(completions, gold, strict=True)], dtype=float)
    return {name: right + 0.1 * k * np.array([c.count("7") for c in completions]) for k, name in enumerate(PARTS)}


class Cheap(Method):
    """Their sum, less the group's mean: what TRL does with ``scale_rewards="none"``."""

    name = "cheap"

    def components(self, batch: Batch):
        return parts(batch.completions, batch.gold)

    def aggregate(self, components, batch):
        return np.sum([components[name] for name in PARTS], axis=0)

    def advantages(self, total, components, batch):
        groups = total.reshape(-1, batch.group_size)
        return Advantages((groups - groups.mean(1, keepdims=True)).reshape(-1))


class Clock(TrainerCallback):
    """Processor seconds at which steps end: with one thread the step's work, whatever else the machine does."""

    def __init__(self):
        self.ends: list[float] = []

    def on_step_end(self, args, state, control, **kwargs):
        self.ends.append(time.process_time())

    def seconds(self) -> list[float]:
        return np.diff(self.ends)[WARM_UP:].tolist()


def seams(config, problems, folder, clock):
    tokenizer = toy_policy.tokenizer()
    return build(toy_policy.untrained(tokenizer, seed=0), tokenizer, Cheap(), problems, config, folder, [clock])


def bare(config, problems, folder, clock):
    tokenizer = toy_policy.tokenizer()

    def reward(completions, gold, **_):
        return np.sum(list(parts(completions, gold).values()), axis=0).tolist()

    trainer = trl.GRPOTrainer(
        model=toy_policy.untrained(tokenizer, seed=0), processing_class=tokenizer, reward_funcs=[reward],
        args=trl_config(config, folder), callbacks=[clock],
        train_dataset=dataset(problems, config.prompts_needed, config.seed))
    trainer.remove_callback(PrinterCallback)
    return trainer


def run(make, config, problems) -> tuple[list[float], torch.Tensor]:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        trainer = make(config, problems, folder, clock)
        trainer.train()
    return clock.seconds(), torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=4, help="runs of each trainer")
    parser.add_argument("--steps", type=int, default=20, help="steps per run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    config = TrainConfig(steps=options.steps, prompts_per_step=16, group_size=8, max_completion_tokens=40,
                         learning_rate=3e-4)
    problems = splits("digits").train
    times: dict[str, list[float]] = {"seams": [], "bare": []}
    for _ in range(options.rounds):
        weights = {}
        for make in (seams, bare):
            seconds, weights[make.__name__] = run(make, config, problems)
            times[make.__name__] += seconds
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    ratio = medians["seams"] / medians["bare"]
    print(json.dumps({
        "cpu_seconds_per_step": medians, "ratio": round(ratio, 4), "promise": PROMISE, "kept": ratio <= PROMISE,
        "steps_each": len(times["bare"]),
        "same_weights": bool((weights["seams"] - weights["bare"]).abs().max() < 1e-5),
    }))


if __name__ == "__main__":
    main()
