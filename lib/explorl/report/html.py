"""Text that a notebook shows as HTML, and how text from a model becomes safe to show."""

from __future__ import annotations

import html
import unicodedata

_VISIBLE = {code: chr(0x2400 + code) for code in range(32) if chr(code) not in "\t\n"} | {127: "\u2421"}
MATH_OFF = "tex2jax_ignore mathjax_ignore"
"""Classes that keep MathJax away: a dollar sign in a completion is not a formula."""


class Html(str):
    """A string that Jupyter displays as HTML.

    >>> Html("<b>x</b>")._repr_html_()
    '<b>x</b>'
    """

    def _repr_html_(self) -> str:
        return str(self)


def visible(text: str, limit: int | None = None) -> str:
    """Make hostile text showable: control characters as symbols, invisible ones as code points.

    Args:
        text: anything a model wrote.
        limit: most characters to keep; the rest is counted, not shown. None keeps all.

    >>> visible("a" + chr(0) + chr(0x202E) + "b")
    'a␀⟨U+202E⟩b'
    """
    cut = text if limit is None or len(text) <= limit else text[:limit]
    shown = "".join(f"⟨U+{ord(c):04X}⟩" if unicodedata.category(c) in ("Cf", "Cs", "Co") else c
                    for c in cut.replace("\r\n", "\n").translate(_VISIBLE))
    return shown if len(cut) == len(text) else f"{shown}… ({len(text) - len(cut):,} more characters)"


def escape(text: str, limit: int | None = None) -> str:
    """:func:`visible`, then HTML-escaped (quotes too, so that it is safe inside an attribute).

    >>> escape("<script>")
    '&lt;script&gt;'
    """
    return html.escape(visible(text, limit), quote=True)
