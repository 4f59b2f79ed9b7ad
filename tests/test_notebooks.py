"""The Colab notebooks are what the chapters give, and hold nothing that a plain notebook cannot show."""

import ast
import json
import re
import symtable
from pathlib import Path

import jupytext
import nbformat
import pytest

from explorl.errors import ConfigError
from explorl.myst import Labels, Links, Unsupported, collect
from explorl.myst_rules import rewrite
from explorl.notebooks import check, generate, to_notebook
from explorl.params_model import CHAPTERS as PARAMETERS
from explorl.repository import Repository

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = Repository(ROOT).chapters
LINKS = Links("https://host/blob/main/book/chapters", "https://raw/main/book/chapters",
              {"key": ("Ada and Bob", "2026", "https://paper"), "old": ("Cyd", "1927", "")})  # fmt: skip
LEFTOVER = re.compile(r"^(?:```+|:::+)\{|^\([\w-]+\)=$|\{[a-z:]+\}`|^%|^\+\+\+", re.M)
each_chapter = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)


def _plain(text: str) -> str:
    labels = Labels()
    collect(text, labels)
    return rewrite(text, labels, LINKS)


def _notebook(chapter: Path) -> dict:
    return json.loads(chapter.with_suffix(".ipynb").read_text(encoding="utf-8"))


def _sources(notebook: dict, kind: str) -> list[str]:
    return ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == kind]


# --- the committed notebooks ---------------------------------------------------------------------------------------


def test_chapters_come_in_the_order_of_the_contents():
    toc = (ROOT / "book" / "_toc.yml").read_text(encoding="utf-8")
    listed = re.findall(r"file: chapters/(\w+)", toc)
    assert CHAPTERS and [path.stem for path in CHAPTERS] == listed


def test_notebooks_and_readme_are_in_sync_and_without_orphans():
    assert [path.name for path in check(root=ROOT)] == [], "run: make notebooks"


@each_chapter
def test_notebook_is_valid_and_holds_no_output(chapter):
    notebook = _notebook(chapter)
    nbformat.validate(nbformat.from_dict(notebook))
    code = [c for c in notebook["cells"] if c["cell_type"] == "code"]
    assert not any(c["outputs"] or c["execution_count"] for c in code)
    ids = [c["id"] for c in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    assert notebook["metadata"]["accelerator"] == "GPU"
    assert notebook["metadata"]["colab"]["gpuType"] == "T4"


@each_chapter
def test_code_is_the_chapters_own(chapter):
    source = jupytext.reads(chapter.read_text(encoding="utf-8"), fmt="md:myst")
    own = [cell.source for cell in source.cells if cell.cell_type == "code"]
    assert _sources(_notebook(chapter), "code")[1:] == own and own


@each_chapter
def test_one_parameters_cell_of_literals(chapter):
    cells = [c for c in _notebook(chapter)["cells"] if "parameters" in c["metadata"].get("tags", [])]
    assert len(cells) == 1
    for statement in ast.parse("".join(cells[0]["source"])).body:
        assert isinstance(statement, (ast.Assign, ast.AnnAssign))
        ast.literal_eval(statement.value)


@each_chapter
def test_no_earlier_variable_is_taken_for_a_parameter(chapter):
    def variables(source):
        found = symtable.symtable(source, chapter.name, "exec").get_symbols()
        return {name.get_name() for name in found if name.is_assigned() and not name.is_namespace()}

    cells = [c for c in _notebook(chapter)["cells"] if c["cell_type"] == "code"]
    at = next(i for i, c in enumerate(cells) if "parameters" in c["metadata"].get("tags", []))
    before, given = (set().union(*(variables("".join(c["source"])) for c in part)) for part in (cells[1:at], [cells[at]]))
    assert before & (set(PARAMETERS[chapter.stem].model_fields) - given) == set()


@each_chapter
def test_no_myst_is_left(chapter):
    for text in _sources(_notebook(chapter), "markdown"):
        prose = re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
        assert not LEFTOVER.search(prose), text


@each_chapter
def test_nothing_is_imported_before_the_install_cell(chapter):
    cells = _notebook(chapter)["cells"]
    first = next(c for c in cells if c["cell_type"] == "code")
    assert first["metadata"]["tags"] == ["install"]
    assert "colab-badge" in "".join(cells[0]["source"])


@each_chapter
def test_code_lines_fit_the_page(chapter):
    lines = [line for text in _sources(_notebook(chapter), "code")[1:] for line in text.splitlines()]
    assert [line for line in lines if len(line) > 79] == []


# --- the generator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("```{math}\n:label: eq-a\nx = 1\n```\n\nSee {eq}`eq-a`.", "$$\nx = 1\n\\tag{1}\n$$\n\nSee (1)."),
        ("$$ x = 1 $$ (eq-a)\n\nSee {eq}`eq-a`.", "$$\n x = 1 \n\\tag{1}\n$$\n\nSee (1)."),
        ("```{math}\na &= 1 \\\\\nb &= 2\n```", "$$\n\\begin{split}\na &= 1 \\\\\nb &= 2\n\\end{split}\n$$"),
        ("$$\na &= 1 \\\\\nb &= 2\n$$", "$$\n\\begin{split}\na &= 1 \\\\\nb &= 2\n\\end{split}\n$$"),
        ("(here)=\n## The *maths*\n\nIn {ref}`here`, {ref}`there <here>`.",
         "## The *maths*\n\nIn *The maths*, there."),
        ("```{note}\nMind.\n```", "> **Note.**\n>\n> Mind."),
        (":::{admonition} Why?\nSo.\n:::", "> **Why?**\n>\n> So."),
        ("```{warning} One line.\n```", "> **Warning.**\n>\n> One line."),
        (":::{admonition} Aside\n:class: dropdown\nText.\n:::",
         "<details>\n<summary>Aside</summary>\n\nText.\n\n</details>"),
        (":::{dropdown} Aside\nText.\n:::", "<details>\n<summary>Aside</summary>\n\nText.\n\n</details>"),
        ("````{note}\n```{math}\nx\n```\n````", "> **Note.**\n>\n> $$\n> x\n> $$"),
        ("```{table} Symbols\n:name: t\n| a |\n|---|\n| 1 |\n```\n\n{numref}`t`",
         "**Table 1.** Symbols\n\n| a |\n|---|\n| 1 |\n\nTable 1"),
        ("```{list-table} Two\n:header-rows: 1\n* - a\n  - b\n* - c|d\n  - e\n    f\n```",
         "Two\n\n| a | b |\n| --- | --- |\n| c\\|d | e f |"),
        ("```{figure} ../_static/x.svg\n:name: f\n:alt: A drawing\nThe words.\n```\n\n{numref}`Fig. %s <f>`",
         "![A drawing](https://raw/main/book/_static/x.svg)\n\n**Figure 1.** The words.\n\nFig. 1"),
        ("```{exercise} Name\n:label: e\nDo $x$.\n```\n\n```{solution} e\nDone.\n```\n\n{ref}`e`",
         "> **Exercise 1 (Name).**\n>\n> Do $x$.\n\n<details>\n<summary>Solution of Exercise 1</summary>\n\n"
         "Done.\n\n</details>\n\n*Exercise 1*"),
        ("```{solution-start} e\n```\n\nText.\n\n```{solution-end}\n```", "**Solution of e.**\n\nText."),
        ("```{prf:theorem} Bound\n:label: t\n$x$\n```\n\n{prf:ref}`t`",
         "> **Theorem 1 (Bound).**\n>\n> $x$\n\nTheorem 1"),
        ("{cite:t}`key`; {cite:p}`key,old`",
         "[Ada and Bob (2026)](https://paper); ([Ada and Bob, 2026](https://paper); Cyd, 1927)"),
        ("It is {glue:text}`accuracy:.2f`.", "It is `accuracy` (printed above)."),
        ("[notation](../notation.md), {doc}`../notation`, [out](https://x)",
         "[notation](https://host/blob/main/book/notation.md), "
         "[notation](https://host/blob/main/book/notation.md), [out](https://x)"),
        ("% a comment\n\nText", "Text"),
        ("Term\n: Meaning", "**Term**: Meaning"),
        ("```python\n{ref}`x`\n```", "```python\n{ref}`x`\n```"),
        ("Write `` {ref}`x` `` so.", "Write `` {ref}`x` `` so."),
    ],
)  # fmt: skip
def test_rewriting(myst, plain):
    assert _plain(myst) == plain


@pytest.mark.parametrize(
    ("myst", "named"),
    [
        ("````{grid}\nx\n````", "{grid}"),
        ("::::{tab-set}\n:::{tab-item} A\nx\n:::\n::::", "{tab-set}"),
        ("{kbd}`x`", "{kbd}"),
        ("Text[^1]", "[^1]"),
        ("- item\n  ```{note}\n  x\n  ```", "{note}"),
        ("```{figure} x.png\nWords.\n```", "alt"),
        ("{cite}`nobody`", "nobody"),
        ("```{list-table}\n:header-rows: 1\n* - a\n  - b\n* - c\n```", "unequal"),
    ],
)
def test_what_a_notebook_cannot_show_is_refused(myst, named):
    with pytest.raises(Unsupported, match=re.escape(named)):
        _plain(myst)


def test_numbers_count_over_all_cells():
    labels = Labels()
    for text in ("$$a$$ (one)", "```{math}\nunlabelled\n```", "```{math}\n:label: two\nb\n```"):
        collect(text, labels)
    assert labels.text == {"one": "(1)", "two": "(2)"}


def _small_repository(root: Path, chapter: str) -> Path:
    for name in ("_config.yml", "pyproject.toml"):
        (root / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    (root / "book/chapters").mkdir(parents=True)
    (root / "book/references.bib").write_text("@article{a, author={A, B}, year={2020}}", encoding="utf-8")
    (root / "README.md").write_text("<!-- chapters -->\nold\n<!-- /chapters -->\n", encoding="utf-8")
    path = root / "book/chapters/one.md"
    path.write_text(chapter, encoding="utf-8")
    return path


CHAPTER = """# One

```{code-cell} python
:tags: [parameters]
x = 1
```

```{solution-start} e
```

```{code-cell} python
y = 2
```

```{solution-end}
```

```{code-cell} python
---
mystnb:
  figure: {name: fig, caption: A line}
tags: [hide-input]
---
z = 3
```

See {numref}`fig`.
"""


def test_generate_then_in_sync_and_an_edit_is_noticed(tmp_path):
    chapter = _small_repository(tmp_path, CHAPTER)
    notebook = chapter.with_suffix(".ipynb")
    assert {p.name for p in generate(root=tmp_path)} == {"one.ipynb", "README.md"}
    before = notebook.read_bytes()
    assert check(root=tmp_path) == [] and generate(root=tmp_path) == []
    assert "blob/main/book/chapters/one.ipynb" in (tmp_path / "README.md").read_text(encoding="utf-8")
    chapter.write_text(CHAPTER.replace("y = 2", "y = 3"), encoding="utf-8")
    assert check(root=tmp_path) == [notebook]
    generate(root=tmp_path)
    assert notebook.read_bytes() != before
    (tmp_path / "book/chapters/gone.ipynb").write_text("{}", encoding="utf-8")
    assert [p.name for p in check(root=tmp_path)] == ["gone.ipynb"]


def test_cells_of_a_solution_and_hidden_input_are_collapsed(tmp_path):
    chapter = _small_repository(tmp_path, CHAPTER)
    notebook = to_notebook(chapter, Repository(tmp_path))
    code = {"".join(c["source"]): c["metadata"] for c in notebook["cells"] if c["cell_type"] == "code"}
    assert "cellView" not in code["x = 1"] and code["x = 1"]["tags"] == ["parameters"]
    assert code["y = 2"] == {"cellView": "form", "jupyter": {"source_hidden": True}}
    assert code["z = 3"]["jupyter"] == {"source_hidden": True} and "mystnb" not in code["z = 3"]
    assert _sources(notebook, "markdown")[-2:] == ["**Figure 1.** A line", "See Figure 1."]


def test_an_edit_keeps_the_ids_of_the_other_cells(tmp_path):
    chapter = _small_repository(tmp_path, CHAPTER)
    before = [c["id"] for c in to_notebook(chapter, Repository(tmp_path))["cells"]]
    chapter.write_text(CHAPTER.replace("z = 3", "z = 4"), encoding="utf-8")
    after = [c["id"] for c in to_notebook(chapter, Repository(tmp_path))["cells"]]
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_an_unsupported_chapter_is_named(tmp_path):
    _small_repository(tmp_path, "# One\n\n::::{grid}\n::::\n")
    with pytest.raises(Unsupported, match=r"one\.md: directive \{grid\}"):
        generate(root=tmp_path)


def test_outside_a_repository(tmp_path):
    with pytest.raises(ConfigError, match="root"):
        check(root=tmp_path)
