"""The same methods on TRL and on Unsloth's generated trainer give the same weights."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiny_policy as tiny
import torch
import unsloth_cpu

from explorl.papers.method import Batch

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def unsloth_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unsloth")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "UNSLOTH_COMPILE_LOCATION": str(folder / "cache")}
    done = subprocess.run([sys.executable, FOLDER / "unsloth_cpu.py", "results.pt"], cwd=folder, env=environment,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return torch.load(folder / "results.pt", weights_only=False)


@pytest.fixture(scope="module")
def trl_results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trl")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield {name: unsloth_cpu.run(name, folder, False) for name in unsloth_cpu.scenarios()}
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", [name for name in unsloth_cpu.scenarios() if name != "sampled"])
def test_weights_agree(name, trl_results, unsloth_results):
    ours, theirs = trl_results[name][0], unsloth_results[name][0]
    assert (ours - theirs).abs().max() < 1e-5


def test_sampled_rollouts_train_on_both(trl_results, unsloth_results):
    """The two draw different samples from one seed, so only the path is compared, not the weights."""
    for results in (trl_results, unsloth_results):
        weights = results["sampled"][0]
        assert weights.isfinite().all() and (weights - results["bonus"][0]).abs().max() > 1e-3


def test_the_empo_scenario_keeps_a_group_and_drops_two():
    """The ungated scenario, which differs, learns from one of the two."""
    tokenizer, problems = tiny.tokenizer(), tiny.problems(3)
    prompts = [problem.prompt for problem in problems for _ in range(4)]
    stub = SimpleNamespace(processing_class=tokenizer, num_generations=4)
    kept, taught = {}, {}
    for gate in ("entropy", "none"):
        method = tiny.Agreeing(gate=gate)
        texts = tokenizer.batch_decode(method.rollout(prompts, stub)["completion_ids"], skip_special_tokens=True)
        batch = Batch(prompts, texts, [""] * 12, 4)
        found = method.components(batch)
        advantages = method.advantages(method.aggregate(found, batch), found, batch)
        kept[gate] = advantages.keep.reshape(3, 4).all(axis=1).tolist()
        taught[gate] = advantages.values.reshape(3, 4).any(axis=1).tolist()
    assert sum(kept["entropy"]) == 1 and kept["entropy"] == taught["entropy"]
    assert kept["none"] == [True] * 3 and sum(taught["none"]) == 2


def test_scenarios_differ_from_one_another(trl_results):
    """Else the agreement above would say nothing about the seam that a scenario exercises."""
    for name, (weights, _) in trl_results.items():
        others = [w for other, (w, _) in trl_results.items() if other != name]
        assert min((weights - w).abs().max() for w in others) > 1e-3, name


def test_every_setting_that_both_know_is_the_same(trl_results, unsloth_results):
    ours, theirs = trl_results["bonus"][1], unsloth_results["bonus"][1]
    free = {"output_dir", "run_name"}
    free |= {"per_device_eval_batch_size", "eval_accumulation_steps"}  # the trainer's own evaluation is not used
    differing = {k: (ours[k], theirs[k]) for k in ours.keys() & theirs.keys() - free if ours[k] != theirs[k]}
    assert not differing
