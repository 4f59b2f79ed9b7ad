"""Runs that vary one setting: what belongs to a grid, which seeds count, paper and ours side by side."""

import numpy as np
import pytest

from explorl import params
from explorl.report import claims, diagnostics_imagine, figures_imagine_runs, imagine_grid, paper_rows
from explorl.report.records import Record, metric_row
from explorl.report.stats import seed_interval

SHARED = {"task": "digits", "backbone": "toy", "start": "habits", "prompts_per_step": 8, "eval_samples": 16,
          **paper_rows.PLAIN["imagine"], "group_size": 8}


def record(run, arms, *, scale="toy", **changes):
    rows = [metric_row(arm, "acc", dict(enumerate(values)), n=128) for arm, values in arms.items()]
    return Record(chapter="imagine", run=run, scale=scale, metrics=rows, versions={}, hardware={}, git_commit=None,
                  params=SHARED | changes, git_dirty=None, seconds=1.0, peak_memory_mb=1.0, inputs_hash="x",
                  created="2026-01-02T03:04:05+00:00")


SWEEP = record("toy_sweep", {"grpo": [0.50, 0.52, 0.51, 0.9], "imagine": [0.54, 0.58, 0.56, 0.1]}, eval_samples=32)
WEAK = record("weak", {"imagine": [0.50, 0.50, 0.49]}, alpha=0.1)
FAST = record("fast", {"imagine": [0.60, 0.61, 0.62]}, alpha=0.1, decay_gamma=10.0)
PAIRS = record("g2", {"grpo": [0.40, 0.41, 0.42], "imagine": [0.40, 0.42, 0.41]}, group_size=2, prompts_per_step=32)
HEAVY = record("beta", {"grpo": [0.30, 0.32, 0.31]}, beta_kl=0.01)
COLD = record("temp", {"grpo": [0.54, 0.58, 0.56]}, rollout_temperature=0.6)
ALL = [HEAVY, PAIRS, WEAK, FAST, SWEEP, COLD]


def test_the_grid_has_the_seeds_that_every_cell_has_and_gaps_where_nothing_was_run():
    grid = imagine_grid.over_alpha_gamma(ALL)
    assert (grid.alphas, grid.gammas, grid.seeds) == ([0.1, 0.5], [10.0, 40.0], [0, 1, 2])
    assert grid.values[:, 0].tolist() == [[0.60, 0.50], [0.61, 0.50], [0.62, 0.49]]
    assert grid.values[:, 1, 1].tolist() == [0.54, 0.58, 0.56] and np.isnan(grid.values[:, 1, 0]).all()
    assert grid.baseline.tolist() == [0.50, 0.52, 0.51] and grid.reference == pytest.approx(0.51)


def test_gains_are_paired_by_seed():
    gains = imagine_grid.over_alpha_gamma(ALL).gains()
    assert set(gains) == {(0.1, 10.0), (0.1, 40.0), (0.5, 40.0)}
    assert gains[0.5, 40.0] == pytest.approx(seed_interval([0.04, 0.06, 0.05]))
    assert gains[0.1, 40.0].high < 0.02 and gains[0.1, 40.0].value < 0


@pytest.mark.parametrize("change", [{"learning_rate": 1.0}, {"group_size": 4}, {"task": "gsm8k"},
                                    {"novelty_input": "pooled"}, {"start": "right"}, {"prompts_per_step": 4}])
def test_runs_that_differ_elsewhere_are_no_cells(change):
    other = record("other", {"imagine": [0.9] * 3}, decay_gamma=100.0, **change)
    assert imagine_grid.over_alpha_gamma([*ALL, other]).gammas == [10.0, 40.0]
    assert imagine_grid.over_alpha_gamma([SWEEP, other]) is None


def test_other_scales_and_shorter_runs_of_a_cell_do_not_count():
    one_seed = record("toy", {"grpo": [0.1], "imagine": [0.1]})
    full = record("full", {"imagine": [0.9] * 3}, scale="t4_paper", alpha=1.3)
    for order in ([one_seed, full, *ALL], [*ALL, full, one_seed]):
        grid = imagine_grid.over_alpha_gamma(order)
        assert grid.seeds == [0, 1, 2] and grid.alphas == [0.1, 0.5]


def test_the_grid_is_drawn_as_it_is_gathered():
    grid = imagine_grid.over_alpha_gamma(ALL)
    fig = figures_imagine_runs.sensitivity(grid.alphas, grid.gammas, grid.values, reference=grid.reference,
                                           chosen=(0.5, 40.0))
    assert [text.get_text() for text in fig.axes[0].texts] == ["61.0", "[49.7]", "–", "56.0"]
    assert 'alt="Accuracy in percent over α and γ' in imagine_grid.show(ALL, chosen=(0.7, 40.0))
    assert imagine_grid.NO_GRID in imagine_grid.show([SWEEP]) and imagine_grid.NO_GRID in imagine_grid.show([])


def test_without_a_baseline_there_is_nothing_to_beat():
    grid = imagine_grid.over_alpha_gamma([WEAK, FAST])
    assert grid.reference is None and grid.gains() == {}


def test_table_11_beside_ours():
    found = imagine_grid.group_sizes(ALL).data.set_index("group size")
    assert found.index.tolist() == ["2", "3", "4", "5", "8"]
    assert found.loc["2"].tolist() == ["17.46", "19.09", "41.0 [38.5, 43.5]", "41.0 [38.5, 43.5]", "+0.0 [-2.5, +2.5]",
                                       "3", "not seen"]
    assert found.loc["5"].tolist()[:3] == ["38.72", "47.39", "–"] and found.loc["5", "IMAGINE > GRPO"] == "not tested"
    assert found.loc["8", "GRPO, paper"] == "–" and found.loc["8", "seeds"] == "4"


def test_groups_of_another_budget_are_not_compared():
    more = record("g4", {"grpo": [0.9] * 3, "imagine": [0.9] * 3}, group_size=4, prompts_per_step=8)
    assert imagine_grid.group_sizes([*ALL, more]).data.set_index("group size").loc["4", "GRPO, ours"] == "–"


def test_table_9_beside_ours():
    found = imagine_grid.other_ways(ALL).data.set_index("arm")
    assert found.index.tolist() == ["GRPO", "GRPO, β = 0.001", "GRPO, β = 0.01", "GRPO, T = 0.3", "GRPO, T = 0.6",
                                    "IMAGINE"]
    assert found.paper.tolist() == ["38.72", "36.72", "17.78", "22.63", "28.69", "47.39"]
    heavy, cold = found.loc["GRPO, β = 0.01"].tolist(), found.loc["GRPO, T = 0.6"].tolist()
    assert heavy[1:] == ["31.0 [28.5, 33.5]", "+25.0 [+22.5, +27.5]", "3", "holds at our scale"]
    assert cold[2:] == ["+0.0 [+0.0, +0.0]", "3", "not seen"]
    assert found.loc["GRPO, T = 0.3"].tolist()[1:] == ["–", "–", "–", "not tested"]
    assert found.loc["IMAGINE", "ours"].startswith("44.5 [")


def test_a_setting_that_the_paper_has_not_gets_a_row_of_its_own():
    hot = record("hot", {"grpo": [0.3] * 3}, rollout_temperature=1.3)
    assert imagine_grid.other_ways([*ALL, hot]).data.arm.tolist()[5] == "GRPO, T = 1.3, β = 0"


def test_plain_keeps_the_varied_runs_from_speaking_for_the_sweep():
    sweep = params.load("imagine", "toy_sweep")
    wanted = imagine_grid.plain(sweep)
    assert wanted["start"] == "habits" and set(wanted) == {*imagine_grid.VARIED, "start"}
    assert claims.by_evidence(ALL, scale="toy", **wanted) == [SWEEP]


def rows(arm, seed, steps=20, **values):
    logged = [{"kind": "train", "step": step} | {f"imagine/{name}": of(step) for name, of in values.items()}
              for step in range(1, steps + 1)]
    return {"arm": arm, "seed": seed, "curve": logged}


RUN = [rows("imagine", seed, novelty_length_rho=lambda step, s=seed: -0.5 + 0.7 * s if step > 10 else 0.0,
            bonus_median=lambda step, s=seed: 0.01 * (1 + s) * (step > 10),
            all_wrong_groups=lambda step: 0.8 if step <= 10 else 0.2) for seed in (0, 1)] + [
       rows("grpo", 0, all_wrong_groups=lambda step: 0.5, bonus_median=lambda step: float("nan"))]


def test_diagnostics_of_the_first_and_last_steps():
    found = diagnostics_imagine.table(RUN, last=10).data.set_index("arm")
    assert found.loc["IMAGINE", "ρ of novelty and length, by seed"] == "-0.50, +0.20"
    assert found.loc["IMAGINE", "median bonus"] == "0.015 [-0.049, 0.079]"  # 12.71 × 0.00707 / √2
    assert found.loc["IMAGINE", "all-wrong groups at first, %"] == "80.0 [80.0, 80.0]"
    assert found.loc["IMAGINE", "at last, %"] == "20.0 [20.0, 20.0]"
    assert found.loc["GRPO"].tolist() == ["–", "–", "–", "–", "50.0", "50.0"]
    assert diagnostics_imagine.table([]).data.empty


def test_diagnostics_of_kept_windows_are_those_of_the_steps(tmp_path):
    import json

    from explorl.report import curves

    curves.save(RUN, tmp_path, train=figures_imagine_runs.KEPT)
    kept = json.loads((tmp_path / curves.FILE).read_text(encoding="utf-8"))
    assert diagnostics_imagine.table(kept).data.equals(diagnostics_imagine.table(RUN).data)
