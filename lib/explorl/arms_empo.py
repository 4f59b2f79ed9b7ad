"""What the arms of the EMPO chapter are: the method behind each name, and what is measured."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from explorl.metrics import mean, pass_at, proportion
from explorl.params_model import EMPOParams
from explorl.papers import empo, empo_baselines, empo_metrics
from explorl.papers.method import Batch, Method
from explorl.tasks import EVALUATION, Problem, Split, digits, evaluation, grader, splits
from explorl.tasks.prompts import asked
from explorl.text import equivalence
from explorl.text.equivalence import Equivalence
from explorl.train.seams import text_of


def problems(params: EMPOParams, arm: str) -> Split:
    """The problems as the policy reads them: in the toy world as they are, else a chat that asks for a box.

    With ``eval_tasks``, the test part is theirs, and no training question is among them. The arm ``sft`` gets those
    questions whose worked solution is known.
    """
    solved_only = {"solutions": True} if arm == "sft" and params.task in ("numina", "natural") else {}
    found = splits(params.task, **solved_only)
    if params.eval_tasks:
        found = found.tested_on(evaluation(params.eval_tasks))
    return found if params.backbone == "toy" else asked(found, "boxed")


def tool(params: EMPOParams) -> Equivalence:
    """The equality that clusters answers and compares them with the reference."""
    if params.equality in equivalence.NAMES:
        return equivalence.load(params.equality)
    from explorl import judges

    return judges.load(params.equality)


def tag(params: EMPOParams) -> dict[str, str]:
    """What identifies a run besides its method and settings."""
    return {"equality": params.equality, "start": params.start}


def start(params: EMPOParams, arm: str, problems: Split, equal: Equivalence, policy: Any, seed: int
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


def measure(params: EMPOParams, problems: Sequence[Problem], groups: Sequence[Sequence[Any]], equal: Equivalence
            ) -> tuple[dict[str, dict], list[dict]]:
    """Cluster and grade sampled completions.

    Args:
        params: of the run.
        problems: P problems.
        groups: P lists of S completions with ``text``, ``ids``, ``truncated``.
        equal: the equality.

    Returns:
        Metrics, name → ``{"value": …}``, with ``"k"`` of ``"n"`` problems for proportions; and one row per
        problem: what its group of S answers looks like, and the first text. Benchmarks with lettered options are
        graded by letter, whatever equality trained the policy.
    """
    if all(p.meta.get("task") in EVALUATION and grader(p.meta["task"]) == "choice" for p in problems):
        equal = equivalence.load("choice")
    clusterings, right = _clustered(params, problems, groups, equal)
    measured = [empo_metrics.of_clusters(found, row) for found, row in zip(clusterings, right, strict=True)]
    items = [{"key": problem.key, **_item(one), "text": group[0].text}
             for problem, one, group in zip(problems, measured, groups, strict=True)]
    kept = [empo.gate(found, params.empo_config()) == empo.KEPT for found in clusterings]
    flat = [completion for group in groups for completion in group]
    metrics = {name: mean([value]) for name, value in empo_metrics.metrics(measured).items()}
    metrics |= {"acc": proportion(right.mean(axis=1)),
                "majority_right": proportion([one.majority_right for one in measured])}
    metrics |= pass_at(right) | {"kept": mean(kept), "tokens": mean([len(x.ids) for x in flat]),
                                 "truncated": mean([x.truncated for x in flat])}
    return metrics | _by_task(problems, right), items


def _clustered(params: EMPOParams, problems: Sequence[Problem], groups: Sequence[Sequence[Any]], equal: Equivalence
               ) -> tuple[list[empo.Clustering], np.ndarray]:
    """Each problem's clusters, and (P, S) flags of right answers."""
    samples = len(groups[0])
    flat = [completion.text for group in groups for completion in group]
    asked_of, gold = ([value for p in problems for value in [of(p)] * samples]
                      for of in (lambda p: text_of(p.prompt), lambda p: p.gold))
    batch, method = Batch(asked_of, flat, gold, samples), empo.EMPO(params.empo_config(), equal)
    clusterings = [method.clustering(batch, start) for start in range(0, len(flat), samples)]
    return clusterings, method.graded(clusterings, batch)["oc"].reshape(-1, samples) > 0


def _item(one: empo_metrics.Measured) -> dict[str, float | int]:
    """A problem's row: its group of answers in numbers."""
    return {"n": one.n, "right": one.right, "entropy_nats": one.entropy_nats, "n_clusters": one.n_clusters,
            "p_majority": one.p_majority, "majority_right": int(one.majority_right), "blank": one.blank}


def _by_task(problems: Sequence[Problem], right: np.ndarray) -> dict[str, dict]:
    """Accuracy per benchmark, and their plain average, where there are several."""
    tasks = [str(problem.meta.get("task", "")) for problem in problems]
    names = list(dict.fromkeys(tasks))
    if names == [""] or (len(names) == 1 and names[0] in ("digits", "gsm8k")):
        return {}
    found = {f"acc_{name}": proportion(right[[task == name for task in tasks]].mean(axis=1)) for name in names}
    return found | {"acc_avg": mean([entry["value"] for entry in found.values()])}
