"""IMAGINE's reported numbers: every cell, the printed gains, what the ± can tell apart, the arithmetic of AIME."""

import math

import pytest

from explorl.errors import ConfigError
from explorl.report import paper, style, tables, verdicts

FRAME = paper.load("imagine")
MODEL = "Qwen2.5-3B"
AIME = ("pass_at_1", "pass_at_8", "pass_at_32", "avg_at_8", "avg_at_32")
DATA = ("GSM8K", "Countdown-34", "Countdown-4")
RUNS = 5


def cell(table, row, metric="acc", model=MODEL):
    rows = FRAME.query("table == @table and row == @row and metric == @metric and model == @model")
    assert len(rows) == 1, (table, model, row, metric)
    return rows.iloc[0]


@pytest.mark.parametrize(("table", "rows"), [
    ("1 GSM8K", {"ppo": (80.51, 0.57), "imagine_ppo": (81.69, 0.42), "grpo": (80.82, 1.02), "imagine": (82.51, 1.21)}),
    ("1 Countdown-34", {"ppo": (55.26, 3.32), "imagine_ppo": (59.24, 2.73), "grpo": (67.11, 2.13),
                        "imagine": (71.32, 1.99)}),
    ("1 Countdown-4", {"ppo": (33.07, 2.42), "imagine_ppo": (38.12, 2.81), "grpo": (38.72, 4.52),
                       "imagine": (47.39, 5.74)}),
    ("4 Countdown-4", {"grpo": (38.31, 4.82), "imagine": (47.26, 4.18)}),
    ("4 Countdown-34", {"grpo": (33.69, 5.31), "imagine": (38.77, 5.63)}),
    ("9", {"grpo": (38.72, 4.52), "grpo_beta_0.001": (36.72, 4.12), "grpo_beta_0.01": (17.78, 2.89),
           "grpo_temp_0.3": (22.63, 2.72), "grpo_temp_0.6": (28.69, 3.37), "imagine": (47.39, 5.74)}),
    ("10", {"grpo": (67.11, 2.13), "trajectory_aware": (69.39, 2.17), "error_conditioned": (70.65, 1.73),
            "imagine": (71.32, 1.99)}),
])
def test_accuracies_with_their_deviation(table, rows):
    found = FRAME.query("table == @table and metric == 'acc'")
    assert dict(zip(found.row, zip(found.value, found.plus_minus))) == rows


@pytest.mark.parametrize(("table", "rows"), [
    ("7", {"dapo": 46.91, "imagine_dapo": 49.24}),
    ("11", {"grpo_g2": 17.46, "imagine_g2": 19.09, "grpo_g3": 33.74, "imagine_g3": 35.15, "grpo_g4": 35.93,
            "imagine_g4": 42.61, "grpo": 38.72, "imagine": 47.39}),
])
def test_accuracies_without_one(table, rows):
    found = FRAME.query("table == @table and metric == 'acc'")
    assert dict(zip(found.row, found.value)) == rows and found.plus_minus.isna().all()


def test_other_models():
    sizes = {"Qwen2.5-0.5B": (0.33, 1.07), "Qwen2.5-1.5B": (45.32, 50.68), MODEL: (67.11, 71.32)}
    for model, values in sizes.items():
        assert tuple(cell("6", row, model=model).value for row in ("grpo", "imagine")) == values
    deepseek = [cell("3", row, model="deepseek-7b") for row in ("grpo", "imagine")]
    assert [(c.value, c.plus_minus) for c in deepseek] == [(65.35, 0.49), (66.41, 0.52)]


def test_times_and_overheads():
    hours = {"GSM8K": (0.70, 0.73, 0.86, 0.88), "Countdown-34": (7.43, 7.81, 12.13, 14.55),
             "Countdown-4": (6.97, 7.20, 11.69, 13.03)}
    overheads = {"GSM8K": (4.3, 2.3), "Countdown-34": (5.1, 20.0), "Countdown-4": (3.3, 11.5)}
    for data, times in hours.items():
        found = [cell(f"5 {data}", row, "hours").value for row in ("ppo", "imagine_ppo", "grpo", "imagine")]
        assert tuple(found) == times
        more = [cell(f"5 {data}", row, "overhead") for row in ("imagine_ppo / ppo", "imagine / grpo")]
        assert tuple(c.value for c in more) == overheads[data] and {c.status for c in more} == {"derived"}


def test_data():
    for data, (train, test) in zip(DATA, ((7473, 1319), (32768, 1024), (32768, 1024))):
        found = {m: cell("8", data, m, "").value for m in ("train", "test", "max_prompt_tokens", "max_response_tokens")}
        assert found == {"train": train, "test": test, "max_prompt_tokens": 256, "max_response_tokens": 1024}


def test_statuses_sources_sizes():
    assert set(FRAME.status) == {"printed", "derived"} and FRAME.source.str.len().gt(0).all()
    assert FRAME.value.notna().all() and set(FRAME[FRAME.status == "derived"].metric) == {"overhead", "acc_gain"}
    assert not FRAME.duplicated(["table", "model", "row", "metric"]).any()
    accuracies = FRAME[FRAME.metric == "acc"]
    assert set(accuracies[accuracies.table.isin(["1 GSM8K", "3"])].n) == {1319}
    assert set(accuracies[~accuracies.table.isin(["1 GSM8K", "3"])].n) == {1024}
    assert set(FRAME.query("table == '2' and not metric.str.endswith('_gain')").n) == {30, 240, 960}
    names = {t.split()[0] for t in FRAME.table}
    assert names == {*map(str, range(1, 12)), "figure"}


def test_printed_gains_follow_from_the_cells():
    gains = FRAME[FRAME.metric.str.endswith("_gain")]
    assert len(gains) == 6 + 5 + 2 + 4
    for gain in gains.itertuples():
        new, old = (cell(gain.table, row, gain.metric.removesuffix("_gain"), gain.model).value
                    for row in gain.row.split(" / "))
        exact = 100 * (new / old - 1)
        slack = 0.5 * 10.0**-gain.decimals + (0.005 if gain.table != "2" else 0.02)
        assert abs(exact - gain.value) <= slack, (gain.table, gain.row, exact)


@pytest.mark.parametrize(("table", "new", "old", "p", "model"), [
    ("1 GSM8K", "imagine_ppo", "ppo", 0.007, MODEL), ("1 Countdown-34", "imagine_ppo", "ppo", 0.073, MODEL),
    ("1 Countdown-4", "imagine_ppo", "ppo", 0.016, MODEL), ("1 GSM8K", "imagine", "grpo", 0.045, MODEL),
    ("1 Countdown-34", "imagine", "grpo", 0.012, MODEL), ("1 Countdown-4", "imagine", "grpo", 0.030, MODEL),
    ("3", "imagine", "grpo", 0.011, "deepseek-7b"), ("4 Countdown-34", "imagine", "grpo", 0.18, MODEL),
    ("10", "trajectory_aware", "grpo", 0.13, MODEL), ("10", "error_conditioned", "trajectory_aware", 0.34, MODEL),
    ("10", "imagine", "error_conditioned", 0.59, MODEL),
])
def test_what_five_runs_can_tell_apart(table, new, old, p, model):
    a, b = (cell(table, row, model=model) for row in (new, old))
    found = paper.welch(a.value, b.value, a.plus_minus, b.plus_minus, RUNS)
    digits = 2 if p >= 0.1 else 3
    assert round(found, digits) == p


def test_welch_by_hand():
    """Equal deviations of two runs each: t = gap / s, and two degrees of freedom."""
    t = 2.0
    assert paper.welch(12, 10, 1, 1, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), abs=1e-12)
    assert paper.welch(10, 12, 1, 1, 2) == paper.welch(12, 10, 1, 1, 2) and paper.welch(1, 1, 2, 3, 5) == 1
    for wrong in ((1, 1, 1), (0, 1, 5), (1, math.nan, 5)):
        with pytest.raises(ConfigError):
            paper.welch(2, 1, *wrong)


def test_aime_is_eleven_against_nine_of_thirty():
    for row, counts in (("grpo", (9, 9, 10, 72, 295)), ("imagine", (11, 11, 12, 88, 352))):
        cells = [cell("2", row, metric, "not stated") for metric in AIME]
        assert tuple(c["count"] for c in cells) == counts
    assert 295 == 9 * 32 + 7 and 352 == 11 * 32 and (72, 88) == (9 * 8, 11 * 8)
    assert 100 * (11 / 9 - 1) == pytest.approx(22.22, abs=0.005)
    assert cell("2", "imagine / grpo", "pass_at_1_gain", "not stated").value == 22.23
    assert math.sqrt(0.3 * 0.7 / 30) == pytest.approx(0.084, abs=5e-4)


def test_audit():
    """AIME's shares are counts of n; the accuracies are averages over runs, and few fit a single one."""
    audited = paper.audit(FRAME)
    aime, others = audited[audited.table == "2"], audited[audited.table != "2"]
    assert set(aime.metric) == set(AIME) and len(aime) == 10 and aime.fits.all() and (aime["count"] == aime.k).all()
    assert set(others.metric) == {"acc"} and len(others) == 12 + 2 + 4 + 6 + 2 + 6 + 4 + 8
    assert others["count"].isna().all() and others.fits.sum() == 8


def test_not_every_average_is_one_of_five_runs():
    """24 of 44 are no k of 5 n; they would be if each run had been rounded before the average was taken."""
    others = FRAME.query("metric == 'acc'")
    fits = [paper.achievable(v, RUNS * int(n)) is not None for v, n in zip(others.value, others.n)]
    assert (sum(fits), len(fits)) == (20, 44)
    exact = [v * RUNS * int(n) / 100 for v, n in zip(others.value, others.n)]
    gaps = [100 * abs(round(k) - k) / (RUNS * int(n)) for k, n in zip(exact, others.n)]
    assert max(gaps) <= 0.01 and min(gaps) < 0.005 < max(gaps)


def test_the_five_lengths():
    lengths = FRAME.query("table == 'figure 4' and metric == 'length_tokens'").value
    assert lengths.tolist() == [253, 416, 515, 549, 701]
    assert cell("figure 4", "token_level", "inputs", "").value == lengths.sum() == 2434
    assert cell("figure 4", "sequence_level", "inputs", "").value == len(lengths)


def test_the_deviation_is_shown_beside_the_value(monkeypatch):
    monkeypatch.setattr(verdicts, "TASK_OF_TABLE", {"imagine": {"1 GSM8K": "gsm8k"}})
    shown = tables.compare("imagine", records=[], paper=FRAME).data
    assert dict(zip(shown.arm, shown.paper))[style.display_name("imagine")] == "82.51 ± 1.21, n = 1319"
