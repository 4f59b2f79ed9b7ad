"""From a completion to its strategies and its final answer (SD-E², eq 1-9 and Appendix E).

A completion is asked to look like this, and usually does so only roughly::

    <strategy id="1">
      <reasoning> ... </reasoning>
      <strategy_outcome> ... </strategy_outcome>
    </strategy>
    ...
    <final_answer> ... </final_answer>

:func:`parse` is the one parser: rewards and metrics see the same strategies. It reads the tags once, from
left to right, so its time grows linearly with the text whatever a model (or an attacker) wrote.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from explorl.errors import ConfigError

MAX_CHARS = 150_000
"""Only this many characters of a text are read (about 75,000 tokens of English); the rest is cut off."""

DUP_KEYS = ("block", "reasoning", "id", "none")

# One table instead of Unicode normalisation: NFKC would turn 10² into 102 and ½ into 1⁄2.
PUNCTUATION = {
    **dict.fromkeys("“”„‟«»＂", '"'),
    **dict.fromkeys("‘’‚‛′", "'"),
    **dict.fromkeys("−‐‑‒–﹣－", "-"),
    "—": " - ",  # with spaces: "total—18" holds 18, not -18
    "…": "...",
    **dict.fromkeys("＜﹤", "<"),
    **dict.fromkeys("＞﹥", ">"),
    "／": "/",
    "，": ",",
    "．": ".",
    "\0": " ",
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),  # joiners, byte-order mark, soft hyphen
    # text direction
    **dict.fromkeys("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""),
}
_FENCE = re.compile(r"`{3,}(?:[A-Za-z][\w+-]*(?=\s*(?:\n|\Z)))?")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>strategy_outcome|strategy|reasoning|final_answer|answer)(?=[\s>])"
    r"(?P<attr>[^<>]*)(?P<end>>?)",
    re.IGNORECASE | re.ASCII,
)
_ID = re.compile(r"""\bid\s*=\s*["']?([^\s"'>]*)""", re.IGNORECASE)


@dataclass(frozen=True)
class Parsed:
    """What one completion holds.

    Attributes:
        strategies: the valid (reasoning, outcome) pairs S(a) in the order of the text (eq 3); neither part is
            empty.
        final: the answer f_ans(a) (eq 4, 7); '' if there is none.
        source: where ``final`` came from: ``FA`` (<final_answer>), ``ANS`` (<answer>), ``SO`` (outcome of the
            last strategy) or ``NONE``.
        counts: what was seen and what was dropped: ``opened``, ``unclosed``, ``malformed``, ``duplicated``,
            ``over_limit``, ``final_tags``, ``answer_tags`` (all ≥ 0).
        reason: ``ok`` (at least one strategy), ``no_strategy``, ``empty``, ``too_long`` (the text was cut at
            ``MAX_CHARS`` and its head was parsed) or ``not_text``.
    """

    strategies: list[tuple[str, str]]
    final: str
    source: str
    counts: dict[str, int]
    reason: str


def preprocess(text: str) -> str:
    """Normalise punctuation, delete code fences, collapse whitespace (Appendix E).

    Operators such as ``*`` and ``_`` stay. Applying it twice changes nothing more.

    >>> preprocess("“−3”   …\\n```text\\n10²\\n```")
    '"-3" ... 10²'
    """
    if not text.isascii() or "\0" in text:
        for odd, plain in PUNCTUATION.items():
            text = text.replace(odd, plain)
    return " ".join(_FENCE.sub(" ", text).split())


def parse(text: str, *, max_strategies: int | None = None, dup_key: str = "block") -> Parsed:
    """Read the strategies and the final answer of one completion (eq 2-9).

    A block counts if it is closed before the next block opens and if its first ``<reasoning>`` and its first
    ``<strategy_outcome>`` are not empty (eq 8). Everything else is dropped and counted, so a block cut off by
    the token limit can neither swallow the next one nor lend its outcome to the reward. The final answer is
    the last non-empty ``<final_answer>``, else the last non-empty ``<answer>``, else the outcome of the last
    kept strategy.

    Args:
        text: the completion. Anything but a string is parsed as nothing, with reason ``not_text``.
        max_strategies: keep at most this many strategies, M of eq 5; ``None`` (the paper names no number)
            keeps all.
        dup_key: what makes a later block a duplicate, compared without case: ``block`` (same reasoning and
            outcome), ``reasoning``, ``id`` (same id attribute; a block without one is never a duplicate),
            ``none``.

    Returns:
        A :class:`Parsed`. No text raises.

    Raises:
        ConfigError: on an unknown ``dup_key`` or a ``max_strategies`` below 1.

    >>> block = "<strategy><reasoning>add</reasoning><strategy_outcome>7</strategy_outcome></strategy>"
    >>> parsed = parse(block + " so")
    >>> parsed.strategies, parsed.final, parsed.source
    ([('add', '7')], '7', 'SO')
    """
    _check(max_strategies, dup_key)
    if not isinstance(text, str):
        return Parsed([], "", "NONE", dict(_Reader("").counts), "not_text")
    clean = preprocess(text[:MAX_CHARS])
    reader = _Reader(clean)
    strategies = _unique(reader, dup_key)
    if max_strategies is not None:
        reader.counts["over_limit"] = max(0, len(strategies) - max_strategies)
        strategies = strategies[:max_strategies]
    last_outcome = strategies[-1][1] if strategies else ""
    candidates = {"FA": reader.final, "ANS": reader.answer, "SO": last_outcome}
    source = next((name for name, value in candidates.items() if value), "NONE")
    reason = "ok" if strategies else "no_strategy" if clean else "empty"
    if len(text) > MAX_CHARS:
        reason = "too_long"
    return Parsed(strategies, candidates.get(source, ""), source, reader.counts, reason)


def _check(max_strategies: int | None, dup_key: str) -> None:
    if dup_key not in DUP_KEYS:
        raise ConfigError("dup_key", dup_key, "one of " + ", ".join(DUP_KEYS))
    if max_strategies is None:
        return
    if not isinstance(max_strategies, int) or isinstance(max_strategies, bool) or max_strategies < 1:
        raise ConfigError("max_strategies", max_strategies, "None or a whole number from 1 up")


def _unique(reader: "_Reader", dup_key: str) -> list[tuple[str, str]]:
    """The blocks of ``reader`` without the duplicates, the first of each kind kept."""
    seen: set[object] = set()
    kept = []
    for ident, reasoning, outcome in reader.blocks:
        key = {
            "block": (reasoning.casefold(), outcome.casefold()),
            "reasoning": reasoning.casefold(),
            "id": ident,
            "none": None,
        }[dup_key]
        if key is not None and key in seen:
            reader.counts["duplicated"] += 1
            continue
        seen.add(key)
        kept.append((reasoning, outcome))
    return kept


class _Reader:
    """Walks once over the tags of a preprocessed text and collects blocks, final answer and counts.

    An opener makes an earlier opener of the same name void. That is what a tempered regular expression does
    (``<strategy>((?:(?!<strategy[ >]).)*?)</strategy>``), without its backtracking.
    """

    def __init__(self, text: str):
        self.text = text
        self.blocks: list[tuple[str | None, str, str]] = []
        self.final = self.answer = ""
        keys = ("opened", "unclosed", "malformed", "duplicated", "over_limit", "final_tags", "answer_tags")
        self.counts = dict.fromkeys(keys, 0)
        self._open: dict[str, re.Match[str]] = {}
        self._fields: dict[str, str] = {}
        self._walk(_TAG.finditer(text))

    def _walk(self, tags: Iterable[re.Match[str]]) -> None:
        for tag in tags:
            name = tag["name"].lower()
            if tag["close"]:
                if tag["end"] and not tag["attr"].strip() and name in self._open:
                    self._close(name, self._open.pop(name), tag)
            else:
                self._start(name, tag)
        self.counts["unclosed"] += "strategy" in self._open

    def _start(self, name: str, tag: re.Match[str]) -> None:
        void = self._open.pop(name, None)
        if name == "strategy":
            self.counts["unclosed"] += void is not None
            self._forget_fields()
        if tag["end"]:
            self._open[name] = tag
            self.counts["opened"] += name == "strategy"

    def _close(self, name: str, opener: re.Match[str], tag: re.Match[str]) -> None:
        content = self.text[opener.end() : tag.start()].strip()
        if name == "strategy":
            self._end_block(opener)
        elif name == "final_answer":
            self.counts["final_tags"] += 1
            self.final = content or self.final
        elif name == "answer":
            self.counts["answer_tags"] += 1
            self.answer = content or self.answer
        elif "strategy" in self._open:
            self._fields.setdefault(name, content)

    def _end_block(self, opener: re.Match[str]) -> None:
        reasoning, outcome = self._fields.get("reasoning"), self._fields.get("strategy_outcome")
        if reasoning and outcome:
            ident = _ID.search(opener["attr"])
            self.blocks.append((ident[1].casefold() if ident else None, reasoning, outcome))
        else:
            self.counts["malformed"] += 1
        self._forget_fields()

    def _forget_fields(self) -> None:
        """Fields belong to one block: those of a block that ended, or never will, must not reach the next."""
        self._fields.clear()
        self._open.pop("reasoning", None)
        self._open.pop("strategy_outcome", None)
