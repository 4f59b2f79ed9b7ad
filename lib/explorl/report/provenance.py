"""Where a number came from: package versions, hardware, commit, and a hash of all that it depends on."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from explorl import places

PACKAGES = ("explorl", "torch", "transformers", "trl", "peft", "sentence-transformers", "datasets",
            "bitsandbytes", "unsloth", "numpy")
DECIDING = ("text", "tasks", "papers", "train", "encoders", "errors")
"""Modules and rooms whose source decides numbers."""
STARTED = ("text.math_worker",)
"""Started as a script, not imported."""
ESTIMATES = ("train.demand", "train.memory", "train.preflight")
"""They say whether a run fits, and change no number of it."""


def versions(packages: Iterable[str] = PACKAGES) -> dict[str, str]:
    """Installed packages → version, Python among them."""
    found = {"python": platform.python_version()}
    for name in packages:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, str | int | float | None]:
    """The machine in plain facts, without its name: system, processor, cores, memory, GPU."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
    return {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": cores(),
        "memory_gb": round(pages / 2**30, 1),
        "gpu": gpu_name(),
    }


def cores() -> int:
    """Cores that this process may use, ≥ 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpu_name() -> str | None:
    """The first NVIDIA GPU's name, asked of the driver so that no GPU memory is taken; None without one."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") == "":
        return None
    lines = _output(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"])
    return lines.splitlines()[0].strip() if lines else None


def git_state() -> tuple[str | None, bool | None]:
    """The checkout's commit and whether a tracked file differs from it; (None, None) without a repository."""
    root = places.checkout()
    commit = _output(["git", "-C", str(root), "rev-parse", "HEAD"]) if root else None
    if not commit:
        return None, None
    changed = _output(["git", "-C", str(root), "status", "--porcelain", "--untracked-files=no"])
    return commit.strip(), bool(changed and changed.strip())


def source_hash(chapter: str, chosen: Iterable[str] = ()) -> str:
    """Sixteen hexadecimal digits of the library's source that a chapter's numbers depend on.

    What the chapter's arm imports, directly or through others, as far as it stands in the rooms up to ``train``;
    not tables, figures and the command line.

    Args:
        chapter: such as ``sde2``.
        chosen: further modules, which parameters choose by name, such as ``tasks.digits``.
    """
    digest = hashlib.sha256()
    roots = ["one_arm", f"arms_{chapter}", *chosen, *STARTED]
    files = [path for path in _closure(roots) if path.is_file()]
    files += sorted((places.PACKAGE / "train").rglob("SHA256"))
    for path in files:
        name = path.relative_to(places.PACKAGE).as_posix()
        digest.update(f"{name}\n".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


def _closure(roots: Iterable[str]) -> list[Path]:
    """The files of modules of the package and of all that they import from the rooms that decide numbers."""
    waiting, seen = list(roots), {}
    while waiting:
        name = waiting.pop()
        path = places.PACKAGE.joinpath(*name.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in seen or name in ESTIMATES or not path.is_file():
            continue
        seen[name] = path
        waiting += [other for other in _imports(path) if other.split(".")[0] in DECIDING]
    return [seen[name] for name in sorted(seen)]


def _imports(path: Path) -> Iterable[str]:
    """Names of the package's own modules that a file imports, also inside functions, without ``explorl.``."""
    own = f"{places.PACKAGE.name}."
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and f"{node.module}.".startswith(own):
            module = f"{node.module}."
            for name in (module, *(f"{module}{alias.name}." for alias in node.names)):
                yield name.removeprefix(own).rstrip(".")
        elif isinstance(node, ast.Import):
            yield from (alias.name.removeprefix(own) for alias in node.names if alias.name.startswith(own))


def notebook_hash(path: Path) -> str:
    """Sixteen hexadecimal digits of a notebook's code; prose does not count."""
    import jupytext

    cells = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "code"]
    return hashlib.sha256("\0".join(cells).encode()).hexdigest()[:16]


def joined(*parts: str) -> str:
    """One hash of several."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def peak_memory_mb() -> float:
    """This process's peak resident memory in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _processor() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.processor() or None
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), None)


def _output(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
