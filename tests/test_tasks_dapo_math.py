"""DAPO-Math-17k from local rows: copies kept together, the test's questions left out, malformed rows named."""

import json

import pytest

from explorl import tasks
from explorl.errors import ConfigError
from explorl.tasks import Problem, canonical_key, dapo_math

ROWS = [{"prompt": f"What is {i} + {i}?", "solution": str(2 * i)} for i in range(20)]


def folder(path, rows):
    (path / "dapo_math.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_become_problems_in_their_order(tmp_path):
    found = dapo_math.load(limit=3, data_dir=folder(tmp_path, ROWS))
    assert [(p.prompt, p.gold) for p in found] == [("What is 0 + 0?", "0"), ("What is 1 + 1?", "2"), ("What is 2 + 2?", "4")]


def test_copies_stay_on_one_side_and_tested_questions_go(tmp_path):
    parts = tasks.splits("dapo_math", select=0.25, data_dir=folder(tmp_path, ROWS + [{"prompt": " what is 3 + 3", "solution": 6}]))
    assert not parts.test and len(parts.train) + len(parts.select) == 21
    tested = Problem("What is 3 + 3?", "6", canonical_key("What is 3 + 3?"), {"task": "aime24"})
    kept = parts.tested_on([tested])
    assert len(kept.train) + len(kept.select) == 19 and kept.test == (tested,)


@pytest.mark.parametrize("row, field", [({"prompt": "q"}, "row 2, solution"), ({"solution": "1"}, "row 2, prompt"),
                                        ({"prompt": "q", "solution": "  "}, "row 2, solution")])
def test_a_malformed_row_is_named(row, field, tmp_path):
    with pytest.raises(ConfigError, match=field):
        dapo_math.load(data_dir=folder(tmp_path, [ROWS[0], row]))


def test_it_has_nothing_to_test_on():
    assert "dapo_math" in tasks.DATA_SETS and "dapo_math" not in tasks.EVALUATION
    with pytest.raises(ConfigError, match="split = 'test'"):
        dapo_math.load("test")
