"""A run's test items survive the way beside its record, and what is drawn from them is what they say."""

import json

import numpy as np
import pytest

from explorl.errors import ConfigError
from explorl.report import records, samples
from explorl.report.records import Record, metric_row
from explorl.report.stats import pass_at_k

ITEM = {"key": "1,2,3", "n": 4, "right": 1, "entropy_nats": 0.6931471805599453, "majority_right": 1, "p_majority": 0.5,
        "n_clusters": 2, "blank": 0, "text": "a long text"}


def _result(arm, seed, *rows):
    return {"arm": arm, "seed": seed, "curve": [], "items": [ITEM | row for row in rows]}


def _record(run, seeds, start, scale="toy"):
    metrics = [metric_row("empo", "acc", dict.fromkeys(seeds, 0.5), n=2)]
    return Record(chapter="empo", run=run, scale=scale, metrics=metrics, versions={}, hardware={}, git_commit=None,
                  params={"seeds": list(seeds), "arms": ["empo"], "start": start}, git_dirty=None, seconds=1.0,
                  peak_memory_mb=1.0, inputs_hash="h", created="2026-01-01T00:00:00+00:00")


RUN = [_result("base", 0, {"key": "a"}, {"key": "b", "majority_right": 0, "right": 0}),
       _result("empo", 0, {"key": "a", "right": 4}, {"key": "b", "right": 2}),
       _result("empo", 1, {"key": "a", "right": 0, "majority_right": 0}, {"key": "b", "right": 2})]


def test_items_come_back_without_text_and_in_order(tmp_path):
    samples.save(RUN, tmp_path)
    found = samples.read(tmp_path / samples.FILE)
    assert [(r["arm"], r["seed"]) for r in found] == [("base", 0), ("empo", 0), ("empo", 1)]
    assert found[1]["items"][0] == {k: v for k, v in ITEM.items() if k != "text"} | {
        "key": "a", "right": 4, "entropy_nats": 0.6931}
    assert "a long text" not in (tmp_path / samples.FILE).read_text()
    samples.save(found, tmp_path)
    assert samples.read(tmp_path / samples.FILE) == found


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples.save(RUN, None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["[{", "[[]]", "3", '[{"arm": "empo"}]',
                                  '[{"arm": "e", "seed": 0, "items": {"key": [1]}}]',
                                  json.dumps([{"arm": "e", "seed": 0, "items": dict.fromkeys(samples.FIELDS, [1])
                                               | {"n": [1, 2]}}])])
def test_a_broken_file_is_named(tmp_path, text):
    path = tmp_path / "empo" / "toy" / samples.FILE
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="empo/toy/samples.json.*make the run again"):
        samples.read(path)


def test_more_seeds_of_the_same_scale_and_start_are_taken(tmp_path):
    mine = [_result("empo", 0, {})]
    for run, start, scale, seeds in (("sweep", "right", "toy", (0, 1)), ("wrong", "wrong", "toy", (0, 1, 2)),
                                     ("other", "right", "t4", (0, 1, 2, 3))):
        records.save(_record(run, seeds, start, scale), tmp_path / "empo" / run)
        samples.save([_result("empo", seed, {}) for seed in seeds], tmp_path / "empo" / run)
    found, whose = samples.best(mine, "empo", "toy", folder=tmp_path, start="right")
    assert whose == "empo/sweep" and len(found) == 2
    assert samples.best([], "empo", "toy", folder=tmp_path, start="wrong")[1] == "empo/wrong"
    assert samples.best(mine, "empo", "smoke", folder=tmp_path, start="right") == (mine, "this run")


def test_a_file_without_its_record_does_not_speak(tmp_path):
    samples.save([_result("empo", seed, {}) for seed in (0, 1)], tmp_path / "empo" / "stray")
    assert samples.best([], "empo", "toy", folder=tmp_path) == ([], "this run")


def test_pass_curve_is_the_mean_of_the_unbiased_estimates():
    found = samples.pass_curve(RUN, "empo", [1, 2, 4])
    wanted = [[(pass_at_k(4, c, k) + pass_at_k(4, 2, k)) / 2 for k in (1, 2, 4)] for c in (4, 0)]
    np.testing.assert_allclose(found, wanted)
    assert samples.arms(RUN) == ["base", "empo"]


def test_by_start_splits_by_the_untrained_majority():
    found = samples.by_start(RUN, "empo")
    assert found["right"].tolist() == [1.0] and found["wrong"].tolist() == [0.5]  # seed 1 has no base
    lone = samples.by_start([_result("base", 0, {"key": "a"}), _result("empo", 0, {"key": "a"})], "empo")
    assert lone["right"].tolist() == [0.25] and np.isnan(lone["wrong"]).all()


def test_sides_count_problems_of_common_seeds():
    assert samples.sides(RUN, "empo") == {"right_right": 1, "right_wrong": 0, "wrong_right": 1, "wrong_wrong": 0}
    assert sum(samples.sides(RUN, "vote").values()) == 0


def test_column_is_float():
    assert samples.column(RUN[0]["items"], "majority_right").tolist() == [1.0, 0.0]
