"""What the arms of the EMPO chapter are: the method behind each name, and what is measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorl import judges
from explorl.params_model import EMPOParams
from explorl.papers.method import Method
from explorl.report.stats import pass_at_k
from explorl.tasks import Problem, Split, digits, evaluation, splits
from explorl.tasks.prompts import asked
from explorl.text.equivalence import Equivalence


def problems(params: EMPOParams, arm: str) -> Split:
    """The problems as the policy reads them: in the toy world as they are, else a chat that asks for a box.

    With ``eval_tasks``, the test part is theirs, and no training question is among them.
    """
    found = splits(params.task)
    if params.eval_tasks:
        found = found.tested_on(evaluation(params.eval_tasks))
    return found if params.backbone == "toy" else asked(found, "boxed")


def tool(params: EMPOParams) -> Equivalence:
    """The equality that clusters answers and compares them with the reference."""
    return judges.load(params.equality)


def tag(params: EMPOParams) -> dict[str, str]:
    """What identifies a run besides its method and settings."""
    return {"equality": params.equality, "start": params.start}


def start(params: EMPOParams, arm: str, problems: Split, equal: Equivalence, seed: int
          ) -> tuple[Method, Callable[..., Any]]:
    """A trained arm's method, and what makes its trainer."""
    from explorl.train import sft, trainer

    if arm == "sft":
        return sft.Demonstrations(demonstrations(problems.train, seed)), sft.build
    return method(params, arm, equal, seed), trainer.build


def method(params: EMPOParams, arm: str, equal: Equivalence, seed: int) -> Method:
    """The method of an arm that is trained by reinforcement.

    Args:
        params: of the run.
        arm: a trained arm's name other than ``sft``.
        equal: the equality.
        seed: of the random reward.
    """
    from explorl.papers import empo, empo_baselines

    config = params.empo_config()
    if arm in ("empo", "empo_log"):
        return empo.EMPO(params.empo_config(reward="log_p" if arm == "empo_log" else "p"), equal)
    if arm == "random":
        return empo_baselines.RandomReward(config, equal, seed=seed)
    return {"vote": empo_baselines.MajorityVote, "supervised": empo_baselines.Supervised}[arm](config, equal)


def demonstrations(problems: Sequence[Problem], seed: int) -> list[str]:
    """A worked solution for each problem: the data set's own, or in the toy world a random one that is right."""
    generator = random.Random(seed)
    return [problem.meta.get("solution") or digits.solution(problem, generator) for problem in problems]
