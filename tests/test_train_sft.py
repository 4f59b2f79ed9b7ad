"""The SFT arm: it learns the demonstrations, in the order of its seed, and only them."""

import pytest
import tiny_policy as tiny
import torch

from explorl.errors import ConfigError
from explorl.train import sft
from explorl.train.arm import train
from explorl.train.config import TrainConfig
from explorl.train.trainer import dataset

TEXTS = [f" yes w{20 + i}" for i in range(6)]


def config(**changes):
    return TrainConfig(**{**dict(steps=3, prompts_per_step=4, group_size=2, learning_rate=1e-2, save_every=0,
                                 max_completion_tokens=8, seed=5, threads=1), **changes})


def test_prompts_come_in_the_order_of_the_other_arms_each_with_its_own_demonstration():
    rows = sft.dataset(sft.Demonstrations(TEXTS), tiny.problems(6), config())
    others = dataset(tiny.problems(6), 12, seed=5)
    assert list(rows["prompt"]) == list(others["prompt"])
    assert list(rows["completion"]) == [TEXTS[i] for i in others["problem_row"]]


def test_chat_prompts_get_an_assistants_turn():
    problems = [tiny.Problem([{"role": "user", "content": "w1"}], "w1")]
    row = sft.dataset(sft.Demonstrations(["yes"]), problems, config(steps=1, prompts_per_step=1))[0]
    assert row["completion"] == [{"role": "assistant", "content": "yes"}]


def test_a_step_lowers_the_loss_of_the_completion_and_its_end(tmp_path):
    """The first step's loss is the mean over completion tokens, end included, and not over the prompt's."""
    policy, problems = tiny.policy(), tiny.problems(6)
    before = mean_loss(policy, problems)
    result = train(policy, problems, sft.Demonstrations(TEXTS), config(steps=60), tmp_path, make=sft.build)
    losses = [row["loss"] for row in result["curve"] if row["kind"] == "train"]
    order = dataset(problems, 4, seed=5)["problem_row"]
    assert losses[0] == pytest.approx(before[order].mean().item(), rel=1e-3)
    assert len(losses) == 60 and losses[-1] < 0.5 * losses[0]
    assert (mean_loss(policy, problems) < 0.5 * before).all()


def mean_loss(policy, problems):
    found = []
    for problem, text in zip(problems, TEXTS, strict=True):
        prompt, completion = (policy.tokenizer(t)["input_ids"] for t in (problem.prompt, text))
        ids = torch.tensor([prompt + completion + [policy.tokenizer.eos_token_id]])
        with torch.no_grad():
            scores = policy.model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        found.append(-scores.gather(-1, ids[0, len(prompt):, None]).mean())
    return torch.stack(found)


def test_the_same_seed_gives_the_same_weights_and_a_killed_run_goes_on(tmp_path):
    def weights(folder, stop=None):
        policy = tiny.policy()

        def interrupt(row):
            if row["step"] == stop:
                raise KeyboardInterrupt

        train(policy, tiny.problems(6), sft.Demonstrations(TEXTS), config(steps=6, save_every=2), tmp_path / folder,
              make=sft.build, on_step=interrupt)
        return torch.cat([p.detach().flatten() for p in policy.model.parameters()])

    whole = weights("whole")
    with pytest.raises(KeyboardInterrupt):
        weights("part", stop=5)
    assert torch.equal(weights("part"), whole) and not torch.equal(weights("other", stop=99), tiny_start())


def tiny_start():
    return torch.cat([p.detach().flatten() for p in tiny.model().parameters()])


@pytest.mark.parametrize("texts, hint", [(TEXTS[:3], "one for each of the 6 problems"),
                                         (TEXTS[:5] + [" "], "a text that solves its problem")])
def test_unfit_demonstrations_are_refused(texts, hint, tmp_path):
    policy = tiny.policy()
    with pytest.raises(ConfigError, match=hint):
        sft.build(policy.model, policy.tokenizer, sft.Demonstrations(texts), tiny.problems(6), config(), tmp_path)
