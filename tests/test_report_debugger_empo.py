"""The reward debugger on EMPO: one completion among the answers of its group."""

import numpy as np
import pytest

from explorl.papers.empo import EMPO, Config
from explorl.papers.empo_baselines import MajorityVote, RandomReward, Supervised
from explorl.papers.method import Batch
from explorl.report import debugger, debugger_cast
from explorl.report.debugger import stages, to_html, to_text
from explorl.tasks.cast import CAST
from explorl.text import equivalence

MATH = equivalence.load("math")
ANYWHERE = Config(answer_from="anywhere")


def of(index, method=None, batch=None):
    batch = batch or debugger_cast.batch()
    return {stage.name: stage for stage in stages(batch, index, method or EMPO(ANYWHERE, MATH))}


def boxed(*answers, gold=""):
    texts = [rf"\boxed{{{answer}}}" if answer else "" for answer in answers]
    return Batch(["q"] * len(texts), texts, [gold] * len(texts), len(texts))


def test_stages_run_from_text_to_advantage_in_order():
    assert list(of(0)) == ["text", "extracted answer", "answer right?", "cluster", "share p(c)", "semantic entropy",
                           "gate", "reward", "group deviation", "total", "advantage"]
    assert "answer right?" not in of(0, batch=boxed("7", "7"))


@pytest.mark.parametrize("method", [EMPO(ANYWHERE, MATH), EMPO(Config(reward="log_p", answer_from="anywhere"), MATH),
                                    MajorityVote(ANYWHERE, MATH), Supervised(ANYWHERE, MATH),
                                    RandomReward(ANYWHERE, MATH)], ids=lambda method: method.name)
@pytest.mark.parametrize("index", range(8))
def test_values_are_the_methods_own(index, method):
    batch = debugger_cast.batch()
    found = method.components(batch)
    total = method.aggregate(found, batch)
    shown = of(index, method)
    assert shown["reward"].value == shown["total"].value == total[index]
    assert shown["share p(c)"].value == found["p"][index]
    assert shown["semantic entropy"].value == found["entropy_nats"][index]
    assert shown["advantage"].value == pytest.approx(method.advantages(total, found, batch).values[index])
    assert shown["answer right?"].value == bool(found["oc"][index])
    group = total[4 * (index // 4) : 4 * (index // 4) + 4]
    deviation = shown["group deviation"].value
    assert deviation == pytest.approx(np.std(group, ddof=1))
    if deviation:
        assert shown["advantage"].value == pytest.approx((total[index] - group.mean()) / (deviation + 1e-4))
    assert ("gate" in shown) == isinstance(method, EMPO)


def test_the_majority_of_group_a_is_right_and_that_of_b_wrong():
    assert of(0)["cluster"].value == "completions 1, 2, 3" and "16 ×2" in of(0)["cluster"].reason
    assert of(0)["answer right?"].value is True and of(0)["advantage"].reason == "made more likely"
    assert of(4)["cluster"].value == "completions 1, 2" and of(4)["answer right?"].value is False
    assert of(4)["advantage"].reason == "made more likely", "confident and wrong"


def test_a_blank_is_explained():
    shown = of(6)
    assert shown["extracted answer"].value == "" and shown["extracted answer"].reason == "blank"
    assert shown["cluster"].value == "alone: no answer" and shown["reward"].reason == "a blank: zero"
    assert of(6, MajorityVote(ANYWHERE, MATH))["reward"].reason == "a blank"


def test_where_the_answer_was_found():
    assert of(0)["extracted answer"].reason == "content of the last box"
    assert of(4)["extracted answer"].reason == "from <final_answer>"
    assert of(7)["extracted answer"].reason == "no sign of an answer: the last number"
    assert of(0, EMPO(Config(), MATH))["extracted answer"].reason == "content of the last box"
    tagged = of(1, EMPO(Config(answer_from="final_tag"), MATH))
    assert tagged["extracted answer"].reason == "from <final_answer> or <answer>"


@pytest.mark.parametrize("answers, config, code, words", [
    (["7", "7"], Config(), "unanimous", "one cluster"), (["7", "3"], Config(), "all_different", "no two answers"),
    (["7", "7", "3"], Config(delta_low_nats=1.0), "entropy_low", "δ_low"),
    (["7", "7", "3"], Config(delta_high_nats=0.1), "entropy_high", "δ_high"),
    (["7", "3"], Config(gate="frequency", min_share=0.9), "share_low", "no cluster"),
])
def test_a_closed_gate_says_why(answers, config, code, words):
    shown = of(0, EMPO(config, MATH), boxed(*answers))
    assert shown["gate"].value == code and words in shown["gate"].reason
    assert shown["reward"].value == 0 and "left out" in shown["reward"].reason
    assert shown["advantage"].reason == "left out: no gradient"


def test_an_open_gate_names_its_bounds():
    assert of(0)["gate"].input == "0 < H < ln 4"
    narrow = EMPO(Config(delta_low_nats=0.1, delta_high_nats=0.5, answer_from="anywhere"), MATH)
    assert of(0, narrow)["gate"].input == "0.1 < H < 0.5"
    assert of(0, EMPO(Config(gate="none", answer_from="anywhere"), MATH))["gate"].input == "none"


def test_an_answer_that_is_not_worked_out_says_so():
    shown = of(0, EMPO(Config(), MATH), boxed("9^{9^{9^9}}", "7", "7"))
    assert "not compared by its meaning" in shown["extracted answer"].reason
    assert "not compared" not in of(1, EMPO(Config(), MATH), boxed("9^{9^{9^9}}", "7", "7"))["extracted answer"].reason


def test_a_large_cluster_is_cut_and_hostile_text_is_escaped():
    shown = of(0, EMPO(Config(), MATH), boxed(*["7"] * 40, "3"))
    assert shown["cluster"].value.endswith("16, …")
    evil = "<script>alert(1)</script>"
    html = to_html(stages(boxed(evil, evil, "7", gold=evil), 0, EMPO(Config(), MATH)))
    assert "<script" not in str(html) and "&lt;script" in str(html)


def test_the_cast_folds_and_every_member_renders():
    page = str(debugger_cast.folded(EMPO(ANYWHERE, MATH)))
    assert page.count("<details>") == len(CAST)
    for index in range(len(CAST)):
        assert "share p(c)" in to_text(debugger.stages(debugger_cast.batch(), index, EMPO(ANYWHERE, MATH)))
