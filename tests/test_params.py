"""Parameters: every slip is an error that names field, value and what is allowed, and all come at once."""

import json
import math
import os
import re

import pytest
import yaml

from explorl import params, params_model, params_rules, places, strict_yaml
from explorl.errors import ConfigError
from explorl.papers import sde2
from explorl.params import ParamsError

FILES = sorted(places.params_dir().glob("*/*.yaml"))


def smoke_text():
    return (places.params_dir() / "sde2" / "smoke.yaml").read_text(encoding="utf-8")


def with_line(line):
    """smoke.yaml with one value replaced (or added)."""
    name = line.split(":")[0]
    text = re.sub(rf"^{name}:.*\n", "", smoke_text(), flags=re.M)
    return f"{text}\n{line}\n"


def problems_of(tmp_path, text, name="smoke.yaml"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ParamsError) as caught:
        params.load("sde2", path)
    return {problem.field: problem for problem in caught.value.problems}


@pytest.mark.parametrize("line, value, hint", [
    ("learning_rate: 3e-4", "3e-4", "write 3.0e-4"),
    ("learning_rate: 1E6", "1E6", "write 1.0e+6"),
    ("learning_rate: fast", "fast", "a number > 0"),
    ("learning_rate: .nan", math.nan, "a number > 0"),
    ("weight_decay: .inf", math.inf, "a number ≥ 0"),
    ("learning_rate: 0", 0, "> 0"),
    ("learning_rate: 2.0", 2.0, "≤ 1"),
    ("steps: true", True, "a whole number ≥ 1"),
    ("steps: 2.0", 2.0, "a whole number ≥ 1"),
    ("steps: '3'", "3", "a whole number ≥ 1"),
    ("steps: 010", "010", "a whole number ≥ 1"),
    ("steps: 1:30", "1:30", "a whole number ≥ 1"),
    ("steps: 0", 0, "a whole number ≥ 1"),
    ("steps: null", None, "a whole number ≥ 1"),
    ("delta: true", True, "a number > 0, < 1"),
    ("delta: 1.0", 1.0, "a number > 0, < 1"),
    ("delta: 0", 0, "a number > 0, < 1"),
    ("final_requires_tag: no", "no", "true or false"),
    ("final_requires_tag: 1", 1, "true or false"),
    ("dup_key: blocks", "blocks", "one of block, reasoning, id, none"),
    ("max_strategies: 0", 0, "null or a whole number ≥ 1"),
    ("seeds: 0", 0, "a list of at least one"),
    ("seeds: []", [], "a list of at least one"),
    ("run: ../up", "../up", "of letters"),
    ("scale: huge", "huge", "one of smoke, toy, t4, t4_paper"),
    ("task: gsm9k", "gsm9k", "one of digits, gsm8k, aime, medmcqa"),
])
def test_a_wrong_value_names_field_value_and_what_is_allowed(tmp_path, line, value, hint):
    problem = problems_of(tmp_path, with_line(line))[line.split(":")[0]]
    assert repr(problem.value) == repr(value)
    assert hint in problem.allowed
    assert str(problem) == f"{problem.field} = {value!r}: must be {problem.allowed}"


def test_a_wrong_element_of_a_list_is_named_by_its_place(tmp_path):
    assert problems_of(tmp_path, with_line("seeds: [0, -1]"))["seeds[1]"].value == -1
    assert problems_of(tmp_path, with_line("arms: [base, sde]"))["arms[1]"].value == "sde"


@pytest.mark.parametrize("lines, field, hint", [
    (["alpha: 0.5", "beta_cap: 0.5"], "alpha", "greater than beta_cap = 0.5"),
    (["group_size: 1"], "group_size", "at least 2"),
    (["seeds: [3, 3]"], "seeds", "different"),
    (["arms: [sde2, sde2]"], "arms", "different"),
    (["task: gsm8k"], "backbone", "task = 'digits', not 'gsm8k'"),
    (["backbone: smollm2"], "task", "another task"),
    (["load_in_4bit: true"], "load_in_4bit", "false for the packaged policy 'toy'"),
    (["lora_r: 8"], "lora_r", "0 for the toy policy"),
    (["micro_batch: 3"], "micro_batch", "a divisor of prompts_per_step * group_size = 2 * 4"),
    (["max_completion_tokens: 64"], "max_completion_tokens", "below max_sequence_tokens = 64"),
    (["canon: choice"], "canon", "'numeric' for every other task (here 'digits')"),
    (["eval_temperature: 0.0"], "eval_samples", "1 at eval_temperature = 0"),
    (["arms: [base, multi_strategy]"], "arms", "without single_trace and multi_strategy"),
    (["arms: [cfl]", "length_free_tokens: 48"], "length_free_tokens", "below max_completion_tokens = 48"),
])
def test_values_that_do_not_go_together(tmp_path, lines, field, hint):
    text = smoke_text()
    for line in lines:
        name = line.split(":")[0]
        text = re.sub(rf"^{name}:.*\n", "", text, flags=re.M) + f"{line}\n"
    assert hint in problems_of(tmp_path, text)[field].allowed


def test_group_size_one_is_right_where_nothing_is_trained(tmp_path):
    assert params.load("sde2", "smoke", group_size=1, arms=["base"]).group_size == 1


def test_every_rule_is_broken_by_some_values_above():
    of_empo = {"blank", "delta_high_nats", "eval_tasks", "equality"}  # in test_params_empo.py
    of_imagine = {"dapo_clip_high", "dapo_overlong_buffer", "minmax_scope", "save_every", "steps"}  # …_imagine.py
    broken = of_empo | of_imagine | {
        "alpha", "group_size", "seeds", "arms", "backbone", "task", "load_in_4bit", "lora_r", "micro_batch",
        "max_completion_tokens", "canon", "eval_samples", "length_free_tokens"}
    assert {names[0] for names, *_ in params_rules.RULES} == broken


def test_four_bits_need_an_adapter():
    values = params.load("sde2", "smoke").model_dump() | {"backbone": "some/model", "task": "gsm8k", "load_in_4bit": True,
                                                          "lora_r": 0}
    with pytest.raises(ParamsError, match="lora_r = 0: must be at least 1 with load_in_4bit"):
        params.check_values(values, source="x")


def test_all_problems_are_reported_at_once(tmp_path):
    text = with_line("steps: many") + "detla: 0.7\nbeta_cap: 2.0\n"
    text = re.sub(r"^task:.*\n", "", text, flags=re.M)
    found = problems_of(tmp_path, text)
    assert set(found) == {"steps", "detla", "alpha", "task"}
    assert "did you mean delta?" in found["detla"].allowed
    assert found["task"].allowed.startswith("given: one of digits")


def test_the_message_lists_every_problem(tmp_path):
    path = tmp_path / "smoke.yaml"
    path.write_text(with_line("steps: 0") + "deltaa: 1\n", encoding="utf-8")
    with pytest.raises(ParamsError) as caught:
        params.load("sde2", path)
    assert str(caught.value).splitlines() == [
        "smoke.yaml: 2 problems",
        "  steps = 0: must be a whole number ≥ 1",
        "  deltaa = 1: must be a known name (did you mean delta?)",
    ]
    assert (caught.value.field, caught.value.value) == ("steps", 0)


@pytest.mark.parametrize("text, field, hint", [
    ("steps: 1\nsteps: 2\n", "steps", "given once"),
    ("1: 2\n", "line 1", "a name, as text"),
    ("- a\n- b\n", "smoke.yaml", "lines of the form 'name: value'"),
    ("", "smoke.yaml", "lines of the form 'name: value'"),
    ("steps: [1\n", "smoke.yaml", "YAML"),
    ("steps: !!python/object/apply:os.getcwd []\n", "smoke.yaml", "YAML"),
    ("a: &x [*x]\n? [b]\n: 1\n", "line 2", "a name, as text"),
    ("[" * 5000, "smoke.yaml", "YAML"),
    ("steps: " + "9" * 6000, "smoke.yaml", "YAML"),
])
def test_a_file_that_is_no_mapping_of_names(tmp_path, text, field, hint):
    assert hint in problems_of(tmp_path, text)[field].allowed


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "smoke.yaml"
    path.write_bytes(b"run: \xff\xfe")
    with pytest.raises(ParamsError, match="UTF-8"):
        params.load("sde2", path)


def test_the_file_name_is_the_run_and_the_folder_the_chapter(tmp_path):
    assert problems_of(tmp_path, smoke_text(), "mine.yaml")["run"].allowed.startswith("the file's name, 'mine'")
    (tmp_path / "mine.yaml").write_text(smoke_text().replace("run: smoke", "run: mine"), encoding="utf-8")
    assert params.load(None, tmp_path / "mine.yaml").run == "mine"


def test_an_unknown_file_or_chapter_lists_what_there_is():
    with pytest.raises(ParamsError, match="one of .*smoke, .*toy"):
        params.load("sde2", "toyy")
    with pytest.raises(ParamsError, match="params = 'no/such.yaml': must be a file"):
        params.load("sde2", "no/such.yaml")
    with pytest.raises(ParamsError, match="params = 'params/sde2': must be a path to a .yaml file"):
        params.load(None, "params/sde2")
    with pytest.raises(ParamsError, match="chapter = 'sde3': must be one of sde2"):
        params.load("sde3", "toy")


def test_the_books_files_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert params.load(None, "params/sde2/t4.yaml") == params.load("sde2", "t4")


def test_changes_replace_values_and_none_does_not():
    assert params.load("sde2", "smoke", steps=7, delta=None).steps == 7
    assert params.load("sde2", "smoke", delta=None) == params.load("sde2", "smoke")
    with pytest.raises(ParamsError, match="stepz = 1: must be a known name .did you mean steps"):
        params.load("sde2", "smoke", stepz=1)


def test_notebook_variables(monkeypatch):
    monkeypatch.delenv("EXPLORL_SCALE", raising=False)
    found = params.from_notebook("sde2", {"scale": "smoke", "steps": 9, "delta": None, "np": math, "run": os,
                                          "task": len, "unrelated": 1})
    assert (found.run, found.steps, found.delta) == ("smoke", 9, 0.8)
    monkeypatch.setenv("EXPLORL_SCALE", "toy")
    assert params.from_notebook("sde2", {"scale": "smoke"}).run == "toy"
    monkeypatch.delenv("EXPLORL_SCALE")
    assert params.from_notebook("sde2", {}).run == "toy"


def test_papermill_values_win_over_every_default(monkeypatch):
    """papermill -f injects a whole file: a field the file leaves out must not come from the notebook's scale."""
    monkeypatch.setenv("EXPLORL_SCALE", "toy")
    injected = yaml.safe_load(smoke_text())
    assert params.from_notebook("sde2", {"scale": "toy", "steps": None} | injected) == params.load("sde2", "smoke")
    foreign = injected | {"run": "mine"}
    assert params.from_notebook("sde2", foreign) == params.load("sde2", "smoke", run="mine")


def test_an_import_that_takes_the_name_run_is_noticed():
    injected = yaml.safe_load(smoke_text()) | {"run": math}
    with pytest.raises(ParamsError, match="from explorl.run import"):
        params.from_notebook("sde2", injected)


def test_papermill_text_numbers_are_refused(monkeypatch):
    injected = yaml.safe_load("learning_rate: 3e-4")
    with pytest.raises(ParamsError, match=r"write 3\.0e-4"):
        params.from_notebook("sde2", {"scale": "smoke"} | injected)


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_every_file_is_right_for_us_and_for_papermill(path):
    ours = params.load(path.parent.name, path)
    assert params.check_values(yaml.safe_load(path.read_text(encoding="utf-8")), source="papermill") == ours


def test_the_hash_is_of_the_content_and_nothing_else(tmp_path):
    one = params.load("sde2", "smoke")
    shuffled = "\n".join(sorted(smoke_text().splitlines(), reverse=True))
    (tmp_path / "smoke.yaml").write_text(shuffled, encoding="utf-8")
    assert params.load("sde2", tmp_path / "smoke.yaml").hash() == one.hash()
    assert params.load("sde2", "smoke", jobs=3).hash() == one.hash()
    assert params.load("sde2", "smoke", warmup_ratio=0).hash() == one.hash()
    fields = {"steps": 4, "seeds": [1], "delta": 0.79, "arms": ["sde2"], "encoder": "constant"}
    hashes = {params.load("sde2", "smoke", **{name: value}).hash() for name, value in fields.items()}
    assert len(hashes | {one.hash()}) == 1 + len(fields)


def test_the_hash_is_the_same_in_every_process_and_survives_json():
    one = params.load("sde2", "smoke")
    again = params.check_values(json.loads(json.dumps(one.model_dump())), source="json")
    assert again.hash() == one.hash()
    values = {k: v for k, v in one.model_dump().items() if k != "jobs"}
    import hashlib
    assert one.hash() == hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def test_training_hash_leaves_out_what_does_not_train():
    one = params.load("sde2", "smoke")
    other = params.load("sde2", "smoke", run="mine", seeds=[5], arms=["cfl"], jobs=2, scale="toy")
    assert one.hash(without=params_model.NOT_TRAINING) == other.hash(without=params_model.NOT_TRAINING)
    assert one.hash(without=params_model.NOT_TRAINING) != params.load("sde2", "smoke", steps=4).hash(
        without=params_model.NOT_TRAINING)


def test_parameters_do_not_change():
    with pytest.raises(ValueError, match="frozen"):
        params.load("sde2", "smoke").steps = 3


def test_train_config_takes_the_parameters_of_its_names():
    config = params.load("sde2", "smoke", rollout_temperature=0.7, rollout_top_p=0.9).train_config(seed=5)
    assert (config.steps, config.group_size, config.seed, config.temperature, config.top_p) == (3, 4, 5, 0.7, 0.9)


def test_every_setting_of_the_reward_is_a_parameter_with_the_same_default():
    one = params.load("sde2", "smoke")
    assert one.sde2_config() == sde2.Config()
    for name in ("alpha", "delta", "rho"):
        assert getattr(params.load("sde2", "smoke", **{name: 0.6}).sde2_config(), name) == 0.6


def test_every_value_of_the_toy_file_says_where_it_comes_from():
    path = places.params_dir() / "sde2" / "toy.yaml"
    said = params.sources("sde2/toy")
    own = {"chapter", "run", "scale"}
    assert set(strict_yaml.read(path)) - own == set(said) - own
    assert said["delta"] == "paper 4.2"


def test_comments_are_read_after_values_that_hold_a_hash():
    assert strict_yaml.comments("a: 'x # y'  # z\nb: [1, 2]  # w\nc: 1\n") == {"a": "z", "b": "w"}


def test_what_is_allowed_is_said_for_every_field():
    for name in params_model.SDE2Params.model_fields:
        assert len(params.allowed(params_model.SDE2Params, name)) > 3


def test_a_params_error_is_a_config_error():
    assert issubclass(ParamsError, ConfigError)
