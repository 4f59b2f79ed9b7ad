"""The book builds without a warning, and its pages hold together: links, formulas, images, no outside address."""

import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import chromium
import pytest
import yaml
from bs4 import BeautifulSoup

from explorl.repository import Repository

ROOT = Path(__file__).resolve().parents[1]
REPOSITORY = Repository(ROOT)
TOC = yaml.safe_load((ROOT / "book/_toc.yml").read_text(encoding="utf-8"))
PAGES = [TOC["root"], *(c["file"] for part in TOC["parts"] for c in part["chapters"])]
CHROMIUM = pytest.mark.skipif(chromium.executable() is None, reason="no Chromium on this machine")
each_page = pytest.mark.parametrize("page", PAGES)


@pytest.fixture(scope="module")
def html(tmp_path_factory) -> Path:
    """The pages, built at scale "smoke" into an empty folder, every warning an error."""
    out = tmp_path_factory.mktemp("book")
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "book", "-W", "--keep-going",
               "--path-output", str(out)]  # fmt: skip
    environment = os.environ | {"EXPLORL_SCALE": "smoke"}
    done = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=1200, check=False)
    reports = "\n".join(p.read_text() for p in (out / "_build/html/reports").rglob("*.log"))
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}\n{reports[-6000:]}"
    return out / "_build/html"


@pytest.fixture(scope="module")
def soups(html) -> dict[str, BeautifulSoup]:
    """Page → its parsed HTML."""
    return {page: BeautifulSoup((html / f"{page}.html").read_text(encoding="utf-8"), "html.parser") for page in PAGES}


@pytest.fixture(scope="module")
def tab():
    """A browser's tab."""
    with chromium.browser() as browser:
        yield browser


@functools.cache
def _anchors(file: Path) -> set[str]:
    soup = BeautifulSoup(file.read_text(encoding="utf-8"), "html.parser")
    return {tag[key] for key in ("id", "name") for tag in soup.find_all(attrs={key: True})}


def _addresses(soup: BeautifulSoup) -> list[str]:
    found = [tag[key] for key in ("href", "src") for tag in soup.find_all(attrs={key: True})]
    return [address for address in found if not address.startswith(("data:", "javascript:", "mailto:"))]


@each_page
def test_relative_links_and_anchors_resolve(html, soups, page):
    broken = []
    for address in _addresses(soups[page]):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        here = html / f"{page}.html"
        target = (here.parent / unquote(parts.path)).resolve() if parts.path else here
        if not target.is_file():
            broken.append(address)
        elif parts.fragment and target.suffix == ".html" and unquote(parts.fragment) not in _anchors(target):
            broken.append(address)
    assert broken == []


@each_page
def test_links_into_the_repository_lead_to_files(soups, page):
    prefix = re.escape(REPOSITORY.url)
    colab = re.escape(REPOSITORY.url.replace("https://github.com", "https://colab.research.google.com/github"))
    into = re.compile(rf"(?:{prefix}|{colab})/(?:blob|edit|tree|raw)/{re.escape(REPOSITORY.branch)}/([^?#]+)")
    paths = [unquote(match[1]) for address in _addresses(soups[page]) if (match := into.match(address))]
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert f"book/{page}.md" in paths, "the edit button"
    launched = [a for a in _addresses(soups[page]) if re.match(rf"{colab}/", a)]
    assert all(urlsplit(address).path.endswith(".ipynb") for address in launched), "Colab opens notebooks only"
    assert bool(launched) == page.startswith("chapters/")


@each_page
def test_nothing_is_loaded_from_another_host(soups, page):
    loaded = [*soups[page].find_all(["script", "img", "iframe", "source"], src=True),
              *soups[page].find_all("link", href=True, rel=re.compile("stylesheet|icon|preload|preconnect"))]  # fmt: skip
    outside = [t.get("src") or t.get("href") for t in loaded if urlsplit(t.get("src") or t.get("href")).netloc]
    assert loaded and outside == []
    inline = [script.string or "" for script in soups[page].find_all("script", src=False)]
    assert not any(re.search(r"unpkg|jsdelivr|cdnjs", text) for text in inline)


def test_mathjax_lies_beside_the_pages(html, soups):
    with_formulas = [page for page, soup in soups.items() if soup.select("article .math")]
    assert "notation" in with_formulas
    for page in with_formulas:
        (script,) = [s["src"] for s in soups[page].find_all("script", src=re.compile("mathjax"))]
        assert (html / f"{page}.html").parent.joinpath(urlsplit(script).path).resolve().stat().st_size > 1_000_000


@each_page
def test_no_markup_is_left_in_the_text(soups, page):
    article = BeautifulSoup(str(soups[page].find("article")), "html.parser")
    for tag in article.select("pre, code, script, .math, svg"):
        tag.decompose()
    text = article.get_text()
    assert not re.search(r"\$\$|:::|```|\{[a-z:]+\}`|^\([\w-]+\)=$|Pending glue", text, re.M)


@each_page
def test_every_image_says_what_it_shows(soups, page):
    silent = [img.get("src") for img in soups[page].select("article img")
              if not img.get("alt") or re.search(r"\.(png|svg|jpe?g)$", img["alt"])]  # fmt: skip
    assert silent == [], "give the cell a mystnb: image: alt:, or the figure an :alt:"
    assert all(svg.get("role") == "img" and svg.find("title") for svg in soups[page].select("article svg.map"))


@CHROMIUM
@each_page
def test_page_opens_offline(html, tab, page):
    visit = tab.visit(f"file://{html}/{page}.html")
    assert visit.errors == []
    assert visit.requests, "the browser reported nothing: the test would pass on any page"
    assert [u for u in visit.requests if not u.startswith(("file:", "data:", "blob:"))] == []


@CHROMIUM
@each_page
def test_formulas_are_rendered(html, tab, page):
    tab.visit(f"file://{html}/{page}.html")
    formulas = "[...document.querySelectorAll('article .math')]"
    assert tab.value(f"{formulas}.filter(m => !m.querySelector('mjx-container')).map(m => m.textContent)") == []
    assert tab.value("document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0
    if page == "notation":
        assert tab.value(f"{formulas}.length") > 50


@CHROMIUM
@each_page
def test_page_fits_a_phone(html, tab, page):
    tab.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    tab.visit(f"file://{html}/{page}.html")
    width = tab.value("document.documentElement.scrollWidth")
    tab.call("Emulation.clearDeviceMetricsOverride")
    assert width <= 390


# --- the execution cache -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def extension():
    """The Sphinx extension, loaded from its file."""
    spec = importlib.util.spec_from_file_location("offline_book", ROOT / "book/_ext/offline_book.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("changed", ["lib/a.py", "params/sde2/toy.yaml", "results/sde2/toy/result.json"])
def test_cache_key_follows_what_a_chapter_reads(tmp_path, extension, changed):
    for name in ("lib/a.py", "params/sde2/toy.yaml", "results/sde2/toy/result.json", "book/index.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    before = extension.inputs_key(tmp_path)
    assert extension.inputs_key(tmp_path) == before
    (tmp_path / "book/index.md").write_text("2")
    (tmp_path / "lib/__pycache__").mkdir()
    (tmp_path / "lib/__pycache__/a.pyc").write_text("2")
    assert extension.inputs_key(tmp_path) == before
    (tmp_path / changed).write_text("2")
    assert extension.inputs_key(tmp_path) != before


def test_cache_key_follows_the_scale(tmp_path, extension):
    assert extension.inputs_key(tmp_path, "smoke") != extension.inputs_key(tmp_path, "toy")
