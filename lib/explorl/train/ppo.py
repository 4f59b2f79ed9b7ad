"""PPO on the trainer of every paper: a critic beside it, and GAE as advantages per token.

:class:`PPO` is a method like the others: it takes components and total from the method inside it, and answers the
advantage seam itself. :func:`build` makes its trainer. One generation batch passes so:

1. the critic guesses the value of every token; its explained variance is that on unseen completions;
2. GAE and whitening make the advantages (:mod:`explorl.papers.ppo`), and the policy's clipped loss takes them;
3. the critic learns the batch in ``epochs`` passes of its own, before the policy's first step.

With ``num_iterations`` > 1 the policy, too, takes several steps on a batch. TRL has had no PPO since 1.13.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from explorl.errors import ConfigError
from explorl.papers import ppo
from explorl.papers.method import Advantages, Batch, Method
from explorl.train import trainer as seam_trainer
from explorl.train.config import TrainConfig, is_number
from explorl.train.critic import Critic, CriticConfig
from explorl.train.held_out import HeldOut, explained_variance

CRITIC_STATE = "critic.pt"
VALUES, BONUS, AT_END = "values", "bonus", "bonus_at_end"
PLACEMENTS = (*ppo.PLACEMENTS, "reward")


@dataclass(frozen=True)
class PPOConfig:
    """What PPO has beside :class:`TrainConfig`. A wrong value raises ConfigError on construction.

    Attributes:
        gamma, lam: γ and λ of GAE, in [0, 1]; both 1 in IMAGINE's runs.
        bonus: where the method's component ``bonus`` enters, if it has one: at the last token after whitening
            (``post_whiten_last``, IMAGINE's paper), before it (``pre_whiten_last``, its code), or in the
            ``reward``, where GAE spreads it and the critic learns it.
        lone: each completion has a prompt of its own: a batch has B·G prompts, and groups of one.
        critic: the critic's settings.

    >>> PPOConfig(lam=1.5)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: lam = 1.5: must be a number from 0 to 1
    """

    gamma: float = 1.0
    lam: float = 1.0
    bonus: str = "post_whiten_last"
    lone: bool = False
    critic: CriticConfig = field(default_factory=CriticConfig)

    def __post_init__(self):
        for name in ("gamma", "lam"):
            if not is_number(getattr(self, name)) or not 0 <= getattr(self, name) <= 1:
                raise ConfigError(name, getattr(self, name), "a number from 0 to 1")
        if self.bonus not in PLACEMENTS:
            raise ConfigError("bonus", self.bonus, "one of " + ", ".join(PLACEMENTS))
        if not isinstance(self.lone, bool):
            raise ConfigError("lone", self.lone, "True or False")


class PPO(Method):
    """Another method's reward under PPO. Its own advantages, and the rows that it drops, do not count.

    A bonus of the method inside goes where ``config.bonus`` says: ``PPO(IMAGINE(…))`` is the paper's. The
    other way round, ``IMAGINE(…, base=PPO(…))`` adds the bonus to every token after whitening, as under GRPO.

    Args:
        base: says what a completion is worth.
        config: the settings.

    >>> class Right(Method):
    ...     pass
    >>> batch = Batch(["?"] * 2, ["a", "b"], [""] * 2, 2, completion_ids=[[5, 6], [7]],
    ...               columns={"values": [np.zeros(2), np.zeros(1)]})
    >>> [row.round(3).tolist() for row in PPO(Right()).advantages(np.array([1.0, 0.0]), {}, batch).values]
    [[0.577, 0.577], [-1.155]]
    """

    def __init__(self, base: Method, config: PPOConfig = PPOConfig()):
        if not isinstance(base, Method):
            raise ConfigError("base", base, "a Method")
        self.base, self.config, self.rollout = base, config, base.rollout
        self.name = "ppo" if base.name == "grpo" else f"ppo_{base.name}"

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """The base's; its ``bonus`` also as ``bonus_at_end``, which tells it from one added outside."""
        found = dict(self.base.components(batch))
        return found | ({AT_END: found[BONUS]} if BONUS in found else {})

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The base's."""
        return self.base.aggregate(components, batch)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """GAE, whitened over the batch: N arrays (T_i,). The reward comes with the last token.

        Raises:
            ConfigError: no values in the batch: the trainer is not that of :func:`build`.
        """
        if VALUES not in batch.columns:
            raise ConfigError("columns", sorted(batch.columns), f"with {VALUES}: PPO trains with train.ppo.build")
        mask = token_mask(batch.lengths)
        bonus = None if self.config.bonus == "reward" else components.get(AT_END)
        placement = ppo.PLACEMENTS[0] if bonus is None else self.config.bonus
        rewards = ppo.at_last_token(self.rewards(total, components), mask)
        found, _ = ppo.advantages(rewards, _table(batch.columns[VALUES], mask), mask, bonus, placement=placement,
                                  gamma=self.config.gamma, lam=self.config.lam)
        return Advantages([row[:length] for row, length in zip(found, batch.lengths, strict=True)])

    def rewards(self, total: np.ndarray, components: Mapping[str, np.ndarray]) -> np.ndarray:
        """(N,) what the last token earns, and the critic learns."""
        paid = self.config.bonus == "reward" and AT_END in components
        return np.asarray(total, dtype=np.float64) + (components[AT_END] if paid else 0.0)

    def diagnostics(self, total: np.ndarray, components: Mapping[str, np.ndarray], advantages: Advantages,
                    batch: Batch) -> dict[str, float]:
        """The base's."""
        return self.base.diagnostics(total, components, advantages, batch)

    def still(self) -> PPO:
        """Around the base as it looks on."""
        return PPO(self.base.still(), self.config)

    def state_dict(self) -> dict:
        """The base's. The critic's stands beside it in the checkpoint."""
        return self.base.state_dict()

    def load_state_dict(self, state: dict) -> None:
        """The base's."""
        self.base.load_state_dict(state)


def token_mask(lengths: np.ndarray) -> np.ndarray:
    """(N, T) flags of the tokens of N completions, T the longest.

    >>> token_mask(np.array([2, 1])).astype(int).tolist()
    [[1, 1], [1, 0]]
    """
    lengths = np.asarray(lengths)
    return np.arange(lengths.max(initial=0)) < lengths[:, None]


def _table(rows: Sequence[np.ndarray], mask: np.ndarray) -> np.ndarray:
    table = np.zeros(mask.shape)
    table[mask] = np.concatenate(rows)
    return table


def inside(method: Method, kind: type) -> Any:
    """The part of a method that is of a kind: the method, its ``base``, the base's … ; None without one."""
    while method is not None and not isinstance(method, kind):
        method = getattr(method, "base", None)
    return method


def build(model: Any, tokenizer: Any, method: Method, problems: Sequence[Any], config: TrainConfig,
          out_dir: str | Path, callbacks: Sequence[Any] = (), *, held_out: HeldOut = HeldOut()) -> Any:
    """Make the trainer of a PPO run, in the form of :func:`explorl.train.trainer.build`.

    ``loss_type`` "dapo" or "bnpo" gives PPO's mean over tokens; the clipping is ``clip_epsilon``.

    Args:
        model, tokenizer, problems, config, out_dir, callbacks: as for the other arms.
        method: a :class:`PPO`, or a method around one.
        held_out: other problems, on which the critic is looked at now and then.

    Returns:
        The trainer, with ``critic``.

    Raises:
        ConfigError: no PPO in the method, or what the other arms raise.

    Logged beside the usual: ``critic/explained_variance`` (on the batch before any training on it; none where the
    returns are all equal), ``critic/held_out_explained_variance``, ``critic/value_loss`` (first pass over the batch),
    ``critic/value_mean``, ``critic/return_mean``.
    """
    part = inside(method, PPO)
    if part is None:
        raise ConfigError("method", method.name, "a PPO(…), or a method around one")
    made = seam_trainer.build(model, tokenizer, method, problems, config, out_dir, callbacks, extend=with_critic)
    made.ppo, made.critic, made.held_out = part, Critic(model, part.config.critic, config.seed), held_out
    if part.config.lone:
        made.num_generations = 1  # TRL refuses it as a setting, since GRPO could not learn
        made.train_dataset = seam_trainer.dataset(problems, config.prompts_needed * config.group_size, config.seed)
    return made


def with_critic(seams: type) -> type:
    """The trainer with the seams, and a critic on either side of them: values before, learning after."""
    import torch

    class Valued(seams.__bases__[0]):
        """Between TRL's scoring and the advantage seam: the critic's values."""

        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            batch = self._scored[2]
            values = self.critic.values(self._shown(out))
            batch.columns[VALUES] = [row[:length] for row, length in zip(values, batch.lengths, strict=True)]
            return out

    class PPOTrainer(seams, Valued):
        """PPO whose reward comes from a ``Method``."""

        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            total, components, batch = self._scored
            mask = token_mask(batch.lengths)
            values = _table(batch.columns[VALUES], mask)
            rewards = ppo.at_last_token(self.ppo.rewards(total, components), mask)
            _, returns = ppo.gae(rewards, values, mask, self.ppo.config.gamma, self.ppo.config.lam)
            found = {"explained_variance": ppo.explained_variance(returns, values, mask),
                     "value_mean": values[mask].mean(), "return_mean": returns[mask].mean()}
            if self.held_out.due(self.state.global_step, self.args.max_steps - self.num_iterations):
                found["held_out_explained_variance"] = explained_variance(self, self.held_out.problems)
            with torch.enable_grad():
                found["value_loss"] = self.critic.learn(self._shown(out), values, returns, mask)
            for name, value in found.items():
                if np.isfinite(value):
                    self._metrics["train"][f"critic/{name}"].append(float(value))
            return out

        def _shown(self, out):
            """What the critic reads, cut to the longest completion; truncated ones are shown even if masked."""
            mask = torch.as_tensor(token_mask(self._scored[2].lengths), device=out["completion_ids"].device).long()
            prompts = {name: out[name] for name in ("prompt_ids", "prompt_mask")}
            return prompts | {"completion_ids": out["completion_ids"][:, : mask.shape[1]], "completion_mask": mask}

        def _save_checkpoint(self, model, trial):
            super()._save_checkpoint(model, trial)
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            torch.save(self.critic.state_dict(), folder / CRITIC_STATE)

        def _load_optimizer_and_scheduler(self, checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
            if checkpoint is not None:
                self.critic.load_state_dict(torch.load(Path(checkpoint) / CRITIC_STATE, weights_only=True))

    return PPOTrainer
