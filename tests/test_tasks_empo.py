"""EMPO's data sets: fields, counts, filters, malformed rows by number; the prompts; no leak into training."""

import json
import os
from pathlib import Path

import pytest

from explorl import tasks
from explorl.errors import ConfigError
from explorl.tasks import (
    Problem,
    canonical_key,
    gpqa,
    math_benchmarks,
    mmlu_pro,
    natural,
    numina,
    prompts,
    source,
)
from explorl.text.answers import last_boxed

DATA = os.environ.get("EXPLORL_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="EXPLORL_DATA names no folder with the published data sets")

NUMINA = {"data_source": "amc_aime", "problem": "What is 1 + 1?", "gt": "2"}
NATURAL = {"question": "Where is Paris?", "reference_answer": "France", "responses": [
    {"response_model": "Llama3.3-70B-Instruct", "response": "Paris lies in France."}]}
MMLU = {"question": "Which?", "options": ["this", "that", "neither"], "answer": "C", "category": "law"}
GPQA = {"Question": "Which ion?", "Correct Answer": "Na+", "Incorrect Answer 1": "K+", "Incorrect Answer 2": "Li+",
        "Incorrect Answer 3": "Cl-", "High-level domain": "Chemistry"}
BENCH = {
    "math500": {"problem": "Half of 1?", "answer": r"\frac{1}{2}", "level": 2, "subject": "Algebra"},
    "amc23": {"question": "How far?", "answer": 27.0},
    "aime24": {"problem": "Find n.", "answer": "025"},
    "minerva": {"problem": "How wide?", "solution": r"First \boxed{1.5}, no: \boxed{1.6} cm", "type": "Astronomy"},
    "olympiad": {"question": "Find all n.", "final_answer": ["$69$,$84$"]},
}
FILES = {"math500": "math500.jsonl", "amc23": "amc23.jsonl", "aime24": "aime24.jsonl", "minerva": "minerva_math.jsonl",
         "olympiad": "olympiadbench.jsonl"}


def write(folder: Path, name: str, rows: list[dict]) -> Path:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def load(task: str, folder: Path) -> list[Problem]:
    parts = tasks.splits(task, data_dir=folder)
    return [*parts.train, *parts.select, *parts.test]


@pytest.mark.parametrize(("task", "gold"), [
    ("math500", r"\frac{1}{2}"), ("amc23", "27"), ("aime24", "025"), ("minerva", "1.6"), ("olympiad", "69,84"),
])
def test_benchmark_is_all_test_part_with_its_published_answer(tmp_path, task, gold):
    parts = tasks.splits(task, data_dir=write(tmp_path, FILES[task], [BENCH[task]]))
    assert parts.train == parts.select == ()
    assert [(p.gold, p.meta["task"]) for p in parts.test] == [(gold, task)]


@pytest.mark.parametrize(("answer", "gold"), [
    (["$2$"], "2"), (["$k=1$", "$k=2$"], "k=1, k=2"), (["3986729"], "3986729"), ("$2n$", "2n"),
])
def test_olympiad_answers_lose_their_dollar_signs(tmp_path, answer, gold):
    write(tmp_path, "olympiadbench.jsonl", [{"question": "q", "final_answer": answer}])
    assert math_benchmarks.load("olympiad", data_dir=tmp_path)[0].gold == gold


def test_amc_keeps_an_answer_that_is_no_integer(tmp_path):
    write(tmp_path, "amc23.jsonl", [{"question": "q", "answer": 0.5}, {"question": "r", "answer": 3159.0}])
    assert [p.gold for p in math_benchmarks.load("amc23", data_dir=tmp_path)] == ["0.5", "3159"]


@pytest.mark.parametrize(("task", "change", "field"), [
    ("math500", {"problem": " "}, "question"), ("math500", {"answer": ""}, "answer"),
    ("amc23", {"answer": None}, "answer"),
    ("aime24", {"problem": None}, "question"), ("minerva", {"solution": "It is 7."}, "solution"),
    ("minerva", {"solution": ""}, "solution"), ("olympiad", {"final_answer": []}, "final_answer"),
    ("olympiad", {"final_answer": ["$ $"]}, "final_answer"), ("olympiad", {"final_answer": [7]}, "final_answer"),
    ("olympiad", {"final_answer": None}, "final_answer"),
])
def test_malformed_benchmark_row_is_named(tmp_path, task, change, field):
    write(tmp_path, FILES[task], [BENCH[task], BENCH[task] | change])
    with pytest.raises(ConfigError, match=f"{FILES[task]}, row 2, {field}"):
        load(task, tmp_path)


@needs_data
@pytest.mark.parametrize(("task", "count", "first"), [
    ("aime24", 30, "204"), ("amc23", 40, "27"), ("minerva", 272, "1.6"),
])
def test_benchmark_as_published(task, count, first):
    problems = math_benchmarks.load(task, data_dir=DATA)
    assert len(problems) == len({p.key for p in problems}) == count
    assert problems[0].gold == first and all(p.gold and "boxed" not in p.gold for p in problems)


@needs_data
def test_whole_numbers_are_written_as_such():
    assert all(p.gold.isdigit() or p.gold.lstrip("-").isdigit() for p in math_benchmarks.load("amc23", data_dir=DATA))
    assert all(len(p.gold) == 3 and p.gold.isdigit() for p in math_benchmarks.load("aime24", data_dir=DATA))


def test_evaluation_joins_in_the_order_asked_for(tmp_path):
    for task, row in BENCH.items():
        write(tmp_path, FILES[task], [row, row | {"question": "Another?", "problem": "Another?"}])
    found = tasks.evaluation(["amc23", "math500", "minerva"], data_dir=tmp_path)
    assert [p.meta["task"] for p in found] == ["amc23"] * 2 + ["math500"] * 2 + ["minerva"] * 2
    assert tasks.evaluation([]) == []


@pytest.mark.parametrize("names", [["numina"], ["natural"], ["amc23", "amc"], ["amc23", "amc23"]])
def test_evaluation_refuses_what_has_no_test_part(tmp_path, names):
    write(tmp_path, "amc23.jsonl", [BENCH["amc23"]])
    with pytest.raises(ConfigError, match=f"eval_tasks = '{names[-1]}'.*math500.*once"):
        tasks.evaluation(names, data_dir=tmp_path)


def test_no_evaluation_question_is_trained_on(tmp_path):
    write(tmp_path, "numina_20k.jsonl", [NUMINA, NUMINA | {"problem": "  find N"}, NUMINA | {"problem": "Add 3."}])
    write(tmp_path, "aime24.jsonl", [BENCH["aime24"]])
    parts = tasks.splits("numina", select=0.0, data_dir=tmp_path).tested_on(
        tasks.evaluation(["aime24"], data_dir=tmp_path))
    assert [p.prompt for p in parts.train] == ["What is 1 + 1?", "Add 3."] and len(parts.test) == 1


def test_numina_keeps_copies_together_and_has_no_test_part(tmp_path):
    rows = [NUMINA | {"problem": f"Add {i % 40}."} for i in range(50)]
    parts = tasks.splits("numina", select=0.25, data_dir=write(tmp_path, "numina_20k.jsonl", rows))
    assert len(parts.train) + len(parts.select) == 50 and parts.test == ()
    assert len({p.key for p in parts.select}) == 10
    assert parts.train[0].meta == {"task": "numina", "origin": "amc_aime"} and parts.train[0].gold == "2"


def test_numina_wants_no_reference_answer_but_its_field(tmp_path):
    write(tmp_path, "numina_20k.jsonl", [NUMINA | {"gt": ""}, NUMINA | {"problem": "q", "gt": None}])
    assert [p.gold for p in numina.load(data_dir=tmp_path)] == ["", ""]
    write(tmp_path, "numina_20k.jsonl", [NUMINA, {"problem": "q"}])
    with pytest.raises(ConfigError, match="numina_20k.jsonl, row 2, gt"):
        numina.load(data_dir=tmp_path)
    with pytest.raises(ConfigError, match="split = 'test'"):
        numina.load("test")


def test_numina_solutions_are_found_by_question(tmp_path):
    write(tmp_path, "numina_20k.jsonl", [NUMINA, NUMINA | {"problem": "Unknown?"}])
    worked = [{"problem": "Other?", "solution": "x"}, {"problem": "What is  1 + 1", "solution": r" \boxed{2} "}]
    write(tmp_path, "numina_cot.jsonl", worked)
    parts = numina.splits(select=0.0, data_dir=tmp_path, solutions=True)
    assert [(p.prompt, p.meta["solution"]) for p in parts.train] == [("What is 1 + 1?", r"\boxed{2}")]
    write(tmp_path, "numina_cot.jsonl", worked[:1])
    with pytest.raises(ConfigError, match="solutions = 'AI-MO/NuminaMath-CoT'"):
        numina.splits(data_dir=tmp_path, solutions=True)


def natural_rows() -> list[dict]:
    def row(name, question="q", reference="yes", response="fine"):
        return {"question": f"{name} {question}", "reference_answer": reference, "responses": [
            {"response_model": "other", "response": "z" * 40_000},
            {"response_model": "Llama3.3-70B-Instruct", "response": response}]}
    return [row("plain"), row("long question", "q" * 2100), row("long reference", reference="y" * 300),
            row("no reference", reference=""), row("long response", response="r" * 16_400),
            row("at the limit", response="r" * 16_384), {"question": "no responses", "reference_answer": "yes"}]


@pytest.mark.parametrize(("limits", "kept"), [
    (natural.Limits(), {"plain", "at the limit", "no responses"}),
    (natural.Limits(None, None, 4096), {"plain", "long question", "long reference", "no reference", "at the limit",
                                         "no responses"}),
    (natural.Limits(512, None, None), {"plain", "long reference", "no reference", "long response", "at the limit",
                                       "no responses"}),
    (natural.Limits(None, 64, None), {"plain", "long question", "long response", "at the limit", "no responses"}),
    (natural.Limits(None, None, None), None),
])
def test_each_filter_of_natural_reasoning(tmp_path, limits, kept):
    write(tmp_path, "natural_reasoning.jsonl", natural_rows())
    found = {p.prompt.rstrip("q").strip() for p in natural.load("full", limits=limits, data_dir=tmp_path)}
    assert found == kept or (kept is None and len(found) == 7)


def test_natural_filters_are_on_for_the_full_set_alone_and_count_as_told(tmp_path):
    for name in ("natural_reasoning.jsonl", "natural_reasoning_simple.jsonl"):
        write(tmp_path, name, natural_rows())
    assert len(natural.load(data_dir=tmp_path)) == 7 and len(natural.load("full", data_dir=tmp_path)) == 3
    words = natural.load("full", limits=natural.Limits(3, 64, 1), count=lambda t: len(t.split()), data_dir=tmp_path)
    assert [p.prompt for p in words][:1] == ["plain q"] and "at the limit q" not in {p.prompt for p in words}


def test_natural_solutions_are_the_llama_responses(tmp_path):
    write(tmp_path, "natural_reasoning_simple.jsonl", natural_rows())
    parts = natural.splits(select=0.0, data_dir=tmp_path, solutions=True)
    assert len(parts.train) == 6 and {p.meta["solution"] for p in parts.train} >= {"fine"}
    write(tmp_path, "natural_reasoning_simple.jsonl", [NATURAL | {"responses": None}])
    assert len(natural.splits(select=0.0, data_dir=tmp_path).train) == 1
    with pytest.raises(ConfigError, match="solutions = True"):
        natural.splits(data_dir=tmp_path, solutions=True)


def test_natural_sample_and_solution(tmp_path):
    rows = [NATURAL | {"question": f"Where is {i}?"} for i in range(30)]
    write(tmp_path, "natural_reasoning_simple.jsonl", rows)
    some = natural.load(sample=10, data_dir=tmp_path)
    assert len(some) == 10 and some != natural.load(sample=10, seed=1, data_dir=tmp_path)
    assert [p.prompt for p in some] == sorted((p.prompt for p in some), key=lambda q: int(q[9:-1]))
    assert some[0].gold == "France" and some[0].meta["solution"] == "Paris lies in France."
    parts = tasks.splits("natural", data_dir=tmp_path, select=0.1)
    assert (len(parts.train), len(parts.select), len(parts.test)) == (27, 3, 0)


@pytest.mark.parametrize(("change", "field"), [
    ({"question": ""}, "question"), ({"reference_answer": ...}, "reference_answer"), ({"responses": "text"}, "responses"),
    ({"responses": ["text"]}, "responses"),
])
def test_malformed_natural_row_is_named(tmp_path, change, field):
    bad = {name: value for name, value in (NATURAL | change).items() if value is not ...}
    write(tmp_path, "natural_reasoning_simple.jsonl", [NATURAL, bad])
    with pytest.raises(ConfigError, match=f"natural_reasoning_simple.jsonl, row 2, {field}"):
        natural.load(data_dir=tmp_path)


@pytest.mark.parametrize(("call", "field"), [
    (lambda: natural.load("half"), "source"), (lambda: natural.load(sample=0), "sample"),
    (lambda: natural.Limits(question_tokens=0), "question_tokens"), (lambda: gpqa.load("diamond"), "subset"),
    (lambda: mmlu_pro.load("train"), "split"), (lambda: math_benchmarks.load("math"), "task"),
])
def test_wrong_choice_is_named(call, field):
    with pytest.raises(ConfigError) as caught:
        call()
    assert caught.value.field == field


def test_mmlu_pro_letters_its_options(tmp_path):
    ten = MMLU | {"question": "Ten?", "options": [f" o{i}" for i in range(10)], "answer": "J"}
    problems = load("mmlu_pro", write(tmp_path, "mmlu_pro_test.jsonl", [MMLU, ten]))
    assert problems[0].prompt == "Which?\nA. this\nB. that\nC. neither" and problems[0].gold == "C"
    assert problems[1].prompt.endswith("\nJ. o9") and problems[1].gold == "J"
    assert problems[0].meta["subject"] == "law"


@pytest.mark.parametrize(("change", "field"), [
    ({"answer": "D"}, "answer"), ({"answer": "c"}, "answer"), ({"answer": "AB"}, "answer"), ({"answer": ""}, "answer"),
    ({"options": ["only"]}, "options"), ({"options": "ABC"}, "options"), ({"options": ["o"] * 17}, "options"),
    ({"options": ["this", "that", " "]}, "answer"), ({"question": ""}, "question"),
])
def test_malformed_mmlu_row_is_named(tmp_path, change, field):
    write(tmp_path, "mmlu_pro_test.jsonl", [MMLU, MMLU | change])
    with pytest.raises(ConfigError, match=f"mmlu_pro_test.jsonl, row 2, {field}"):
        load("mmlu_pro", tmp_path)


def gpqa_rows(**fields: int) -> list[dict]:
    return [GPQA | {"Question": f"{field} {i}?", "High-level domain": field}
            for i in range(max(fields.values())) for field, count in fields.items() if i < count]


def test_gpqa_shuffles_its_options_and_keeps_the_right_one(tmp_path):
    problems = gpqa.load("main", data_dir=write(tmp_path, "gpqa_main.jsonl", gpqa_rows(Biology=40)))
    for problem in problems:
        letters = dict(line.split(". ") for line in problem.prompt.splitlines()[1:])
        assert letters[problem.gold] == "Na+" and set(letters) == set("ABCD")
        assert set(letters.values()) == {"Na+", "K+", "Li+", "Cl-"}
    assert len({p.gold for p in problems}) == 4
    assert gpqa.load("main", data_dir=tmp_path) == problems != gpqa.load("main", seed=1, data_dir=tmp_path)


def test_gpqa_with_two_equal_options_points_at_the_right_one(tmp_path):
    write(tmp_path, "gpqa_main.jsonl", [GPQA | {"Correct Answer": "K+"}])
    problem, = gpqa.load(data_dir=tmp_path)
    assert f"{problem.gold}. K+" in problem.prompt.splitlines()


def test_gpqa_takes_as_many_of_each_field_as_the_paper(tmp_path):
    write(tmp_path, "gpqa_main.jsonl", gpqa_rows(Biology=78, Physics=187, Chemistry=183))
    found = tasks.splits("gpqa", data_dir=tmp_path).test
    counts = {field: sum(p.meta["subject"] == field for p in found) for field in gpqa.PAPER_COUNTS}
    assert len(found) == 340 and counts == {"Biology": 70, "Physics": 140, "Chemistry": 130}
    assert found[-1].prompt.startswith("Physics 139?") and len(gpqa.load("main", data_dir=tmp_path)) == 448


@pytest.mark.parametrize(("change", "field"), [
    ({"Question": ""}, "Question"), ({"Incorrect Answer 3": None}, "Incorrect Answer 3"),
    ({"Correct Answer": " "}, "Correct Answer"), ({"High-level domain": "Law"}, "High-level domain"),
])
def test_malformed_gpqa_row_is_named(tmp_path, change, field):
    write(tmp_path, "gpqa_main.jsonl", [GPQA, GPQA | change])
    with pytest.raises(ConfigError, match=f"gpqa_main.jsonl, row 2, {field}"):
        load("gpqa", tmp_path)


def test_gated_set_says_so(monkeypatch):
    import datasets

    def refuse(*arguments, **options):
        raise FileNotFoundError("gated")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    monkeypatch.delenv("EXPLORL_DATA", raising=False)
    with pytest.raises(ConfigError, match="accepting its conditions.*gpqa_main.jsonl"):
        gpqa.load()
    with pytest.raises(ConfigError) as caught:
        math_benchmarks.load("minerva")
    assert "conditions" not in str(caught.value)


def test_fetch_downloads_only_the_tasks_own_tables(monkeypatch):
    import datasets

    asked = []
    monkeypatch.setattr(datasets, "load_dataset", lambda hub, *_, **__: asked.append(hub) or [{}] * 3)
    assert [tasks.fetch(name) for name in ("minerva", "numina", "natural")] == [3, 3, 3]
    assert asked == ["knoveleng/Minerva-Math", "RLHFlow/numia_prompt_dpo1", "qingyangzhang/natural_reasoning_simple"]


def test_rows_can_be_read_one_at_a_time(tmp_path):
    (tmp_path / "numina_20k.jsonl").write_text('{"problem": "a"}\n\nnot json\n')
    rows = source.each(numina.SOURCES["train"], tmp_path)
    assert next(rows) == {"problem": "a"}
    with pytest.raises(ConfigError, match="row 3"):
        next(rows)


def test_every_task_names_its_grader():
    math = {"numina", "math500", "amc23", "aime24", "minerva", "olympiad"}
    assert {t: tasks.grader(t) for t in math} == dict.fromkeys(math, "math")
    assert [tasks.grader(t) for t in ("natural", "mmlu_pro", "gpqa", "medmcqa")] == ["verifier"] + ["choice"] * 3
    assert {tasks.module(t).ANSWER_FROM for t in (*math, "natural", "mmlu_pro", "gpqa")} == {"boxed"}


@pytest.mark.parametrize(("task", "label", "form"), [
    ("numina", False, "the final answer"), ("minerva", False, "the final answer"),
    ("natural", True, "as short as"), ("mmlu_pro", True, "the letter of the right option"), ("gpqa", True, "letter"),
])
def test_boxed_prompt_asks_for_steps_and_a_box(task, label, form):
    problem = Problem("What? {x}", "4", canonical_key("What?"), {"task": task})
    system, user = prompts.messages(problem, "boxed")
    assert (system["role"], user["role"]) == ("system", "user") and r"\boxed{}" in system["content"]
    assert user["content"].startswith("Question: What? {x}" if label else "What? {x}")
    assert form in user["content"] and "steps" in user["content"] and user["content"].endswith(r"\boxed{}.")
    bare = prompts.unmarked(problem)
    assert bare.startswith("Question: What? {x}\n") and bare.endswith("\n\nAnswer:") and r"\boxed{}" in bare
    assert last_boxed(user["content"]) is None, "an echo of the prompt is no answer"


def test_boxed_prompt_for_a_tokenizer_without_a_template():
    class Bare:
        chat_template = None

    problem = Problem("Why?", "", "k", {"task": "natural"})
    assert prompts.render(Bare(), problem, "boxed") == prompts.unmarked(problem)
