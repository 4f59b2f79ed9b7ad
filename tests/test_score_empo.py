"""Scoring by groups: consecutive lines together, order kept, broken lines harmless, memory bounded."""

import io
import json
import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import pytest

from explorl import score, score_empo
from explorl.errors import ConfigError
from explorl.papers import empo
from explorl.papers.empo import EMPO, Config
from explorl.papers.method import Batch
from explorl.text import equivalence

MATH = equivalence.load("math")


def line(answer, group="a", **more):
    return {"completion": rf"so \boxed{{{answer}}}" if answer else "no idea", "group": group, **more}


def lines(*rows):
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def scored(*rows, config=Config(), equal=MATH):
    """The number of bad lines, and the rows."""
    out = io.StringIO()
    bad = score_empo.score_groups(io.BytesIO(lines(*rows)), out, score_empo.Scorer(config, equal))
    return bad, [json.loads(row) for row in out.getvalue().splitlines()]


def explorl(*arguments, given=b""):
    return subprocess.run([sys.executable, "-m", "explorl", "score", *arguments], input=given, capture_output=True,
                          env=os.environ | {"HF_HUB_OFFLINE": "1"}, timeout=120, check=False)


def test_a_group_is_what_follows_one_another():
    bad, rows = scored(line("7"), line("7"), line("3"), line("7", "b"), line("7", "c"), line("3", "c"))
    assert bad == 0 and [row["group"] for row in rows] == ["a", "a", "a", "b", "c", "c"]
    assert [row["p"] for row in rows] == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1, 0.5, 0.5])
    assert [row["gate"] for row in rows] == ["kept"] * 3 + ["alone"] + ["all_different"] * 2
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5, 6]


def test_a_group_that_comes_back_is_not_scored_by_halves():
    bad, rows = scored(line("7"), line("7"), line("3"), line("7", "b"), line("7"), b"bad", line("7", "b"))
    assert bad == 3 and [row.get("p") is not None for row in rows] == [True] * 4 + [False] * 3
    assert all("came before" in rows[i]["error"] for i in (4, 6)) and rows[5]["error"].startswith("not JSON")


def test_rows_are_those_of_the_method():
    answers = ["1/2", "0.5", "2", "", "1/2", "3"]
    _, rows = scored(*[line(answer, gold="0.5", id=i) for i, answer in enumerate(answers)])
    batch = Batch(["q"] * 6, [line(answer)["completion"] for answer in answers], ["0.5"] * 6, 6)
    method = EMPO(Config(), MATH)
    found = method.components(batch)
    advantages = method.advantages(found["reward"], found, batch)
    for i, row in enumerate(rows):
        assert row["id"] == i and row["answer"] == answers[i]
        assert all(row[name] == pytest.approx(column[i]) for name, column in found.items())
        assert row["advantage"] == pytest.approx(advantages.values[i])
    assert [row["oc"] for row in rows] == [1, 1, 0, 0, 1, 0]
    assert [row["reason"] for row in rows] == ["ok"] * 3 + ["blank"] + ["ok"] * 2
    assert set(rows[0]) == {*found, "line", "id", "group", "answer", "advantage", "reason", "gate"}


def test_gold_is_optional_and_never_touches_the_reward():
    _, without = scored(line("7"), line("7"), line("3"))
    _, with_gold = scored(line("7", gold="3"), line("7", gold=None), line("3", gold="3"))
    assert [row.get("oc") for row in with_gold] == [0, None, 1] and "oc" not in without[0]
    assert [row["reward"] for row in with_gold] == [row["reward"] for row in without]


@pytest.mark.parametrize("raw, message", [
    (b"not json", "not JSON"), (b"[1]", "not a JSON object with completion and group"),
    (b'{"completion": "x"}', "group: missing"), (b'{"group": "a"}', "completion: missing"),
    (b'{"completion": "x", "group": null}', "group: must be text or a whole number, not NoneType"),
    (b'{"completion": "x", "group": 1.5}', "group: must be text or a whole number, not float"),
    (b'{"completion": "x", "group": true}', "group: must be text or a whole number, not bool"),
    (b'{"completion": "x", "group": ["a"]}', "group: must be text or a whole number, not list"),
    (b'{"completion": 5, "group": "a"}', "completion: must be text, not int"),
    (b'{"completion": "x", "group": "a", "gold": 5}', "gold: must be text, not int"),
    (b'{"completion": "x", "group": "a", "prompt": {}}', "prompt: must be text, not dict"),
    (b"\xff", "not UTF-8"), (b"[" * 100_000, "not JSON"),
])
def test_a_broken_line_neither_stops_the_rest_nor_ends_its_group(raw, message):
    bad, rows = scored(line("7"), raw, line("7"), line("3"))
    assert bad == 1 and rows[1]["line"] == 2 and rows[1]["error"].startswith(message) and "p" not in rows[1]
    assert [row["p"] for row in rows if "p" in row] == pytest.approx([2 / 3, 2 / 3, 1 / 3])


def test_groups_by_number_and_by_text_differ():
    _, rows = scored(line("7", 1), line("7", 1), line("3", "1"))
    assert [row["p"] for row in rows] == [1, 1, 1]


def test_broken_lines_at_the_start_the_end_and_alone():
    assert scored(b"bad", line("7"), b"bad")[0] == 2
    assert scored(b"bad", b"bad")[0] == 2 and scored() == (0, [])
    assert [row["line"] for row in scored(b"bad", line("7"), b"bad", line("7", "b"), b"bad")[1]] == [1, 2, 3, 4, 5]


def test_a_group_of_too_many_lines_is_not_scored(monkeypatch):
    monkeypatch.setattr(score_empo, "MAX_GROUP", 4)
    bad, rows = scored(*[line("7")] * 3, b"bad", line("7"), b"bad", line("3", "b"), line("3", "b"))
    assert bad == 6 and [row.get("p") for row in rows] == [None] * 6 + [1, 1]
    assert all("more than 4 lines" in rows[i]["error"] for i in (0, 1, 2, 4))
    assert rows[3]["error"].startswith("not JSON") and rows[5]["error"].startswith("not JSON")


def test_a_long_stretch_of_broken_lines_is_not_held(monkeypatch):
    monkeypatch.setattr(score_empo, "MAX_GROUP", 4)
    bad, rows = scored(*[b"bad"] * 10, line("7"), line("7"))
    assert bad == 10 and [row["line"] for row in rows] == list(range(1, 13)) and rows[-1]["p"] == 1


def test_a_group_of_huge_references_is_not_held(monkeypatch):
    monkeypatch.setattr(score_empo, "MAX_GROUP_CHARS", 1000)
    bad, rows = scored(*[line("7", gold="x" * 600)] * 4)
    assert bad == 4 and all("too long" in row["error"] for row in rows)


class Endless(io.RawIOBase):
    """Lines of a megabyte each, all of one group or each of another, made as they are read."""

    def __init__(self, one_group):
        self.left, self.one_group = 400, one_group

    def readline(self, size=-1):
        self.left -= 1
        group = 1 if self.one_group else self.left
        return lines({"completion": "y" * 2**20, "group": group}) if self.left >= 0 else b""


@pytest.mark.parametrize("one_group", [True, False])
def test_memory_does_not_grow_with_the_input(one_group):
    tracemalloc.start()
    score_empo.score_groups(Endless(one_group), SimpleNamespace(write=len, flush=int), score_empo.Scorer(Config(), MATH))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 2**20


class Judge:
    def __init__(self, asked, question="nothing"):
        self.asked, self.question = asked, question

    def about(self, question):
        return Judge(self.asked, question)

    def __call__(self, a, b):
        self.asked.append(self.question)
        return a == b


def test_a_judge_hears_the_prompt_of_the_group():
    asked = []
    scored(line("7", prompt="how much?"), line("3"), line("7", "b"), line("3", "b"), equal=Judge(asked))
    assert asked == ["how much?", ""]


def test_hostile_answers_get_a_reason_and_a_score():
    nasty = ["9^{9^{9^9}}", "{" * 300 + "}" * 300, "\\frac{1}{0}", "x" * 5000, "\u202e", "🐙", "[1,2)"]
    bad, rows = scored(*[line(answer) for answer in nasty], line("7"), line("7"))
    assert bad == 0 and len(rows) == 9 and all(0 < row["p"] <= 1 and isinstance(row["reason"], str) for row in rows)
    assert rows[0]["reason"] not in ("ok", "blank") and rows[-1]["reason"] == "ok"
    assert rows[-1]["p"] == pytest.approx(2 / 9)


def test_settings_reach_the_reward():
    made = score.scorer("empo", {"equality": "exact", "reward": "log_p", "answer_from": "anywhere"})
    assert made.equal.name == "exact" and made.config == Config(reward="log_p", answer_from="anywhere")
    assert score.scorer("empo", {}).equal.name == "math"
    for values, field in (({"rewrad": "p"}, "rewrad"), ({"rule": "any"}, "rule"), ({"equality": "maths"}, "equality")):
        with pytest.raises(ConfigError) as caught:
            score.scorer("empo", values)
        assert caught.value.field == field
    with pytest.raises(ConfigError, match="paper = 'empoo': must be one of sde2, empo"):
        score.scorer("empoo", {})


def test_the_batch_belongs_to_sde2():
    with pytest.raises(ConfigError, match="--batch = 8: must be left out"):
        score.run("empo", {}, io.BytesIO(), io.StringIO(), batch=8)
    with pytest.raises(ConfigError, match="--batch = 0"):
        score.run("sde2", {}, io.BytesIO(), io.StringIO(), batch=0)


def test_end_to_end():
    given = lines(line("1/2", id="x"), b"bad", line("0.5"), line("2"))
    done = explorl("empo", "--set", "equality=math", given=given)
    assert done.returncode == 1 and done.stderr == b"1 line could not be scored\n"
    rows = [json.loads(row) for row in done.stdout.splitlines()]
    assert [row.get("reward") for row in rows] == pytest.approx([2 / 3, None, 2 / 3, 1 / 3]) and rows[0]["id"] == "x"
    good = explorl("empo", given=lines(line("7"), line("3"), line("7")))
    assert good.returncode == 0 and good.stderr == b"" and len(good.stdout.splitlines()) == 3


@pytest.mark.parametrize("arguments, hint", [
    (["--set", "equality=fuzzy"], b"equality"), (["--set", "gate=all"], b"gate = 'all'"), (["--batch", "8"], b"--batch"),
    (["--set", "delta_high_nats=0"], b"delta_high_nats"),
])
def test_wrong_settings_are_exit_code_2(arguments, hint):
    done = explorl("empo", *arguments, given=lines(line("7")))
    assert done.returncode == 2 and hint in done.stderr and b"Traceback" not in done.stderr and done.stdout == b""


def test_the_order_of_rows_survives_any_mixture():
    rows = [line(str(i % 3), group=i // 5) if i % 4 else b"bad" for i in range(40)]
    bad, found = scored(*rows)
    assert bad == 10 and [row["line"] for row in found] == list(range(1, 41))
    assert empo.KEPT in {row.get("gate") for row in found}
