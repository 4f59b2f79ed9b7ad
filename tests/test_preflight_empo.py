"""The T4 estimate where no group is sampled, where nothing is trained, and where a judge model stands beside."""

from dataclasses import replace

import pytest

from explorl.errors import ConfigError
from explorl.train import preflight
from explorl.train.memory import SHAPES, Demand, lora_parameters, memory_parts, need_gib, shape_of

RUN = {"backbone": "unsloth/Qwen2.5-Math-1.5B", "lora_r": 16, "group_size": 7, "prompts_per_step": 4, "micro_batch": 7,
       "max_sequence_tokens": 2560, "max_completion_tokens": 2048, "steps": 100, "arms": ["empo"]}


@pytest.mark.parametrize(("model", "count"), [
    ("qwen2.5-math-1.5b", 18_464_768), ("qwen2.5-math-7b", 40_370_176), ("qwen2.5-7b", 40_370_176),
    ("qwen2.5-14b", 68_812_800), ("octothinker-3b", 24_313_856),
])
def test_lora_counts_at_rank_16_are_those_that_peft_prints(model, count):
    assert lora_parameters(SHAPES[model], 16) == count


@pytest.mark.parametrize(("model", "billions"), [
    ("qwen2.5-math-1.5b", 1.54), ("qwen2.5-math-7b", 7.62), ("qwen2.5-14b", 14.77), ("octothinker-3b", 3.21),
])
def test_shapes_add_up_to_the_published_sizes(model, billions):
    shape = SHAPES[model]
    assert (shape.linear_parameters + shape.embedding_parameters) / 1e9 == pytest.approx(billions, abs=0.006)


@pytest.mark.parametrize(("name", "shape"), [
    ("unsloth/Qwen2.5-Math-7B-Instruct", "qwen2.5-math-7b"), ("Qwen/Qwen2.5-7B", "qwen2.5-7b"),
    ("OctoThinker/OctoThinker-3B-Long-Base", "octothinker-3b"), ("unsloth/Qwen2.5-14B-unsloth-bnb-4bit", "qwen2.5-14b"),
])
def test_shape_by_name(name, shape):
    assert shape_of(name) is SHAPES[shape]


def test_a_policy_that_is_only_evaluated_needs_no_backward_pass():
    demand = preflight.demand_of(RUN | {"arms": ["base"]})
    parts, training = memory_parts(demand), memory_parts(preflight.demand_of(RUN))
    assert parts["backward"] == 0 and parts["weights"] == training["weights"]
    assert parts["lora"] == pytest.approx(0.4 * training["lora"])
    assert demand.generated == 16 and preflight.demand_of(RUN).generated == 28
    assert preflight.demand_of(RUN | {"arms": ["base", "empo"]}) == preflight.demand_of(RUN)


def test_demonstrations_are_learned_without_sampling_groups():
    demand = preflight.demand_of(RUN | {"arms": ["sft"], "prompts_per_step": 128, "micro_batch": 4})
    assert demand.trained and demand.generated == 16 and demand.rows == 4
    assert preflight.demand_of(RUN | {"arms": ["sft"], "micro_batch": None}).rows == 4
    both = preflight.demand_of(RUN | {"arms": ["sft", "empo"]})
    assert both.generated == 28 and both.rows == 7


def test_a_judge_takes_its_weights_in_16_bits():
    plain = Demand(SHAPES["qwen2.5-3b"], 16, 4, 512, 512, 4)
    judged = replace(plain, judge_parameters=1.54e9)
    assert need_gib(judged) - need_gib(plain) == pytest.approx(1.08 * 2 * 1.54e9 / 1024**3)
    assert memory_parts(preflight.demand_of(RUN | {"equality": "verifier"}))["judge"] == pytest.approx(2.87, abs=0.01)
    assert memory_parts(preflight.demand_of(RUN | {"equality": "math"}))["judge"] == 0


def test_minutes_of_demonstrations_are_a_completions_share():
    low, high = preflight.minutes(RUN | {"arms": ["base", "sft"], "eval_problems": 32})
    assert (low, high) == pytest.approx((25 / 60 * (400 / 7 + 4), 400 / 7 + 4), rel=0.02)
    assert preflight.minutes(RUN)[1] == 400
    assert preflight.minutes(RUN | {"arms": ["base"]})[1] == 0


@pytest.mark.parametrize(("change", "batch"), [
    ({}, 16), ({"backbone": "toy"}, 16), ({"backbone": "unsloth/Qwen2.5-14B", "lora_r": 8}, 2),
    ({"backbone": "unsloth/Qwen2.5-Math-7B", "equality": "verifier"}, 8),
])
def test_an_evaluation_samples_as_many_at_once_as_fit(change, batch):
    params = RUN | {"arms": ["base"]} | change
    assert preflight.evaluation_batch(params) == batch
    if batch < 16:
        demand = preflight.demand_of(params)
        assert demand.at_once == batch and need_gib(demand) <= 14.0 < need_gib(replace(demand, at_once=2 * batch))


def test_smaller_evaluation_batches_take_longer():
    params = RUN | {"arms": ["base"], "eval_problems": 64, "backbone": "unsloth/Qwen2.5-14B", "lora_r": 8}
    assert preflight.minutes(params)[1] == 64 / preflight.evaluation_batch(params)


def test_fourteen_billion_do_not_fit():
    with pytest.raises(ConfigError, match="memory.*14.0 GiB on a T4"):
        preflight.require_fit(RUN | {"backbone": "unsloth/Qwen2.5-14B", "equality": "verifier"})
