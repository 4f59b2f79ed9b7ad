"""The numbers of one training run, checked at once, and their translation into TRL's words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorl.errors import ConfigError
from explorl.train import preflight

if TYPE_CHECKING:
    import trl

LOSS_TYPES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo", "vespo")
RATIO_LEVELS = ("token", "sequence")
PRECISIONS = ("auto", "fp32", "bf16", "fp16")


@dataclass(frozen=True)
class TrainConfig:
    """One GRPO run. A wrong value raises :class:`explorl.errors.ConfigError` on construction.

    Attributes:
        steps: optimiser steps, ≥ 1, a multiple of ``num_iterations``.
        prompts_per_step: B, prompts per generation batch, ≥ 1.
        group_size: G, completions per prompt, ≥ 2: a group of one has nothing to be compared with.
        max_completion_tokens: token limit of a completion, ≥ 1.
        learning_rate: peak learning rate, > 0.
        lr_schedule: a Transformers scheduler: constant, linear, cosine, constant_with_warmup …
        warmup_ratio: share of the steps that warm up, 0 … 1.
        max_grad_norm: gradient clipping threshold, > 0.
        optimizer: a Transformers optimiser: adamw_torch, adamw_8bit (on a GPU), sgd …
        adam_beta1: Adam's β₁, 0 ≤ β₁ < 1.
        adam_beta2: Adam's β₂, 0 ≤ β₂ < 1.
        weight_decay: decoupled weight decay, ≥ 0.
        beta_kl: weight of the KL term to the initial policy, ≥ 0; 0 computes no reference.
        clip_epsilon: ε, the ratio is clipped to 1 ± ε, > 0.
        clip_epsilon_high: upper ε where it differs; None takes ``clip_epsilon``. CISPO caps the ratio itself
            at this value, and wants about 5.
        loss_type: one of :data:`LOSS_TYPES`.
        ratio_level: ``token`` (a ratio per token, GRPO) or ``sequence`` (its geometric mean, GSPO).
        temperature: rollout temperature, > 0.
        top_p: rollout nucleus, 0 < p ≤ 1.
        num_iterations: μ, optimiser steps per generation batch, ≥ 1.
        micro_batch: completions per forward and backward pass, a divisor of B·G; None takes all of them.
        seed: seed of the sampling, of dropout and of the order of the problems.
        save_every: steps between checkpoints, a multiple of ``num_iterations``; 0 saves none.
        precision: ``auto`` is fp32 on a CPU, bf16 where the GPU has it, else fp16 (a T4).
        grad_checkpointing: recompute activations in the backward pass: less memory, more time.
        mask_truncated: take completions cut by the token limit out of the loss.
        threads: CPU threads while training; 0 leaves torch as it is. Not part of a run's identity.

    >>> TrainConfig(steps=2, group_size=1)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: group_size = 1: must be an integer ≥ 2 (a lone completion has advantage 0)
    """

    steps: int
    prompts_per_step: int = 8
    group_size: int = 8
    max_completion_tokens: int = 64
    learning_rate: float = 5e-6
    lr_schedule: str = "constant"
    warmup_ratio: float = 0.0
    max_grad_norm: float = 1.0
    optimizer: str = "adamw_torch"
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    weight_decay: float = 0.0
    beta_kl: float = 0.0
    clip_epsilon: float = 0.2
    clip_epsilon_high: float | None = None
    loss_type: str = "grpo"
    ratio_level: str = "token"
    temperature: float = 1.0
    top_p: float = 1.0
    num_iterations: int = 1
    micro_batch: int | None = None
    seed: int = 0
    save_every: int = 0
    precision: str = "auto"
    grad_checkpointing: bool = False
    mask_truncated: bool = False
    threads: int = 0

    def __post_init__(self):
        for low, names in ((1, ("steps", "prompts_per_step", "max_completion_tokens", "num_iterations")),
                           (0, ("seed", "save_every", "threads"))):
            for name in names:
                value = getattr(self, name)
                self._require(name, is_integer(value) and value >= low, f"an integer ≥ {low}")
        for name in ("learning_rate", "max_grad_norm", "clip_epsilon", "temperature"):
            self._require(name, is_number(getattr(self, name)) and getattr(self, name) > 0, "> 0")
        for name in ("weight_decay", "beta_kl"):
            self._require(name, is_number(getattr(self, name)) and getattr(self, name) >= 0, "≥ 0")
        for name in ("adam_beta1", "adam_beta2"):
            self._require(name, is_number(getattr(self, name)) and 0 <= getattr(self, name) < 1, "in [0, 1)")
        choices = {"loss_type": LOSS_TYPES, "ratio_level": RATIO_LEVELS, "precision": PRECISIONS}
        for name, allowed in choices.items():
            self._require(name, getattr(self, name) in allowed, "one of " + ", ".join(allowed))
        self._require("top_p", is_number(self.top_p) and 0 < self.top_p <= 1, "above 0 and at most 1")
        self._require("warmup_ratio", is_number(self.warmup_ratio) and 0 <= self.warmup_ratio <= 1,
                      "between 0 and 1")
        high = self.clip_epsilon_high
        self._require("clip_epsilon_high", high is None or (is_number(high) and high > 0), "None or > 0")
        self._check_shape()

    def _check_shape(self) -> None:
        self._require("group_size", is_integer(self.group_size) and self.group_size >= 2,
                      "an integer ≥ 2 (a lone completion has advantage 0)")
        micro = self.micro_batch
        fits = micro is None or (is_integer(micro) and micro >= 1 and self.rows % micro == 0)
        self._require("micro_batch", fits, f"None or a divisor of the {self.rows} completions of a step")
        for name in ("steps", "save_every"):  # a run never ends, or goes on, in the midst of a reused batch
            self._require(name, getattr(self, name) % self.num_iterations == 0,
                          f"a multiple of num_iterations = {self.num_iterations}")

    def _require(self, name: str, holds: bool, allowed: str) -> None:
        if not holds:
            raise ConfigError(name, getattr(self, name), allowed)

    @property
    def rows(self) -> int:
        """N = B·G, completions per generation batch."""
        return self.prompts_per_step * self.group_size

    @property
    def rows_per_pass(self) -> int:
        """Completions per forward and backward pass."""
        return self.micro_batch or self.rows

    @property
    def prompts_needed(self) -> int:
        """Prompts that the whole run consumes, repeats included."""
        return self.steps // self.num_iterations * self.prompts_per_step


def is_integer(value: object) -> bool:
    """An int that is no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """A finite int or float that is no bool."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def trl_config(config: TrainConfig, out_dir: str | Path) -> trl.GRPOConfig:
    """The current ``trl.GRPOConfig``, with every field set for which TRL and Unsloth have different defaults.

    One generation batch is one step's worth of completions, cut into passes by gradient accumulation. The
    problems come in the order of the data set: :func:`explorl.train.trainer.dataset` has shuffled them.

    Args:
        config: the run.
        out_dir: where checkpoints go.

    Returns:
        ``trl.GRPOConfig``, or Unsloth's where ``import unsloth`` came first.
    """
    import torch
    import trl

    precision = _resolve(config.precision)
    passes = config.rows // config.rows_per_pass
    high = config.clip_epsilon if config.clip_epsilon_high is None else config.clip_epsilon_high
    return trl.GRPOConfig(
        output_dir=str(out_dir), seed=config.seed, use_cpu=not torch.cuda.is_available(),
        bf16=precision == "bf16", fp16=precision == "fp16",
        gradient_checkpointing=config.grad_checkpointing,
        # the batch
        max_steps=config.steps, per_device_train_batch_size=config.rows_per_pass,
        gradient_accumulation_steps=passes, steps_per_generation=passes, num_generations=config.group_size,
        num_iterations=config.num_iterations, shuffle_dataset=False, remove_unused_columns=False,
        dataloader_pin_memory=False, dataloader_num_workers=0, dataloader_drop_last=False,
        # the rollout
        max_completion_length=config.max_completion_tokens, temperature=config.temperature,
        top_p=config.top_p, top_k=0, repetition_penalty=1.0, generation_kwargs={}, use_vllm=False,
        vllm_importance_sampling_correction=False,
        # the loss
        loss_type=config.loss_type, importance_sampling_level=config.ratio_level,
        epsilon=config.clip_epsilon, epsilon_high=high, beta=config.beta_kl, scale_rewards="none",
        use_bias_correction_kl=False, mask_truncated_completions=config.mask_truncated,
        disable_dropout=False, router_aux_loss_coef=0.0,
        # the optimiser
        optim=config.optimizer, learning_rate=config.learning_rate, lr_scheduler_type=config.lr_schedule,
        warmup_steps=round(config.warmup_ratio * config.steps), weight_decay=config.weight_decay,
        adam_beta1=config.adam_beta1, adam_beta2=config.adam_beta2, adam_epsilon=1e-8,
        max_grad_norm=config.max_grad_norm, torch_empty_cache_steps=None,
        # the record
        logging_steps=1, logging_nan_inf_filter=False, report_to="none", disable_tqdm=True,
        log_completions=False, save_strategy="steps" if config.save_every else "no",
        save_steps=config.save_every or 500, save_total_limit=2,
    )


def _resolve(precision: str) -> str:
    import torch

    if precision != "auto":
        return precision
    if not torch.cuda.is_available():
        return "fp32"
    return {"bfloat16": "bf16", "float16": "fp16"}[preflight.precision(torch.cuda.get_device_capability())]
