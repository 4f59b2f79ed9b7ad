"""DAPO (arXiv 2503.14476): what TRL lacks of it, dynamic sampling and the price of overlong answers.

The rest is settings of :class:`explorl.train.config.TrainConfig`: ``clip_epsilon_high`` 0.28 and ``loss_type``
"dapo", the mean over all tokens of the batch.

A group whose answers are all right or all wrong has advantage 0. Dynamic sampling replaces it by the group of
another problem, as often as ``max_rounds`` allows; one that has no contrast even then stays, and teaches nothing.
Under IMAGINE an all-wrong group is where the bonus acts: ``contrast`` says which groups have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from explorl.errors import ConfigError
from explorl.papers.method import Advantages, Batch, Method
from explorl.train import trainer as seam_trainer
from explorl.train.config import TrainConfig, is_integer, is_number
from explorl.train.ppo import inside
from explorl.train.seams import text_of

CONTRASTS = ("outcome", "total", "combined")


@dataclass(frozen=True)
class DAPOConfig:
    """What DAPO has beside :class:`TrainConfig`. A wrong value raises ConfigError on construction.

    Attributes:
        max_rounds: how often a batch's groups without contrast are replaced, ≥ 0; 0 turns dynamic sampling off.
        contrast: what must differ within a group: the ``outcome`` (the method's component of the next name), the
            ``total`` reward, length included, or the ``combined`` total and bonus.
        outcome: name of the component that says which answers are right.
        overlong_buffer: L_cache ≥ 0, the last tokens below the limit, over which the punishment grows; 0: none.
        overlong_penalty: ≥ 0, what an answer of ``max_completion_tokens`` loses; 1 in the paper.

    >>> DAPOConfig(max_rounds=-1)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: max_rounds = -1: must be an integer ≥ 0
    """

    max_rounds: int = 3
    contrast: str = "outcome"
    outcome: str = "oc"
    overlong_buffer: int = 0
    overlong_penalty: float = 1.0

    def __post_init__(self):
        for name in ("max_rounds", "overlong_buffer"):
            if not is_integer(getattr(self, name)) or getattr(self, name) < 0:
                raise ConfigError(name, getattr(self, name), "an integer ≥ 0")
        if self.contrast not in CONTRASTS:
            raise ConfigError("contrast", self.contrast, "one of " + ", ".join(CONTRASTS))
        if not is_number(self.overlong_penalty) or self.overlong_penalty < 0:
            raise ConfigError("overlong_penalty", self.overlong_penalty, "≥ 0")


def overlong(lengths: Sequence[int], limit: int, buffer: int, penalty: float = 1.0) -> np.ndarray:
    """The soft punishment (DAPO eq 13): 0 up to limit − buffer tokens, then linear, −penalty from the limit on.

    Args:
        lengths: (N,) completion lengths in tokens, end of sequence included.
        limit: L_max ≥ 1.
        buffer: L_cache, 0 … limit; 0 gives zeros.
        penalty: at the limit, ≥ 0.

    Returns:
        (N,) float64 in [−penalty, 0].

    Raises:
        ConfigError: a buffer beyond the limit.

    >>> overlong([6, 8, 9, 10], limit=10, buffer=4).tolist()
    [0.0, -0.5, -0.75, -1.0]
    """
    if not 0 <= buffer <= limit:
        raise ConfigError("overlong_buffer", buffer, f"from 0 to max_completion_tokens = {limit}")
    lengths = np.asarray(lengths, dtype=np.float64)
    if not buffer:
        return np.zeros(lengths.shape)
    return penalty * ((limit - buffer - lengths) / buffer).clip(-1.0, 0.0)


class DAPO(Method):
    """Another method with DAPO's price of length; :func:`build` gives it dynamic sampling.

    Args:
        base: says what a completion is worth, and forms the advantages.
        limit: ``max_completion_tokens`` of the run.
        config: the settings.
    """

    def __init__(self, base: Method, limit: int, config: DAPOConfig = DAPOConfig()):
        if not isinstance(base, Method):
            raise ConfigError("base", base, "a Method")
        overlong([], limit, config.overlong_buffer)
        self.base, self.limit, self.config, self.rollout = base, limit, config, base.rollout
        self.name = "dapo" if base.name == "grpo" else f"dapo_{base.name}"

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """The base's, and (N,) ``overlong``, ≤ 0."""
        return self._priced(self.base.components(batch), batch)

    def _priced(self, found: Mapping[str, np.ndarray], batch: Batch) -> dict[str, np.ndarray]:
        price = overlong(batch.lengths, self.limit, self.config.overlong_buffer, self.config.overlong_penalty)
        return dict(found) | {"overlong": price}

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """The base's, plus the punishment."""
        return self.base.aggregate(components, batch) + components["overlong"]

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """The base's."""
        return self.base.advantages(total, components, batch)

    def still(self) -> DAPO:
        """Around the base as it looks on."""
        return DAPO(self.base.still(), self.limit, self.config)

    def diagnostics(self, total: np.ndarray, components: Mapping[str, np.ndarray], advantages: Advantages,
                    batch: Batch) -> dict[str, float]:
        """The base's."""
        return self.base.diagnostics(total, components, advantages, batch)

    def state_dict(self) -> dict:
        """The base's."""
        return self.base.state_dict()

    def load_state_dict(self, state: dict) -> None:
        """The base's."""
        self.base.load_state_dict(state)


def contrastless(method: Method, batch: Batch, config: DAPOConfig) -> np.ndarray:
    """(B,) flags of the groups in which nothing differs; changes nothing in the method.

    Raises:
        ConfigError: the method has no component ``config.outcome``.
    """
    reader = method.still()
    components = reader.components(batch)
    if config.contrast == "outcome":
        if config.outcome not in components:
            raise ConfigError("outcome", config.outcome, "one of " + ", ".join(components))
        judged = np.asarray(components[config.outcome], dtype=np.float64)
    else:
        judged = np.asarray(reader.aggregate(components, batch), dtype=np.float64)
        if config.contrast == "combined":
            judged = judged + components.get("bonus", 0.0)
    return np.ptp(judged.reshape(-1, batch.group_size), axis=1) == 0


def build(model: Any, tokenizer: Any, method: Method, problems: Sequence[Any], config: TrainConfig,
          out_dir: str | Path, callbacks: Sequence[Any] = ()) -> Any:
    """Make the trainer of a DAPO run, in the form of :func:`explorl.train.trainer.build`.

    Args:
        model, tokenizer, problems, config, out_dir, callbacks: as for the other arms.
        method: a :class:`DAPO`, or a method around one.

    Raises:
        ConfigError: no DAPO in the method, a limit that is not the run's, or what the other arms raise.

    Logged beside the usual: ``dapo/flat_first`` and ``dapo/flat_left``, the shares of groups without contrast
    before and after; ``dapo/rounds`` and ``dapo/replaced``, how often and how many groups were sampled anew. The
    lengths (``completions/…``) are means over the rounds; ``num_tokens`` counts all that was sampled.
    """
    part = inside(method, DAPO)
    if part is None:
        raise ConfigError("method", method.name, "a DAPO(…), or a method around one")
    if part.limit != config.max_completion_tokens:
        raise ConfigError("limit", part.limit, f"max_completion_tokens = {config.max_completion_tokens}")
    made = seam_trainer.build(model, tokenizer, method, problems, config, out_dir, callbacks,
                              extend=with_dynamic_sampling)
    made.dapo = part.config
    return made


def with_dynamic_sampling(seams: type) -> type:
    """The trainer with the seams, which replaces groups before they are scored."""

    class DAPOTrainer(seams):
        """DAPO whose reward and advantage come from a ``Method``."""

        def _generate_and_score_completions(self, inputs):
            self._asked = list(inputs)  # the rows' problems, replaced in place
            return super()._generate_and_score_completions(self._asked)

        def _generate(self, prompts):
            out = list(super()._generate(prompts))
            flat = first = self._contrastless(out)
            rounds = replaced = 0
            while rounds < self.dapo.max_rounds and flat.any():
                self._replace(prompts, out, np.flatnonzero(flat), rounds)
                rounds, replaced = rounds + 1, replaced + int(flat.sum())
                flat = self._contrastless(out)
            found = {"flat_first": first.mean(), "flat_left": flat.mean(), "rounds": rounds, "replaced": replaced}
            for name, value in found.items():
                self._metrics["train"][f"dapo/{name}"].append(float(value))
            return tuple(out)

        def _replace(self, prompts, out, groups, rounds):
            """Put other problems and their completions where groups have no contrast, in place."""
            size = self.num_generations
            rows = [g * size + k for g in groups for k in range(size)]
            for group, problem in zip(groups, self._others(len(groups), rounds), strict=True):
                row = {"prompt": self.problems[problem].prompt, "gold": str(self.problems[problem].gold),
                       seam_trainer.ROW: problem}
                for i in range(group * size, (group + 1) * size):
                    self._asked[i], prompts[i] = row, row["prompt"]
            again = super()._generate([prompts[i] for i in rows])
            for kept, new in zip(out, again, strict=True):
                if isinstance(kept, list) and len(kept) == len(prompts):
                    for i, value in zip(rows, new, strict=True):
                        kept[i] = value

        def _others(self, count, rounds):
            """Problems that are not in the batch, if there are enough; the same after an interruption."""
            here = {row[seam_trainer.ROW] for row in self._asked}
            free = [i for i in range(len(self.problems)) if i not in here]
            draw = np.random.default_rng([self.args.seed, self.state.global_step, rounds, 1])
            pool = free if len(free) >= count else list(range(len(self.problems)))
            return draw.choice(pool, size=count, replace=len(pool) < count).tolist()

        def _contrastless(self, out):
            ids, completions = out[1], out[3]
            final = {*self.eos_token_ids, self.processing_class.pad_token_id}
            rows = [row[seam_trainer.ROW] for row in self._asked]
            batch = Batch(
                prompts=[text_of(row["prompt"]) for row in self._asked],
                completions=[text_of(c) for c in completions], gold=[row["gold"] for row in self._asked],
                group_size=self.num_generations, step=self.state.global_step, completion_ids=ids,
                truncated=[not len(row) or row[-1] not in final for row in ids],
                columns={"meta": [self.problems[i].meta for i in rows]},
            )
            return contrastless(self.method, batch, self.dapo)

    return DAPOTrainer
