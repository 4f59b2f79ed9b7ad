"""What a run of the SD-E² chapter may be told."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from explorl.params_run import Count, CountOrNone, Inside, Positive, RunParams, Share, Weight

if TYPE_CHECKING:
    from explorl.papers import sde2

SDE2Arm = Literal["base", "single_trace", "multi_strategy", "cfl", "cfee", "sde2", "sde2_shuffled", "oc_fa",
                  "oc_fa_sd"]


class SDE2Params(RunParams):
    """The SD-E² chapter's parameters: the shared ones and all of :class:`explorl.papers.sde2.Config`."""

    chapter: Literal["sde2"]
    arms: Annotated[list[SDE2Arm], Field(min_length=1)]
    task: Literal["digits", "gsm8k", "aime", "medmcqa"]

    lambda_oc: Weight = 1.0
    lambda_re: Weight = 1.0
    gamma_s: Weight = 0.2
    gamma_a: Weight = 0.3
    gamma_c: Weight = 0.1
    alpha: Positive = 1.0
    beta_cap: Positive = 0.5
    rho: Weight = 0.1
    delta: Inside = 0.8
    delta_eval: Inside = 0.8
    eps: Positive = 1e-6
    w_oc: Weight = 1.0
    w_re: Weight = 1.0
    w_fa: Weight = 1.0
    w_sd: Weight = 1.0
    w_l: Weight = 1.0
    w_rd: Weight = 1.0
    length_free_tokens: CountOrNone = 256
    single_div: Share = 1.0
    dup_key: Literal["block", "reasoning", "id", "none"] = "block"
    final_requires_tag: bool = False
    re_mode: Literal["chi", "any_strategy"] = "chi"
    chi_mode: Literal["any", "with_final"] = "any"
    adv_std: bool = True
    relevance_floor: Annotated[float, Field(ge=-1, le=1)] | None = None
    uniq_against: Literal["kept", "all_previous"] = "kept"
    delta_inclusive: bool = True
    tie_tol: Weight = 1e-6
    norm_scope: Literal["batch", "group"] = "batch"
    canon: Literal["numeric", "choice"] = "numeric"
    num_pick: Literal["last", "single"] = "last"
    max_strategies: Count | None = None
    min_reasoning_chars: CountOrNone = 0

    def sde2_config(self) -> sde2.Config:
        """The reward's settings."""
        from explorl.papers.sde2 import Config

        return Config(**{f.name: getattr(self, f.name) for f in fields(Config)})
