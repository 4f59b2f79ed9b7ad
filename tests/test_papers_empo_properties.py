"""EMPO: what holds for all groups, and the identities behind the reward."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorl.papers import empo, empo_variants
from explorl.papers.empo import EMPO, Config
from explorl.papers.empo_baselines import vote
from explorl.papers.method import Batch

thousand = settings(max_examples=1000, deadline=None)
answers = st.lists(st.sampled_from(["1", "2", "3", "4", "5", "", " "]), min_size=1, max_size=16)
configs = st.builds(
    Config, reward=st.sampled_from(["p", "log_p"]), rule=st.sampled_from(["first_match", "last_match", "connected"]),
    blank=st.sampled_from(["zero", "share"]), gate=st.sampled_from(["entropy", "frequency", "none"]),
    filtered=st.sampled_from(["drop", "zero"]), adv_clip=st.none() | st.floats(0.1, 3),
    delta_low_nats=st.floats(0, 0.7), delta_high_nats=st.none() | st.floats(0.8, 3),
)


def same(a: str, b: str) -> bool:
    return a == b


# ── Identities (a policy over K answers, softmax of its logits) ──

logits = st.lists(st.floats(-4, 4), min_size=2, max_size=6).map(np.array)


def softmax(z: np.ndarray) -> np.ndarray:
    weights = np.exp(z - z.max())
    return weights / weights.sum()


def policy_gradient(p: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """E[r ∇ log p] over the logits, the reward not differentiated: Σ_c p_c r_c (e_c − p)."""
    return p * reward - p * (p @ reward)


def gradient(function, z: np.ndarray) -> np.ndarray:
    """∂function(softmax(z))/∂z by the chain rule, from the function's own gradient over p."""
    p = softmax(z)
    return (np.diag(p) - np.outer(p, p)) @ function(p)


@thousand
@given(logits)
def test_the_share_as_reward_climbs_half_the_collision_probability(z):
    p = softmax(z)
    collision = gradient(lambda p: 2 * p, z)  # of Σ p²
    assert np.abs(policy_gradient(p, p) - collision / 2).max() < 1e-9


@thousand
@given(logits)
def test_the_log_share_as_reward_climbs_minus_entropy(z):
    p = softmax(z)
    negative_entropy = gradient(lambda p: np.log(p) + 1, z)  # of Σ p log p
    assert np.abs(policy_gradient(p, np.log(p)) - negative_entropy).max() < 1e-9


@settings(max_examples=100, deadline=None)
@given(logits)
def test_the_two_gradients_are_those_of_the_functions_themselves(z):
    """Finite differences of Σp² and −H, so that the identities do not rest on our own derivatives alone."""
    h, p = 1e-5, softmax(z)
    for value, reward, factor in ((lambda p: p @ p, p, 0.5), (lambda p: p @ np.log(p), np.log(p), 1.0)):
        steps = h * np.eye(len(z))
        slope = np.array([(value(softmax(z + e)) - value(softmax(z - e))) / (2 * h) for e in steps])
        assert np.abs(policy_gradient(p, reward) - factor * slope).max() < 1e-8


def test_the_share_is_not_the_gradient_of_entropy():
    z = np.array([1.0, 0.5, 0.0, -2.0])
    p = softmax(z)
    by_share, by_log = policy_gradient(p, p), policy_gradient(p, np.log(p))
    cosine = by_share @ by_log / np.linalg.norm(by_share) / np.linalg.norm(by_log)
    assert cosine < 0.99


@pytest.mark.parametrize("first, second", [(i, j) for i in range(1, 9) for j in range(1, 9) if i != j])
def test_with_two_clusters_of_unequal_size_share_log_share_and_vote_are_one(first, second):
    group = np.random.default_rng([first, second]).permutation(["a"] * first + ["b"] * second).tolist()
    found, config = empo.cluster(group, same), Config(adv_eps=1e-9)
    share, log_share, voted = (empo.normalise(paid, len(group), config) for paid in (
        empo.reward(found), empo.reward(found, Config(reward="log_p")), vote(found)))
    assert share == pytest.approx(log_share, abs=1e-6) and share == pytest.approx(voted, abs=1e-6)


def test_with_three_clusters_they_part():
    found = empo.cluster(["a"] * 4 + ["b"] * 2 + ["c"] * 2 + ["d"], same)
    share, log_share, voted = (empo.normalise(paid, 9) for paid in (
        empo.reward(found), empo.reward(found, Config(reward="log_p")), vote(found)))
    assert np.abs(share - voted).max() > 0.1 and np.abs(share - log_share).max() > 0.05


# ── Properties of any group ──

@thousand
@given(answers)
def test_shares_and_entropy(group):
    found = empo.cluster(group, same)
    size = len(group)
    assert found.p.min() >= 1 / size - 1e-12 and found.p.max() <= 1
    assert -1e-12 <= found.entropy_nats <= math.log(size) + 1e-12
    assert found.entropy_nats == pytest.approx(-np.mean(np.log(found.p)), abs=1e-12), "H is the mean surprise"
    assert (found.entropy_nats < 1e-12) == (found.n_clusters == 1)
    plain = empo.reward(found, Config(blank="share"))
    shares = np.array([np.mean(np.array(found.ids) == c) for c in range(found.n_clusters)])
    assert plain.mean() == pytest.approx((shares**2).sum(), abs=1e-12), "the mean reward is Σ p²"


@thousand
@given(answers)
def test_the_gate_decides_by_counts(group):
    found = empo.cluster(group, same)
    assert (empo.gate(found) == "kept") == (1 < found.n_clusters < len(group))


@thousand
@given(answers, configs)
def test_advantages_are_finite_centred_bounded_and_zero_without_contrast(group, config):
    paid, ids, entropy, keep = empo.rewards(group, same, config)
    advantages = empo.normalise(paid, len(group), config)
    assert np.isfinite(advantages).all() and len(advantages) == len(ids) == len(group)
    if not keep or np.ptp(paid) < 1e-9:
        assert not advantages.any()
    if config.adv_clip is None:
        assert abs(advantages.sum()) < 1e-6
        assert np.abs(advantages).max() <= (len(group) - 1) / math.sqrt(len(group)) + 1e-12
    else:
        assert np.abs(advantages).max() <= config.adv_clip


@thousand
@given(answers, st.randoms(use_true_random=False))
def test_without_blanks_or_bridges_order_does_not_matter(group, random):
    order = list(range(len(group)))
    random.shuffle(order)
    paid, _, entropy, keep = empo.rewards(group, same)
    moved, _, entropy_moved, keep_moved = empo.rewards([group[i] for i in order], same)
    assert moved.tolist() == paid[order].tolist() and keep == keep_moved
    assert entropy == pytest.approx(entropy_moved, abs=1e-12)


@thousand
@given(answers)
def test_a_commoner_answer_is_never_pushed_less(group):
    paid = empo.rewards(group, same)[0]
    advantages, found = empo.normalise(paid, len(group)), empo.cluster(group, same)
    spoken = np.flatnonzero(~found.blank)
    for i in spoken:
        for j in spoken:
            if found.p[i] > found.p[j]:
                assert advantages[i] >= advantages[j]


@thousand
@given(answers, configs)
def test_the_method_is_the_function_group_by_group(group, config):
    texts = [rf"\boxed{{{answer}}}" for answer in group * 2]
    batch = Batch(["q"] * len(texts), texts, [""] * len(texts), len(group))
    method = EMPO(config, same)
    found = method.components(batch)
    paid, ids, entropy, keep = empo.rewards([answer.strip() for answer in group], same, config)
    assert found["reward"].tolist() == paid.tolist() * 2 and found["cluster"].tolist() == ids * 2
    assert set(found["kept"]) == {float(keep)} and set(found["entropy_nats"]) == {entropy}
    advantages = method.advantages(found["reward"], found, batch)
    if config.filtered == "drop":
        assert advantages.keep.tolist() == [keep] * len(texts)
    else:
        assert advantages.keep is None
    assert advantages.values.tolist() == empo.normalise(paid, len(group), config).tolist() * 2


# ── Hostile text ──

pieces = st.sampled_from(["\\boxed{", "}", "{", "<final_answer>", "</final_answer>", "<answer>", "</answer>", "####",
                          "answer is", "9^{9^9}", "\\frac{1}{0}", "\0", "\u202e", "\ud800", "½", "🐙", " ", "1e999"])
hostile = st.lists(st.one_of(pieces, st.text(max_size=6)), max_size=12).map("".join)


@settings(max_examples=300, deadline=None)
@given(st.lists(hostile, min_size=4, max_size=4), st.sampled_from(["boxed", "final_tag", "anywhere"]))
def test_no_text_raises_and_the_same_text_gives_the_same_reward(texts, place):
    batch = Batch(["q"] * 4, texts, ["7"] * 4, 2)
    one, two = (EMPO(Config(answer_from=place), same).components(batch) for _ in range(2))
    for name, column in one.items():
        assert np.isfinite(column).all() and column.tolist() == two[name].tolist()


ATTACKS = {
    "a megabyte": "x" * 1_000_000,
    "boxes": "\\boxed{" * 50_000,
    "closed boxes": "\\boxed{" * 20_000 + "7" + "}" * 20_000,
    "tags": "<final_answer>" * 20_000,
    "digits": "\\boxed{" + "9" * 200_000 + "}",
    "cues": "answer is " * 20_000,
    "not text": None,
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("place", ["boxed", "final_tag", "anywhere"])
def test_attacks_are_read_in_bounded_time(name, place):
    start = time.process_time()
    batch = Batch(["q"] * 4, [ATTACKS[name]] * 4, ["7"] * 4, 4)
    found = EMPO(Config(answer_from=place), same).components(batch)
    assert time.process_time() - start < 5, "quadratic or worse"
    assert all(np.isfinite(column).all() for column in found.values())


@settings(max_examples=300, deadline=None)
@given(st.lists(hostile, min_size=1, max_size=6), hostile)
def test_published_variants_do_not_raise_either(texts, question):
    for variant in ("trl_head", "trl_first_release", "verl_head", "verl_voting"):
        paid, ids = getattr(empo_variants, variant)(texts, same)
        assert np.isfinite(paid).all() and len(paid) == len(ids) == len(texts)
    assert np.isfinite(empo_variants.natural_official(texts, same, question)[0]).all()


def test_copying_is_measured_in_bounded_time():
    start = time.process_time()
    empo_variants.copies("a b " * 50_000, "b a c " * 50_000)
    assert time.process_time() - start < 2
