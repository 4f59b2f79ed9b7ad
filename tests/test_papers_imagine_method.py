"""IMAGINE as the trainer calls it: components, advantage, when the predictor learns, and what a checkpoint holds."""

import io
import json

import numpy as np
import pytest
import torch

from explorl.errors import ConfigError
from explorl.papers import imagine
from explorl.papers.baselines import CFL
from explorl.papers.baselines import Outcome as TaggedOutcome
from explorl.papers.imagine import IMAGINE, OFFICIAL, Config, Outcome
from explorl.papers.method import Advantages, Batch, Method
from explorl.text import countdown
from explorl.train.resume import describe_method

SIZES = {"max_prompt_tokens": 4, "max_completion_tokens": 8, "emb_dim": 4}
VOCAB = 20


def score(completion, gold, meta):
    return countdown.score(completion, meta["numbers"], meta["target"]).reward


def batch(*answers, group_size=None, step=0, seed=0, **changes):
    """Completions ``<answer>…</answer>`` to 6, 4, 2 → 12, with token ids that follow from their text."""
    n = len(answers)
    texts = [f"<answer>{answer}</answer>" if answer else "no idea" for answer in answers]
    drawn = [np.random.default_rng([seed, i]) for i in range(n)]
    ids = [generator.integers(VOCAB, size=1 + i % 6).tolist() for i, generator in enumerate(drawn)]
    fields = {"prompts": ["p"] * n, "completions": texts, "gold": ["12"] * n, "group_size": group_size or n,
              "step": step, "completion_ids": ids,
              "columns": {"meta": [{"numbers": (6, 4, 2), "target": 12}] * n}}
    return Batch(**fields | changes)


MIXED = ("6+4+2", "6*4/2", "6+4", "", "4+6+2", "6-4-2", "2", "")


def method(config=None, base=None, **settings):
    config = config or Config(**SIZES | settings)
    return IMAGINE(config, base or Outcome(score, config), VOCAB)


def scored(of, data):
    found = of.components(data)
    total = of.aggregate(found, data)
    return found, total, of.advantages(total, found, data)


# ── The two seams ──

def test_countdown_scores_become_components_and_a_bonus_on_every_wrong_row():
    of, data = method(), batch(*MIXED, group_size=4)
    found, total, gained = scored(of, data)
    assert total.tolist() == found["score"].tolist() == [1, 1, .1, 0, 1, .1, .1, 0]
    assert found["oc"].tolist() == [1, 1, 0, 0, 1, 0, 0, 0]
    right = found["oc"] > 0
    assert not found["bonus"][right].any() and found["bonus"][~right].max() > 0
    assert found["bonus"] == pytest.approx(imagine.bonus(found["novelty_error"], right, 0, of.config))
    assert found["rnd_loss"] == pytest.approx([found["novelty_error"].mean()] * 8)
    old = of.base.advantages(total, found, data).values
    assert gained.values == pytest.approx(old + found["bonus"]) and gained.keep is None
    assert gained.values == pytest.approx(imagine.integrate(total, found["bonus"], 4, of.config))
    assert gained.values.reshape(2, 4).mean(axis=1) == pytest.approx(found["bonus"].reshape(2, 4).mean(axis=1))


def test_an_all_wrong_group_learns_from_its_bonus_alone():
    found, _, gained = scored(method(), batch("6+4", "6-4", "6*4", "2"))
    assert gained.values.tolist() == found["bonus"].tolist() and gained.values.max() == 0.5


def test_an_all_right_group_gets_nothing():
    _, _, gained = scored(method(), batch(*["6+4+2"] * 4))
    assert gained.values.tolist() == [0.0] * 4


def test_pre_adds_to_the_score():
    of, data = method(integration="pre"), batch(*MIXED, group_size=4)
    found, total, gained = scored(of, data)
    assert gained.values == pytest.approx(imagine.outcome_advantages(total + found["bonus"], 4, of.config))
    assert total.tolist() == found["score"].tolist(), "the reward that is logged has no bonus in it"


@pytest.mark.parametrize("source", imagine.SOURCES)
def test_every_source_measures_novelty_and_pays_its_own(source):
    config = Config(**SIZES, bonus_source=source, minmax_scope="group")
    of = method(config)
    found, total, gained = scored(of, batch(*MIXED, group_size=4))
    rnd = method(Config(**SIZES, minmax_scope="group")).components(batch(*MIXED, group_size=4))
    assert of.name == ("imagine" if source == "rnd" else f"imagine_{source}")
    assert found["novelty_error"].tolist() == rnd["novelty_error"].tolist() and of.novelty.calls == 1
    assert found["bonus"].sum() == pytest.approx(0 if source == "none" else rnd["bonus"].sum())
    if source == "none":
        assert gained.values == pytest.approx(of.base.advantages(total, found, batch(*MIXED, group_size=4)).values)


class Half(Method):
    """Numbers per token, second group left out."""

    name = "half"

    def components(self, batch):
        return {"oc": np.zeros(len(batch.completions))}

    def aggregate(self, components, batch):
        return components["oc"]

    def advantages(self, total, components, batch):
        keep = np.arange(len(total)) < batch.group_size
        return Advantages([np.arange(len(ids), dtype=float) for ids in batch.completion_ids], keep)

    def state_dict(self):
        return {"mine": 7}

    def load_state_dict(self, state):
        self.loaded = state["mine"]


def test_a_base_with_numbers_per_token_gains_the_bonus_on_each():
    data = batch(*MIXED, group_size=4)
    found, total, gained = scored(method(base=Half()), data)
    assert gained.keep.tolist() == [True] * 4 + [False] * 4
    for ids, row, extra in zip(data.completion_ids, gained.values, found["bonus"], strict=True):
        assert row == pytest.approx(np.arange(len(ids)) + extra)


def test_it_stands_on_another_papers_outcome():
    data = batch("x", "x", completions=["<final_answer>12</final_answer>", "<final_answer>3</final_answer>"])
    found, _, gained = scored(method(base=TaggedOutcome()), data)
    assert found["oc"].tolist() == [1, 0] and found["bonus"][0] == 0 and "fa" in found
    assert gained.values[0] > 0
    assert "l" in IMAGINE(Config(**SIZES), CFL(), VOCAB).components(data)


# ── When it learns ──

def test_each_call_trains_once_and_reading_never_does():
    of, data = method(), batch(*MIXED)
    reader = of.still()
    first = reader.components(data)
    assert of.novelty.calls == 0 and reader.learns is False and of.learns is True
    assert reader.components(data)["novelty_error"].tolist() == first["novelty_error"].tolist()
    trained = of.components(data)
    assert trained["novelty_error"].tolist() == first["novelty_error"].tolist(), "read before the update"
    assert trained["bonus"].tolist() == first["bonus"].tolist()
    assert of.novelty.calls == reader.novelty.calls == 1
    assert reader.components(data)["novelty_error"].tolist() != first["novelty_error"].tolist(), "the same networks"


def test_n_counts_calls_and_not_optimiser_steps():
    of = method(bonus_source="constant", control_level="alpha", decay_gamma=1.0)
    paid = [of.components(batch("6+4", "2", step=4 * i))["bonus"].tolist() for i in range(3)]
    assert paid == [[0.5, 0.5], [0.25, 0.25], pytest.approx([1 / 6, 1 / 6])]


def test_algorithm_1_reads_after_the_update():
    data = batch(*MIXED)
    code, paper = method(), method(novelty_order="update_then_reward")
    before, after = code.components(data), paper.components(data)
    assert before["novelty_error"].tolist() != after["novelty_error"].tolist()
    assert before["rnd_loss"].tolist() == after["rnd_loss"].tolist()
    assert code.still().components(data)["novelty_error"] == pytest.approx(after["novelty_error"])
    assert code.novelty.calls == paper.novelty.calls == 1


def test_running_deviation_includes_the_batch_and_is_frozen_for_a_reader():
    of, data = method(novelty_scale="running_std", alpha=1.0, error_mask=False), batch(*MIXED)
    found = of.components(data)
    assert found["bonus"] == pytest.approx(found["novelty_error"] / found["novelty_error"].std(), rel=1e-4)
    std = of.novelty.running.std
    of.still().components(batch(*MIXED, seed=3))
    assert of.novelty.running.std == std


# ── Token ids ──

def test_prompts_are_tokenised_once_and_count():
    asked = []

    def tokens(text):
        asked.append(text)
        return [ord(c) % VOCAB for c in text]

    config = Config(**SIZES)
    of = IMAGINE(config, Outcome(score), VOCAB, tokens=tokens)
    data = batch(*MIXED, group_size=4, prompts=["one"] * 4 + ["other"] * 4)
    ids, mask = of.laid_out(data)
    assert sorted(asked) == ["one", "other"]
    assert mask[:, :4].sum(axis=1).tolist() == [3] * 4 + [4] * 4
    assert ids[4, :4].tolist() == [ord(c) % VOCAB for c in "ther"]
    assert method(config).laid_out(data)[1][:, :4].sum() == 0
    texts = batch(*MIXED, completion_ids=())
    written = [min(len(text), 8) for text in texts.completions]
    assert of.laid_out(texts)[1][:, 4:].sum(axis=1).tolist() == written, "texts without ids are tokenised too"
    with pytest.raises(ConfigError, match="completion_ids = '0 entries'"):
        method(config).components(texts)


def test_empty_completions_are_no_error():
    data = batch("", "", "6+4+2", completion_ids=[[], [], [1]])
    found, _, gained = scored(method(), data)
    assert np.isfinite(gained.values).all() and found["novelty_error"][0] == found["novelty_error"][1]


def test_wrong_settings_are_named():
    with pytest.raises(ConfigError, match="right = 'accuracy': must be one of score, oc"):
        IMAGINE(Config(**SIZES), Outcome(score), VOCAB, right="accuracy").components(batch("2", "3"))
    for arguments, field in (((Config(), Outcome(score), 0), "vocab_size"), ((Config(), score, 5), "base")):
        with pytest.raises(ConfigError, match=field):
            IMAGINE(*arguments)
    with pytest.raises(ConfigError, match="tokens"):
        IMAGINE(Config(**SIZES), Outcome(score), 5, tokens="words")
    with pytest.raises(ConfigError, match="score"):
        Outcome("right")
    with pytest.raises(ConfigError, match="vocab_size = 5: must be above every token id"):
        IMAGINE(Config(**SIZES), Outcome(score), 5).components(batch(*MIXED))
    with pytest.raises(ConfigError, match="group_size = 1"):
        scored(method(), batch("2", "3", group_size=1))
    lone = method(Config(**SIZES, lone="score"))
    found, total, gained = scored(lone, batch("2", "3", group_size=1))
    assert gained.values == pytest.approx(total + found["bonus"]), "as published"


# ── Checkpoints ──

@pytest.mark.parametrize("settings", [{}, {"bonus_source": "shuffled"}, {"novelty_scale": "running_std"}], ids=str)
def test_a_resumed_run_goes_on_exactly(settings):
    batches = [batch(*MIXED, group_size=4, seed=step, step=step) for step in range(6)]
    whole, first, second = (method(**settings) for _ in range(3))
    expected = [scored(whole, data) for data in batches]
    for data in batches[:3]:
        scored(first, data)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    for data, (components, _, gained) in zip(batches[3:], expected[3:], strict=True):
        found, _, again = scored(second, data)
        assert again.values.tolist() == gained.values.tolist()
        assert all(found[name].tolist() == components[name].tolist() for name in components)


def test_the_bases_state_goes_along():
    of = method(base=Half())
    state = of.state_dict()
    assert state["base"] == {"mine": 7}
    of.load_state_dict(state)
    assert of.base.loaded == 7


def test_a_runs_description_says_every_setting_and_no_state():
    of = method()
    before = describe_method(of)
    of.components(batch(*MIXED))
    assert describe_method(of) == before and json.dumps(before)
    assert before["config"]["decay_gamma"] == 40.0 and before["base"]["name"] == "grpo"
    assert describe_method(method(alpha=0.4)) != before


def test_official_settings_are_the_published_ones():
    assert (OFFICIAL.pad, OFFICIAL.adv_eps, OFFICIAL.lone, OFFICIAL.ppo_bonus) == (
        "zero", 1e-10, "score", "pre_whiten_last")
