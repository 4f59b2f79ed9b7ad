"""Every file in params/ is valid, says where its values come from, and fits its machine by the estimate."""

from pathlib import Path

import pytest

from explorl import params
from explorl.train import preflight

ROOT = Path(__file__).resolve().parents[1] / "params"
FILES = sorted(ROOT.glob("*/*.yaml"))
GPU_FILES = [f for f in FILES if f.stem.startswith(("t4", "table"))]
NAMES = {f.stem for f in FILES}


def loaded(file: Path):
    return params.load(file.parent.name, file)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_file_is_valid_and_named_after_its_run(file):
    assert loaded(file).run == file.stem


def test_the_three_scales_and_every_row_of_every_table_are_there():
    assert {"toy", "t4", "t4_paper"} <= NAMES
    four = ("base", "cfl", "cfee", "sde2")
    backbones = ("qwen25_3b", "llama31_8b", "llama32_3b", "phi35_mini")
    rows = {f"table1_{b}_{arm}" for b in backbones for arm in four}
    rows |= {f"table2_qwen25_3b_{arm}" for arm in ("single_trace", "multi_strategy", "cfl", "cfee", "sde2")}
    rows |= {f"table3_qwen25_3b_{arm}" for arm in four}
    rows |= {f"table5_qwen25_3b_{arm}" for arm in ("base", "oc_fa", "oc_fa_sd", "sde2")}
    assert {name for name in NAMES if name.startswith("table")} == rows


@pytest.mark.parametrize("file", GPU_FILES, ids=lambda f: f.stem)
def test_gpu_file_states_its_sources_and_fits(file):
    values = loaded(file)
    sourced = params.sources(file)
    unsourced = set(values.model_fields_set) - set(sourced) - {"chapter", "run", "scale"}
    assert not unsourced, f"no source behind {sorted(unsourced)}"
    assert preflight.require_fit(values).fits
    assert values.grad_checkpointing, "Unsloth turns its offloading off where this is false"
    assert values.load_in_4bit and (values.lora_r, values.lora_alpha, values.lora_dropout) == (64, 32.0, 0.0)
    assert (values.learning_rate, values.warmup_ratio, values.max_grad_norm) == (5e-6, 0.1, 0.1)


@pytest.mark.parametrize("file", [f for f in FILES if f.stem.startswith("table")], ids=lambda f: f.stem)
def test_table_file_is_one_cell_of_its_table(file):
    table, *_, = file.stem.split("_")
    values = loaded(file)
    assert values.arms == [next(a for a in sorted(params.TRAINED + params.UNTRAINED, key=len, reverse=True)
                                if file.stem.endswith("_" + a))]
    assert values.task == {"table1": "gsm8k", "table2": "aime", "table3": "medmcqa", "table5": "gsm8k"}[table]
    assert values.eval_problems == {"gsm8k": 1319, "aime": 193, "medmcqa": 4183}[values.task]
    assert values.steps == {"gsm8k": 7500, "aime": 732, "medmcqa": 7500}[values.task]


def test_t4_stays_within_three_hours():
    assert preflight.estimate(params.load("sde2", "t4")).minutes[1] <= 180


def test_t4_paper_has_the_papers_budget():
    values = params.load("sde2", "t4_paper")
    assert (values.steps, values.group_size, values.max_sequence_tokens) == (7500, 6, 2048)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_file_makes_a_trainer_config_and_a_reward_config(file):
    values = loaded(file)
    assert values.train_config(values.seeds[0]).steps == values.steps
    assert values.sde2_config().delta == values.delta
