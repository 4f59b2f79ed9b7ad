"""Novelty of every prefix (eq 3–4): what IMAGINE replaces by one number per response, and what either costs.

Not in the published code. Written to be compared with :class:`~explorl.papers.imagine_novelty.Novelty`, on the same
networks, and to be slow in the same way as the idea is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import require
from explorl.papers.imagine_novelty import Novelty, RunningStd

CHUNK = 512
STD_EPS = 1e-8


@dataclass(frozen=True)
class Costs:
    """Two counters for a batch of responses, each for either variant.

    Attributes:
        inputs_tokens, inputs_sequences: network calls: a state for every prefix, or one for every response.
        positions_tokens, positions_sequences: tokens that those calls read, each prefix read anew.
    """

    inputs_tokens: int
    inputs_sequences: int
    positions_tokens: int
    positions_sequences: int


def costs(lengths: Sequence[int]) -> Costs:
    """What novelty of every prefix costs, and what novelty of whole responses does.

    Linear in the number of responses; the positions are quadratic in a response's length.

    >>> costs([253, 416, 515, 549, 701])
    Costs(inputs_tokens=2434, inputs_sequences=5, positions_tokens=648763, positions_sequences=2434)
    """
    lengths = [int(length) for length in lengths]
    tokens = sum(lengths)
    return Costs(tokens, len(lengths), sum(n * (n + 1) // 2 for n in lengths), tokens)


def states_per_prefix(lengths: Sequence[int]) -> np.ndarray:
    """How many responses still run at prefix length t = 1 … max length (Fig. 4): (max length,) whole numbers.

    >>> states_per_prefix([2, 4, 4]).tolist()
    [3, 3, 2, 2]
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    return (lengths[None, :] >= np.arange(1, lengths.max(initial=0) + 1)[:, None]).sum(axis=1)


class TokenNovelty:
    """Eq 3–4 on a :class:`Novelty`'s networks: the squared gap of each prefix, over its running deviation.

    A state is the row with the positions after the prefix empty. States go through the network in shuffled chunks,
    so that batch normalisation does not see one response's prefixes alone.

    Args:
        novelty: its networks and optimiser are used, and its n advances.
        chunk: states at a time, ≥ 2.

    >>> from explorl.papers.imagine import Config, layout
    >>> sizes = Config(max_prompt_tokens=0, max_completion_tokens=3)
    >>> found = TokenNovelty(Novelty(10, sizes)).errors(*layout([[], []], [[1, 2, 3], [4]], sizes))
    >>> [len(row) for row in found]
    [3, 1]
    """

    def __init__(self, novelty: Novelty, chunk: int = CHUNK):
        require(isinstance(chunk, int) and chunk >= 2, "chunk", chunk, "a whole number from 2 up")
        self.novelty, self.chunk, self.running = novelty, chunk, RunningStd()

    def errors(self, ids: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
        """Squared gap of every prefix: N arrays of (L_i,). Changes nothing."""
        import torch

        with torch.no_grad():
            return self._walk(ids, mask, learn=False)[0]

    def observe(self, ids: np.ndarray, mask: np.ndarray) -> tuple[list[np.ndarray], float]:
        """Bonuses (eq 4), and the loss (eq 3) before the one step of the predictor that is taken on it.

        Returns:
            N arrays of (L_i,): squared gaps over the deviation of all of them so far, these included; and the
            mean gap.
        """
        found, loss = self._walk(ids, mask, learn=True)
        self.running.add(np.concatenate(found) if found else [])
        return [row / (self.running.std + STD_EPS) for row in found], loss

    def _walk(self, ids: np.ndarray, mask: np.ndarray, learn: bool) -> tuple[list[np.ndarray], float]:
        import torch

        begin = self.novelty.config.max_prompt_tokens
        ids, mask = np.asarray(ids, dtype=np.int64), np.asarray(mask, dtype=bool)
        lengths = mask[:, begin:].sum(axis=1)
        owner, ends = np.repeat(np.arange(len(ids)), lengths), begin + _counted(lengths)
        gaps = np.zeros(len(owner))
        optimizer = self.novelty.optimizer
        optimizer.zero_grad(set_to_none=True)
        for part in self._chunks(len(owner)):
            upto = np.arange(ids.shape[1]) < ends[part, None]
            rows = torch.from_numpy(ids[owner[part]]), torch.from_numpy(mask[owner[part]] & upto)
            found = self.novelty.network(*rows)
            gaps[part] = found.detach().double().numpy()
            if learn:
                (found.sum() / len(owner)).backward()
        if learn:
            self.novelty.calls += 1
            optimizer.step()
        return np.split(gaps, np.cumsum(lengths))[: len(ids)], float(gaps.mean()) if gaps.size else 0.0

    def _chunks(self, states: int) -> list[np.ndarray]:
        order = np.random.default_rng(self.novelty.config.seed).permutation(states)
        return np.array_split(order, -(-states // self.chunk)) if states else []


def _counted(lengths: np.ndarray) -> np.ndarray:
    """1 … L_i for each i, one after the other."""
    return np.concatenate([np.arange(1, n + 1) for n in lengths.tolist()] or [np.zeros(0, dtype=np.int64)])
