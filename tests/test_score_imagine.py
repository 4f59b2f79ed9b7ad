"""``explorl score imagine``: scores, novelty in windows, advantages in groups; no line stops the rest."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest

from explorl import score, score_imagine
from explorl.errors import ConfigError
from explorl.papers import imagine

GROUP = [("<answer>6*4</answer>", 1.0, "ok"), ("<answer>6+4</answer>", 0.1, "value"), ("24", 0.0, "no_answer"),
         ("so <answer>4*6</answer>", 1.0, "ok")]


def line(text, group="a", **changes):
    return {"completion": text, "group": group, "gold": "24", "numbers": [6, 4], **changes}


def scored(lines, window=64, **settings):
    source = io.BytesIO("".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in lines).encode())
    target = io.StringIO()
    bad = score_imagine.score_windows(source, target, score_imagine.scorer(settings), window=window)
    return bad, [json.loads(row) for row in target.getvalue().splitlines()]


def test_a_group_by_hand():
    bad, rows = scored([line(text) for text, _, _ in GROUP])
    assert not bad and [(row["score"], row["reason"]) for row in rows] == [(r, why) for _, r, why in GROUP]
    ids, mask = imagine.layout([[]] * 4, [list(text.encode()) for text, _, _ in GROUP], imagine.Config())
    errors = imagine.Novelty(256, imagine.Config()).errors(ids, mask)
    paid = imagine.bonus(errors, [True, False, False, True], 0)
    assert [row["novelty_error"] for row in rows] == pytest.approx(errors.tolist())
    assert [row["bonus"] for row in rows] == pytest.approx(paid.tolist()) and paid[1:3].max() > 0
    assert [row["advantage"] for row in rows] == pytest.approx(imagine.integrate([1, 0.1, 0, 1], paid, 4).tolist())
    assert {row["n"] for row in rows} == {0} and rows[0]["answer"] == "6*4"


def test_groups_differ_in_size_and_the_next_window_meets_a_predictor_that_has_read():
    lines = [line(text, f"g{i // size}-{size}") for size in (2, 3) for i, (text, _, _) in enumerate(GROUP[:3] * 2)]
    bad, rows = scored(lines, window=6)
    assert not bad and [row["n"] for row in rows] == [0] * 6 + [1] * 6
    for i in (6, 9):  # groups of three, each of right, wrong, nothing
        push = np.array([row["advantage"] - row["bonus"] for row in rows[i : i + 3]])
        assert push == pytest.approx(imagine.outcome_advantages([1, 0.1, 0], 3))
    assert rows[0]["novelty_error"] != rows[6]["novelty_error"]


def test_alone_there_is_nothing_to_compare_with():
    _, rows = scored([line("<answer>6*4</answer>")])
    assert rows[0]["advantage"] is None and rows[0]["novelty_error"] is None and rows[0]["bonus"] == 0.0


def test_another_mark_needs_no_numbers():
    lines = [{"completion": text, "group": 1, "gold": "18"} for text in ("#### 18", "#### 3")]
    _, rows = scored(lines, form="hash", alpha=0.0)
    assert [row["score"] for row in rows] == [1.0, 0.1] and [row["bonus"] for row in rows] == [0.0, 0.0]


@pytest.mark.parametrize("broken, error", [
    ("{", "not JSON"), (line("x", numbers="6, 4"), "numbers"), (line("x", numbers=[6, True]), "numbers"),
    (line("x", numbers=[]), "numbers"), (line("x", numbers=[1] * 99), "numbers"), (line("x", gold="a lot"), "gold"),
    (line("x", gold="٣"), "gold"), (line(3), "completion"),
    ({"completion": "x", "group": "a", "numbers": [1]}, "gold")])
def test_a_broken_line_gives_an_error_and_stops_nothing(broken, error):
    bad, rows = scored([line("<answer>6*4</answer>"), broken, line("<answer>6+4</answer>")])
    assert bad == 1 and error in rows[1]["error"] and rows[1]["line"] == 2
    assert [row["score"] for row in (rows[0], rows[2])] == [1.0, 0.1] and rows[0]["advantage"] > 0


def test_hostile_text_is_scored_like_any_other():
    texts = ["<answer>99**98**97</answer>", "<answer>__import__('os')</answer>", "\ud800", "\0" * 9, "9" * 100_000, "",
             "<answer>" * 10_000]
    bad, rows = scored([line(text) for text in texts])
    assert not bad and len(rows) == len(texts) and all(row["score"] in (0.0, 0.1) for row in rows)
    assert all(np.isfinite(row["novelty_error"]) and 0 <= row["bonus"] <= 0.5 for row in rows)


@pytest.mark.parametrize("field, value", [("form", "box"), ("alpha", -1), ("delta", 0.7), ("minmax_scope", "group"),
                                          ("center_bonus", True), ("hidden", 3)])
def test_a_wrong_setting_is_named_before_a_line_is_read(field, value):
    with pytest.raises(ConfigError) as error:
        score_imagine.scorer({field: value})
    assert error.value.field == field


def test_from_the_command_line():
    lines = "".join(json.dumps(line(text)) + "\n" for text, _, _ in GROUP)
    done = subprocess.run([sys.executable, "-m", "explorl", "score", "imagine", "--set", "alpha=0.25", "--batch", "8"],
                          input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    assert len(rows) == 4 and 0 < max(row["bonus"] for row in rows) <= 0.25
    assert "imagine" in score.PAPERS
