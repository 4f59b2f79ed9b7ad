import math
import re

import pandas as pd
import pytest

from explorl.errors import ConfigError
from explorl.report import paper, tables, verdicts
from explorl.report.records import Record, metric_row
from explorl.report.stats import Estimate


def record(run="toy", scale="toy", arms=None, *, created="2026-01-02T03:04:05+00:00", seconds=90.0, **params):
    """A record with acc_strict per arm: arm → per-seed values."""
    rows = [metric_row(arm, "acc_strict", dict(enumerate(values)), n=200,
                       counts={i: (round(200 * v), 200) for i, v in enumerate(values)})
            for arm, values in (arms or {}).items()]
    return Record(chapter="sde2", run=run, scale=scale, metrics=rows, params=params, versions={}, hardware={},
                  git_commit=None, git_dirty=None, seconds=seconds, peak_memory_mb=1.0, inputs_hash="x",
                  created=created)


TOY = record(arms={"base": [0.12, 0.13, 0.11], "cfl": [0.40, 0.42, 0.41], "cfee": [0.41, 0.42, 0.42],
                   "sde2": [0.38, 0.36, 0.40]}, task="digits", backbone="toy")
FULL = record("table1_sde2", "t4_paper", {"cfee": [0.78], "sde2": [0.84]}, task="gsm8k",
              backbone="unsloth/Qwen2.5-3B-Instruct-bnb-4bit")


def rows_of(styler, **where):
    frame = styler.data
    for column, value in where.items():
        frame = frame[frame[column] == value]
    return frame


def only(styler, **where):
    frame = rows_of(styler, **where)
    assert len(frame) == 1
    return frame.iloc[0]


def test_compare_shows_paper_and_measured_numbers_side_by_side():
    row = only(tables.compare("sde2", records=[TOY, FULL], tables=["1"]), arm="SD-E²", model="Qwen2.5-3B-Instruct")
    assert row["paper"] == "82.03 [79.96, 84.10], n = 1319"
    assert row["measured, full"].startswith("84.0 [") and row["measured, full"].endswith("n = 200, s = 1")
    assert row["measured, toy"].startswith("38.0 [33.0, 43.0]") and row["measured, toy"].endswith("s = 3")
    assert row["this run"] == "–"


def test_compare_judges_by_the_full_run_and_else_by_the_toy():
    with_full = only(tables.compare("sde2", records=[TOY, FULL], tables=["1"]), arm="SD-E²",
                     model="Qwen2.5-3B-Instruct")
    assert with_full["claim"] == "> GRPO-CFEE" and with_full["verdict"] == "direction only"
    toy_only = tables.compare("sde2", records=[TOY], tables=["1"])
    words = {r["arm"]: r["verdict"] for _, r in rows_of(toy_only, model="Qwen2.5-3B-Instruct").iterrows()}
    assert words == {"base": "–", "GRPO-CFL": "holds at our scale", "GRPO-CFEE": "direction only",
                     "SD-E²": "not seen"}


def test_compare_says_what_was_not_run_and_how_to_run_it(tmp_path, monkeypatch):
    folder = tmp_path / "sde2"
    folder.mkdir()
    base = "scale: t4_paper\ntask: gsm8k\nbackbone: unsloth/Qwen2.5-3B-Instruct\n"
    (folder / "table1_qwen.yaml").write_text(base + "arms: [base, sde2]\n")
    (folder / "table5_qwen.yaml").write_text(base + "arms: [sde2]\n")
    (folder / "toy.yaml").write_text("scale: toy\ntask: digits\nbackbone: toy\narms: [sde2]\n")
    monkeypatch.setattr(tables.places, "params_dir", lambda: tmp_path)
    shown = tables.compare("sde2", records=[])
    qwen = {"arm": "SD-E²", "model": "Qwen2.5-3B-Instruct"}
    assert only(shown, table="1", **qwen)["measured, full"] == \
        "not run yet: table1_qwen.yaml"
    assert "table5_qwen" in only(shown, table="5", **qwen)["measured, full"]
    assert only(shown, table="2", **qwen)["measured, full"] == "not run yet"
    assert only(shown, table="1", **qwen)["verdict"] == "not tested"


def test_compare_does_not_lend_the_toy_to_other_data_sets_or_models():
    shown = tables.compare("sde2", records=[TOY])
    assert only(shown, table="3", arm="SD-E²")["measured, toy"] == "–"
    llama = only(shown, table="1", arm="SD-E²", model="Llama-3.1-8B-Instruct")
    assert llama["measured, toy"] == "–" and llama["verdict"] in ("–", "not tested")
    assert llama["paper"].startswith("75.44")


def test_compare_marks_derived_and_unrecovered_cells():
    shown = tables.compare("sde2", records=[], tables=["1"])
    assert only(shown, arm="GRPO-CFL", model="Qwen2.5-3B-Instruct")["paper"] == "76.80†, n = 1319"
    assert only(shown, arm="base", model="Llama-3.1-8B-Instruct")["paper"] == "not recovered"


def test_compare_can_leave_out_what_nobody_knows():
    every = tables.compare("sde2", records=[], tables=["1"]).data
    known = tables.compare("sde2", records=[], tables=["1"], only_known=True).data
    assert len(known) == (every["paper"] != "not recovered").sum() == 5
    assert "not recovered" not in set(known["paper"])


def test_compare_puts_this_run_in_its_column_and_judges_it_last():
    mine = record("mine", "smoke", {"cfee": [0.1, 0.11], "sde2": [0.3, 0.31]})
    row = only(tables.compare("sde2", mine, records=[], tables=["1"]), arm="SD-E²", model="Qwen2.5-3B-Instruct")
    assert row["this run"].startswith("30.5 [") and row["verdict"] == "holds at our scale"


def test_compare_refuses_a_table_that_is_not_there():
    with pytest.raises(ConfigError, match="'9'"):
        tables.compare("sde2", records=[], tables=["9"])


@pytest.mark.parametrize("gap, word", [
    (Estimate(0.2, 0.1, 0.3, 5), "holds at our scale"), (Estimate(0.2, 0.0, 0.4, 5), "direction only"),
    (Estimate(0.2, -math.inf, math.inf, 1), "direction only"), (Estimate(0.0, -0.1, 0.1, 5), "not seen"),
    (Estimate(-0.2, -0.3, -0.1, 5), "not seen"), (Estimate(math.nan, 0, 0, 0), "not tested"), (None, "not tested")])
def test_the_scale_has_four_words(gap, word):
    assert verdicts.verdict(gap) == word and word in verdicts.VERDICTS


def test_difference_pairs_seeds():
    noisy = record(arms={"sde2": [0.2, 0.5, 0.8], "cfee": [0.1, 0.4, 0.7]})
    gap = verdicts.difference(noisy, "sde2", "cfee", "acc")
    assert gap.value == pytest.approx(0.1) and gap.low == pytest.approx(0.1) and gap.n == 3


def test_difference_crosses_records_only_where_they_were_made_alike():
    ours = record("cell_a", "t4_paper", {"sde2": [0.82, 0.83]}, task="gsm8k", steps=7500)
    alike = record("cell_b", "t4_paper", {"cfee": [0.80, 0.80]}, task="gsm8k", steps=7500)
    shorter = record("cell_c", "t4_paper", {"cfee": [0.10, 0.10]}, task="gsm8k", steps=100)
    smaller = record("cell_d", "t4", {"cfee": [0.10, 0.10]}, task="gsm8k", steps=7500)
    assert verdicts.difference(ours, "sde2", "cfee", "acc") is None
    assert verdicts.difference(ours, "sde2", "cfee", "acc", [shorter, smaller]) is None
    assert verdicts.difference(ours, "sde2", "cfee", "acc", [shorter, alike]).value == pytest.approx(0.025)


def test_compare_joins_one_run_per_cell():
    model = {"task": "gsm8k", "backbone": "unsloth/Qwen2.5-3B-Instruct"}
    cells = [record("a", "t4_paper", {"sde2": [0.82, 0.83]}, **model),
             record("b", "t4_paper", {"cfee": [0.80, 0.81]}, **model)]
    row = only(tables.compare("sde2", records=cells, tables=["1"]), arm="SD-E²", model="Qwen2.5-3B-Instruct")
    assert row["verdict"] == "holds at our scale"


def test_difference_of_one_seed_is_newcombes_interval():
    one = record(arms={"a": [56 / 70], "b": [48 / 80]})
    pooled = {row.arm: row.pooled for row in one.metrics}
    assert pooled["a"].n == 200
    rows = [metric_row("a", "acc_strict", {0: 56 / 70}, n=70, counts={0: (56, 70)}),
            metric_row("b", "acc_strict", {0: 48 / 80}, n=80, counts={0: (48, 80)})]
    gap = verdicts.difference(one.model_copy(update={"metrics": rows}), "a", "b", "acc")
    assert (gap.value, gap.low, gap.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_reference_is_the_next_arm_down_in_the_paper():
    numbers = paper.load("sde2")
    qwen = "Qwen2.5-3B-Instruct"
    assert verdicts.reference_arm(numbers, "1", qwen, "sde2", "acc") == "cfee"
    assert verdicts.reference_arm(numbers, "5", qwen, "oc_fa", "acc") == "base"
    assert verdicts.reference_arm(numbers, "1", qwen, "base", "acc") is None


def test_more_seeds_speak_louder():
    five = record("toy_sweep", arms={"sde2": [0.5] * 5, "cfee": [0.4] * 5}, created="2020-01-01T00:00:00+00:00")
    assert verdicts.toy_record([TOY, five], "sde2", "1", "sde2", "cfee") is five
    assert verdicts.full_record([TOY, FULL], "sde2", "2", "Qwen2.5-3B-Instruct", "sde2", None) is None


def test_results_table_lists_each_arm_with_interval_and_cost():
    shown = tables.results_table(records=[TOY, FULL], metrics=["acc_strict", "tokens"])
    assert list(shown.data.columns) == ["chapter", "run", "scale", "arm", "ACC %", "tokens", "seeds", "n", "minutes",
                                        "date"]
    row = only(shown, run="toy", arm="SD-E²")
    assert row["ACC %"] == "38.0 [33.0, 43.0]" and row["tokens"] == "–"
    assert (row["seeds"], row["n"], row["minutes"], row["date"]) == ("3", "200", "1.5", "2026-01-02")
    assert len(shown.data) == 6
    assert tables.results_table("rose", records=[TOY]).data.empty


def test_says_does_we_checks_its_rows():
    row = {"about": "std", "paper": "population", "code": "sample", "we": "population", "switch": "ddof"}
    shown = tables.says_does_we([row])
    assert list(shown.data.columns) == ["about", "the paper says", "the code does", "we do", "switch"]
    assert shown.data.iloc[0].tolist() == list(row.values())
    with pytest.raises(ConfigError, match="rows\\[1\\]"):
        tables.says_does_we([row, {"about": "x", "paper": "y", "we": "z"}])
    with pytest.raises(ConfigError, match="papre"):
        tables.says_does_we([row | {"papre": "typo"}])


def test_symbol_table_typesets_only_its_symbols():
    html = tables.symbol_table([{"symbol": r"\bar\kappa", "code": "mean_cosine", "meaning": "<mean> cosine"}]).to_html()
    assert r"\(\bar\kappa\)" in html and "&lt;mean&gt;" in html and "mathjax_ignore" not in html
    with pytest.raises(ConfigError, match="meaning"):
        tables.symbol_table([{"symbol": "x"}])


def test_config_diff_shows_only_what_differs():
    shown = tables.config_diff({"steps": 150, "delta": 0.8, "jobs": 2}, {"steps": 7500, "delta": 0.8, "lora_r": 64},
                               {"steps": "§4.2; ours: minutes"})
    assert shown.data.values.tolist() == [["steps", "150", "7500", "§4.2; ours: minutes"], ["jobs", "2", "–", ""],
                                          ["lora_r", "–", "64", ""]]
    assert len(tables.config_diff({"a": 1}, {"a": 1}, all_rows=True).data) == 1


def test_html_is_escaped_and_carries_the_themes_classes():
    frame = pd.DataFrame({"<h>": ["<script>alert(1)</script> $x$ \x00"]})
    html = tables.styled(frame, "<c>").to_html()
    assert "<script" not in html and "&lt;script&gt;" in html and "\x00" not in html
    assert "<th" in html and "&lt;h&gt;" in html and "&lt;c&gt;" in html
    assert re.search(r'<table[^>]*class="dataframe table tex2jax_ignore mathjax_ignore"', html)


def test_plain_text_lines_up():
    text = tables.plain(tables.styled(pd.DataFrame({"arm": ["SD-E²", "x"], "n": [1, 20]})))
    assert text.splitlines() == ["arm    n", "-----  --", "SD-E²  1", "x      20"]
