"""Countdown's problems: solvable, different, the same for the same seed; splits that share none; the published sets."""

import json
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl import tasks
from explorl.errors import ConfigError
from explorl.tasks import countdown
from explorl.tasks.countdown import World, generate, key_of, load, render, splits
from explorl.text.countdown import needs_times_or_divide, score

PROBLEMS = generate(200, seed=7)


def test_every_problem_has_a_witness_of_whole_steps_in_the_published_ranges():
    for i, problem in enumerate(PROBLEMS):
        numbers, target = problem.meta["numbers"], problem.meta["target"]
        assert len(numbers) == (3, 4)[i % 2] and 1 <= min(numbers) and max(numbers) <= 99 and 10 <= target <= 100
        assert score(f"<answer>{problem.meta['witness']}</answer>", numbers, target, allow_unary=False).reward == 1.0
        assert problem.key == key_of(numbers, target) and problem.gold == str(target)
        assert problem.meta["needs_times_or_divide"] == needs_times_or_divide(numbers, target)
        assert any(sign in problem.meta["witness"] for sign in "*/") or not problem.meta["needs_times_or_divide"]


def test_the_same_seed_gives_the_same_problems_and_another_gives_others():
    assert generate(200, seed=7) == PROBLEMS
    assert generate(30, seed=7) == PROBLEMS[:30]
    assert not {p.key for p in generate(200, seed=8)} & {p.key for p in PROBLEMS}


def test_plus_and_minus_reach_about_72_percent_with_three_numbers_and_34_with_four():
    """Of all draws 2.60 % (by enumeration) and 4.59 % (of a million) are sums with signs; 3.6 % and 13.5 % solvable."""
    for size, low, high in ((3, 0.62, 0.82), (4, 0.24, 0.44)):
        found = generate(250, seed=3, world=World(sizes=(size,)))
        assert low < sum(not p.meta["needs_times_or_divide"] for p in found) / len(found) < high


def test_no_problem_comes_twice_even_where_few_exist():
    small = World(sizes=(2,), numbers=(1, 4), targets=(1, 8))
    found = generate(20, seed=0, world=small)
    assert len({p.key for p in found}) == 20
    with pytest.raises(ConfigError, match="gave no new solvable problem"):
        generate(60, seed=0, world=small)


def test_fractions_on_the_way_can_be_allowed():
    only = World(sizes=(4,), numbers=(3, 8), targets=(24, 24), integer_steps=False)
    assert "3,3,8,8=24" in {p.key for p in generate(60, seed=0, world=only)}
    assert "3,3,8,8=24" not in {p.key for p in generate(60, seed=0, world=replace(only, integer_steps=True))}


@pytest.mark.parametrize(("change", "field"), [
    ({"sizes": ()}, "sizes"), ({"sizes": (0,)}, "sizes"), ({"sizes": (7,)}, "sizes"), ({"numbers": (9, 1)}, "numbers"),
    ({"numbers": (-1, 9)}, "numbers"), ({"targets": (100, 10)}, "targets"),
])
def test_an_impossible_world_is_refused(change, field):
    with pytest.raises(ConfigError) as error:
        World(**change)
    assert error.value.field == field


@pytest.mark.parametrize("world", [
    World(sizes=(3,), numbers=(1, 2), targets=(90, 95)), World(sizes=(1,), numbers=(1, 9), targets=(10, 100)),
    World(sizes=(2,), numbers=(0, 0), targets=(10, 100)),
])
def test_settings_without_a_solution_end_with_a_clear_error(world):
    began = time.process_time()
    with pytest.raises(ConfigError, match="count = 1: must be at most 0"):
        generate(1, seed=0, world=world)
    assert time.process_time() - began < 5


def test_more_problems_than_can_be_counted_are_refused_at_once():
    with pytest.raises(ConfigError, match="at most 12 per entry 2 of sizes"):
        generate(1000, seed=0, world=World(sizes=(2,), numbers=(1, 3), targets=(1, 2)))
    with pytest.raises(ConfigError, match="count = -1"):
        generate(-1, seed=0)


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), train=st.integers(2, 40), test=st.integers(1, 20))
def test_generated_splits_share_no_problem_and_have_their_sizes(seed, train, test):
    parts = splits(train=train, test=test, select=0.25, seed=seed)
    keys = [{p.key for p in part} for part in (parts.train, parts.select, parts.test)]
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]
    assert len(parts.train) + len(parts.select) == train and len(parts.test) == test == len(keys[2])


def published(folder, rows, name="countdown_3to4.jsonl"):
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


ROWS = [{"target": 98, "nums": [44, 19, 35]}, {"target": 16, "nums": [3, 5, 2]}, {"target": 64, "nums": [63, 95, 96]},
        {"target": 98, "nums": [35, 44, 19]}, {"target": 10, "nums": [6, 4]}]


def test_published_sets_are_cut_by_rows_and_no_tested_problem_is_trained_on(tmp_path):
    parts = tasks.splits("countdown", source="3to4", train=3, test=2, select=0.0, data_dir=published(tmp_path, ROWS))
    assert [p.key for p in parts.train] == ["2,3,5=16", "63,95,96=64"]  # row 1 stands among the tested ones
    assert [p.key for p in parts.test] == ["19,35,44=98", "4,6=10"] and parts.select == ()
    assert parts.train[0].meta == {"task": "countdown", "numbers": (3, 5, 2), "target": 16,
                                   "needs_times_or_divide": True}


def test_published_rows_keep_their_order_and_their_copies(tmp_path):
    published(tmp_path, ROWS, "countdown_4.jsonl")
    assert [p.gold for p in load("4", rows=4, data_dir=tmp_path)] == ["98", "16", "64", "98"]
    assert len(load("4", rows=None, data_dir=tmp_path)) == 5


@pytest.mark.parametrize(("row", "field"), [
    ({"target": 5}, "nums"), ({"target": 5, "nums": []}, "nums"), ({"target": 5, "nums": [1, 2.5]}, "nums"),
    ({"target": 5, "nums": [1] * 7}, "nums"), ({"target": "5", "nums": [1]}, "target"), ({"nums": [1]}, "target"),
])
def test_a_malformed_row_is_named(tmp_path, row, field):
    with pytest.raises(ConfigError) as error:
        load(data_dir=published(tmp_path, [ROWS[0], row]))
    assert error.value.field == f"countdown_3to4.jsonl, row 2, {field}"


@pytest.mark.parametrize(("options", "field"), [
    ({"source": "5"}, "source"), ({"train": 0}, "train"), ({"test": 0}, "test"), ({"select": 1.0}, "select"),
    ({"source": "3to4", "train": 4, "test": 2}, "train"),
])
def test_wrong_splits_are_refused(tmp_path, options, field):
    with pytest.raises(ConfigError) as error:
        splits(data_dir=published(tmp_path, ROWS), **options)
    assert error.value.field == field


@pytest.mark.parametrize(("template", "cut"), [("base", "Assistant:"), ("qwen-instruct", "<|im_start|>assistant")])
def test_prompts_hold_the_problem_and_the_mark_where_the_official_scorer_cuts(template, cut):
    text = render(PROBLEMS[0], template)
    numbers, target = PROBLEMS[0].meta["numbers"], PROBLEMS[0].gold
    assert str(list(numbers)) in text and f"target is {target}." in text and text.endswith("<think>")
    assert text.count(cut) == 1 and ("Assistant:" in text) == (template == "base")
    asked = countdown.asked(splits(train=2, test=1, select=0.0), template)
    assert all(p.prompt == render(p, template) for part in vars(asked).values() for p in part) and len(asked.train) == 2


def test_wrong_template_is_refused():
    with pytest.raises(ConfigError, match="template"):
        render(PROBLEMS[0], "chat")
