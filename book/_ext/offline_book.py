"""Sphinx extension: a page that needs no network, and an execution cache that knows the library.

* MathJax comes from the PyPI package ``sphinx-mathjax-offline``; its one file is copied into the built pages.
* jupyter-cache looks at a notebook's cells only. Chapters also depend on ``lib/``, ``params/`` and ``results/``,
  so the cache lives in a folder named after the content of those three and of the chosen scale.
* Jupyter Book adds sphinx-thebe's scripts to every page, twice, also when it is switched off: they are taken out.
* Only a chapter has a notebook beside it; the Colab button of any other executed page would lead nowhere.
"""

import hashlib
import os
import shutil
from importlib.metadata import files
from pathlib import Path

from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ("lib", "params", "results")
MATHJAX = "tex-svg-full.js"


def inputs_key(root: Path = ROOT, scale: str = "") -> str:
    """Twelve hexadecimal digits of everything but the notebook's cells that a chapter's output depends on."""
    digest = hashlib.sha256(scale.encode())
    for folder in INPUTS:
        for path in sorted((root / folder).rglob("*")):
            hidden = any(part.startswith(("__", ".")) for part in path.relative_to(root).parts[:-1])
            if path.is_file() and not hidden:
                digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:12]


def set_cache(app: Sphinx, config: object) -> None:
    """Point the execution cache at its own folder; a changed value also makes Sphinx read every page again."""
    key = inputs_key(ROOT, os.environ.get("EXPLORL_SCALE", ""))
    config.nb_execution_cache_path = str(ROOT / ".cache" / "book" / key)


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Put MathJax beside the pages (not through ``_static``, whose scripts Jupyter Book loads on every page)."""
    if error or app.builder.format != "html":
        return
    source = next(f for f in files("sphinx-mathjax-offline") or () if f.name == MATHJAX)
    target = Path(app.outdir) / "_static" / "mathjax" / MATHJAX
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source.locate(), target)


def tidy_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """Remove sphinx-thebe's scripts and styles, and launch buttons that lead nowhere."""
    for kind in ("script_files", "css_files"):
        context[kind] = [f for f in context.get(kind, ()) if "thebe" not in f"{f} {vars(f)}".lower()]
    if not page.startswith("chapters/"):
        buttons = context.get("header_buttons", ())
        context["header_buttons"] = [b for b in buttons if b.get("label") != "launch-buttons"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("config-inited", set_cache, priority=100)
    app.connect("html-page-context", tidy_page, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.config.mathjax_path = f"mathjax/{MATHJAX}"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
