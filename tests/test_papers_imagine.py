"""IMAGINE's bonus and advantage against the test vectors; then every reading, control, guard and wrong setting."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from explorl.errors import ConfigError
from explorl.papers import imagine, imagine_published
from explorl.papers.imagine import OFFICIAL, Config, bonus, decay, integrate, outcome_advantages, scale

VECTORS = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text(encoding="utf-8"))["numeric"]
V1, V2, V3, V4 = (VECTORS[name] for name in ("V1_minmax", "V2_mask_decay", "V3_group5", "V4_two_groups"))
FLIPS = {case["name"]: case for case in VECTORS["V5_sign_flip"]}
CLOSE = {"abs": 2e-6}
errors_of = st.integers(1, 40).flatmap(lambda n: hnp.arrays(np.float64, n, elements=st.floats(0, 1e6)))


def right(scores):
    return np.asarray(scores) >= imagine.RIGHT


# ── The vectors ──

def test_minmax():
    assert Config(alpha=V1["alpha"]).alpha * scale(V1["r"]) == pytest.approx(V1["expect"], **CLOSE)
    for std in (1e-3, 7.0):
        assert scale(np.array(V1["r"]) / std) == pytest.approx(scale(V1["r"])), "eq 5 is a no-op under eq 9"


@pytest.mark.parametrize("n", V2["expect"])
def test_mask_and_decay(n):
    config = Config(decay_gamma=V2["gamma"])
    assert bonus(V1["r"], right(V2["scores"]), int(n), config) == pytest.approx(V2["expect"][n], **CLOSE)


def test_group_of_five():
    assert outcome_advantages(V3["scores"], 5) == pytest.approx(V3["A_old_eps1e-6"], **CLOSE)
    assert outcome_advantages(V3["scores"], 5, OFFICIAL) == pytest.approx(V3["A_old_eps1e-10"], **CLOSE)
    for n, expected in V3["A_new_eps1e-10"].items():
        extra = bonus(V1["r"], right(V3["scores"]), int(n), OFFICIAL)
        assert integrate(V3["scores"], extra, 5, OFFICIAL) == pytest.approx(expected, **CLOSE)
    assert outcome_advantages([1, .1, .1, .1, .1], 5) == pytest.approx([1.788850] + [-0.447213] * 4, **CLOSE)
    expected = [1.776593, -0.327267, -0.327267, -0.561030, -0.561030]
    assert outcome_advantages([1, .1, .1, 0, 0], 5, OFFICIAL) == pytest.approx(expected, **CLOSE)


def test_two_groups_share_a_scale():
    config = Config(adv_eps=V4["eps"])
    assert 0.5 * scale(V4["r"]) == pytest.approx(V4["R1"], **CLOSE)
    extra = bonus(V4["r"], right(V4["scores"]), V4["n"], config)
    assert extra == pytest.approx(V4["R"], **CLOSE)
    assert outcome_advantages(V4["scores"], 5, config) == pytest.approx(V4["A_old"], **CLOSE)
    assert integrate(V4["scores"], extra, 5, config) == pytest.approx(V4["A_new"], **CLOSE)
    pre = dataclasses.replace(config, integration="pre")
    assert integrate(V4["scores"], extra, 5, pre) == pytest.approx(V4["A_pre_integration"], **CLOSE)


@pytest.mark.parametrize("name", FLIPS)
def test_adding_before_normalisation_may_flip_a_sign(name):
    case = FLIPS[name]
    assert outcome_advantages(case["scores"], 5) == pytest.approx(case["out"], **CLOSE)
    for integration in ("pre", "post"):
        found = integrate(case["scores"], case["bonus"], 5, Config(integration=integration))
        assert found == pytest.approx(case[integration], **CLOSE)


def test_a_group_of_equal_scores_gets_zeros_and_not_rounding():
    case = VECTORS["V6_const_group_fp32"]
    assert outcome_advantages(case["scores"], 8).tolist() == case["guarded"]
    for size in (2, 5, 7, 8, 16):
        assert not outcome_advantages(np.full(size, 0.1, dtype=np.float32), size, OFFICIAL).any()
        extra = np.linspace(0, 0.5, size)
        assert integrate([0.1] * size, extra, size).tolist() == extra.tolist()
    assert abs(imagine_published.group_advantages(case["scores"])).max() <= 1, "whatever the platform rounds"


def test_a_lone_answer():
    case = VECTORS["V7_group1"]
    assert integrate(case["scores"], case["bonus"], 1, OFFICIAL).tolist() == case["expect_official"]
    assert integrate(case["scores2"], case["bonus2"], 1, OFFICIAL) == pytest.approx(case["expect_official2"])
    assert integrate([0.0], [0.5], 1, OFFICIAL).tolist() == [0.5]
    with pytest.raises(ConfigError, match="group_size = 1: must be at least 2"):
        outcome_advantages([1.0], 1)


@pytest.mark.parametrize("scores, expected", [([1] * 5, [0] * 5), ([0] * 5, [.5, .25, .125, 0, .4]),
                                              ([.1] * 5, [.5, .25, .125, 0, .4])])
def test_groups_without_contrast(scores, expected):
    errors = [1.0, 0.5, 0.25, 0.0, 0.8]
    assert integrate(scores, bonus(errors, right(scores), 0), 5).tolist() == pytest.approx(expected)


def test_equal_errors_and_single_rows_give_nothing():
    assert bonus([.2, .2, .2], [False] * 3, 0).tolist() == [0, 0, 0]
    assert np.isnan(imagine_published.minmax([.2, .2, .2])).all(), "published"
    assert bonus([.2], [False], 0).tolist() == [0] and bonus([], [], 0).tolist() == []
    for kind in ("quantile", "rank"):
        assert bonus([.2] * 4, [False] * 4, 0, Config(novelty_scale=kind)).tolist() == [0] * 4
        assert bonus([], [], 0, Config(novelty_scale=kind)).tolist() == []


def test_running_deviation():
    case, seen = VECTORS["V10_running_std"], imagine.RunningStd()
    assert seen.std == 0
    config = Config(novelty_scale="running_std", alpha=1.0)
    for part in "12":
        seen.add(case[f"batch{part}"])
        found = bonus(case[f"batch{part}"], [False] * 3, 0, config, std=seen.std)
        assert found == pytest.approx(case[f"norm{part}"], **CLOSE)
    seen.add([])
    assert seen.count == 6


# ── Properties ──

@given(errors_of, st.integers(0, 500), st.floats(0, 5), st.data())
def test_bonus_is_between_zero_and_alpha(errors, step, alpha, data):
    correct = np.array(data.draw(st.lists(st.booleans(), min_size=len(errors), max_size=len(errors))))
    config = Config(alpha=alpha)
    found = bonus(errors, correct, step, config)
    assert ((found >= 0) & (found <= alpha * decay(step, config))).all()
    assert not found[correct].any()
    everyone = bonus(errors, correct, 0, Config(alpha=alpha, error_mask=False))
    if np.ptp(errors) > 0:
        assert everyone.min() == 0 and everyone.max() == alpha
    else:
        assert not everyone.any()


@given(errors_of, st.randoms(use_true_random=False))
def test_rows_may_come_in_any_order(errors, random):
    order = list(range(len(errors)))
    random.shuffle(order)
    for kind in ("minmax", "quantile", "rank"):
        config = Config(novelty_scale=kind)
        correct = errors > np.median(errors)
        found = bonus(errors, correct, 3, config)
        assert bonus(errors[order], correct[order], 3, config).tolist() == found[order].tolist()


@given(st.integers(2, 8), st.integers(1, 5), st.data())
def test_the_mean_of_a_group_is_that_of_its_bonuses(size, groups, data):
    draw = st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=size * groups, max_size=size * groups)
    scores = np.array(data.draw(draw))
    errors = data.draw(hnp.arrays(np.float64, size * groups, elements=st.floats(0, 1)))
    extra = bonus(errors, right(scores), 0)
    old, new = outcome_advantages(scores, size), integrate(scores, extra, size)
    assert old.reshape(-1, size).mean(axis=1) == pytest.approx(0, abs=1e-9)
    assert new.reshape(-1, size).mean(axis=1) == pytest.approx(extra.reshape(-1, size).mean(axis=1), abs=1e-9)
    assert (new >= old).all(), "a bonus only ever raises"


@settings(max_examples=300)
@given(st.lists(st.sampled_from([0.0, 0.1, 1.0]), min_size=2, max_size=8), st.data())
def test_with_mask_and_alpha_below_09_a_right_answer_never_flips(scores, data):
    errors = data.draw(hnp.arrays(np.float64, len(scores), elements=st.floats(0, 1)))
    found = integrate(scores, bonus(errors, right(scores), 0), len(scores), Config(integration="pre"))
    assert (found[right(scores)] >= 0).all()


# ── Readings ──

def test_right_rows_set_the_scale_and_get_nothing():
    assert bonus([0.0, 1.0, 10.0], [False, False, True], 0).tolist() == [0, 0.05, 0]
    assert bonus([0.0, 1.0, 10.0], [False, False, True], 0, Config(error_mask=False)).tolist() == [0, 0.05, 0.5]


def test_the_groups_scale():
    config, errors = Config(minmax_scope="group"), [0.0, 1.0, 100.0, 300.0]
    assert bonus(errors, [False] * 4, 0, config, group_size=2).tolist() == [0, 0.5, 0, 0.5]
    assert bonus([1.0, 1.0, 1.0, 2.0], [False] * 4, 0, config, group_size=2).tolist() == [0, 0, 0, 0.5]
    for size in (None, 3, 0):
        with pytest.raises(ConfigError, match="group_size"):
            bonus(errors, [False] * 4, 0, config, group_size=size)


def test_robust_scales_let_no_outlier_set_the_scale():
    errors = [*np.linspace(0, 1, 40), 1000.0]
    kinds = ("minmax", "quantile", "rank")
    plain, quantile, rank = (np.median(scale(errors, Config(novelty_scale=kind))) for kind in kinds)
    assert plain < 0.001 and quantile == pytest.approx(0.5, abs=0.01) and rank == pytest.approx(0.5)
    assert scale([1, 1, 5, 2], Config(novelty_scale="rank")).tolist() == pytest.approx([0, 0, 1, 0.6])


def test_centred_bonuses_keep_only_differences():
    config = Config(center_bonus=True)
    correct = [False, False, True, True, True, True]
    found = bonus([0.0, 1.0, 9.0, 0.0, 0.0, 0.0], correct, 0, config, group_size=3)
    assert found == pytest.approx([-1 / 36, 1 / 36, 0, 0, 0, 0])
    with pytest.raises(ConfigError, match="center_bonus"):
        bonus([0.0, 1.0], [False, False], 0, config)


# ── Controls ──

ERRORS, CORRECT = np.array([0.1, 0.9, 0.4, 0.3, 0.8, 0.7]), np.array([True, False, False, False, True, False])
LENGTHS = [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize("source", ["uniform", "constant", "length", "shuffled"])
def test_matched_controls_pay_as_much_to_the_same_rows(source):
    rnd = bonus(ERRORS, CORRECT, 7)
    found = bonus(ERRORS, CORRECT, 7, Config(bonus_source=source), lengths=LENGTHS)
    assert found.sum() == pytest.approx(rnd.sum()) and not found[CORRECT].any()
    assert found.tolist() != rnd.tolist() and (found[~CORRECT] >= 0).all()
    again = bonus(ERRORS, CORRECT, 7, Config(bonus_source=source), lengths=LENGTHS)
    assert found.tolist() == again.tolist(), "draws follow from seed and n"


def test_what_each_control_pays():
    half = {"alpha": 0.8, "control_level": "alpha"}
    constant = bonus(ERRORS, CORRECT, 40, Config(bonus_source="constant", **half))
    assert constant.tolist() == [0, .4, .4, .4, 0, .4]
    length = bonus(ERRORS, CORRECT, 40, Config(bonus_source="length", **half), lengths=LENGTHS)
    assert length == pytest.approx([0, .08, .16, .24, 0, .4])
    shuffled = bonus(ERRORS, CORRECT, 0, Config(bonus_source="shuffled", seed=1))
    assert sorted(shuffled) == pytest.approx(sorted(bonus(ERRORS, CORRECT, 0)))
    draws = [bonus(ERRORS, CORRECT, n, Config(bonus_source="uniform", seed=s, decay_gamma=1e12, **half))
             for n, s in ((0, 0), (1, 0), (0, 1))]
    assert len({tuple(draw.tolist()) for draw in draws}) == 3
    assert all(0 <= value <= 0.8 for draw in draws for value in draw)
    assert not bonus(ERRORS, CORRECT, 0, Config(bonus_source="none")).any()


def test_uniform_draws_are_uniform():
    n = 4000
    found = bonus(np.zeros(n), np.zeros(n, bool), 0, Config(alpha=1.0, bonus_source="uniform", control_level="alpha"))
    assert found.mean() == pytest.approx(0.5, abs=0.03) and found.std() == pytest.approx(12**-0.5, abs=0.02)


def test_controls_where_there_is_nothing_to_match():
    same = Config(bonus_source="length")
    assert bonus(ERRORS, CORRECT, 0, same, lengths=[5] * 6).tolist() == [0] * 6
    assert bonus(ERRORS, [True] * 6, 0, Config(bonus_source="constant")).tolist() == [0] * 6
    assert bonus([.2] * 3, [False] * 3, 0, Config(bonus_source="constant")).tolist() == [0] * 3, "RND pays nothing"
    running = Config(bonus_source="length", novelty_scale="running_std")
    assert bonus(ERRORS, CORRECT, 0, running, lengths=LENGTHS, std=0.5).sum() > 0
    for lengths in (None, [1]):
        with pytest.raises(ConfigError, match="lengths"):
            bonus(ERRORS, CORRECT, 0, same, lengths=lengths)


# ── Wrong arguments and settings ──

@pytest.mark.parametrize("errors, correct, step, field", [
    ([0.1, float("nan")], [False] * 2, 0, "errors"), ([0.1, float("inf")], [False] * 2, 0, "errors"),
    ([0.1, -0.1], [False] * 2, 0, "errors"), ([[0.1]], [False], 0, "errors"), ([0.1], [False] * 2, 0, "correct"),
    ([0.1], [False], -1, "step"), ([0.1], [False], 1.5, "step"), ([0.1], [False], True, "step"),
])
def test_wrong_arguments_are_named(errors, correct, step, field):
    with pytest.raises(ConfigError) as caught:
        bonus(errors, correct, step)
    assert caught.value.field == field


def test_running_std_wants_the_deviation():
    for std in (None, -1.0, float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="std"):
            scale([0.1], Config(novelty_scale="running_std"), std=std)
    assert scale([0.0], Config(novelty_scale="running_std"), std=0.0).tolist() == [0.0]


@pytest.mark.parametrize("field, value, words", [
    ("alpha", -0.1, "from 0 up"), ("alpha", float("nan"), "from 0 up"), ("decay_gamma", 0, "above 0"),
    ("lr", 0.0, "above 0"), ("adv_eps", 0.0, "above 0"), ("weight_decay", -1, "from 0 up"), ("emb_dim", 0, "from 1"),
    ("hidden", (16, 0), "hidden layer"), ("hidden", 16, "hidden layer"), ("out_dim", True, "from 1"),
    ("seed", -1, "from 0"), ("max_prompt_tokens", -1, "from 0"), ("max_completion_tokens", 0, "from 1"),
    ("novelty_scale", "z", "minmax, quantile, rank, running_std"), ("bonus_source", "random", "rnd, none, uniform"),
    ("novelty_input", "mean", "flat_bn, pooled"), ("minmax_scope", None, "batch, group"),
    ("novelty_order", "x", "reward_then_update"), ("integration", "mid", "post, pre"),
    ("ppo_bonus", "last", "post_whiten_last, pre_whiten_last"), ("embedding", "none", "shared, own, frozen"),
    ("pad", "0", "own, zero"), ("control_level", 1, "matched, alpha"), ("lone", "zero", "raise, score"),
    ("error_mask", 1, "True or False"), ("center_bonus", None, "True or False"),
])
def test_wrong_settings_are_named(field, value, words):
    with pytest.raises(ConfigError) as caught:
        Config(**{field: value})
    assert caught.value.field == field and words in str(caught.value)


def test_running_std_has_one_scope():
    with pytest.raises(ConfigError, match="minmax_scope = 'group': must be batch"):
        Config(novelty_scale="running_std", minmax_scope="group")


def test_defaults_are_the_papers():
    config = Config()
    assert (config.alpha, config.decay_gamma, config.emb_dim, config.hidden, config.lr) == (0.5, 40, 16, (16, 8), 1e-3)
    assert config.max_positions == 1280 and Config(hidden=[4]).hidden == (4,)
    assert decay(0) == 1 and decay(10**9) > 0
