"""From MyST Markdown (what the book is written in) to the plain Markdown that Jupyter and Colab render.

A block is found by markdown-it, the parser that the book itself is built with; each directive and role of a small,
fixed set has one rule here. Whatever has no rule raises :class:`Unsupported`, so that an author cannot ship a
notebook with raw MyST in it.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

ADMONITIONS = frozenset(
    "admonition attention caution danger error hint important margin note seealso sidebar tip warning".split()
)
NUMBERED = {"figure": "Figure", "table": "Table", "list-table": "Table", "exercise": "Exercise",
            "exercise-start": "Exercise"}  # fmt: skip
INLINE = re.compile(
    r"\{(?P<role>[a-z][\w:.-]*)\}(?P<tick>`+)(?P<content>.+?)(?P=tick)"
    r"|(?P<fence>(?<!`)`+(?!`)).+?(?<!`)(?P=fence)(?!`)"
    r"|(?P<note>\[\^[^\]]+\])"
    r"|(?P<bang>!?)\[(?P<text>[^\[\]]*)\]\((?P<link>[^()\s]+)\)",
    re.S,
)
TITLED = re.compile(r"(?P<title>.+?)\s*<(?P<target>[^<>]+)>", re.S)


class Unsupported(ValueError):
    """A piece of MyST that a plain notebook cannot show."""


@dataclass(frozen=True)
class Directive:
    """One fenced directive: its name, its argument (the rest of the first line), options and body."""

    name: str
    argument: str
    options: dict[str, str]
    body: str

    @property
    def label(self) -> str:
        """The name that references use, or an empty text."""
        return self.options.get("label") or self.options.get("name") or ""


@dataclass
class Labels:
    """What the labels of a chapter stand for.

    Attributes:
        text: label → what a reference to it shows, as in ``(3)``, ``Figure 2`` or a heading's words.
        counts: how many of each kind were numbered so far.
    """

    text: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def number(self, kind: str, label: str) -> str:
        """Count one more of ``kind`` and let ``label`` stand for it; returns what a reference shows."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        shown = f"({self.counts[kind]})" if kind == "equation" else f"{kind} {self.counts[kind]}"
        if label:
            self.text[label] = shown
        return shown


def parse_directive(info: str, content: str) -> Directive:
    """Split a fence into a directive.

    >>> parse_directive("{note} Mind this", ":class: dropdown\\n\\nThe body.").options
    {'class': 'dropdown'}
    """
    match = re.match(r"\{([^}]+)\}\s*(.*)", info, re.S)
    if match is None:
        raise Unsupported(f"not a directive: {info!r}")
    lines = content.split("\n")
    options: dict[str, str] = {}
    if lines[0].strip() == "---":
        end = next((i for i, line in enumerate(lines[1:], 1) if line.strip() == "---"), len(lines))
        options = {str(k): str(v) for k, v in (yaml.safe_load("\n".join(lines[1:end])) or {}).items()}
        lines = lines[end + 1 :]
    while lines and (option := re.match(r":([\w-]+):\s*(.*)", lines[0])):
        options[option[1]] = option[2].strip()
        lines = lines[1:]
    return Directive(match[1].strip(), match[2].strip(), options, "\n".join(lines).strip("\n"))


def blocks(text: str) -> Iterator[tuple[str, Any]]:
    """Yield a cell's text as (kind, value): ``directive``, ``label``, ``math`` (label or '', TeX), ``raw`` or ``text``.

    Raises:
        Unsupported: a directive inside a list or quotation.
    """
    lines = text.split("\n")
    position = 0
    for token in _parser().parse(text):
        directive = token.type in ("fence", "colon_fence") and token.info.lstrip().startswith("{")
        if token.level and directive:
            raise Unsupported(f"{token.info.strip()} inside a list or quotation")
        special = {"fence": "raw", "colon_fence": "raw", "html_block": "raw", "math_block_label": "math",
                   "math_block": "math", "amsmath": "raw", "myst_target": "label",
                   "myst_line_comment": "comment", "myst_block_break": "comment"}  # fmt: skip
        if token.level or token.type not in special or token.map is None:
            continue
        start, end = token.map
        if before := "\n".join(lines[position:start]).strip("\n"):
            yield "text", before
        kind = "directive" if directive else special[token.type]
        if kind == "directive":
            yield kind, parse_directive(token.info.strip(), token.content)
        elif kind == "label":
            yield kind, token.content.strip()
        elif kind == "math":
            yield kind, (token.info, token.content)
        elif kind == "raw":
            yield kind, "\n".join(lines[start:end]).strip("\n")
        position = end
    if rest := "\n".join(lines[position:]).strip("\n"):
        yield "text", rest


def _parser() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.amsmath import amsmath_plugin
    from mdit_py_plugins.colon_fence import colon_fence_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.myst_blocks import myst_block_plugin

    parser = MarkdownIt("commonmark").enable("table")
    for plugin in (colon_fence_plugin, myst_block_plugin, dollarmath_plugin, amsmath_plugin):
        parser.use(plugin)
    return parser


def collect(text: str, labels: Labels) -> None:
    """Number the equations, figures, tables and exercises of one cell, and remember its headings' labels."""
    pending = ""
    for kind, value in blocks(text):
        if kind == "label":
            pending = value
            continue
        if kind == "math" and value[0]:
            labels.number("equation", value[0])
        elif kind == "directive":
            _collect_directive(value, pending, labels)
        elif pending and (heading := re.match(r"#+\s+(.+)", value)):
            labels.text[pending] = heading[1].replace("*", "").strip()
        pending = ""


def _collect_directive(item: Directive, target: str, labels: Labels) -> None:
    label = item.label or target
    if item.name == "math" and label:
        labels.number("equation", label)
    elif item.name in NUMBERED:
        labels.number(NUMBERED[item.name], label)
    elif item.name.startswith("prf:"):
        labels.number(item.name[4:].capitalize(), label)
    elif item.name.startswith("solution") and label:
        labels.text[label] = f"the solution of {labels.text.get(item.argument, item.argument)}"
    if item.name in ADMONITIONS | {"dropdown"} or item.name.startswith(("exercise", "prf:", "solution")):
        collect(item.body, labels)


@dataclass(frozen=True)
class Links:
    """Where things outside the notebook are.

    Attributes:
        blob: address of the folder of the chapter in the repository's web pages.
        raw: address of the same folder's files themselves (for images).
        citations: BibTeX key → (author, year, address).
    """

    blob: str
    raw: str
    citations: dict[str, tuple[str, str, str]]

    @staticmethod
    def join(base: str, path: str) -> str:
        """Append a relative path to an address.

        >>> Links.join("https://host/a/b", "../c.md")
        'https://host/a/c.md'
        """
        scheme, _, rest = base.partition("://")
        return f"{scheme}://{posixpath.normpath(posixpath.join(rest, path))}"


def inline(text: str, labels: Labels, links: Links) -> str:
    """Rewrite the roles and relative links of a paragraph; code spans stay as they are.

    >>> inline("see {eq}`a`, not `{eq}`", Labels({"a": "(1)"}), Links("https://h", "https://h", {}))
    'see (1), not `{eq}`'
    """

    def replace(match: re.Match[str]) -> str:
        if match["role"]:
            return _role(match["role"], match["content"], labels, links)
        if match["note"]:
            raise Unsupported(f"footnote {match['note']}")
        if not match["link"]:
            return match[0]
        return _link(match["bang"], match["text"], match["link"], links)

    return INLINE.sub(replace, text)


def _link(bang: str, text: str, target: str, links: Links) -> str:
    if re.match(r"[a-z]+:", target):
        return f"{bang}[{text}]({target})"
    if target.startswith("#"):
        if not text:
            raise Unsupported(f"link without words: []({target})")
        return text
    return f"{bang}[{text}]({Links.join(links.raw if bang else links.blob, target)})"


def _role(name: str, content: str, labels: Labels, links: Links) -> str:
    titled = TITLED.fullmatch(content.strip())
    title, target = (titled["title"], titled["target"]) if titled else ("", content.strip())
    rules: dict[str, Callable[[], str]] = {
        "math": lambda: f"${content}$",
        "eq": lambda: labels.text.get(target, f"({target})"),
        "ref": lambda: title or f"*{labels.text.get(target, target)}*",
        "prf:ref": lambda: title or labels.text.get(target, target),
        "numref": lambda: _numref(title, labels.text.get(target, target)),
        "doc": lambda: f"[{title or posixpath.basename(target)}]({Links.join(links.blob, target)}.md)",
        "term": lambda: title or target,
        "abbr": lambda: f"{title} ({target})" if title else target,
        "glue:text": lambda: f"`{target.rsplit(':', 1)[0] if ':' in target else target}` (printed above)",
    }
    if name.split(":")[0] == "cite":
        return _cite(name, target, links)
    if name not in rules:
        raise Unsupported(f"role {{{name}}}`{content}`")
    return rules[name]()


def _numref(title: str, shown: str) -> str:
    number = shown.rsplit(" ", 1)[-1]
    return title.replace("%s", number).replace("{number}", number) if title else shown


def _cite(role: str, keys: str, links: Links) -> str:
    found = []
    for key in (k.strip() for k in keys.split(",")):
        if key not in links.citations:
            raise Unsupported(f"citation {key!r} is not in references.bib")
        who, year, url = links.citations[key]
        words = f"{who} ({year})" if role == "cite:t" else f"{who}, {year}"
        found.append(f"[{words}]({url})" if url else words)
    return ", ".join(found) if role == "cite:t" else f"({'; '.join(found)})"
