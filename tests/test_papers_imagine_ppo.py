"""PPO's advantages: the worked case, GAE by hand and by definition, whitening, and where the bonus goes."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from explorl.errors import ConfigError
from explorl.papers import ppo

CASE = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text(encoding="utf-8"))["numeric"]["V8_ppo"]
REWARDS, VALUES, MASK = (np.array(CASE[name], dtype=float) for name in ("rewards", "values", "mask"))
BONUS = np.array(CASE["bonus"], dtype=float).sum(axis=1)


def inside(table):
    return [row[:length].tolist() for row, length in zip(table, (3, 2), strict=True)]


def flat(rows):
    return [value for row in rows for value in row]


def test_worked_case():
    raw, returns = ppo.gae(REWARDS, VALUES, MASK, CASE["gamma"], CASE["lam"])
    assert raw == pytest.approx(np.array(CASE["raw_adv"])) and returns == pytest.approx(np.array(CASE["returns"]))
    plain, _ = ppo.advantages(REWARDS, VALUES, MASK)
    assert flat(inside(plain)) == pytest.approx(flat(CASE["whiten_no_bonus"]), abs=2e-6)
    for placement, name in (("pre_whiten_last", "official_bonus_then_whiten"),
                            ("post_whiten_last", "paper_whiten_then_bonus")):
        found, returns = ppo.advantages(REWARDS, VALUES, MASK, BONUS, placement=placement)
        assert flat(inside(found)) == pytest.approx(flat(CASE[name]), abs=2e-6)
        assert returns == pytest.approx(np.array(CASE["returns"])), "the critic never learns of the bonus"
        assert found[1, 2] == 0


def test_gae_by_hand():
    """δ = (1 + .5·2 − 1, 2 + .5·4 − 2, 3 − 4) = (1, 2, −1); γλ = .25."""
    found, returns = ppo.gae([[1, 2, 3]], [[1, 2, 4]], [[1, 1, 1]], gamma=0.5, lam=0.5)
    assert found.tolist() == [[1 + 0.25 * 1.75, 1.75, -1]] and returns.tolist() == [[2.4375, 3.75, 3]]


def test_lambda_zero_is_one_step_and_values_beyond_the_end_do_not_count():
    found, _ = ppo.gae([[0, 1, 9]], [[2, 3, 50]], [[1, 1, 0]], gamma=1.0, lam=0.0)
    assert found.tolist() == [[1, -2, 0]]


tables = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda shape: st.tuples(*[hnp.arrays(np.float64, shape, elements=st.floats(-5, 5))] * 2,
                            hnp.arrays(np.int64, shape[0], elements=st.integers(0, shape[1]))))


@given(tables, st.floats(0, 1), st.floats(0, 1))
def test_gae_is_the_discounted_sum_of_surprises(table, gamma, lam):
    rewards, values, lengths = table
    mask = np.arange(rewards.shape[1]) < lengths[:, None]
    found, returns = ppo.gae(rewards, values, mask, gamma, lam)
    for row, length in enumerate(lengths):
        known = [*values[row, :length], 0.0]
        surprise = [rewards[row, t] + gamma * known[t + 1] - known[t] for t in range(length)]
        for t in range(length):
            expected = sum((gamma * lam) ** (k - t) * surprise[k] for k in range(t, length))
            assert found[row, t] == pytest.approx(expected, abs=1e-9)
        assert not found[row, length:].any() and not returns[row, length:].any()


@given(tables)
def test_whitened_tokens_have_mean_0_and_variance_1(table):
    values, _, lengths = table
    mask = np.arange(values.shape[1]) < lengths[:, None]
    found = ppo.whiten(values, mask)
    assert not found[~mask].any()
    if mask.sum() > 1 and np.ptp(values[mask]) > 1e-2:
        assert found[mask].mean() == pytest.approx(0, abs=1e-6)
        assert found[mask].var(ddof=1) == pytest.approx(1, rel=1e-2)
        order = np.argsort(values[mask], kind="stable")
        assert (np.diff(found[mask][order]) >= 0).all()


def test_whitening_without_contrast_gives_zeros():
    for values, mask in (([[0.1] * 8], [[1] * 8]), ([[5.0, 7.0]], [[1, 0]]), ([[5.0]], [[0]])):
        assert not ppo.whiten(np.array(values), np.array(mask)).any()


def test_the_paper_moves_one_token_and_the_code_moves_all():
    plain = ppo.advantages(REWARDS, VALUES, MASK)[0]
    paper = ppo.advantages(REWARDS, VALUES, MASK, BONUS)[0] - plain
    assert paper == pytest.approx(np.array(CASE["bonus"]))
    code = ppo.advantages(REWARDS, VALUES, MASK, BONUS, placement="pre_whiten_last")[0] - plain
    assert (np.abs(code[MASK > 0]) > 1e-3).all()


def test_a_number_at_the_last_token():
    mask = np.array([[1, 1, 1], [1, 0, 0], [0, 0, 0]])
    assert ppo.at_last_token([1.0, 2.0, 3.0], mask).tolist() == [[0, 0, 1], [2, 0, 0], [0, 0, 0]]
    assert ppo.at_last_token([1.0], np.zeros((1, 0))).shape == (1, 0)


def test_explained_variance():
    returns, mask = np.array([[1.0, 0.0, 1.0, 99.0]]), np.array([[1, 1, 1, 0]])
    assert ppo.explained_variance(returns, returns, mask) == 1
    assert ppo.explained_variance(returns, np.full((1, 4), 0.7), mask) == pytest.approx(0)
    assert ppo.explained_variance(returns, -returns, mask) < 0
    assert np.isnan(ppo.explained_variance(np.ones((1, 4)), returns, mask))
    assert np.isnan(ppo.explained_variance(returns, returns, np.zeros((1, 4))))


@pytest.mark.parametrize("arguments, field", [
    (([[1]], [[1, 2]], [[1]]), "rewards"), (([1], [1], [1]), "rewards"), (([[1, 2]], [[1, 2]], [[0, 1]]), "mask"),
    (([[1]], [[1]], [[1]], 1.5), "gamma"), (([[1]], [[1]], [[1]], 1.0, -0.1), "lam"),
    (([[1]], [[1]], [[1]], float("nan")), "gamma"),
])
def test_wrong_arguments_are_named(arguments, field):
    with pytest.raises(ConfigError) as caught:
        ppo.gae(*arguments)
    assert caught.value.field == field


def test_wrong_placement():
    with pytest.raises(ConfigError, match="ppo_bonus = 'first': must be one of post_whiten_last, pre_whiten_last"):
        ppo.advantages(REWARDS, VALUES, MASK, BONUS, placement="first")
