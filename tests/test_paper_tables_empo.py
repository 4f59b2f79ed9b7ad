"""EMPO's reported numbers: two regimes kept apart, averages that follow from the cells, the arithmetic audit."""

import math

import pytest

from explorl.report import paper

FRAME = paper.load("empo")
SMALL, LARGE = "Qwen2.5-Math-1.5B", "Qwen2.5-Math-7B"
BENCHMARKS = ("math500", "minerva", "olympiad", "aime24", "amc23")
SIZES = {"math500": 500, "minerva": 272, "olympiad": 675, "aime24": 30, "amc23": 40, "mmlu_pro": 12032, "gpqa": 340}
SIX = ["base", "instruct", "sft", "random", "supervised", "empo"]


def cell(table, model, row, metric):
    rows = FRAME.query("table == @table and model == @model and row == @row and metric == @metric")
    assert len(rows) == 1, (table, model, row, metric)
    return rows.iloc[0]


def line(table, model, row):
    return tuple(cell(table, model, row, f"acc_{b}").value for b in (*BENCHMARKS, "avg"))


@pytest.mark.parametrize(("table", "model", "row", "values"), [
    ("1A", SMALL, "base", (52.2, 10.7, 25.2, 10.0, 42.5, 28.1)),
    ("1A", SMALL, "sft", (61.8, 26.1, 27.1, 3.3, 37.5, 31.2)),
    ("1A", SMALL, "empo", (73.0, 32.4, 36.6, 13.3, 55.0, 42.1)),
    ("1A", LARGE, "odpo", (76.8, 30.9, 37.9, 26.7, 62.5, 47.0)),
    ("1A", LARGE, "supervised", (77.8, 39.7, 39.1, 20.0, 57.5, 46.8)),
    ("1A", LARGE, "empo", (78.0, 40.4, 37.3, 20.0, 65.0, 48.1)),
    ("1B", SMALL, "supervised", (78.0, 37.1, 39.1, 10.0, 50.0, 42.8)),
    ("1B", LARGE, "base", (70.2, 12.5, 30.8, 10.0, 45.0, 33.7)),
    ("1B", LARGE, "empo", (81.4, 42.3, 46.1, 23.3, 65.0, 51.6)),
    ("1B", "Eurus-2-7B-PRIME", "prime", (79.2, 38.6, 42.1, 26.7, 57.8, 48.9)),
    ("3", "OctoThinker-3B-Long", "supervised", (65.0, 23.5, 27.3, 6.7, 32.5, 31.0)),
    ("3", "OctoThinker-3B-Long", "empo", (60.6, 17.3, 23.6, 6.7, 30.0, 27.6)),
])
def test_lines(table, model, row, values):
    assert line(table, model, row) == values


def test_natural_reasoning_and_what_was_not_recovered():
    known = {(7, "base"): (32.1, 15.9), (7, "empo"): (50.1, 28.8),
             (14, "base"): (32.7, 30.6), (14, "empo"): (58.8, 35.3)}
    for (size, row), values in known.items():
        model = f"Qwen2.5-{size}B"
        assert (cell("2", model, row, "acc_mmlu_pro").value, cell("2", model, row, "acc_gpqa").value) == values
    second = FRAME.query("table == '2'")
    assert len(second) == 36 and second.value.notna().sum() == 8
    assert FRAME.query("table == 'v3-3'").value.isna().all()


def test_statuses_sources_and_sizes():
    assert set(FRAME.status) == {"printed", "not_recovered"} and FRAME.source.str.len().gt(0).all()
    assert (FRAME.value.isna() == (FRAME.status == "not_recovered")).all()
    assert not FRAME.duplicated(["table", "model", "row", "metric"]).any()
    for benchmark, size in SIZES.items():
        assert set(FRAME.query(f"metric == 'acc_{benchmark}'").n) == {size}
    assert FRAME.query("metric == 'acc_avg'").n.isna().all()
    assert set(FRAME.query("table != 'v1'").decimals) == {1}


@pytest.mark.parametrize("table", ["1A", "1B"])
def test_both_regimes_have_every_row(table):
    for model in (SMALL, LARGE):
        rows = FRAME.query("table == @table and model == @model").row.unique().tolist()
        assert rows == [r for r in SIX[:4] + ["odpo"] + SIX[4:] if r != "odpo" or model == LARGE]


@pytest.mark.parametrize("table", ["1A", "1B", "3"])
def test_printed_averages_follow_from_the_cells(table):
    lines = FRAME.query("table == @table")[["model", "row"]].drop_duplicates()
    assert len(lines) == {"1A": 13, "1B": 15, "3": 4}[table]
    for model, row in lines.itertuples(index=False):
        *cells, average = line(table, model, row)
        assert abs(math.fsum(cells) / 5 - average) <= 0.05 + 1e-9, (model, row)


def test_the_regimes_differ_where_the_models_were_graded_anew_and_only_there():
    for model in (SMALL, LARGE):
        for row in ("base", "instruct", "supervised", "empo"):
            assert line("1A", model, row) != line("1B", model, row)
        for row in ("sft", "random"):
            assert line("1A", model, row) == line("1B", model, row)
            assert "not graded anew" in cell("1B", model, row, "acc_avg").note


def test_figure_1_is_the_difference_of_the_cells():
    for benchmark, stated in {"math500": 13.2, "minerva": 25.3, "olympiad": 10.6, "aime24": 13.3, "amc23": 25.0}.items():
        metric = f"acc_{benchmark}"
        assert cell("figure 1", LARGE, "empo - base", f"{metric}_difference").value == stated
        gap = cell("1A", LARGE, "empo", metric).value - cell("1A", LARGE, "base", metric).value
        assert gap == pytest.approx(stated, abs=1e-9)
    for benchmark, stated in {"mmlu_pro": 18.0, "gpqa": 12.9}.items():
        metric, seven = f"acc_{benchmark}", "Qwen2.5-7B"
        gap = cell("2", seven, "empo", metric).value - cell("2", seven, "base", metric).value
        assert gap == pytest.approx(stated, abs=1e-9)
        assert cell("figure 1", "Qwen2.5-7B", "empo - base", f"acc_{benchmark}_difference").value == stated


def test_the_text_contradicts_the_table():
    for model, said, stands in ((SMALL, 42.8, 42.2), (LARGE, 51.7, 50.5)):
        assert cell("text", model, "instruct", "acc_avg").value == said
        assert cell("1B", model, "instruct", "acc_avg").value == stands
        assert cell("1B", model, "supervised", "acc_avg").value == said


@pytest.mark.parametrize(("table", "model", "row", "metric", "count"), [
    ("1A", SMALL, "base", "acc_math500", 261), ("1A", SMALL, "base", "acc_minerva", 29),
    ("1A", LARGE, "empo", "acc_olympiad", 252), ("1A", LARGE, "empo", "acc_aime24", 6),
    ("1A", LARGE, "empo", "acc_amc23", 26), ("2", "Qwen2.5-7B", "empo", "acc_gpqa", 98),
    ("2", "Qwen2.5-14B", "base", "acc_gpqa", 104),
])
def test_counts_by_hand(table, model, row, metric, count):
    found = cell(table, model, row, metric)
    assert found["count"] == count and abs(100 * count / found.n - found.value) <= 0.05


def test_audit():
    audited = paper.audit(FRAME)
    assert set(audited.metric) == {f"acc_{b}" for b in SIZES} and len(audited) == 32 * 5 + 8
    both = audited[audited["count"].notna()]
    assert (both["count"] == both.k).all() and len(both) == audited.fits.sum()
    misfits = audited[~audited.fits]
    assert set(zip(misfits.table, misfits.model, misfits.row, misfits.metric, misfits.value)) == {
        ("1B", SMALL, "empo", "acc_olympiad", 39.5), ("3", "OctoThinker-3B-Long", "base", "acc_olympiad", 7.5),
        ("1B", "Llama-3.1-70B-Instruct", "instruct", "acc_amc23", 30.1),
        ("1B", "Eurus-2-7B-PRIME", "prime", "acc_amc23", 57.8),
    }
    assert [paper.achievable(v, 83, 1) for v in (30.1, 57.8)] == [25, 48]


def test_all_of_regime_a_fits_675_olympiad_items_and_not_674():
    values = FRAME.query("table == '1A' and metric == 'acc_olympiad'").value
    assert all(paper.achievable(v, 675, 1) is not None for v in values)
    assert sum(paper.achievable(v, 674, 1) is None for v in values) == 6
