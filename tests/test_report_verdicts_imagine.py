"""IMAGINE's tables against records: each row against its own baseline, with the settings that its name tells."""

import pytest

from explorl.report import claims, paper, paper_rows, style, tables, verdicts
from explorl.report.records import Record, metric_row

MODEL, FRAME = "Qwen2.5-3B", paper.load("imagine")
PLAIN = dict(paper_rows.PLAIN["imagine"])


def record(run, arms, *, metric="acc", scale="t4_paper", backbone=f"unsloth/{MODEL}", task="countdown_4", **params):
    rows = [metric_row(arm, metric, dict(enumerate(values)), n=1024) for arm, values in arms.items()]
    return Record(chapter="imagine", run=run, scale=scale, metrics=rows, versions={}, hardware={}, git_commit=None,
                  params={"task": task, "backbone": backbone, "eval_tasks": [], "start": "habits"} | PLAIN | params,
                  git_dirty=None, seconds=1.0, peak_memory_mb=1.0, inputs_hash="x",
                  created=f"2026-01-02T03:04:{len(run):02d}+00:00")


def toy(run="toy_sweep", **params):
    arms = {"grpo": [0.30, 0.31, 0.32], "imagine": [0.35, 0.37, 0.36], "ppo": [0.2] * 3, "imagine_ppo": [0.3, 0.1, 0.2]}
    return record(run, params.pop("arms", arms), scale="toy", backbone="toy", task="digits",
                  **{"group_size": 8} | params)


def row_of(records, arm, table, metric="acc", model=MODEL, this=None):
    frame = tables.compare("imagine", this, records=records, tables=[table], metric=metric).data
    found = frame[(frame.arm == style.display_name(arm)) & (frame.model == model)]
    assert len(found) == 1
    return found.iloc[0]


@pytest.mark.parametrize(("table", "arm", "other"), [
    ("1 Countdown-34", "imagine", "grpo"), ("1 Countdown-34", "imagine_ppo", "ppo"), ("7", "imagine_dapo", "dapo"),
    ("10", "trajectory_aware", "grpo"), ("10", "error_conditioned", "trajectory_aware"),
    ("10", "imagine", "error_conditioned"), ("11", "imagine_g2", "grpo_g2"), ("11", "imagine", "grpo"),
    ("9", "imagine", "grpo"), ("1 GSM8K", "grpo", None), ("7", "dapo", None), ("9", "grpo_temp_0.3", None),
    ("9", "imagine_ppo", None),
])
def test_a_row_is_claimed_to_beat_its_own_baseline(table, arm, other):
    assert verdicts.reference_arm(FRAME, table, MODEL, arm, "acc", "imagine") == other


def test_every_row_with_a_claim_has_its_rival_in_its_table():
    cells = FRAME[FRAME.table.isin(verdicts.TASK_OF_TABLE["imagine"]) & FRAME.metric.isin(["acc", "pass_at_1"])]
    for cell in cells.itertuples():
        claimed = verdicts.reference_arm(FRAME, cell.table, cell.model, cell.row, cell.metric, "imagine")
        assert (claimed is not None) == cell.row.startswith(("imagine", "trajectory", "error"))


def test_every_table_of_accuracies_has_a_data_set():
    assert set(FRAME[FRAME.metric.isin(["acc", "pass_at_1"])].table) == set(verdicts.TASK_OF_TABLE["imagine"])


def test_the_papers_numbers_ours_and_the_verdict_stand_in_one_row():
    run = record("t", {"grpo": [0.30, 0.31, 0.32], "imagine": [0.40, 0.42, 0.41]})
    row = row_of([run], "imagine", "1 Countdown-4")
    assert row["paper"] == "47.39 ± 5.74, n = 1024" and row["measured, full"].startswith("41.0 [")
    assert row["claim"] == "> GRPO" and row["verdict"] == "holds at our scale"
    baseline = row_of([run], "grpo", "1 Countdown-4")
    assert (baseline["claim"], baseline["verdict"]) == (tables.MISSING, tables.MISSING)


def test_a_run_with_a_varied_setting_speaks_for_that_row_and_no_other():
    pairs, both = record("table11_g2", {"grpo": [0.1, 0.1], "imagine": [0.2, 0.3]}, group_size=2), {"grpo": [0.4, 0.4]}
    cold, heavy = record("temp", both, rollout_temperature=0.3), record("beta", both, beta_kl=0.01)
    runs = [pairs, cold, heavy]
    assert row_of(runs, "imagine_g2", "11")["measured, full"].startswith("25.0 [")
    assert row_of(runs, "imagine_g2", "11")["verdict"] == "direction only"
    assert row_of(runs, "grpo_temp_0.3", "9")["measured, full"].startswith("40.0")
    assert row_of(runs, "grpo_beta_0.01", "9")["measured, full"].startswith("40.0")
    for table, arm in (("11", "imagine_g3"), ("11", "imagine"), ("9", "grpo"), ("9", "grpo_temp_0.6"),
                       ("1 Countdown-4", "grpo"), ("7", "dapo")):
        assert row_of(runs, arm, table)["measured, full"].startswith("not run yet"), (table, arm)
    assert verdicts.find(cold, "grpo_temp_0.6", "acc") is None and verdicts.find(cold, "grpo", "acc")


def test_a_cell_of_the_grid_does_not_speak_for_table_1():
    cell = record("grid", {"imagine": [0.5, 0.5]}, alpha=1.3)
    assert verdicts.full_record([cell], "imagine", "1 Countdown-4", MODEL, "imagine", "grpo") is None


def test_arms_of_two_records_are_compared_only_if_made_alike():
    own = record("a", {"imagine": [0.4, 0.5]})
    others = [record("b", {"grpo": [0.1, 0.1]}, **change) for change in (
        {"novelty_input": "pooled"}, {"num_iterations": 4}, {"beta_kl": 0.01}, {"rollout_temperature": 0.3})]
    assert verdicts.difference(own, "imagine", "grpo", "acc", others) is None
    alike = record("c", {"grpo": [0.2, 0.3]}, error_mask=False, integration="pre")
    assert verdicts.difference(own, "imagine", "grpo", "acc", [*others, alike]).value == pytest.approx(0.2)


def test_table_4_reads_each_benchmark_of_a_run_trained_on_countdown_4():
    tasks = ["countdown_4", "countdown_34"]
    mixed = record("t4", {"imagine": [0.9]}, eval_tasks=tasks)
    rows = [metric_row("imagine", f"acc_{task}", {0: value}, n=1024) for task, value in zip(tasks, (0.4, 0.3))]
    mixed = mixed.model_copy(update={"metrics": [*mixed.metrics, *rows]})
    assert row_of([mixed], "imagine", "4 Countdown-4")["measured, full"].startswith("40.0")
    assert row_of([mixed], "imagine", "4 Countdown-34")["measured, full"].startswith("30.0")
    assert row_of([mixed], "imagine", "1 Countdown-4")["measured, full"].startswith("not run yet")
    alone = record("t4b", {"imagine": [0.35]}, eval_tasks=["countdown_34"])
    assert row_of([alone], "imagine", "4 Countdown-34")["measured, full"].startswith("35.0")
    assert row_of([alone], "imagine", "4 Countdown-4")["measured, full"].startswith("not run yet")


def test_table_2_takes_its_averages_from_the_accuracy_and_pass_at_k_from_its_own_name():
    run = record("aime", {"imagine": [0.3]}, task="dapo_math", eval_tasks=["aime24"])
    run = run.model_copy(update={"metrics": [*run.metrics, metric_row("imagine", "pass_at_8", {0: 0.5}, n=30)]})
    shown = {m: row_of([run], "imagine", "2", m, "not stated") for m in ("pass_at_1", "avg_at_32", "pass_at_8")}
    assert [row["measured, full"][:4] for row in shown.values()] == ["30.0", "30.0", "50.0"]
    assert row_of([run], "imagine", "2", "pass_at_32", "not stated")["measured, full"].startswith("not run yet")


def test_the_toy_stands_in_for_gsm8k_alone_and_from_its_own_start():
    sweep = toy()
    assert row_of([sweep], "imagine", "1 GSM8K")["measured, toy"].startswith("36.0 [")
    assert row_of([sweep], "imagine", "1 GSM8K")["verdict"] == "holds at our scale"
    assert row_of([sweep], "imagine_ppo", "1 GSM8K")["verdict"] == "not seen"
    assert row_of([toy(start="right")], "imagine", "1 GSM8K")["measured, toy"] == tables.MISSING
    for table in ("1 Countdown-34", "7", "9", "10", "11"):
        assert verdicts.toy_record([sweep], "imagine", table, "imagine", "grpo") is None
    mine = row_of([], "imagine", "1 GSM8K", this=sweep)
    assert mine["this run"].startswith("36.0 [") and row_of([], "imagine", "11", this=sweep)["this run"] == "–"


def test_the_sweep_speaks_before_later_runs_of_fewer_arms():
    later = toy("toy_g2_and_later", arms={"grpo": [0.1] * 3, "imagine": [0.1] * 3}, group_size=2)
    assert verdicts.toy_record([toy(), later], "imagine", "1 GSM8K", "imagine", "grpo").run == "toy_sweep"


def test_controls_are_claims_with_seeds_and_a_verdict():
    arms = {"imagine": [0.50, 0.53, 0.52, 0.51, 0.55], "constant": [0.40, 0.44, 0.41, 0.40, 0.45],
            "length": [0.50, 0.50, 0.55, 0.50, 0.52], "uniform": [0.6, 0.7, 0.6, 0.7, 0.6]}
    found = claims.table([("imagine", name) for name in ("constant", "length", "uniform", "shuffled")],
                         [toy(arms=arms)], "acc").data
    assert found.claim.tolist()[0] == "IMAGINE > constant bonus" and found.seeds.tolist() == ["5", "5", "5", "–"]
    assert found.verdict.tolist() == ["holds at our scale", "direction only", "not seen", "not tested"]
    assert found["difference in points"].tolist()[0] == "+10.2 [+9.2, +11.2]"  # 2.776 × 0.837 / √5


FILES = {
    "table1_countdown4_imagine": {"arms": ["imagine"]}, "table11_g2_imagine": {"arms": ["imagine"], "group_size": 2},
    "table10_countdown34_imagine": {"arms": ["imagine"], "task": "countdown_34"},
    "table1_countdown34_imagine": {"arms": ["imagine"], "task": "countdown_34"},
    "table9_temp03": {"arms": ["grpo"], "rollout_temperature": 0.3}, "toy": {"arms": ["imagine"], "scale": "toy"},
    "table4_countdown4_imagine": {"arms": ["imagine"], "eval_tasks": ["countdown_4", "countdown_34"]},
}


@pytest.mark.parametrize(("table", "arm", "file"), [
    ("1 Countdown-4", "imagine", "table1_countdown4_imagine"), ("11", "imagine_g2", "table11_g2_imagine"),
    ("10", "imagine", "table10_countdown34_imagine"), ("1 Countdown-34", "imagine", "table1_countdown34_imagine"),
    ("9", "grpo_temp_0.3", "table9_temp03"), ("4 Countdown-34", "imagine", "table4_countdown4_imagine"),
    ("11", "imagine", "table1_countdown4_imagine"), ("9", "grpo_beta_0.01", None), ("11", "imagine_g3", None),
])
def test_the_command_of_a_missing_run_is_its_own_file(tmp_path, table, arm, file):
    (tmp_path / "imagine").mkdir()
    for name, changes in FILES.items():
        values = {"scale": "t4_paper", "task": "countdown_4", "backbone": f"unsloth/{MODEL}", "group_size": 5,
                  "rollout_temperature": 1.0} | changes
        (tmp_path / f"imagine/{name}.yaml").write_text("\n".join(f"{k}: {v}" for k, v in values.items()))
    found = verdicts.command(tmp_path, "imagine", table, MODEL, arm)
    assert found == (file and f"python -m explorl run params/imagine/{file}.yaml")


def test_other_chapters_keep_their_rule():
    numbers = paper.load("empo")
    assert verdicts.reference_arm(numbers, "1A", "Qwen2.5-Math-1.5B", "empo", "acc_avg", "empo") == "supervised"
