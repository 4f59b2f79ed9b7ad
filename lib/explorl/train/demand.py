"""What a params file asks of a T4: memory, as a :class:`~explorl.train.memory.Demand`, and minutes.

The times are a range from published runs of other settings: nobody measured ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from explorl.errors import ConfigError
from explorl.train.memory import JUDGE_PARAMETERS, Demand, need_gib, shape_of

LIMIT_GIB = 14.0
STEP_SECONDS = (25.0, 60.0)
EVALUATION_BATCH = 16
CURVE_PROBLEMS = 64
PASS_SHARE = 0.05
"""Of a step: what one forward pass through its batch is taken to cost. Most of a step is sampling."""
MINUTES_BASIS = (
    "an estimate that nobody measured: 25–60 s per prompt group, the spread of published T4 runs with other "
    "settings; evaluation is taken to cost one such step per 16 completions (fewer where 16 do not fit), a "
    "demonstration a completion's share of one"
)
PASSES_BASIS = (
    "; further passes through a batch are our guess, a twentieth of a step forwards and twice that backwards"
)
ROUNDS_BASIS = "; the upper end has dynamic sampling replace every group in every round, the lower end none"
CPU_BACKBONES = ("toy", "smollm2")
UNTRAINED_ARMS = ("base", "single_trace", "multi_strategy")
DEMONSTRATED_ARMS = ("sft",)
"""Trained on given solutions: no group is sampled."""
CRITIC_ARMS = ("ppo", "imagine_ppo")
REPLACING_ARMS = ("dapo", "imagine_dapo")
"""Arms that sample further groups in place of those without contrast."""
HELD_OUT_AT_ONCE = 256
"""Completions that a look at the critic samples at once, at most."""


def demand_of(params: Any) -> Demand:
    """The GPU's share of a params file; see :func:`explorl.train.preflight.estimate`.

    The networks of IMAGINE's novelty (3 million parameters in fp32) stand on the CPU and take nothing of it.
    """
    backbone, length = get(params, "backbone"), get(params, "max_sequence_tokens")
    if backbone in CPU_BACKBONES:
        raise ConfigError("backbone", backbone, "a model for a GPU: this one runs anywhere")
    completion, group = get(params, "max_completion_tokens"), get(params, "group_size")
    if not 0 < completion < length:
        raise ConfigError("max_completion_tokens", completion, f"less than max_sequence_tokens = {length}")
    prompts = get(params, "prompts_per_step", 1)
    rows = get(params, "micro_batch", None) or prompts * group
    rank = get(params, "lora_r")
    if rank < 1:
        raise ConfigError("lora_r", rank, "at least 1 on a GPU: training all weights does not fit a T4")
    trained = set(get(params, "arms", ["sde2"])) - set(UNTRAINED_ARMS)
    sampled = trained - set(DEMONSTRATED_ARMS)
    demand = Demand(
        shape_of(backbone), rank, group, length - completion, completion, rows if sampled else min(rows, prompts),
        prompts, get(params, "load_in_4bit", True), trained=bool(trained),
        judge_parameters=JUDGE_PARAMETERS.get(get(params, "equality", ""), 0.0),
    )
    if trained & set(CRITIC_ARMS):
        demand = replace(
            demand, critic=get(params, "critic_body", "copy"),
            critic_rows=min(get(params, "critic_rows", EVALUATION_BATCH), demand.completions),
            held_out=min(get(params, "held_out_problems", 0), HELD_OUT_AT_ONCE))
    return demand if sampled else replace(demand, at_once=_fitting_batch(demand))


def evaluation_batch(params: Any) -> int:
    """Completions that an evaluation samples at once: 16, or as many fewer as fit a T4 beside the rest."""
    return EVALUATION_BATCH if get(params, "backbone") in CPU_BACKBONES else _fitting_batch(demand_of(params))


def _fitting_batch(demand: Demand) -> int:
    sizes = [EVALUATION_BATCH >> halvings for halvings in range(EVALUATION_BATCH.bit_length())]
    return next((n for n in sizes if need_gib(replace(demand, at_once=n)) <= LIMIT_GIB), 1)


def minutes(params: Any) -> tuple[float, float]:
    """(low, high) minutes for every arm and seed on a T4: an estimate that nobody measured."""
    seeds, arms = len(get(params, "seeds", [0])), list(get(params, "arms", ["sde2"]))
    trained = [arm for arm in arms if arm not in UNTRAINED_ARMS]
    every = get(params, "eval_every", 0)
    questions = get(params, "eval_problems", 0) * len(arms)
    questions += CURVE_PROBLEMS * len(trained) * (get(params, "steps") // every if every else 0)
    answers = questions * get(params, "eval_samples", 1)
    evaluation = math.ceil(answers / evaluation_batch(params)) if answers else 0
    shares = [[_group_share(params, arm, high) for arm in trained] for high in (False, True)]
    looks = sum(_held_out_steps(params) for arm in trained if arm in CRITIC_ARMS)
    groups = get(params, "steps") * get(params, "prompts_per_step", 1)
    low, high = (seeds * (sum(each) * groups + looks + evaluation) * seconds / 60
                 for each, seconds in zip(shares, STEP_SECONDS))
    return low, high


def basis(params: Any) -> str:
    """What the range of minutes of a params file rests on."""
    arms = set(get(params, "arms", ["sde2"]))
    passes = arms & set(CRITIC_ARMS) or get(params, "num_iterations", 1) > 1
    rounds = arms & set(REPLACING_ARMS) and get(params, "dapo_rounds", 3)
    return MINUTES_BASIS + (PASSES_BASIS if passes else "") + (ROUNDS_BASIS if rounds else "")


def _group_share(params: Any, arm: str, high: bool) -> float:
    """What a prompt costs in one optimiser step, in units of a group that is sampled and learned once."""
    if arm in DEMONSTRATED_ARMS:
        return 1 / get(params, "group_size")
    updates = get(params, "num_iterations", 1)
    sampled = 1.0
    if arm in CRITIC_ARMS:  # the values, then the epochs; a body that is not trained is passed forwards only
        learned = 3 if get(params, "critic_body", "copy") == "copy" else 1
        sampled += PASS_SHARE * (1 + learned * get(params, "critic_epochs", 2))
    if high and arm in REPLACING_ARMS:
        sampled += get(params, "dapo_rounds", 3)
    again = 4 * PASS_SHARE  # forwards, once more to recompute, backwards
    return (sampled + again * (updates - 1)) / updates


def _held_out_steps(params: Any) -> int:
    """Steps' worth of sampling, to look at the critic: every so many steps and at the last."""
    problems, every = get(params, "held_out_problems", 0), get(params, "held_out_every", 25)
    steps = get(params, "steps")
    looks = math.ceil(steps / every) + ((steps - 1) % every != 0)
    return looks * math.ceil(problems / EVALUATION_BATCH)


def get(params: Any, name: str, *default: Any) -> Any:
    """A value of a mapping or an object, or the default where it has none.

    Raises:
        ConfigError: neither a value nor a default.

    >>> get({"steps": 3}, "steps"), get({}, "arms", ["sde2"])
    (3, ['sde2'])
    """
    value = params.get(name) if isinstance(params, Mapping) else getattr(params, name, None)
    if value is None:
        if not default:
            raise ConfigError(name, None, "given")
        return default[0]
    return value
