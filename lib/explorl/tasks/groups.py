"""Groups of real answers: questions, each with several responses that one model really gave.

Two sets. *Qwen2.5-Math*: 60 MATH problems with 8 responses each, published with that model's evaluation code
(``math_qwen_rollouts.jsonl``); read where ``EXPLORL_DATA`` names a folder that holds it. *SmolLM2*: 64 short
questions of our own with 8 responses each by SmolLM2-135M-Instruct, which ship with the package (made by
``python -m explorl.train.sample_groups``; checksum, settings and versions beside the file).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from explorl.errors import ConfigError
from explorl.tasks.source import Row, read_jsonl, text_field

FOLDER = files("explorl.tasks") / "groups_data"
QUESTIONS, PACKAGED = "questions.jsonl", "smollm2.jsonl"
PUBLISHED = "math_qwen_rollouts.jsonl"


@dataclass(frozen=True)
class Group:
    """One question and what a model answered.

    Attributes:
        key: names the question within its set.
        question: what was asked.
        gold: the reference answer; for measuring, never for a reward.
        kind: ``number``, ``fraction``, ``percent``, ``yes_no``, ``name``, or a level of MATH.
        responses: the model's texts, in sampling order, as it wrote them.
        verdicts: the publisher's own right or wrong per response; empty where there are none.
    """

    key: str
    question: str
    gold: str
    kind: str
    responses: tuple[str, ...]
    verdicts: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Groups(Sequence):
    """A set of groups.

    Attributes:
        source: whose answers, and where they come from, in words.
        items: the groups, in the file's order.
    """

    source: str
    items: tuple[Group, ...]

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


def load(data_dir: str | os.PathLike | None = None) -> Groups:
    """The published groups where they are at hand, else the packaged ones.

    Args:
        data_dir: folder that holds the published file; by default the one that ``EXPLORL_DATA`` names.

    Raises:
        ConfigError: a row is malformed, or the packaged file is not the one that was checked in.
    """
    folder = data_dir or os.environ.get("EXPLORL_DATA")
    if folder and (Path(folder) / PUBLISHED).is_file():
        return published(folder)
    return packaged()


def published(folder: str | os.PathLike) -> Groups:
    """Qwen2.5-Math's groups from ``folder``."""
    rows = read_jsonl(Path(folder) / PUBLISHED)
    return Groups("Qwen2.5-Math on MATH (published rollouts)",
                  tuple(_group(row, f"{PUBLISHED}, row {i}") for i, row in enumerate(rows, start=1)))


def packaged() -> Groups:
    """SmolLM2's groups from the package.

    >>> groups = packaged()
    >>> len(groups), len(groups[0].responses)
    (64, 8)
    """
    data = (FOLDER / PACKAGED).read_bytes()
    if hashlib.sha256(data).hexdigest() != made()["sha256"]:
        raise ConfigError(PACKAGED, "changed", "as it was made: reinstall explorl, or make it again with "
                          "`python -m explorl.train.sample_groups`")
    rows = [json.loads(line) for line in data.split(b"\n") if line]
    return Groups("SmolLM2-135M-Instruct on questions of our own (in the package)",
                  tuple(_group(row, f"{PACKAGED}, row {i}") for i, row in enumerate(rows, start=1)))


def made() -> dict:
    """How the packaged groups were made: model, settings, prompt, versions, checksum."""
    return json.loads((FOLDER / PACKAGED.replace(".jsonl", ".json")).read_text(encoding="utf-8"))


def questions() -> list[Row]:
    """Our questions: ``id``, ``question``, ``gold``, ``kind``."""
    return [json.loads(line) for line in (FOLDER / QUESTIONS).read_bytes().split(b"\n") if line]


def _group(row: Row, where: str) -> Group:
    responses, verdicts = row.get("responses"), row.get("score") or []
    if not (isinstance(responses, list) and responses and all(isinstance(text, str) for text in responses)):
        raise ConfigError(f"{where}, responses", type(responses).__name__, "a list of at least one text")
    if len(verdicts) not in (0, len(responses)):
        raise ConfigError(f"{where}, score", f"{len(verdicts)} entries", "one per response, or none")
    return Group(str(row.get("id", where)), text_field(row, ("question",), where), text_field(row, ("gold",), where),
                 str(row.get("kind") or row.get("level") or ""), tuple(responses), tuple(map(bool, verdicts)))
