"""Score anyone's completions: JSON lines in, JSON lines out, in bounded memory; no line can stop the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any

import numpy as np

from explorl import strict_yaml
from explorl.errors import ConfigError

PAPERS = ("sde2", "empo", "imagine")
MAX_LINE_BYTES = 16 * 2**20
"""Longer lines are an error line; no more than this of a line is ever held."""


@dataclass(frozen=True)
class Line:
    """One line of input: a completion to score, or what is wrong with it."""

    number: int
    completion: str = ""
    gold: str = ""
    id: object = None
    error: str = ""
    group: str | int = ""
    prompt: str = ""


def settings(pairs: Sequence[str]) -> dict[str, object]:
    """``name=value`` texts → values, read as in a params file.

    Raises:
        ConfigError: no equals sign, a value that is no plain value, or a name given twice.

    >>> settings(["delta=0.7", "re_mode=any_strategy"])
    {'delta': 0.7, 're_mode': 'any_strategy'}
    """
    values: dict[str, object] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip().isidentifier():
            raise ConfigError("--set", pair, "of the form name=value")
        name = name.strip()
        if name in values:
            raise ConfigError(name, value, "given once")
        values |= strict_yaml.loads(f"{name}: {value}", name=f"--set {name}")
        if isinstance(values[name], str) and strict_yaml.NUMBER_AS_TEXT.fullmatch(values[name]):
            number = strict_yaml.with_point(values[name])
            raise ConfigError(name, values[name], f"written as {number}; YAML reads this as text")
    return values


def scorer(paper: str, values: Mapping[str, object], encode: Callable | None = None
           ) -> Callable[[Sequence[Line]], list[dict]]:
    """A function that scores lines: a row each, or ``{"error": …}`` for one that cannot be scored.

    Args:
        paper: one of :data:`PAPERS`.
        values: settings; see ``scorer`` of :mod:`explorl.score_sde2`, :mod:`explorl.score_empo` and
            :mod:`explorl.score_imagine`.
        encode: for sde2: texts → (n, d) vectors, instead of the encoder that ``values`` names.

    Raises:
        ConfigError: unknown paper, setting or tool, or a value out of range.
    """
    if paper not in PAPERS:
        raise ConfigError("paper", paper, f"one of {', '.join(PAPERS)}")
    if paper == "empo":
        from explorl import score_empo

        return score_empo.scorer(values)
    if paper == "imagine":
        from explorl import score_imagine

        return score_imagine.scorer(values)
    from explorl import score_sde2

    return score_sde2.scorer(values, encode)


def run(paper: str, values: Mapping[str, object], source: IO[bytes], target: IO[str], *, batch: int | None = None
        ) -> int:
    """Score a paper's JSON lines from one stream to another; returns the number of bad lines.

    Args:
        paper: one of :data:`PAPERS`.
        values: settings.
        source, target: as in :func:`score_lines`.
        batch: lines scored together, ≥ 1; None is 32, for IMAGINE 64. EMPO scores group by group and takes none.

    Raises:
        ConfigError: a wrong setting, found before a line is read.
    """
    if batch is not None and batch < 1:
        raise ConfigError("--batch", batch, "a whole number ≥ 1")
    if paper == "empo":
        from explorl import score_empo

        if batch is not None:
            raise ConfigError("--batch", batch, "left out: lines with the same group are scored together")
        return score_empo.score_groups(source, target, score_empo.scorer(values))
    if paper == "imagine":
        from explorl import score_imagine

        return score_imagine.score_windows(source, target, score_imagine.scorer(values),
                                           window=batch or score_imagine.WINDOW)
    return score_lines(source, target, scorer(paper, values), batch=batch or 32)


def score_lines(source: IO[bytes], target: IO[str], score: Callable[[Sequence[Line]], list[dict]], *,
                batch: int = 32) -> int:
    """Read JSON lines ``{"completion": …, "gold": …, "id": …}``, write one JSON line for each, in order.

    Args:
        source: bytes; blank lines are skipped.
        target: text. A good line gives components and reason codes, a bad one ``{"line": …, "error": …}``.
        score: of :func:`scorer`.
        batch: good lines scored (and held) together, ≥ 1.

    Returns:
        The number of bad lines.
    """
    lines, bad = read_lines(source), 0
    while waiting := list(islice(lines, batch)):
        bad += write(waiting, target, score)
    return bad


def read_lines(source: IO[bytes], parse: Callable[[int, bytes], Line] | None = None) -> Iterator[Line]:
    """Input lines, never more than :data:`MAX_LINE_BYTES` of one in memory; ``parse`` is :func:`parse_line`."""
    parse = parse or parse_line
    number = 0
    while raw := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while raw and not raw.endswith(b"\n"):
                raw = source.readline(MAX_LINE_BYTES)
            yield Line(number, error=f"longer than {MAX_LINE_BYTES} bytes")
        elif raw.strip():
            yield parse(number, raw)


def parse_line(number: int, raw: bytes, *, needed: Sequence[str] = ("completion", "gold"),
               optional: Sequence[str] = ()) -> Line:
    """One line's bytes → a line to score, or its error.

    Args:
        number: of the line, from 1.
        raw: the bytes.
        needed: fields that must be there: text, and ``group`` may be a whole number.
        optional: fields that may be missing or null.

    >>> parse_line(7, b'{"completion": "x"}').error
    'gold: missing'
    """
    try:
        row = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return Line(number, error=f"not UTF-8 (byte {error.start + 1})")
    except json.JSONDecodeError as error:
        return Line(number, error=f"not JSON: {error.msg} (column {error.colno})")
    except (ValueError, RecursionError) as error:
        return Line(number, error=f"not JSON that can be read ({type(error).__name__})")
    if not isinstance(row, dict):
        return Line(number, error=f"not a JSON object with {' and '.join(needed)}")
    ident = row.get("id") if isinstance(row.get("id"), (str, int)) else None
    found: dict[str, Any] = {}
    for name in (*needed, *optional):
        if name in optional and row.get(name) is None:
            continue
        if name not in row:
            return Line(number, id=ident, error=f"{name}: missing")
        value = row[name]
        if not isinstance(value, str) and (name != "group" or type(value) is not int):
            kind = "text or a whole number" if name == "group" else "text"
            return Line(number, id=ident, error=f"{name}: must be {kind}, not {type(value).__name__}")
        found[name] = _whole_text(value) if isinstance(value, str) else value
    return Line(number, id=ident, **found)


def write(lines: Sequence[Line], target: IO[str], score: Callable[[Sequence[Line]], list[dict]]) -> int:
    """Write a line's score or error for each; returns the number of errors."""
    good = [line for line in lines if not line.error]
    rows = dict(zip((line.number for line in good), score(good) if good else (), strict=True))
    bad = 0
    for line in lines:
        head: dict[str, Any] = {"line": line.number} | ({} if line.id is None else {"id": line.id})
        row = head | ({"error": line.error} if line.error else rows[line.number])
        bad += "error" in row
        target.write(json.dumps(row) + "\n")
    target.flush()
    return bad


def _whole_text(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can spell and no tokenizer reads."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def plain(value: object) -> object:
    """A value as JSON can say it; None for a number that is not finite."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value.tolist() if isinstance(value, np.ndarray) else value
