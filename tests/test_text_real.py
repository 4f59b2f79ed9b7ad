"""Extraction and equality on real model output, judged by the verdicts of those who published it.

Needs the data files; ``EXPLORL_DATA`` names their folder.
"""

import json
import os
from pathlib import Path

import pytest

from explorl.text.answers import canonical, extract, last_boxed, math_equal, same

DATA = os.environ.get("EXPLORL_DATA")
pytestmark = pytest.mark.skipif(not DATA, reason="EXPLORL_DATA is not set: no real model output to judge")


def rows(name: str) -> list[dict]:
    with (Path(DATA) / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_gsm8k_solutions_are_judged_as_published():
    judged, wrong = 0, []
    for row in rows("gsm8k_model_solutions.jsonl"):
        gold = extract(row["ground_truth"])[0]
        assert canonical(gold)[0] == "num"
        for model, attempt in row.items():
            if model in ("question", "ground_truth"):
                continue
            judged += 1
            if same(extract(attempt["solution"])[0], gold) is not attempt["is_correct"]:
                wrong.append((model, row["question"]))
    assert judged == 5_276
    assert wrong == []


def test_math_rollouts_are_judged_as_published_but_for_one():
    """479 of 480 agree. The publisher's checker took 10{,}000 and 10000 for different numbers."""
    judged, wrong = 0, []
    for row in rows("math_qwen_rollouts.jsonl"):
        for response, score in zip(row["responses"], row["score"], strict=True):
            judged += 1
            answer = last_boxed(response) or ""
            if math_equal(answer, row["gold"]) is not bool(score):
                wrong.append((answer, row["gold"], score))
    assert judged == 480
    assert wrong == [("10000", "10{,}000", False)]
