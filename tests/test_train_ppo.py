"""PPO through the real trainer: what the policy and the critic get, by hand; and a critic that predicts."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny_policy as tiny
import torch

from explorl.errors import ConfigError
from explorl.papers.method import Batch
from explorl.train import ppo, resume
from explorl.train.arm import train
from explorl.train.config import TrainConfig
from explorl.train.critic import Critic, CriticConfig, value_loss

FAST = CriticConfig(body_lr=3e-3, head_lr=1e-2, epochs=4, rows=16)


def config(**changes):
    return TrainConfig(**{**dict(steps=1, prompts_per_step=2, group_size=3, max_completion_tokens=8, threads=1,
                                 learning_rate=1e-3, loss_type="dapo"), **changes})


def made(method, tmp_path, **changes):
    policy = tiny.policy()
    return ppo.build(policy.model, policy.tokenizer, method, tiny.problems(), config(**changes), tmp_path)


def one_step(method, tmp_path, **changes):
    """Train one step with fixed guesses; returns (trainer, guesses, the scored batch, what the critic was taught)."""
    trainer = made(method, tmp_path, **changes)
    seen, taught = [], []
    score, learn = trainer._generate_and_score_completions, trainer.critic.learn
    guesses = np.random.default_rng(3).normal(size=(6, 8))
    trainer.critic.values = lambda batch: guesses[:, : batch["completion_ids"].shape[1]]
    trainer._generate_and_score_completions = lambda inputs: seen.append(score(inputs)) or seen[-1]
    trainer.critic.learn = lambda *a: taught.append(a) or learn(*a)
    trainer.train()
    return trainer, guesses, seen[0], taught[0]


def by_hand(rewards, guesses, lengths, gamma, lam):
    """Â_t = Σ_k (γλ)^k δ_{t+k}, token by token; and Â + V."""
    raw = []
    for reward, values, length in zip(rewards, guesses, lengths, strict=True):
        v = [*values[:length], 0.0]
        delta = [(reward if t == length - 1 else 0.0) + gamma * v[t + 1] - v[t] for t in range(length)]
        raw.append([sum((gamma * lam) ** (k - t) * delta[k] for k in range(t, length)) for t in range(length)])
    return raw, [[a + v for a, v in zip(row, values, strict=False)] for row, values in zip(raw, guesses, strict=True)]


@pytest.mark.parametrize("gamma, lam", [(1.0, 1.0), (0.9, 0.5)])
def test_advantages_and_returns_are_those_by_hand(gamma, lam, tmp_path):
    method = ppo.PPO(tiny.Scripted(), ppo.PPOConfig(gamma=gamma, lam=lam))
    trainer, guesses, out, (_, old, returns, mask) = one_step(method, tmp_path)
    total, _, batch = trainer._scored
    lengths = [len(ids) for ids in batch.completion_ids]
    assert len(set(lengths)) > 1 and total.std() > 0
    raw, targets = by_hand(total, guesses, lengths, gamma, lam)
    flat = [a for row in raw for a in row]
    mean, deviation = np.mean(flat), np.std(flat, ddof=1)
    for i, length in enumerate(lengths):
        white = (np.array(raw[i]) - mean) / deviation
        assert out["token_advantages"][i, :length].numpy() == pytest.approx(white, abs=1e-5)
        assert (out["token_advantages"][i, length:] == 0).all()
        assert returns[i, :length] == pytest.approx(targets[i]) and mask[i].sum() == length
        assert old[i, :length] == pytest.approx(guesses[i, :length])
    row = trainer.state.log_history[0]
    known = np.concatenate(targets)
    left = known - np.concatenate([guesses[i, :n] for i, n in enumerate(lengths)])
    assert row["critic/explained_variance"] == pytest.approx(1 - left.var() / known.var())
    assert row["critic/return_mean"] == pytest.approx(known.mean())


@pytest.mark.parametrize("placement", ppo.PLACEMENTS)
def test_bonus_reaches_the_last_token_and_the_critic_only_where_it_is_a_reward(placement, tmp_path):
    """With ratio 1 the loss is −mean Â; whitening makes that 0, a bonus after it the bonuses' share of the tokens."""
    trainer, guesses, out, (_, _, returns, _) = one_step(
        ppo.PPO(tiny.curious(), ppo.PPOConfig(bonus=placement)), tmp_path)
    total, components, batch = trainer._scored
    bonus = components["bonus"]
    assert bonus.sum() > 0.1
    paid = total + (bonus if placement == "reward" else 0)
    _, targets = by_hand(paid, guesses, batch.lengths, 1.0, 1.0)
    assert [row[0] for row in returns] == pytest.approx([row[0] for row in targets])
    tokens = batch.lengths.sum()
    share = bonus.sum() / tokens if placement == "post_whiten_last" else 0.0
    assert trainer.state.log_history[0]["loss"] == pytest.approx(-share, abs=1e-5)
    assert out["token_advantages"].sum().item() == pytest.approx(share * tokens, abs=1e-4)


def test_bonus_added_outside_is_on_every_token_once(tmp_path):
    """IMAGINE(PPO): the advantages differ from PPO's own by R* at every token."""
    inner = ppo.PPO(tiny.Scripted())
    trainer, _, out, _ = one_step(tiny.curious(inner), tmp_path)
    total, components, batch = trainer._scored
    plain = inner.advantages(total, components, batch).values
    for i, row in enumerate(plain):
        gained = out["token_advantages"][i, : len(row)].numpy() - row
        assert gained == pytest.approx(np.full(len(row), components["bonus"][i]), abs=1e-5)
    assert components["bonus"].sum() > 0.1


def test_lone_completions_have_prompts_of_their_own(tmp_path):
    trainer, _, out, _ = one_step(ppo.PPO(tiny.Wordy(), ppo.PPOConfig(lone=True)), tmp_path)
    batch = trainer._scored[2]
    assert batch.group_size == 1 and len(set(batch.prompts)) == 6
    assert out["token_advantages"].abs().sum() > 0.1


def test_without_its_trainer_ppo_says_so():
    batch = Batch(["?"], ["yes"], [""], 1, completion_ids=[[2, 1]])
    with pytest.raises(ConfigError, match="train.ppo.build"):
        ppo.PPO(tiny.Wordy()).advantages(np.ones(1), {}, batch)


def test_method_without_ppo_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="a PPO"):
        made(tiny.Wordy(), tmp_path)


@pytest.mark.parametrize("kind, field, value", [
    (ppo.PPOConfig, "gamma", 1.1), (ppo.PPOConfig, "lam", True), (ppo.PPOConfig, "bonus", "last"),
    (ppo.PPOConfig, "lone", 1), (CriticConfig, "body", "none"), (CriticConfig, "body_lr", 0.0),
    (CriticConfig, "epochs", 0), (CriticConfig, "value_clip", -0.1), (CriticConfig, "head_lr", float("nan")),
])
def test_wrong_setting_is_named(kind, field, value):
    with pytest.raises(ConfigError) as error:
        kind(**{field: value})
    assert error.value.field == field


# ---- the critic

def table(*rows):
    return torch.tensor(rows)


def test_value_loss_by_hand():
    """½·((.2 − 1)² + (.3 − 1)² + (0 − .5)²)/3; the masked token does not count."""
    values, returns = table([0.2, 0.3], [0.0, 9.0]), table([1.0, 1.0], [0.5, 0.0])
    mask = table([True, True], [True, False])
    assert value_loss(values, values, returns, mask).item() == pytest.approx(0.5 * (0.64 + 0.49 + 0.25) / 3)


@pytest.mark.parametrize("guess, loss, slope", [
    (0.3, 0.5 * 0.49, -0.7),  # within the bound: the plain error
    (0.9, 0.5 * 0.25, 0.0),   # towards the target beyond the bound: the error at the bound, and no gradient
    (-0.8, 0.5 * 3.24, -1.8),  # away from the target: the larger error, so that it comes back
])
def test_value_clip(guess, loss, slope):
    values = table([guess]).requires_grad_()
    found = value_loss(values, table([0.0]), table([1.0]), table([True]), clip=0.5)
    found.backward()
    assert found.item() == pytest.approx(loss) and values.grad.item() == pytest.approx(slope, abs=1e-6)


def batch_of(rows=5, length=4):
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(2, 30, (rows, 3 + length), generator=draw)
    return {"prompt_ids": ids[:, :3], "prompt_mask": torch.ones(rows, 3, dtype=torch.long),
            "completion_ids": ids[:, 3:], "completion_mask": torch.ones(rows, length, dtype=torch.long)}


def test_a_guess_sees_only_what_comes_before_its_token():
    batch = batch_of()
    critic = Critic(tiny.model(), FAST)
    mask = np.ones((5, 4), dtype=bool)
    critic.learn(batch, np.zeros((5, 4)), np.random.default_rng(0).normal(size=(5, 4)), mask)
    before = critic.values(batch)
    batch["completion_ids"] = batch["completion_ids"].clone()
    batch["completion_ids"][:, 2] = 31
    after = critic.values(batch)
    assert after[:, :3] == pytest.approx(before[:, :3]) and (abs(after[:, 3] - before[:, 3]) > 1e-6).all()


def test_first_loss_is_that_of_the_guesses_made():
    critic, batch = Critic(tiny.model(), CriticConfig(rows=5)), batch_of()
    returns = np.random.default_rng(0).normal(size=(5, 4))
    mask = np.arange(4) < np.array([[4], [3], [2], [1], [4]])
    old = critic.values(batch)
    assert (old == 0).all(), "a new head knows nothing"
    first = Critic(tiny.model(), CriticConfig(rows=5, epochs=1)).learn(batch, old, returns, mask)
    assert first == pytest.approx(0.5 * (returns[mask] ** 2).mean(), rel=1e-5)


@pytest.mark.parametrize("body", ["copy", "policy"])
def test_the_policy_is_not_the_critics_to_change(body):
    model, batch = tiny.model(), batch_of()
    before = [p.detach().clone() for p in model.parameters()]
    critic = Critic(model, CriticConfig(body=body, head_lr=1e-1, body_lr=1e-1))
    critic.learn(batch, np.zeros((5, 4)), np.ones((5, 4)), np.ones((5, 4), dtype=bool))
    assert abs(critic.values(batch)).min() > 0.01
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(p.grad is None for p in model.parameters())
    assert [g["lr"] for g in critic.optimizer.param_groups] == [0.1] * (2 if body == "copy" else 1)


def test_critic_learns_what_fresh_rollouts_will_be_worth(tmp_path):
    """Each batch's explained variance is measured before any training on it."""
    method = ppo.PPO(tiny.Wordy(), ppo.PPOConfig(critic=FAST))
    result = train(tiny.policy(), tiny.problems(), method, config(steps=25, prompts_per_step=8, group_size=4,
                   learning_rate=1e-6), tmp_path, make=ppo.build)
    found = [row["critic/explained_variance"] for row in result["curve"]]
    assert found[0] == 0.0 and np.mean(found[-5:]) > 0.2


# ---- resuming

class Interruption(Exception):
    pass


def resumable(folder, on_step=None, base=None):
    policy = tiny.policy()
    method = ppo.PPO(base or tiny.curious(tiny.Wordy()), ppo.PPOConfig(critic=FAST))
    settings = config(steps=6, save_every=2, num_iterations=1, learning_rate=1e-2)
    result = train(policy, tiny.problems(), method, settings, folder, on_step=on_step, make=ppo.build)
    return result, torch.cat([p.detach().flatten() for p in policy.model.parameters()])


def test_interrupted_run_goes_on_with_the_same_critic(tmp_path):
    def interrupt(row):
        if row["step"] == 5:
            raise Interruption

    whole, weights = resumable(tmp_path / "whole")
    with pytest.raises(Interruption):
        resumable(tmp_path / "cut", interrupt)
    assert resume.read_rows(tmp_path / "cut" / "curve.jsonl")[-1]["step"] == 5
    steps = []
    again, same = resumable(tmp_path / "cut", lambda row: steps.append(row["step"]))
    assert steps == [5, 6] and again["curve"] == whole["curve"] and torch.equal(weights, same)
    assert whole["curve"][-1]["critic/value_loss"] > 0
    stored = [torch.load(tmp_path / name / "checkpoint-6" / ppo.CRITIC_STATE) for name in ("whole", "cut")]
    assert all(torch.equal(a, b) for a, b in zip(*(s["body"] for s in stored), strict=True))
    assert stored[0]["updates"] == stored[1]["updates"] == 24


# ---- Unsloth's generated trainer

def scripted_run(folder, unsloth):
    """PPO on fixed completions; returns the policy's weights and the critic's body.

    The policy's optimiser is SGD: Adam would make a step of a rounding error where a gradient is all but nil.
    """
    import peft
    import unsloth_cpu

    torch.manual_seed(0)
    model = peft.get_peft_model(tiny.model(), peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"))
    if unsloth:
        unsloth_cpu.adapt(model)
    settings = config(steps=3, optimizer="sgd", learning_rate=0.1, max_grad_norm=1e9, micro_batch=3)
    method = ppo.PPO(tiny.Scripted(), ppo.PPOConfig(critic=FAST))
    trainer = ppo.build(model, tiny.tokenizer(), method, tiny.problems(), settings, folder)
    if unsloth:
        unsloth_cpu.without_autocast(trainer)
    trainer.train()
    weights = torch.cat([p.detach().flatten() for n, p in model.named_parameters() if "lora_B" in n])
    return weights, torch.cat([p.detach().flatten() for p in trainer.critic.trained])


def test_unsloth_agrees(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNSLOTH_COMPILE_LOCATION": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, Path(__file__), "results.pt"], cwd=tmp_path, env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    ours, theirs = scripted_run(tmp_path, False), torch.load(tmp_path / "results.pt")
    differences = [(a - b).abs().max().item() for a, b in zip(ours, theirs, strict=True)]
    assert differences[0] < 1e-6 < 1e-3 < ours[0].abs().max(), "the policy's, which started at 0"
    assert differences[1] < 1e-5, "the critic's"


if __name__ == "__main__":
    import unsloth_cpu

    torch.set_num_threads(1)
    unsloth_cpu.load()
    torch.save(scripted_run("checkpoints", True), sys.argv[1])
