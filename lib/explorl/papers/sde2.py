"""SD-E² (arXiv 2601.17982): pay a policy for *different* strategies until one of them is right.

Read it in the order of the chapter:

1. :mod:`~explorl.papers.sde2_config`: the settings, and what each open question of the paper became;
2. :mod:`~explorl.papers.sde2_diversity`: cosine, Div, Uniq, g (eq 10–15);
3. :mod:`~explorl.papers.sde2_completion`: what one completion earns (eq 16–23);
4. here: a whole batch, its z-scores and weighted sum (eq 27–30), its advantages (eq 31–32), and how a trainer
   calls it;
5. :mod:`~explorl.papers.sde2_metrics`: what the tables report (eq 25–26).

Deviation from the paper: only the first :data:`MAX_EMBEDDED` strategies of a completion are embedded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real

import numpy as np

from explorl.errors import ConfigError, require
from explorl.papers.method import Advantages, Batch, Method, group_normalise, message_text
from explorl.papers.sde2_completion import MAX_EMBEDDED, SOURCES, Reading, Stages, read, score
from explorl.papers.sde2_config import Config
from explorl.papers.sde2_diversity import div, novelty, pairwise_cosine, uniq
from explorl.papers.sde2_metrics import metrics
from explorl.text.answers import Canonical, canonical

__all__ = [
    "Config", "pairwise_cosine", "div", "uniq", "novelty",
    "MAX_EMBEDDED", "SOURCES", "Reading", "Stages", "read", "score", "stages", "components",
    "zscore", "weigh", "aggregate", "group_advantages", "SDE2", "reward_function", "metrics",
]

Encode = Callable[[list[str]], np.ndarray]
"""Texts → (n, d) vectors; see :mod:`explorl.encoders`."""

_DIVERSITY = ("sd", "m_eff", "uniq", "uniq_eval", "div", "g", "saturated", "valley")
_COMPONENTS = (
    "oc", "re", "fa", "rd", "chi", "final", "complete", "n_strategies", "n_outcomes", "correct_strict",
    "correct_fallback", "source", *_DIVERSITY,
)


# What does each completion of a batch earn?


def stages(
    completion: str, gold: str, encode: Encode, config: Config = Config(), *, prompt: str | None = None
) -> Stages:
    """Every intermediate value of one completion's reward, as the reward debugger shows it.

    >>> from explorl import encoders
    >>> stages("<final_answer>18</final_answer>", "18", encoders.load("random")).fa
    0.3
    """
    return _all_stages([completion], gold, encode, config, None if prompt is None else [prompt])[0]


def components(
    completions: Sequence[str],
    gold: str | Sequence[str],
    encode: Encode | None,
    config: Config = Config(),
    *,
    lengths: Sequence[int] | None = None,
    prompts: Sequence[str] | None = None,
) -> dict[str, np.ndarray]:
    """The four reward components of N completions, and what explains them (Algorithm 1).

    All reasonings of the batch are embedded in one call of ``encode``.

    Args:
        completions: N texts.
        gold: the reference answer, one for all or N of them.
        encode: list of texts → (n, d) array. None leaves out ``sd`` and everything else about diversity.
        config: the settings.
        lengths: N completion lengths in tokens; come back as ``length_tokens``.
        prompts: N prompts; needed with ``config.relevance_floor`` only.

    Returns:
        (N,) float64 each: ``oc``, ``re``, ``fa``, ``sd``, and the diagnostics named in :class:`Stages`.

    Raises:
        ConfigError: a reference answer is missing, or the numbers of entries differ; no completion raises.

    >>> found = components(["<final_answer>18</final_answer>", "18"], "18", None)
    >>> found["oc"].tolist(), found["fa"].tolist()
    ([1.0, 0.0], [0.3, 0.0])
    """
    rows = _all_stages(completions, gold, encode, config, prompts)
    names = [name for name in _COMPONENTS if encode is not None or name not in _DIVERSITY]
    found = {name: np.array([getattr(row, name) for row in rows], dtype=np.float64) for name in names}
    if lengths is not None:
        require(len(lengths) == len(rows), "lengths", f"{len(lengths)} entries", f"{len(rows)} entries")
        found["length_tokens"] = np.asarray(lengths, dtype=np.float64)
    return found


def _all_stages(
    completions: Sequence[str],
    gold: str | Sequence[str],
    encode: Encode | None,
    config: Config,
    prompts: Sequence[str] | None,
) -> list[Stages]:
    golds = _golds(gold, len(completions), config)
    readings = [read(completion, config) for completion in completions]
    if encode is None:
        none = np.zeros((0, 0))
        return [score(reading, none, answer, config) for reading, answer in zip(readings, golds, strict=True)]
    if config.relevance_floor is None:
        prompts = []
    elif prompts is None or len(prompts) != len(completions):
        given = None if prompts is None else f"{len(prompts)} entries"
        raise ConfigError("prompts", given, "one for each completion where relevance_floor is set")
    vectors = _embed(encode, [text for reading in readings for text in reading.reasonings] + list(prompts))
    ends = np.cumsum([len(reading.embedded) for reading in readings])
    rows = []
    for i, (reading, end, answer) in enumerate(zip(readings, ends, golds, strict=True)):
        H = vectors[end - len(reading.embedded) : end]
        if prompts:
            reading, H = _relevant(reading, H, vectors[ends[-1] + i], config.relevance_floor)
        rows.append(score(reading, H, answer, config))
    return rows


def _golds(gold: str | Sequence[str], n: int, config: Config) -> list[Canonical]:
    several = isinstance(gold, (list, tuple, np.ndarray))
    require(several or isinstance(gold, str), "gold", gold, "a text, or a list with one for each completion")
    given = list(gold) if several else [gold] * n
    require(len(given) == n, "gold", f"{len(given)} answers", f"one answer, or one for each of {n} completions")
    for answer in given:
        require(isinstance(answer, (str, Real)), "gold", answer, "a reference answer, as text or number")
    forms = {text: canonical(text, config.canon, config.num_pick) for text in dict.fromkeys(given)}
    for text, form in forms.items():
        require(form is not None, "gold", text, "a reference answer for every completion")
    return [forms[text] for text in given]


def _embed(encode: Encode, texts: list[str]) -> np.ndarray:
    if not texts:
        return np.zeros((0, 1))
    vectors = np.asarray(encode(texts), dtype=np.float64)
    well_formed = vectors.ndim == 2 and len(vectors) == len(texts) and bool(np.isfinite(vectors).all())
    require(well_formed, "encode", vectors.shape, f"a function that gives {len(texts)} finite vectors here")
    return vectors


def _relevant(
    reading: Reading, H: np.ndarray, prompt: np.ndarray, floor: float
) -> tuple[Reading, np.ndarray]:
    """Without the strategies whose cosine to the prompt is below the floor."""
    near = pairwise_cosine(np.vstack([prompt, H]))[0, 1:] >= floor if len(H) else np.zeros(0, dtype=bool)
    return replace(reading, embedded=tuple(np.array(reading.embedded, dtype=int)[near].tolist())), H[near]


# What does the batch make of it? (eq 27–32)


def zscore(x: np.ndarray, eps: float = 1e-6) -> np.ndarray:
    """(x − μ)/(σ + ε) with the population σ; only x − μ where σ ≤ ε: the component never varies (eq 29).

    >>> zscore([0.0, 1.0], eps=0.5).tolist(), zscore([0.6, 0.6]).tolist()
    ([-0.5, 0.5], [0.0, 0.0])
    """
    x = np.asarray(x, dtype=np.float64)
    if not x.size:
        return x
    sigma = x.std()
    return (x - x.mean()) / (sigma + eps if sigma > eps else 1.0)


def aggregate(
    components: Mapping[str, np.ndarray], config: Config = Config(), *, group_size: int | None = None
) -> np.ndarray:
    """R_final = Σ_k w_k R̃_k over the four components (eq 30).

    Args:
        components: (N,) each; one with weight 0 may be missing.
        config: weights, ε and ``norm_scope``.
        group_size: G; needed where ``norm_scope`` is "group".

    Returns:
        (N,) float64.

    >>> ones = np.ones(2)
    >>> aggregate({"oc": np.array([1.0, 0.0]), "re": ones, "fa": ones, "sd": ones}).round(3).tolist()
    [1.0, -1.0]
    """
    return weigh(components, config.weights, config, group_size=group_size)


def weigh(
    components: Mapping[str, np.ndarray],
    weights: Mapping[str, float],
    config: Config = Config(),
    *,
    group_size: int | None = None,
) -> np.ndarray:
    """Σ_k w_k R̃_k over the components that have a weight; what :func:`aggregate` and the baselines share."""
    if config.norm_scope == "group" and group_size is None:
        raise ConfigError("group_size", None, "given with norm_scope = 'group'")
    total = np.zeros(len(next(iter(components.values()))))
    for name, weight in weights.items():
        if weight == 0:
            continue
        require(name in components, name, "missing", "among the components: its weight is not 0")
        x = np.asarray(components[name], dtype=np.float64)
        scopes = x.reshape(-1, group_size) if config.norm_scope == "group" else [x]
        total += weight * np.concatenate([zscore(scope, config.eps) for scope in scopes])
    return total


# How does a trainer call it?


class SDE2(Method):
    """SD-E² on the trainer's reward seam; its advantages are plain GRPO's with the paper's ε (eq 31–32).

    Args:
        config: the settings.
        encode: list of texts → (n, d) array.
    """

    name = "sde2"

    def __init__(self, config: Config, encode: Encode):
        self.config, self.encode = config, encode

    def components(self, batch: Batch) -> dict[str, np.ndarray]:
        """Algorithm 1 on the whole generation batch."""
        lengths = batch.lengths if len(batch.completion_ids) else None
        return components(
            batch.completions, batch.gold, self.encode, self.config, lengths=lengths, prompts=batch.prompts
        )

    def aggregate(self, components: Mapping[str, np.ndarray], batch: Batch) -> np.ndarray:
        """Eq 27–30."""
        return aggregate(components, self.config, group_size=batch.group_size)

    def advantages(self, total: np.ndarray, components: Mapping[str, np.ndarray], batch: Batch) -> Advantages:
        """Eq 31–32; without the division where ``adv_std`` is off."""
        return group_advantages(total, batch.group_size, self.config)


def group_advantages(total: np.ndarray, group_size: int, config: Config) -> Advantages:
    """Eq 31–32 with the config's ε; a group of one has no contrast and is refused."""
    require(group_size >= 2, "group_size", group_size, "at least 2: a lone completion has no advantage")
    if config.adv_std:
        return Advantages(group_normalise(total, group_size, eps=config.eps))
    grouped = np.asarray(total, dtype=np.float64).reshape(-1, group_size)
    return Advantages((grouped - grouped.mean(axis=1, keepdims=True)).reshape(-1))


def reward_function(
    config: Config, encode: Encode, *, group_size: int | None = None
) -> Callable[..., list[float]]:
    """SD-E² as a reward function for an unmodified ``trl.GRPOTrainer(reward_funcs=[...])``.

    The data set needs a column ``gold``. TRL forms the advantages itself, with the sample standard deviation:
    they are smaller than eq 32 by the constant √((G−1)/G).

    Args:
        config: the settings.
        encode: list of texts → (n, d) array.
        group_size: G; needed where ``norm_scope`` is "group".
    """

    def sde2(*, completions: Sequence, gold: Sequence[str] | None = None, prompts: Sequence = (), **columns
             ) -> list[float]:
        require(gold is not None, "gold", None, "a column of the data set: one reference answer per prompt")
        texts = [message_text(completion) for completion in completions]
        asked = [message_text(prompt) for prompt in prompts] or None
        found = components(texts, gold, encode, config, prompts=asked)
        return aggregate(found, config, group_size=group_size).tolist()

    return sde2
