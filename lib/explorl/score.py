"""Score anyone's completions: JSON lines in, JSON lines out, in bounded memory; no line can stop the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import IO, Any

import numpy as np

from explorl import strict_yaml
from explorl.errors import ConfigError

PAPERS = ("sde2",)
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
    """A function that scores lines: a row each, or ``{"error": …}`` where the reference answer is no answer.

    Args:
        paper: one of :data:`PAPERS`.
        values: fields of the paper's Config, and ``encoder``.
        encode: texts → (n, d) vectors; None loads the encoder that ``values`` names (default minilm).

    Raises:
        ConfigError: unknown paper, setting or encoder, or a value out of range.
    """
    from explorl import encoders
    from explorl.papers import sde2
    from explorl.text.answers import canonical
    from explorl.text.strategies import parse

    if paper not in PAPERS:
        raise ConfigError("paper", paper, f"one of {', '.join(PAPERS)}")
    values = dict(values)
    name = values.pop("encoder", "minilm")
    known = [field.name for field in fields(sde2.Config)]
    for unknown in set(values) - set(known):
        raise ConfigError(unknown, values[unknown], f"a setting: {', '.join(known)}, encoder")
    config = sde2.Config(**values)
    if config.relevance_floor is not None:
        raise ConfigError("relevance_floor", config.relevance_floor, "null here: the lines hold no prompts")
    encode = encode or encoders.load(str(name))

    def score(lines: Sequence[Line]) -> list[dict]:
        answered = [canonical(line.gold, config.canon, config.num_pick) is not None for line in lines]
        found = iter(scored([line for line, holds in zip(lines, answered, strict=True) if holds]))
        return [next(found) if holds else {"error": "gold: holds no answer"} for holds in answered]

    def scored(lines: Sequence[Line]) -> list[dict]:
        found = sde2.components([x.completion for x in lines], [x.gold for x in lines], encode, config)
        rows = []
        for i, line in enumerate(lines):
            parsed = parse(line.completion, max_strategies=config.max_strategies, dup_key=config.dup_key)
            rows.append({key: _plain(column[i]) for key, column in found.items()}
                        | {"reason": parsed.reason, "source": parsed.source, "counts": dict(parsed.counts)})
        return rows

    return score


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
    bad, waiting = 0, []
    for line in read_lines(source):
        waiting.append(line)
        if len(waiting) >= batch:
            bad += _write(waiting, target, score)
            waiting = []
    return bad + _write(waiting, target, score)


def read_lines(source: IO[bytes]) -> Iterator[Line]:
    """Input lines, never more than :data:`MAX_LINE_BYTES` of one in memory."""
    number = 0
    while raw := source.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            while raw and not raw.endswith(b"\n"):
                raw = source.readline(MAX_LINE_BYTES)
            yield Line(number, error=f"longer than {MAX_LINE_BYTES} bytes")
        elif raw.strip():
            yield parse_line(number, raw)


def parse_line(number: int, raw: bytes) -> Line:
    """One line's bytes → a line to score, or its error.

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
        return Line(number, error="not a JSON object with completion and gold")
    ident = row.get("id") if isinstance(row.get("id"), (str, int)) else None
    for name in ("completion", "gold"):
        if name not in row:
            return Line(number, id=ident, error=f"{name}: missing")
        if not isinstance(row[name], str):
            return Line(number, id=ident, error=f"{name}: must be text, not {type(row[name]).__name__}")
    return Line(number, _whole_text(row["completion"]), _whole_text(row["gold"]), ident)


def _write(lines: Sequence[Line], target: IO[str], score: Callable[[Sequence[Line]], list[dict]]) -> int:
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


def _plain(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value.tolist() if isinstance(value, np.ndarray) else value
