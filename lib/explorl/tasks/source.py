"""Where the rows of a data set come from: a local file, or the Hugging Face hub at a pinned revision."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorl.errors import ConfigError

if TYPE_CHECKING:
    import datasets

Row = dict[str, object]


@dataclass(frozen=True)
class Source:
    """One table of rows.

    Attributes:
        task: the name in params files and in ``python -m explorl fetch``.
        file: the local file's name, JSON lines with the hub's field names.
        hub: data set id on the hub.
        revision: the commit on the hub that is read.
        split: the hub's split.
        config: the hub's configuration, or None.
        gated: the hub asks for an account and for consent to the authors' conditions.
    """

    task: str
    file: str
    hub: str
    revision: str
    split: str
    config: str | None = None
    gated: bool = False


def rows(source: Source, data_dir: str | os.PathLike | None = None) -> list[Row]:
    """The rows of a source, in their published order.

    A ``data_dir`` must hold the file. Without one, the folder named by the environment variable
    ``EXPLORL_DATA`` is tried, then the hub (its cache first).

    Raises:
        ConfigError: the file is not there, a line is no JSON object (with its number), or the hub cannot
            be reached and holds no cached copy.
    """
    return list(each(source, data_dir))


def each(source: Source, data_dir: str | os.PathLike | None = None) -> Iterator[Row]:
    """As :func:`rows`, one at a time: for tables that are larger than memory."""
    folder = data_dir or os.environ.get("EXPLORL_DATA")
    if folder:
        path = Path(folder) / source.file
        if path.is_file():
            yield from read_jsonl(path)
            return
        if data_dir:
            raise ConfigError("data_dir", str(data_dir), f"a folder that holds {source.file}")
    for row in table(source):
        yield dict(row)


def read_jsonl(path: Path) -> Iterator[Row]:
    """The JSON objects of a file, one a line; blank lines are skipped.

    Raises:
        ConfigError: a line is not a JSON object; the message has the file's name and the line's number.
    """
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                where = f"{path.name}, row {number}"
                raise ConfigError(where, line[:40], f"a JSON object ({error.msg})") from error
            if not isinstance(row, dict):
                raise ConfigError(f"{path.name}, row {number}", line[:40], "a JSON object")
            yield row


def table(source: Source) -> datasets.Dataset:
    """A table as the hub serves it at its revision, downloaded once and cached.

    Raises:
        ConfigError: neither the hub nor a cached copy could be read; says how to get one.
    """
    import datasets

    try:
        return datasets.load_dataset(source.hub, source.config, split=source.split, revision=source.revision)
    except (OSError, ValueError, RuntimeError) as error:
        consent = " (after accepting its conditions on huggingface.co and `hf auth login`)" if source.gated else ""
        raise ConfigError(
            "task", source.task,
            f"available: {source.hub} could not be read ({type(error).__name__}). With a network, run "
            f"`python -m explorl fetch {source.task}`{consent}; without one, point EXPLORL_DATA at a folder "
            f"that holds {source.file}",
        ) from error


def text_field(row: Row, names: Sequence[str], where: str) -> str:
    """The first of ``names`` that the row has, as text without spaces around it.

    Raises:
        ConfigError: the row has none of them, or it is empty.

    >>> text_field({"answer": 42}, ("Answer", "answer"), "x, row 1")
    '42'
    """
    for name in names:
        value = row.get(name)
        if value is not None and str(value).strip():
            return str(value).strip()
    raise ConfigError(f"{where}, {names[0]}", None, "a value that is not empty")
