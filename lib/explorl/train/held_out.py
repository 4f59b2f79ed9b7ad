"""How well the critic predicts on problems that are never trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from explorl.errors import ConfigError
from explorl.papers import ppo
from explorl.papers.method import Batch
from explorl.train.config import is_integer
from explorl.train.evaluate import Completion, encode, sample
from explorl.train.seams import text_of

if TYPE_CHECKING:
    import torch

SEED = 1_000_037
ROWS = 256


@dataclass(frozen=True)
class HeldOut:
    """Problems to look at, and when.

    Attributes:
        problems: have ``prompt``, ``gold`` and ``meta``; none of them may be trained on. Empty: never look.
        every: steps between two looks, ≥ 1; the last step is looked at in any case.
    """

    problems: Sequence[Any] = ()
    every: int = 25

    def __post_init__(self):
        if not is_integer(self.every) or self.every < 1:
            raise ConfigError("held_out_every", self.every, "an integer ≥ 1")

    def due(self, step: int, last: int) -> bool:
        """Whether to look before the policy's step number ``step`` of 0 … ``last``."""
        return bool(self.problems) and (step % self.every == 0 or step == last)


def explained_variance(trainer: Any, problems: Sequence[Any]) -> float:
    """The critic's on one fresh completion of each problem, neither of which is learned from.

    Args:
        trainer: of :func:`explorl.train.ppo.build`.
        problems: to sample for, at the training's temperature.

    Returns:
        1 − var(returns − values)/var(returns) over all tokens; NaN where the returns do not vary.
    """
    config, step = trainer.args, trainer.state.global_step
    drawn = [group[0] for group in sample(
        trainer.model, trainer.processing_class, [p.prompt for p in problems], temperature=config.temperature,
        top_p=config.top_p, max_new_tokens=config.max_completion_length, seed=SEED + config.seed + step,
        batch_size=ROWS)]
    batch = Batch(
        prompts=[text_of(p.prompt) for p in problems], completions=[c.text for c in drawn],
        gold=[str(p.gold) for p in problems], group_size=1, step=step, completion_ids=[c.ids for c in drawn],
        truncated=[c.truncated for c in drawn], columns={"meta": [p.meta for p in problems]})
    method = trainer.ppo.still()
    components = method.components(batch)
    rewards = trainer.ppo.rewards(method.aggregate(components, batch), components)
    shown = tensors(trainer.processing_class, problems, drawn, trainer.model.device)
    mask = shown["completion_mask"].cpu().numpy().astype(bool)
    values = trainer.critic.values(shown)
    _, returns = ppo.gae(ppo.at_last_token(rewards, mask), values, mask, trainer.ppo.config.gamma,
                         trainer.ppo.config.lam)
    return ppo.explained_variance(returns, values, mask)


def tensors(tokenizer: Any, problems: Sequence[Any], drawn: Sequence[Completion], device: Any
            ) -> dict[str, torch.Tensor]:
    """What the critic reads: prompts padded on the left, completions on the right, and their masks."""
    import torch

    def table(rows: Sequence[Sequence[int]], left: bool) -> tuple[np.ndarray, np.ndarray]:
        width = max(map(len, rows))
        ids, mask = np.full((len(rows), width), tokenizer.pad_token_id), np.zeros((len(rows), width), dtype=np.int64)
        for i, row in enumerate(rows):
            place = slice(width - len(row), width) if left else slice(len(row))
            ids[i, place], mask[i, place] = row, 1
        return ids, mask

    asked = table([encode(tokenizer, p.prompt) for p in problems], left=True)
    written = table([c.ids for c in drawn], left=False)
    names = ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")
    return {name: torch.as_tensor(value, device=device) for name, value in zip(names, (*asked, *written))}
