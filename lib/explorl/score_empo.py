"""Scoring lines as EMPO does: consecutive lines with the same ``group`` are one group, scored together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import IO

import numpy as np

from explorl.errors import ConfigError
from explorl.papers import empo
from explorl.score import Line, parse_line, plain, read_lines, write

MAX_GROUP = 256
"""Lines of a group, broken ones among them included; a larger group is not scored."""
REMEMBERED = 100_000
"""Groups, the latest ones, that are recognised when they come back."""
MAX_GROUP_CHARS = 16 * 2**20
"""Characters of answers, references and prompts that may wait for the end of their group."""


@dataclass(frozen=True)
class Answered(Line):
    """A line whose completion has been read: the answer is kept, the completion is not."""

    answer: str = ""


@dataclass(frozen=True)
class Scorer:
    """Scores the good lines of one group; see :func:`scorer`."""

    config: empo.Config
    equal: empo.Equal

    def read(self, number: int, raw: bytes) -> Answered:
        """One line's bytes → its answer, or its error. Needs ``completion`` and ``group``."""
        line = parse_line(number, raw, needed=("completion", "group"), optional=("gold", "prompt"))
        known = {field.name: getattr(line, field.name) for field in fields(Line)}
        return Answered(**known | {"completion": ""}, answer=empo.read(line.completion, self.config))

    def __call__(self, lines: Sequence[Answered]) -> list[dict]:
        """A row for each line of one group: components, advantage, reason codes."""
        if not lines:
            return []
        equal = empo.about(self.equal, next((line.prompt for line in lines if line.prompt), ""))
        found = empo.cluster([line.answer for line in lines], equal, self.config)
        code = empo.gate(found, self.config)
        paid = np.where(code == empo.KEPT, empo.reward(found, self.config), 0.0)
        table = {"reward": paid, "advantage": empo.normalise(paid, len(lines), self.config)} | empo.columns([found])
        same, rows = empo.of_group(equal), []
        for i, line in enumerate(lines):
            row = {name: plain(column[i]) for name, column in table.items()}
            row |= {"cluster": found.ids[i], "n_clusters": found.n_clusters, "kept": float(code == empo.KEPT)}
            if line.gold.strip():
                row["oc"] = float(not found.blank[i] and bool(same(line.gold.strip(), line.answer)))
            rows.append({"group": line.group, "answer": line.answer} | row
                        | {"reason": found.reasons[i], "gate": code})
        return rows


def scorer(values: Mapping[str, object]) -> Scorer:
    """What scores a group.

    Args:
        values: fields of :class:`explorl.papers.empo.Config`, and ``equality``: a name of
            :data:`explorl.judges.NAMES`, default math. It also compares with the reference, where a line has one.

    Raises:
        ConfigError: unknown setting or equality, or a value out of range.
    """
    from explorl import judges

    values = dict(values)
    name = values.pop("equality", "math")
    known = [field.name for field in fields(empo.Config)]
    for unknown in set(values) - set(known):
        raise ConfigError(unknown, values[unknown], f"a setting: {', '.join(known)}, equality")
    config = empo.Config(**values)
    if not isinstance(name, str):
        raise ConfigError("equality", name, f"one of {', '.join(judges.NAMES)}")
    return Scorer(config, judges.load(name))


def score_groups(source: IO[bytes], target: IO[str], score: Scorer) -> int:
    """Read JSON lines ``{"completion": …, "group": …}``, write one JSON line for each, in order.

    ``gold``, ``prompt`` (a judge that reads the question gets the group's first) and ``id`` are optional. A
    broken line gives an error line and does not end its group.

    Args:
        source: bytes; blank lines are skipped.
        target: text.
        score: of :func:`scorer`.

    Returns:
        The number of bad lines.
    """
    return sum(write(group, target, score) for group in groups(read_lines(source, score.read)))


def groups(lines: Iterator[Answered]) -> Iterator[list[Answered]]:
    """Cut lines into groups, in order. Held at a time: one group, up to :data:`MAX_GROUP` lines and about
    MAX_GROUP_CHARS of text. The lines of a larger group, and of one that comes back, become error lines."""
    waiting: list[Answered] = []
    group, held, problem = None, 0, ""
    seen: dict[object, None] = {}
    for line in lines:
        if not line.error and (group is None or line.group != group):
            if waiting and group is not None:
                yield waiting
                waiting, held = [], 0
            group = line.group
            problem = "group: came before; its lines must follow one another" if group in seen else ""
            seen[group] = None
            if len(seen) > REMEMBERED:
                del seen[next(iter(seen))]
        waiting.append(_with_error(line, problem))
        held += sum(len(str(part)) for part in (line.answer, line.gold, line.prompt, line.id, line.group))
        if not problem and (len(waiting) > MAX_GROUP or held > MAX_GROUP_CHARS):
            problem = f"group: more than {MAX_GROUP} lines, or too long"
        if problem:
            yield [_with_error(one, problem) for one in waiting]
            waiting, held = [], 0
    if waiting:
        yield waiting


def _with_error(line: Answered, problem: str) -> Answered:
    return replace(line, error=problem) if problem and not line.error else line
