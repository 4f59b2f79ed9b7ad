"""IMAGINE in the trainer: what is logged, the bonus in the weights, and a run that was broken off and goes on."""

import pytest
import tiny_policy as tiny
import torch

from explorl.papers.method import Batch
from explorl.train import dapo, ppo, resume
from explorl.train.arm import train
from explorl.train.config import TrainConfig

CONFIG = TrainConfig(steps=4, prompts_per_step=2, group_size=3, max_completion_tokens=8, learning_rate=1e-2,
                     save_every=2, threads=1)


class BrokenOff(Exception):
    pass


def run(folder, on_step=None, **settings):
    method, policy = tiny.curious(tiny.Wordy(), **settings), tiny.policy()
    result = train(policy, tiny.problems(5), method, CONFIG, folder, on_step=on_step)
    return result, torch.cat([p.detach().flatten() for p in policy.model.parameters()]), method


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    return folder, *run(folder)


def test_a_broken_off_run_goes_on_with_the_same_predictor_optimiser_and_n(whole, tmp_path):
    folder, _, weights, method = whole

    def stop(row):
        if row["step"] == 3:
            raise BrokenOff

    with pytest.raises(BrokenOff):
        run(tmp_path, stop)
    assert resume.read_rows(tmp_path / "curve.jsonl")[-1]["step"] == 3
    rows = []
    _, resumed, other = run(tmp_path, rows.append)
    assert [row["step"] for row in rows] == [3, 4], "from the checkpoint of step 2"
    assert (tmp_path / "curve.jsonl").read_bytes() == (folder / "curve.jsonl").read_bytes()
    assert torch.equal(weights, resumed) and other.novelty.calls == method.novelty.calls == 4
    ours, theirs = (m.novelty.network.state_dict() for m in (method, other))
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_novelty_bonus_and_loss_are_logged_each_step(whole):
    _, result, _, _ = whole
    rows = [row for row in result["curve"] if row["kind"] == "train"]
    for name in ("novelty_error", "bonus", "rnd_loss"):
        values = [row[f"components/{name}/mean"] for row in rows]
        assert len(set(values)) == 4 and min(values) >= 0


def test_a_passive_predictor_leaves_training_alone_and_a_bonus_does_not(whole, tmp_path):
    _, _, paid, _ = whole
    policy = tiny.policy()
    train(policy, tiny.problems(5), tiny.Wordy(), CONFIG, tmp_path / "plain")
    plain = torch.cat([p.detach().flatten() for p in policy.model.parameters()])
    result, passive, method = run(tmp_path / "passive", bonus_source="none")
    assert torch.equal(passive, plain) and not torch.equal(paid, plain)
    assert method.novelty.calls == 4 and result["method"] == "imagine_none"
    assert result["curve"][-1]["components/rnd_loss/mean"] > 0


def test_what_the_bonus_did_is_logged_where_it_can_be_told(whole):
    _, result, _, _ = whole
    rows = [row for row in result["curve"] if row["kind"] == "train"]
    for name in ("novelty_length_rho", "bonus_median", "bonus_max", "wrong_lifted", "all_wrong_groups"):
        values = [row[f"imagine/{name}"] for row in rows if f"imagine/{name}" in row]
        assert values and all(-1 <= value <= 1 for value in values), name
    assert all(value == value for row in rows for value in row.values() if isinstance(value, float)), "no NaN"


@pytest.mark.parametrize("around", [lambda m: m, lambda m: ppo.PPO(m), lambda m: dapo.DAPO(m, 8)])
def test_looking_on_teaches_the_predictor_nothing(around):
    method = around(tiny.curious(tiny.Wordy()))
    novelty = getattr(method, "base", method).novelty if hasattr(method.base, "novelty") else method.novelty
    batch = Batch(["w1"] * 3, ["yes", "no w2", "w3"], [""] * 3, 3, completion_ids=[[2, 1], [3, 6, 1], [7, 1]])
    looked = [method.still().components(batch)["novelty_error"] for _ in range(2)]
    assert novelty.calls == 0 and (looked[0] == looked[1]).all()
    method.components(batch)
    assert novelty.calls == 1 and (method.still().components(batch)["novelty_error"] != looked[0]).any()
