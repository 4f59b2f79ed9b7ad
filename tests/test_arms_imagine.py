"""What the IMAGINE chapter's arms are, what is measured on them, and that one survives a kill."""

import json
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorl import arms_imagine, one_arm, params
from explorl.papers.imagine import IMAGINE, Outcome
from explorl.tasks import Problem, Split, countdown, digits
from explorl.train import dapo, policies, ppo, trainer

TRAINED = params.trained_arms("imagine")


def smoke(**changes):
    return params.load("imagine", "smoke", **changes)


@pytest.fixture(scope="module")
def policy():
    return policies.load("toy", seed=0, start="habits")


def started(arm, policy, **changes):
    values = smoke(**changes)
    return arms_imagine.start(values, arm, digits.load(), arms_imagine.tool(values), policy, 7)


def parts(method):
    """From the outside in."""
    found = [method]
    while hasattr(found[-1], "base"):
        found.append(found[-1].base)
    return found


@pytest.mark.parametrize("arm", TRAINED)
def test_every_arm_is_an_outcome_with_novelty_under_its_algorithm(arm, policy):
    method, make = started(arm, policy, alpha=0.3)
    kinds = [type(part) for part in parts(method)]
    around = {"ppo": [ppo.PPO], "dapo": [dapo.DAPO]}.get(arm.removeprefix("imagine_"), [])
    assert kinds == [*around, IMAGINE, Outcome]
    build = getattr(make, "func", make)
    assert build is {"ppo": ppo.build, "dapo": dapo.build}.get(arm.removeprefix("imagine_"), trainer.build)
    config = parts(method)[-2].config
    assert (config.alpha, config.seed, config.max_completion_tokens, config.max_prompt_tokens) == (0.3, 7, 60, 12)
    source = arm if arm in ("uniform", "constant", "length", "shuffled") else "none" if arm in (
        "ppo", "grpo", "dapo") else "rnd"
    assert config.bonus_source == source
    assert config.error_mask is (arm != "trajectory_aware")
    assert config.integration == ("pre" if arm in ("trajectory_aware", "error_conditioned") else "post")


def test_names_in_the_record_tell_the_methods_apart(policy):
    names = {arm: started(arm, policy)[0].name for arm in ("ppo", "imagine_ppo", "grpo", "imagine", "dapo", "imagine_dapo")}
    assert len(set(names.values())) == 6


def test_settings_reach_ppo_and_dapo(policy):
    method, make = started("imagine_ppo", policy, critic_epochs=3, ppo_bonus="pre_whiten_last", ppo_lone=False)
    assert (method.config.critic.epochs, method.config.bonus, method.config.lone) == (3, "pre_whiten_last", False)
    assert len(make.keywords["held_out"].problems) == 8
    assert started("imagine_ppo", policy, integration="pre")[0].config.bonus == "reward"
    method, _ = started("imagine_dapo", policy, dapo_rounds=1, dapo_contrast="combined", dapo_overlong_buffer=10)
    assert (method.config.max_rounds, method.config.contrast, method.config.overlong_buffer) == (1, "combined", 10)


def test_only_dapo_clips_higher():
    high = {arm: smoke(arms=["dapo", "grpo"]).train_config(0, arm).clip_epsilon_high for arm in ("dapo", "imagine_dapo", "grpo")}
    assert high == {"dapo": 0.28, "imagine_dapo": 0.28, "grpo": None}


def test_the_critic_is_watched_on_problems_that_are_not_trained_on(policy):
    _, make = started("ppo", policy)
    trained = {problem.key for problem in digits.load().train}
    assert not trained & {problem.key for problem in make.keywords["held_out"].problems}


# ---- measures

def completion(text):
    return SimpleNamespace(text=text, ids=[1] * len(text.split()), truncated="<" not in text)


def final(answer):
    return completion(f"so <final_answer>{answer}</final_answer>")


def test_measures_by_hand():
    problems = [Problem("p", "18", "k1", {"numbers": (2, 3, 4), "story": "total"}),
                Problem("q", "20", "k2", {"numbers": (2, 3, 5), "story": "area"})]
    groups = [[final(18), final(3), completion("cut off"), final("18.0")], [final(3)] * 4]
    values = smoke()
    metrics, items = arms_imagine.measure(values, problems, groups, arms_imagine.tool(values))
    assert metrics["acc"] == {"value": 2 / 8, "k": 0, "n": 2}
    assert metrics["format"] == {"value": 7 / 8, "k": 2, "n": 2}
    assert metrics["pass_at_2"]["value"] == pytest.approx((1 - 1 / 6) / 2) and metrics["pass_at_4"]["value"] == 0.5
    assert metrics["truncated"]["value"] == 1 / 8 and metrics["tokens"]["value"] == 2.0
    assert [item["right"] for item in items] == [2, 0] and [item["format"] for item in items] == [3, 4]
    assert items[1]["answers"] == 1 and metrics["stories"]["value"] == 0.0


def test_countdown_is_measured_apart_where_plus_and_minus_do_not_do():
    easy = Problem("", "6", "e", {"task": "countdown", "numbers": (1, 2, 3), "target": 6, "needs_times_or_divide": False})
    hard = Problem("", "24", "h", {"task": "countdown", "numbers": (2, 3, 4), "target": 24, "needs_times_or_divide": True})
    values = params.check_values(smoke().model_dump() | {"task": "countdown", "backbone": "Qwen/Qwen2.5-3B"}, source="x")
    groups = [[completion("<answer>1+2+3</answer>\n"), completion("<answer>1+2</answer>")],
              [completion("<answer>2*3*4</answer>"), completion("none")]]
    metrics, _ = arms_imagine.measure(values, [easy, hard], groups, arms_imagine.tool(values))
    assert metrics["acc"]["value"] == 0.5 and metrics["acc_needs"] == {"value": 0.5, "k": 0, "n": 1}
    assert metrics["format"]["value"] == 0.75
    assert metrics["strict_not_tinyzero"]["value"] == 0.25, "a line break after the answer forfeits it there"


def test_prompts_are_plain_text_that_ends_where_the_answer_begins(monkeypatch):
    one = countdown.generate(3, seed=0)
    parts_ = Split(tuple(one[:1]), tuple(one[1:2]), tuple(one[2:]))
    monkeypatch.setattr(arms_imagine, "splits", lambda task, **options: parts_)
    for template, cut in (("base", "Assistant:"), ("qwen-instruct", "<|im_start|>assistant")):
        values = params.check_values(smoke().model_dump() | {
            "task": "countdown_4", "backbone": "Qwen/Qwen2.5-3B", "template": template}, source="x")
        found = arms_imagine.problems(values, "imagine").train[0].prompt
        assert cut in found and found.endswith("<think>")


def test_mathematics_is_asked_without_chat_markup_for_the_mark_that_is_scored(monkeypatch):
    one = Problem("How many?", "18", "k", {"task": "gsm8k"})
    monkeypatch.setattr(arms_imagine, "splits", lambda task: Split((one,), (), ()))
    values = params.check_values(smoke().model_dump() | {"task": "gsm8k", "backbone": "Qwen/Qwen2.5-3B"}, source="x")
    found = arms_imagine.problems(values, "grpo").train[0].prompt
    assert found.startswith("How many? ") and "####" in found
    assert arms_imagine.tool(values)("so #### 18", "18", {}).reward == 1.0


def test_countdown_tests_of_two_sets_are_told_apart(monkeypatch):
    first, second = countdown.generate(2, seed=0)
    parts_ = {"3to4": Split((first,), (), (second,)), "4": Split((second,), (), (first,))}
    monkeypatch.setattr(arms_imagine, "splits", lambda task, source: parts_[source])
    values = params.check_values(smoke().model_dump() | {
        "task": "countdown_4", "backbone": "Qwen/Qwen2.5-3B", "eval_tasks": ["countdown_4", "countdown_34"]}, source="x")
    found = arms_imagine.problems(values, "grpo")
    assert [p.meta["task"] for p in found.test] == ["countdown_4", "countdown_34"] and not found.train, "tested ones go"
    groups = [[completion(f"<answer>{p.meta['witness']}</answer>")] for p in found.test[:1]] + [[completion("no")]]
    metrics, _ = arms_imagine.measure(values, found.test, groups, arms_imagine.tool(values))
    assert (metrics["acc_countdown_4"]["value"], metrics["acc_countdown_34"]["value"]) == (1.0, 0.0)


# ---- the critic on held-out problems

def test_held_out_rollouts_are_predicted_and_leave_training_as_it_was(policy, tmp_path):
    def trained(folder, **changes):
        values = smoke(arms=["imagine_ppo"], steps=3, **changes)
        result = one_arm.run_arm(values, "imagine_ppo", 0, tmp_path / folder)
        rows = [json.loads(line) for line in (tmp_path / folder / "train/curve.jsonl").read_text().splitlines()]
        return result, [row for row in rows if row["kind"] == "train"]

    watched, rows = trained("watched", held_out_every=2)
    name = "critic/held_out_explained_variance"
    assert [name in row for row in rows] == [True, False, True], "steps 0 and 2, the last"
    assert rows[0][name] == 0.0 and np.isfinite(rows[2][name])
    left, plain = trained("left", held_out_problems=0)
    assert not any(name in row for row in plain)
    assert [row["loss"] for row in rows] == [row["loss"] for row in plain] and watched["metrics"] == left["metrics"]


# ---- a kill

KILL_AT = 3


def arm_process(values, arm, folder):
    file = folder / "params.json"
    file.write_text(json.dumps(values.model_dump()))
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "explorl", "arm", "--params", str(file), "--arm", arm, "--seed", "0",
               "--out", str(folder / "arm"), "--parent", str(os.getpid())]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("arm", ["imagine_ppo", "imagine_dapo"])
def test_a_killed_arm_ends_like_an_uninterrupted_one(arm, tmp_path):
    """Same predictor, its optimiser and n, same critic: the curve is the same to the last digit."""
    values = smoke(arms=[arm], steps=6, save_every=2, eval_every=3)
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    process = arm_process(values, arm, tmp_path / "cut")
    curve = tmp_path / "cut/arm/train/curve.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if curve.is_file() and f'"step": {KILL_AT}' in curve.read_text():
            process.send_signal(signal.SIGKILL)
            break
        time.sleep(0.01)
    assert process.wait(60) == -signal.SIGKILL, "it was over before the kill"
    assert not (tmp_path / "cut/arm/result.json").exists()
    for name in ("cut", "whole"):
        assert arm_process(values, arm, tmp_path / name).wait(240) == 0
    kept = [tmp_path / name / "arm" for name in ("whole", "cut")]
    curves = [(folder / "train/curve.jsonl").read_text() for folder in kept]
    assert curves[0] == curves[1] and '"components/rnd_loss/mean"' in curves[0]
    results = [json.loads((folder / "result.json").read_text()) for folder in kept]
    assert results[0]["metrics"] == results[1]["metrics"]
    states = [torch.load(folder / "train/checkpoint-6" / trainer.METHOD_STATE, weights_only=True) for folder in kept]
    assert repr(states[0]) == repr(states[1])
