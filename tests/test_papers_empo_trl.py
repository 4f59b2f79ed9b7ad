"""EMPO's reward function in an unmodified trl.GRPOTrainer teaches what EMPO's method teaches through the seams."""

import peft
import pytest
import tiny_policy as tiny
import torch
import trl

from explorl.papers import empo
from explorl.train import trainer
from explorl.train.config import TrainConfig, trl_config

CONFIG = TrainConfig(steps=3, prompts_per_step=3, group_size=4, micro_batch=12, learning_rate=1e-2,
                     max_completion_tokens=8)


def adapted():
    """A model of which only an adapter learns: Adam turns rounding in a gradient of 0 into a whole step."""
    torch.manual_seed(0)
    return peft.get_peft_model(tiny.model(), peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "up_proj"], task_type="CAUSAL_LM"))


def flat(model):
    return torch.cat([p.detach().flatten() for n, p in model.named_parameters() if "lora_" in n])


def first_word(completion, config=None):
    return tiny.Agreeing().read(completion)


def plain_trl(folder, **options):
    """The weights after training with TRL alone."""
    reward = empo.reward_function(empo.Config(), lambda a, b: a == b, **options)
    model, method = adapted(), tiny.Agreeing()
    data = trainer.dataset(tiny.problems(), CONFIG.prompts_needed, CONFIG.seed)
    args = trl_config(CONFIG, folder)
    args.scale_rewards = "group"  # TRL's default; our trainer has its advantages from the method
    alone = trl.GRPOTrainer(model=model, reward_funcs=[reward], processing_class=tiny.tokenizer(), train_dataset=data,
                            args=args, rollout_func=method.rollout)
    alone.train()
    return flat(model)


@pytest.fixture(scope="module")
def through_the_seams(tmp_path_factory):
    """The weights of the method with groups outside the gate counted, as TRL counts them."""
    model = adapted()
    trainer.build(model, tiny.tokenizer(), tiny.Agreeing(filtered="zero"), tiny.problems(), CONFIG,
                  tmp_path_factory.mktemp("seams")).train()
    return flat(model)


@pytest.mark.parametrize("group_size", [None, 4])
def test_trl_alone_gives_the_same_weights(group_size, through_the_seams, tmp_path, monkeypatch):
    monkeypatch.setattr(empo, "read", first_word)
    weights = plain_trl(tmp_path, group_size=group_size)
    assert (weights - through_the_seams).abs().max() < 1e-5 < 1e-3 < (weights - flat(adapted())).abs().max()
