"""What the chapters' own displays say: curves, claims, card, folded debugger, exercise checker."""

import numpy as np
import pytest

from explorl import params
from explorl.errors import ConfigError
from explorl.papers import sde2
from explorl.report import card, claims, curves, debugger_cast, records, style, verdicts
from explorl.report.exercises import check
from explorl.report.records import Record, metric_row


def _result(arm, seed, values):
    rows = [{"kind": "train", "step": 1, "loss": 0.0}]
    rows += [{"kind": "eval", "step": step, "acc_strict": value} for step, value in values.items()]
    return {"arm": arm, "seed": seed, "curve": rows}


def _record(run, seeds, scale="toy", **arms):
    metrics = [metric_row(arm, "acc_strict", dict(zip(seeds, values)), n=10) for arm, values in arms.items()]
    params = {"seeds": list(seeds), "arms": list(arms)}
    return Record(chapter="sde2", run=run, scale=scale, metrics=metrics, params=params,
                  versions={"python": "3.11"}, hardware={"cores": 2, "gpu": None}, git_commit="a" * 40,
                  git_dirty=True, seconds=120.0, peak_memory_mb=512.0, inputs_hash="h", created="2026-01-01T00:00:00+00:00")


def test_points_put_seeds_together_and_leave_gaps():
    results = [_result("sde2", 0, {0: 0.1, 5: 0.3}), _result("sde2", 1, {0: 0.2}), _result("base", 0, {})]
    steps, found = curves.points(results, "acc_strict")
    assert steps.tolist() == [0, 5] and list(found) == ["sde2"]
    np.testing.assert_array_equal(found["sde2"], [[0.1, 0.3], [0.2, np.nan]])
    assert curves.points(results, "stories")[1] == {}


def test_curves_say_their_ends_or_that_there_are_none():
    results = [_result("sde2", seed, {0: 0.1, 5: 0.3 + 0.2 * seed}) for seed in (0, 1)]
    shown = curves.show(results, {"acc_strict": "ACC", "stories": "stories"}, percent=("acc_strict",))
    assert 'alt="Learning curves' in shown and "ACC: SD-E² from 0.1 to 0.4" in shown and "stories" not in shown
    assert curves.NO_CURVES.split(",")[0] in curves.show([_result("base", 0, {})], {"acc_strict": "ACC"})


def test_curves_with_more_seeds_of_the_same_scale_are_taken(tmp_path):
    mine = [_result("sde2", 0, {0: 0.1})]
    for run, scale, seeds in (("sweep", "toy", (0, 1)), ("other", "t4", (0, 1, 2))):
        records.save(_record(run, seeds, scale=scale, sde2=[0.5] * len(seeds)), tmp_path / "sde2" / run)
        curves.save([_result("sde2", seed, {0: 0.2}) for seed in seeds], tmp_path / "sde2" / run)
    found, whose = curves.best(mine, "sde2", "toy", folder=tmp_path)
    assert whose == "sde2/sweep" and curves.points(found, "acc_strict")[1]["sde2"].tolist() == [[0.2], [0.2]]
    assert curves.best(mine, "sde2", "smoke", folder=tmp_path) == (mine, "this run")
    curves.save(mine, None)


def test_a_broken_file_of_curves_is_named(tmp_path):
    (tmp_path / "sde2" / "toy").mkdir(parents=True)
    (tmp_path / "sde2" / "toy" / "curves.json").write_text("[{", encoding="utf-8")
    with pytest.raises(ConfigError, match="sde2/toy/curves.json.*make the run again"):
        curves.best([], "sde2", "toy", folder=tmp_path)


def test_band_is_drawn_over_seeds_only():
    def bands(seeds):
        found = {"acc_strict": curves.points([_result("sde2", s, {0: 0.1, 5: 0.3 + s}) for s in seeds], "acc_strict")}
        paths = curves.grid(found, {"acc_strict": "ACC"}).axes[0].collections[0].get_paths()
        return sum(len(path.vertices) for path in paths)

    assert bands([0]) == 0 < bands([0, 1])


def test_claims_take_the_first_record_that_holds_both_arms():
    this = _record("smoke", [0], scale="smoke", sde2=[0.9])
    kept = _record("toy", [0, 1, 2], sde2=[0.5, 0.6, 0.7], cfee=[0.3, 0.4, 0.5])
    table = claims.table([("sde2", "cfee"), ("cfee", "sde2"), ("sde2", "cfl")], [this, kept]).data
    assert table.verdict.tolist() == [verdicts.VERDICTS[i] for i in (0, 2, 3)]
    assert table.record.tolist() == ["sde2/toy", "sde2/toy", "–"] and table.seeds.tolist() == ["3", "3", "–"]
    assert table["difference in points"][0].startswith("+20.0 [")


def test_evidence_with_more_seeds_comes_first():
    few, many = _record("a", [0], sde2=[0.5]), _record("b", [0, 1], sde2=[0.5, 0.5])
    smoke = _record("c", [0, 1, 2], scale="smoke", sde2=[0.5] * 3)
    assert [r.run for r in claims.by_evidence([few, smoke, many], scale="toy")] == ["b", "a"]
    assert claims.by_evidence([few, smoke, many], scale="toy", backbone="another") == []


def test_arms_table_leaves_out_what_the_run_does_not_have():
    table = claims.arms(_record("toy", [0, 1], base=[0.1, 0.2], sde2=[0.4, 0.6]), ("acc_strict", "stories"))
    assert table.data.columns.tolist() == ["arm", "ACC %"] and table.data["ACC %"][1].startswith("50.0 [")
    assert claims.estimates(_record("toy", [0], base=[0.1]))["base"][:2] == (0.1, -np.inf)


def test_card_measures_where_there_is_a_record_and_else_says_estimate(monkeypatch):
    p = params.load("sde2", "toy")
    kept = _record("toy_sweep", [0], sde2=[0.5])
    kept.params["steps"] = p.steps
    monkeypatch.setattr(card.record_files, "read_all", lambda folder, chapter: [kept])
    table = card.scales("sde2").data.set_index("scale")
    assert table.loc["toy", "time"] == f"{2 * len(p.arms) * len(p.seeds)} min"
    assert table.loc["toy", "basis"] == "measured on 2 cores"
    assert table.loc["t4", "basis"] == "estimate, not run yet" and table.loc["t4", "memory"].endswith("GiB")


def test_provenance_names_commit_seeds_and_changes():
    facts = dict(card.provenance(_record("toy", [3, 5], sde2=[0.5, 0.5])).data.itertuples(index=False))
    assert facts["seeds"] == "3, 5" and facts["commit"] == "aaaaaaaaaa (with changes)" and "gpu" not in facts["machine"]


def test_cast_is_folded_with_one_open_and_true_advantages():
    from explorl import encoders

    method = sde2.SDE2(sde2.Config(), encoders.load("random"))
    shown = debugger_cast.folded(method, opened="A4")
    assert shown.count("<details>") == 7 and shown.count("<details open>") == 1 and "<script" not in shown
    batch = debugger_cast.batch()
    found = method.components(batch)
    values = method.advantages(method.aggregate(found, batch), found, batch).values
    assert f"<b>B1</b> wrong-same-as-another: advantage {values[4]:+.2f}" in shown


@pytest.mark.parametrize(("function", "says"), [
    (lambda x: x + 1, "all 2 cases agree"), (lambda x: 2, "case 2 of 2: (2,) gives 2, expected 3"),
    (lambda x: [2], "case 1 of 2"), (lambda x: None, "case 1 of 2"),
])  # fmt: skip
def test_checker_names_the_first_difference(function, says):
    assert check(function, [((1,), 2), ((2,), 3)]).startswith(says)


def test_checker_waits_for_an_answer():
    def stub(x):
        raise NotImplementedError

    assert check(stub, [((1,), 2)]).startswith("not written yet")


def test_curves_have_alternative_text():
    found = {"acc_strict": curves.points([_result("sde2", 0, {0: 0.1, 5: 0.3})], "acc_strict")}
    assert "SD-E² from 0.1 to 0.3" in style.alt_text(curves.grid(found, {"acc_strict": "ACC"}))
