"""Data sets: sizes, splits without overlap, errors that say which row; prompts."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from explorl import tasks
from explorl.errors import ConfigError
from explorl.tasks import Problem, Split, aime, canonical_key, gsm8k, medmcqa, prompts, source, split_by_key
from explorl.text.strategies import parse

DATA = os.environ.get("EXPLORL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EXPLORL_DATA names no folder with the published data sets")


def numbered(count: int) -> list[Problem]:
    return [Problem(f"What is {i}?", str(i), canonical_key(f"What is {i}?")) for i in range(count)]


def write(folder: Path, name: str, rows: list[dict]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def keys(problems) -> set[str]:
    return {problem.key for problem in problems}


@pytest.mark.parametrize(("one", "other"), [
    ("How many?", "how   many"), ("A\u00a0b", "a b"), ("x²", "x2"), (" tail. ", "TAIL"), ("line\nbreak", "line break"),
])
def test_key_ignores_spelling(one, other):
    assert canonical_key(one) == canonical_key(other)


@pytest.mark.parametrize(("one", "other"), [("3 apples", "4 apples"), ("a-b", "a b"), ("-3", "3")])
def test_key_keeps_meaning(one, other):
    assert canonical_key(one) != canonical_key(other)


@pytest.mark.parametrize("seed", range(5))
def test_parts_share_no_key_even_with_copies(seed):
    copies = numbered(50) + [Problem(f"what is  {i}", str(i), canonical_key(f"what is  {i}")) for i in range(0, 50, 3)]
    parts = split_by_key(copies, (0.6, 0.2, 0.2), seed)
    train, select, test = keys(parts.train), keys(parts.select), keys(parts.test)
    assert not (train & select or train & test or select & test)
    assert (len(train), len(select), len(test)) == (30, 10, 10)
    assert len(parts.train) + len(parts.select) + len(parts.test) == len(copies)


def test_split_depends_on_seed_and_not_on_order():
    problems = numbered(40)
    first, again = split_by_key(problems, (0.5, 0, 0.5), 1), split_by_key(problems[::-1], (0.5, 0, 0.5), 1)
    assert keys(first.train) == keys(again.train)
    assert keys(first.train) != keys(split_by_key(problems, (0.5, 0, 0.5), 2).train)


def test_the_papers_aime_sizes():
    parts = split_by_key(numbered(963), (0.8, 0.0, 0.2), 0)
    assert (len(parts.train), len(parts.test)) == (770, 193)


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.5, 0.5), (1.2, -0.2, 0.0), (float("nan"), 0, 1)])
def test_split_refuses_wrong_shares(fractions):
    with pytest.raises(ConfigError, match="fractions"):
        split_by_key(numbered(4), fractions, 0)


def test_split_refuses_a_leak():
    one = numbered(1)
    with pytest.raises(ConfigError, match="in one part, not in train and test"):
        Split(tuple(one), (), tuple(one))


@needs_data
def test_gsm8k_as_published():
    train, test = gsm8k.load("train"), gsm8k.load("test")
    assert (len(train), len(test)) == (7473, 1319)
    assert train[0].gold == "72" and test[0].gold == "18"
    assert all(isinstance(p.gold, str) and p.gold for p in train + test)
    assert "1,000,000" in {p.gold for p in train}, "gold stays as published, separators and all"


@needs_data
def test_gsm8k_splits():
    parts = tasks.splits("gsm8k")
    assert (len(parts.train), len(parts.select), len(parts.test)) == (7099, 374, 1319)
    assert keys(parts.select) <= keys(gsm8k.load("train"))
    assert tasks.splits("gsm8k", seed=1).select != parts.select


def test_gsm8k_training_questions_that_are_in_the_test_set_go(tmp_path):
    row = {"question": "How many?", "answer": "One. #### 1"}
    write(tmp_path, "gsm8k_train.jsonl", [row, {"question": "Why?", "answer": "#### 2"}])
    write(tmp_path, "gsm8k_test.jsonl", [row | {"question": "how many"}])
    parts = gsm8k.splits(select=0.0, data_dir=tmp_path)
    assert [p.prompt for p in parts.train] == ["Why?"]


@pytest.mark.parametrize(("bad", "message"), [
    ('{"question": "q", "answer": "no mark"}', r"gsm8k_test.jsonl, row 2, answer.*#### number"),
    ('{"question": "q", "answer": "####  "}', r"row 2, answer"),
    ('{"question": "", "answer": "#### 1"}', r"row 2, question"),
    ('{"answer": "#### 1"}', r"row 2, question"),
    ("{", r"gsm8k_test.jsonl, row 2.*JSON"),
    ("[1]", r"row 2.*JSON object"),
])
def test_malformed_row_is_named(tmp_path, bad, message):
    (tmp_path / "gsm8k_test.jsonl").write_text('{"question": "q", "answer": "#### 1"}\n' + bad + "\n")
    with pytest.raises(ConfigError, match=message):
        gsm8k.load("test", data_dir=tmp_path)


def test_limit_and_blank_lines(tmp_path):
    rows = [{"question": f"q{i}", "answer": f"#### {i}"} for i in range(5)]
    (tmp_path / "gsm8k_test.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    assert [p.gold for p in gsm8k.load("test", limit=3, data_dir=tmp_path)] == ["0", "1", "2"]


def test_data_dir_wins_over_the_environment(tmp_path, monkeypatch):
    for name, gold in (("here", "1"), ("there", "2")):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "gsm8k_test.jsonl", [{"question": "q", "answer": f"#### {gold}"}])
    monkeypatch.setenv("EXPLORL_DATA", str(tmp_path / "there"))
    assert gsm8k.load("test")[0].gold == "2"
    assert gsm8k.load("test", data_dir=tmp_path / "here")[0].gold == "1"
    with pytest.raises(ConfigError, match="data_dir.*gsm8k_test.jsonl"):
        gsm8k.load("test", data_dir=tmp_path)


def test_aime_reads_both_years_and_splits(tmp_path):
    old = [{"ID": f"x-{i}", "Year": 1983, "Question": f"Find {i}.", "Answer": str(i)} for i in range(8)]
    write(tmp_path, "aime_1983_2024.jsonl", old)
    write(tmp_path, "aime_2025.jsonl", [{"problem": f"New {i}.", "answer": i} for i in range(2)])
    everything = aime.load("all", data_dir=tmp_path)
    train, test = aime.load("train", data_dir=tmp_path), aime.load("test", data_dir=tmp_path)
    assert (len(everything), len(train), len(test)) == (10, 8, 2)
    assert keys(train) | keys(test) == keys(everything) and not keys(train) & keys(test)
    assert everything[-1].gold == "1" and everything[-1].meta["year"] == "2025"
    parts = aime.splits(select=0.25, data_dir=tmp_path)
    assert (len(parts.train), len(parts.select)) == (6, 2) and list(parts.test) == test


@pytest.mark.parametrize("answer", ["1000", "-1", "1/2", "3.0", "²"])
def test_aime_answer_must_be_an_aime_answer(tmp_path, answer):
    write(tmp_path, "aime_1983_2024.jsonl", [{"Question": "q", "Answer": answer}])
    with pytest.raises(ConfigError, match="aime_1983_2024.jsonl, row 1, Answer.*0 to 999"):
        aime.load("all", data_dir=tmp_path)


@needs_data
def test_aime_reader_on_real_problems(tmp_path):
    (tmp_path / "aime_2025.jsonl").symlink_to(Path(DATA).resolve() / "aime24.jsonl")
    write(tmp_path, "aime_1983_2024.jsonl", [{"Question": "q", "Answer": "007"}])
    problems = aime.load("all", data_dir=tmp_path)
    assert len(problems) == 31 and problems[0].gold == "007"


def medical(i: int, **changes) -> dict:
    return {"question": f"Stem {i}", "opa": "w", "opb": "x", "opc": "y", "opd": "z", "cop": i % 4} | changes


def test_medmcqa_letters_options_and_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(medmcqa, "TRAIN_SAMPLE", 20)
    write(tmp_path, "medmcqa_train.jsonl", [medical(i) for i in range(50)])
    write(tmp_path, "medmcqa_validation.jsonl", [medical(100 + i) for i in range(4)])
    train = medmcqa.load("train", data_dir=tmp_path)
    assert len(keys(train)) == 20
    assert keys(train) == keys(medmcqa.load("train", data_dir=tmp_path))
    assert keys(train) != keys(medmcqa.load("train", data_dir=tmp_path, seed=1))
    test = medmcqa.load("test", data_dir=tmp_path)
    assert [p.gold for p in test] == ["A", "B", "C", "D"]
    assert test[0].prompt == "Stem 100\nA. w\nB. x\nC. y\nD. z"
    parts = medmcqa.splits(select=0.1, data_dir=tmp_path)
    assert (len(parts.train), len(parts.select), len(parts.test)) == (18, 2, 4)


@pytest.mark.parametrize("right", [-1, 4, None, "1", True, 1.5])
def test_medmcqa_wrong_option_number(tmp_path, right):
    write(tmp_path, "medmcqa_validation.jsonl", [medical(0), medical(1, cop=right)])
    with pytest.raises(ConfigError, match="medmcqa_validation.jsonl, row 2, cop"):
        medmcqa.load("validation", data_dir=tmp_path)


@pytest.mark.parametrize("module", [gsm8k, aime, medmcqa])
def test_unknown_split(module):
    with pytest.raises(ConfigError, match="split = 'dev'"):
        module.load("dev")


def test_unknown_task():
    with pytest.raises(ConfigError, match="task = 'gsm9k'.*gsm8k"):
        tasks.splits("gsm9k")
    with pytest.raises(ConfigError, match="task = 'digits'"):
        tasks.fetch("digits")


def test_hub_is_read_at_a_pinned_commit(monkeypatch):
    import datasets

    asked = []

    def stand_in(path, name, **options):
        asked.append((path, name, options))
        return [{"question": "q", "answer": "#### 1"}]

    monkeypatch.setattr(datasets, "load_dataset", stand_in)
    monkeypatch.delenv("EXPLORL_DATA", raising=False)
    assert gsm8k.load("test")[0].gold == "1"
    assert asked == [("openai/gsm8k", "main", {"split": "test", "revision": gsm8k.REVISION})]
    assert tasks.fetch("gsm8k") == 2
    every = {s.hub: s.revision for name in tasks.DATA_SETS for s in tasks.module(name).SOURCES.values()}
    unpinned = {hub for hub, revision in every.items() if len(revision) != 40}
    assert unpinned == {"knoveleng/Minerva-Math", "qingyangzhang/natural_reasoning_simple", "Idavidrein/gpqa",
                        "Jiayi-Pan/Countdown-Tasks-3to4", "Jiayi-Pan/Countdown-Tasks-4",
                        "open-r1/DAPO-Math-17k-Processed"}
    assert {every[hub] for hub in unpinned} == {"main"}


def test_offline_says_what_to_do():
    script = "from explorl.tasks import gsm8k; gsm8k.load('test')"
    environment = {k: v for k, v in os.environ.items() if k != "EXPLORL_DATA"}
    offline = environment | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": "/nonexistent/cache"}
    done = subprocess.run([sys.executable, "-c", script], env=offline, capture_output=True, text=True, timeout=120)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("explorl.errors.ConfigError: task = 'gsm8k'")
    assert "python -m explorl fetch gsm8k" in last and "gsm8k_test.jsonl" in last


def test_field_by_any_of_its_names():
    assert source.text_field({"a": " ", "b": 0}, ("a", "b"), "w") == "0"


@pytest.mark.parametrize("task", ["gsm8k", "aime", "medmcqa", "other"])
def test_multi_strategy_prompt_shows_a_schema_that_our_parser_reads(task):
    words = prompts.instruction("multi_strategy", task)
    parsed = parse(words)
    assert len(parsed.strategies) == 2 and parsed.source == "FA"
    assert "{" not in words


def test_single_trace_asks_for_no_strategy():
    assert "<strategy" not in prompts.instruction("single_trace", "gsm8k")
    assert "A, B, C or D" in prompts.instruction("single_trace", "medmcqa")
    assert prompts.instruction("plain") == ""
    with pytest.raises(ConfigError, match="style = 'chain'"):
        prompts.instruction("chain")


def test_render_with_and_without_a_chat_template():
    problem = Problem("2 + 2?", "4", "k", {"task": "gsm8k"})

    class Chat:
        chat_template = "any"

        def apply_chat_template(self, chat, *, tokenize, add_generation_prompt):
            assert not tokenize and add_generation_prompt
            return f"<user>{chat[0]['content']}<assistant>"

    class Bare:
        chat_template = None

    assert prompts.render(Bare(), problem, "plain") == "2 + 2?"
    text = prompts.render(Chat(), problem, "multi_strategy")
    assert text.endswith("Problem: 2 + 2?<assistant>") and "<strategy_outcome>" in text
