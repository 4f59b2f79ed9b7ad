"""Supervised fine-tuning, the arm that reinforcement learning is compared with: TRL's SFTTrainer on demonstrations.

It sees the same prompts in the same order as the other arms of its seed, one demonstration for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorl.errors import ConfigError
from explorl.papers.method import Method
from explorl.train.config import TrainConfig, trl_config
from explorl.train.evaluate import check_padding

if TYPE_CHECKING:
    import datasets

SHARED = ("output_dir", "seed", "use_cpu", "bf16", "fp16", "gradient_checkpointing", "max_steps",
          "dataloader_pin_memory", "dataloader_num_workers", "dataloader_drop_last", "optim", "learning_rate",
          "lr_scheduler_type", "warmup_steps", "weight_decay", "adam_beta1", "adam_beta2", "adam_epsilon",
          "max_grad_norm", "torch_empty_cache_steps", "logging_steps", "logging_nan_inf_filter", "report_to",
          "disable_tqdm", "save_strategy", "save_steps", "save_total_limit")
"""Settings of a GRPO run that an SFT run of the same parameters takes over."""


class Demonstrations(Method):
    """What an SFT arm learns from; it stands where the other arms have their method.

    Attributes:
        texts: one demonstration per problem, in the problems' order.
    """

    name = "sft"

    def __init__(self, texts: Sequence[str]):
        self.texts = list(texts)


def build(model: Any, tokenizer: Any, method: Demonstrations, problems: Sequence[Any], config: TrainConfig,
          out_dir: str | Path, callbacks: Sequence[Any] = ()) -> Any:
    """Make the SFT trainer of one run, in the form of :func:`explorl.train.trainer.build`.

    A step sees ``prompts_per_step`` demonstrations. Only completions are learned, end of sequence included.

    Args:
        model, tokenizer, problems, config, out_dir, callbacks: as for the other arms.
        method: the demonstrations, one per problem.

    Returns:
        A ``trl.SFTTrainer``.

    Raises:
        ConfigError: not as many demonstrations as problems, or an empty one.
    """
    import trl
    from transformers.trainer_callback import PrinterCallback

    check_padding(tokenizer, model)
    if len(method.texts) != len(problems):
        raise ConfigError("demonstrations", len(method.texts), f"one for each of the {len(problems)} problems")
    for number, text in enumerate(method.texts):
        if not text.strip():
            raise ConfigError(f"demonstrations[{number}]", text, "a text that solves its problem")
    shared = trl_config(config, out_dir).to_dict()
    rows = config.prompts_per_step
    per_pass = max(n for n in range(1, min(rows, config.rows_per_pass) + 1) if rows % n == 0)
    args = trl.SFTConfig(
        **{name: shared[name] for name in SHARED}, per_device_train_batch_size=per_pass,
        gradient_accumulation_steps=rows // per_pass, completion_only_loss=True, packing=False,
        max_length=None, shuffle_dataset=False, remove_unused_columns=True, eos_token=tokenizer.eos_token,
    )
    trainer = trl.SFTTrainer(model=model, args=args, processing_class=tokenizer, callbacks=list(callbacks),
                             train_dataset=dataset(method, problems, config))
    trainer._get_train_sampler = lambda data=None: _in_order(trainer.train_dataset)
    trainer.remove_callback(PrinterCallback)
    return trainer


def dataset(method: Demonstrations, problems: Sequence[Any], config: TrainConfig) -> datasets.Dataset:
    """Prompts with their demonstrations, in the order in which the other arms of this seed see the prompts.

    Returns:
        Columns ``prompt`` and ``completion``; chat messages where the prompts are.
    """
    from explorl.train import trainer

    rows = trainer.dataset(problems, config.prompts_needed, config.seed)

    def completion(row: dict) -> dict:
        text = method.texts[row[trainer.ROW]]
        chat = not isinstance(row["prompt"], str)
        return {"completion": [{"role": "assistant", "content": text}] if chat else text}

    return rows.map(completion).select_columns(["prompt", "completion"])


def _in_order(data: Any) -> Any:
    from torch.utils.data import SequentialSampler

    return SequentialSampler(data)
