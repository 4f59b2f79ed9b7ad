"""Where a number came from: package versions, hardware, commit, and a hash of all that it depends on."""

from __future__ import annotations

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
CHAPTERS = ("sde2", "rose", "imagine", "empo")
ROOMS = ("text", "tasks", "papers", "train")


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


def source_hash(chapter: str) -> str:
    """Sixteen hexadecimal digits of the library's source that a chapter's numbers depend on.

    The rooms up to ``train`` count, and the arm that joins them; other chapters' papers do not, nor tables,
    figures and the command line.
    """
    others = tuple(name for name in CHAPTERS if name != chapter)
    digest = hashlib.sha256()
    files = [p for room in ROOMS for p in sorted((places.PACKAGE / room).rglob("*"))
             if p.suffix == ".py" or p.name == "SHA256"]
    files += [places.PACKAGE / name for name in (f"arms_{chapter}.py", "encoders.py", "judges.py", "one_arm.py")]
    for path in files:
        name = path.relative_to(places.PACKAGE).as_posix()
        if path.is_file() and not (name.startswith("papers/") and path.stem.startswith(others)):
            digest.update(f"{name}\n".encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[:16]


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
