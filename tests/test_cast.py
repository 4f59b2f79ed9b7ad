"""The cast plays every part that the chapters need; a changed text that loses its part fails here."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from explorl import encoders
from explorl.papers import sde2
from explorl.tasks.cast import CAST, GROUP_SIZE, PROMPT_A, PROMPT_B, member
from explorl.text import answers, strategies

LABELS = ["right-boxed", "right-unboxed", "right-other-path", "wrong-unique", "wrong-same-as-another", "truncated",
          "empty", "prompt-echo"]


@pytest.fixture(scope="module")
def scored():
    encode = encoders.load("minilm")
    return sde2.components([m.completion for m in CAST], [m.gold for m in CAST], encode, sde2.Config())


def at(scored, name, who):
    return scored[name][[m.id for m in CAST].index(who)]


def parsed(who):
    return strategies.parse(member(who).completion)


def test_two_groups_of_four_with_all_labels():
    assert [m.id for m in CAST] == ["A1", "A2", "A3", "A4", "B1", "B2", "B3", "B4"]
    assert [m.label for m in CAST] == LABELS
    assert [m.prompt for m in CAST] == [PROMPT_A] * GROUP_SIZE + [PROMPT_B] * GROUP_SIZE
    assert len({m.note for m in CAST}) == 8 and all(m.note for m in CAST)
    assert member("truncated") is member("B2")
    with pytest.raises(KeyError, match="A9"):
        member("A9")


def test_gold_answers_are_right():
    assert {m.gold for m in CAST[:4]} == {str(50 - 4 * 7 - 3 * 2)}
    assert {m.gold for m in CAST[4:]} == {str(12 + 3 * (9 - 4))}


def test_flexible_extraction_gives_contrast_in_a_and_a_wrong_majority_in_b():
    found = {m.id: answers.canonical(answers.extract(m.completion)[0]) for m in CAST}
    numbers = {who: value and value[1] for who, value in found.items()}
    assert [numbers[w] == 16 for w in ("A1", "A2", "A3", "A4")] == [True, True, True, False]
    assert Counter(numbers[w] for w in ("B1", "B2", "B3", "B4")).most_common(1) == [(Fraction(17), 2)]
    assert Fraction(27) not in numbers.values() and numbers["B3"] is None
    assert list(numbers.values()).count(numbers["A4"]) == 1


def test_plain_outcome_reward_has_contrast_in_a_and_none_in_b(scored):
    right = np.array([answers.same(answers.extract(m.completion)[0], m.gold) for m in CAST]).reshape(2, 4)
    assert right.sum(axis=1).tolist() == [3, 0]
    assert scored["oc"].reshape(2, 4).sum(axis=1).tolist() == [2, 0]


def test_boxed_without_tags_is_right_but_unseen_by_the_schema(scored):
    assert answers.last_boxed(member("A1").completion) == "16"
    assert parsed("A1").reason == "no_strategy" and parsed("A1").source == "NONE"
    assert [at(scored, name, "A1") for name in ("oc", "re", "fa", "sd")] == [0, 0, 0, 0]


def test_other_path_has_a_repeat_a_paraphrase_and_a_second_idea(scored):
    one = parsed("A3")
    assert len(one.strategies) == 3 and one.counts["duplicated"] == 1
    assert (at(scored, "n_strategies", "A3"), at(scored, "uniq", "A3")) == (3, 2)
    assert at(scored, "chi", "A3") == 1 and at(scored, "sd", "A3") == 1


def test_shotgun_is_paid_for_a_right_strategy_and_hands_in_a_wrong_answer(scored):
    outcomes = [outcome for _, outcome in parsed("A4").strategies]
    assert outcomes.count("16") == 1 and len(set(outcomes)) == 4 and parsed("A4").final == "34"
    assert [at(scored, name, "A4") for name in ("oc", "re", "sd")] == [0, 1, 1]


def test_greedy_pass_keeps_what_is_close_only_to_a_dropped_one():
    reasonings = [reasoning for reasoning, _ in parsed("A4").strategies]
    vectors = encoders.load("minilm")(reasonings)
    cosines = sde2.pairwise_cosine(vectors)
    kept = list(sde2.uniq(vectors, 0.8))
    assert kept == [0, 2, 3] and cosines[0, 1] > 0.8 and cosines[1, 2] > 0.8 and cosines[0, 2] < 0.8


def test_valley_two_distinct_wrong_strategies_are_paid_less_than_one(scored):
    assert (at(scored, "n_strategies", "B1"), at(scored, "uniq", "B1"), at(scored, "chi", "B1")) == (2, 2, 0)
    assert at(scored, "n_strategies", "B2") == 1
    assert 0 < at(scored, "sd", "B1") < at(scored, "sd", "B2") == pytest.approx(0.1)


def test_truncated_lives_on_its_first_block():
    one = parsed("B2")
    assert len(one.strategies) == 1 and one.counts["unclosed"] == 1
    assert (one.final, one.source) == ("17", "SO") and parsed("B1").final == "17"


def test_empty_and_echo_get_nothing(scored):
    assert parsed("B3").reason == "empty" and member("B4").completion == PROMPT_B
    for who in ("B3", "B4"):
        assert [at(scored, name, who) for name in ("oc", "re", "fa", "sd")] == [0, 0, 0, 0]


def test_similarities_stay_clear_of_the_threshold():
    for one in CAST:
        reasonings = [reasoning for reasoning, _ in strategies.parse(one.completion).strategies]
        if len(reasonings) > 1:
            cosines = sde2.pairwise_cosine(encoders.load("minilm")(reasonings))
            pairs = cosines[np.triu_indices(len(reasonings), 1)]
            assert np.abs(pairs - 0.8).min() > 0.02, one.id
