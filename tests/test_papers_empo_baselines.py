"""What EMPO is compared with, and what its tables report."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from explorl.errors import ConfigError
from explorl.papers import empo, empo_metrics
from explorl.papers.empo import EMPO, Config
from explorl.papers.empo_baselines import MajorityVote, RandomReward, Supervised, vote
from explorl.papers.method import Batch

GROUPS = json.loads((Path(__file__).parent / "vectors" / "empo.json").read_text(encoding="utf-8"))["groups"]


def same(a: str, b: str) -> bool:
    return a == b


def boxed(*answers: str, gold: str = "", group_size: int | None = None, step: int = 0) -> Batch:
    texts = [rf"\boxed{{{answer}}}" if answer else "" for answer in answers]
    return Batch(["q"] * len(texts), texts, [gold] * len(texts), group_size or len(texts), step=step)


def advantages(method, batch):
    found = method.components(batch)
    return method.advantages(method.aggregate(found, batch), found, batch)


def spelled(case):
    """The answers of a vector, one spelling for each meaning."""
    return [f"m{i}" if answer else "" for answer, i in zip(case["answers"], case["both"]["ids"], strict=True)]


@pytest.mark.parametrize("case", GROUPS, ids=lambda case: case["name"])
def test_the_vote_of_the_vectors(case):
    found = MajorityVote(Config(), same).components(boxed(*spelled(case)))
    assert found["reward"].tolist() == case["majority"] == found["majority"].tolist()
    assert found["kept"].all(), "TTRL has no gate"


@pytest.mark.parametrize("answers, earliest, everyone", [
    ("7 3 3 7", [1, 0, 0, 1], [1, 1, 1, 1]), ("1 2 3", [1, 0, 0], [1, 1, 1]), (" 7 3", [0, 1, 0], [1, 1, 1]),
    (" 7 3 3", [0, 0, 1, 1], [0, 0, 1, 1]), ("  ", [0, 0, 0], [1, 1, 1]),
])
def test_ties(answers, earliest, everyone):
    group = answers.split(" ")
    assert MajorityVote(Config(), same).components(boxed(*group))["reward"].tolist() == earliest
    assert MajorityVote(Config(), same, ties="all").components(boxed(*group))["reward"].tolist() == everyone


def test_a_tie_is_pushed_apart_by_the_vote_and_left_alone_by_empo():
    tied = boxed(*["7"] * 4, *["3"] * 4)
    assert advantages(MajorityVote(Config(), same), tied).values == pytest.approx([0.9352] * 4 + [-0.9352] * 4, abs=5e-5)
    assert not advantages(EMPO(Config(), same), tied).values.any()


@pytest.mark.parametrize("sizes, expect", [
    ((4, 2, 1, 1), (0.9352, -0.9352, -0.9352, -0.9352)), ((5, 3), (0.7244, -1.2074)), ((7, 1), (0.3535, -2.4742)),
    ((15, 1), (0.2499, -3.7485)), ((8, 8), (0.9681, -0.9681)), ((3, 3, 2), (1.2074, -0.7244, -0.7244)),
    ((2, *[1] * 14), (2.5610, *[-0.3659] * 14)),
])
def test_the_votes_advantages(sizes, expect):
    group = [str(number) for number, size in enumerate(sizes) for _ in range(size)]
    found = advantages(MajorityVote(Config(), same), boxed(*group))
    assert found.values == pytest.approx(np.repeat(expect, sizes), abs=5e-5)


def test_supervised_pays_right_answers():
    method = Supervised(Config(), same, gold_equal=lambda gold, answer: gold == answer or {gold, answer} == {"1/2", "0.5"})
    batch = boxed("0.5", "1/2", "2", "", gold="1/2")
    assert method.components(batch)["reward"].tolist() == [1, 1, 0, 0]
    assert advantages(method, batch).values == pytest.approx([0.866, 0.866, -0.866, -0.866], abs=1e-3)
    unanimous = advantages(method, boxed("2", "2", gold="1/2"))
    assert not unanimous.values.any() and unanimous.keep.all()


def test_supervised_needs_a_reference_for_every_completion():
    batch = Batch(["q"] * 2, ["x"] * 2, ["1", " "], 2)
    with pytest.raises(ConfigError, match="gold = ' '"):
        Supervised(Config(), same).components(batch)


def test_random_rewards_follow_from_seed_and_step():
    answers = ["7", "", "3", "7", "", "1", "2", "9"]
    first, again, later = (RandomReward(Config(), same, seed=5).components(boxed(*answers, step=step))["reward"]
                           for step in (0, 0, 1))
    other = RandomReward(Config(), same, seed=6).components(boxed(*answers))["reward"]
    assert first.tolist() == again.tolist() and first.tolist() != later.tolist() != other.tolist()
    expect = np.random.default_rng([5, 0]).random(8)
    assert first.tolist() == [0 if answer == "" else draw for answer, draw in zip(answers, expect, strict=True)]
    assert len(set(first.tolist())) == 7, "six draws and the zero of a blank"


def test_random_rewards_have_the_mean_of_a_coin():
    draws = RandomReward(Config(), same).components(boxed(*["7"] * 4000, group_size=8))["reward"]
    assert draws.mean() == pytest.approx(0.5, abs=0.02) and 0 <= draws.min() < draws.max() < 1


@pytest.mark.parametrize("method", [MajorityVote, Supervised, RandomReward])
def test_all_arms_explain_themselves_alike(method):
    batch = boxed("7", "7", "3", "", gold="3")
    names = set(EMPO(Config(), same).components(batch))
    assert set(method(Config(), same).components(batch)) == names
    nothing = Batch([], [], [], 4)
    assert all(column.shape == (0,) for column in method(Config(), same).components(nothing).values())


def test_wrong_settings():
    for make in (lambda: MajorityVote(Config(), same, ties="none"), lambda: RandomReward(Config(), same, seed=-1),
                 lambda: RandomReward(Config(), same, seed=True), lambda: Supervised(Config(), None)):
        with pytest.raises(ConfigError):
            make()
    with pytest.raises(ConfigError, match="ties"):
        vote(empo.cluster(["7"], same), ties="last")


# ── Measures ──

def test_measures_of_a_confident_and_wrong_group():
    found = empo_metrics.measure(["7", "7", "7", "3", ""], [False, False, False, True, False], same)
    assert (found.n, found.right, found.n_clusters, found.blank) == (5, 1, 3, 1)
    assert (found.accuracy, found.p_majority, found.majority_right) == (0.2, 0.6, False)
    assert found.cluster_shares == (0.6, 0.2) and found.cluster_right == (False, True)
    assert found.entropy_nats == pytest.approx(-(0.6 * math.log(0.6) + 0.4 * math.log(0.2)))


def test_the_majority_is_never_a_blank_and_ties_go_to_the_earliest():
    blank = empo_metrics.measure(["", "", ""], [False] * 3, same)
    assert (blank.p_majority, blank.majority_right, blank.cluster_shares) == (0.0, False, ())
    tied = empo_metrics.measure(["", "3", "7", "7", "3"], [False, True, False, False, True], same)
    assert tied.majority_right and tied.p_majority == 0.4


def test_the_rule_decides_what_is_measured():
    bridge = ["1/2", "50", "50%"]

    def equal(a, b):
        return "50%" in (a, b)

    assert empo_metrics.measure(bridge, [True] * 3, equal).cluster_shares == pytest.approx((2 / 3, 1 / 3))
    assert empo_metrics.measure(bridge, [True] * 3, equal, Config(rule="connected")).n_clusters == 1


def test_metrics_split_by_whether_the_majority_is_right():
    sure_wrong = empo_metrics.measure(["7", "7", "7", "3"], [False, False, False, True], same)
    right = empo_metrics.measure(["3", "3", "7", ""], [True, True, False, False], same)
    found = empo_metrics.metrics([sure_wrong, right])
    assert found["acc"] == 0.375 and found["majority_right"] == 0.5 and found["p_majority"] == 0.625
    assert (found["acc_where_right"], found["acc_where_wrong"]) == (0.5, 0.25)
    assert (found["entropy_where_right"], found["entropy_where_wrong"]) == (right.entropy_nats, sure_wrong.entropy_nats)
    assert found["n_clusters"] == 2.5 and found["blank"] == 0.125
    assert found["entropy_nats"] == pytest.approx((1.039721 + 0.562335) / 2, abs=1e-6)


def test_metrics_of_nothing_are_not_zero():
    assert all(math.isnan(value) for value in empo_metrics.metrics([]).values())
    right = empo_metrics.measure(["3"], [True], same)
    assert math.isnan(empo_metrics.metrics([right])["acc_where_wrong"])


def test_calibration():
    table = empo_metrics.calibration([0.1, 0.15, 0.85, 0.95, 1.0, 1.0], [0, 1, 1, 1, 1, 0], bins=5)
    assert table.edges == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0]) and table.count.tolist() == [2, 0, 0, 0, 4]
    assert table.share[[0, 4]] == pytest.approx([0.125, 0.95]) and table.right[[0, 4]] == pytest.approx([0.5, 0.75])
    assert np.isnan(table.share[1:4]).all() and np.isnan(table.right[1:4]).all()
    assert table.error == pytest.approx((2 * 0.375 + 4 * 0.2) / 6)


@pytest.mark.parametrize("k", range(11))
def test_a_share_on_an_edge_belongs_to_the_bin_above(k):
    count = empo_metrics.calibration([k / 10], [True]).count
    assert count.tolist() == [int(i == min(k, 9)) for i in range(10)]


def test_perfect_calibration_has_no_error():
    shares = np.repeat([0.25, 0.5, 1.0], 4)
    assert empo_metrics.calibration(shares, [1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1]).error == 0


def test_calibration_of_nothing_and_wrong_input():
    assert math.isnan(empo_metrics.calibration([], []).error)
    for shares, right, bins in (([0.5], [1, 0], 10), ([1.5], [1], 10), ([math.nan], [1], 10), ([0.5], [1], 0)):
        with pytest.raises(ConfigError):
            empo_metrics.calibration(shares, right, bins=bins)
    with pytest.raises(ConfigError, match="right"):
        empo_metrics.measure(["7"], [], same)


def test_transitions_count_every_problem_once():
    before, after = dict(zip("abcde", [1, 1, 0, 0, 0])), dict(zip("edcba", [1, 0, 0, 0, 1]))
    found = empo_metrics.transitions(before, after)
    assert found == {"right_right": 1, "right_wrong": 1, "wrong_right": 1, "wrong_wrong": 2}
    with pytest.raises(ConfigError, match="1 problems in one run only"):
        empo_metrics.transitions({"a": True}, {})
