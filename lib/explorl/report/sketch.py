"""Box-and-arrow pictures as self-contained SVG, drawn with a slightly unsteady hand.

The lines take the page's text colour, so that the pictures suit light and dark pages; nothing is loaded, and
no script runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import ConfigError
from explorl.report import style
from explorl.report.html import Html, escape


@dataclass(frozen=True)
class Box:
    """A box with centred lines of text; the first line is bold.

    Attributes:
        x, y: upper left corner in user units (about pixels).
        width, height: size in user units.
        lines: what to write in it.
        colour: of outline and tint; empty for the text colour.
        plain: true for text without a box.
    """

    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    colour: str = ""
    plain: bool = False


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another, from border to border.

    Attributes:
        start, end: names of boxes.
        label: short text beside its middle.
    """

    start: str
    end: str
    label: str = ""


def draw(boxes: Mapping[str, Box], arrows: Sequence[Arrow], *, title: str, description: str, seed: int = 0
         ) -> Html:
    """The picture as inline SVG.

    Args:
        boxes: name → box.
        arrows: between those names.
        title: short name of the picture, read out by screen readers.
        description: what the picture says, in words.
        seed: of the hand's tremor; the same seed gives the same picture.

    Raises:
        ConfigError: an arrow names a box that is not there.

    >>> "<svg" in draw({"a": Box(0, 0, 80, 40, ("a",))}, [], title="t", description="d")
    True
    """
    rng = np.random.default_rng(seed)
    for arrow in arrows:
        for end in (arrow.start, arrow.end):
            if end not in boxes:
                raise ConfigError("arrows", end, f"one of the boxes {', '.join(boxes)}")
    width = max(b.x + b.width for b in boxes.values()) + 6
    height = max(b.y + b.height for b in boxes.values()) + 6
    parts = [_box(box, rng) for box in boxes.values()]
    parts += [_arrow(boxes[a.start], boxes[a.end], a.label, rng) for a in arrows]
    return Html(f'<svg role="img" aria-label="{escape(title)}: {escape(description)}" '
                f'viewBox="-6 -6 {width + 6:.0f} {height + 6:.0f}" '
                f'style="max-width:{width + 6:.0f}px;width:100%;height:auto;color:inherit" '
                'font-family="inherit" xmlns="http://www.w3.org/2000/svg">'
                f"<title>{escape(title)}</title><desc>{escape(description)}</desc>{''.join(parts)}</svg>")


def _stroke(points: np.ndarray, rng: np.random.Generator, wobble: float = 1.1) -> str:
    """Path data through the points, each segment bent a little."""
    path = "M{:.1f} {:.1f}".format(*(points[0] + rng.normal(0, wobble / 2, 2)))
    for a, b in zip(points[:-1], points[1:]):
        bend, end = (a + b) / 2 + rng.normal(0, wobble, 2), b + rng.normal(0, wobble / 2, 2)
        path += " Q{:.1f} {:.1f} {:.1f} {:.1f}".format(*bend, *end)
    return path


def _box(box: Box, rng: np.random.Generator) -> str:
    paint = box.colour or "currentColor"
    x, y, w, h = box.x, box.y, box.width, box.height
    outline = ""
    if not box.plain:
        corners = np.array([(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)], dtype=float)
        outline = (f'<path d="{_stroke(corners, rng)}" fill="{paint}" fill-opacity="0.10" stroke="{paint}" '
                   f'stroke-width="1.8"/><path d="{_stroke(corners, rng)}" fill="none" stroke="{paint}" '
                   'stroke-width="0.9" stroke-opacity="0.55"/>')
    top = y + h / 2 - 9.0 * (len(box.lines) - 1)
    text = "".join(
        f'<text x="{x + w / 2:.1f}" y="{top + 18 * i:.1f}" text-anchor="middle" dominant-baseline="central" '
        f'fill="currentColor" font-size="{14 if i == 0 else 13}" font-weight="{600 if i == 0 else 400}">'
        f"{escape(line)}</text>" for i, line in enumerate(box.lines))
    return outline + text


def _arrow(start: Box, end: Box, label: str, rng: np.random.Generator) -> str:
    a, b = _ends(start, end)
    along = (b - a) / max(float(np.hypot(*(b - a))), 1e-9)
    across = np.array([-along[1], along[0]])
    head = np.array([b - 9 * along + 5 * across, b, b - 9 * along - 5 * across])
    side = across if across[1] <= 0 else -across
    x, y = (a + b) / 2 + 15 * side
    text = "" if not label else (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" dominant-baseline="central" fill="currentColor" '
        f'font-size="13" font-style="italic">{escape(label)}</text>')
    line = 'fill="none" stroke="currentColor" stroke-width="1.6"/>'
    shaft = f'<path d="{_stroke(np.array([a, b]), rng)}" {line}'
    return f'{shaft}<path d="{_stroke(head, rng, 0.5)}" {line}{text}'


def _ends(start: Box, end: Box) -> tuple[np.ndarray, np.ndarray]:
    """Where an arrow leaves and arrives: sideways between columns, else up or down, on the shared stretch."""
    if start.x + start.width <= end.x or end.x + end.width <= start.x:
        forward = start.x < end.x
        a = (start.x + start.width + 4 if forward else start.x - 4, start.y + start.height / 2)
        b = (end.x - 5 if forward else end.x + end.width + 5, end.y + end.height / 2)
    else:
        x = (max(start.x, end.x) + min(start.x + start.width, end.x + end.width)) / 2
        down = start.y < end.y
        a = (x, start.y + start.height + 4 if down else start.y - 4)
        b = (x, end.y - 5 if down else end.y + end.height + 5)
    return np.array(a, dtype=float), np.array(b, dtype=float)


def grpo_pipeline() -> Html:
    """The one pipeline of the book, with the three seams at which a paper may differ."""
    boxes = {
        "prompt": Box(0, 0, 90, 56, ("prompt",)),
        "rollout": Box(130, 0, 128, 56, ("rollout", "G completions"), style.ORANGE),
        "reward": Box(298, 0, 128, 56, ("reward", "what each is worth"), style.BLUE),
        "advantage": Box(466, 0, 128, 56, ("advantage", "better than its group"), style.GREEN),
        "update": Box(634, 0, 90, 56, ("update",)),
        "rose": Box(130, 70, 128, 20, ("ROSE",), plain=True),
        "rewards": Box(298, 70, 128, 20, ("SD-E², EMPO",), plain=True),
        "advantages": Box(466, 70, 128, 20, ("IMAGINE, ROSE, EMPO",), plain=True),
    }
    line = ("prompt", "rollout", "reward", "advantage", "update")
    return draw(boxes, [Arrow(a, b) for a, b in zip(line, line[1:])], title="One pipeline, three seams",
                description="A prompt goes through rollout, reward and advantage to the update. ROSE changes "
                            "rollout and advantage; SD-E² changes the reward; EMPO reward and advantage; "
                            "IMAGINE the advantage.")


def reward_anatomy() -> Html:
    """SD-E² in a picture: what is read from a completion, and the two regimes of its exploration pay."""
    boxes = {
        "completion": Box(0, 68, 138, 74, ("one completion", "several attempts", "and a final answer")),
        "right": Box(190, 76, 164, 58, ("is any attempt right?",), style.ORANGE),
        "flat": Box(440, 0, 176, 58, ("a flat bonus", "variety no longer counts"), style.GREEN),
        "novel": Box(440, 152, 176, 58, ("pay for variety", "different ideas × spread"), style.BLUE),
        "sum": Box(676, 60, 132, 90,
                   ("add up", "+ final answer right", "+ an attempt right", "+ good format")),
        "group": Box(858, 76, 122, 58, ("compare", "within the group")),
    }
    arrows = [Arrow("completion", "right"), Arrow("right", "flat", "yes"), Arrow("right", "novel", "no"),
              Arrow("flat", "sum"), Arrow("novel", "sum"), Arrow("sum", "group")]
    return draw(boxes, arrows, title="What SD-E² pays for",
                description="A completion holds several attempts and a final answer. If any attempt is right "
                            "it gets a flat bonus; if none is, it is paid for the number of different ideas "
                            "and how far apart they lie. That is added to the pay for a right final answer, "
                            "a right attempt and good format, and compared within the group.")
