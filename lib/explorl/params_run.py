"""What every chapter's runs are told, field by field, and the kinds of numbers that fields take."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from explorl.params_rules import together

if TYPE_CHECKING:
    from explorl.train.config import TrainConfig

Scale = Literal["smoke", "toy", "t4", "t4_paper"]
NOT_TRAINING = frozenset({"run", "scale", "arms", "seeds", "jobs"})
"""Fields that do not change what one arm with one seed computes."""

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
Weight = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
RunName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Seed = Annotated[int, Field(ge=0, lt=2**31)]


class RunParams(BaseModel):
    """What every chapter's runs share: the run, the task, the policy, the trainer and the evaluation."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)

    run: RunName
    scale: Scale
    seeds: Annotated[list[Seed], Field(min_length=1)]
    jobs: Count | None = None

    task: Name
    backbone: Name
    encoder: Name = "minilm"
    load_in_4bit: bool = False
    lora_r: CountOrNone = 0
    lora_alpha: Positive = 32.0
    lora_dropout: BelowOne = 0.0
    max_sequence_tokens: Count = 2048

    steps: Count
    prompts_per_step: Count
    group_size: Count
    max_completion_tokens: Count
    learning_rate: Annotated[float, Field(gt=0, le=1)]
    lr_schedule: Literal["cosine", "linear", "constant"] = "cosine"
    warmup_ratio: Share = 0.1
    max_grad_norm: Positive = 0.1
    optimizer: Literal["adamw_8bit", "adamw_torch", "paged_adamw_8bit"] = "adamw_torch"
    adam_beta1: BelowOne = 0.9
    adam_beta2: BelowOne = 0.99
    weight_decay: Weight = 0.1
    beta_kl: Weight = 0.04
    clip_epsilon: Inside = 0.2
    ratio_level: Literal["token", "sequence"] = "token"
    loss_type: Literal["grpo", "bnpo", "dr_grpo", "dapo"] = "grpo"
    micro_batch: Count | None = None
    grad_checkpointing: bool = False
    rollout_temperature: Annotated[float, Field(gt=0, le=2)] = 0.8
    rollout_top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    save_every: CountOrNone = 50

    eval_temperature: Annotated[float, Field(ge=0, le=2)] = 0.1
    eval_top_p: Annotated[float, Field(gt=0, le=1)] = 0.95
    eval_problems: Count
    eval_samples: Count = 1
    eval_every: CountOrNone = 0

    @model_validator(mode="after")
    def _check_together(self):
        for problem in together(self.__dict__):
            raise problem
        return self

    @property
    def chosen_modules(self) -> tuple[str, ...]:
        """The library's modules that the parameters choose by name."""
        return (f"tasks.{self.task}",)

    def train_config(self, seed: int, arm: str = "") -> TrainConfig:
        """The trainer's settings for one seed: each field of TrainConfig that has a parameter of its name.

        Args:
            seed: of the run.
            arm: for chapters in which an arm has settings of its own.
        """
        from explorl.train.config import TrainConfig

        names = {f.name for f in fields(TrainConfig)} & set(type(self).model_fields)
        values = {name: getattr(self, name) for name in names}
        return TrainConfig(**values, seed=seed, temperature=self.rollout_temperature,
                           top_p=self.rollout_top_p)

    def hash(self, *, without: frozenset[str] = frozenset({"jobs"})) -> str:
        """Sixteen hexadecimal digits of the content; ``without`` names fields that do not count."""
        values = self.model_dump(exclude=set(without))
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]
