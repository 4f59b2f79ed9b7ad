"""SD-E²: what holds for all embeddings, batches and texts (properties of the specification's §6.5)."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from explorl import encoders
from explorl.papers import sde2
from explorl.papers.method import group_normalise
from explorl.papers.sde2 import Config
from explorl.text.strategies import preprocess

thousand = settings(max_examples=1000, deadline=None)
RANDOM = encoders.load("random")


def embeddings(min_rows: int = 0):
    coordinate = st.floats(-10, 10, width=32).map(lambda x: 0.0 if abs(x) < 1e-3 else x)
    return st.integers(min_rows, 7).flatmap(lambda m: arrays(np.float64, (m, 3), elements=coordinate))


@st.composite
def completions(draw):
    """A completion with up to seven strategies, some repeated, with or without a final answer."""
    blocks = draw(st.lists(st.tuples(st.sampled_from("abcdefg"), st.sampled_from(["18", "20", "x"])), max_size=7))
    text = "".join(f"<strategy><reasoning>{r}</reasoning><strategy_outcome>{o}</strategy_outcome></strategy>"
                   for r, o in blocks)
    return text + draw(st.sampled_from(["", "<final_answer>18</final_answer>", "<answer>20</answer>"]))


configs = st.builds(
    Config, single_div=st.sampled_from([0.0, 1.0]), rho=st.floats(0, 2), beta_cap=st.floats(0, 0.9),
    delta=st.floats(0.05, 0.95), dup_key=st.sampled_from(["block", "reasoning", "none"]),
    uniq_against=st.sampled_from(["kept", "all_previous"]), delta_inclusive=st.booleans(),
    final_requires_tag=st.booleans(),
)


@thousand
@given(embeddings(), st.floats(0.05, 0.95), st.sampled_from(["kept", "all_previous"]), st.booleans())
def test_ranges(H, delta, against, inclusive):
    m = len(H)
    kept = sde2.uniq(H, delta, uniq_against=against, delta_inclusive=inclusive)
    assert 0 <= sde2.div(H) <= 1
    assert min(m, 1) <= len(kept) <= m and kept == sorted(set(kept)) and (not m or kept[0] == 0)
    assert 0 <= sde2.novelty(H, Config(delta=delta)) <= m
    assert np.all(np.abs(sde2.pairwise_cosine(H)) <= 1)


@thousand
@given(embeddings(), st.floats(0.05, 0.95))
def test_kept_strategies_are_pairwise_below_delta_and_every_dropped_one_is_near_a_kept_one(H, delta):
    kept, similarity = sde2.uniq(H, delta), sde2.pairwise_cosine(H)
    for i in range(len(H)):
        nearest = max((similarity[i, j] for j in kept if j < i), default=-1.0)
        assert (nearest <= delta + 1e-6) == (i in kept)


@thousand
@given(embeddings(2), st.randoms(use_true_random=False), st.lists(st.floats(0.01, 100), min_size=7, max_size=7))
def test_div_does_not_depend_on_order_or_length_of_the_vectors(H, random, scales):
    order = list(range(len(H)))
    random.shuffle(order)
    assert sde2.div(H[order]) == pytest.approx(sde2.div(H), abs=1e-9)
    assert sde2.div(H * np.array(scales[: len(H)])[:, None]) == pytest.approx(sde2.div(H), abs=1e-9)


def test_uniq_depends_on_order():
    a, d, c = [1, 0], [12, 5], [3, 4]
    assert len(sde2.uniq([a, d, c], 0.8)) == 2 and len(sde2.uniq([d, a, c], 0.8)) == 1


def test_g_is_not_monotone():
    assert sde2.novelty([[1, 0], [3, 4]]) < sde2.novelty([[1, 0]])


@thousand
@given(completions(), configs)
def test_exploration_never_pays_more_than_counting_and_components_stay_in_range(text, config):
    found = sde2.stages(text, "18", RANDOM, config)
    assert found.sd <= found.rd
    assert 0 <= found.sd <= max(config.alpha, config.beta_cap)
    assert 0 <= found.fa <= 1 + config.gamma_a + config.gamma_c
    assert found.oc in (0, 1) and found.re == found.chi
    if found.chi:
        assert found.sd == found.rd == config.alpha
    assert found.correct_strict <= found.correct_fallback and found.complete <= found.final


@thousand
@given(embeddings(1), completions())
def test_a_right_strategy_earns_alpha_whatever_the_embeddings(H, text):
    right = text + "<strategy><reasoning>z</reasoning><strategy_outcome>18</strategy_outcome></strategy>"
    found = sde2.stages(right, "18", lambda texts: H[np.arange(len(texts)) % len(H)])
    assert found.chi == 1 and found.sd == Config().alpha


values = st.sampled_from([0.0, 0.04, 0.1, 0.25, 0.5, 1.0])


def batches(groups: int, size: int):
    row = arrays(np.float64, groups * size, elements=values)
    return st.fixed_dictionaries({name: row for name in ("oc", "re", "fa", "sd")})


@thousand
@given(batches(1, 6))
def test_totals_of_a_single_group_sum_to_zero(raw):
    assert abs(sde2.aggregate(raw).mean()) < 1e-12


@thousand
@given(batches(3, 4), st.sampled_from(["oc", "re", "fa", "sd"]), st.floats(0.1, 10), st.floats(-5, 5))
def test_shifting_or_scaling_a_component_changes_no_advantage(raw, name, scale, shift):
    total = sde2.aggregate(raw)
    moved = sde2.aggregate(raw | {name: scale * raw[name] + shift})
    spread = total.reshape(3, 4).std(axis=1)
    assume((spread > 0.01).all())  # where a group has almost no contrast, ε decides
    assert group_normalise(moved, 4) == pytest.approx(group_normalise(total, 4), abs=0.01)


@thousand
@given(batches(2, 3), st.sampled_from([1e-9, 1e-6, 1.0]))
def test_advantages_are_finite_and_flat_groups_get_none(raw, eps):
    flat = {name: np.concatenate([x[:3], np.repeat(x[3], 3)]) for name, x in raw.items()}
    config = Config(eps=eps)
    advantages = sde2.group_advantages(sde2.aggregate(flat, config), 3, config).values
    assert np.isfinite(advantages).all() and not advantages[3:].any()


tags = st.sampled_from(
    ["<strategy>", "<strategy id='1'>", "</strategy>", "<reasoning>", "</reasoning>", "<strategy_outcome>",
     "</strategy_outcome>", "<final_answer>", "</final_answer>", "<answer>", "</answer>", "<", ">", "18", "1/0",
     "9**9**9", "\\boxed{", "}", "\\frac{1}{0}", "\0", "\u202e", "“", "—", "```", "\ud800", "½", " ", "=", "1e999"]
)
hostile = st.lists(st.one_of(tags, st.text(max_size=8)), max_size=25).map("".join)


@thousand
@given(hostile)
def test_no_text_raises_and_scoring_is_deterministic_and_blind_to_preprocessing(text):
    first = sde2.stages(text, "18", RANDOM)
    again = sde2.stages(text, "18", encoders.load("random"))
    clean = sde2.stages(preprocess(text), "18", RANDOM)
    for name in ("oc", "re", "fa", "sd", "rd", "n_strategies", "g"):
        assert getattr(first, name) == getattr(again, name) == getattr(clean, name)
        assert np.isfinite(getattr(first, name))


BLOCK = "<strategy><reasoning>{0}</reasoning><strategy_outcome>{0}</strategy_outcome></strategy>"
ATTACKS = {
    "empty": "",
    "a megabyte": "x" * 1_000_000,
    "openers": "<strategy><reasoning>" * 20_000,
    "nested": "<strategy>" * 5_000 + "</strategy>" * 5_000,
    "ten thousand blocks": "".join(BLOCK.format(i) for i in range(10_000)),
    "braces": "<final_answer>" + "\\boxed{" * 50_000 + "</final_answer>",
    "fractions": "<final_answer>" + "\\frac{" * 20_000 + "1" + "}" * 20_000 + "</final_answer>",
    "digits": "<final_answer>" + "9" * 200_000 + "</final_answer>",
    "powers": "<final_answer>9**9**9</final_answer>",
    "nulls": "\0" * 100_000,
    "not text": None,
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_give_values_in_bounded_time(name):
    start = time.process_time()
    found = sde2.components([ATTACKS[name]] * 2, "18", lambda texts: np.ones((len(texts), 4)))
    assert time.process_time() - start < 10, "quadratic or worse"
    assert all(np.isfinite(column).all() for column in found.values()) and found["oc"].tolist() == [0, 0]


def test_the_same_batch_twice_gives_the_same_bits():
    texts = [BLOCK.format(i % 5) * (i % 3) + "<final_answer>18</final_answer>" for i in range(12)]
    one, two = (sde2.components(texts, "18", encoders.load("random")) for _ in range(2))
    assert all(np.array_equal(one[name], two[name]) for name in one)
