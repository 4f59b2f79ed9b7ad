"""Rules that join the fields of a run; :mod:`explorl.params_run` asks them of every model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from explorl.errors import ConfigError

UNTRAINED = ("base", "single_trace", "multi_strategy")
DAPO_ARMS = ("dapo", "imagine_dapo")
TESTED_ON = {"gsm8k": (), "dapo_math": ("aime24",)} | dict.fromkeys(
    ("countdown", "countdown_34", "countdown_4"), ("countdown_34", "countdown_4"))
"""Task → the data sets beside its own whose answers are marked in the same way; tasks of one chapter alone."""

# A rule that joins fields: the fields it reads (the first is blamed), what must hold, and how to say it.
Rule = tuple[tuple[str, ...], Callable[..., bool], str]
RULES: tuple[Rule, ...] = (
    (("alpha", "beta_cap"), lambda alpha, cap: alpha > cap,
     "greater than beta_cap = {1}, else failing pays more than succeeding"),
    (("group_size", "arms"), lambda size, arms: size >= 2 or set(arms) <= set(UNTRAINED),
     "at least 2 where an arm is trained (a lone completion has no advantage)"),
    (("seeds",), lambda seeds: len(set(seeds)) == len(seeds), "different from one another"),
    (("arms",), lambda arms: len(set(arms)) == len(arms), "different from one another"),
    (("backbone", "task"), lambda backbone, task: backbone != "toy" or task == "digits",
     "another one than toy, which only knows task = 'digits', not {1!r}"),
    (("task", "backbone"), lambda task, backbone: task != "digits" or backbone == "toy",
     "another task: digits is written for backbone = 'toy', not {1!r}"),
    (("load_in_4bit", "backbone"), lambda four, backbone: not four or backbone not in ("toy", "smollm2"),
     "false for the packaged policy {1!r}"),
    (("lora_r", "load_in_4bit"), lambda r, four: r > 0 or not four,
     "at least 1 with load_in_4bit: 4-bit weights are not trained themselves"),
    (("lora_r", "backbone"), lambda r, backbone: r == 0 or backbone != "toy",
     "0 for the toy policy, which trains all its weights"),
    (("micro_batch", "prompts_per_step", "group_size"),
     lambda rows, prompts, group: rows is None or (prompts * group) % rows == 0,
     "a divisor of prompts_per_step * group_size = {1} * {2}"),
    (("max_completion_tokens", "max_sequence_tokens"), lambda completion, sequence: completion < sequence,
     "below max_sequence_tokens = {1}, which also holds the prompt"),
    (("canon", "task"), lambda canon, task: (canon == "choice") == (task == "medmcqa"),
     "'choice' for medmcqa and 'numeric' for every other task (here {1!r})"),
    (("eval_samples", "eval_temperature"), lambda samples, temperature: samples == 1 or temperature > 0,
     "1 at eval_temperature = 0, where all samples are the same"),
    (("arms", "task"),
     lambda arms, task: task != "digits" or not {"single_trace", "multi_strategy"} & set(arms),
     "without single_trace and multi_strategy, which are prompts for a pretrained model, not for digits"),
    (("delta_high_nats", "delta_low_nats"), lambda high, low: high is None or high > low,
     "null or above delta_low_nats = {1}, else no group is ever kept"),
    (("blank", "arms"), lambda blank, arms: blank != "minus_half" or "empo_log" not in arms,
     "zero or share with the arm empo_log: −0.5 is more than log p of most answers"),
    (("eval_tasks", "task"), lambda others, task: not others or task != "digits",
     "empty for digits, which has a test part of its own"),
    (("eval_tasks",), lambda others: len(set(others)) == len(others), "different from one another"),
    (("eval_tasks", "task"), lambda others, task: set(others) <= set(TESTED_ON.get(task, others)),
     "data sets whose answers are marked as those of task = {1!r}: aime24 goes with dapo_math, countdown_34 and "
     "countdown_4 with Countdown"),
    (("eval_tasks", "task"), lambda others, task: bool(others) or task != "dapo_math",
     "[aime24] with dapo_math, which has no part to test on"),
    (("steps", "num_iterations"), lambda steps, updates: steps % updates == 0,
     "a multiple of num_iterations = {1}, else the run ends in the midst of a batch"),
    (("save_every", "num_iterations"), lambda every, updates: every % updates == 0,
     "a multiple of num_iterations = {1}: no run goes on from the midst of a batch"),
    (("minmax_scope", "novelty_scale"), lambda scope, scale: scale != "running_std" or scope == "batch",
     "batch with novelty_scale = {1!r}, whose deviation is that of all errors so far"),
    (("dapo_overlong_buffer", "max_completion_tokens", "arms"),
     lambda buffer, limit, arms: not set(arms) & set(DAPO_ARMS) or buffer <= limit,
     "at most max_completion_tokens = {1}, of which it is the last part"),
    (("dapo_clip_high", "clip_epsilon", "arms"),
     lambda high, low, arms: not set(arms) & set(DAPO_ARMS) or high >= low,
     "at least clip_epsilon = {1}: DAPO clips higher above than below"),
    (("equality", "backbone"), lambda equality, backbone: equality not in ("verifier", "nli") or backbone != "toy",
     "exact, numeric or math for the toy policy: it writes numbers"),
    (("length_free_tokens", "max_completion_tokens", "arms"),
     lambda free, limit, arms: "cfl" not in arms or free < limit,
     "below max_completion_tokens = {1}, else the arm cfl never sees a long completion"),
)


def together(values: Mapping[str, object]) -> Iterator[ConfigError]:
    """The rules that join fields: one ConfigError per broken rule; those on absent fields are skipped.

    Args:
        values: fields that are each right on their own.

    >>> [str(problem) for problem in together({"alpha": 0.3, "beta_cap": 0.5})]
    ['alpha = 0.3: must be greater than beta_cap = 0.5, else failing pays more than succeeding']
    """
    for names, holds, allowed in RULES:
        if all(name in values for name in names):
            found = [values[name] for name in names]
            if not holds(*found):
                yield ConfigError(names[0], found[0], allowed.format(*found))
