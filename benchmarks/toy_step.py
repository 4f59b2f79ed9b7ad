"""What SD-E² costs in the toy run: a step of the arm ``sde2`` over a step of plain, outcome-only GRPO.

``python benchmarks/toy_step.py`` prints one JSON line. Promise: ``ratio`` ≤ 1.5. Both arms start from the packaged
policy with the parameters of ``params/sde2/toy.yaml``, in alternating runs of one process; the ratio is that of the
medians over all steps after each run's first three, in processor seconds of one thread. As they learn, the arms write
completions of different lengths, so the steps are few: what is measured is the reward, not the length.
"""

import argparse
import json
import statistics
import tempfile

import torch
from trainer import Clock

from explorl import arms_sde2, params
from explorl.papers import baselines
from explorl.tasks import splits
from explorl.train import toy_policy
from explorl.train.trainer import build

PROMISE = 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each arm")
    parser.add_argument("--steps", type=int, default=13, help="steps per run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = params.load("sde2", "toy", steps=options.steps)
    problems, encode = splits(run.task).train, arms_sde2.tool(run)
    methods = {"sde2": arms_sde2.method(run, "sde2", encode, 0), "grpo": baselines.Outcome(run.sde2_config())}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(options.rounds):
        for name, method in methods.items():
            clock = Clock()
            with tempfile.TemporaryDirectory() as folder:
                build(*toy_policy.load(), method, problems, run.train_config(0), folder, [clock]).train()
            times[name] += clock.seconds()
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    ratio = medians["sde2"] / medians["grpo"]
    stats = encode.stats
    print(json.dumps({
        "cpu_seconds_per_step": medians, "ratio": round(ratio, 3), "promise": PROMISE, "kept": ratio <= PROMISE,
        "steps_each": len(times["grpo"]), "texts_asked": stats.asked, "texts_encoded": stats.encoded,
    }))


if __name__ == "__main__":
    main()
