import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import comb
from scipy.stats import t

from explorl.errors import ConfigError
from explorl.report import stats

VECTORS = json.loads((Path(__file__).parent / "vectors" / "sde2.json").read_text())


@pytest.mark.parametrize("key, k, n", [("ci_3_of_4", 3, 4), ("ci_1082_1319", 1082, 1319),
                                       ("ci_1062_1319", 1062, 1319)])
@pytest.mark.parametrize("method", ["wilson", "wald"])
def test_intervals_match_the_papers_vectors(key, k, n, method):
    expected = VECTORS["metrics"][key][method]
    assert [100 * x for x in getattr(stats, method)(k, n)] == pytest.approx(expected, abs=1e-9)


def test_wilson_stays_inside_and_wald_does_not():
    assert stats.wilson(0, 10).low == pytest.approx(0, abs=1e-12) and stats.wilson(0, 10).high > 0.2
    assert stats.wilson(10, 10).high == pytest.approx(1)
    assert stats.wald(3, 4).high > 1
    assert stats.wald(0, 10) == (0, 0)


@given(st.integers(1, 40), st.data())
def test_pass_at_k_equals_the_binomial_form(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    exact = 1 - comb(n - c, k, exact=True) / comb(n, k, exact=True)
    assert stats.pass_at_k(n, c, k) == pytest.approx(exact, abs=1e-12)


def test_pass_at_k_by_hand():
    assert stats.pass_at_k(4, 2, 1) == 0.5
    assert stats.pass_at_k(4, 2, 2) == pytest.approx(5 / 6)
    assert stats.pass_at_k(4, 0, 4) == 0 and stats.pass_at_k(4, 1, 4) == 1
    assert 0 < stats.pass_at_k(100_000, 3, 1000) < 0.03


def test_paired_counts_discordant_items_and_mcnemar_by_hand():
    a = [1] * 10 + [1] * 6 + [0] * 1 + [0] * 3
    b = [1] * 10 + [0] * 6 + [1] * 1 + [0] * 3
    result = stats.paired(a, b)
    assert (result.only_a, result.only_b, result.n) == (6, 1, 20)
    assert result.difference == pytest.approx(5 / 20)
    assert result.p_value == pytest.approx(2 * (1 + 7) / 2**7)
    assert result.low < 0.25 < result.high and result.low > -0.1


def test_paired_is_seeded_and_antisymmetric():
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 2, 60), rng.integers(0, 2, 60)
    assert stats.paired(a, b, seed=1) == stats.paired(a, b, seed=1)
    swapped = stats.paired(b, a)
    assert swapped.difference == -stats.paired(a, b).difference
    assert swapped.p_value == pytest.approx(stats.paired(a, b).p_value)


def test_paired_survives_degenerate_data():
    same = stats.paired([1, 0, 1], [1, 0, 1])
    assert (same.difference, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    allwon = stats.paired([1, 1], [0, 0])
    assert (allwon.low, allwon.high) == (1, 1) and allwon.p_value == pytest.approx(0.5)
    assert math.isfinite(stats.paired([1] + [0] * 30, [0] * 31).high)


def test_seed_interval_is_the_t_interval():
    values = [0.41, 0.44, 0.39, 0.47, 0.42]
    got = stats.seed_interval(values)
    low, high = t.interval(0.95, 4, loc=np.mean(values), scale=np.std(values, ddof=1) / math.sqrt(5))
    assert got == pytest.approx((np.mean(values), low, high, 5))
    assert stats.seed_interval([0.3]) == (0.3, -math.inf, math.inf, 1)
    assert stats.seed_interval([0.3, 0.3])[:3] == pytest.approx((0.3, 0.3, 0.3))


def test_spearman_value_and_interval():
    x = np.arange(12)
    y = np.array([1, 0, 2, 3, 5, 4, 6, 7, 8, 10, 9, 11])
    got = stats.spearman(x, y)
    assert got.value == pytest.approx(1 - 6 * 6 / (12 * 143))
    assert 0.8 < got.low < got.value < got.high < 1
    flipped = stats.spearman(x, -y)
    assert (flipped.low, flipped.high) == pytest.approx((-got.high, -got.low))


def test_spearman_of_a_perfect_or_absent_order():
    perfect = stats.spearman([1, 2, 3, 4], [10, 20, 30, 40])
    assert perfect.value == 1 == perfect.high and perfect.low < 0
    nothing = stats.spearman([1, 1, 1, 1], [1, 2, 3, 4])
    assert math.isnan(nothing.value) and (nothing.low, nothing.high) == (-1, 1)


def test_spearman_interval_covers():
    rng = np.random.default_rng(0)
    truth, hits = 6 / math.pi * math.asin(0.6 / 2), 0
    for _ in range(300):
        x = rng.normal(size=40)
        got = stats.spearman(x, 0.6 * x + 0.8 * rng.normal(size=40))
        hits += got.low <= truth <= got.high
    assert 0.91 < hits / 300 < 0.99


def test_coverage_by_chance_reproduces_the_audit():
    assert stats.coverage_by_chance(0.4876, 4.19) == pytest.approx(0.939, abs=5e-4)
    assert stats.coverage_by_chance(0.25, 4) == pytest.approx(1 - 0.75**4)
    assert stats.coverage_by_chance(0.3, 0) == 0


@pytest.mark.parametrize("call, field", [
    (lambda: stats.wilson(1, 0), "n"), (lambda: stats.wilson(5, 4), "k"), (lambda: stats.wald(-1, 4), "k"),
    (lambda: stats.wilson(1, 4, 1.5), "confidence"), (lambda: stats.pass_at_k(4, 1, 5), "k"),
    (lambda: stats.paired([1, 0], [1]), "b"), (lambda: stats.paired([], []), "b"),
    (lambda: stats.paired([0.5, 1], [1, 0]), "a"), (lambda: stats.seed_interval([]), "values"),
    (lambda: stats.seed_interval([math.nan, 1]), "values"), (lambda: stats.spearman([1, 2, 3], [1, 2, 3]), "x, y"),
    (lambda: stats.coverage_by_chance(1.2, 3), "p"), (lambda: stats.coverage_by_chance(0.5, -1), "m"),
    (lambda: stats.coverage_by_chance(0.5, math.nan), "m")])
def test_bad_settings_name_the_field(call, field):
    with pytest.raises(ConfigError) as caught:
        call()
    assert caught.value.field == field
