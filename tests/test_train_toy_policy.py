"""The embedded policy: its tokens give back the text, its weights are the ones promised, and it can calculate."""

import random

import pytest
import torch

from explorl.errors import ConfigError
from explorl.tasks import digits
from explorl.train import toy_policy, warm_start
from explorl.train.evaluate import sample


@pytest.fixture(scope="module")
def policy():
    return toy_policy.load()


def test_tokens_give_back_every_demonstration():
    tok, generator = toy_policy.tokenizer(), random.Random(0)
    problems = generator.choices(digits.problems(), k=200)
    texts = [digits.demonstration(p, generator, habit=[1.0] * 6, blocks=5, off_topic=0.3) for p in problems]
    for text in [p.prompt for p in problems] + texts:
        ids = tok(text)["input_ids"]
        assert tok.decode(ids) == text and tok.pad_token_id not in ids
        assert len(ids) + 6 <= toy_policy.MAX_TOKENS


def test_every_token_is_found_again_in_a_text():
    tok = toy_policy.tokenizer()
    vocabulary = toy_policy.vocabulary()
    assert len(set(vocabulary)) == len(vocabulary) == len(tok)
    assert [tok(token)["input_ids"] for token in vocabulary] == [[i] for i in range(len(vocabulary))]


def test_a_text_of_another_world_becomes_padding_and_does_not_raise():
    tok = toy_policy.tokenizer()
    assert set(tok("\0 ünknown <strategy> 9999999")["input_ids"]) <= {tok.pad_token_id}


@pytest.mark.parametrize("start", toy_policy.STARTS)
def test_the_packaged_weights_are_the_ones_named(start):
    folder = toy_policy.WEIGHTS / start
    assert toy_policy.checksum(start) == (folder / "SHA256").read_text().split()[0]
    parameters = sum(p.numel() for p in toy_policy.load(start)[0].parameters())
    assert 100_000 < parameters < 300_000
    assert (folder / "model.safetensors").stat().st_size < 8e6


def test_the_packaged_starts_are_those_that_can_be_made():
    assert tuple(warm_start.STARTS) == toy_policy.STARTS == tuple(sorted(p.name for p in toy_policy.WEIGHTS.iterdir()))
    with pytest.raises(ConfigError, match="start = 'left': must be one of habits, right, wrong"):
        toy_policy.load("left")


@pytest.mark.parametrize("damage", ["changed", "absent"])
def test_damaged_weights_are_refused(tmp_path, monkeypatch, damage):
    folder = tmp_path / "habits"
    folder.mkdir()
    (folder / "SHA256").write_text("0" * 64 + "  model.safetensors\n")
    if damage == "changed":
        (folder / "model.safetensors").write_bytes((toy_policy.WEIGHTS / "habits/model.safetensors").read_bytes())
    else:
        (folder / "SHA256").unlink()
    monkeypatch.setattr(toy_policy, "WEIGHTS", tmp_path)
    with pytest.raises(ConfigError, match="warm_start"):
        toy_policy.load()


def test_it_can_calculate_but_does_not_explore(policy):
    problems = digits.load().test[:150]
    groups = sample(*policy, [p.prompt for p in problems], max_new_tokens=58, batch_size=150)
    found = digits.describe([g[0].text for g in groups], problems)
    assert found["arithmetic"] > 0.85
    assert found["stories"] < 2 and found["covered"] < 0.4
    assert found["off_topic"] < 0.1


def test_practice_teaches_outcomes_and_answers_only():
    tok, generator = toy_policy.tokenizer(), random.Random(2)
    problems = generator.choices(digits.load().train, k=4)
    ids, labels = warm_start.batch(tok, problems, generator, None)
    choices = set(tok.convert_tokens_to_ids(toy_policy.choice_tokens()))
    prompt = len(tok(problems[0].prompt)["input_ids"])
    taught = ids[labels != -100]
    assert (labels[:, :prompt] == -100).all() and torch.equal(taught, labels[labels != -100])
    assert not choices & set(taught.tolist()) and tok.eos_token_id in taught
    assert choices & set(ids[:, prompt:][labels[:, prompt:] == -100].tolist())

    _, habits = warm_start.batch(tok, problems, generator, warm_start.Habits())
    assert choices & set(habits.tolist()[0])


def test_the_warm_start_follows_its_seed():
    def weights(seed):
        model, _ = warm_start.train(seed=seed, steps=3, batch_size=4, progress=False)
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    first = weights(1)
    assert torch.equal(first, weights(1)) and not torch.equal(first, weights(2))


def test_an_untrained_policy_leaves_the_global_random_state_alone():
    before = torch.get_rng_state()
    toy_policy.untrained(toy_policy.tokenizer(), seed=5)
    assert torch.equal(before, torch.get_rng_state())
