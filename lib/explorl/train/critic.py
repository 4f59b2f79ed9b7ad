"""PPO's critic: what a completion will be worth, guessed before each of its tokens.

It stands apart from the policy's loss and optimiser: the policy's trainer, TRL's or Unsloth's, never sees it.
Its body is a trained copy of the policy's transformer. With ``body`` = "policy" it has none and reads the policy's
own hidden states, which it cannot change: cheap, but a policy need not know how it will fare.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from explorl.errors import ConfigError
from explorl.train.config import is_integer, is_number

if TYPE_CHECKING:
    import torch

BODIES = ("copy", "policy")


@dataclass(frozen=True)
class CriticConfig:
    """How the critic is made and trained. A wrong value raises ConfigError on construction.

    Attributes:
        body: ``copy``: a copy of the policy's transformer, of which those parameters are trained that the policy
            trains; ``policy``: the policy's own hidden states, without gradient.
        body_lr: learning rate of the body, > 0.
        head_lr: learning rate of the value head, which starts at 0, > 0.
        epochs: passes over each generation batch, ≥ 1.
        rows: completions per optimiser step and per pass through the network, ≥ 1.
        value_clip: ε_v ≥ 0 in units of the reward: how far a guess may move within one batch before its gradient
            ends; None sets no bound.
        max_grad_norm: gradient clipping threshold, > 0.

    >>> CriticConfig(body="none")
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: body = 'none': must be one of copy, policy
    """

    body: str = "copy"
    body_lr: float = 3e-4
    head_lr: float = 1e-3
    epochs: int = 2
    rows: int = 16
    value_clip: float | None = 0.5
    max_grad_norm: float = 1.0

    def __post_init__(self):
        if self.body not in BODIES:
            raise ConfigError("body", self.body, "one of " + ", ".join(BODIES))
        for name in ("epochs", "rows"):
            if not is_integer(getattr(self, name)) or getattr(self, name) < 1:
                raise ConfigError(name, getattr(self, name), "an integer ≥ 1")
        for name in ("body_lr", "head_lr", "max_grad_norm"):
            if not is_number(getattr(self, name)) or getattr(self, name) <= 0:
                raise ConfigError(name, getattr(self, name), "> 0")
        if self.value_clip is not None and not (is_number(self.value_clip) and self.value_clip >= 0):
            raise ConfigError("value_clip", self.value_clip, "None or ≥ 0")


def value_loss(values: torch.Tensor, old: torch.Tensor, returns: torch.Tensor, mask: torch.Tensor,
               clip: float | None = None) -> torch.Tensor:
    """½·mean over tokens of max((V − R)², (V_clipped − R)²), with V_clipped within ± clip of the old guess.

    Args:
        values, old, returns: (N, T) floats, in units of the reward.
        mask: (N, T), true on the completions' tokens.
        clip: ε_v ≥ 0; None leaves the plain squared error.

    Returns:
        A scalar; 0 where the mask is empty.

    >>> import torch
    >>> one = lambda x: torch.tensor([[x]])
    >>> value_loss(one(0.9), one(0.0), one(1.0), one(True), clip=0.5).item()  # ½·(0.5 − 1)², not ½·(0.9 − 1)²
    0.125
    """
    error = (values - returns) ** 2
    if clip is not None:
        clipped = old + (values - old).clamp(-clip, clip)
        error = error.maximum((clipped - returns) ** 2)
    return 0.5 * (error * mask).sum() / mask.sum().clamp(min=1)


class Critic:
    """A value for every token, and what it takes to learn it.

    Args:
        policy_model: a Transformers causal language model, with or without an adapter.
        config: the settings.
        seed: of the head and of the order of the rows.
    """

    def __init__(self, policy_model: Any, config: CriticConfig, seed: int = 0):
        import torch

        self.config, self.seed, self.updates = config, seed, 0
        shared = _transformer(policy_model)
        copied = config.body == "copy"
        self.body = copy.deepcopy(shared).eval() if copied else shared
        example = next(shared.parameters())
        width = shared.config.hidden_size
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            head = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh(), torch.nn.Linear(width, 1))
        torch.nn.init.zeros_(head[-1].weight)
        torch.nn.init.zeros_(head[-1].bias)
        self.head = head.to(example.device)
        self.trained = [p for p in self.body.parameters() if p.requires_grad] if copied else []
        groups = [{"params": list(head.parameters()), "lr": config.head_lr}]
        groups += [{"params": self.trained, "lr": config.body_lr}] if self.trained else []
        self.optimizer = torch.optim.AdamW(groups, weight_decay=0.0)

    def values(self, batch: Mapping[str, torch.Tensor]) -> np.ndarray:
        """V of each completion token, from what comes before it: (N, T) float64, meaningless on padding.

        Args:
            batch: ``prompt_ids`` (N, P), ``prompt_mask``, ``completion_ids`` (N, T) and ``completion_mask``.
        """
        import torch

        with torch.no_grad():
            found = [self._guess(batch, rows) for rows in self._passes(len(batch["prompt_ids"]))]
        return torch.cat(found).double().cpu().numpy()

    def learn(self, batch: Mapping[str, torch.Tensor], old: np.ndarray, returns: np.ndarray, mask: np.ndarray
              ) -> float:
        """Train on one generation batch; returns the first epoch's mean loss.

        Args:
            batch: as in :meth:`values`.
            old, returns, mask: (N, T).
        """
        import torch

        like = self.head[0].weight
        old, returns = (like.new_tensor(x) for x in (old, returns))
        mask = torch.as_tensor(mask, device=like.device)
        losses = []
        for _ in range(self.config.epochs):
            order = np.random.default_rng([self.seed, self.updates]).permutation(len(mask))
            self.updates += 1
            for rows in self._passes(len(mask)):
                chosen = torch.as_tensor(order[rows], device=like.device)
                loss = value_loss(self._guess(batch, chosen), old[chosen], returns[chosen], mask[chosen],
                                  self.config.value_clip)
                self._step(loss)
                losses.append(loss.item())
        return float(np.mean(losses[: len(losses) // self.config.epochs]))

    def _step(self, loss: torch.Tensor) -> None:
        import torch

        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        parameters = [*self.head.parameters(), *self.trained]
        torch.nn.utils.clip_grad_norm_(parameters, self.config.max_grad_norm)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _passes(self, count: int) -> Iterator[slice]:
        return (slice(start, start + self.config.rows) for start in range(0, count, self.config.rows))

    def _guess(self, batch: Mapping[str, torch.Tensor], rows: Any) -> torch.Tensor:
        import torch

        ids, mask = (torch.cat([batch[f"prompt_{kind}"][rows], batch[f"completion_{kind}"][rows]], dim=1)
                     for kind in ("ids", "mask"))
        with torch.set_grad_enabled(torch.is_grad_enabled() and bool(self.trained)):
            hidden = self.body(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        length = batch["completion_ids"].shape[1]
        return self.head(hidden[:, -length - 1 : -1].to(self.head[0].weight.dtype)).squeeze(-1)

    def state_dict(self) -> dict[str, Any]:
        """Weights that are trained, the optimiser, and how often the rows were shuffled."""
        return {"head": self.head.state_dict(), "body": [p.detach() for p in self.trained],
                "optimizer": self.optimizer.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on exactly as the critic that gave the state."""
        import torch

        self.head.load_state_dict(state["head"])
        with torch.no_grad():
            for parameter, stored in zip(self.trained, state["body"], strict=True):
                parameter.copy_(stored)
        self.optimizer.load_state_dict(state["optimizer"])
        self.updates = state["updates"]


def _transformer(model: Any) -> Any:
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    return inner.base_model
