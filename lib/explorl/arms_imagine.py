"""What the arms of the IMAGINE chapter are: the method behind each name, and what is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from explorl.metrics import mean, pass_at, proportion
from explorl.params_imagine import ImagineParams
from explorl.papers.imagine import IMAGINE, RIGHT, Outcome
from explorl.papers.method import Method
from explorl.tasks import Problem, Split, countdown, digits, evaluation, plain, splits
from explorl.text import countdown as countdown_text
from explorl.text import marked
from explorl.text.countdown import Score

Scorer = Callable[[str, str, Mapping], Score]

PUBLISHED_SETS = {"countdown": "generated", "countdown_34": "3to4", "countdown_4": "4"}
"""Task → the Countdown problems that it stands for."""
FORMS = {"digits": "final_tag", "gsm8k": "hash", "dapo_math": "answer", "aime24": "answer"}
"""Task → how an answer is marked."""
ALGORITHM = {"ppo": "ppo", "imagine_ppo": "ppo", "dapo": "dapo", "imagine_dapo": "dapo"}
"""Arm → what trains it, where that is not GRPO."""
SOURCE = {"ppo": "none", "grpo": "none", "dapo": "none"} | {
    name: name for name in ("uniform", "constant", "length", "shuffled")}
"""Arm → where its bonus comes from, where that is not the novelty. An arm without a bonus measures novelty all the
same, so that its predictor's loss can be compared."""
ABLATION = {"trajectory_aware": {"error_mask": False, "integration": "pre"},
            "error_conditioned": {"integration": "pre"}}
"""Rows of Table 10: what they lack of the whole."""


def problems(params: ImagineParams, arm: str) -> Split:
    """The problems as the policy reads them: plain text that ends where the answer begins."""
    found = _countdown(params.task) if params.task in PUBLISHED_SETS else splits(params.task)
    if params.eval_tasks:
        found = found.tested_on([problem for task in params.eval_tasks for problem in _test_part(task)])
    if params.backbone == "toy":
        return found
    if params.task in PUBLISHED_SETS:
        return countdown.asked(found, params.template)
    return plain.asked(found, FORMS[params.task])


def _countdown(task: str) -> Split:
    return splits("countdown", source=PUBLISHED_SETS[task])


def _test_part(task: str) -> Sequence[Problem]:
    """A task's test problems, with its name in their ``meta``."""
    if task not in PUBLISHED_SETS:
        return evaluation([task])
    return [replace(problem, meta={**problem.meta, "task": task}) for problem in _countdown(task).test]


def tool(params: ImagineParams) -> Scorer:
    """What a completion scores: 1 right, 0.1 well formed, 0 neither (eq 8)."""
    def countdown_score(text: str, gold: str, meta: Mapping) -> Score:
        return countdown_text.score(text, meta["numbers"], meta["target"])

    def marked_score(text: str, gold: str, meta: Mapping) -> Score:
        return marked.score(text, gold, form=FORMS[params.task])

    return countdown_score if params.task in PUBLISHED_SETS else marked_score


def tag(params: ImagineParams) -> dict[str, str]:
    """What identifies a run besides its method and settings."""
    return {"start": params.start, "template": params.template}


def start(params: ImagineParams, arm: str, problems: Split, score: Scorer, policy: Any, seed: int
          ) -> tuple[Method, Callable[..., Any]]:
    """A trained arm's method, and what makes its trainer."""
    from explorl.train import dapo, ppo, trainer
    from explorl.train.evaluate import encode
    from explorl.train.held_out import HeldOut

    novel = novelty_method(params, arm, score, seed, vocab_size=policy.model.config.vocab_size,
                           tokens=lambda text: encode(policy.tokenizer, text))
    algorithm = ALGORITHM.get(arm, "grpo")
    if algorithm == "ppo":
        watched = HeldOut(problems.test[: params.held_out_problems], params.held_out_every)
        return ppo.PPO(novel, ppo_config(params)), partial(ppo.build, held_out=watched)
    if algorithm == "dapo":
        return dapo.DAPO(novel, params.max_completion_tokens, dapo_config(params)), dapo.build
    return novel, trainer.build


def novelty_method(params: ImagineParams, arm: str, score: Scorer, seed: int, *, vocab_size: int,
                   tokens: Callable[[str], Sequence[int]]) -> IMAGINE:
    """The outcome with the bonus of an arm, before PPO or DAPO is put around it.

    Args:
        params: of the run.
        arm: a trained arm's name.
        score: of :func:`tool`.
        seed: of the networks and of the controls' draws.
        vocab_size: of the policy.
        tokens: text → token ids.
    """
    changes = {"bonus_source": SOURCE.get(arm, "rnd")} | ABLATION.get(arm, {})
    config = params.imagine_config(seed, **changes)
    return IMAGINE(config, Outcome(lambda *row: score(*row).reward, config), vocab_size, tokens=tokens)


def ppo_config(params: ImagineParams):
    """PPO's settings. A bonus that is added before normalisation is part of the reward."""
    from explorl.train.critic import CriticConfig
    from explorl.train.ppo import PPOConfig

    critic = CriticConfig(body=params.critic_body, body_lr=params.critic_body_lr, head_lr=params.critic_head_lr,
                          epochs=params.critic_epochs, rows=params.critic_rows, value_clip=params.critic_value_clip)
    bonus = "reward" if params.integration == "pre" else params.ppo_bonus
    return PPOConfig(gamma=params.gae_gamma, lam=params.gae_lambda, bonus=bonus, lone=params.ppo_lone, critic=critic)


def dapo_config(params: ImagineParams):
    """DAPO's settings."""
    from explorl.train.dapo import DAPOConfig

    return DAPOConfig(max_rounds=params.dapo_rounds, contrast=params.dapo_contrast,
                      overlong_buffer=params.dapo_overlong_buffer)


def measure(params: ImagineParams, problems: Sequence[Problem], groups: Sequence[Sequence[Any]], score: Scorer
            ) -> tuple[dict[str, dict], list[dict]]:
    """Score sampled completions.

    Args:
        params: of the run.
        problems: P problems.
        groups: P lists of S completions with ``text``, ``ids``, ``truncated``.
        score: of :func:`tool`.

    Returns:
        Metrics, name → ``{"value": …}``, with ``"k"`` of ``"n"`` problems for proportions; and one row per problem:
        ``key``, ``n`` = S, how many are ``right`` and how many in the right ``format``, distinct ``answers``, the
        first text.
    """
    scored = [[score(c.text, p.gold, p.meta) for c in group] for p, group in zip(problems, groups, strict=True)]
    reward = np.array([[one.reward for one in row] for row in scored])
    right, answers = reward >= RIGHT, [len({one.answer for one in row} - {None, ""}) for row in scored]
    flat = [completion for group in groups for completion in group]
    metrics = {"acc": proportion(right), "format": proportion(reward > 0), "answers": mean(answers)}
    metrics |= pass_at(right) | {"tokens": mean([len(c.ids) for c in flat]),
                                 "truncated": mean([c.truncated for c in flat])}
    items = [{"key": p.key, "n": len(row), "right": int(sum(row)), "format": int((form > 0).sum()),
              "answers": count, "text": group[0].text}
             for p, row, form, count, group in zip(problems, right, reward, answers, groups, strict=True)]
    return metrics | _of_task(params, problems, groups, right) | _by_task(problems, right), items


def _of_task(params: ImagineParams, problems: Sequence[Problem], groups: Sequence[Sequence[Any]], right: np.ndarray
             ) -> dict[str, dict]:
    """What only one kind of problem has: Countdown's hard part and its lost answers; the toy world's stories."""
    if params.task == "digits":
        texts = [c.text for group in groups for c in group]
        told = digits.describe(texts, [p for p, group in zip(problems, groups) for _ in group])
        return {name: mean([value]) for name, value in told.items()}
    if params.task not in PUBLISHED_SETS:
        return {}
    needs = np.array([bool(p.meta["needs_times_or_divide"]) for p in problems])
    lost = [ok and countdown_text.score(c.text, p.meta["numbers"], p.meta["target"], rules="tinyzero",
                                        template=params.template).reward == 0
            for p, row, group in zip(problems, right, groups) for c, ok in zip(group, row)]
    hard = {"acc_needs": proportion(right[needs])} if needs.any() else {}
    return hard | {"strict_not_tinyzero": mean(lost)}


def _by_task(problems: Sequence[Problem], right: np.ndarray) -> dict[str, dict]:
    """Accuracy per task, where there are several."""
    tasks = [str(problem.meta.get("task", "")) for problem in problems]
    names = list(dict.fromkeys(tasks))
    if len(names) < 2:
        return {}
    return {f"acc_{name}": proportion(right[[task == name for task in tasks]]) for name in names}
