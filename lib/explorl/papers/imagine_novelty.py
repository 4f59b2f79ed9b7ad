"""How unfamiliar is a response? Random network distillation on token ids (eq 5).

A predictor is trained to give what a fixed random target gives. Where the two still differ, the predictor has not
been: the squared gap r is the novelty. Text that was trained on becomes familiar, and so does what resembles it in
the predictor's eyes, which are these: with ``flat_bn`` "this token at this position", with ``pooled`` "these tokens,
in whatever order".
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from explorl.errors import ConfigError, require
from explorl.papers.imagine_config import Config


def layout(prompt_ids: Sequence[Sequence[int]], completion_ids: Sequence[Sequence[int]], config: Config = Config()
           ) -> tuple[np.ndarray, np.ndarray]:
    """Token ids as a rectangle: prompts end, and completions begin, in the same column.

    Args:
        prompt_ids: N lists; [] where a prompt is not looked at.
        completion_ids: N lists.
        config: ``max_prompt_tokens``: the last ones of a prompt count; ``max_completion_tokens``: the first ones.

    Returns:
        ids (N, P) int64, 0 at empty places, and mask (N, P) bool, P = ``config.max_positions``.

    >>> layout([[7], []], [[5, 6], [8]], Config(max_prompt_tokens=2, max_completion_tokens=3))[0].tolist()
    [[0, 7, 5, 6, 0], [0, 0, 8, 0, 0]]
    """
    rows = len(completion_ids)
    require(len(prompt_ids) == rows, "prompt_ids", f"{len(prompt_ids)} entries", f"{rows} entries")
    before, room = config.max_prompt_tokens, config.max_completion_tokens
    ids = np.zeros((rows, before + room), dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=bool)
    for i, (asked, written) in enumerate(zip(prompt_ids, completion_ids, strict=True)):
        asked, written = list(asked)[max(len(asked) - before, 0) :], list(written)[:room]
        here = slice(before - len(asked), before + len(written))
        ids[i, here], mask[i, here] = asked + written, True
    return ids, mask


class RunningStd:
    """Population standard deviation of everything seen (eq 4–5); for teaching, since eq 9 cancels it.

    >>> seen = RunningStd()
    >>> seen.add([1.0, 2.0, 3.0]); round(seen.std, 6)
    0.816497
    >>> seen.add([4.0, 5.0, 6.0]); round(seen.std, 6)
    1.707825
    """

    def __init__(self):
        self.count, self.mean, self.squares = 0, 0.0, 0.0

    def add(self, values: Sequence[float]) -> None:
        """Take in more values."""
        values = np.asarray(values, dtype=np.float64)
        if not values.size:
            return
        total, gap = self.count + values.size, float(values.mean()) - self.mean
        self.squares += float(values.var()) * values.size + gap**2 * self.count * values.size / total
        self.mean += gap * values.size / total
        self.count = total

    @property
    def std(self) -> float:
        """Their deviation; 0 before the first."""
        return (self.squares / self.count) ** 0.5 if self.count else 0.0


class Novelty:
    """The target, the predictor and its optimiser; all on the CPU.

    Args:
        vocab_size: token ids are below it (the size of the model's embedding, or of its tokenizer).
        config: the networks' settings, and ``seed``.

    Attributes:
        calls: n, updates so far.
        running: deviation of all errors that an update has seen.

    Raises:
        ConfigError: a wrong ``vocab_size``.

    Source: ``main_iMENTOR.py:38-73`` of Gaojingtong/IMAGINE at 44d1632. Deviations: identical rows get the same
    number to the last bit; n, weights and optimiser can be saved; weights are seeded.

    >>> novelty = Novelty(10, Config(max_prompt_tokens=0, max_completion_tokens=2))
    >>> ids, mask = layout([[], []], [[1, 2], [3]], novelty.config)
    >>> novelty.update(ids, mask) > float(novelty.errors(ids, mask).mean()), novelty.calls
    (True, 1)
    """

    def __init__(self, vocab_size: int, config: Config = Config()):
        import torch

        from explorl.papers.imagine_network import Twins

        whole = isinstance(vocab_size, int) and not isinstance(vocab_size, bool) and vocab_size >= 1
        require(whole, "vocab_size", vocab_size, "a whole number from 1 up")
        self.vocab_size, self.config = vocab_size, config
        self.network = Twins(vocab_size, config)
        self.optimizer = torch.optim.AdamW(self.network.trained(), lr=config.lr, weight_decay=config.weight_decay)
        self.calls, self.running = 0, RunningStd()

    def errors(self, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
        """r of each row as the predictor is now: (N, P) ids and mask → (N,) float64 ≥ 0. Changes nothing.

        With ``flat_bn`` a row's number depends on the rows beside it.

        Raises:
            ConfigError: wrong shapes, a token id outside the vocabulary, or a single row with ``flat_bn``.
        """
        import torch

        ids, mask = self._checked(ids, mask)
        if not len(ids):
            return np.zeros(0)
        with torch.no_grad():
            found = self.network(torch.from_numpy(ids), torch.from_numpy(mask))
        return _tied(found.double().numpy(), ids, mask)

    def update(self, ids: np.ndarray, mask: np.ndarray) -> float:
        """One step of the predictor on the mean of r (eq 5); returns that mean, as it was before the step."""
        return self.observe(ids, mask)[1]

    def observe(self, ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, float]:
        """:meth:`errors` and :meth:`update` in one pass: r before the step, and their mean. Counts a call.

        An empty batch counts too, and teaches nothing.
        """
        import torch

        ids, mask = self._checked(ids, mask)
        self.calls += 1
        if not len(ids):
            return np.zeros(0), 0.0
        with torch.enable_grad():
            found = self.network(torch.from_numpy(ids), torch.from_numpy(mask))
            loss = found.mean()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
        self.optimizer.step()
        errors = _tied(found.detach().double().numpy(), ids, mask)
        self.running.add(errors)
        return errors, float(loss.detach())

    def describe(self) -> dict:
        """What identifies it: its settings, not its state."""
        return {"vocab_size": self.vocab_size, "network": type(self.network).__name__}

    def state_dict(self) -> dict:
        """Weights, optimiser, n and the running deviation, as tensors and plain numbers; a copy."""
        running = {name: getattr(self.running, name) for name in ("count", "mean", "squares")}
        return copy.deepcopy({"weights": dict(self.network.state_dict()), "calls": self.calls,
                              "optimizer": self.optimizer.state_dict(), "running": running})

    def load_state_dict(self, state: dict) -> None:
        """Go on as the one that gave the state would have."""
        self.network.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.calls = state["calls"]
        for name, value in state["running"].items():
            setattr(self.running, name, value)

    def _checked(self, ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ids, mask = np.asarray(ids, dtype=np.int64), np.asarray(mask, dtype=bool)
        require(ids.ndim == 2 and ids.shape == mask.shape, "ids", f"shape {ids.shape}, mask {mask.shape}",
                "a rectangle, with a mask of the same shape")
        flat, width = self.config.novelty_input == "flat_bn", self.config.max_positions
        require(not flat or ids.shape[1] == width, "ids", f"{ids.shape[1]} positions", f"of {width} positions")
        require(not flat or len(ids) != 1, "completions", len(ids),
                "at least 2 with novelty_input = 'flat_bn': a row is normalised by the others")
        outside = ids[mask & ((ids < 0) | (ids >= self.vocab_size))]
        if outside.size:
            raise ConfigError("vocab_size", self.vocab_size, f"above every token id; there is {outside[0]}")
        return ids, mask


def _tied(errors: np.ndarray, ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Equal numbers for equal rows: a matrix product may round them differently, and min–max would enlarge that."""
    first: dict[bytes, int] = {}
    seen = np.where(mask, ids, -1)
    return errors[[first.setdefault(row.tobytes(), i) for i, row in enumerate(seen)]]
