"""The networks: the worked forward pass, an independent model of the published one, what is frozen, and resuming."""

import copy
import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from explorl.errors import ConfigError
from explorl.papers import imagine
from explorl.papers.imagine import OFFICIAL, Config, Novelty, layout
from explorl.papers.imagine_tokens import TokenNovelty, costs, states_per_prefix

VECTORS = json.loads((Path(__file__).parent / "vectors" / "imagine.json").read_text(encoding="utf-8"))["numeric"]
VOCAB, WIDTH = 12, 6
SMALL = {"max_prompt_tokens": 2, "max_completion_tokens": 4, "emb_dim": 4}


def rows(n: int = 8, seed: int = 0, vocab: int = VOCAB) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, 5, size=n)
    return layout([generator.integers(vocab, size=2).tolist() for _ in range(n)],
                  [generator.integers(vocab, size=length).tolist() for length in lengths], Config(**SMALL))


def novelty(**settings) -> Novelty:
    return Novelty(VOCAB, Config(**SMALL | settings))


def weights(of: Novelty) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in of.network.state_dict().items()}


# ── The published networks ──

def test_worked_forward_pass():
    case = VECTORS["V9_rnd_tiny"]
    config = Config(max_prompt_tokens=0, max_completion_tokens=3, emb_dim=2, hidden=(2,), pad="zero")
    found = Novelty(5, config)
    state = {"embedding.weight": case["emb"]}
    for side in ("target", "predictor"):
        for layer, place in ((1, 0), (2, 2)):
            state[f"{side}.{place}.weight"] = case[side][f"W{layer}"]
            state[f"{side}.{place}.bias"] = case[side][f"b{layer}"]
    found.network.load_state_dict({k: torch.tensor(v, dtype=torch.float32) for k, v in state.items()}, strict=False)
    ids, mask = np.array(case["ids"]), np.ones((4, 3), dtype=bool)
    guess, known = found.network.outputs(torch.tensor(ids), torch.tensor(mask))
    assert known.numpy().ravel() == pytest.approx(case["target_out"], abs=1e-6)
    assert guess.detach().numpy().ravel() == pytest.approx(case["pred_out"], abs=1e-6)
    errors = found.errors(ids, mask)
    assert errors == pytest.approx(case["err"], abs=1e-6)
    assert imagine.bonus(errors, [False] * 4, 0) == pytest.approx(case["bonus_alpha0.5"], abs=1e-6)
    assert imagine.bonus(case["err"], [False] * 4, 0) == pytest.approx(case["bonus_alpha0.5"], abs=1e-6)
    assert found.update(ids, mask) == pytest.approx(case["loss"], abs=1e-6)


class Reference(nn.Module):
    """The published model from its description: one embedding, one batch norm, two stacks, AdamW over everything."""

    def __init__(self):
        super().__init__()
        features = 4 * WIDTH
        self.table, self.norm = nn.Embedding(VOCAB, 4), nn.BatchNorm1d(features)
        self.known, self.guess = (
            nn.Sequential(nn.Linear(features, 16), nn.LeakyReLU(), nn.Linear(16, 8), nn.LeakyReLU(), nn.Linear(8, 1),
                          nn.Sigmoid()) for _ in range(2))
        self.steps = torch.optim.AdamW(self.parameters(), lr=1e-3)

    def call(self, ids, mask):
        x = self.norm(self.table(torch.tensor(ids * mask)).reshape(len(ids), -1))
        with torch.no_grad():
            aim = self.known(x)
        gaps = (self.guess(x) - aim).square().squeeze(1)
        self.steps.zero_grad()
        gaps.mean().backward()
        self.steps.step()
        return gaps.detach().numpy()


def test_thirty_updates_equal_the_published_model():
    ours = novelty(pad="zero")
    theirs = Reference().train()
    theirs.table.load_state_dict(ours.network.embedding.state_dict())
    theirs.known.load_state_dict(ours.network.target.state_dict())
    theirs.guess.load_state_dict(ours.network.predictor.state_dict())
    for step in range(30):
        ids, mask = rows(seed=step)
        assert ours.observe(ids, mask)[0] == pytest.approx(theirs.call(ids, mask), rel=1e-4, abs=1e-7)
    table, theirs_table = (x.weight.detach().numpy() for x in (ours.network.embedding, theirs.table))
    assert table == pytest.approx(theirs_table, abs=1e-5)
    assert ours.calls == 30


def test_published_sizes():
    found = Novelty(151_936, OFFICIAL)
    sizes = {name: sum(p.numel() for n, p in found.network.named_parameters() if n.split(".")[0] == name)
             for name in ("embedding", "target", "predictor", "scale", "shift")}
    assert sizes == {"embedding": 2_430_976, "target": 327_841, "predictor": 327_841, "scale": 20_480, "shift": 20_480}


# ── What may change, and what may not ──

@pytest.mark.parametrize("options, changing", [
    ({}, {"embedding", "scale", "shift", "predictor"}),
    ({"embedding": "own"}, {"embedding", "scale", "shift", "predictor"}),
    ({"embedding": "frozen"}, {"predictor"}), ({"novelty_input": "pooled"}, {"predictor"}),
], ids=["shared", "own", "frozen", "pooled"])
def test_only_the_predictor_side_learns(options, changing):
    found = novelty(**options)
    before = weights(found)
    for step in range(5):
        found.update(*rows(seed=step))
    after = weights(found)
    changed = {name.split(".")[0] for name in before if not np.array_equal(before[name], after[name])}
    assert changed == changing
    assert all(p.grad is None for name, p in found.network.named_parameters() if name.startswith("target"))


def test_the_target_function_drifts_with_a_shared_embedding_and_not_with_its_own():
    ids, mask = (torch.from_numpy(x) for x in rows())
    for kind, drifts in (("shared", True), ("own", False), ("frozen", False)):
        found = novelty(embedding=kind)
        before = found.network.outputs(ids, mask)[1]
        for step in range(20):
            found.update(*rows(seed=step))
        assert torch.equal(before, found.network.outputs(ids, mask)[1]) is not drifts


@pytest.mark.parametrize("options", [{}, {"embedding": "own"}, {"embedding": "frozen"}, {"novelty_input": "pooled"},
                                     {"pad": "zero"}, {"out_dim": 3, "hidden": ()}], ids=str)
def test_what_is_seen_again_becomes_familiar(options):
    found = novelty(**{"lr": 1e-2} | options)
    ids, mask = rows()
    first = found.errors(ids, mask).mean()
    for _ in range(50):
        found.update(ids, mask)
    assert found.errors(ids, mask).mean() < first / 2


def test_reading_changes_nothing_and_the_bonus_is_read_before_the_update():
    found, ids_mask = novelty(), rows()
    before = weights(found)
    errors = found.errors(*ids_mask)
    assert all(np.array_equal(before[name], value) for name, value in weights(found).items()) and found.calls == 0
    seen, loss = found.observe(*ids_mask)
    assert seen.tolist() == errors.tolist() and loss == pytest.approx(errors.mean())
    assert found.errors(*ids_mask).tolist() != errors.tolist() and found.calls == 1
    assert isinstance(seen, np.ndarray) and seen.dtype == np.float64, "no gradient comes with it"


@pytest.mark.parametrize("options", [{}, {"pad": "zero"}, {"novelty_input": "pooled"}], ids=str)
def test_what_the_mask_hides_does_not_count(options):
    found, (ids, mask) = novelty(**options), rows()
    other = np.where(mask, ids, 99_999)
    assert found.errors(other, mask).tolist() == found.errors(ids, mask).tolist()


def test_padding_looks_like_token_zero_only_as_published():
    ids, mask = rows()
    ids[0], mask[0], ids[1], mask[1] = 3, True, 3, True
    ids[0, 5], mask[1, 5] = 0, False
    for pad, same in (("zero", True), ("own", False)):
        errors = novelty(pad=pad).errors(ids, mask)
        assert bool(np.isclose(errors[0], errors[1], rtol=1e-6, atol=0)) is same


@settings(max_examples=20, deadline=None)
@given(st.permutations(range(8)))
def test_rows_may_come_in_any_order(order):
    ids, mask = rows()
    for options in ({}, {"novelty_input": "pooled"}):
        found = novelty(**options)
        expected = found.errors(ids, mask)[order]
        assert found.errors(ids[order], mask[order]) == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_pooled_is_blind_to_order_and_to_company_and_flat_is_not():
    ids, mask = rows()
    mask[:] = True
    turned = ids[:, ::-1].copy()
    pooled, flat = novelty(novelty_input="pooled"), novelty()
    assert pooled.errors(turned, mask) == pytest.approx(pooled.errors(ids, mask), rel=1e-4)
    assert pooled.errors(ids[:4], mask[:4]) == pytest.approx(pooled.errors(ids, mask)[:4], rel=1e-4)
    ids[0] = [1, 2, 3, 4, 5, 6]
    assert flat.errors(ids[:, ::-1].copy(), mask)[0] != pytest.approx(flat.errors(ids, mask)[0], rel=1e-3)
    assert flat.errors(ids[:4], mask[:4]) != pytest.approx(flat.errors(ids, mask)[:4], rel=1e-3)


def test_equal_rows_get_equal_numbers_to_the_last_bit():
    ids, mask = rows(200)
    ids[50:], mask[50:] = np.tile(ids[:50], (3, 1)), np.tile(mask[:50], (3, 1))
    errors = novelty().errors(ids, mask)
    assert errors[50:].tolist() == np.tile(errors[:50], 3).tolist()
    same = novelty()
    errors = same.errors(np.tile(ids[:1], (33, 1)), np.tile(mask[:1], (33, 1)))
    assert imagine.bonus(errors, [False] * 33, 0).tolist() == [0.0] * 33, "published: NaN"


# ── Seeds and resuming ──

def test_nobody_elses_random_numbers_change():
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    found = novelty()
    found.update(*rows())
    assert torch.rand(3).tolist() == expected


def test_seed_decides_the_networks():
    first, again, other = (weights(novelty(seed=seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(first[name], again[name]) for name in first)
    assert not np.array_equal(first["target.0.weight"], other["target.0.weight"])
    assert not np.array_equal(first["target.0.weight"], first["predictor.0.weight"])


@pytest.mark.parametrize("options", [{}, {"novelty_input": "pooled"}, {"embedding": "own"}], ids=str)
def test_a_resumed_predictor_goes_on_exactly(options):
    whole, before, after = (novelty(**options) for _ in range(3))
    expected = [whole.observe(*rows(seed=step)) for step in range(8)]
    for step in range(4):
        before.update(*rows(seed=step))
    file = io.BytesIO()
    torch.save(before.state_dict(), file)
    file.seek(0)
    after.load_state_dict(torch.load(file, weights_only=True))
    before.update(*rows(seed=77))  # the copy must not follow
    assert after.calls == 4
    for step in range(4, 8):
        errors, loss = after.observe(*rows(seed=step))
        assert errors.tolist() == expected[step][0].tolist() and loss == expected[step][1]
    assert after.calls == 8 and after.running.std == whole.running.std


def test_a_state_is_a_copy():
    found = novelty()
    found.update(*rows())
    state = found.state_dict()
    kept = copy.deepcopy(state)
    found.update(*rows(seed=1))
    assert all(torch.equal(state["weights"][name], kept["weights"][name]) for name in kept["weights"])
    assert state["calls"] == 1 and found.calls == 2


# ── Layout and guards ──

def test_layout_keeps_the_prompts_end_and_the_completions_beginning():
    ids, mask = layout([[1, 2, 3], [4], []], [[5], [6, 7, 8, 9, 10], []], Config(**SMALL))
    assert ids.tolist() == [[2, 3, 5, 0, 0, 0], [0, 4, 6, 7, 8, 9], [0] * 6]
    assert mask.tolist() == [[True] * 3 + [False] * 3, [False] + [True] * 5, [False] * 6]
    none = Config(max_prompt_tokens=0, max_completion_tokens=2)
    assert layout([[1, 2]], [[3]], none)[0].tolist() == [[3, 0]]
    with pytest.raises(ConfigError, match="prompt_ids"):
        layout([], [[1]])


def test_one_row_wants_company_only_where_it_is_normalised_by_it():
    ids, mask = rows(1)
    for call in ("errors", "update", "observe"):
        with pytest.raises(ConfigError, match="completions = 1: must be at least 2"):
            getattr(novelty(), call)(ids, mask)
    assert imagine.bonus(novelty(novelty_input="pooled").errors(ids, mask), [False], 0).tolist() == [0.0]


def test_empty_rows_and_batches():
    ids, mask = np.zeros((3, WIDTH), dtype=int), np.zeros((3, WIDTH), dtype=bool)
    for options in ({}, {"novelty_input": "pooled"}):
        found = novelty(**options)
        assert np.ptp(found.observe(ids, mask)[0]) == 0 and np.isfinite(found.errors(ids, mask)).all()
        before = weights(found)
        assert found.errors(ids[:0], mask[:0]).tolist() == [] and found.observe(ids[:0], mask[:0])[1] == 0
        assert all(np.array_equal(before[name], value) for name, value in weights(found).items()) and found.calls == 2


@pytest.mark.parametrize("change, field", [
    (lambda ids, mask: (ids[:, :3], mask[:, :3]), "ids"), (lambda ids, mask: (ids, mask[:4]), "ids"),
    (lambda ids, mask: (ids[0], mask[0]), "ids"), (lambda ids, mask: (ids + 12, mask), "vocab_size"),
    (lambda ids, mask: (ids - 12, mask), "vocab_size"),
])
def test_wrong_rows_are_named(change, field):
    with pytest.raises(ConfigError) as caught:
        novelty().errors(*change(*rows()))
    assert caught.value.field == field


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_wrong_vocabulary(size):
    with pytest.raises(ConfigError, match="vocab_size"):
        Novelty(size)


def test_the_last_token_of_the_vocabulary_is_no_padding():
    ids, mask = rows()
    ids[0, 3], mask[0, 3] = VOCAB - 1, True
    assert np.isfinite(novelty().errors(ids, mask)).all()


# ── Every prefix ──

def test_counts_of_prefixes():
    case = VECTORS["V11_prefix_counts"]
    found, states = costs(case["lengths"]), states_per_prefix(case["lengths"])
    assert (found.inputs_tokens, found.inputs_sequences) == (2434, 5)
    assert found.inputs_tokens == case["token_level_inputs"] == states.sum()
    assert found.positions_tokens == case["token_positions_processed"] and found.positions_sequences == 2434
    by = {str(k): int(k * (states == k).sum()) for k in np.unique(states)}
    assert by == case["by_multiplicity"] and len(states) == 701
    assert costs([]).inputs_tokens == 0 and states_per_prefix([]).tolist() == []


def test_the_last_prefix_is_the_whole_response():
    ids, mask = rows()
    found = novelty(novelty_input="pooled")
    per_prefix = TokenNovelty(found, chunk=5).errors(ids, mask)
    assert [len(row) for row in per_prefix] == mask[:, 2:].sum(axis=1).tolist()
    assert [row[-1] for row in per_prefix] == pytest.approx(found.errors(ids, mask), rel=1e-4)
    first = mask.copy()
    first[:, 3:] = False
    assert [row[0] for row in per_prefix] == pytest.approx(found.errors(ids, first), rel=1e-4)


def test_prefix_novelty_learns_and_is_scaled_by_the_running_deviation():
    found = novelty(lr=1e-2)
    before, ids_mask = weights(found), rows()
    tokens = TokenNovelty(found, chunk=7)
    gaps = tokens.errors(*ids_mask)
    assert all(np.array_equal(before[name], value) for name, value in weights(found).items())
    bonuses, loss = tokens.observe(*ids_mask)
    assert loss == pytest.approx(np.concatenate(gaps).mean()) and found.calls == 1
    assert np.concatenate(bonuses) == pytest.approx(np.concatenate(gaps) / np.concatenate(gaps).std(), rel=1e-4)
    for _ in range(50):
        later = tokens.observe(*ids_mask)[1]
    assert later < loss / 2
    assert np.array_equal(before["target.0.weight"], weights(found)["target.0.weight"])


def test_chunks_do_not_change_a_step_on_pooled_input():
    small, large = (novelty(novelty_input="pooled") for _ in range(2))
    for _ in range(3):
        for found, chunk in ((small, 3), (large, 1000)):
            TokenNovelty(found, chunk).observe(*rows())
    assert weights(small)["predictor.0.weight"] == pytest.approx(weights(large)["predictor.0.weight"], abs=1e-4)


def test_prefixes_of_nothing():
    ids, mask = layout([[1], [2]], [[], []], Config(**SMALL))
    tokens = TokenNovelty(novelty())
    assert [row.tolist() for row in tokens.errors(ids, mask)] == [[], []]
    assert tokens.observe(ids, mask)[1] == 0.0
    assert TokenNovelty(novelty()).errors(ids[:0], mask[:0]) == []
    with pytest.raises(ConfigError, match="chunk"):
        TokenNovelty(novelty(), chunk=1)
