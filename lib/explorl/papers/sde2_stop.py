"""Two extensions of SD-E² for after training: stop when strategies repeat each other, and let them vote.

The paper speaks of a gate that stops exploration, but its algorithms only reward whole completions; its error
analysis proposes a vote over distinct strategies. Both use the reward's own rule of redundancy here.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase, StoppingCriteria

from explorl.errors import require
from explorl.papers import sde2
from explorl.papers.sde2 import Config, Encode
from explorl.text.strategies import parse

_END = re.compile(r"</strategy\s*>", re.IGNORECASE)
_TAIL_TOKENS = 16  # enough to hold "</strategy>" at one character a token


@dataclass
class _Row:
    """What is known of one completion that is being written."""

    start: int
    vectors: list[np.ndarray] = field(default_factory=list)
    stopped: bool = False


class RedundancyStop(StoppingCriteria):
    """Stops a row once its last ``patience`` strategies were all redundant.

    Each token costs a look at the last few; only a block that has just closed is parsed and encoded. Make a
    new one for each call of ``generate``. A stopped row has no <final_answer>: take its :func:`vote`.

    Args:
        tokenizer: decodes the completion.
        encode: list of texts → (n, d) array.
        prompt_length: tokens of the (padded) prompt.
        config: δ, ``tie_tol`` and the readings of Uniq.
        patience: redundant strategies in a row that stop it, ≥ 1.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        encode: Encode,
        prompt_length: int,
        config: Config = Config(),
        *,
        patience: int = 2,
    ):
        require(patience >= 1, "patience", patience, "a whole number from 1 up")
        self.tokenizer, self.encode, self.config = tokenizer, encode, config
        self.prompt_length, self.patience = prompt_length, patience
        self.rows: list[_Row] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor | None = None, **kwargs) -> torch.Tensor:
        """(B, T) ids of prompt and completion so far → (B,) flags, true where the row stops."""
        if not self.rows:
            self.rows = [_Row(self.prompt_length) for _ in range(len(input_ids))]
        if len(self.rows) != len(input_ids):
            raise ValueError("RedundancyStop follows one batch: make a new one for each call of generate")
        closed = self._closed_blocks(input_ids)
        if closed:
            self._judge(closed)
        return torch.tensor([row.stopped for row in self.rows], dtype=torch.bool, device=input_ids.device)

    def _closed_blocks(self, input_ids: torch.Tensor) -> list[tuple[_Row, str]]:
        """The reasonings of the blocks that the newest token closed, with their rows."""
        now = input_ids.shape[1]
        live = [(i, row) for i, row in enumerate(self.rows) if not row.stopped]
        tails = [input_ids[i, max(row.start, now - _TAIL_TOKENS) :].tolist() for i, row in live]
        found = []
        for (i, row), tail in zip(live, self._decode(tails), strict=True):
            if not _END.search(tail):
                continue
            segment = self._decode([input_ids[i, row.start :].tolist()])[0]
            row.start = now
            found += [(row, reasoning) for reasoning, _ in parse(segment).strategies]
        return found

    def _decode(self, ids: list[list[int]]) -> list[str]:
        return self.tokenizer.batch_decode(ids, skip_special_tokens=True)

    def _judge(self, closed: list[tuple[_Row, str]]) -> None:
        vectors = self.encode([reasoning for _, reasoning in closed])
        for (row, _), vector in zip(closed, vectors, strict=True):
            row.vectors.append(vector)
            redundant = set(range(len(row.vectors))) - set(_kept(np.stack(row.vectors), self.config))
            last = range(len(row.vectors) - self.patience, len(row.vectors))
            row.stopped |= redundant.issuperset(last)


@dataclass(frozen=True)
class Vote:
    """Outcome of a vote.

    Attributes:
        answer: the winning outcome as first written; the completion's final answer if no strategy could vote.
        votes: votes by canonical outcome, printed.
        source: "VOTE", or where the final answer came from ("FA", "ANS", "NONE").
    """

    answer: str
    votes: dict[str, int]
    source: str


def vote(completion: str, encode: Encode, config: Config = Config(), *, distinct: bool = True) -> Vote:
    """Let the strategies of one completion vote with their outcomes.

    Args:
        completion: one text; never raises on it.
        encode: list of texts → (n, d) array.
        config: δ and the readings.
        distinct: only non-redundant strategies vote, so that repeating one does not count. False: all do.

    Returns:
        The winner. In a tie the written final answer wins if it takes part, else the outcome given first.
    """
    reading = sde2.read(completion, config)
    voters = list(reading.embedded)
    if distinct and voters:
        voters = [voters[i] for i in _kept(np.asarray(encode(reading.reasonings)), config)]
    counts = Counter(reading.outcomes[i] for i in voters if reading.outcomes[i] is not None)
    if not counts:
        return Vote(reading.parsed.final, {}, reading.parsed.source)
    leaders = [outcome for outcome, n in counts.items() if n == max(counts.values())]
    winner = reading.answer if reading.answer in leaders else leaders[0]
    answer = next(reading.parsed.strategies[i][1] for i in voters if reading.outcomes[i] == winner)
    return Vote(answer, {str(outcome[1]): n for outcome, n in counts.items()}, "VOTE")


def _kept(H: np.ndarray, config: Config) -> list[int]:
    return sde2.uniq(
        H,
        config.delta,
        uniq_against=config.uniq_against,
        delta_inclusive=config.delta_inclusive,
        tie_tol=config.tie_tol,
    )
