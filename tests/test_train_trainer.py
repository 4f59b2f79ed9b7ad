"""The three seams: what a method says is what the loss gets."""

import random

import numpy as np
import pytest
import tiny_policy as tiny
import torch

from explorl.errors import ConfigError
from explorl.papers.method import Advantages, Batch, Method
from explorl.train.config import LOSS_TYPES, TrainConfig
from explorl.train.evaluate import sample
from explorl.train.seams import check_rewards, inject, left_packed, signal_metrics
from explorl.train.trainer import build, dataset

SMALL = dict(steps=2, prompts_per_step=2, group_size=3, max_completion_tokens=8, learning_rate=1e-2)


def trained(method, tmp_path, model=None, **settings):
    policy = tiny.policy()
    config = TrainConfig(**{**SMALL, **settings})
    trainer = build(model or policy.model, policy.tokenizer, method, tiny.problems(), config, tmp_path)
    trainer.train()
    return trainer


def scored(rows=2, width=4):
    return {"advantages": torch.zeros(rows), "completion_ids": torch.ones(rows, width, dtype=torch.long)}


# ---- configuration

@pytest.mark.parametrize("field, value", [
    ("steps", 0), ("steps", 1.5), ("group_size", 1), ("group_size", True), ("learning_rate", 0.0),
    ("learning_rate", float("nan")), ("loss_type", "ppo"), ("ratio_level", "product"), ("top_p", 0.0),
    ("temperature", 0.0), ("beta_kl", -0.1), ("micro_batch", 5), ("warmup_ratio", 2), ("adam_beta1", 1.0),
    ("precision", "int8"), ("clip_epsilon", "0.2"), ("seed", -1),
])
def test_wrong_setting_is_named(field, value):
    with pytest.raises(ConfigError) as error:
        TrainConfig(**{**SMALL, field: value})
    assert error.value.field == field


def test_checkpoint_inside_a_reused_batch_is_refused():
    with pytest.raises(ConfigError, match="save_every"):
        TrainConfig(**SMALL, num_iterations=2, save_every=3)


def test_loss_types_are_those_of_trl():
    from trl import GRPOConfig

    help_text = GRPOConfig.__dataclass_fields__["loss_type"].metadata["help"]
    assert all(f"'{name}'" in help_text for name in LOSS_TYPES)


# ---- the order of the problems

def test_order_is_shuffled_passes_and_depends_on_the_seed_alone():
    rows = dataset(tiny.problems(6), 15, seed=3)["problem_row"]
    assert sorted(rows[:6]) == sorted(rows[6:12]) == list(range(6))
    assert list(rows) == list(dataset(tiny.problems(6), 15, seed=3)["problem_row"])
    assert list(rows) != list(dataset(tiny.problems(6), 15, seed=4)["problem_row"])


# ---- the reward seam

def test_method_sees_the_whole_batch_group_by_group(tmp_path):
    method = tiny.Scripted()
    trained(method, tmp_path, steps=1, prompts_per_step=6, micro_batch=2)
    batch = method.last
    assert (len(batch.completions), batch.group_size, batch.step) == (18, 3, 0)
    assert batch.prompts[0] == batch.prompts[1] == batch.prompts[2] != batch.prompts[3]
    by_prompt = {p.prompt: p for p in tiny.problems()}
    assert list(batch.gold) == [by_prompt[p].gold for p in batch.prompts]
    assert batch.columns["meta"] == [by_prompt[p].meta for p in batch.prompts]
    tokens = tiny.tokenizer()
    decoded = [tokens.decode(ids, skip_special_tokens=True) for ids in batch.completion_ids]
    assert list(batch.completions) == decoded
    assert list(batch.truncated) == [ids[-1] != 1 for ids in batch.completion_ids]
    assert any(batch.truncated) and not all(batch.truncated)


def test_components_and_signal_are_logged(tmp_path):
    method = tiny.Scripted()
    trainer = trained(method, tmp_path, steps=1)
    logs, components = trainer.state.log_history[0], method.components(method.last)
    assert logs["components/oc/mean"] == pytest.approx(components["oc"].mean())
    assert logs["components/words/std"] == pytest.approx(components["words"].std())
    assert logs["reward"] == pytest.approx((components["oc"] + components["words"]).mean())
    assert logs["signal/kept_rows"] == 1.0 and 0 <= logs["signal/against_answer"] <= 1


def test_nan_reward_names_its_component(tmp_path):
    class Broken(tiny.Scripted):
        def components(self, batch):
            return {**super().components(batch), "words": np.full(len(batch.completions), np.nan)}

    with pytest.raises(ConfigError, match="component words = nan"):
        trained(Broken(), tmp_path)


def test_reward_of_the_wrong_shape_is_refused():
    with pytest.raises(ConfigError, match="total reward"):
        check_rewards(np.zeros((2, 1)), {}, 2)


def test_nan_diagnostic_is_allowed(tmp_path):
    class Diagnosed(tiny.Scripted):
        def components(self, batch):
            return {**super().components(batch), "div": np.full(len(batch.completions), np.nan)}

    logs = trained(Diagnosed(), tmp_path, steps=1).state.log_history[0]
    assert "components/div/mean" not in logs and "components/oc/mean" in logs


# ---- the advantage seam

def test_number_per_completion_is_injected_and_dropped_rows_are_zero():
    out = scored(3)
    inject(out, Advantages(np.array([0.5, -2.0, 3.0]), keep=np.array([True, False, True])), [4, 4, 4])
    assert out["advantages"].tolist() == [0.5, 0.0, 3.0] and "token_advantages" not in out


def test_number_per_token_is_injected_beside():
    out = scored(3)
    values = [np.array([1.0, 2.0]), np.array([3.0]), np.full(4, 9.0)]
    inject(out, Advantages(values, keep=np.array([1, 1, 0])), [2, 1, 4])
    assert out["token_advantages"].tolist() == [[1, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0]]
    assert out["advantages"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("values, keep", [
    (np.zeros(3), None), (np.array([0.0, np.inf]), None), ([np.zeros(2), np.zeros(3)], None),
    (np.zeros(2), [True]),
])
def test_unfit_advantages_are_refused(values, keep):
    with pytest.raises(ConfigError):
        inject(scored(2), Advantages(values, keep=keep), [2, 4])


def test_left_packed_by_hand():
    """Prompts padded by 2 and 0: in Unsloth's window of 3 + 2 columns the completions begin at 0 and 2."""
    inputs = {"prompt_ids": torch.tensor([[0, 0, 5], [6, 7, 8]]), "completion_ids": torch.ones(2, 3)}
    weights = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert left_packed(weights, inputs, 0).tolist() == [[1, 2, 3, 0, 0], [0, 0, 4, 5, 6]]
    inputs["old_per_token_logps"] = torch.zeros(2, 6)
    assert left_packed(weights, inputs, 0).tolist() == [[0, 1, 2, 3, 0, 0], [0, 0, 0, 4, 5, 6]]


def gradient(method, tmp_path, **settings):
    """The first step's update under plain gradient descent with learning rate 1: minus the gradient."""
    before = tiny.model().parameters()
    settings = {**settings, "optimizer": "sgd", "learning_rate": 1.0, "max_grad_norm": 1e9}
    after = trained(method, tmp_path, steps=1, **settings).model.parameters()
    return torch.cat([(q - p).detach().flatten() for p, q in zip(before, after, strict=True)])


def policy_gradient(method, weight):
    """∇ of the mean over rows of the mean over tokens of A·log π, by hand, without padding."""
    batch, model, tokens = method.last, tiny.model(), tiny.tokenizer()
    objective = 0.0
    for i, ids in enumerate(batch.completion_ids):
        prompt = tokens(batch.prompts[i])["input_ids"]
        logits = model(input_ids=torch.tensor([prompt + list(ids)])).logits[0, len(prompt) - 1 : -1]
        log_probs = logits.log_softmax(-1).gather(-1, torch.tensor(ids)[:, None])[:, 0]
        objective = objective + (torch.as_tensor(weight[i], dtype=torch.float32) * log_probs).mean() / len(weight)
    return torch.cat([g.flatten() for g in torch.autograd.grad(objective, list(model.parameters()))])


@pytest.mark.parametrize("method", [tiny.Tilted(), tiny.PerToken()], ids=["per completion", "per token"])
@pytest.mark.parametrize("micro_batch", [None, 2], ids=["one pass", "three passes"])
def test_update_is_the_policy_gradient_with_those_advantages(method, micro_batch, tmp_path):
    update = gradient(method, tmp_path, micro_batch=micro_batch)
    components = method.components(method.last)
    advantages = method.advantages(method.aggregate(components, method.last), components, method.last)
    keep = np.ones(6) if advantages.keep is None else advantages.keep
    share = np.mean(keep)  # the mean is over kept rows, not over all
    expected = policy_gradient(method, [v * k / share for v, k in zip(advantages.values, keep, strict=True)])
    assert update.abs().max() > 1e-3
    assert torch.allclose(update, expected, atol=1e-5)


def test_the_mean_over_tokens_leaves_out_the_dropped_rows_tokens(tmp_path):
    method = tiny.PerToken()
    update = gradient(method, tmp_path, loss_type="dapo")
    components, lengths = method.components(method.last), method.last.lengths
    advantages = method.advantages(method.aggregate(components, method.last), components, method.last)
    kept_tokens = lengths[advantages.keep].sum()
    share = [v * k * n * len(lengths) / kept_tokens  # the sum over tokens, from a mean over rows and tokens
             for v, k, n in zip(advantages.values, advantages.keep, lengths, strict=True)]
    assert len(set(lengths)) > 1 and not advantages.keep.all()
    assert torch.allclose(update, policy_gradient(method, share), atol=1e-5)


def test_dropping_every_row_leaves_the_weights_alone(tmp_path):
    class Dropped(tiny.Tilted):
        def advantages(self, total, components, batch):
            values = super().advantages(total, components, batch).values
            return Advantages(values, keep=np.zeros(len(total), bool))

    assert gradient(Dropped(), tmp_path).abs().max() == 0


def test_signal_metrics_by_hand():
    total = np.array([1.0, 1.0, 2.0, 0.0])
    advantages = Advantages(np.array([0.0, 0.0, 1.0, -1.0]), keep=np.array([True, True, True, False]))
    metrics = signal_metrics(total, {"oc": np.array([1.0, 0.0, 0.0, 1.0])}, advantages, 2)
    assert metrics == {"signal/flat_groups": 0.5, "signal/kept_rows": 0.75, "signal/against_answer": 0.25}


# ---- the reference

def test_reference_is_the_policy_as_handed_over(tmp_path):
    trainer = trained(tiny.Wordy(), tmp_path, beta_kl=0.1, steps=3)
    kl = [row["kl"] for row in trainer.state.log_history if "kl" in row]
    assert kl[0] == pytest.approx(0, abs=1e-6) and kl[2] > 1e-4
    for reference, initial in zip(trainer.ref_model.parameters(), tiny.model().parameters(), strict=True):
        assert torch.equal(reference, initial)


# ---- what build refuses

def test_padding_equal_to_end_is_refused(tmp_path):
    policy = tiny.policy()
    policy.tokenizer.pad_token = policy.tokenizer.eos_token
    with pytest.raises(ConfigError, match="pad_token_id"):
        build(policy.model, policy.tokenizer, tiny.Wordy(), tiny.problems(), TrainConfig(**SMALL), tmp_path)


def test_second_process_is_refused(tmp_path, monkeypatch):
    from transformers import TrainingArguments

    monkeypatch.setattr(TrainingArguments, "world_size", property(lambda self: 2))
    policy = tiny.policy()
    with pytest.raises(ConfigError, match="WORLD_SIZE = 2"):
        build(policy.model, policy.tokenizer, tiny.Wordy(), tiny.problems(), TrainConfig(**SMALL), tmp_path)


def test_no_problems_are_refused(tmp_path):
    policy = tiny.policy()
    with pytest.raises(ConfigError, match="problems"):
        build(policy.model, policy.tokenizer, tiny.Wordy(), [], TrainConfig(**SMALL), tmp_path)


def test_method_without_a_reward_says_so(tmp_path):
    with pytest.raises(NotImplementedError, match="Method must say what a completion is worth"):
        trained(Method(), tmp_path)


# ---- sampling for evaluation

def test_sampling_depends_on_its_seed_alone_and_leaves_the_random_states():
    policy, prompts = tiny.policy(), [p.prompt for p in tiny.problems(4)]
    draw = lambda seed: sample(policy.model, policy.tokenizer, prompts, n=3, max_new_tokens=8, seed=seed,
                               batch_size=5)
    policy.model.train()
    torch.manual_seed(1)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    first = draw(0)
    assert torch.equal(states[0], torch.get_rng_state()) and states[2] == random.getstate()
    assert states[1] == np.random.get_state()[1].tolist() and policy.model.training
    torch.manual_seed(2)
    assert draw(0) == first and draw(1) != first
    assert [len(group) for group in first] == [3] * 4


def test_greedy_sampling_ignores_padding_and_seed():
    policy, prompts = tiny.policy(), [p.prompt for p in tiny.problems(4)]
    draw = lambda seed, size: sample(policy.model, policy.tokenizer, prompts, temperature=0, max_new_tokens=8,
                                     seed=seed, batch_size=size)
    assert draw(0, 1) == draw(7, 4)
    with torch.no_grad():
        ids = policy.tokenizer(prompts[2])["input_ids"]
        expected = policy.model.eval()(input_ids=torch.tensor([ids])).logits[0, -1].argmax().item()
    assert draw(0, 4)[2][0].ids[0] == expected


def test_sampled_completions_end_once_or_are_truncated():
    policy = tiny.policy()
    groups = sample(policy.model, policy.tokenizer, ["w1 w2"], n=64, max_new_tokens=8, batch_size=64)
    for completion in groups[0]:
        assert completion.ids.count(1) == (0 if completion.truncated else 1)
        assert len(completion.ids) == 8 or completion.ids[-1] == 1
        assert "<eos>" not in completion.text
    assert len({c.truncated for c in groups[0]}) == 2


def test_batch_rejects_ragged_groups():
    with pytest.raises(ConfigError):
        Batch(prompts=["a"] * 3, completions=["b"] * 3, gold=[""] * 3, group_size=2)
