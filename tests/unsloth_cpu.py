"""Run the equivalence scenarios with Unsloth's generated trainer on a CPU: ``python unsloth_cpu.py OUT``.

Unsloth rewrites ``trl`` for the whole process, hence a process of its own. Without a GPU it leaves TRL alone, unless
told that a GPU is there (UNSLOTH_ALLOW_CPU) and asked again for the rewrite. The model is a stock one, so it gets the
two methods that Unsloth's loader would put on it. Prefix sharing is off: its self-check lets a stock model pass that
ignores it. Autocast is off: on a CPU it would run the gradient in half precision.
"""

import os
import sys
import types


def load():
    """Import Unsloth and rewrite ``trl.GRPOTrainer`` and ``trl.GRPOConfig``."""
    os.environ.update(UNSLOTH_ALLOW_CPU="1", UNSLOTH_COMPILE_DISABLE="1", TORCHDYNAMO_DISABLE="1",
                      UNSLOTH_GRPO_PREFIX_GROUPER="0")
    import unsloth  # noqa: F401
    import unsloth.models.rl

    os.environ["UNSLOTH_ALLOW_CPU"] = "0"
    unsloth.models.rl.patch_trl_rl_trainers()
    import trl

    assert trl.GRPOTrainer.__name__ == "UnslothGRPOTrainer"


def adapt(model):
    """Put on a stock model what Unsloth's loader puts on its own."""
    model.for_training = types.MethodType(lambda self, use_gradient_checkpointing=True: self.train(), model)
    model.for_inference = types.MethodType(lambda self: self, model)
    model._unsloth_user_float32 = True


def without_autocast(trainer):
    """Keep the gradient in full precision."""
    trainer._autocast_dtype, trainer._autocast_enabled = None, False
    module = sys.modules["UnslothGRPOTrainer"]
    for name in ("_unsloth_grpo_autocast", "_unsloth_grpo_autocast_unscored"):
        setattr(module, name, lambda self: None)


def scenarios():
    """Name → (method, settings)."""
    import tiny_policy as tiny

    return {
        "bonus": (tiny.Tilted(), {}),
        "sampled": (tiny.Wordy(), {}),
        "dapo": (tiny.Tilted(), {"loss_type": "dapo"}),
        "sequence": (tiny.Tilted(), {"ratio_level": "sequence", "num_iterations": 2}),
        "kl": (tiny.Scripted(), {"beta_kl": 0.1}),
        "per_token": (tiny.PerToken(), {}),
        "per_token_reused": (tiny.PerToken(), {"num_iterations": 2, "loss_type": "dr_grpo"}),
        "imagine": (tiny.curious(), {}),
        "imagine_dapo": (tiny.curious(alpha=1.0), {"loss_type": "dapo"}),
        "empo": (tiny.Agreeing(), {}),
        "empo_ungated": (tiny.Agreeing(gate="none"), {}),
    }


def run(name, folder, unsloth):
    """Train one scenario; returns the adapter's weights, flat, and the configuration as a dictionary."""
    import peft
    import tiny_policy as tiny
    import torch
    from explorl.train.config import TrainConfig
    from explorl.train.trainer import build

    method, settings = scenarios()[name]
    torch.manual_seed(0)
    model = peft.get_peft_model(tiny.model(), peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "up_proj"], task_type="CAUSAL_LM"))
    if unsloth:
        adapt(model)
    config = TrainConfig(**{**dict(steps=4, prompts_per_step=3, group_size=4, micro_batch=6, learning_rate=1e-2,
                                   max_completion_tokens=8, max_grad_norm=1e9), **settings})
    trainer = build(model, tiny.tokenizer(), method, tiny.problems(), config, folder)
    if unsloth:
        without_autocast(trainer)
    trainer.train()
    weights = torch.cat([p.detach().flatten() for n, p in model.named_parameters()
                         if "lora_" in n and ".ref." not in n])
    return weights, trainer.args.to_dict()


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    load()
    torch.save({name: run(name, "checkpoints", True) for name in scenarios()}, sys.argv[1])
