"""Every keyword that the package and the notebooks pass to TRL, PEFT and Unsloth exists there.

Unsloth cannot be imported as it is without a GPU, so its signatures are read from its source.
"""

import ast
import importlib.util
import inspect
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "lib" / "explorl").rglob("*.py"))
NOTEBOOKS = sorted((ROOT / "book" / "chapters").glob("*.ipynb"))


def parameters(callable_) -> set[str]:
    return {p.name for p in inspect.signature(callable_).parameters.values() if p.kind is not p.VAR_KEYWORD} - {"self"}


def unsloth_parameters(file: str, class_name: str, function: str) -> set[str]:
    folder = Path(importlib.util.find_spec("unsloth").submodule_search_locations[0])
    tree = ast.parse((folder / "models" / file).read_text(encoding="utf-8"))
    owner = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == class_name)
    found = next(n for n in owner.body if isinstance(n, ast.FunctionDef) and n.name == function)
    return {a.arg for a in [*found.args.posonlyargs, *found.args.args, *found.args.kwonlyargs]}


def known() -> dict[str, set[str]]:
    """Target → the keywords it takes. Unsloth's ``get_peft_model`` hands on to the Llama class's."""
    import peft
    import trl

    return {
        "GRPOConfig": parameters(trl.GRPOConfig), "GRPOTrainer": parameters(trl.GRPOTrainer),
        "LoraConfig": parameters(peft.LoraConfig), "get_peft_model": parameters(peft.get_peft_model),
        "FastLanguageModel.from_pretrained":
            unsloth_parameters("loader.py", "FastLanguageModel", "from_pretrained"),
        "FastLanguageModel.get_peft_model": unsloth_parameters("llama.py", "FastLlamaModel", "get_peft_model"),
    }


def target(call: ast.Call, inside_trainer: bool) -> str | None:
    """Which of the known callables a call goes to."""
    words = ast.unparse(call.func).split(".")
    if ast.unparse(call.func) == "trainer_class()" or (inside_trainer and words == ["super()", "__init__"]):
        return "GRPOTrainer"
    if "FastLanguageModel" in words[:-1]:
        return f"FastLanguageModel.{words[-1]}"
    return words[-1] if words[-1] in ("GRPOConfig", "GRPOTrainer", "LoraConfig", "get_peft_model") else None


def calls(source: str):
    """(target, keyword, line) of every keyword passed; our trainer's own two arguments are left out."""
    tree = ast.parse(source)
    trainers = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and "GRPOTrainer" in map(last_word, n.bases)]
    inside = {id(n) for trainer in trainers for n in ast.walk(trainer)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (name := target(node, id(node) in inside)):
            own = {"method", "problems"} if ast.unparse(node.func) == "trainer_class()" else set()
            yield from ((name, k.arg, node.lineno) for k in node.keywords if k.arg and k.arg not in own)


def last_word(node: ast.expr) -> str:
    return ast.unparse(node).split(".")[-1]


def unknown(source: str) -> list[str]:
    """Keywords that their target does not take."""
    names = known()
    return [f"line {line}: {name}({keyword}=…)" for name, keyword, line in calls(source)
            if keyword not in names.get(name, set())]


def cells(path: Path) -> str:
    """A notebook's code, without the lines that are for IPython or the shell."""
    code = [c["source"] for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    lines = "\n".join("".join(source) for source in code)
    return re.sub(r"^(\s*)[%!].*", r"\1pass", lines, flags=re.MULTILINE)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_package_passes_known_keywords(path):
    assert unknown(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_notebooks_pass_known_keywords(path):
    assert unknown(cells(path)) == []


def test_the_package_calls_each_of_them():
    """Else the walk above might be looking past the calls."""
    seen = {name for path in MODULES for name, _, _ in calls(path.read_text(encoding="utf-8"))}
    assert seen >= {"GRPOConfig", "GRPOTrainer", "LoraConfig", "FastLanguageModel.from_pretrained",
                    "FastLanguageModel.get_peft_model"}


@pytest.mark.parametrize("source, found", [
    ("trl.GRPOConfig(max_prompt_length=1)", "line 1: GRPOConfig(max_prompt_length=…)"),
    ("trainer_class()(method=m, models=x)", "line 1: GRPOTrainer(models=…)"),
    ("class T(trl.GRPOTrainer):\n def f(self): super().__init__(rewards=1)", "line 2: GRPOTrainer(rewards=…)"),
    ("peft.LoraConfig(rank=8)", "line 1: LoraConfig(rank=…)"),
    ("FastLanguageModel.from_pretrained(maximum_length=1)",
     "line 1: FastLanguageModel.from_pretrained(maximum_length=…)"),
    ("unsloth.FastLanguageModel.get_peft_model(m, alpha=1)", "line 1: FastLanguageModel.get_peft_model(alpha=…)"),
])
def test_a_wrong_keyword_is_found(source, found):
    assert unknown(source) == [found]


def test_a_right_keyword_is_not():
    assert unknown("FastLanguageModel.from_pretrained(max_seq_length=1, load_in_4bit=True)") == []


def test_notebook_lines_for_ipython_are_skipped(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_text(json.dumps({"cells": [
        {"cell_type": "markdown", "source": "not ( python"},
        {"cell_type": "code", "source": ["if True:\n", "    %pip install x\n", "!ls\n", "GRPOConfig(bad=1)"]}]}))
    assert unknown(cells(path)) == ["line 4: GRPOConfig(bad=…)"]
