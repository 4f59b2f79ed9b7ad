"""IMAGINE in a picture: the advantage as always, and beside it a bonus for what a predictor can't yet foresee."""

from __future__ import annotations

from explorl.report import style
from explorl.report.html import Html
from explorl.report.sketch import Arrow, Box, draw


def curiosity() -> Html:
    """A response goes two ways: it is graded, and it is shown to a fixed and to a learning network."""
    boxes = {
        "response": Box(0, 82, 120, 58, ("a response", "with its question")),
        "grade": Box(168, 0, 152, 56, ("grade it", "right, formed, neither")),
        "compare": Box(368, 0, 152, 56, ("compare", "within the group")),
        "fixed": Box(168, 96, 152, 46, ("a fixed network",), style.ORANGE),
        "learner": Box(168, 168, 152, 46, ("one that imitates it",), style.BLUE),
        "gap": Box(368, 126, 152, 58, ("how far apart?", "little: seen before"), style.GREEN),
        "bonus": Box(568, 118, 168, 74, ("a bonus", "0 if the answer is right", "less with every step"), style.GREEN),
        "add": Box(784, 50, 132, 74, ("add up", "after comparing,", "not before")),
    }
    arrows = [Arrow("response", "grade"), Arrow("response", "fixed"), Arrow("response", "learner"),
              Arrow("grade", "compare"), Arrow("fixed", "gap"), Arrow("learner", "gap"), Arrow("gap", "bonus"),
              Arrow("compare", "add"), Arrow("bonus", "add")]
    return draw(boxes, arrows, title="What IMAGINE adds",
                description="A response is graded and compared within its group, as always. It is also shown to a "
                            "fixed network and to one that learns to imitate it. How far apart the two are says how "
                            "unfamiliar the response is, and becomes a bonus, unless the answer is right, that shrinks "
                            "with every step. It is added after the comparison.")
