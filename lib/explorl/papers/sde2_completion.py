"""What one completion earns: parse, compare answers, measure, pay (SD-E² Algorithm 1, eq 3–9, 16–23)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorl.papers.sde2_config import Config
from explorl.papers.sde2_diversity import kept_by, pairwise_cosine, spread
from explorl.text.answers import Canonical, canonical
from explorl.text.strategies import Parsed, parse

MAX_EMBEDDED = 256
"""Strategies of one completion that are embedded at most; similarity needs memory quadratic in it."""

SOURCES = ("NONE", "SO", "ANS", "FA")
"""What the codes of component ``source`` mean: where the final answer came from (eq 7)."""


@dataclass(frozen=True)
class Reading:
    """One completion as the reward reads it, before anything is embedded.

    Attributes:
        parsed: blocks, final answer and reason code (eq 3–9).
        outcomes: canonical form of each strategy's outcome, None where it has none.
        answer: canonical form of the final answer.
        embedded: indices of the strategies whose reasoning is embedded.
    """

    parsed: Parsed
    outcomes: tuple[Canonical | None, ...]
    answer: Canonical | None
    embedded: tuple[int, ...]

    @property
    def reasonings(self) -> list[str]:
        """The texts to embed."""
        return [self.parsed.strategies[i][0] for i in self.embedded]


@dataclass(frozen=True)
class Stages:
    """Everything the reward computes for one completion; a component's name is its attribute's name.

    Attributes:
        reading: what was read.
        hits: for each strategy, whether its outcome is right.
        similarity: (m_eff, m_eff) cosines.
        kept: positions of the non-redundant ones among the embedded strategies.
        oc, re, fa, sd: the components (eq 16, 19, 22, 17).
        rd: the exploration reward by counting, R_rd^cnt of GRPO-CFEE (eq 48).
        chi: 1 if some strategy is right (eq 18), else 0; final, complete: eq 20, 21.
        n_strategies, m_eff: valid strategies, and embedded ones (eq 9, 12).
        uniq, div, g: eq 15, 14, 43; uniq_eval: Uniq at ``delta_eval``.
        n_outcomes: distinct outcomes.
        correct_strict, correct_fallback: right in <final_answer>; right by eq 7.
        saturated: exploring and paid the cap; valley: exploring, m_eff ≥ 2 and paid less than for one.
        source: index into :data:`SOURCES`.
    """

    reading: Reading
    hits: tuple[bool, ...]
    similarity: np.ndarray
    kept: tuple[int, ...]
    oc: float
    re: float
    fa: float
    sd: float
    rd: float
    chi: int
    final: int
    complete: int
    n_strategies: int
    m_eff: int
    uniq: int
    uniq_eval: int
    div: float
    g: float
    n_outcomes: int
    correct_strict: int
    correct_fallback: int
    saturated: int
    valley: int
    source: int


def read(completion: str, config: Config = Config()) -> Reading:
    """Parse one completion and bring its answers to canonical form. Never raises on text.

    >>> read("<final_answer>18.0</final_answer>").answer
    ('num', Fraction(18, 1))
    """
    parsed = parse(completion, max_strategies=config.max_strategies, dup_key=config.dup_key)
    outcomes = tuple(canonical(outcome, config.canon, config.num_pick) for _, outcome in parsed.strategies)
    answer = canonical(parsed.final, config.canon, config.num_pick)
    long_enough = [i for i, (r, _) in enumerate(parsed.strategies) if len(r) >= config.min_reasoning_chars]
    return Reading(parsed, outcomes, answer, tuple(long_enough[:MAX_EMBEDDED]))


def score(reading: Reading, H: np.ndarray, gold: Canonical, config: Config) -> Stages:
    """Algorithm 1 for one completion, from its embeddings H (m_eff, d) on."""
    parsed, n = reading.parsed, len(reading.parsed.strategies)
    similarity = pairwise_cosine(H)
    kept = kept_by(similarity, config.delta, config)
    diversity = spread(similarity, config.single_div)
    g = len(kept) * diversity

    right = int(reading.answer == gold)
    hits = tuple(outcome == gold for outcome in reading.outcomes)
    chi = int(any(hits) and (right or config.chi_mode == "any"))
    final = int(parsed.source == "FA" if config.final_requires_tag else parsed.final != "")
    complete = int(n > 0 and final)
    exploited = chi if config.re_mode == "chi" else int(n > 0)
    exploring, pays = not chi, config.rho * g
    return Stages(
        reading, hits, similarity, tuple(kept),
        oc=config.lambda_oc * right,
        re=config.lambda_re * exploited,
        fa=min(1.0, config.gamma_s * n) + config.gamma_a * final + config.gamma_c * complete,
        sd=config.alpha if chi else min(config.beta_cap, pays),
        rd=config.alpha if chi else min(config.beta_cap, config.rho * n),
        chi=chi, final=final, complete=complete, n_strategies=n, m_eff=len(H),
        uniq=len(kept), uniq_eval=len(kept_by(similarity, config.delta_eval, config)), div=diversity, g=g,
        n_outcomes=len(set(reading.outcomes) - {None}),
        correct_strict=int(right and parsed.source == "FA"), correct_fallback=right,
        saturated=int(exploring and pays >= config.beta_cap), valley=int(exploring and len(H) >= 2 and g < 1),
        source=SOURCES.index(parsed.source),
    )
