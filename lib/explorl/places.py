"""Where things lie: in a checkout of the repository, or in an installed package without one."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def checkout() -> Path | None:
    """The repository's root, or None where the package was installed without it."""
    root = PACKAGE.parent.parent
    return root if (root / "pyproject.toml").is_file() and (root / "params").is_dir() else None


def _in_checkout_or_package(name: str) -> Path:
    root = checkout()
    return root / name if root else PACKAGE / "_data" / name


def params_dir() -> Path:
    """The parameter files that belong to the book: ``params/`` of the checkout, else the package's copy."""
    return _in_checkout_or_package("params")


def results_dir() -> Path:
    """Where records are written: ``results/`` of the checkout, else of the current folder."""
    return (checkout() or Path.cwd()) / "results"


def committed_results_dir() -> Path:
    """Where the book's own records are read: ``results/`` of the checkout, else the package's copy."""
    return _in_checkout_or_package("results")


def runs_dir() -> Path:
    """Where arms train: ``$EXPLORL_RUNS``, else ``runs/`` of the checkout or of the current folder."""
    named = os.environ.get("EXPLORL_RUNS")
    return Path(named).expanduser().resolve() if named else (checkout() or Path.cwd()) / "runs"


def chapter_notebook(chapter: str) -> Path | None:
    """The chapter's notebook: its MyST source, else the generated ``.ipynb``; None if neither is here."""
    root = checkout()
    folder = root / "book" / "chapters" if root else PACKAGE / "_data" / "chapters"
    found = (folder / f"{chapter}{suffix}" for suffix in (".md", ".ipynb"))
    return next((path for path in found if path.is_file()), None)
