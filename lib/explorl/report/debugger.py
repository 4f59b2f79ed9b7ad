"""The reward debugger: one completion, stage by stage, from its text to its advantage in its group.

:func:`stages` is a pure function of a batch and a :class:`~explorl.papers.method.Method`; it never computes a
reward itself but asks the method. A paper that has something to show between text and total adds a
*provider*, as :mod:`explorl.report.debugger_sde2`, :mod:`explorl.report.debugger_empo` and
:mod:`explorl.report.debugger_imagine` do. Two renderers, :func:`to_html` and :func:`to_text`, show any list of stages.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import ConfigError
from explorl.papers.method import Batch, Method
from explorl.report.highlight import Span, spans
from explorl.report.html import MATH_OFF, Html, escape, visible
from explorl.text import answers

SHOWN_CHARS = 4000
"""Most characters of a completion that a renderer shows."""
SHOWN_ROWS = 10
"""Most rows and columns of a matrix."""


@dataclass(frozen=True)
class Stage:
    """One step on the way from text to advantage.

    Attributes:
        name: what is computed.
        input: what goes in, in words.
        value: what comes out: a number, a text, a matrix (2-D array) or a list of :class:`Span`.
        reason: why it is this value; a reason code where there is one.
        equation: where the paper says so; empty outside papers.
    """

    name: str
    input: str
    value: object
    reason: str
    equation: str = ""


Provider = Callable[[Batch, int, Method, Mapping[str, np.ndarray]], list[Stage]]
"""What a paper adds between text and total: ``(batch, index, method, components) -> stages``."""


def _providers() -> dict[str, Provider]:
    from explorl.papers.imagine_config import SOURCES
    from explorl.report import debugger_empo, debugger_imagine, debugger_sde2

    return (dict.fromkeys(("imagine", *(f"imagine_{source}" for source in SOURCES)), debugger_imagine.stages)
            | dict.fromkeys(("sde2", "outcome", "cfl", "cfee"), debugger_sde2.stages)
            | dict.fromkeys(("empo", "empo_log", "vote", "supervised", "random"), debugger_empo.stages))


def provider_of(method: Method) -> Provider:
    """The stages known for a method's name, else its raw components."""
    return _providers().get(method.name, plain_stages)


def stages(batch: Batch, index: int, method: Method, *, provider: Provider | None = None) -> list[Stage]:
    """Everything that happens to completion ``index`` of a batch.

    Args:
        batch: the whole generation batch, since rewards may depend on all of it.
        index: 0 … N−1.
        method: whose reward; its ``components``, ``aggregate`` and ``advantages`` are called once each. One that
            learns from what it sees has ``still()``, a reader that does not, which is asked instead.
        provider: the paper's own stages; by default those known for ``method.name``, else the raw components.

    Returns:
        Stages in order: text, the paper's, total, advantage.

    Raises:
        ConfigError: no such completion.
    """
    if not 0 <= index < len(batch.completions):
        raise ConfigError("index", index, f"between 0 and {len(batch.completions) - 1}")
    method = getattr(method, "still", lambda: method)()
    components = method.components(batch)
    total = np.asarray(method.aggregate(components, batch), dtype=np.float64)
    advantages = method.advantages(total, components, batch)
    first = index - index % batch.group_size
    group = total[first:first + batch.group_size]
    weight = float(np.mean(advantages.values[index]))
    kept = advantages.keep is None or bool(advantages.keep[index])
    inside = provider or provider_of(method)
    text, dup_key = batch.completions[index], getattr(getattr(method, "config", None), "dup_key", "block")
    return [
        Stage("text", f"completion {index % batch.group_size + 1} of {batch.group_size}",
              spans(text, dup_key=dup_key), f"{len(text):,} characters" if text else "empty"),
        *inside(batch, index, method, components),
        Stage("total", "the components, put together", float(total[index]),
              f"group: {', '.join(f'{value:.3f}' for value in group)}"),
        Stage("advantage", f"total in its group: mean {group.mean():.3f}, deviation {group.std():.3f}",
              weight, _advantage_reason(weight, kept, np.ptp(group) == 0 and not weight)),
    ]


def plain_stages(batch: Batch, index: int, method: Method, components: Mapping[str, np.ndarray]
                 ) -> list[Stage]:
    """The stages of a method that nobody has described: its components as they are."""
    answer, source = answers.extract(batch.completions[index])
    return [Stage("answer", "the text", answer, source),
            *(Stage(name, "the completion", float(values[index]), "raw component")
              for name, values in components.items() if np.issubdtype(np.asarray(values).dtype, np.number))]


def _advantage_reason(weight: float, kept: bool, flat: bool) -> str:
    if not kept:
        return "left out: no gradient"
    if flat:
        return "no contrast in the group: no gradient"
    return "made more likely" if weight > 0 else "made less likely" if weight < 0 else "left as it is"


def value_text(value: object) -> str:
    """A stage's value in one line, or a few for a matrix.

    >>> value_text(0.5), value_text(True), value_text("")
    ('0.500', 'yes', '(none)')
    """
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, np.ndarray):
        return _matrix_text(np.atleast_2d(value))
    if isinstance(value, (float, np.floating)):
        return f"{value:.3f}"
    if isinstance(value, list):
        return "".join(f"⟦{s.text}⟧" if s.kind == "dropped" else s.text for s in value) or "(empty)"
    return visible(str(value), SHOWN_CHARS) or "(none)"


def _matrix_text(matrix: np.ndarray) -> str:
    lines = ["  ".join(f"{x:.2f}" for x in row[:SHOWN_ROWS]) for row in matrix[:SHOWN_ROWS]]
    if max(matrix.shape) > SHOWN_ROWS:
        lines.append(f"… ({matrix.shape[0]} × {matrix.shape[1]})")
    return "\n".join(lines) or "(none)"


def to_text(shown: Sequence[Stage], *, width: int = 100) -> str:
    """The stages for a terminal: name and value, and below them why. Dropped text stands in ⟦ ⟧."""
    lines = []
    for stage in shown:
        if isinstance(stage.value, list):
            body = visible(value_text(stage.value), SHOWN_CHARS)
            lines += [f"{stage.name}: {stage.reason}", textwrap.indent(body, "  | ", lambda line: True)]
            continue
        value = value_text(stage.value)
        head = f"{stage.name:<22} " + (value if "\n" not in value else "\n" + textwrap.indent(value, "  | "))
        why = " · ".join(visible(part) for part in (stage.input, stage.reason, stage.equation) if part)
        lines += [head, textwrap.fill(why, width, initial_indent="    ", subsequent_indent="    ")]
    return "\n".join(lines)


_CSS = """
.explorl-debugger{max-width:100%;overflow-x:auto;color:inherit}
.explorl-debugger table{border-collapse:collapse;width:100%;color:inherit}
.explorl-debugger th,.explorl-debugger td{text-align:left;vertical-align:top;padding:.3em .6em;
border-bottom:1px solid rgba(128,128,128,.35)}
.explorl-debugger td.v{font-variant-numeric:tabular-nums;font-weight:600;white-space:pre-wrap;
overflow-wrap:anywhere}
.explorl-debugger td.m{white-space:pre}
.explorl-debugger td.w{opacity:.85}
.explorl-debugger pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:0;padding:.5em;background:none;
color:inherit;border:1px solid rgba(128,128,128,.35);unicode-bidi:isolate;font-weight:400}
.explorl-debugger .tag{opacity:.55}
.explorl-debugger .reasoning{background:rgba(43,131,186,.22)}
.explorl-debugger .outcome{background:rgba(224,138,0,.32)}
.explorl-debugger .final{background:rgba(0,158,115,.32)}
.explorl-debugger .dropped{text-decoration:line-through;opacity:.6}
.explorl-debugger .key span{padding:0 .4em;margin-right:.6em}
"""
_KEY = "".join(f'<span class="{kind}">{kind}</span>' for kind in ("reasoning", "outcome", "final", "dropped"))


def to_html(shown: Sequence[Stage], *, title: str = "") -> Html:
    """The stages as one self-contained block of HTML: no script, nothing loaded, model text escaped.

    It takes text colour and background from the page, so that it suits light and dark ones, and is closed to
    MathJax.
    """
    rows = "".join(_row(stage) for stage in shown)
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return Html(f'<div class="explorl-debugger {MATH_OFF}"><style>{_CSS}</style><div class="key">{_KEY}</div>'
                f'<table class="dataframe table">{caption}<thead><tr><th>stage</th><th>what goes in</th>'
                f"<th>value</th><th>why</th></tr></thead><tbody>{rows}</tbody></table></div>")


def _row(stage: Stage) -> str:
    why = " · ".join(part for part in (stage.reason, stage.equation) if part)
    if isinstance(stage.value, list):
        return (f"<tr><th>{escape(stage.name)}</th><td colspan=\"3\">{escape(stage.input)}, {escape(why)}"
                f"<pre>{_painted(stage.value)}</pre></td></tr>")
    kind = "v m" if isinstance(stage.value, np.ndarray) else "v"
    return (f"<tr><th>{escape(stage.name)}</th><td>{escape(stage.input, SHOWN_CHARS)}</td>"
            f'<td class="{kind}">{escape(value_text(stage.value))}</td>'
            f'<td class="w">{escape(why, SHOWN_CHARS)}</td></tr>')


def _painted(value: Sequence[Span]) -> str:
    """Spans as HTML, up to SHOWN_CHARS of them all together."""
    parts, room = [], SHOWN_CHARS
    for span in value:
        if room > 0:
            parts.append(f'<span class="{escape(span.kind)}">{escape(span.text[:room])}</span>')
        room -= len(span.text)
    return "".join(parts) + (f"… ({-room:,} more characters)" if room < 0 else "") or "(empty)"
