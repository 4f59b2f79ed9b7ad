"""EMPO on 60 real groups of eight Qwen2.5-Math responses: agreement, entropy and correctness.

Needs the data files; ``EXPLORL_DATA`` names their folder. The verdicts themselves are judged in test_text_real.
"""

import json
import os
from pathlib import Path

import pytest

from explorl.papers import empo, empo_metrics
from explorl.report.stats import spearman
from explorl.text import clusters, equivalence

DATA = os.environ.get("EXPLORL_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="EXPLORL_DATA is not set: no real groups to cluster")
MALFORMED_GOLD = ["10{,}000"]
"""Reference answers that the publisher's checker misread, so that its verdicts on their groups are not ours."""


@pytest.fixture(scope="module")
def groups():
    with (Path(DATA) / "math_qwen_rollouts.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    equal = equivalence.load("math")
    found = []
    for row in rows:
        answers = [empo.read(response) for response in row["responses"]]
        right = [bool(answer) and equal(row["gold"], answer) for answer in answers]
        found.append((row, answers, right, empo_metrics.measure(answers, right, equal)))
    return found


def test_verdicts_are_the_publishers_in_every_group_with_a_well_formed_gold(groups):
    differ = [row["gold"] for row, _, right, _ in groups if right != [bool(score) for score in row["score"]]]
    assert len(groups) == 60 and differ == MALFORMED_GOLD


def test_entropy_and_accuracy_go_against_each_other(groups):
    found = spearman([g.entropy_nats for *_, g in groups], [g.accuracy for *_, g in groups])
    print(f"Spearman of semantic entropy and accuracy, {found.n} groups of 8: {found.value:.3f} "
          f"[{found.low:.3f}, {found.high:.3f}]")
    assert found.n == 60 and found.high < -0.9


def test_the_fast_partition_is_the_plain_one(groups):
    equal = equivalence.load("math")
    for _, answers, *_ in groups:
        assert clusters.fast(answers, equal) == clusters.greedy(answers, equal)


def test_most_groups_of_a_strong_model_teach_nothing(groups):
    """51 of 60 are unanimous, and right; of the nine that pass the gate, four have a wrong majority."""
    measured = [g for *_, g in groups]
    unanimous = [g for g in measured if g.n_clusters == 1]
    others = [g for g in measured if 1 < g.n_clusters < g.n]
    assert (len(unanimous), len(others)) == (51, 9) and all(g.majority_right for g in unanimous)
    assert sum(not g.majority_right for g in others) == 4
