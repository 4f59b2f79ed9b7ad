"""What a run may be told, field by field; :mod:`explorl.params` reads it from files and notebooks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

from explorl.errors import ConfigError

if TYPE_CHECKING:
    from explorl.papers import empo, sde2
    from explorl.train.config import TrainConfig

Scale = Literal["smoke", "toy", "t4", "t4_paper"]
SDE2Arm = Literal["base", "single_trace", "multi_strategy", "cfl", "cfee", "sde2", "sde2_shuffled", "oc_fa",
                  "oc_fa_sd"]
EMPOArm = Literal["base", "empo", "empo_log", "vote", "supervised", "random", "sft"]
UNTRAINED = ("base", "single_trace", "multi_strategy")
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

    def train_config(self, seed: int) -> TrainConfig:
        """The trainer's settings for one seed: each field of TrainConfig that has a parameter of its name."""
        from dataclasses import fields

        from explorl.train.config import TrainConfig

        names = {f.name for f in fields(TrainConfig)} & set(type(self).model_fields)
        values = {name: getattr(self, name) for name in names}
        return TrainConfig(**values, seed=seed, temperature=self.rollout_temperature,
                           top_p=self.rollout_top_p)

    def hash(self, *, without: frozenset[str] = frozenset({"jobs"})) -> str:
        """Sixteen hexadecimal digits of the content; ``without`` names fields that do not count."""
        values = self.model_dump(exclude=set(without))
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


class SDE2Params(RunParams):
    """The SD-E² chapter's parameters: the shared ones and all of :class:`explorl.papers.sde2.Config`."""

    chapter: Literal["sde2"]
    arms: Annotated[list[SDE2Arm], Field(min_length=1)]
    task: Literal["digits", "gsm8k", "aime", "medmcqa"]

    lambda_oc: Weight = 1.0
    lambda_re: Weight = 1.0
    gamma_s: Weight = 0.2
    gamma_a: Weight = 0.3
    gamma_c: Weight = 0.1
    alpha: Positive = 1.0
    beta_cap: Positive = 0.5
    rho: Weight = 0.1
    delta: Inside = 0.8
    delta_eval: Inside = 0.8
    eps: Positive = 1e-6
    w_oc: Weight = 1.0
    w_re: Weight = 1.0
    w_fa: Weight = 1.0
    w_sd: Weight = 1.0
    w_l: Weight = 1.0
    w_rd: Weight = 1.0
    length_free_tokens: CountOrNone = 256
    single_div: Share = 1.0
    dup_key: Literal["block", "reasoning", "id", "none"] = "block"
    final_requires_tag: bool = False
    re_mode: Literal["chi", "any_strategy"] = "chi"
    chi_mode: Literal["any", "with_final"] = "any"
    adv_std: bool = True
    relevance_floor: Annotated[float, Field(ge=-1, le=1)] | None = None
    uniq_against: Literal["kept", "all_previous"] = "kept"
    delta_inclusive: bool = True
    tie_tol: Weight = 1e-6
    norm_scope: Literal["batch", "group"] = "batch"
    canon: Literal["numeric", "choice"] = "numeric"
    num_pick: Literal["last", "single"] = "last"
    max_strategies: Count | None = None
    min_reasoning_chars: CountOrNone = 0

    def sde2_config(self) -> sde2.Config:
        """The reward's settings."""
        from dataclasses import fields

        from explorl.papers.sde2 import Config

        return Config(**{f.name: getattr(self, f.name) for f in fields(Config)})


class EMPOParams(RunParams):
    """The EMPO chapter's parameters: the shared ones, the policy's start, and what decides a group's reward."""

    chapter: Literal["empo"]
    arms: Annotated[list[EMPOArm], Field(min_length=1)]

    task: Literal["digits", "gsm8k", "numina", "natural"]
    eval_tasks: list[Literal["math500", "amc23", "aime24", "minerva", "olympiad", "mmlu_pro", "gpqa"]] = []
    beta_kl: Weight = 0.0
    start: Literal["right", "wrong", "habits"] = "right"
    equality: Literal["exact", "numeric", "choice", "math", "loose", "verifier", "nli"] = "math"
    answer_from: Literal["boxed", "final_tag", "anywhere"] = "boxed"
    rule: Literal["first_match", "last_match", "connected"] = "first_match"
    blank: Literal["zero", "share", "minus_half"] = "zero"
    gate: Literal["entropy", "frequency", "none"] = "entropy"
    delta_low_nats: Weight = 0.0
    delta_high_nats: Positive | None = None
    min_share: Share = 0.25
    filtered: Literal["drop", "zero"] = "drop"
    adv_eps: Positive = 1e-4
    adv_clip: Positive | None = None

    @property
    def chosen_modules(self) -> tuple[str, ...]:
        """The tasks', and the judges' where a model compares answers."""
        from explorl.tasks import module

        tasks = {module(name).__name__.removeprefix("explorl.") for name in (self.task, *self.eval_tasks)}
        return *sorted(tasks), *(("judge_models", "judges") if self.equality in ("verifier", "nli") else ())

    def empo_config(self, **changes: object) -> empo.Config:
        """The reward's settings, with changes such as ``reward="log_p"``."""
        from dataclasses import fields

        from explorl.papers.empo import Config

        shared = {f.name for f in fields(Config)} & set(type(self).model_fields)
        return Config(**{name: getattr(self, name) for name in shared} | changes)


CHAPTERS: dict[str, type[RunParams]] = {"sde2": SDE2Params, "empo": EMPOParams}
"""Chapter → its parameters."""


def trained_arms(chapter: str) -> tuple[str, ...]:
    """The arms of a chapter that are trained.

    >>> trained_arms("empo")
    ('empo', 'empo_log', 'vote', 'supervised', 'random', 'sft')
    """
    of_list = get_args(CHAPTERS[chapter].model_fields["arms"].annotation)[0]
    return tuple(arm for arm in get_args(of_list) if arm not in UNTRAINED)


# A rule that joins fields: the fields it reads (the first is blamed), what must hold, and how to say it.
Rule = tuple[tuple[str, ...], Callable[..., bool], str]
RULES: tuple[Rule, ...] = (
    (("alpha", "beta_cap"), lambda alpha, cap: alpha > cap,
     "greater than beta_cap = {1}, else failing pays more than succeeding"),
    (("group_size", "arms"), lambda size, arms: size >= 2 or set(arms) <= set(UNTRAINED),
     "at least 2 where an arm is trained (a lone completion has no advantage)"),
    (("seeds",), lambda seeds: len(set(seeds)) == len(seeds), "different from one another"),
    (("arms",), lambda arms: len(set(arms)) == len(arms), "different from one another"),
    (("backbone", "task"), lambda backbone, task: backbone != "toy" or task == "digits",
     "another one than toy, which only knows task = 'digits', not {1!r}"),
    (("task", "backbone"), lambda task, backbone: task != "digits" or backbone == "toy",
     "another task: digits is written for backbone = 'toy', not {1!r}"),
    (("load_in_4bit", "backbone"), lambda four, backbone: not four or backbone not in ("toy", "smollm2"),
     "false for the packaged policy {1!r}"),
    (("lora_r", "load_in_4bit"), lambda r, four: r > 0 or not four,
     "at least 1 with load_in_4bit: 4-bit weights are not trained themselves"),
    (("lora_r", "backbone"), lambda r, backbone: r == 0 or backbone != "toy",
     "0 for the toy policy, which trains all its weights"),
    (("micro_batch", "prompts_per_step", "group_size"),
     lambda rows, prompts, group: rows is None or (prompts * group) % rows == 0,
     "a divisor of prompts_per_step * group_size = {1} * {2}"),
    (("max_completion_tokens", "max_sequence_tokens"), lambda completion, sequence: completion < sequence,
     "below max_sequence_tokens = {1}, which also holds the prompt"),
    (("canon", "task"), lambda canon, task: (canon == "choice") == (task == "medmcqa"),
     "'choice' for medmcqa and 'numeric' for every other task (here {1!r})"),
    (("eval_samples", "eval_temperature"), lambda samples, temperature: samples == 1 or temperature > 0,
     "1 at eval_temperature = 0, where all samples are the same"),
    (("arms", "task"),
     lambda arms, task: task != "digits" or not {"single_trace", "multi_strategy"} & set(arms),
     "without single_trace and multi_strategy, which are prompts for a pretrained model, not for digits"),
    (("delta_high_nats", "delta_low_nats"), lambda high, low: high is None or high > low,
     "null or above delta_low_nats = {1}, else no group is ever kept"),
    (("blank", "arms"), lambda blank, arms: blank != "minus_half" or "empo_log" not in arms,
     "zero or share with the arm empo_log: −0.5 is more than log p of most answers"),
    (("eval_tasks", "task"), lambda others, task: not others or task != "digits",
     "empty for digits, which has a test part of its own"),
    (("equality", "backbone"), lambda equality, backbone: equality not in ("verifier", "nli") or backbone != "toy",
     "exact, numeric or math for the toy policy: it writes numbers"),
    (("length_free_tokens", "max_completion_tokens", "arms"),
     lambda free, limit, arms: "cfl" not in arms or free < limit,
     "below max_completion_tokens = {1}, else the arm cfl never sees a long completion"),
)


def together(values: Mapping[str, object]) -> Iterator[ConfigError]:
    """The rules that join fields: one ConfigError per broken rule; those on absent fields are skipped.

    Args:
        values: fields that are each right on their own.

    >>> [str(problem) for problem in together({"alpha": 0.3, "beta_cap": 0.5})]
    ['alpha = 0.3: must be greater than beta_cap = 0.5, else failing pays more than succeeding']
    """
    for names, holds, allowed in RULES:
        if all(name in values for name in names):
            found = [values[name] for name in names]
            if not holds(*found):
                yield ConfigError(names[0], found[0], allowed.format(*found))
