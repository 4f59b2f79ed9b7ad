"""One trainer for every paper: TRL's GRPOTrainer with three seams, each answered by a ``Method``.

* **rollout**: ``method.rollout`` is TRL's ``rollout_func``.
* **reward**: one reward function sees the whole generation batch and returns ``method.aggregate`` of
  ``method.components``.
* **advantage**: ``method.advantages`` replaces TRL's, after scoring: a number per completion, or per token.

The same code runs on TRL and on Unsloth's rewritten trainer. That limits where it may hook in: Unsloth never
calls ``_compute_loss``, rebuilds ``completion_mask`` from token ids, and ignores any rescaling of the loss.
So a weight belongs into the advantages.

A row that ``Advantages.keep`` drops gets advantage 0 and stays in the batch: its policy gradient is nil. TRL still
counts it in the loss's denominator, so the kept rows' advantages grow by as much, and the loss is the mean over
them alone. With ``beta_kl`` > 0 the dropped rows are still pulled towards the reference.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from explorl.errors import ConfigError
from explorl.papers.method import Batch, Method
from explorl.train.config import TrainConfig, trl_config
from explorl.train.evaluate import check_padding
from explorl.train.seams import (
    check_rewards, component_metrics, inject, kept_weight, left_packed, signal_metrics, text_of,
)

if TYPE_CHECKING:
    import datasets

METHOD_STATE = "method.pt"
ROW = "problem_row"  # the data set's column that says which problem a row is


def build(
    model: Any,
    tokenizer: Any,
    method: Method,
    problems: Sequence[Any],
    config: TrainConfig,
    out_dir: str | Path,
    callbacks: Sequence[Any] = (),
    *,
    extend: Callable[[type], type] = lambda seams: seams,
) -> Any:
    """Make the trainer of one run; ``.train()`` starts it.

    Args:
        model: a Transformers causal language model; an adapter must be on it already (Unsloth ignores
            ``peft_config``).
        tokenizer: its tokenizer, with a padding token that is no end token.
        method: answers the three seams.
        problems: have ``prompt`` (text, or chat messages), ``gold`` and ``meta``.
        config: the numbers of the run.
        out_dir: where checkpoints go.
        callbacks: Transformers ``TrainerCallback`` objects.
        extend: makes another class of the trainer with the seams: PPO's and DAPO's do.

    Returns:
        An instance of :func:`trainer_class`, or of what ``extend`` makes of it.

    Raises:
        ConfigError: no problems, an unfit tokenizer, or more than one process or GPU.

    With ``beta_kl`` > 0 the reference is the policy as handed over, or, with an adapter, the model without it
    (Unsloth) or with the adapter's first state (TRL): the same unless the adapter was trained before.
    """
    from transformers.trainer_callback import PrinterCallback

    check_padding(tokenizer, model)
    args = trl_config(config, out_dir)
    for name, count in (("WORLD_SIZE", args.world_size), ("visible GPUs", max(args.n_gpu, 1))):
        if count != 1:
            raise ConfigError(name, count, "1: group-wise rewards need the whole batch in one process")
    full_with_reference = config.beta_kl > 0 and not hasattr(model, "peft_config")
    if full_with_reference:
        args.beta = 0.0  # TRL would read the reference from disk; it is the model in hand
    trainer = extend(trainer_class())(
        method=method, problems=problems, model=model, processing_class=tokenizer, args=args,
        train_dataset=dataset(problems, config.prompts_needed, config.seed), callbacks=list(callbacks),
    )
    if full_with_reference:
        trainer.beta = args.beta = config.beta_kl
        trainer.ref_model = copy.deepcopy(model).eval().requires_grad_(False).to(args.device)
    trainer.remove_callback(PrinterCallback)
    return trainer


def dataset(problems: Sequence[Any], count: int, seed: int) -> datasets.Dataset:
    """The prompts of a whole run in order: shuffled passes over the problems, cut to ``count`` rows.

    Written down as data, the order is the same in a resumed run, and the same for every method of one seed.

    Args:
        problems: have ``prompt`` and ``gold``; at least one.
        count: rows.
        seed: seed of the shuffles.

    Returns:
        Columns ``prompt``, ``gold`` and ``problem_row`` (the index into ``problems``).
    """
    import datasets

    if not len(problems):
        raise ConfigError("problems", "empty", "at least one problem")
    generator = np.random.default_rng(seed)
    passes = -(-count // len(problems))
    order = np.concatenate([generator.permutation(len(problems)) for _ in range(passes)])[:count].tolist()
    return datasets.Dataset.from_dict({
        "prompt": [problems[i].prompt for i in order],
        "gold": [str(problems[i].gold) for i in order],
        ROW: order,
    })


def trainer_class() -> type:
    """A subclass of the *current* ``trl.GRPOTrainer``, which ``import unsloth`` replaces."""
    import torch
    import trl

    class SeamTrainer(trl.GRPOTrainer):
        """GRPO whose rollout, reward and advantage come from a ``Method``."""

        def __init__(self, *, method: Method, problems: Sequence[Any], **kwargs: Any):
            self.method, self.problems = method, problems
            self._scored: tuple[np.ndarray, dict[str, np.ndarray], Batch] | None = None
            super().__init__(reward_funcs=[self.total], rollout_func=method.rollout, **kwargs)

        def total(self, prompts, completions, completion_ids, gold, log_metric, **columns) -> list[float]:
            """The reward function that TRL calls with one generation batch."""
            rows = columns.pop(ROW)
            extra = {k: v for k, v in columns.items() if k not in ("trainer_state", "log_extra")}
            final = {*self.eos_token_ids, self.processing_class.pad_token_id}
            batch = Batch(
                prompts=[text_of(p) for p in prompts], completions=[text_of(c) for c in completions],
                gold=gold, group_size=self.num_generations, step=self.state.global_step,
                completion_ids=completion_ids,
                truncated=[not len(ids) or ids[-1] not in final for ids in completion_ids],
                columns={**extra, "meta": [self.problems[i].meta for i in rows]},
            )
            components = self.method.components(batch)
            total = np.asarray(self.method.aggregate(components, batch), dtype=np.float64)
            check_rewards(total, components, len(completions))
            for name, value in component_metrics(components).items():
                log_metric(name, value)
            self._scored = total, components, batch
            return total.tolist()

        def _generate_and_score_completions(self, inputs):
            out = super()._generate_and_score_completions(inputs)
            total, components, batch = self._scored
            advantages = self.method.advantages(total, components, batch)
            lengths = [len(ids) for ids in batch.completion_ids]
            inject(out, advantages, lengths, kept_weight(advantages, lengths, self.args.loss_type))
            found = signal_metrics(total, components, advantages, batch.group_size)
            found |= self.method.diagnostics(total, components, advantages, batch)
            for name, value in found.items():
                if np.isfinite(value):
                    self._metrics["train"][name].append(value)
            return out

        def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
            if "token_advantages" in inputs:
                weights = inputs["token_advantages"]
                if any(c.__name__ == "_UnslothGRPOTrainer" for c in type(self).__mro__):
                    weights = left_packed(weights, inputs, self.processing_class.pad_token_id)
                inputs = {**inputs, "advantages": weights}
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)

        def create_model_card(self, *args, **kwargs):
            """TRL writes one with every checkpoint; a run's folder has its own files."""

        def _save_checkpoint(self, model, trial):
            super()._save_checkpoint(model, trial)
            folder = Path(self._get_output_dir(trial=trial)) / f"checkpoint-{self.state.global_step}"
            torch.save(self.method.state_dict(), folder / METHOD_STATE)

        def _load_optimizer_and_scheduler(self, checkpoint):
            super()._load_optimizer_and_scheduler(checkpoint)
            if checkpoint is not None:
                self.method.load_state_dict(torch.load(Path(checkpoint) / METHOD_STATE, weights_only=True))

    return SeamTrainer
