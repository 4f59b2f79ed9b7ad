"""Every file in params/ is valid, says where its values come from, and fits its machine by the estimate or says that
it does not."""

import math
from pathlib import Path

import pytest

from explorl import fetch, params, tasks
from explorl.errors import ConfigError
from explorl.train import preflight

ROOT = Path(__file__).resolve().parents[1] / "params"
FILES = sorted(ROOT.glob("*/*.yaml"))
GPU_FILES = [f for f in FILES if f.stem.startswith(("t4", "table"))]
TABLE_FILES = [f for f in FILES if f.stem.startswith("table")]
PARTS = {"gsm8k": 1319, "aime": 193, "medmcqa": 4183, "math500": 500, "minerva": 272, "olympiad": 675, "aime24": 30,
         "amc23": 40, "mmlu_pro": 12032, "gpqa": 340}
TASK = {("sde2", "table1"): "gsm8k", ("sde2", "table2"): "aime", ("sde2", "table3"): "medmcqa",
        ("sde2", "table5"): "gsm8k", ("empo", "table1"): "numina", ("empo", "table2"): "natural",
        ("empo", "table3"): "numina"}
BEYOND_A_T4 = {
    "table2_qwen25_7b_supervised", "table2_qwen25_7b_empo", "table2_qwen25_14b_sft", "table2_qwen25_14b_supervised",
    "table2_qwen25_14b_empo", "table3_octothinker_3b_supervised", "table3_octothinker_3b_empo",
}
"""Files that are right, and refused by the estimate of memory."""


def named(file: Path) -> str:
    return f"{file.parent.name}-{file.stem}"


def each(files):
    return pytest.mark.parametrize("file", files, ids=named)


def of(chapter: str, files=FILES):
    return [f for f in files if f.parent.name == chapter]


def loaded(file: Path):
    return params.load(file.parent.name, file)


@each(FILES)
def test_file_is_valid_and_named_after_its_run(file):
    assert loaded(file).run == file.stem


def tables_of(chapter: str) -> set[str]:
    return {f.stem for f in of(chapter, TABLE_FILES)}


def test_every_row_of_every_table_of_sde2_is_there():
    four = ("base", "cfl", "cfee", "sde2")
    backbones = ("qwen25_3b", "llama31_8b", "llama32_3b", "phi35_mini")
    rows = {f"table1_{b}_{arm}" for b in backbones for arm in four}
    rows |= {f"table2_qwen25_3b_{arm}" for arm in ("single_trace", "multi_strategy", "cfl", "cfee", "sde2")}
    rows |= {f"table3_qwen25_3b_{arm}" for arm in four}
    rows |= {f"table5_qwen25_3b_{arm}" for arm in ("base", "oc_fa", "oc_fa_sd", "sde2")}
    assert tables_of("sde2") == rows


def test_every_row_of_tables_1_to_3_of_empo_is_there():
    rows = {f"table1_qwen25_math_{size}_{row}" for size in ("15b", "7b")
            for row in ("base", "instruct", "sft", "random", "supervised", "empo")}
    rows |= {f"table2_qwen25_{size}_{row}" for size in ("3b", "7b", "14b")
             for row in ("base", "sft", "supervised", "empo")}
    rows |= {f"table3_octothinker_3b_{row}" for row in ("base", "supervised", "empo")}
    rows |= {f"table3_llama32_3b_{row}" for row in ("base", "empo")}
    assert tables_of("empo") == rows


@pytest.mark.parametrize("chapter", ["sde2", "empo"])
def test_the_three_scales_are_there(chapter):
    assert {"toy", "t4", "t4_paper"} <= {f.stem for f in of(chapter)}


@each(GPU_FILES)
def test_gpu_file_states_its_sources_and_fits_or_says_that_it_does_not(file):
    values = loaded(file)
    unsourced = set(values.model_fields_set) - set(params.sources(file)) - {"chapter", "run", "scale"}
    assert not unsourced, f"no source behind {sorted(unsourced)}"
    assert values.grad_checkpointing, "Unsloth turns its offloading off where this is false"
    assert values.load_in_4bit and values.lora_dropout == 0.0 and values.backbone in fetch.MODELS
    if file.stem in BEYOND_A_T4:
        with pytest.raises(ConfigError, match="memory.*GiB on a T4. Next: "):
            preflight.require_fit(values)
    else:
        assert preflight.require_fit(values).fits
    assert ("Beyond a T4" in file.read_text(encoding="utf-8")) == (file.stem in BEYOND_A_T4)


@each(TABLE_FILES)
def test_table_file_is_one_cell_of_its_table(file):
    chapter, (table, *_), values = file.parent.name, file.stem.split("_"), loaded(file)
    known = sorted((*params.trained_arms(chapter), *params.UNTRAINED), key=len, reverse=True)
    row = file.stem.replace("_instruct", "_base") if chapter == "empo" else file.stem
    assert values.arms == [next(arm for arm in known if row.endswith("_" + arm))]
    assert values.task == TASK[chapter, table] and values.scale == "t4_paper"
    tested = getattr(values, "eval_tasks", []) or [values.task]
    assert values.eval_problems == sum(PARTS[task] for task in tested)


@each(of("sde2", GPU_FILES))
def test_sde2_trains_as_the_paper_says(file):
    values = loaded(file)
    assert (values.lora_r, values.lora_alpha) == (64, 32.0)
    assert (values.learning_rate, values.warmup_ratio, values.max_grad_norm) == (5e-6, 0.1, 0.1)
    if file in TABLE_FILES:
        assert values.steps == {"gsm8k": 7500, "aime": 732, "medmcqa": 7500}[values.task]


@each(of("empo", GPU_FILES))
def test_empo_trains_as_the_paper_says(file):
    values = loaded(file)
    assert (values.beta_kl, values.lr_schedule, values.warmup_ratio, values.weight_decay) == (0, "constant", 0, 0)
    assert (values.gate, values.delta_low_nats, values.delta_high_nats) == ("entropy", 0, None)
    assert (values.answer_from, values.adv_clip, values.blank, values.rule) == ("boxed", None, "zero", "first_match")
    assert values.max_grad_norm == 1.0 and values.rollout_top_p == 1.0
    octo = "octothinker" in file.stem
    assert values.learning_rate == (5e-6 if octo else 1e-5), "ten times the paper's, which trains all weights"
    assert values.group_size == (16 if octo else 12 if values.task == "natural" else 7)
    assert (values.rollout_temperature, values.ratio_level) == ((1.0, "sequence") if octo else (0.9, "token"))


@each(of("empo", TABLE_FILES))
def test_empo_table_file_has_the_papers_budget_and_protocol(file):
    values = loaded(file)
    assert (values.eval_temperature, values.eval_samples) == (0.0, 1)
    octo = "octothinker" in file.stem
    prompts = 25_600 if octo else {"numina": 20_000, "natural": 18_000}[values.task]
    batch = 128 if values.arms == ["sft"] else 1
    assert values.steps * values.prompts_per_step == prompts // batch * batch
    assert values.prompts_per_step == (128 if values.arms == ["sft"] else values.prompts_per_step)
    judged = values.task == "natural" and set(values.arms) & {"empo", "supervised"}
    assert values.equality == ("verifier" if judged else "choice" if values.task == "natural" else "math")
    assert values.eval_tasks == (["mmlu_pro", "gpqa"] if values.task == "natural"
                                 else ["math500", "minerva", "olympiad", "aime24", "amc23"])
    assert {tasks.grader(task) for task in values.eval_tasks} <= {values.equality, "choice"}


@each(of("empo", TABLE_FILES))
def test_empo_table_file_names_its_model_and_its_regime(file):
    model = {"math_15b": "Qwen2.5-Math-1.5B", "math_7b": "Qwen2.5-Math-7B", "qwen25_3b": "Qwen2.5-3B",
             "qwen25_7b": "Qwen2.5-7B", "qwen25_14b": "Qwen2.5-14B", "octothinker_3b": "OctoThinker-3B-Long-Base",
             "llama32_3b": "Llama-3.2-3B-Instruct"}
    backbone = next(name for key, name in model.items() if key in file.stem)
    assert loaded(file).backbone.split("/")[1] == backbone + "-Instruct" * file.stem.endswith("_instruct")
    assert "regime" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", ["sde2", "empo"])
def test_t4_stays_within_three_hours(chapter):
    assert preflight.estimate(params.load(chapter, "t4")).minutes[1] <= 180


def test_empo_t4_sees_all_of_amc_before_any_of_math():
    values = params.load("empo", "t4")
    assert values.eval_tasks[0] == "amc23" and values.eval_problems > PARTS["amc23"] and values.eval_samples >= 4
    assert math.isclose(values.eval_temperature, values.rollout_temperature)


def test_t4_paper_has_the_papers_budget():
    values = params.load("sde2", "t4_paper")
    assert (values.steps, values.group_size, values.max_sequence_tokens) == (7500, 6, 2048)
    values = params.load("empo", "t4_paper")
    assert (values.steps * values.prompts_per_step, values.group_size, values.max_completion_tokens) == (20_000, 7, 2048)


@each(FILES)
def test_file_makes_a_trainer_config_and_a_reward_config(file):
    values = loaded(file)
    assert values.train_config(values.seeds[0]).steps == values.steps
    if file.parent.name == "sde2":
        assert values.sde2_config().delta == values.delta
    if file.parent.name == "empo":
        assert values.empo_config().adv_eps == values.adv_eps
