"""What the bonus follows: facts from the equations, rank correlation, and probes of novelty."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu, spearmanr

from explorl.errors import ConfigError
from explorl.papers import imagine_measures as measures
from explorl.papers import imagine_published
from explorl.papers.imagine import Config, Novelty, bonus, integrate, layout, outcome_advantages


@given(st.integers(2, 16), st.data())
def test_two_scores_decide_the_advantages(size, data):
    right = data.draw(st.integers(1, size - 1))
    for low in (0.0, 0.1):
        scores = [1.0] * right + [low] * (size - right)
        found = outcome_advantages(scores, size, Config(adv_eps=1e-12))
        up, down = measures.binary_advantages(right, size)
        assert found == pytest.approx([up] * right + [down] * (size - right))


def test_the_sheets_advantages():
    found = [tuple(round(a, 4) for a in measures.binary_advantages(k, 5)) for k in (1, 2, 3, 4)]
    assert found == [(1.7889, -0.4472), (1.0954, -0.7303), (0.7303, -1.0954), (0.4472, -1.7889)]
    for right in (0, 5):
        with pytest.raises(ConfigError, match="right"):
            measures.binary_advantages(right, 5)


@pytest.mark.parametrize("size, last", [(5, 4), (8, 16)])
def test_until_when_a_wrong_answer_is_lifted_above_zero(size, last):
    scores, errors = [1.0] + [0.1] * (size - 1), [0.0] + [0.5] * (size - 2) + [1.0]
    for n, lifted in ((last, True), (last + 1, False)):
        found = integrate(scores, bonus(errors, np.array(scores) >= 1, n), size)
        assert bool(found[-1] > 0) is lifted
        assert (n < measures.lifted_until(1, size)) is lifted
    assert measures.lifted_until(1, 16) == pytest.approx(40)


def test_the_whole_budget():
    assert measures.decay_budget(250) == pytest.approx(79.67, abs=0.005) and measures.decay_budget(0) == 0


numbers = st.lists(st.integers(0, 5), min_size=2, max_size=30)


@given(numbers, st.data())
def test_rank_correlation_is_spearmans(a, data):
    b = data.draw(st.lists(st.integers(0, 5), min_size=len(a), max_size=len(a)))
    found = measures.rank_correlation(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(a, b).statistic, abs=1e-9)
    with pytest.raises(ConfigError):
        measures.rank_correlation(a, b + [1])


@given(numbers, numbers)
def test_auc_is_mann_whitneys(novel, familiar):
    expected = mannwhitneyu(novel, familiar, method="asymptotic").statistic / (len(novel) * len(familiar))
    assert measures.auc(novel, familiar) == pytest.approx(expected)


def test_auc_of_nothing():
    with pytest.raises(ConfigError):
        measures.auc([], [1.0])


def test_probes_keep_the_length():
    generator = np.random.default_rng(0)
    assert measures.shifted([1, 2, 3], 9, by=2) == [9, 9, 1] and measures.shifted([], 9) == []
    drawn = measures.gibberish([0] * 500, 7, generator)
    assert len(drawn) == 500 and set(drawn) == set(range(7))


@pytest.fixture(scope="module")
def familiar():
    generator = np.random.default_rng(0)
    return [generator.integers(20, size=24).tolist() for _ in range(16)]


def trained(kind: str, familiar) -> Novelty:
    config = Config(max_prompt_tokens=0, max_completion_tokens=24, novelty_input=kind, lr=1e-2, hidden=(32, 16))
    found = Novelty(40, config)
    rows = layout([[]] * 16, familiar, config)
    for _ in range(60):
        found.update(*rows)
    return found


def test_flat_input_takes_a_shift_by_one_token_for_something_new(familiar):
    others = [np.random.default_rng(1).permutation(ids).tolist() for ids in familiar]
    flat = measures.what_scores_as_novel(trained("flat_bn", familiar), familiar, others)
    assert flat["same"] == 0.5 and flat["shifted"] > 0.8 and flat["others"] > 0.8 and flat["gibberish"] > 0.8


def test_pooled_input_does_not_see_order(familiar):
    novelty = trained("pooled", familiar)
    before = novelty.state_dict()["weights"]
    turned = [ids[::-1] for ids in familiar]
    pooled = measures.what_scores_as_novel(novelty, familiar, turned, prompts=[[1]] * 16)
    assert list(pooled) == ["same", "shifted", "others", "gibberish"]
    assert abs(pooled["others"] - 0.5) < 0.1 and pooled["gibberish"] > 0.7
    assert all((before[name] == value).all() for name, value in novelty.state_dict()["weights"].items())
    with pytest.raises(ConfigError, match="others"):
        measures.what_scores_as_novel(novelty, familiar, turned[:3])


def test_a_batchs_summary():
    components = {"oc": np.array([1, 0, 0, 0, 0, 0]), "bonus": np.array([0, .1, .3, .2, .4, .0]),
                  "novelty_error": np.array([1, 2, 3, 4, 5, 6.0])}
    found = measures.summary(components, [1, -.2, .1, .2, .4, 0], [6, 5, 4, 3, 2, 1], [0, 0, 0, 0, 1, 0], 3)
    assert found == pytest.approx({
        "novelty_length_rho": -1, "bonus_median": .2, "bonus_max": .4, "bonus_truncated": .4, "wrong_lifted": .6,
        "all_wrong_groups": .5})
    nothing = measures.summary(components | {"oc": np.ones(6), "bonus": np.zeros(6)}, [0] * 6, [1] * 6, [0] * 6, 3)
    assert nothing.pop("all_wrong_groups") == 0 and all(np.isnan(value) for value in nothing.values())
    assert measures.by_group_accuracy(components["bonus"], components["oc"], 3) == pytest.approx({0: .2, 1: .4 / 3})


def test_what_was_published():
    assert imagine_published.minmax([.01, .03, .02, .05, .042]) == pytest.approx([0, .25, .125, .5, .4])
    scores = [1, .1, .1, 0, .1]
    found = imagine_published.group_advantages(scores)
    assert found.dtype == np.float32
    assert found == pytest.approx([1.779134, -.384678, -.384678, -.625101, -.384678], abs=2e-6)
    assert imagine_published.group_advantages([0.1]).tolist() == pytest.approx([0.1])


@pytest.mark.parametrize("pad", ["own", "zero"])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_longest_rows_set_the_scale_and_most_get_next_to_nothing(pad, seed):
    """A position that k of N rows reach is standardised to about √(N/k), so long rows saturate the networks."""
    config = Config(max_prompt_tokens=0, max_completion_tokens=192, pad=pad, seed=seed)
    generator = np.random.default_rng([seed, 5])
    lengths = np.clip(generator.lognormal(4.1, 0.45, size=512), 1, 192).astype(int)
    ids = [generator.integers(1000, size=length).tolist() for length in lengths]
    errors = Novelty(1000, config).errors(*layout([[]] * 512, ids, config))
    assert (lengths <= lengths[errors.argmax()]).mean() > 0.9
    paid = bonus(errors, [False] * 512, 0, config)
    assert paid.max() == 0.5 and np.median(paid) < 0.1
    for kind in ("rank", "quantile"):
        robust = bonus(errors, [False] * 512, 0, Config(novelty_scale=kind))
        assert np.median(robust) > 2 * np.median(paid)
