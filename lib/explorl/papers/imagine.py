"""IMAGINE (arXiv 2505.17621): pay wrong answers a little for being unfamiliar, after the advantage is formed.

Read it in the order of the chapter:

1. :mod:`~explorl.papers.imagine_config`: the settings, and what each open question of the paper became;
2. :mod:`~explorl.papers.imagine_novelty`: how unfamiliar a response is (eq 5), on the networks of
   :mod:`~explorl.papers.imagine_network`;
3. :mod:`~explorl.papers.imagine_bonus`: from novelty to a bonus (eq 6, 9), and the controls;
4. here: the outcome's advantage (eq 2), the bonus added to it (eq 7), and how a trainer calls it;
5. :mod:`~explorl.papers.ppo`: the same under PPO, with a value for every token;
6. :mod:`~explorl.papers.imagine_tokens`: novelty of every prefix (eq 3–4), and what it costs;
7. :mod:`~explorl.papers.imagine_measures`: what the figures show, and what novelty really follows;
8. :mod:`~explorl.papers.imagine_published`: where the published code gives something else.

Source: Gaojingtong/IMAGINE at 44d1632. Deviations: guards where the published code gives NaN or rounding noise.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from explorl.errors import require
from explorl.papers.imagine_bonus import bonus, decay, scale
from explorl.papers.imagine_config import OFFICIAL, SOURCES, Config
from explorl.papers.imagine_measures import summary
from explorl.papers.imagine_novelty import Novelty, RunningStd, layout
from explorl.papers.method import Advantages, Batch, Method, group_normalise

__all__ = [
    "Config", "OFFICIAL", "SOURCES", "layout", "RunningStd", "Novelty", "scale", "decay", "bonus", "RIGHT",
    "outcome_advantages", "integrate", "Outcome", "IMAGINE",
]

RIGHT = 1.0
"""A score below it is wrong, whatever its credit for the format (eq 6)."""


def outcome_advantages(scores: Sequence[float], group_size: int, config: Config = Config()) -> np.ndarray:
    """A_i = (S_i − mean)/(std + ε) in each group, with the sample standard deviation (eq 2).

    A group of equal scores gives exact zeros. In float32 and with the published ε = 1e-10, eight scores of 0.1
    give −0.92 each: the mean of eight 0.1s is not 0.1.

    Args:
        scores: (N,) group-major.
        group_size: G, a divisor of N.
        config: ``adv_eps``, ``lone``.

    Returns:
        (N,) float64.

    Raises:
        ConfigError: G = 1, unless ``lone`` is ``score``.

    >>> outcome_advantages([1, 0.1, 0.1, 0, 0.1], 5).round(6).tolist()
    [1.77913, -0.384677, -0.384677, -0.6251, -0.384677]
    """
    scores = np.asarray(scores, dtype=np.float64)
    if group_size == 1:
        require(config.lone == "score", "group_size", 1, "at least 2: a lone answer has nothing to compare with")
        return scores.copy()
    return group_normalise(scores, group_size, eps=config.adv_eps, ddof=1)


def integrate(scores: Sequence[float], bonuses: Sequence[float], group_size: int, config: Config = Config()
              ) -> np.ndarray:
    """A_i + R*_i (eq 7), or with ``integration`` = "pre" the advantage of S_i + R*_i.

    After normalisation a bonus only ever raises an advantage. Before it, the group's mean is subtracted again:
    an all-wrong group is stretched to unit variance, and its less novel half is pushed down.

    Args:
        scores, bonuses: (N,) group-major.
        group_size: G, a divisor of N.
        config: ``integration``, and those of :func:`outcome_advantages`.

    Returns:
        (N,) float64; each is the weight of all tokens of its completion.

    >>> after, before = ([0, 0], [0.5, 0.1], 2), ([0, 0], [0.5, 0.1], 2, Config(integration="pre"))
    >>> integrate(*after).tolist(), integrate(*before).round(3).tolist()
    ([0.5, 0.1], [0.707, -0.707])
    """
    scores, bonuses = (np.asarray(x, dtype=np.float64) for x in (scores, bonuses))
    if config.integration == "pre":
        return outcome_advantages(scores + bonuses, group_size, config)
    return outcome_advantages(scores, group_size, config) + bonuses


class Outcome(Method):
    """Plain GRPO with the paper's advantage, on any score (eq 8: 1 right, 0.1 well-formed, 0 neither).

    Args:
        score: ``score(completion, gold, meta) -> float``; ``meta`` is the problem's, {} where there is none.
        config: those of :func:`outcome_advantages`.
    """

    name = "grpo"

    def __init__(self, score: Callable[[str, str, Mapping], float], config: Config = Config()):
        require(callable(score), "score", score, "a function of a completion, its gold and its meta")
        self.score, self.config = score, config

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """(N,) each: ``score``, and ``oc``, 1 where it is right."""
        metas = batch.columns.get("meta") or [{}] * len(batch.completions)
        rows = zip(batch.completions, batch.gold, metas, strict=True)
        scores = np.array([self.score(*row) for row in rows], dtype=np.float64)
        return {"score": scores, "oc": (scores >= RIGHT).astype(np.float64)}

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The score."""
        return np.asarray(components["score"], dtype=np.float64)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """Eq 2."""
        return Advantages(outcome_advantages(total, batch.group_size, self.config))


class IMAGINE(Method):
    """The bonus on top of another method: its components, total and normalisation stay, its advantages gain R*.

    Args:
        config: the settings.
        base: the method that rewards outcomes; any one whose advantages are numbers or arrays.
        vocab_size: of :class:`Novelty`.
        tokens: text → token ids. Used for prompts, and for completions where a batch has no ids. None leaves the
            prompt's positions empty.
        right: the component of the base that says which answers are right (≥ 1).

    Every call of :meth:`components` updates the predictor once and advances n, as a training step wants;
    :meth:`still` gives a reader that does not.
    """

    def __init__(self, config: Config, base: Method, vocab_size: int, *,
                 tokens: Callable[[str], Sequence[int]] | None = None, right: str = "oc"):
        require(tokens is None or callable(tokens), "tokens", tokens, "None or a function from text to token ids")
        require(isinstance(base, Method), "base", base, "a Method")
        self.config, self.base, self.tokens, self.right = config, base, tokens, right
        self.novelty, self.learns, self.rollout = Novelty(vocab_size, config), True, base.rollout
        self.name = "imagine" if config.bonus_source == "rnd" else f"imagine_{config.bonus_source}"

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """The base's, and (N,) each ``novelty_error`` (r), ``bonus`` (R*) and ``rnd_loss`` (mean r, in each row).

        Raises:
            ConfigError: no token ids, a token id outside the vocabulary, or the base has no component ``right``.
        """
        found = dict(self.base.components(batch))
        require(self.right in found, "right", self.right, "one of " + ", ".join(found))
        ids, mask = self.laid_out(batch)
        n = self.novelty.calls
        errors, loss = self._novelty(ids, mask)
        lengths = mask[:, self.config.max_prompt_tokens :].sum(axis=1)
        paid = bonus(errors, np.asarray(found[self.right]) >= RIGHT, n, self.config, lengths=lengths,
                     group_size=batch.group_size, std=self.novelty.running.std)
        return found | {"novelty_error": errors, "bonus": paid, "rnd_loss": np.full(len(errors), loss)}

    def laid_out(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """The batch's token ids and mask, as the networks see them."""
        written = batch.completion_ids
        if len(written) != len(batch.completions):
            allowed = "one list for each completion, or a function tokens"
            require(self.tokens is not None, "completion_ids", f"{len(written)} entries", allowed)
            written = [list(self.tokens(text)) for text in batch.completions]
        asked = {text: [] if self.tokens is None else list(self.tokens(text)) for text in set(batch.prompts)}
        return layout([asked[text] for text in batch.prompts], written, self.config)

    def _novelty(self, ids: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, float]:
        if not self.learns:
            errors = self.novelty.errors(ids, mask)
            return errors, float(errors.mean()) if errors.size else 0.0
        errors, loss = self.novelty.observe(ids, mask)
        if self.config.novelty_order == "update_then_reward":
            errors = self.novelty.errors(ids, mask)
        return errors, loss

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The base's: a bonus is no reward."""
        return self.base.aggregate(components, batch)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """The base's, plus R* on every token (eq 7); ``pre`` adds it to the total instead.

        Rows that the base leaves out stay left out: a base that drops groups without contrast drops the all-wrong
        ones, where the bonus would have been all there is.
        """
        extra = np.asarray(components["bonus"], dtype=np.float64)
        if self.config.integration == "pre":
            return self.base.advantages(total + extra, components, batch)
        old = self.base.advantages(total, components, batch)
        if any(np.ndim(row) for row in old.values):
            rows = zip(old.values, extra, strict=True)
            return Advantages([np.asarray(row) + more for row, more in rows], old.keep)
        return Advantages(np.asarray(old.values, dtype=np.float64) + extra, old.keep)

    def diagnostics(self, total: np.ndarray, components: Mapping[str, np.ndarray], advantages: Advantages,
                    batch: Batch) -> dict[str, float]:
        """What the bonus did, as ``imagine/…``: see :func:`explorl.papers.imagine_measures.summary`."""
        pushed = [float(np.sum(row)) for row in advantages.values]
        lengths = batch.lengths if len(batch.completion_ids) else np.zeros(len(pushed))
        cut = batch.truncated if len(batch.truncated) else [False] * len(pushed)
        found = summary(components, pushed, lengths, cut, batch.group_size, right=self.right)
        return {f"imagine/{name}": value for name, value in found.items()}

    def still(self) -> IMAGINE:
        """The same method on the same networks: it neither trains the predictor nor advances n."""
        reader = copy.copy(self)
        reader.learns, reader.base = False, self.base.still()
        return reader

    def state_dict(self) -> dict:
        """The networks, their optimiser and n, beside the base's state."""
        return {"base": self.base.state_dict(), "novelty": self.novelty.state_dict()}

    def load_state_dict(self, state: Mapping) -> None:
        """Go on exactly as the run that gave the state."""
        self.base.load_state_dict(state["base"])
        self.novelty.load_state_dict(state["novelty"])
