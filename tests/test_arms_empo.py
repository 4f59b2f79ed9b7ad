"""What the EMPO chapter's arms are, what is measured on them, and that one is trained from end to end."""

import json
import random
from types import SimpleNamespace

import pytest

from explorl import arms, arms_empo, params
from explorl.tasks import Problem, Split, digits
from explorl.text.strategies import parse
from explorl.train import sft, trainer


def smoke(**changes):
    return params.load("empo", "smoke", **changes)


def started(arm, **changes):
    values = smoke(**changes)
    return arms_empo.start(values, arm, digits.load(), arms_empo.tool(values), None, 7)


@pytest.mark.parametrize("arm, name", [("empo", "EMPO"), ("empo_log", "EMPO"), ("vote", "MajorityVote"),
                                       ("supervised", "Supervised"), ("random", "RandomReward")])
def test_an_arm_is_its_method_with_the_runs_settings(arm, name):
    method, make = started(arm, blank="share", delta_low_nats=0.5)
    assert type(method).__name__ == name and method.name == arm and make is trainer.build
    assert (method.config.blank, method.config.delta_low_nats) == ("share", 0.5)
    assert method.config.reward == ("log_p" if arm == "empo_log" else "p")


def test_every_trained_arm_can_be_started():
    assert {arm for arm in params.trained_arms("empo") if started(arm)[0].name == arm} == set(params.trained_arms("empo"))


def test_the_random_rewards_follow_the_seed():
    assert started("random")[0].seed == 7


def test_demonstrations_are_right_and_a_data_sets_own_come_first():
    method, make = started("sft")
    train = digits.load().train
    assert make is sft.build and len(method.texts) == len(train)
    assert all(parse(text).final == problem.gold for text, problem in zip(method.texts, train))
    assert arms_empo.demonstrations([Problem("p", "1", "k", {"solution": "so 1"})], 0) == ["so 1"]
    again = [digits.solution(problem, generator) for generator in [random.Random(7)] for problem in train]
    assert method.texts == again


def completion(answer):
    text = f"<final_answer>{answer}</final_answer>" if answer else "cut off"
    return SimpleNamespace(text=text, ids=[1] * 10, truncated=not answer)


def test_measures_by_hand():
    """First problem: 18 twice, 3, a blank; right is the majority. Second: 3 three times, 20; it is not."""
    problems = [Problem("p", "18", "k1"), Problem("q", "20", "k2")]
    groups = [[completion(x) for x in ("18", "3", "18.0", "")], [completion(x) for x in ("3", "3", "20", "3")]]
    metrics, items = arms_empo.measure(smoke(), problems, groups, arms_empo.tool(smoke()))
    value = {name: entry["value"] for name, entry in metrics.items()}
    assert value["acc"] == 3 / 8 and (metrics["acc"]["k"], metrics["acc"]["n"]) == (1, 2)
    assert [item["right"] for item in items] == [2, 1] and [item["majority_right"] for item in items] == [1, 0]
    assert items[0]["entropy_nats"] == pytest.approx(1.0397, abs=1e-4) and items[0]["blank"] == 1
    assert items[1]["entropy_nats"] == pytest.approx(0.5623, abs=1e-4) and items[1]["p_majority"] == 0.75
    assert (value["majority_right"], value["acc_where_right"], value["acc_where_wrong"]) == (0.5, 0.5, 0.25)
    assert value["entropy_where_wrong"] == items[1]["entropy_nats"] and value["blank"] == 1 / 8
    assert value["kept"] == 1.0 and value["truncated"] == 1 / 8 and value["tokens"] == 10
    assert value["pass_at_2"] == pytest.approx(((1 - 1 / 6) + (1 - 3 / 6)) / 2) and value["pass_at_4"] == 1.0
    json.dumps([metrics, items], allow_nan=False)


def test_a_benchmark_gets_its_own_accuracy_and_the_average_is_over_benchmarks():
    problems = [Problem("p", "1", f"k{i}", {"task": task}) for i, task in enumerate(("amc23", "aime24", "amc23"))]
    groups = [[completion("1"), completion("1")], [completion("2"), completion("1")], [completion("2")] * 2]
    metrics, _ = arms_empo.measure(smoke(), problems, groups, arms_empo.tool(smoke()))
    value = {name: entry["value"] for name, entry in metrics.items()}
    assert (value["acc_amc23"], value["acc_aime24"], value["acc_avg"], value["acc"]) == (0.5, 0.5, 0.5, 0.5)
    assert metrics["acc_amc23"]["n"] == 2
    assert metrics["pass_at_2"]["value"] == pytest.approx(2 / 3)


def test_no_wrong_majority_is_none_and_not_nan():
    metrics, _ = arms_empo.measure(smoke(), [Problem("p", "1", "k")], [[completion("1")] * 2], arms_empo.tool(smoke()))
    assert metrics["acc_where_wrong"]["value"] is None
    json.dumps(metrics, allow_nan=False)


def test_evaluation_tasks_replace_the_test_part_and_leave_the_training_part(monkeypatch):
    shared = Problem("shared", "1", "k1", {"task": "amc23"})
    found = Split((Problem("shared", "1", "k1"), Problem("own", "2", "k2")), (), (Problem("old", "3", "k3"),))
    monkeypatch.setattr(arms_empo, "splits", lambda task: found)
    monkeypatch.setattr(arms_empo, "evaluation", lambda names: [shared] if names == ["amc23"] else [])
    run = SimpleNamespace(task="numina", eval_tasks=["amc23"], backbone="some/model")
    parts = arms_empo.problems(run, "empo")
    assert [p.key for p in parts.train] == ["k2"] and [p.key for p in parts.test] == ["k1"]
    assert "boxed" in parts.train[0].prompt[-1]["content"] and "own" in parts.train[0].prompt[-1]["content"]


@pytest.mark.parametrize("task, arm, asked", [("numina", "sft", {"solutions": True}), ("natural", "empo", {}),
                                              ("natural", "sft", {"solutions": True}), ("gsm8k", "sft", {})])
def test_only_demonstrations_ask_for_worked_solutions(monkeypatch, task, arm, asked):
    seen = []
    monkeypatch.setattr(arms_empo, "splits", lambda task, **options: seen.append(options) or Split((), (), ()))
    arms_empo.problems(SimpleNamespace(task=task, eval_tasks=[], backbone="some/model"), arm)
    assert seen == [asked]


def test_lettered_benchmarks_are_graded_by_letter_whatever_judge_trained():
    class Never:
        name = "verifier"

        def __call__(self, a, b):
            raise AssertionError("a judge model was asked about letters")

        def bucket(self, answer):
            raise AssertionError("a judge model was asked about letters")

    problems = [Problem("Q", "B", "k1", {"task": "mmlu_pro"}), Problem("R", "A", "k2", {"task": "gpqa"})]
    groups = [[SimpleNamespace(text=text, ids=[1], truncated=False)] for text in (r"so \boxed{(B)}", r"\boxed{C}")]
    metrics, _ = arms_empo.measure(smoke(answer_from="boxed"), problems, groups, Never())
    assert (metrics["acc_mmlu_pro"]["value"], metrics["acc_gpqa"]["value"]) == (1.0, 0.0)


def test_the_arms_of_a_run_are_trained_and_measured(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORL_RUNS", str(tmp_path))
    results = arms.train_arms(smoke(arms=["base", "empo", "sft"]), progress=False)
    assert [result["arm"] for result in results] == ["base", "empo", "sft"]
    assert results[0]["policy"]["name"] == "toy, start right"
    for result in results:
        assert len(result["items"]) == 8 and 0 <= result["metrics"]["acc"]["value"] <= 1
    assert all(row["components/reward/mean"] <= 1 for row in results[1]["curve"] if row["kind"] == "train")
    assert [row["step"] for row in results[2]["curve"] if row["kind"] == "eval"] == [0, 1, 2]
