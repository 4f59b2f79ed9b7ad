"""EMPO in a picture: from one question, through clusters of meaning, to what each answer is paid."""

from __future__ import annotations

from explorl.report import style
from explorl.report.html import Html
from explorl.report.sketch import Arrow, Box, draw


def clusters_pay() -> Html:
    """Eight answers to one question, sorted by meaning, paid by share, unless all or none agree."""
    boxes = {
        "question": Box(0, 76, 112, 58, ("a question", "no answer key")),
        "sample": Box(152, 76, 142, 58, ("sample 8 answers", "as the policy likes")),
        "half": Box(336, 0, 206, 52, ("1/2 · 0.5 · 1/2 · 50%", "4 of 8"), style.BLUE),
        "two": Box(336, 78, 206, 52, ("2 · 2 · 2", "3 of 8"), style.ORANGE),
        "lone": Box(336, 156, 206, 52, ("1/3", "1 of 8"), style.PINK),
        "pay": Box(596, 68, 168, 74, ("pay the share", "4/8, 3/8 or 1/8", "all or none agree: skip")),
        "group": Box(806, 76, 122, 58, ("compare", "within the group"), style.GREEN),
    }
    arrows = [Arrow("question", "sample"), *(Arrow("sample", name) for name in ("half", "two", "lone")),
              *(Arrow(name, "pay") for name in ("half", "two", "lone")), Arrow("pay", "group")]
    return draw(boxes, arrows, title="What EMPO pays for",
                description="A question without an answer key is answered eight times. The answers are sorted by "
                            "meaning: one half written in three ways, four times; two, three times; one third, once. "
                            "Each is paid the share of its cluster, 4/8, 3/8 or 1/8, unless all or none agree, and "
                            "the pay is compared within the group.")
