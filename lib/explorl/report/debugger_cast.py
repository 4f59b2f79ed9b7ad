"""The reward debugger on each member of the cast, folded, so that a page shows eight without being long."""

from __future__ import annotations

from collections.abc import Sequence

from explorl.papers.method import Batch, Method
from explorl.report import debugger
from explorl.report.html import Html, escape
from explorl.tasks.cast import CAST, GROUP_SIZE, CastMember


def batch(members: Sequence[CastMember] = CAST, group_size: int = GROUP_SIZE) -> Batch:
    """The cast as one generation batch: two prompts, four completions each.

    >>> batch().group_size, len(batch().completions)
    (4, 8)
    """
    return Batch([m.prompt for m in members], [m.completion for m in members], [m.gold for m in members], group_size)


def folded(method: Method, members: Sequence[CastMember] = CAST, *, opened: str = "") -> Html:
    """Every member's stages, each behind a line that opens on a click; no script.

    Args:
        method: whose reward.
        members: a whole number of groups.
        opened: id of the member that is shown unfolded.
    """
    whole, parts = batch(members), []
    for index, member in enumerate(members):
        shown = debugger.stages(whole, index, method)
        parts.append(f"<details{' open' if member.id == opened else ''}><summary><b>{escape(member.id)}</b> "
                     f"{escape(member.label)}: advantage {shown[-1].value:+.2f}</summary><p>{escape(member.note)}</p>"
                     f"{debugger.to_html(shown)}</details>")
    return Html("".join(parts))
