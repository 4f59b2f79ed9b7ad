"""Files of a run that may be killed at any moment: whole or absent, and never another run's.

A run's folder holds ``inputs.json`` (what the run is, and its hash), ``curve.jsonl`` (one row per step),
``checkpoint-<step>/`` (valid once it holds ``DONE.json``), and in the end ``result.json``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from explorl.errors import ConfigError

DONE = "DONE.json"


def fingerprint(value: Any) -> str:
    """SHA-256 of the canonical JSON of a value, as 64 hex digits.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})
    True
    """
    canonical = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def describe(value: Any) -> Any:
    """What identifies a value, as JSON: settings in full, ``describe()`` where it exists, code by its name.

    >>> describe({"encode": len, "delta": 0.9})
    {'encode': 'len', 'delta': 0.9}
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if callable(getattr(value, "describe", None)):
        return value.describe()
    if is_dataclass(value) and not isinstance(value, type):
        return describe(asdict(value))
    return getattr(value, "__qualname__", type(value).__qualname__)


def describe_method(method: Any) -> dict[str, Any]:
    """A method's class, name and settings (its attributes; methods inside it likewise), as JSON."""
    if callable(getattr(method, "describe", None)):
        return method.describe()
    nested = {k: describe_method(v) if hasattr(v, "components") and hasattr(v, "aggregate") else describe(v)
              for k, v in vars(method).items()}
    return {"class": type(method).__qualname__, "name": method.name, **nested}


def digest(problems: Sequence[Any]) -> str:
    """A hash of problems in order: prompts, gold answers and meta."""
    return fingerprint([[p.prompt, str(p.gold), describe(p.meta)] for p in problems])


def claim(folder: Path, inputs: dict[str, Any]) -> str:
    """Make the folder this run's own, or confirm that it is.

    Args:
        folder: created where absent.
        inputs: JSON that identifies the run.

    Returns:
        The run's hash.

    Raises:
        ConfigError: the folder belongs to a run with other inputs; says which differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = fingerprint(inputs)
    path = folder / "inputs.json"
    if path.exists():
        owner = read_json(path)
        if owner["hash"] != key:
            differing = ", ".join(differences(owner["inputs"], inputs))
            raise ConfigError("out_dir", str(folder), f"empty, or of the same run (differs: {differing})")
    elif (folder / "curve.jsonl").exists() or list(folder.glob("checkpoint-*")):
        raise ConfigError("out_dir", str(folder), "an empty folder: it holds a run without inputs.json")
    else:
        write_json(path, {"hash": key, "inputs": inputs})
    return key


def differences(old: Any, new: Any, prefix: str = "") -> list[str]:
    """Dotted names of the entries in which two JSON values differ.

    >>> differences({"a": {"b": 1}, "c": 2}, {"a": {"b": 3}, "c": 2})
    ['a.b']
    """
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return [] if old == new else [prefix.rstrip(".")]
    names = sorted({*old, *new})
    pairs = ((old.get(name), new.get(name), f"{prefix}{name}.") for name in names)
    return [found for pair in pairs for found in differences(*pair)]


def write_json(path: Path, value: Any) -> None:
    """Write JSON so that the file is whole or absent, whenever the process ends."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def read_json(path: Path) -> Any:
    """The JSON value in a file."""
    return json.loads(path.read_text(encoding="utf-8"))


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Append one JSON line."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a JSON-lines file; a last line cut short is left out, an absent file has none."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def rewind(folder: Path, complete: Callable[[list[dict[str, Any]], int], bool]) -> Path | None:
    """Bring the folder back to its newest whole checkpoint: later rows and half-written checkpoints go.

    Args:
        folder: the run's.
        complete: ``complete(rows, step)`` says whether the rows up to ``step`` are all there.

    Returns:
        The checkpoint to go on from, or None to start anew.
    """
    rows = read_rows(folder / "curve.jsonl")
    checkpoints = {int(p.name.split("-")[1]): p for p in folder.glob("checkpoint-*")}
    usable = {step: p for step, p in checkpoints.items()
              if (p / DONE).exists() and complete([r for r in rows if r["step"] <= step], step)}
    newest = max(usable, default=None)
    for step, path in checkpoints.items():
        if step not in usable:
            shutil.rmtree(path)
    kept = [row for row in rows if newest is not None and row["step"] <= newest]
    temporary = folder / ".curve.jsonl.tmp"
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in kept]
    temporary.write_text("".join(lines), encoding="utf-8")
    os.replace(temporary, folder / "curve.jsonl")
    return usable.get(newest)
