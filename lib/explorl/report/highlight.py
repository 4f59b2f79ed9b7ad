"""Which stretch of a completion is reasoning, outcome, final answer, or dropped: paint for the debugger."""

from __future__ import annotations

import re
from typing import NamedTuple

from explorl.text import strategies


class Span(NamedTuple):
    """A stretch of a completion; ``kind`` is tag, reasoning, outcome, final, dropped or text."""

    kind: str
    text: str


_TAG = re.compile(r"</?(strategy_outcome|strategy|reasoning|final_answer|answer)(?=[\s>/])[^<>]{0,200}>?",
                  re.IGNORECASE)
_KINDS = {"reasoning": "reasoning", "strategy_outcome": "outcome", "final_answer": "final", "answer": "final"}


PAINTED_CHARS = 20_000
"""Characters that are looked at; what follows stays unmarked. Renderers show fewer."""


def spans(text: str, *, dup_key: str = "block") -> list[Span]:
    """Cut a completion into marked stretches; joined, they give the text back.

    What the parser ignored (unclosed, malformed, repeated blocks) is marked as dropped. This only paints; the
    reward reads :func:`explorl.text.strategies.parse`, and so does the painter to know what counted.

    >>> [s.kind for s in spans("so <final_answer>3</final_answer>")]
    ['text', 'tag', 'final', 'tag']
    """
    pieces, blocks = _pieces(text[:PAINTED_CHARS])
    left = list(strategies.parse(text, dup_key=dup_key).strategies)
    for start, end in blocks:
        inside = [(s.kind, strategies.preprocess(s.text)) for s in pieces[start:end]]
        pair = tuple(next((t for kind, t in inside if kind == part), "") for part in ("reasoning", "outcome"))
        if pair in left:
            left.remove(pair)
        else:
            pieces[start:end] = [Span("dropped", s.text) for s in pieces[start:end]]
    return [s for s in [*pieces, Span("text", text[PAINTED_CHARS:])] if s.text]


def _pieces(text: str) -> tuple[list[Span], list[tuple[int, int]]]:
    """Stretches between tags by the tag that opened last, and (start, end) of each strategy block."""
    pieces: list[Span] = []
    blocks: list[tuple[int, int]] = []
    kind, position, opened = "text", 0, None
    for match in _TAG.finditer(text):
        pieces.append(Span(kind, text[position:match.start()]))
        name, closing = match[1].lower(), match[0].startswith("</")
        if name == "strategy" and opened is not None and not closing:
            blocks.append((opened, len(pieces)))
        if name == "strategy" and not closing:
            opened = len(pieces)
        pieces.append(Span("tag", match[0]))
        if name == "strategy" and closing and opened is not None:
            blocks.append((opened, len(pieces)))
            opened = None
        kind, position = "text" if closing else _KINDS.get(name, "text"), match.end()
    pieces.append(Span(kind, text[position:]))
    if opened is not None:
        blocks.append((opened, len(pieces)))
    return pieces, blocks
