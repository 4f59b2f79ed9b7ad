"""EMPO's tables against records: regimes apart, a tuned model apart from its base, no lent benchmark."""

import pytest

from explorl.report import paper, tables, verdicts
from explorl.report.records import Record, metric_row

SMALL = "Qwen2.5-Math-1.5B"


def record(run, arms, *, metric="acc_avg", scale="t4_paper", backbone=f"unsloth/{SMALL}", task="numina", **params):
    rows = [metric_row(arm, metric, dict(enumerate(values)), n=200) for arm, values in arms.items()]
    return Record(chapter="empo", run=run, scale=scale, metrics=rows, versions={}, hardware={}, git_commit=None,
                  params={"task": task, "backbone": backbone} | params, git_dirty=None, seconds=1.0,
                  peak_memory_mb=1.0, inputs_hash="x", created="2026-01-02T03:04:05+00:00")


BASE = record("table1_base", {"base": [0.28, 0.29]})
EMPO = record("table1_empo", {"empo": [0.41, 0.42]})
TUNED = record("table1_instruct", {"base": [0.40, 0.41]}, backbone=f"unsloth/{SMALL}-Instruct")
ALL = [BASE, EMPO, TUNED]


def row_of(records, arm, table="1A", **options):
    frame = tables.compare("empo", records=records, tables=[table], metric="acc_avg", **options).data
    found = frame[(frame.arm == verdict_name(arm)) & (frame.model == SMALL)]
    assert len(found) == 1
    return found.iloc[0]


def verdict_name(arm):
    return tables.style.display_name(arm)


def test_paper_and_measured_stand_side_by_side_to_the_printed_digit():
    row = row_of(ALL, "empo")
    assert row["paper"] == "42.1" and row["measured, full"].startswith("41.5 [")


def test_the_tuned_models_row_is_its_own_run_and_no_other():
    assert row_of(ALL, "instruct")["measured, full"].startswith("40.5")
    assert row_of(ALL, "base")["measured, full"].startswith("28.5")
    assert row_of([BASE, EMPO], "instruct")["measured, full"].startswith("not run yet: table1_qwen25_math_15b_instruct")
    assert verdicts.find(BASE, "instruct", "acc_avg") is None and verdicts.find(TUNED, "instruct", "acc_avg")
    assert verdicts.difference(EMPO, "empo", "instruct", "acc_avg", ALL) is None


def test_no_run_of_ours_speaks_for_regime_b():
    row = row_of(ALL, "empo", "1B")
    assert row["paper"] == "42.6" and row["measured, full"] == "not run yet" and row["verdict"] == "not tested"


def test_each_table_is_filled_by_runs_on_its_own_training_set():
    natural = record("t2", {"empo": [0.5]}, metric="acc_gpqa", task="natural", backbone="unsloth/Qwen2.5-7B")
    assert verdicts.full_record([natural], "empo", "2", "Qwen2.5-7B", "empo", "base") is natural
    assert verdicts.full_record([natural], "empo", "2", "Qwen2.5-14B", "empo", "base") is None
    assert verdicts.full_record([natural], "empo", "1A", "Qwen2.5-7B", "empo", "base") is None
    math = record("t1", {"empo": [0.5]}, backbone="unsloth/Qwen2.5-Math-7B")
    assert verdicts.full_record([math], "empo", "1A", "Qwen2.5-Math-7B", "empo", None) is math
    assert verdicts.full_record([math], "empo", "2", "Qwen2.5-7B", "empo", None) is None


def test_the_toy_stands_in_for_table_1a_only_where_it_starts_right():
    def toy(start):
        return record(f"toy_{start}", {"base": [0.4, 0.41], "empo": [0.6, 0.61]}, metric="acc", scale="toy",
                      task="digits", backbone="toy", start=start)
    row = row_of([toy("right"), toy("wrong")], "empo")
    assert row["measured, toy"].startswith("60.5 [")
    assert row_of([toy("wrong")], "empo")["measured, toy"] == "–"
    assert verdicts.toy_record([toy("right")], "empo", "3", "empo", None) is None


def test_runs_that_differ_in_equality_or_start_are_not_compared():
    strict, loose = (record(f"t_{e}", {arm: [0.4, 0.5]}, equality=e) for e, arm in (("math", "empo"), ("loose", "base")))
    assert verdicts.difference(strict, "empo", "base", "acc_avg", [loose]) is None
    alike = record("t_b", {"base": [0.3, 0.4]}, equality="math")
    assert verdicts.difference(strict, "empo", "base", "acc_avg", [loose, alike]).value == pytest.approx(0.1)


def test_claims_follow_the_papers_order():
    numbers = paper.load("empo")
    assert verdicts.reference_arm(numbers, "1A", SMALL, "empo", "acc_avg") == "supervised"
    assert verdicts.reference_arm(numbers, "1B", SMALL, "empo", "acc_avg") == "instruct"
    assert verdicts.reference_arm(numbers, "2", "Qwen2.5-7B", "empo", "acc_gpqa") == "base"
