"""Where the book's repository is, on this machine and in public.

The public address is written once, as ``repository.url`` in ``_config.yml``; badges, Colab cells and links come from
here.
"""

import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from explorl.errors import ConfigError
from explorl.myst import Links

CHAPTERS = "book/chapters"


@dataclass(frozen=True)
class Repository:
    """The repository whose chapters are turned into notebooks.

    Attributes:
        root: its folder; ``_config.yml`` there holds the public address.
    """

    root: Path

    @classmethod
    def find(cls, start: Path | None = None) -> "Repository":
        """The repository around ``start`` (default: the working directory).

        Raises:
            ConfigError: no folder above holds both ``_config.yml`` and ``book/chapters``.
        """
        here = (start or Path.cwd()).resolve()
        for folder in (here, *here.parents):
            if (folder / "_config.yml").is_file() and (folder / CHAPTERS).is_dir():
                return cls(folder)
        raise ConfigError("root", str(here), "a folder inside the book's repository")

    @cached_property
    def config(self) -> dict[str, Any]:
        """The book's ``_config.yml``."""
        return yaml.safe_load((self.root / "_config.yml").read_text(encoding="utf-8"))

    @cached_property
    def project(self) -> dict[str, Any]:
        """The repository's ``pyproject.toml``."""
        return tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def url(self) -> str:
        """The public address, as ``https://github.com/OWNER/NAME``."""
        return str(self.config["repository"]["url"]).rstrip("/")

    @property
    def branch(self) -> str:
        """The branch or tag that readers are given."""
        return str(self.config["repository"]["branch"])

    @property
    def chapters(self) -> list[Path]:
        """The chapters' sources, in the order of the table of contents; others behind them."""
        toc = self.root / "book" / "_toc.yml"
        text = toc.read_text(encoding="utf-8") if toc.is_file() else ""
        places = {path: text.find(f"chapters/{path.stem}\n") for path in (self.root / CHAPTERS).glob("*.md")}
        return sorted(places, key=lambda path: (places[path] < 0, places[path], path.name))

    def colab(self, chapter: Path) -> str:
        """The address that opens a chapter's notebook in Colab."""
        github = self.url.removeprefix("https://github.com/")
        name = chapter.with_suffix(".ipynb").name
        return f"https://colab.research.google.com/github/{github}/blob/{self.branch}/{CHAPTERS}/{name}"

    def badge(self, chapter: Path) -> str:
        """The "Open in Colab" badge of a chapter, in Markdown."""
        image = "https://colab.research.google.com/assets/colab-badge.svg"
        return f"[![Open in Colab]({image})]({self.colab(chapter)})"

    @cached_property
    def links(self) -> Links:
        """Where the chapters' relative links and citations lead."""
        raw = self.url.replace("https://github.com/", "https://raw.githubusercontent.com/")
        return Links(
            blob=f"{self.url}/blob/{self.branch}/{CHAPTERS}",
            raw=f"{raw}/{self.branch}/{CHAPTERS}",
            citations=_citations(self.root / "book" / "references.bib"),
        )


def _citations(path: Path) -> dict[str, tuple[str, str, str]]:
    """Author, year and address of every entry of a BibTeX file."""
    from pybtex.database import parse_file

    found = {}
    for key, entry in parse_file(str(path)).entries.items():
        names = [" ".join([*p.prelast_names, *p.last_names]) for p in entry.persons.get("author", [])]
        who = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
        found[key] = (who, entry.fields["year"], entry.fields.get("url", ""))
    return found
