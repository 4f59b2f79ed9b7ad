"""The committed records: whole, consistent with their own seeds, and evidence that the toy policies learn."""

import json
import math

import pytest

from explorl import params, places
from explorl.report import curves, records
from explorl.report.stats import seed_interval

FOLDER = places.committed_results_dir()
RECORDS = records.read_all(FOLDER)
TRAINED = ("cfl", "cfee", "sde2", "sde2_shuffled", "oc_fa", "oc_fa_sd")


@pytest.fixture(scope="module")
def sweep() -> records.Record:
    return records.read(FOLDER / "sde2/toy_sweep/result.json")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.chapter}/{record.run}")
def test_a_record_agrees_with_its_own_seeds(record):
    assert record.metrics
    for row in record.metrics:
        values = [seed.value for seed in row.seeds if seed.value is not None]
        assert [seed.seed for seed in row.seeds] == record.params["seeds"]
        if len(values) >= 2:
            mean, low, high, _ = seed_interval(values)
            assert row.value == pytest.approx(mean) and (row.low, row.high) == pytest.approx((low, high))
        elif values:
            assert row.value == pytest.approx(values[0])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.chapter}/{record.run}")
def test_a_record_is_of_the_parameters_that_stand_in_params(record):
    current = params.load(record.chapter, record.run).model_dump()
    assert {k: v for k, v in record.params.items() if k != "jobs"} == {k: v for k, v in current.items() if k != "jobs"}


def test_the_toy_run_is_the_sweep_with_fewer_seeds_and_arms():
    toy, sweep = (params.load("sde2", name).model_dump() for name in ("toy", "toy_sweep"))
    differ = {name for name in toy if toy[name] != sweep[name]}
    assert differ == {"run", "seeds", "arms"} and set(toy["arms"]) < set(sweep["arms"])


def test_every_trained_toy_arm_at_least_doubles_the_warm_start(sweep):
    base = sweep.value("base", "acc_strict")
    assert len(base.seeds) == 5
    for arm in TRAINED:
        after = sweep.value(arm, "acc_strict")
        assert len(after.seeds) == 5
        assert after.value >= 2 * base.value, arm
        assert after.low > base.high, arm


def test_the_curves_beside_the_sweep_start_at_one_policy_and_cover_every_seed(sweep):
    kept = json.loads((FOLDER / "sde2/toy_sweep" / curves.FILE).read_text(encoding="utf-8"))
    assert {(run["arm"], run["seed"]) for run in kept} == {(arm, s) for arm in sweep.params["arms"] for s in range(5)}
    for run in kept:
        steps = [row["step"] for row in run["curve"]]
        due = list(range(0, sweep.params["steps"] + 1, sweep.params["eval_every"]))
        assert steps == ([] if run["arm"] == "base" else due)
    starts = {run["seed"]: set() for run in kept}
    for run in kept:
        if run["curve"]:
            starts[run["seed"]].add(run["curve"][0]["acc_strict"])
    assert all(len(values) == 1 and not math.isnan(*values) for values in starts.values())
