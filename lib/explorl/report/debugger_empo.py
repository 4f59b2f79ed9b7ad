"""What the debugger shows of EMPO and of its baselines: one completion among the answers of its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from explorl.papers import empo
from explorl.papers.empo import Clustered, Clustering, Config
from explorl.papers.method import Batch
from explorl.report.debugger import Stage
from explorl.text import answers

SHOWN_MEMBERS = 16
_SOURCE = {"BOX": "content of the last box", "FA": "from <final_answer>", "ANS": "from <answer>",
           "SO": "the last strategy's outcome", "HASH": "after ####", "CUE": 'after "answer is"',
           "NUM": "no sign of an answer: the last number"}
_GATE = {
    empo.KEPT: "kept", "alone": "left out: nobody to agree with", "unanimous": "left out: one cluster, nothing to learn from",
    "all_different": "left out: no two answers agree", "entropy_low": "left out: entropy not above δ_low",
    "entropy_high": "left out: entropy not below δ_high", "share_low": "left out: no cluster is large enough",
}
_REWARD = {"empo": ("share of the cluster", "eq 6"), "empo_log": ("log of the share", "eq 6, first public code"),
           "vote": ("1 in the largest cluster", "TTRL"), "random": ("drawn from U(0, 1)", ""),
           "supervised": ("1 if the answer equals the reference", "eq 2")}


def stages(batch: Batch, index: int, method: Clustered, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """Answer, cluster, share, entropy and gate, reward, and what the group's rewards look like."""
    start = index - index % batch.group_size
    group = method.clustering(batch, start)
    row = {name: float(values[index]) for name, values in components.items()}
    paid = np.asarray(components["reward"][start : start + batch.group_size], dtype=np.float64)
    return [*_answer(group, batch, index, method.config, row), *_group(group, method),
            _reward(group, index - start, method, row), _contrast(paid, method.config)]


def _answer(group: Clustering, batch: Batch, index: int, config: Config, row: Mapping[str, float]) -> list[Stage]:
    """What the completion says, and who says the same."""
    place = index % batch.group_size
    blank, answer = bool(group.blank[place]), group.answers[place]
    members = [i for i, number in enumerate(group.ids) if number == group.ids[place]]
    spellings = Counter(group.answers[i] for i in members)
    written = ", ".join(f"{text} ×{count}" if count > 1 else text for text, count in spellings.items())
    named = ", ".join(str(i + 1) for i in members[:SHOWN_MEMBERS])
    named += ", …" if len(members) > SHOWN_MEMBERS else ""
    shown = [
        Stage("extracted answer", "the text", answer,
              "blank" if blank else _source(batch.completions[index], config) + _unread(group.reasons[place])),
        Stage("cluster", f"{len(group.ids)} answers, {config.rule.replace('_', ' ')}",
              "alone: no answer" if blank else f"completions {named}",
              "a blank opens its own cluster" if blank else f"written as {written}", "Algorithm 1"),
        Stage("share p(c)", f"{len(members)} of {len(group.ids)}", row["p"],
              "the largest cluster" if row["majority"] else "not the largest cluster", "eq 3"),
    ]
    if np.isfinite(row.get("oc", np.nan)):
        shown.insert(1, Stage("answer right?", f"{answer or '(none)'} against {batch.gold[index]}", row["oc"] > 0,
                              "for diagnosis: only the supervised baseline reads it"))
    return shown


def _source(completion: str, config: Config) -> str:
    if config.answer_from == "anywhere":
        return _SOURCE[answers.extract(completion)[1]]
    return _SOURCE["BOX"] if config.answer_from == "boxed" else "from <final_answer> or <answer>"


def _unread(reason: str) -> str:
    return "" if reason == "ok" else f"; not compared by its meaning: {reason}"


def _group(group: Clustering, method: Clustered) -> list[Stage]:
    """How sure the group is, and whether it counts."""
    sizes = sorted(Counter(group.ids).values(), reverse=True)
    most = np.log(len(group.ids))
    entropy = Stage("semantic entropy", f"cluster sizes {', '.join(map(str, sizes))}", group.entropy_nats,
                    f"nats; at most ln {len(group.ids)} = {most:.3f}", "eq 4")
    if not isinstance(method, empo.EMPO):
        return [entropy]
    code = empo.gate(group, method.config)
    return [entropy, Stage("gate", _bounds(method.config, len(group.ids)), code, _GATE[code], "eq 7")]


def _bounds(config: Config, size: int) -> str:
    if config.gate == "entropy":
        high = f"ln {size}" if config.delta_high_nats is None else f"{config.delta_high_nats:g}"
        return f"{config.delta_low_nats:g} < H < {high}"
    return "none" if config.gate == "none" else f"largest share at least {config.min_share:g}"


def _reward(group: Clustering, place: int, method: Clustered, row: Mapping[str, float]) -> Stage:
    why, equation = _REWARD.get(method.name, (method.name, ""))
    if not row["kept"]:
        why = "0: its group is left out"
    elif group.blank[place]:
        why = f"a blank: {method.config.blank.replace('_', ' ')}" if isinstance(method, empo.EMPO) else "a blank"
    return Stage("reward", "the cluster", row["reward"], why, equation)


def _contrast(paid: np.ndarray, config: Config) -> Stage:
    deviation = float(paid.std(ddof=1)) if len(paid) > 1 else 0.0
    flat = np.ptp(paid) < empo.FLAT
    why = "no contrast: exact zeros" if flat else f"advantage = (reward − mean)/(deviation + {config.adv_eps:g})"
    return Stage("group deviation", f"{len(paid)} rewards, mean {paid.mean():.3f}", deviation,
                 f"sample standard deviation; {why}", "eq 5")
