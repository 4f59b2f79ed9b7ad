"""What a run of the IMAGINE chapter may be told."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from explorl.params_run import Count, CountOrNone, Inside, Positive, RunParams, Share, Weight

if TYPE_CHECKING:
    from explorl.papers import imagine
    from explorl.train.config import TrainConfig

ImagineArm = Literal["base", "ppo", "imagine_ppo", "grpo", "imagine", "dapo", "imagine_dapo",
                     "uniform", "constant", "length", "shuffled", "trajectory_aware", "error_conditioned"]


class ImagineParams(RunParams):
    """The IMAGINE chapter's parameters: the shared ones, the bonus, its networks, and what PPO and DAPO add."""

    chapter: Literal["imagine"]
    arms: Annotated[list[ImagineArm], Field(min_length=1)]

    task: Literal["digits", "gsm8k", "countdown", "countdown_34", "countdown_4", "dapo_math"]
    eval_tasks: list[Literal["countdown_34", "countdown_4", "aime24"]] = []
    template: Literal["base", "qwen-instruct"] = "base"
    start: Literal["right", "wrong", "habits"] = "habits"
    num_iterations: Count = 1
    beta_kl: Weight = 0.0

    alpha: Weight = 0.5
    decay_gamma: Positive = 40.0
    error_mask: bool = True
    novelty_scale: Literal["minmax", "quantile", "rank", "running_std"] = "minmax"
    minmax_scope: Literal["batch", "group"] = "batch"
    center_bonus: bool = False
    integration: Literal["post", "pre"] = "post"
    ppo_bonus: Literal["post_whiten_last", "pre_whiten_last"] = "post_whiten_last"
    control_level: Literal["matched", "alpha"] = "matched"
    adv_eps: Positive = 1e-6
    novelty_input: Literal["flat_bn", "pooled"] = "flat_bn"
    embedding: Literal["shared", "own", "frozen"] = "shared"
    pad: Literal["own", "zero"] = "own"
    novelty_order: Literal["reward_then_update", "update_then_reward"] = "reward_then_update"
    emb_dim: Count = 16
    hidden: Annotated[list[Count], Field(min_length=1)] = [16, 8]
    novelty_lr: Positive = 1e-3
    novelty_weight_decay: Weight = 0.01

    gae_gamma: Share = 1.0
    gae_lambda: Share = 1.0
    ppo_lone: bool = True
    critic_body: Literal["copy", "policy"] = "copy"
    critic_body_lr: Positive = 3e-4
    critic_head_lr: Positive = 1e-3
    critic_epochs: Count = 2
    critic_rows: Count = 16
    critic_value_clip: Positive | None = 0.5
    held_out_problems: CountOrNone = 0
    held_out_every: Count = 25

    dapo_clip_high: Inside = 0.28
    dapo_rounds: CountOrNone = 3
    dapo_contrast: Literal["outcome", "total", "combined"] = "outcome"
    dapo_overlong_buffer: CountOrNone = 0

    @property
    def chosen_modules(self) -> tuple[str, ...]:
        """The tasks'."""
        from explorl.tasks import module

        named = {"countdown" if name.startswith("countdown") else name for name in (self.task, *self.eval_tasks)}
        return tuple(sorted(module(name).__name__.removeprefix("explorl.") for name in named))

    @property
    def max_prompt_tokens(self) -> int:
        """Positions that the novelty's networks keep for the prompt."""
        return self.max_sequence_tokens - self.max_completion_tokens

    def train_config(self, seed: int, arm: str = "") -> TrainConfig:
        """As everywhere; DAPO's arms clip higher and take the mean over all tokens of the batch."""
        shared = super().train_config(seed)
        if arm not in ("dapo", "imagine_dapo"):
            return shared
        return replace(shared, clip_epsilon_high=self.dapo_clip_high, loss_type="dapo")

    def imagine_config(self, seed: int, **changes: object) -> imagine.Config:
        """The bonus's and the networks' settings, with changes such as ``bonus_source="constant"``."""
        from explorl.papers.imagine import Config

        shared = {f.name for f in fields(Config)} & set(type(self).model_fields) - {"weight_decay"}
        values = {name: getattr(self, name) for name in shared} | {
            "lr": self.novelty_lr, "weight_decay": self.novelty_weight_decay, "seed": seed,
            "max_prompt_tokens": self.max_prompt_tokens, "hidden": tuple(self.hidden)}
        return Config(**values | changes)
