"""What the SD-E² chapter's arms are, what is measured on them, and that a killed arm ends as an uninterrupted one."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from explorl import arms, arms_sde2, encoders, one_arm, params, run
from explorl.tasks import Problem, Split, digits


def smoke(**changes):
    return params.load("sde2", "smoke", **changes)


@pytest.mark.parametrize("arm, weights", [
    ("sde2", {"oc": 2.0, "re": 1.0, "fa": 1.0, "sd": 1.0}),
    ("oc_fa", {"oc": 2.0, "re": 0.0, "fa": 1.0, "sd": 0.0}),
    ("oc_fa_sd", {"oc": 2.0, "re": 0.0, "fa": 1.0, "sd": 1.0}),
    ("sde2_shuffled", {"oc": 2.0, "re": 1.0, "fa": 1.0, "sd": 1.0}),
])
def test_the_sde2_arms_differ_in_their_weights(arm, weights):
    method = arms_sde2.method(smoke(w_oc=2.0, rho=0.2), arm, encoders.load("random"), seed=3)
    assert method.config.weights == weights and method.config.rho == 0.2


def test_the_baselines_take_their_own_parameters():
    cfl = arms_sde2.method(smoke(w_l=0.5, length_free_tokens=20), "cfl", encoders.load("random"), seed=0)
    assert (cfl.w_l, cfl.penalty.free_tokens, cfl.penalty.max_tokens) == (0.5, 20, 48)
    cfee = arms_sde2.method(smoke(w_rd=0.25), "cfee", encoders.load("random"), seed=0)
    assert cfee.w_rd == 0.25
    shuffled = arms_sde2.method(smoke(), "sde2_shuffled", encoders.load("random"), seed=3)
    assert (shuffled.seed, shuffled.component) == (3, "sd")


def test_every_trained_arm_has_a_method():
    names = {arm: type(arms_sde2.method(smoke(), arm, encoders.load("random"), 0)).__name__ for arm in params.trained_arms("sde2")}
    assert names == {"cfl": "CFL", "cfee": "CFEE", "sde2": "SDE2", "sde2_shuffled": "Shuffled", "oc_fa": "SDE2",
                     "oc_fa_sd": "SDE2"}


def completion(answer, strategies=()):
    text = "".join(digits.block(i + 1, r, o) for i, (r, o) in enumerate(strategies)) + f"<final_answer>{answer}</final_answer>"
    return SimpleNamespace(text=text, ids=[1] * (10 + 5 * len(strategies)), truncated=answer == "")


def test_measures_by_hand():
    problems = [Problem("p", "18", "k1", {"numbers": (2, 3, 4), "story": "total"}),
                Problem("q", "20", "k2", {"numbers": (2, 3, 4), "story": "total"})]
    right, wrong = completion("18", [("a", "18"), ("b", "3")]), completion("3", [("a", "3")])
    groups = [[right, wrong, right, right], [wrong, wrong, wrong, completion("20")]]
    metrics, items = arms_sde2.measure(smoke(eval_samples=4), problems, groups, encoders.load("random"))
    value = {name: entry["value"] for name, entry in metrics.items()}
    assert value["acc_strict"] == 4 / 8 and (metrics["acc_strict"]["k"], metrics["acc_strict"]["n"]) == (1, 2)
    assert value["s_acc"] == 3 / 8 and value["n_strategies"] == 10 / 8
    assert value["pass_at_2"] == pytest.approx((1 + 3 / 6) / 2)  # 3 of 4 right: 1 − 0/6; 1 of 4 right: 1 − 3/6
    assert value["pass_at_4"] == 1.0 and "pass_at_8" not in value
    assert value["tokens"] == (3 * 20 + 4 * 15 + 10) / 8
    assert [(i["key"], i["n"], i["acc_strict"], i["s_acc"]) for i in items] == [("k1", 4, 3, 3), ("k2", 4, 1, 0)]
    assert items[0]["text"] == right.text
    json.dumps([metrics, items], allow_nan=False)


def test_nothing_to_measure_is_none_and_not_nan():
    problem = Problem("p", "18", "k1", {"numbers": (2, 3, 4), "story": "total"})
    metrics, _ = arms_sde2.measure(smoke(), [problem], [[completion("18")]], encoders.load("random"))
    assert metrics["rr"]["value"] is None
    json.dumps(metrics, allow_nan=False)


def test_a_pretrained_policy_is_asked_in_the_style_of_its_arm(monkeypatch):
    problem = Problem("2 + 2?", "4", "k", {"task": "gsm8k"})
    split = Split((problem,), (), ())
    monkeypatch.setattr(arms_sde2, "splits", lambda task: split)
    real = SimpleNamespace(backbone="some/model", task="gsm8k")
    single, multi = (arms_sde2.problems(real, arm).train[0] for arm in ("single_trace", "sde2"))
    assert "<strategy" not in single.prompt[0]["content"] and "<strategy" in multi.prompt[0]["content"]
    assert multi.prompt[0]["content"].endswith("Problem: 2 + 2?") and multi.gold == "4"
    assert arms_sde2.problems(SimpleNamespace(backbone="toy", task="digits"), "sde2") is split


def same_results(one, two):
    for a, b in zip(one, two, strict=True):
        assert (a["arm"], a["metrics"], a["items"], a["curve"]) == (b["arm"], b["metrics"], b["items"], b["curve"])


def test_a_run_killed_half_way_ends_as_an_uninterrupted_one(tmp_path, monkeypatch):
    changes = {"arms": ["sde2"], "steps": 6, "save_every": 2, "eval_every": 3}
    monkeypatch.setenv("EXPLORL_RUNS", str(tmp_path / "whole"))
    whole = arms.train_arms(smoke(**changes), progress=False)
    monkeypatch.setenv("EXPLORL_RUNS", str(tmp_path / "killed"))
    started = arms.Job("sde2", 0, arms.group_folder(smoke(**changes)) / "sde2-s0")
    arms.write_atomic(started.folder.parent / "params.json", json.dumps(smoke(**changes).model_dump()))
    arms._start(started, smoke(**changes), started.folder.parent, arms.arm_command)
    end = time.monotonic() + 120
    while started.steps() < 3 and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(started.process.pid, signal.SIGKILL)
    assert started.process.wait() == -signal.SIGKILL and not started.done
    killed = arms.train_arms(smoke(**changes), progress=False)
    assert Path(killed[0]["folder"]) == started.folder
    same_results(whole, killed)
    assert whole[0]["curve"][-1]["step"] == 6
    rows = {row.metric: row.value for row in run.metrics_table(killed)}
    assert rows == {row.metric: row.value for row in run.metrics_table(whole)}


def test_an_arm_of_its_own_rejects_a_wrong_policy_with_a_clear_log(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORL_RUNS", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    one = smoke(arms=["base"], task="gsm8k", backbone="some/model", lora_r=8, load_in_4bit=True, max_sequence_tokens=600)
    with pytest.raises(arms.ArmFailed, match="exit code 2") as caught:
        arms.train_arms(one, progress=False)
    assert "backbone = 'some/model'" in str(caught.value) and "Traceback" not in str(caught.value)


def test_the_arm_command_refuses_what_run_would_refuse(tmp_path):
    (tmp_path / "params.json").write_text(json.dumps(smoke().model_dump() | {"delta": 2.0}))
    done = subprocess.run(arms.arm_command(smoke(), arms.Job("sde2", 0, tmp_path / "x"), tmp_path / "params.json"),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "delta = 2.0" in done.stderr and not (tmp_path / "x").exists()
