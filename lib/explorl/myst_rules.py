"""One rule for each MyST directive that the chapters may use: how it looks in a plain notebook."""

import re
from collections.abc import Callable

from explorl.myst import ADMONITIONS, Directive, Labels, Links, Unsupported, blocks, inline

Rule = Callable[[Directive, Labels, Links], str]
DEFINITION = re.compile(r"^(\S.*)\n: +", re.M)


def rewrite(text: str, labels: Labels, links: Links) -> str:
    """Turn the MyST text of one cell into plain Markdown.

    Args:
        text: the cell's source.
        labels: what :func:`explorl.myst.collect` found in the whole chapter.
        links: where the repository and the cited works are.

    Raises:
        Unsupported: a directive, role or option outside the subset; the message names it.

    >>> rewrite(":::{note}\\nMind *this*.\\n:::", Labels(), Links("https://h", "https://h", {}))
    '> **Note.**\\n>\\n> Mind *this*.'
    """
    parts: list[str] = []
    for kind, value in blocks(text):
        if kind == "directive":
            parts.append(_directive(value, labels, links))
        elif kind == "math":
            parts.append(_display(value[1].strip("\n"), labels.text.get(value[0], "")))
        elif kind == "raw":
            parts.append(value)
        elif kind == "text":
            parts.append(inline(DEFINITION.sub(r"**\1**: ", value), labels, links))
    return "\n\n".join(part for part in parts if part)


def _directive(item: Directive, labels: Labels, links: Links) -> str:
    if item.name in ADMONITIONS:
        return _admonition(item, labels, links)
    if item.name.startswith("prf:"):
        return _boxed(item.name[4:].capitalize(), item, labels, links)
    if item.name not in RULES:
        raise Unsupported(f"directive {{{item.name}}}")
    return RULES[item.name](item, labels, links)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def _details(summary: str, body: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"


def _display(tex: str, number: str) -> str:
    """Display mathematics, aligned as Sphinx would, with its number as a tag."""
    if r"\\" in tex and r"\begin{" not in tex:
        tex = f"\\begin{{split}}\n{tex}\n\\end{{split}}"
    tag = f"\n\\tag{{{number.strip('()')}}}" if number else ""
    return f"$$\n{tex}{tag}\n$$"


def _math(item: Directive, labels: Labels, links: Links) -> str:
    tex = "\n".join(part for part in (item.argument, item.body) if part)
    return _display(tex, labels.text.get(item.label, ""))


def _admonition(item: Directive, labels: Labels, links: Links) -> str:
    plain = item.name == "admonition"
    body, title = item.body, item.argument if plain else item.name.capitalize()
    if not plain and item.argument:
        if item.name in ("margin", "sidebar"):
            title = item.argument
        else:
            body = f"{item.argument}\n{body}".rstrip()
    body = rewrite(body, labels, links)
    if "dropdown" in item.options.get("class", ""):
        return _details(title, body)
    return _quote(f"**{inline(title, labels, links)}.**\n\n{body}".replace("?.**", "?**"))


def _dropdown(item: Directive, labels: Labels, links: Links) -> str:
    return _details(inline(item.argument or "More", labels, links), rewrite(item.body, labels, links))


def _boxed(kind: str, item: Directive, labels: Labels, links: Links) -> str:
    title = labels.text.get(item.label, kind)
    if item.argument:
        title += f" ({inline(item.argument, labels, links)})"
    return _quote(f"**{title}.**\n\n{rewrite(item.body, labels, links)}")


def _exercise(item: Directive, labels: Labels, links: Links) -> str:
    return _boxed("Exercise", item, labels, links)


def _solution(item: Directive, labels: Labels, links: Links) -> str:
    of = labels.text.get(item.argument, item.argument)
    return _details(f"Solution of {of}", rewrite(item.body, labels, links))


def _solution_start(item: Directive, labels: Labels, links: Links) -> str:
    return f"**Solution of {labels.text.get(item.argument, item.argument)}.**"


def _nothing(item: Directive, labels: Labels, links: Links) -> str:
    return ""


def _caption(item: Directive, words: str, labels: Labels, links: Links) -> str:
    number = labels.text.get(item.label, "")
    words = inline(words, labels, links)
    return f"**{number}.** {words}" if number else words


def _figure(item: Directive, labels: Labels, links: Links) -> str:
    alt = item.options.get("alt", "")
    if not alt:
        raise Unsupported(f"figure {item.argument} without alt text")
    source = item.argument if "://" in item.argument else links.join(links.raw, item.argument)
    image = f"![{alt}]({source})"
    return f"{image}\n\n{_caption(item, item.body, labels, links)}" if item.body else image


def _table(item: Directive, labels: Labels, links: Links) -> str:
    return f"{_caption(item, item.argument, labels, links)}\n\n{rewrite(item.body, labels, links)}".strip()


def _list_table(item: Directive, labels: Labels, links: Links) -> str:
    if item.options.get("header-rows", "0") != "1":
        raise Unsupported("list-table without :header-rows: 1")
    rows: list[list[str]] = []
    for line in item.body.split("\n"):
        if row := re.match(r"\* - ?(.*)", line):
            rows.append([row[1].strip()])
        elif rows and (cell := re.match(r"  - ?(.*)", line)):
            rows[-1].append(cell[1].strip())
        elif rows and line.strip():
            rows[-1][-1] = f"{rows[-1][-1]} {line.strip()}".strip()
    if not rows or len({len(row) for row in rows}) != 1:
        raise Unsupported("list-table with rows of unequal length")
    cells = [[inline(cell, labels, links).replace("|", r"\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in [cells[0], ["---"] * len(cells[0]), *cells[1:]]]
    return f"{_caption(item, item.argument, labels, links)}\n\n".lstrip() + "\n".join(lines)


def _code_block(item: Directive, labels: Labels, links: Links) -> str:
    return f"```{item.argument}\n{item.body}\n```"


RULES: dict[str, Rule] = {
    "math": _math,
    "dropdown": _dropdown,
    "exercise": _exercise,
    "exercise-start": _exercise,
    "exercise-end": _nothing,
    "solution": _solution,
    "solution-start": _solution_start,
    "solution-end": _nothing,
    "figure": _figure,
    "image": _figure,
    "table": _table,
    "list-table": _list_table,
    "code-block": _code_block,
}
