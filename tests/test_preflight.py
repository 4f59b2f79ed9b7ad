"""The T4 estimate against printed parameter counts and hand-computed memory; the checks of a machine."""

import sys
from types import SimpleNamespace

import pytest

from explorl.errors import ConfigError
from explorl.train import memory, preflight
from explorl.train.memory import SHAPES, Demand, ladder, lora_parameters, memory_parts, need_gib, shape_of

T4 = {"backbone": "unsloth/Qwen2.5-3B-Instruct", "lora_r": 64, "group_size": 4, "prompts_per_step": 1,
      "max_sequence_tokens": 2048, "max_completion_tokens": 1536, "steps": 150}


@pytest.mark.parametrize(("model", "rank", "count"), [
    ("qwen3-4b", 32, 66_060_288), ("llama-3.2-3b", 64, 97_255_424),
    ("llama-3.1-8b", 32, 83_886_080), ("qwen2.5-3b", 64, 119_734_272),
])
def test_lora_counts_are_those_that_unsloth_prints(model, rank, count):
    assert lora_parameters(SHAPES[model], rank) == count


def test_lora_count_is_what_peft_makes():
    import peft
    from transformers import Qwen2Config, Qwen2ForCausalLM

    config = Qwen2Config(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, vocab_size=50, tie_word_embeddings=True)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = peft.get_peft_model(Qwen2ForCausalLM(config), peft.LoraConfig(r=3, target_modules=targets))
    shape = memory.Shape(32, 48, 2, 4, 2, 8, 50, True)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == lora_parameters(shape, 3)
    linear = sum(p.numel() for n, p in model.named_parameters() if n.endswith("base_layer.weight"))
    assert linear == shape.linear_parameters


@pytest.mark.parametrize(("group", "rank", "completion", "rows", "expected"), [
    (4, 64, 1536, 4, 7.8), (6, 64, 1536, 6, 8.6), (6, 64, 1536, 2, 7.0), (4, 32, 512, 4, 6.4),
])
def test_memory_of_the_3b_model(group, rank, completion, rows, expected):
    assert need_gib(Demand(SHAPES["qwen2.5-3b"], rank, group, 512, completion, rows)) == pytest.approx(expected, abs=0.05)


def test_memory_parts_by_hand():
    shape = memory.Shape(hidden=8, mlp=16, layers=2, heads=2, kv_heads=1, head_dim=4, vocabulary=100, tied=False)
    demand = Demand(shape, rank=2, group_size=2, prompt_tokens=3, completion_tokens=5, rows=1, prompts=2)
    byte = {name: size * 1024**3 for name, size in memory_parts(demand).items()}
    linear = 2 * (8 * 8 * 2 + 8 * 4 * 2 + 3 * 8 * 16)
    assert shape.linear_parameters == linear == 1152
    assert byte["weights"] == pytest.approx(0.516 * 1.24 * 1152 + 2 * 1600)
    assert byte["lora"] == pytest.approx(10 * 2 * 2 * (2 * 16 + 2 * 12 + 3 * 24))
    assert byte["generation"] == pytest.approx(4 * 4 * 8 * 2 * 4 + 8 * 4 * 100 + 2 * 4 * 3 * (64 + 64))
    assert byte["backward"] == pytest.approx(2 * 2 * 8 * 8 + 2 * (24 * 8 + 4 * 16) * 8 + 10 * 5 * 100)
    assert need_gib(demand) == pytest.approx(
        1.08 * (byte["weights"] + byte["lora"] + max(byte["generation"], byte["backward"])) / 1024**3 + 1.08 * 0.9)


def test_sixteen_bit_weights_cost_more():
    four = Demand(SHAPES["qwen2.5-3b"], 64, 4, 512, 1536, 4)
    sixteen = Demand(SHAPES["qwen2.5-3b"], 64, 4, 512, 1536, 4, four_bit=False)
    assert memory_parts(sixteen)["weights"] == pytest.approx(5.75, abs=0.05)
    assert memory_parts(four)["weights"] == pytest.approx(2.23, abs=0.01)


def test_ladder_goes_down_in_order():
    demand = Demand(SHAPES["llama-3.1-8b"], 64, 6, 512, 1536, 18, prompts=3)
    steps = list(ladder(demand))
    fields = [field for field, _, _ in steps]
    assert list(dict.fromkeys(fields)) == ["rows", "prompts", "completion_tokens", "group_size", "rank"]
    assert [d.rows for f, _, d in steps if f == "rows"] == [9, 3, 1], "divisors of the 18 completions"
    last = steps[-1][2]
    assert (last.rows, last.completion_tokens, last.group_size, last.rank) == (1, 256, 4, 8)
    needs = [need_gib(d) for _, _, d in steps]
    assert needs == sorted(needs, reverse=True)


def test_a_run_that_fits_has_no_rung():
    result = preflight.require_fit(T4)
    assert result.fits and result.next_rung is None
    assert result.lora_parameters == 119_734_272
    assert result.host_gib == pytest.approx(36 * 4 * 2048 * 2048 * 2 / 1024**3)


def test_a_run_that_does_not_fit_is_refused_with_the_next_rung():
    big = T4 | {"backbone": "meta-llama/Meta-Llama-3.1-8B-Instruct", "group_size": 6}
    result = preflight.estimate(big)
    assert not result.fits and result.next_rung.field == "micro_batch" and result.next_rung.new == 3
    assert result.rungs[-1].need_gib <= preflight.LIMIT_GIB
    with pytest.raises(ConfigError, match=r"memory.*14.0 GiB on a T4.*micro_batch: 6 → 3"):
        preflight.require_fit(big)
    assert preflight.estimate(big | {"micro_batch": 3}).fits


def test_a_run_that_never_fits_shows_the_whole_ladder():
    hopeless = T4 | {"backbone": "meta-llama/Llama-3.1-8B-Instruct", "load_in_4bit": False}
    result = preflight.estimate(hopeless)
    assert not result.fits and [r.field for r in result.rungs][-1] == "lora_r"
    assert result.rungs[-1].need_gib > preflight.LIMIT_GIB


def test_minutes_are_a_range_and_say_so():
    result = preflight.estimate(T4)
    assert result.minutes == (62.5, 150.0)
    assert "nobody measured" in result.minutes_basis
    more = T4 | {"arms": ["base", "cfl", "sde2"], "seeds": [0, 1], "eval_problems": 32, "eval_samples": 2,
                 "eval_every": 50}
    steps = 2 * (2 * 150 + (3 * 32 + 2 * 3 * 64) * 2 / 16)
    assert preflight.minutes(more) == pytest.approx((steps * 25 / 60, steps * 60 / 60))


def test_objects_serve_as_params_too():
    assert preflight.estimate(SimpleNamespace(**T4)).need_gib == preflight.estimate(T4).need_gib


@pytest.mark.parametrize(("change", "field"), [
    ({"backbone": "toy"}, "backbone"), ({"backbone": "smollm2"}, "backbone"),
    ({"backbone": "someone/no-such-model"}, "backbone"), ({"max_completion_tokens": 2048}, "max_completion_tokens"),
    ({"lora_r": 0}, "lora_r"), ({"steps": None}, "steps"),
])
def test_what_cannot_be_estimated_is_named(change, field):
    with pytest.raises(ConfigError) as caught:
        preflight.estimate(T4 | change)
    assert caught.value.field == field


def test_shape_from_a_configuration_on_disk(tmp_path):
    from transformers import LlamaConfig

    LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
                num_key_value_heads=2, vocab_size=77, tie_word_embeddings=True).save_pretrained(tmp_path)
    assert shape_of(str(tmp_path)) == memory.Shape(64, 96, 3, 4, 2, 16, 77, True)


@pytest.mark.parametrize(("name", "layers"), [
    ("Qwen/Qwen2.5-3B-Instruct", 36), ("unsloth/Llama-3.2-3B-Instruct-bnb-4bit", 28),
    ("meta-llama/Meta-Llama-3.1-8B-Instruct", 32), ("microsoft/Phi-3.5-mini-instruct", 32),
])
def test_shape_by_name(name, layers):
    assert shape_of(name).layers == layers


def test_precision_by_capability():
    assert [preflight.precision(c) for c in ((7, 0), (7, 5), (8, 0), (8, 9), (9, 0))] == [
        "float16", "float16", "bfloat16", "bfloat16", "bfloat16"]


def test_version_drift():
    loaded = {"torch": "2.8.0+cu126", "numpy": "2.0.1", "trl": "1.14.2", "unknown": "1"}
    assert preflight.version_drift(loaded, {"torch": "2.8.0", "numpy": "2.0.1", "trl": "1.14.2"}) == {}
    assert preflight.version_drift(loaded, {"torch": "2.8.0+cpu"}) == {"torch": ("2.8.0+cu126", "2.8.0+cpu")}
    assert preflight.version_drift(loaded, {"numpy": "2.3.0"}) == {"numpy": ("2.0.1", "2.3.0")}


def test_unsloth_must_come_first():
    class UnslothGRPOTrainer: ...

    class GRPOTrainer: ...

    def check(**modules):
        return preflight.unsloth_first(modules)

    assert check().ok
    assert not check(trl=SimpleNamespace(GRPOTrainer=GRPOTrainer)).ok
    assert check(unsloth=1, trl=SimpleNamespace(GRPOTrainer=UnslothGRPOTrainer)).ok
    late = check(unsloth=1, trl=SimpleNamespace(GRPOTrainer=GRPOTrainer))
    assert not late.ok and late.found == "trl.GRPOTrainer is GRPOTrainer" and "restart" in late.remedy


def test_checks_on_a_machine_without_gpu(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = {check.name: check for check in preflight.checks(T4, folder=tmp_path)}
    assert set(found) == {"versions", "disk", "gpu"}
    assert not found["gpu"].ok and "toy" in found["gpu"].remedy
    assert found["versions"].ok, found["versions"].found


def test_checks_with_a_gpu(tmp_path, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla T4")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (5 * 1024**3, 15 * 1024**3))
    found = {check.name: check for check in preflight.checks(T4, folder=tmp_path)}
    assert found["gpu"].ok and found["gpu"].found == "Tesla T4, float16"
    assert not found["memory"].ok and "5.0 GiB free" in found["memory"].found


def test_drift_of_a_loaded_package_is_found(monkeypatch):
    import numpy

    monkeypatch.setattr(numpy, "__version__", "0.0.1")
    assert "numpy" in sys.modules
    check = preflight.checks()[0]
    assert not check.ok and "numpy 0.0.1 in memory" in check.found and "restart" in check.remedy
