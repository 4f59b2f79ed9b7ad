"""What is kept of a training run beside its record: window means of the trainer's own numbers, read as this run's."""

import json
import warnings

import numpy as np

from explorl.report import curves, style
from explorl.report.figures_imagine_runs import KEPT

LOSS, LATER = "components/rnd_loss/mean", "critic/held_out_explained_variance"


def run(arm, seed, steps, **values):
    """Rows as an arm leaves them; ``values`` are functions of the step, None where the trainer logged nothing."""
    rows = [{"kind": "eval", "step": 0, "acc": 0.25}]
    for step in range(1, steps + 1):
        logged = {name: of(step) for name, of in values.items()}
        rows.append({"kind": "train", "step": step, "loss": 1.0} | {n: v for n, v in logged.items() if v is not None})
    rows.append({"kind": "eval", "step": steps, "acc": 0.5})
    return {"arm": arm, "seed": seed, "curve": rows}


def saved(results, folder, train=()):
    curves.save(results, folder, train=train)
    return json.loads((folder / curves.FILE).read_text(encoding="utf-8"))


def test_means_over_five_steps_stand_at_the_last_of_them(tmp_path):
    results = [run("grpo", seed, 12, **{LOSS: lambda step, s=seed: step + 10.0 * s}) for seed in (0, 1)]
    kept = saved(results, tmp_path, [LOSS])
    steps, found = curves.points(kept, LOSS, kind="train")
    assert steps.tolist() == [5, 10, 12]
    assert found["grpo"].tolist() == [[3.0, 8.0, 11.5], [13.0, 18.0, 21.5]]
    full_steps, full = curves.points(results, LOSS, kind="train")
    assert full_steps.tolist() == list(range(1, 13))
    assert full["grpo"][1].tolist() == [step + 10.0 for step in range(1, 13)]


def test_what_is_absent_or_not_finite_counts_for_nothing(tmp_path):
    late = {5: 0.5, 10: float("nan")}
    broken = {1: float("nan"), 2: float("inf"), 3: 4.0, 4: None}
    results = [run("ppo", 0, 12, **{LATER: late.get, LOSS: lambda step: broken.get(step, 6.0)}),
               run("grpo", 0, 12, **{LOSS: lambda step: 1.0})]
    kept = saved(results, tmp_path, [LOSS, LATER, "critic/unheard_of"])
    assert kept[0]["train"] == {"step": [5, 10, 12], LOSS: [5.0, 6.0, 6.0], LATER: [0.5, None, None]}
    assert list(kept[1]["train"]) == ["step", LOSS]
    for source in (results, kept):
        steps, found = curves.points(source, LATER, kind="train")
        assert steps.tolist() == [5] and {arm: v.tolist() for arm, v in found.items()} == {"ppo": [[0.5]]}
    assert np.isfinite(curves.points(results, LOSS, kind="train")[1]["ppo"]).sum() == 9


def test_a_file_is_one_short_line_per_arm_and_seed_and_plain_json(tmp_path):
    noisy = np.random.default_rng(0).lognormal(size=(55, 101))
    results = [run(f"arm{i % 11}", i // 11, 100, **{name: lambda step, i=i: float(noisy[i, step]) for name in KEPT})
               for i in range(55)]
    curves.save(results, tmp_path, train=KEPT)
    text = (tmp_path / curves.FILE).read_text(encoding="utf-8")
    assert len(text.splitlines()) == 55 and len(text.encode()) < 300_000 and "NaN" not in text
    digits = [f"{value:.3e}" for entry in json.loads(text) for value in entry["train"][KEPT[0]]]
    assert [float(d) for d in digits] == [value for entry in json.loads(text) for value in entry["train"][KEPT[0]]]


def test_evaluations_and_training_do_not_mix(tmp_path):
    results = [run("grpo", 0, 5, acc=lambda step: 9.0)]
    kept = saved(results, tmp_path, ["acc"])
    for source in (results, kept):
        assert curves.points(source, "acc")[1]["grpo"].tolist() == [[0.25, 0.5]]
        assert set(curves.points(source, "acc", kind="train")[1]["grpo"].ravel()) == {9.0}


def test_nothing_is_kept_unasked_and_old_files_read_as_ever(tmp_path):
    results = [run("grpo", 0, 5, **{LOSS: lambda step: 1.0})]
    kept = saved(results, tmp_path)
    assert list(kept[0]) == ["arm", "seed", "curve"]
    old = [{"arm": "grpo", "seed": 0, "curve": [row for row in results[0]["curve"] if row["kind"] == "eval"]}]
    assert kept == old and curves.points(old, LOSS, kind="train")[1] == {}


def test_saving_what_was_kept_changes_nothing(tmp_path):
    once = saved([run("grpo", 0, 12, **{LOSS: lambda step: 1 / step})], tmp_path / "a", [LOSS])
    assert saved(once, tmp_path / "b", [LOSS]) == once


def test_training_is_shown_with_its_ends_and_says_when_there_is_nothing():
    results = [run("dapo", 0, 10, **{"dapo/rounds": lambda step: step if step > 2 else None}),
               run("imagine_dapo", 0, 10, **{"dapo/rounds": lambda step: 2 * step})]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = curves.show(results, {"dapo/rounds": "rounds"}, kind="train")
    assert "DAPO from 3 to 10" in shown and "IMAGINE (DAPO) from 2 to 20" in shown
    assert curves.NOT_LOGGED in curves.show(results, {"dapo/none": "x"}, kind="train")
    assert curves.NO_CURVES in curves.show(results, {"dapo/rounds": "x"})


def test_a_panel_of_training_beside_one_of_evaluations():
    results = [run("imagine", seed, 10, **{LOSS: lambda step: 1.0 / step}) for seed in (0, 1)]
    found = {LOSS: curves.points(results, LOSS, kind="train"), "acc": curves.points(results, "acc")}
    fig = curves.grid(found, {LOSS: "loss", "acc": "accuracy"}, percent=["acc"])
    loss, accuracy = fig.axes
    assert len(loss.lines[0].get_xdata()) == 10 and accuracy.lines[0].get_ydata().tolist() == [25.0, 50.0]
    assert "IMAGINE from 1 to 0.1" in style.alt_text(fig)
