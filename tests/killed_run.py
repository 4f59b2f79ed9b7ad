"""Start a run and kill the process without warning: ``python killed_run.py FOLDER STEP WHERE``."""

import os
import signal
import sys

import numpy as np
import tiny_policy as tiny
import torch
from explorl.papers.method import Advantages, group_normalise
from explorl.train.arm import train
from explorl.train.config import TrainConfig
from explorl.train.evaluate import sample

CONFIG = TrainConfig(steps=9, prompts_per_step=2, group_size=3, max_completion_tokens=8, learning_rate=1e-2,
                     lr_schedule="cosine", save_every=3, threads=1)


class Remembering(tiny.Wordy):
    """A method with a state: its advantages grow with the batches it has seen."""

    name = "remembering"

    def __init__(self):
        self._seen = 0

    def describe(self):
        return {"name": self.name}

    def advantages(self, total, components, batch):
        self._seen += 1
        return Advantages(group_normalise(total, batch.group_size) * np.log1p(self._seen))

    def state_dict(self):
        return {"seen": self._seen}

    def load_state_dict(self, state):
        self._seen = state["seen"]


def evaluate(policy, step):
    """Uses global randomness, as an evaluation may."""
    drawn = sample(policy.model, policy.tokenizer, ["w1 w2 w3"], n=8, max_new_tokens=8, seed=step)[0]
    torch.rand(1), np.random.rand(1)
    return {"mean_length": float(np.mean([len(c.ids) for c in drawn]))}


def run(folder, on_step=None, config=CONFIG, **changes):
    """The run; returns its result and the policy."""
    policy = tiny.policy()
    arguments = {"evaluate": evaluate, "eval_every": 4, "tag": {"arm": "test"}, **changes}
    return train(policy, tiny.problems(5), Remembering(), config, folder, on_step=on_step, **arguments), policy


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    folder, step, where = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    if where == "checkpoint":  # the trainer's files are there, the mark of completeness is not
        from explorl.train import resume

        write = resume.write_json
        marked = f"checkpoint-{step}"
        resume.write_json = lambda path, value: kill() if marked in str(path) else write(path, value)
    run(folder, on_step=lambda row: kill() if where == "step" and row["step"] == step else None)
