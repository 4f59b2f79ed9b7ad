"""The reward debugger on IMAGINE: the base method's stages, novelty, bonus, and that looking does not train."""

import numpy as np
import pytest
from test_papers_imagine_method import MIXED, SIZES, VOCAB, Half, batch, method

from explorl.papers.baselines import Outcome as TaggedOutcome
from explorl.papers.imagine import IMAGINE, SOURCES, Config
from explorl.report import debugger_cast
from explorl.report.debugger import stages, to_html, to_text
from explorl.tasks.cast import CAST

NOVELTY = ["tokens", "novelty error r", "eligible?", "decay", "bonus R*", "advantage without bonus"]


def of(index, *, data=None, by=None):
    return {stage.name: stage for stage in stages(data or batch(*MIXED, group_size=4), index, by or method())}


def test_the_bases_stages_come_first_and_the_totals_last():
    assert list(of(0)) == ["text", "answer", "score", "oc", *NOVELTY, "total", "advantage"]
    tagged = IMAGINE(Config(**SIZES), TaggedOutcome(), VOCAB)
    plain = [stage.name for stage in stages(batch(*MIXED, group_size=4), 0, TaggedOutcome())]
    assert list(of(0, by=tagged)) == [*plain[:-2], *NOVELTY, "total", "advantage"]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("index", [0, 2, 3])
def test_values_are_the_methods_own(source, index):
    by, data = method(bonus_source=source), batch(*MIXED, group_size=4)
    shown, found = of(index, by=by, data=data), by.still().components(data)
    assert shown["bonus R*"].value == found["bonus"][index] and shown["score"].value == found["score"][index]
    assert float(shown["novelty error r"].value) == pytest.approx(found["novelty_error"][index], rel=1e-2)
    old, new = shown["advantage without bonus"].value, shown["advantage"].value
    assert new == pytest.approx(old + found["bonus"][index])
    assert shown["eligible?"].value is (index > 1)


def test_looking_does_not_train():
    by = method()
    first = of(2, by=by)
    assert of(2, by=by)["novelty error r"] == first["novelty error r"] and by.novelty.calls == 0
    by.components(batch(*MIXED, group_size=4))
    later = of(2, by=by)
    assert later["decay"].value == pytest.approx(40 / 41) and "n = 1" in later["decay"].input
    assert later["novelty error r"] != first["novelty error r"]


def test_a_group_without_contrast_is_lifted_by_its_bonus():
    data = batch("6+4", "6-4", "6*4", "2")
    best = int(np.argmax(method().components(data)["bonus"]))
    assert of(best, data=data)["advantage"].reason == "made more likely"
    right = batch(*["6+4+2"] * 4)
    assert of(0, data=right)["advantage"].reason == "no contrast in the group: no gradient"


def test_words():
    assert of(0)["eligible?"].reason == "a right answer gets no bonus"
    assert of(0, by=method(error_mask=False))["eligible?"].reason == "the mask is off"
    assert "measured and not paid" in of(2, by=method(bonus_source="none"))["bonus R*"].reason
    pre = of(2, by=method(integration="pre", center_bonus=True, novelty_scale="rank", minmax_scope="group"))
    assert "added to the score instead" in pre["advantage without bonus"].reason
    assert pre["bonus R*"].reason == "novelty, centred" and "rank over the group" in pre["bonus R*"].input
    assert of(0)["tokens"].value == "1 of the completion"
    same = batch(*["6+4"] * 4, completion_ids=[[1, 2]] * 4)
    assert of(0, data=same)["novelty error r"].reason == "rank 1 of 4 in the batch, with 3 others"
    long = batch(*["6+4"] * 4, completion_ids=[[1] * 30] * 4)
    assert of(0, data=long)["tokens"].reason == "cut at 8"


def test_numbers_per_token_and_dropped_groups():
    shown = of(5, by=method(base=Half()))
    assert shown["advantage"].reason == "left out: no gradient"
    assert shown["advantage"].value == pytest.approx(shown["advantage without bonus"].value + shown["bonus R*"].value)


def test_the_cast_folds_and_hostile_text_is_escaped():
    by = IMAGINE(Config(**SIZES), TaggedOutcome(), 256, tokens=lambda text: list(text.encode()[:40]))
    page = str(debugger_cast.folded(by))
    assert page.count("<details>") == len(CAST) and "novelty error r" in page
    evil = "<script>alert(1)</script>"
    data = batch("2", "3", completions=[evil, evil])
    shown = stages(data, 0, method())
    assert "<script" not in str(to_html(shown)) and "bonus R*" in to_text(shown)
