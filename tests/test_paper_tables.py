"""The paper's reported numbers, and the arithmetic audit of them."""

import pytest

from explorl.errors import ConfigError
from explorl.report import paper

FRAME = paper.load("sde2")


def cell(table, row, metric, model="Qwen2.5-3B-Instruct"):
    rows = FRAME.query("table == @table and row == @row and metric == @metric and model == @model")
    assert len(rows) == 1
    return rows.iloc[0]


@pytest.mark.parametrize(("table", "row", "metric", "value"), [
    ("1", "base", "acc", 54.66), ("1", "cfl", "acc", 76.80), ("1", "cfee", "acc", 80.52), ("1", "sde2", "acc", 82.03),
    ("1", "sde2", "s_acc", 97.2), ("1", "sde2", "n_strategies", 9.78), ("2", "base", "acc", 6.74),
    ("2", "cfee", "acc", 9.87), ("2", "sde2", "acc", 13.28), ("3", "base", "acc", 38.37), ("3", "cfl", "acc", 46.47),
    ("3", "cfee", "acc", 48.76), ("3", "cfee", "s_acc", 94.46), ("3", "cfee", "n_strategies", 4.19),
    ("3", "sde2", "acc", 49.64), ("3", "sde2", "n_strategies", 7.21), ("5", "oc_fa", "acc", 75.15),
    ("5", "oc_fa_sd", "acc", 80.02), ("5", "sde2", "acc", 82.03),
])
def test_values(table, row, metric, value):
    assert cell(table, row, metric).value == value


def test_llama_and_the_interval():
    llama = cell("1", "sde2", "acc", "Llama-3.1-8B-Instruct")
    assert llama.value == 75.44 and "Llama-3.2-3B" in llama.note
    assert (cell("1", "sde2", "acc").low, cell("1", "sde2", "acc").high) == (79.96, 84.10)
    assert (cell("1", "cfee", "acc").low, cell("1", "cfee", "acc").high) == (78.38, 82.65)


def test_statuses_and_sources():
    assert set(FRAME.status) == set(paper.STATUSES)
    assert FRAME.source.str.len().gt(0).all()
    assert (FRAME.value.isna() == (FRAME.status == "not_recovered")).all()
    assert not FRAME.duplicated(["table", "model", "row", "metric"]).any()
    derived = FRAME.query("status == 'derived' and metric == 'acc'")
    assert set(zip(derived.table, derived.row)) == {("1", "cfl"), ("3", "cfl")}


@pytest.mark.parametrize(("left", "right", "row"), [
    (("1", "sde2"), ("1", "base"), "sde2 - base"), (("1", "sde2"), ("1", "cfl"), "sde2 - cfl"),
    (("1", "sde2"), ("1", "cfee"), "sde2 - cfee"), (("3", "sde2"), ("3", "cfl"), "sde2 - cfl, MedMCQA"),
    (("3", "sde2"), ("3", "cfee"), "sde2 - cfee, MedMCQA"), (("3", "sde2"), ("3", "base"), "sde2 - base, MedMCQA"),
])
def test_stated_differences_follow_from_the_cells(left, right, row):
    stated = cell("text", row, "acc_difference").value
    assert cell(*left, "acc").value - cell(*right, "acc").value == pytest.approx(stated, abs=0.051)


@pytest.mark.parametrize(("value", "n", "decimals", "count"), [
    (54.66, 1319, 2, 721), (76.80, 1319, 2, 1013), (80.52, 1319, 2, 1062), (82.03, 1319, 2, 1082),
    (75.44, 1319, 2, 995), (97.2, 1319, 1, 1282), (75.15, 1319, 2, None), (80.02, 1319, 2, None),
    (6.74, 193, 2, 13), (9.87, 193, 2, None), (13.28, 193, 2, None), (9.87, 963, 2, 95), (9.87, 770, 2, 76),
    (38.37, 4183, 2, 1605), (46.47, 4183, 2, 1944), (48.76, 4183, 2, None), (49.64, 4183, 2, None),
    (94.46, 4183, 2, None), (0, 7, 2, 0), (100, 7, 2, 7), (33.3, 3, 1, 1), (33.4, 3, 1, None), (12.5, 8, 0, 1),
    (101.0, 100, 2, None),
])
def test_achievable(value, n, decimals, count):
    assert paper.achievable(value, n, decimals) == count


@pytest.mark.parametrize("n", [3, 8, 193, 1319])
def test_every_share_is_achievable(n):
    assert all(paper.achievable(round(100 * k / n, 2), n) is not None for k in range(n + 1))


def test_no_single_n_fits_aime_before_1054():
    printed = (6.74, 9.87, 13.28)
    common = (n for n in range(1, 1100) if all(paper.achievable(v, n) is not None for v in printed))
    assert next(n for n in common if n >= 193) == 1054


def test_counts_in_the_file_are_those_of_the_audit():
    audited = paper.audit(FRAME)
    both = audited[audited["count"].notna()]
    assert len(both) == 10 and (both["count"] == both.k).all()
    assert set(audited[~audited.fits].value) == {75.15, 80.02, 9.87, 13.28, 48.76, 49.64, 94.46}
    misfits = audited[~audited.fits]
    assert (misfits.below < misfits.value).all() and (misfits.value < misfits.above).all()


def test_errors():
    with pytest.raises(ConfigError, match="paper = 'nope'.*sde2"):
        paper.load("nope")
    with pytest.raises(ConfigError, match="n = 0"):
        paper.achievable(50, 0)
    with pytest.raises(ConfigError, match="decimals = -1"):
        paper.achievable(50, 2, -1)
