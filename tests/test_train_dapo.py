"""DAPO: groups without contrast are replaced, within a bound and counted; long answers pay."""

import numpy as np
import pytest
import tiny_policy as tiny
import torch

from explorl.errors import ConfigError
from explorl.papers.method import Batch
from explorl.train import dapo
from explorl.train.arm import train
from explorl.train.config import TrainConfig


class Split(tiny.Wordy):
    """Prompts of two words give all-wrong groups, the others half-right ones, of equal lengths; it counts batches."""

    name = "split"
    flat = staticmethod(lambda prompt_ids: len(prompt_ids) == 2)

    def __init__(self):
        self.asked, self.scored = [], 0

    def describe(self):
        return {"name": self.name}

    def rollout(self, prompts, trainer):
        self.asked.append(list(prompts))
        ids = [trainer.processing_class(p)["input_ids"] for p in prompts]
        words = [[3 if self.flat(p) or i % 2 else 2, 5, 1] for i, p in enumerate(ids)]
        return {"prompt_ids": ids, "completion_ids": words, "logprobs": None}

    def components(self, batch):
        self.scored += 1
        return super().components(batch)


class Hopeless(Split):
    """No group has contrast."""

    flat = staticmethod(lambda prompt_ids: True)


def settings(**changes):
    return TrainConfig(**{**dict(steps=1, prompts_per_step=3, group_size=4, max_completion_tokens=8, threads=1,
                                 learning_rate=1e-3, loss_type="dapo", clip_epsilon_high=0.28), **changes})


def stepped(base, tmp_path, config=None, wrap=None, count=9, **changes):
    """One step; returns the trainer and its scored batch's tensors."""
    policy, method = tiny.policy(), dapo.DAPO(base, 8, dapo.DAPOConfig(**changes))
    trainer = dapo.build(policy.model, policy.tokenizer, wrap(method) if wrap else method, tiny.problems(count),
                         config or settings(), tmp_path)
    seen, score = [], trainer._generate_and_score_completions
    trainer._generate_and_score_completions = lambda inputs: seen.append(score(inputs)) or seen[-1]
    trainer.train()
    return trainer, seen[0]


def logged(trainer):
    row = trainer.state.log_history[0]
    return {name.removeprefix("dapo/"): row[name] for name in row if name.startswith("dapo/")}


def two_word_seed():
    """A seed whose first batch has a prompt of two words and others."""
    from explorl.train.trainer import dataset

    for seed in range(50):
        lengths = [len(p.split()) for p in dataset(tiny.problems(9), 3, seed)["prompt"]]
        if lengths.count(2) == 1:
            return seed
    raise AssertionError("no such seed")


def test_a_group_without_contrast_is_replaced_by_another_problem(tmp_path):
    base = Split()
    trainer, out = stepped(base, tmp_path, settings(seed=two_word_seed()), max_rounds=20)
    found, batch = logged(trainer), trainer._scored[2]
    assert found["flat_first"] == pytest.approx(1 / 3) and found["flat_left"] == 0
    assert found["rounds"] == found["replaced"] == len(base.asked) - 1 >= 1
    assert all(len(prompt.split()) > 2 for prompt in batch.prompts)
    first, *later = base.asked
    assert all(len(set(again)) == 1 and len(again) == 4 for again in later)
    assert later[-1][0] not in first, "a problem that the batch did not have"
    assert (out["advantages"].abs() > 0.5).all()
    assert base.scored == found["rounds"] + 2, "each draw is judged, and the last one scored"


def test_replaced_rows_carry_their_own_gold_meta_and_tokens(tmp_path):
    trainer, out = stepped(Split(), tmp_path, settings(seed=two_word_seed()), max_rounds=20)
    batch, by_prompt = trainer._scored[2], {p.prompt: p for p in tiny.problems(9)}
    for i, prompt in enumerate(batch.prompts):
        problem = by_prompt[prompt]
        assert batch.gold[i] == problem.gold and batch.columns["meta"][i] == problem.meta
        shown = out["prompt_ids"][i][out["prompt_mask"][i].bool()].tolist()
        assert shown == tiny.tokenizer()(prompt)["input_ids"]
    assert [len(set(batch.prompts[g : g + 4])) for g in (0, 4, 8)] == [1, 1, 1] and len(set(batch.prompts)) == 3


@pytest.mark.parametrize("bound", [0, 2])
def test_bound_ends_the_search_and_what_is_left_teaches_nothing(bound, tmp_path):
    base = Hopeless()
    trainer, out = stepped(base, tmp_path, max_rounds=bound)
    assert logged(trainer) == {"flat_first": 1, "flat_left": 1, "rounds": bound, "replaced": 3 * bound}
    assert [len(asked) for asked in base.asked] == [12] * (bound + 1)
    assert (out["advantages"] == 0).all()


def test_fewer_problems_than_groups_ask_again_for_the_same(tmp_path):
    trainer, _ = stepped(Hopeless(), tmp_path, max_rounds=1, count=2)
    assert logged(trainer)["replaced"] == 3


@pytest.mark.parametrize("contrast, replaced", [("outcome", 3), ("combined", 0)])
def test_bonus_counts_as_contrast_only_if_told(contrast, replaced, tmp_path):
    """All answers are wrong; IMAGINE's bonus differs by place in the group. It learns from the final batch alone."""
    class Varied(Hopeless):
        def rollout(self, prompts, trainer):
            out = super().rollout(prompts, trainer)
            return out | {"completion_ids": [[3, 5 + i % 4, 1] for i in range(len(prompts))]}

    base = tiny.curious(Varied())
    trainer, _ = stepped(base, tmp_path, max_rounds=1, contrast=contrast)
    assert logged(trainer)["replaced"] == replaced and base.novelty.calls == 1


def test_dapo_may_stand_inside_another_method(tmp_path):
    trainer, _ = stepped(Hopeless(), tmp_path, wrap=tiny.curious, max_rounds=1, overlong_buffer=8)
    assert logged(trainer)["replaced"] == 3 and trainer.method.novelty.calls == 1
    assert "overlong" in trainer._scored[1] and "bonus" in trainer._scored[1]


def test_unknown_outcome_is_named(tmp_path):
    with pytest.raises(ConfigError, match="outcome"):
        stepped(Split(), tmp_path, outcome="right")


def test_sampled_run_goes_on_after_an_interruption(tmp_path):
    def run(folder, on_step=None):
        policy, method = tiny.policy(), dapo.DAPO(tiny.Wordy(), 8, dapo.DAPOConfig(max_rounds=2))
        config = settings(steps=4, save_every=2, learning_rate=1e-2)
        result = train(policy, tiny.problems(9), method, config, folder, on_step=on_step, make=dapo.build)
        return result["curve"], torch.cat([p.detach().flatten() for p in policy.model.parameters()])

    def interrupt(row):
        if row["step"] == 3:
            raise KeyError("interrupted")

    curve, weights = run(tmp_path / "whole")
    with pytest.raises(KeyError):
        run(tmp_path / "cut", interrupt)
    again, same = run(tmp_path / "cut")
    assert again == curve and torch.equal(same, weights)
    assert sum(row["dapo/replaced"] for row in curve) > 0


# ---- length

def test_overlong_by_hand():
    """L_max = 20, L_cache = 8: free to 12 tokens, then an eighth each."""
    found = dapo.overlong([0, 12, 13, 16, 19, 20, 21], 20, 8)
    assert found.tolist() == [0, 0, -0.125, -0.5, -0.875, -1, -1]
    assert dapo.overlong([20], 20, 8, penalty=0.5).tolist() == [-0.5]
    assert dapo.overlong([1, 20], 20, 0).tolist() == [0, 0]


def test_price_is_in_the_reward_and_not_in_the_outcome():
    method = dapo.DAPO(tiny.Wordy(), 8, dapo.DAPOConfig(overlong_buffer=4))
    batch = Batch(["?"] * 2, ["yes", "yes"], ["", ""], 2, completion_ids=[[2] * 4, [2] * 6])
    found = method.components(batch)
    assert found["overlong"].tolist() == [0, -0.5] and found["oc"].tolist() == [1, 1]
    assert method.aggregate(found, batch) == pytest.approx(np.array([1.1, 0.6]))
    for contrast, flat in (("outcome", True), ("total", False)):
        assert dapo.contrastless(method, batch, dapo.DAPOConfig(contrast=contrast)).tolist() == [flat]


@pytest.mark.parametrize("field, value", [
    ("max_rounds", -1), ("max_rounds", True), ("contrast", "reward"), ("overlong_buffer", 0.5),
    ("overlong_penalty", -1.0), ("overlong_penalty", float("inf")),
])
def test_wrong_setting_is_named(field, value):
    with pytest.raises(ConfigError) as error:
        dapo.DAPOConfig(**{field: value})
    assert error.value.field == field


def test_limit_is_the_runs_and_holds_the_buffer(tmp_path):
    with pytest.raises(ConfigError, match="overlong_buffer"):
        dapo.DAPO(tiny.Wordy(), 8, dapo.DAPOConfig(overlong_buffer=9))
    policy = tiny.policy()
    for method, named in ((dapo.DAPO(tiny.Wordy(), 9), "limit"), (tiny.Wordy(), "a DAPO")):
        with pytest.raises(ConfigError, match=named):
            dapo.build(policy.model, policy.tokenizer, method, tiny.problems(), settings(), tmp_path)
