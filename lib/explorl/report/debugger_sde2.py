"""What the debugger shows of SD-E² and of its baselines, which share its parser and its aggregation."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorl.papers import sde2
from explorl.papers.method import Batch, Method
from explorl.report.debugger import Stage

TERMS = {"oc": ("final answer right", "eq 16, 38"), "re": ("a strategy right", "eq 19"),
         "fa": ("format", "eq 20–23"), "sd": ("exploration", "eq 17–18"),
         "rd": ("exploration, counted", "eq 48"), "l": ("length", "eq 24")}
_SOURCE = {"FA": "from <final_answer>", "ANS": "from <answer>",
           "SO": "no final tag: the last strategy's outcome", "NONE": "no tag holds an answer"}
_DROPPED = ("unclosed", "malformed", "duplicated", "over_limit")


def stages(batch: Batch, index: int, method: Method, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """Answer, checks, similarity, then each component raw, z-scored and weighted."""
    seen = sde2.stages(batch.completions[index], batch.gold[index], getattr(method, "encode", None),
                       method.config, prompt=batch.prompts[index])
    return [*_reading(seen, batch.gold[index]), *_similarity(seen, method.config),
            *_terms(batch, index, method, components)]


def _reading(seen: sde2.Stages, gold: str) -> list[Stage]:
    parsed = seen.reading.parsed
    dropped = ", ".join(f"{parsed.counts[name]} {name}" for name in _DROPPED if parsed.counts.get(name))
    outcomes = "; ".join(outcome for _, outcome in parsed.strategies) or "(none)"
    return [
        Stage("strategies", "well-formed blocks", seen.n_strategies,
              parsed.reason + (f"; dropped: {dropped}" if dropped else ""), "eq 3, 8–9"),
        Stage("extracted answer", "the text", parsed.final, _SOURCE[parsed.source], "eq 7"),
        Stage("final right?", f"{parsed.final or '(none)'} against {gold}", bool(seen.correct_fallback),
              "compared in canonical form", "eq 16"),
        Stage("some strategy right? χ", f"{outcomes} against {gold}", bool(seen.chi),
              "exploitation: flat bonus" if seen.chi else "exploration: paid for variety", "eq 18"),
    ]


def _similarity(seen: sde2.Stages, config: sde2.Config) -> list[Stage]:
    if not seen.m_eff:
        return []
    names = ", ".join(str(seen.reading.embedded[i] + 1) for i in seen.kept)
    lone = seen.m_eff == 1
    return [
        Stage("cosines", "the reasonings, encoded", seen.similarity, "1 on the diagonal", "eq 10"),
        Stage("Uniq", f"threshold δ = {config.delta:g}", seen.uniq, f"kept in order: {names}", "eq 15"),
        Stage("Div", "1 − mean cosine of the pairs", seen.div,
              "a lone strategy: single_div" if lone else "clipped to [0, 1]", "eq 13–14"),
        Stage("g", "Uniq × Div", seen.g, _regime(seen, config), "eq 43"),
    ]


def _regime(seen: sde2.Stages, config: sde2.Config) -> str:
    if seen.chi:
        return "not used: χ = 1 pays the flat bonus"
    if seen.saturated:
        return f"saturated: the pay is capped at {config.beta_cap:g}"
    return "in the valley: less than one strategy" if seen.valley else f"paid at rate ρ = {config.rho:g}"


def _terms(batch: Batch, index: int, method: Method, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """Three stages for each component that has a weight; they add up to the total."""
    config, shown = method.config, []
    start, stop = 0, len(batch.completions)
    if config.norm_scope == "group":
        start = index - index % batch.group_size
        stop = start + batch.group_size
    for name, weight in getattr(method, "weights", config.weights).items():
        if name not in components:
            continue
        label, equation = TERMS.get(name, (name, ""))
        raw = np.asarray(components[name], dtype=np.float64)[start:stop]
        own, deviation = raw[index - start], raw.std()
        z = float(sde2.zscore(raw, config.eps)[index - start])
        why = "never varies here: only centred" if deviation <= config.eps else "(raw − mean) / deviation"
        shown += [Stage(f"{label}, raw", "the completion", float(own), "", equation),
                  Stage(f"{label}, z",
                        f"{config.norm_scope} mean {raw.mean():.3f}, deviation {deviation:.3f}", z, why, "eq 27–29"),
                  Stage(f"{label}, weighted", f"weight {weight:g}", weight * z, "", "eq 30")]
    return shown
