"""Answers behind a mark: the published scorer's vectors, ours by hand, and hostile text."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl.errors import ConfigError
from explorl.text import marked

VECTORS = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text())["gsm8k"]


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["response"])
def test_published_gsm8k_scorer(case):
    assert marked.score(case["response"], case["gold"], form="hash", rules="published").reward == case["score"]


def test_there_are_eleven_vectors():
    assert len(VECTORS) == 11


@pytest.mark.parametrize("text, reward, reason", [
    ("so #### 18", 1.0, "ok"), ("so ####18", 1.0, "ok"), ("#### 18.", 1.0, "ok"), ("#### $18.00 a week", 1.0, "ok"),
    ("#### 20\n#### 18", 1.0, "ok"), ("#### 18\n#### 20", 0.1, "value"), ("#### ?", 0.0, "no_answer"), ("#### ", 0.0, "no_answer"),
    ("the answer is 18", 0.0, "no_answer"), ("### 18", 0.0, "no_answer"), ("", 0.0, "no_answer"), (None, 0.0, "no_answer"),
])
def test_hash_takes_the_last_mark_and_compares_values(text, reward, reason):
    found = marked.score(text, "18", form="hash")
    assert (found.reward, found.reason) == (reward, reason)


@pytest.mark.parametrize("text, reward", [
    ("work\nAnswer: 18", 1.0), ("Answer: 18\nthat is all", 1.0), ("Answer: 3\nAnswer: 018", 1.0), ("Answer: 3", 0.1),
    ("The Answer: 18", 0.0), ("answer: 18", 0.0),
])
def test_answer_stands_on_a_line_of_its_own(text, reward):
    assert marked.score(text, "18", form="answer").reward == reward


@pytest.mark.parametrize("text, reward", [
    ("Answer: 18", 1.0), ("Answer: 18\nbye", 0.1), ("nothing", 0.1), ("so Answer: 18.5", 1.0), ("Answer: 3", 0.1)])
def test_published_aime_scorer_never_gives_nothing(text, reward):
    assert marked.score(text, "18", form="answer", rules="published").reward == reward


@pytest.mark.parametrize("text, reward", [
    ("<final_answer>18</final_answer>", 1.0), ("<final_answer>3</final_answer><final_answer>18.0</final_answer>", 1.0),
    ("<final_answer>3</final_answer>", 0.1), ("<final_answer>a lot</final_answer>", 0.1), ("<final_answer></final_answer>", 0.0), ("<final_answer>18", 0.0),
    ("<strategy><reasoning>a</reasoning><strategy_outcome>18</strategy_outcome></strategy>", 0.0),
])
def test_a_final_tag_must_be_there(text, reward):
    assert marked.score(text, "18", form="final_tag").reward == reward


@given(st.text() | st.lists(st.sampled_from(["#### ", "Answer: ", "<final_answer>", "</final_answer>", "\n", "1", "9" * 99,
                                             "-", ".", "/", "٣", "$", "\0", "1e9999", "=", "\\boxed{"])).map("".join))
@settings(deadline=None)
def test_no_text_raises_and_every_verdict_is_one_of_three(text):
    for form in marked.FORMS:
        for rules in marked.RULES if form != "final_tag" else ("strict",):
            assert marked.score(text, "18", form=form, rules=rules).reward in (0.0, 0.1, 1.0)


@pytest.mark.parametrize("text", [
    "#### " + "9" * 100_000, "#### " * 25_000, "####" + " " * 100_000, "Answer:" + " " * 100_000, "Answer: 1\n" * 10_000,
    "<final_answer>" * 10_000, "#### 1/" * 20_000, "#" * 100_000], ids=lambda text: text[:12].strip() or "spaces")
@pytest.mark.parametrize("form", marked.FORMS)
def test_a_hundred_kilobytes_are_read_at_once(text, form):
    start = time.perf_counter()
    assert marked.score(text, "18", form=form).reward in (0.0, 0.1)
    assert time.perf_counter() - start < 1.0, "far above the few milliseconds that it takes"


@pytest.mark.parametrize("field, changes", [("form", {"form": "box"}), ("rules", {"form": "hash", "rules": "lax"}),
                                            ("form", {"form": "final_tag", "rules": "published"})])
def test_an_unknown_reading_is_named(field, changes):
    with pytest.raises(ConfigError) as error:
        marked.score("#### 1", "1", **changes)
    assert error.value.field == field
