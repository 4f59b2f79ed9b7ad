"""Make the toy policy's warm starts: each can calculate and check, but clings to its habits.

``python -m explorl.train.warm_start START [FOLDER]`` writes ``model.safetensors`` and ``SHA256``. Same seed, same
software, same processor: same bytes.

Two kinds of traces take turns. *Habits* teach everything they show: how many strategies to write, and which.
*Practice* shows strategies of every story, in traces of every length, and teaches only how to calculate the outcome
and how to pick the final answer. So what the policy lacks at the start is exploration, and not skill.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorl.tasks import digits
from explorl.tasks.problem import Problem
from explorl.train import toy_policy

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Habits:
    """What the demonstrations do.

    Attributes:
        stories: weights over :data:`explorl.tasks.digits.RULES`.
        blocks: weights of writing 1, 2, … strategies.
        stay: probability of repeating the last story in other words.
        off_topic: probability that a strategy's sentence is beside the point.
    """

    stories: tuple[float, ...] = (0.42, 0.26, 0.14, 0.08, 0.06, 0.04)
    blocks: tuple[float, ...] = (0.50, 0.24, 0.14, 0.08, 0.04)
    stay: float = 0.5
    off_topic: float = 0.03


STARTS: dict[str, Habits] = {
    "habits": Habits(),
    "right": Habits(stories=(1.0,) * 6, blocks=(0.02, 0.10, 0.25, 0.33, 0.30), stay=0.05, off_topic=0.0),
    "wrong": Habits(stories=(0.10, 0.08, 0.08, 0.07, 0.07, 0.60), blocks=(0.40, 0.30, 0.20, 0.07, 0.03), stay=0.4,
                    off_topic=0.0),
}
"""The packaged starts. ``habits``: a few favourite stories, told again in other words (SD-E²). ``right``: all stories
alike, so that wrong answers disagree and the right one is most problems' most frequent answer. ``wrong``: one
favourite, and it is the story that is right least often; so most problems' most frequent answer is wrong (EMPO)."""


def traces(problems: Sequence[Problem], generator: random.Random, habits: Habits | None) -> list[str]:
    """One trace per problem, all with the same number of strategies; ``habits`` None gives practice."""
    counts = range(1, toy_policy.MAX_BLOCKS + 1)
    if habits is None:
        blocks = generator.choice(counts)
        return [digits.demonstration(p, generator, habit=[1.0] * 6, blocks=blocks) for p in problems]
    blocks = generator.choices(counts, habits.blocks)[0]
    return [digits.demonstration(p, generator, habit=habits.stories, blocks=blocks, stay=habits.stay,
                                 off_topic=habits.off_topic) for p in problems]


def batch(tok, problems: Sequence[Problem], generator: random.Random, habits: Habits | None
          ) -> tuple[torch.Tensor, torch.Tensor]:
    """(input ids, labels), both (B, T). Nothing is padded; −100 marks what is not taught."""
    import torch

    prompts = tok([p.prompt for p in problems])["input_ids"]
    answers = tok(traces(problems, generator, habits))["input_ids"]
    ids = torch.tensor([p + a + [tok.eos_token_id] for p, a in zip(prompts, answers, strict=True)])
    labels = ids.clone()
    labels[:, : len(prompts[0])] = -100
    if habits is None:
        choices = torch.tensor(tok.convert_tokens_to_ids(toy_policy.choice_tokens()))
        labels[torch.isin(ids, choices)] = -100
        # after the last strategy that there is a token for, the final answer is no choice
        if int((ids[0] == choices[0]).sum()) == toy_policy.MAX_BLOCKS:
            labels[ids == choices[1]] = choices[1]
    return ids, labels


def train(habits: Habits = Habits(), *, seed: int = 0, steps: int = 3000, batch_size: int = 64, peak: float = 5e-3,
          progress: bool = True):
    """Supervised warm start on the train side of the world's default split; returns (model, tokenizer).

    Args:
        habits: what the demonstrations do.
        seed: of the initial weights and the demonstrations.
        steps: optimiser steps of ``batch_size`` traces each; habits and practice take turns.
        peak: highest learning rate; linear warm-up over 5 % of the steps, then cosine to zero.
    """
    import torch
    from tqdm.std import trange
    from transformers import get_cosine_schedule_with_warmup

    generator = random.Random(seed)
    tok = toy_policy.tokenizer()
    model = toy_policy.untrained(tok, seed=seed)
    pool = digits.load().train
    optimiser = torch.optim.AdamW(model.parameters(), lr=peak, weight_decay=0.01, betas=(0.9, 0.98))
    schedule = get_cosine_schedule_with_warmup(optimiser, steps // 20, steps)
    model.train()
    for step in trange(steps, desc="warm start", disable=not progress):
        problems = generator.choices(pool, k=batch_size)
        ids, labels = batch(tok, problems, generator, None if step % 2 else habits)
        model(input_ids=ids, labels=labels).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad(set_to_none=True)
    return model.eval(), tok


def save(model, folder: Path) -> str:
    """Write the weights and their checksum; returns the checksum."""
    from safetensors.torch import save as to_bytes

    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if name != "lm_head.weight"}
    data = to_bytes(state)
    digest = hashlib.sha256(data).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(data)
    (folder / "SHA256").write_text(f"{digest}  model.safetensors\n")
    return digest


def main() -> None:
    """Command line: make the packaged weights of one start again."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("start", choices=list(STARTS))
    parser.add_argument("folder", nargs="?", type=Path, help="default: the package's own")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model, _ = train(STARTS[arguments.start], seed=arguments.seed, steps=arguments.steps)
    save(model, arguments.folder or Path(str(toy_policy.WEIGHTS)) / arguments.start)


if __name__ == "__main__":
    main()
