"""EMPO's committed records: both faces of agreement, with the controls that the claims need."""

import json

import pytest

from explorl import params, places
from explorl.report import claims, curves, records, samples, verdicts

FOLDER = places.committed_results_dir()
SWEEPS = {"right": "toy_sweep", "wrong": "toy_wrong_sweep"}
BLIND = ("empo", "vote")  # learn from agreement alone


@pytest.fixture(scope="module", params=list(SWEEPS))
def face(request):
    return request.param, records.read(FOLDER / f"empo/{SWEEPS[request.param]}/result.json")


def value(record, arm, metric="acc"):
    return record.value(arm, metric)


def test_each_record_has_five_seeds_and_its_start(face):
    start, record = face
    assert record.params["start"] == start and record.params["seeds"] == [0, 1, 2, 3, 4]
    assert all(len(row.seeds) == 5 for row in record.metrics)


def test_the_starts_are_what_their_names_say(face):
    """The right one leads on more than four fifths of the problems, or on less than one fifth."""
    start, record = face
    led = value(record, "base", "majority_right")
    assert led.low > 0.8 if start == "right" else led.high < 0.2


@pytest.mark.parametrize("arm", BLIND)
def test_agreement_raises_accuracy_where_it_is_right_and_lowers_it_where_it_is_wrong(face, arm):
    start, record = face
    before, after = value(record, "base"), value(record, arm)
    if start == "right":
        assert after.low > before.high
    else:
        assert after.high < before.low


def test_the_answer_key_raises_accuracy_from_either_start(face):
    _, record = face
    assert value(record, "supervised").low > value(record, "base").high


def test_a_random_reward_does_neither(face):
    """Its change is not told from none, and is far smaller than that of agreement."""
    _, record = face
    gap = verdicts.difference(record, "random", "base", "acc")
    assert gap.low < 0 < gap.high
    moved = verdicts.difference(record, "empo", "base", "acc")
    assert abs(gap.value) < abs(moved.value) / 3


def test_entropy_falls_whether_the_policy_learns_or_not(face):
    _, record = face
    assert value(record, "empo", "entropy_nats").high < value(record, "base", "entropy_nats").low


def test_the_untrained_policy_overtakes_a_wrong_consensus_at_large_k():
    record = records.read(FOLDER / "empo/toy_wrong_sweep/result.json")
    assert value(record, "base", "pass_at_64").low > value(record, "empo", "pass_at_64").high


def test_the_toy_run_is_the_sweep_with_fewer_seeds_arms_and_samples():
    toy, sweep, wrong = (params.load("empo", name).model_dump() for name in ("toy", "toy_sweep", "toy_wrong_sweep"))
    assert {name for name in toy if toy[name] != sweep[name]} == {"run", "seeds", "arms", "eval_samples"}
    assert {name for name in sweep if sweep[name] != wrong[name]} == {"run", "arms", "start"}
    assert set(toy["arms"]) == set(wrong["arms"]) < set(sweep["arms"])


def test_the_curves_and_samples_beside_a_record_are_of_its_arms_and_seeds(face):
    start, record = face
    folder = FOLDER / "empo" / SWEEPS[start]
    expected = {(arm, seed) for arm in record.params["arms"] for seed in range(5)}
    kept = json.loads((folder / curves.FILE).read_text(encoding="utf-8"))
    assert {(run["arm"], run["seed"]) for run in kept} == expected
    items = samples.read(folder / samples.FILE)
    assert {(run["arm"], run["seed"]) for run in items} == expected
    for run in items:
        mine = [seed.value for seed in value(record, run["arm"]).seeds if seed.seed == run["seed"]]
        assert sum(row["right"] / row["n"] for row in run["items"]) / len(run["items"]) == pytest.approx(mine[0])


def test_evidence_from_one_start_does_not_speak_for_the_other():
    kept = records.read_all(FOLDER, "empo")
    for start, run in SWEEPS.items():
        assert claims.by_evidence(kept, scale="toy", start=start)[0].run == run


def test_with_larger_steps_agreement_rises_where_accuracy_has_turned():
    kept = json.loads((FOLDER / "empo/toy_too_far" / curves.FILE).read_text(encoding="utf-8"))
    turned = 0
    for run in kept:
        path = [row for row in run["curve"] if run["arm"] in BLIND]
        if path:
            top, end = max(path, key=lambda row: row["acc"]), path[-1]
            if top["acc"] - end["acc"] > 0.1:
                turned += 1
                assert end["p_majority"] > top["p_majority"]
    assert turned >= 3


def test_the_run_with_larger_steps_differs_in_nothing_else():
    far, toy = (params.load("empo", name).model_dump() for name in ("toy_too_far", "toy"))
    assert {name for name in far if far[name] != toy[name]} == {"run", "arms", "seeds", "learning_rate"}
