"""Scoring lines as SD-E² does: every component of each completion, with the reason codes of its parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from explorl import encoders
from explorl.errors import ConfigError
from explorl.papers import sde2
from explorl.score import Line, plain
from explorl.text.answers import canonical
from explorl.text.strategies import parse


def scorer(values: Mapping[str, object], encode: Callable | None = None
           ) -> Callable[[Sequence[Line]], list[dict]]:
    """A function that scores lines: a row each, or ``{"error": …}`` where the reference answer is no answer.

    Args:
        values: fields of :class:`explorl.papers.sde2.Config`, and ``encoder``.
        encode: texts → (n, d) vectors; None loads the encoder that ``values`` names (default minilm).

    Raises:
        ConfigError: unknown setting or encoder, or a value out of range.
    """
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
            rows.append({key: plain(column[i]) for key, column in found.items()}
                        | {"reason": parsed.reason, "source": parsed.source, "counts": dict(parsed.counts)})
        return rows

    return score
