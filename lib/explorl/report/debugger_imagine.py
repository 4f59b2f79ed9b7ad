"""What the debugger shows of IMAGINE: how unfamiliar a completion is, and what that adds to its advantage."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from explorl.papers.imagine import IMAGINE, RIGHT, Config, decay
from explorl.papers.method import Batch
from explorl.report import debugger
from explorl.report.debugger import Stage

OURS = ("novelty_error", "bonus", "rnd_loss")
_SCALE = {"minmax": "(r − min)/(max − min)", "quantile": "from the 5 % to the 95 % quantile", "rank": "rank",
          "running_std": "r over the deviation of all errors so far"}
_SOURCE = {"rnd": "novelty", "none": "novelty is measured and not paid", "uniform": "control: a random draw",
           "constant": "control: the same for each", "length": "control: by length",
           "shuffled": "control: another row's"}


def stages(batch: Batch, index: int, method: IMAGINE, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """The base method's stages, then tokens, error, scale, mask, decay, bonus, and the advantage without it."""
    outcome = {name: values for name, values in components.items() if name not in OURS}
    inside = debugger.provider_of(method.base)(batch, index, method.base, outcome)
    return [*inside, *_novelty(batch, index, method, components), *_bonus(batch, index, method, components),
            _before(batch, index, method, components)]


def _novelty(batch: Batch, index: int, method: IMAGINE, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """What the networks saw, and how unfamiliar they find it."""
    mask = method.laid_out(batch)[1]
    start, room = method.config.max_prompt_tokens, method.config.max_completion_tokens
    asked, written = int(mask[index, :start].sum()), int(mask[index, start:].sum())
    errors = np.asarray(components["novelty_error"], dtype=np.float64)
    place = int((errors > errors[index]).sum()) + 1
    tied = int((errors == errors[index]).sum()) - 1
    why = f"rank {place} of {len(errors)} in the batch" + (f", with {tied} others" if tied else "")
    return [
        Stage("tokens", f"{asked} of the prompt, at most {start}", f"{written} of the completion",
              f"cut at {room}" if written == room else f"at most {room}"),
        Stage("novelty error r", f"predictor after {method.novelty.calls} updates", f"{errors[index]:.3g}", why,
              "eq 5"),
    ]


def _bonus(batch: Batch, index: int, method: IMAGINE, components: Mapping[str, np.ndarray]) -> list[Stage]:
    """From the error to R*; n is the number of updates so far, which a reader of :meth:`still` does not advance."""
    config, n = method.config, method.novelty.calls
    right = bool(np.asarray(components[method.right])[index] >= RIGHT)
    extra = float(components["bonus"][index])
    return [
        Stage("eligible?", f"{method.right} = {float(components[method.right][index]):g}",
              not (right and config.error_mask), _mask_reason(right, config), "eq 6"),
        Stage("decay", f"γ = {config.decay_gamma:g}, n = {n}", decay(n, config), "γ/(γ + n)", "eq 9"),
        Stage("bonus R*", f"{_SCALE[config.novelty_scale]} over the {config.minmax_scope}, α = {config.alpha:g}",
              extra, _SOURCE[config.bonus_source] + (", centred" if config.center_bonus else ""), "eq 9"),
    ]


def _mask_reason(right: bool, config: Config) -> str:
    if not config.error_mask:
        return "the mask is off"
    return "a right answer gets no bonus" if right else "a wrong answer may get one"


def _before(batch: Batch, index: int, method: IMAGINE, components: Mapping[str, np.ndarray]) -> Stage:
    total = np.asarray(method.base.aggregate(components, batch), dtype=np.float64)
    weight = method.base.advantages(total, components, batch).values[index]
    how = ("the bonus is added to it" if method.config.integration == "post"
           else "as it would be; the bonus is added to the score instead")
    return Stage("advantage without bonus", f"by {method.base.name}", float(np.mean(weight)), how, "eq 7")
