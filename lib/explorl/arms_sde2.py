"""What the arms of the SD-E² chapter are: the method behind each name, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from explorl.metrics import mean, pass_at, proportion
from explorl.params_model import SDE2Params
from explorl.papers.method import Method
from explorl.tasks import Problem, Split, splits
from explorl.tasks.prompts import asked

PROPORTIONS = {"acc_strict": "correct_strict", "acc_fallback": "correct_fallback", "s_acc": "chi"}
"""Metric → the 0/1 component that it is the mean of."""
NAMES = {"STR": "n_strategies", "outcomes": "n_outcomes", "TOK": "tokens", "RR": "rr", "RR_micro": "rr_micro",
         "RR_solved": "rr_solved", "RR_unsolved": "rr_unsolved"}
PERCENT = {"ACC_strict": "acc_strict", "ACC_fallback": "acc_fallback", "S-ACC": "s_acc",
           "S-ACC_by_chance": "s_acc_by_chance"}
"""The paper's names of metrics → those in records, where every share is in [0, 1]."""


def problems(params: SDE2Params, arm: str) -> Split:
    """The problems as an arm's policy reads them: in the toy world as they are, else a chat in its style."""
    style = "single_trace" if arm == "single_trace" else "multi_strategy"
    found = splits(params.task)
    return found if params.backbone == "toy" else asked(found, style)


def tag(params: SDE2Params) -> dict[str, str]:
    """What identifies a run besides its method and settings."""
    return {"encoder": params.encoder}


def start(params: SDE2Params, arm: str, problems: Split, encode: Callable, policy: Any, seed: int
          ) -> tuple[Method, Callable[..., Any]]:
    """A trained arm's method, and what makes its trainer."""
    from explorl.train.trainer import build

    return method(params, arm, encode, seed), build


def tool(params: SDE2Params):
    """The sentence encoder that the parameters name.

    In the toy world one text at a time: a vector is then the same to the last bit, whatever was encoded before, so
    that a resumed run with an empty cache ends as an uninterrupted one.
    """
    from explorl import encoders

    return encoders.load(params.encoder, batch_size=1 if params.backbone == "toy" else 16)


def method(params: SDE2Params, arm: str, encode: Callable, seed: int) -> Method:
    """The method of a trained arm.

    Args:
        params: of the run.
        arm: a trained arm's name. ``oc_fa`` and ``oc_fa_sd`` are Table 5's rows: SD-E² with weights set to 0.
        encode: texts → (n, d) vectors.
        seed: of the shuffled control.
    """
    from explorl.papers import baselines, sde2

    config = params.sde2_config()
    if arm == "cfl":
        penalty = baselines.LengthPenalty(params.length_free_tokens, params.max_completion_tokens)
        return baselines.CFL(config, penalty, w_l=params.w_l)
    if arm == "cfee":
        return baselines.CFEE(config, w_rd=params.w_rd)
    if arm == "sde2_shuffled":
        return baselines.Shuffled(sde2.SDE2(config, encode), component="sd", seed=seed)
    weights = {"sde2": {}, "oc_fa": {"w_re": 0.0, "w_sd": 0.0}, "oc_fa_sd": {"w_re": 0.0}}[arm]
    return sde2.SDE2(replace(config, **weights), encode)


def measure(params: SDE2Params, problems: Sequence[Problem], groups: Sequence[Sequence[Any]],
            encode: Callable) -> tuple[dict[str, dict], list[dict]]:
    """Score sampled completions.

    Args:
        params: of the run.
        problems: P problems.
        groups: P lists of S completions with ``text``, ``ids``, ``truncated``.
        encode: texts → (n, d) vectors.

    Returns:
        Metrics, name → ``{"value": …}``, with ``"k"`` of ``"n"`` problems for proportions; and one row per
        problem: ``key``, ``n`` = S, the right completions under each proportion's name, the first text.
    """
    from explorl.papers import sde2

    samples = len(groups[0])
    flat = [completion for group in groups for completion in group]
    texts = [completion.text for completion in flat]
    gold = [problem.gold for problem in problems for _ in range(samples)]
    lengths = np.array([len(completion.ids) for completion in flat])
    found = sde2.components(texts, gold, encode, params.sde2_config(), lengths=lengths)
    right = {name: found[key].reshape(-1, samples).astype(int) for name, key in PROPORTIONS.items()}
    items = [{"key": p.key, "n": samples, "text": group[0].text}
             | {name: int(r[i].sum()) for name, r in right.items()}
             for i, (p, group) in enumerate(zip(problems, groups, strict=True))]
    means = {PERCENT.get(name, NAMES.get(name, name)): value / (100 if name in PERCENT else 1)
             for name, value in sde2.metrics(found).items()}
    metrics = {name: mean([value]) for name, value in means.items()}
    metrics |= {name: proportion(r) for name, r in right.items()} | pass_at(right["acc_strict"])
    metrics["truncated"] = mean([completion.truncated for completion in flat])
    if params.task == "digits":
        from explorl.tasks import digits

        extra = digits.describe(texts, [problem for problem in problems for _ in range(samples)])
        metrics |= {name: {"value": float(value)} for name, value in extra.items()}
    return metrics, items
