"""A run killed at any moment and started again is the run that was never killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import killed_run
import pytest
import torch

from explorl.errors import ConfigError
from explorl.train import resume
from explorl.train.arm import _whole

FOLDER = Path(__file__).parent


def weights(policy):
    return torch.cat([p.detach().flatten() for p in policy.model.parameters()])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    result, policy = killed_run.run(folder)
    return folder, result, weights(policy)


def killed(folder, step, where):
    command = [sys.executable, FOLDER / "killed_run.py", folder, str(step), where]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, env=environment, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]


@pytest.mark.parametrize("step, where, resumed_from", [(5, "step", 3), (6, "checkpoint", 3)])
def test_killed_run_goes_on_as_if_nothing_had_happened(step, where, resumed_from, uninterrupted, tmp_path):
    killed(tmp_path, step, where)
    assert resume.read_rows(tmp_path / "curve.jsonl")[-1]["step"] == step > resumed_from
    assert not (tmp_path / "result.json").exists()
    with (tmp_path / "curve.jsonl").open("a") as file:
        file.write('{"kind": "train", "st')  # as a kill in the middle of a line leaves it
    rows = []
    result, policy = killed_run.run(tmp_path, on_step=rows.append)
    folder, whole, final = uninterrupted
    assert rows[0]["step"] == resumed_from + 1
    assert (tmp_path / "curve.jsonl").read_bytes() == (folder / "curve.jsonl").read_bytes()
    assert torch.equal(weights(policy), final)
    assert result["hash"] == whole["hash"] and result["seconds"] > 0


def test_curve_has_each_step_and_each_evaluation_once(uninterrupted):
    _, result, _ = uninterrupted
    assert [r["step"] for r in result["curve"] if r["kind"] == "train"] == list(range(1, 10))
    assert [r["step"] for r in result["curve"] if r["kind"] == "eval"] == [0, 4, 8, 9]
    assert result["steps"] == 9 and result["method"] == "remembering" and result["tag"] == {"arm": "test"}
    assert not any("step_time" in row for row in result["curve"])


def test_finished_run_returns_at_once(uninterrupted):
    folder, result, _ = uninterrupted

    def never(row):
        raise AssertionError("a finished run took a step")

    again, _ = killed_run.run(folder, on_step=never)
    assert again == result


def test_run_killed_between_its_last_checkpoint_and_its_result_only_finishes(uninterrupted, tmp_path):
    folder, result, final = uninterrupted
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "result.json").unlink()
    rows = []
    again, policy = killed_run.run(copy, on_step=rows.append)
    assert rows == [] and again["curve"] == result["curve"] and torch.equal(weights(policy), final)


def test_evaluation_does_not_disturb_training(uninterrupted, tmp_path):
    _, result, final = uninterrupted
    config = replace(killed_run.CONFIG, save_every=0)
    quiet, policy = killed_run.run(tmp_path, config=config, evaluate=None, eval_every=0)
    assert torch.equal(weights(policy), final)
    assert quiet["curve"] == [row for row in result["curve"] if row["kind"] == "train"]
    assert not list(tmp_path.glob("checkpoint-*"))


def test_other_run_in_the_folder_is_refused_by_name(uninterrupted):
    folder, _, _ = uninterrupted
    with pytest.raises(ConfigError, match=r"differs: config.learning_rate, tag.arm"):
        killed_run.run(folder, config=replace(killed_run.CONFIG, learning_rate=2e-2), tag={"arm": "other"})


def test_checkpoint_of_unknown_origin_is_refused(tmp_path):
    (tmp_path / "checkpoint-3").mkdir()
    with pytest.raises(ConfigError, match="without inputs.json"):
        killed_run.run(tmp_path)


def test_thread_count_is_given_back_and_is_no_part_of_the_run(uninterrupted):
    folder, result, _ = uninterrupted
    before = torch.get_num_threads()
    again, _ = killed_run.run(folder, config=replace(killed_run.CONFIG, threads=2))
    assert again["hash"] == result["hash"] and torch.get_num_threads() == before


# ---- the files, without a trainer

def checkpoint(folder, step, done=True):
    path = folder / f"checkpoint-{step}"
    path.mkdir()
    if done:
        resume.write_json(path / resume.DONE, {"seconds": 1.0})
    return path


def curve(folder, steps):
    for step in steps:
        resume.append_row(folder / "curve.jsonl", {"kind": "train", "step": step})


def whole(rows, step):
    return _whole(rows, step, eval_every=0, steps=9)


def test_rewind_takes_the_newest_whole_checkpoint_and_drops_later_rows(tmp_path):
    curve(tmp_path, range(1, 9))
    checkpoint(tmp_path, 3)
    newest = checkpoint(tmp_path, 6)
    partial = checkpoint(tmp_path, 8, done=False)
    assert resume.rewind(tmp_path, whole) == newest and not partial.exists()
    assert [row["step"] for row in resume.read_rows(tmp_path / "curve.jsonl")] == [1, 2, 3, 4, 5, 6]


def test_rewind_passes_over_a_checkpoint_whose_curve_is_lost(tmp_path):
    curve(tmp_path, [1, 2, 3, 5, 6])
    expected = checkpoint(tmp_path, 3)
    checkpoint(tmp_path, 6)
    assert resume.rewind(tmp_path, whole) == expected
    assert [row["step"] for row in resume.read_rows(tmp_path / "curve.jsonl")] == [1, 2, 3]


def test_rewind_without_a_checkpoint_starts_anew(tmp_path):
    curve(tmp_path, [1, 2])
    assert resume.rewind(tmp_path, whole) is None
    assert resume.read_rows(tmp_path / "curve.jsonl") == []


def test_missing_evaluation_makes_the_curve_incomplete():
    rows = [{"kind": "eval", "step": 0}, {"kind": "train", "step": 1}, {"kind": "train", "step": 2}]
    assert _whole(rows, 1, eval_every=2, steps=9) is False  # row 2 is too many
    assert _whole(rows, 2, eval_every=2, steps=9) is False  # the evaluation at 2 is missing
    assert _whole([*rows, {"kind": "eval", "step": 2}], 2, eval_every=2, steps=9) is True


def test_json_file_is_replaced_whole(tmp_path):
    path = tmp_path / "result.json"
    resume.write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        resume.write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


def test_method_settings_tell_runs_apart():
    class Method:
        name = "m"

        def __init__(self, delta, encode):
            self.delta, self.encode = delta, encode

    describe = lambda *a: resume.fingerprint(resume.describe_method(Method(*a)))
    assert describe(0.9, len) == describe(0.9, len)
    assert len({describe(0.9, len), describe(0.8, len), describe(0.9, max)}) == 3
