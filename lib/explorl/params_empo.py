"""What a run of the EMPO chapter may be told."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from explorl.params_run import Positive, RunParams, Share, Weight

if TYPE_CHECKING:
    from explorl.papers import empo

EMPOArm = Literal["base", "empo", "empo_log", "vote", "supervised", "random", "sft"]


class EMPOParams(RunParams):
    """The EMPO chapter's parameters: the shared ones, the policy's start, and what decides a group's reward."""

    chapter: Literal["empo"]
    arms: Annotated[list[EMPOArm], Field(min_length=1)]

    task: Literal["digits", "gsm8k", "numina", "natural"]
    eval_tasks: list[Literal["math500", "amc23", "aime24", "minerva", "olympiad", "mmlu_pro", "gpqa"]] = []
    beta_kl: Weight = 0.0
    start: Literal["right", "wrong", "habits"] = "right"
    equality: Literal["exact", "numeric", "choice", "math", "loose", "verifier", "nli"] = "math"
    answer_from: Literal["boxed", "final_tag", "anywhere"] = "boxed"
    rule: Literal["first_match", "last_match", "connected"] = "first_match"
    blank: Literal["zero", "share", "minus_half"] = "zero"
    gate: Literal["entropy", "frequency", "none"] = "entropy"
    delta_low_nats: Weight = 0.0
    delta_high_nats: Positive | None = None
    min_share: Share = 0.25
    filtered: Literal["drop", "zero"] = "drop"
    adv_eps: Positive = 1e-4
    adv_clip: Positive | None = None

    @property
    def chosen_modules(self) -> tuple[str, ...]:
        """The tasks', and the judges' where a model compares answers."""
        from explorl.tasks import module

        tasks = {module(name).__name__.removeprefix("explorl.") for name in (self.task, *self.eval_tasks)}
        return *sorted(tasks), *(("judge_models", "judges") if self.equality in ("verifier", "nli") else ())

    def empo_config(self, **changes: object) -> empo.Config:
        """The reward's settings, with changes such as ``reward="log_p"``."""
        from explorl.papers.empo import Config

        shared = {f.name for f in fields(Config)} & set(type(self).model_fields)
        return Config(**{name: getattr(self, name) for name in shared} | changes)
