"""One list of dependencies: pyproject.toml. Everything else that names a package must agree with it."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from explorl.errors import ConfigError
from explorl.notebooks import PINNED, install_source, pins
from explorl.repository import Repository

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
LEFT_ALONE = re.compile(r"\b(torch|torchvision|torchaudio|numpy|xformers|triton)\b")
NOTEBOOKS = sorted((ROOT / "book/chapters").glob("*.ipynb"))


def _install_cell(notebook: Path) -> str:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return "".join(next(cell for cell in cells if cell["cell_type"] == "code")["source"])


def test_conda_names_python_and_pip_only():
    plain = [d for d in CONDA["dependencies"] if isinstance(d, str)]
    assert {re.split(r"[=<>]", d)[0] for d in plain} == {"python", "pip"}
    assert [set(d) for d in CONDA["dependencies"] if isinstance(d, dict)] == [{"pip"}]


def test_conda_installs_this_package_with_extras_that_exist():
    (pip,) = [d["pip"] for d in CONDA["dependencies"] if isinstance(d, dict)]
    (line,) = pip
    match = re.fullmatch(r"-e \.\[([\w,]+)\]", line)
    assert match and set(match[1].split(",")) <= set(EXTRAS)


def test_conda_makefile_and_contract_install_the_same_extras():
    asked = re.findall(r"-e '?\.\[([\w,]+)\]", "\n".join(
        (ROOT / name).read_text(encoding="utf-8") for name in ("Makefile", "environment.yml")))  # fmt: skip
    assert len(asked) == 2 and len(set(asked)) == 1


def test_conda_python_is_one_that_the_package_allows():
    (python,) = [d for d in CONDA["dependencies"] if str(d).startswith("python=")]
    minor = int(python.split(".")[1])
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["project"]["requires-python"]).groups()
    assert int(low) <= minor < int(high)
    assert int(low) <= sys.version_info.minor < int(high)


def test_core_dependencies_are_lower_bounds_only():
    loose = [d for d in PROJECT["project"]["dependencies"] if not re.fullmatch(r"[\w\[\],.-]+>=[\d.]+", d)]
    assert loose == []


def test_unsloth_is_pinned_alike_in_the_extra_and_in_the_group():
    group = [d for d in PROJECT["dependency-groups"]["no-deps"] if d.startswith("unsloth")]
    assert sorted(group) == sorted(EXTRAS["t4"])


def test_pins_are_exact_and_leave_torch_and_numpy_alone():
    found = pins(PROJECT)
    assert [line.split("==")[0] for line in found] == list(PINNED)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in found)
    assert not LEFT_ALONE.search(" ".join(found))


def test_a_package_without_an_exact_pin_is_refused():
    extras = {"train": [line.replace("==", ">=") if line.startswith("trl") else line for line in EXTRAS["train"]],
              "t4": EXTRAS["t4"]}  # fmt: skip
    with pytest.raises(ConfigError, match="trl"):
        pins({"project": {"optional-dependencies": extras}})


def test_install_cell_is_guarded_and_names_the_public_address():
    repository = Repository(ROOT)
    source = install_source(repository)
    package = f'"explorl @ git+{repository.url}@{repository.branch}"'
    guarded = source.split('if find_spec("explorl") is None:\n')[1].splitlines()
    assert guarded[0] == f"    %pip install -q {package}"
    assert guarded[1].split() == ["%pip", "install", "-q", "--no-deps", *pins(PROJECT)]
    assert len(guarded) == 2
    assert "-U" not in source and "--upgrade" not in source and "--force-reinstall" not in source


def test_install_cell_imports_nothing_but_the_standard_library():
    python = re.sub(r"%pip.*", "pass", install_source(Repository(ROOT)))
    modules = {n.module for n in ast.walk(ast.parse(python)) if isinstance(n, ast.ImportFrom)}
    assert modules == {"importlib.util"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(ast.parse(python)))


def test_install_cell_does_nothing_where_the_library_is_there():
    for name, code in (("explorl", 0), ("no_such_package", 1)):
        python = re.sub(r"%pip.*", "raise SystemExit(1)", install_source(Repository(ROOT)))
        python = python.replace('find_spec("explorl")', f'find_spec("{name}")')
        assert subprocess.run([sys.executable, "-c", python], check=False).returncode == code


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_notebook_starts_with_the_install_cell(notebook):
    assert _install_cell(notebook) == install_source(Repository(ROOT))
