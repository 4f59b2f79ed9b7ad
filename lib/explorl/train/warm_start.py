"""Make the toy policy's warm start: supervised traces that can calculate, but cling to their habits.

``python -m explorl.train.warm_start [FOLDER]`` writes ``model.safetensors`` and ``SHA256``. Same seed, same
software, same processor: same bytes. The habits are parameters, so that a chapter can start from another one.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from dataclasses import dataclass
from pathlib import Path

from explorl.tasks import digits
from explorl.train import toy_policy


@dataclass(frozen=True)
class Habits:
    """What the demonstrations do.

    Attributes:
        stories: weights over :data:`explorl.tasks.digits.RULES`.
        blocks: weights of writing 1, 2, … strategies.
        stay: probability of repeating the last story in other words.
        off_topic: probability that a strategy's sentence is beside the point.
        check: probability of answering with the outcome that fits, where one does.
    """

    stories: tuple[float, ...] = (0.42, 0.26, 0.14, 0.08, 0.06, 0.04)
    blocks: tuple[float, ...] = (0.55, 0.25, 0.13, 0.07)
    stay: float = 0.5
    off_topic: float = 0.03
    check: float = 0.85


def train(habits: Habits = Habits(), *, seed: int = 0, steps: int = 2500, batch_size: int = 64, peak: float = 5e-3,
          progress: bool = True):
    """Supervised warm start on the train side of the world's default split; returns (model, tokenizer).

    Args:
        habits: what the demonstrations do.
        seed: of the initial weights and the demonstrations.
        steps: optimiser steps of ``batch_size`` traces each; the traces of one step have the same number of
            strategies, hence of tokens, so nothing is padded.
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
    for _ in trange(steps, desc="warm start", disable=not progress):
        blocks = generator.choices(range(1, len(habits.blocks) + 1), habits.blocks)[0]
        chosen = generator.choices(pool, k=batch_size)
        traces = [digits.demonstration(p, generator, habit=habits.stories, blocks=blocks, stay=habits.stay,
                                       off_topic=habits.off_topic, check=habits.check) for p in chosen]
        prompts, answers = tok([p.prompt for p in chosen])["input_ids"], tok(traces)["input_ids"]
        ids = torch.tensor([p + a + [tok.eos_token_id] for p, a in zip(prompts, answers, strict=True)])
        labels = ids.clone()
        labels[:, : len(prompts[0])] = -100
        loss = model(input_ids=ids, labels=labels).loss
        loss.backward()
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
    """Command line: make the packaged weights again."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(str(toy_policy.WEIGHTS)))
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    model, _ = train(seed=arguments.seed, steps=arguments.steps)
    save(model, arguments.folder)


if __name__ == "__main__":
    main()
