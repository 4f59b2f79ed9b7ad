"""The T4 estimate of PPO's critic, of DAPO's further samplings, and of the models of IMAGINE's tables."""

from dataclasses import replace

import pytest

from explorl import params_rules
from explorl.errors import ConfigError
from explorl.train import demand, held_out, preflight
from explorl.train.memory import SHAPES, Demand, Shape, ladder, lora_parameters, memory_parts, need_gib, shape_of

RUN = {"backbone": "unsloth/Qwen2.5-3B", "lora_r": 32, "group_size": 5, "prompts_per_step": 4, "micro_batch": 5,
       "max_sequence_tokens": 1280, "max_completion_tokens": 1024, "steps": 100, "arms": ["grpo"]}
TINY = Shape(hidden=8, mlp=16, layers=2, heads=2, kv_heads=1, head_dim=4, vocabulary=100, tied=False)


@pytest.mark.parametrize(("model", "billions"), [
    ("qwen2.5-0.5b", 0.49), ("qwen2.5-1.5b", 1.54), ("qwen2.5-3b", 3.09), ("deepseek-llm-7b", 6.91),
])
def test_shapes_add_up_to_the_published_sizes(model, billions):
    shape = SHAPES[model]
    assert (shape.linear_parameters + shape.embedding_parameters) / 1e9 == pytest.approx(billions, abs=0.006)


@pytest.mark.parametrize(("name", "shape"), [
    ("unsloth/Qwen2.5-0.5B", "qwen2.5-0.5b"), ("unsloth/Qwen2.5-1.5B-Instruct", "qwen2.5-1.5b"),
    ("deepseek-ai/deepseek-llm-7b-chat", "deepseek-llm-7b"), ("unsloth/Qwen2.5-Math-1.5B", "qwen2.5-math-1.5b"),
])
def test_shape_by_name(name, shape):
    assert shape_of(name) is SHAPES[shape]


def critic_bytes(**changes):
    asked = Demand(TINY, rank=2, group_size=2, prompt_tokens=3, completion_tokens=5, rows=1, prompts=2, **changes)
    return {name: size * 1024**3 for name, size in memory_parts(asked).items()}


def test_a_copied_critic_by_hand():
    byte = critic_bytes(critic="copy", critic_rows=2)
    head, adapter = 8 * 8 + 8 + 8 + 1, 2 * 2 * (2 * 16 + 2 * 12 + 3 * 24)
    assert lora_parameters(TINY, 2) == adapter
    assert byte["critic"] == pytest.approx(16 * head + 0.516 * 1.24 * 1152 + 2 * 100 * 8 + 16 * adapter)
    assert byte["valuing"] == pytest.approx(2 * 2 * (24 * 8 + 4 * 16) * 2 * 8 + 12 * 8 * 2 * 5), "every layer is kept"


def test_a_critic_on_the_policys_states_is_a_head_only():
    byte = critic_bytes(critic="policy", critic_rows=2)
    assert byte["critic"] == pytest.approx(16 * 81)
    assert byte["valuing"] == pytest.approx(2 * (8 * 8 + 4 * 16) * 2 * 8 + 12 * 8 * 2 * 5)
    assert critic_bytes()["critic"] == critic_bytes()["valuing"] == 0


def test_the_head_is_that_of_the_critic():
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from explorl.train.critic import Critic, CriticConfig

    config = Qwen2Config(hidden_size=8, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
                         num_key_value_heads=1, vocab_size=100)
    critic = Critic(Qwen2ForCausalLM(config), CriticConfig(body="policy"))
    assert sum(p.numel() for p in critic.head.parameters()) == 81 and not critic.trained


def test_the_largest_of_the_three_counts():
    policy = Demand(SHAPES["qwen2.5-3b"], 32, 5, 256, 1024, 5, prompts=4, critic="policy", critic_rows=5)
    copied = replace(policy, critic="copy")
    parts = memory_parts(copied)
    assert parts["valuing"] > max(parts["generation"], parts["backward"])
    held = sum(parts[name] for name in ("weights", "lora", "judge", "critic", "context"))
    assert need_gib(copied) == pytest.approx(1.08 * (held + parts["valuing"]))
    head_only = memory_parts(policy)
    assert head_only["valuing"] < max(head_only["generation"], head_only["backward"])


def test_only_ppo_has_a_critic():
    assert preflight.demand_of(RUN).critic == preflight.demand_of(RUN | {"arms": ["imagine"]}).critic == ""
    asked = preflight.demand_of(RUN | {"arms": ["grpo", "imagine_ppo"], "held_out_problems": 64})
    assert (asked.critic, asked.critic_rows, asked.held_out, asked.generated) == ("copy", 16, 64, 64)
    few = preflight.demand_of(RUN | {"arms": ["ppo"], "critic_body": "policy", "critic_rows": 99,
                                     "held_out_problems": 999})
    assert (few.critic, few.critic_rows, few.held_out) == ("policy", 20, 256)


def test_the_novelty_costs_no_gpu_memory():
    assert preflight.demand_of(RUN | {"arms": ["imagine"]}) == preflight.demand_of(RUN)


def test_the_ladder_of_a_critic():
    asked = preflight.demand_of(RUN | {"arms": ["ppo"]})
    steps = list(ladder(asked))
    assert list(dict.fromkeys(field for field, *_ in steps)) == [
        "rows", "prompts", "critic_rows", "critic", "completion_tokens", "group_size", "rank"]
    needs = [need_gib(smaller) for *_, smaller in steps]
    assert needs == sorted(needs, reverse=True)
    assert next(smaller for field, _, smaller in steps if field == "critic").critic_rows == 1


def test_a_copy_of_three_billion_does_not_fit_and_a_head_does():
    with pytest.raises(ConfigError, match="memory.*14.0 GiB on a T4.*critic_body: copy → policy"):
        preflight.require_fit(RUN | {"arms": ["ppo"], "critic_rows": 1})
    assert preflight.require_fit(RUN | {"arms": ["ppo"], "critic_body": "policy"}).fits
    assert preflight.require_fit(RUN | {"arms": ["ppo"], "backbone": "unsloth/Qwen2.5-0.5B", "critic_rows": 1}).fits


def test_too_many_prompts_at_once_are_said_so():
    with pytest.raises(ConfigError, match="prompts_per_step: 512 → 256"):
        preflight.require_fit(RUN | {"prompts_per_step": 512})


def test_minutes_of_a_critic():
    plain, policy = RUN | {"arms": ["grpo"]}, RUN | {"arms": ["ppo"], "critic_body": "policy", "critic_epochs": 3}
    assert preflight.minutes(plain)[1] == 400
    assert preflight.minutes(policy)[1] == pytest.approx(400 * (1 + 0.05 * 4))
    assert preflight.minutes(policy | {"critic_body": "copy"})[1] == pytest.approx(400 * (1 + 0.05 * 10))
    looked_at = policy | {"held_out_problems": 20, "held_out_every": 40}
    assert preflight.minutes(looked_at)[1] - preflight.minutes(policy)[1] == pytest.approx(4 * 2), "0, 40, 80 and 99"
    assert preflight.minutes(looked_at | {"arms": ["grpo"]})[1] == 400


def test_minutes_of_dynamic_sampling_are_a_wider_range():
    low, high = preflight.minutes(RUN | {"arms": ["dapo"], "dapo_rounds": 2})
    assert (low, high) == pytest.approx((400 * 25 / 60, 400 * 3))
    assert preflight.minutes(RUN | {"arms": ["dapo"], "dapo_rounds": 0}) == preflight.minutes(RUN)


def test_a_batch_that_is_learned_twice_is_sampled_once():
    assert preflight.minutes(RUN | {"num_iterations": 2})[1] == pytest.approx(400 * (1 + 0.2) / 2)


def test_the_basis_says_what_was_guessed():
    def basis(**changes):
        return preflight.estimate(RUN | changes).minutes_basis

    assert basis() == preflight.MINUTES_BASIS
    assert "our guess" in basis(arms=["ppo"], critic_body="policy") and "our guess" in basis(num_iterations=2)
    assert "dynamic sampling" in basis(arms=["imagine_dapo"]) and basis(arms=["dapo"], dapo_rounds=0) == basis()


def test_names_that_are_written_in_two_places():
    assert demand.UNTRAINED_ARMS == params_rules.UNTRAINED and demand.REPLACING_ARMS == params_rules.DAPO_ARMS
    assert demand.HELD_OUT_AT_ONCE == held_out.ROWS
