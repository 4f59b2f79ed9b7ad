"""Will it fit on a T4, how long will it take, and is this machine ready? Asked before a model is downloaded.

What is asked follows :mod:`explorl.train.demand`, memory :mod:`explorl.train.memory`. The times are a range from
published runs of other settings: nobody measured ours.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from explorl.errors import ConfigError
from explorl.train.demand import (
    CPU_BACKBONES, LIMIT_GIB, MINUTES_BASIS, UNTRAINED_ARMS, basis, demand_of, evaluation_batch, minutes,
)
from explorl.train.memory import GIB, ladder, lora_parameters, memory_parts, need_gib

__all__ = ["CPU_BACKBONES", "LIMIT_GIB", "MINUTES_BASIS", "UNTRAINED_ARMS", "Check", "Estimate", "Rung", "checks",
           "demand_of", "estimate", "evaluation_batch", "minutes", "precision", "require_fit", "unsloth_first",
           "version_drift"]

PARAMS_FIELD = {"rows": "micro_batch", "prompts": "prompts_per_step", "critic": "critic_body",
                "completion_tokens": "max_completion_tokens", "rank": "lora_r"}
DISK_GIB = 8.0
WATCHED = ("torch", "torchvision", "numpy", "transformers", "trl", "peft", "unsloth")


@dataclass(frozen=True)
class Rung:
    """One step down the ladder: what to change, and the memory that is left to find after it."""

    field: str
    old: int | str
    new: int | str
    need_gib: float

    def __str__(self) -> str:
        return f"{self.field}: {self.old} → {self.new} (then {self.need_gib:.1f} GiB)"


@dataclass(frozen=True)
class Estimate:
    """Memory and time of a run on a T4.

    Attributes:
        need_gib: peak GPU memory, margin included.
        parts: the parts of it in GiB, before the margin: weights, lora, judge, critic, context, and generation,
            backward and valuing, of which only the largest counts.
        lora_parameters: trainable parameters, exact.
        host_gib: RAM that offloaded activations take.
        rungs: cumulative changes after which it fits; empty where it fits already.
        minutes: (low, high) for all arms and seeds; a range that nobody measured.
        minutes_basis: where that range comes from.
    """

    need_gib: float
    parts: Mapping[str, float]
    lora_parameters: int
    host_gib: float
    rungs: tuple[Rung, ...]
    minutes: tuple[float, float]
    minutes_basis: str = MINUTES_BASIS

    @property
    def fits(self) -> bool:
        """Whether the need stays within 14.0 of the card's 14.56 GiB."""
        return self.need_gib <= LIMIT_GIB

    @property
    def next_rung(self) -> Rung | None:
        """The first change to make, or None where the run fits."""
        return self.rungs[0] if self.rungs else None


def estimate(params: Any) -> Estimate:
    """Memory and time of a run on a T4.

    Args:
        params: a mapping or an object with the flat names of a params file: ``backbone``, ``lora_r``,
            ``group_size``, ``max_sequence_tokens``, ``max_completion_tokens``, ``steps`` and, optionally,
            ``load_in_4bit``, ``micro_batch``, ``prompts_per_step``, ``arms``, ``seeds``, ``eval_problems``,
            ``eval_samples``, ``eval_every``, ``equality``, ``num_iterations``, and what PPO's and DAPO's arms add.

    Raises:
        ConfigError: the backbone's sizes are not known, it needs no GPU, or the completion leaves no room
            for a prompt.
    """
    demand = demand_of(params)
    rungs: list[Rung] = []
    need = need_gib(demand)
    if need > LIMIT_GIB:
        for name, old, smaller in ladder(demand):
            rungs.append(Rung(PARAMS_FIELD.get(name, name), old, getattr(smaller, name), need_gib(smaller)))
            if rungs[-1].need_gib <= LIMIT_GIB:
                break
    tokens = demand.rows * (demand.prompt_tokens + demand.completion_tokens)
    host = 2 * demand.shape.layers * demand.shape.hidden * tokens / GIB
    trainable = lora_parameters(demand.shape, demand.rank)
    return Estimate(need, memory_parts(demand), trainable, host, tuple(rungs), minutes(params), basis(params))


def require_fit(params: Any) -> Estimate:
    """The estimate, or a refusal that says what to cut.

    Raises:
        ConfigError: the run needs more than 14.0 GiB; names the next rung of the ladder.
    """
    result = estimate(params)
    if not result.fits:
        allowed = f"at most {LIMIT_GIB} GiB on a T4. Next: {'; '.join(map(str, result.rungs))}"
        raise ConfigError("memory", f"{result.need_gib:.1f} GiB", allowed)
    return result


@dataclass(frozen=True)
class Check:
    """One thing looked at: whether it is as it should be, what was found, and what to do where it is not."""

    name: str
    ok: bool
    found: str
    remedy: str = ""


def precision(capability: Sequence[int]) -> str:
    """``bfloat16`` from compute capability 8.0 on, else ``float16``.

    A T4 is 7.5. PyTorch's own question, ``is_bf16_supported``, says yes there, because bf16 can be emulated.

    >>> precision((7, 5)), precision((8, 0))
    ('float16', 'bfloat16')
    """
    return "bfloat16" if tuple(capability) >= (8, 0) else "float16"


def version_drift(loaded: Mapping[str, str], installed: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Packages whose version in memory is not the one on disk: name → (in memory, on disk).

    Build tags after ``+`` count only where both sides have one.

    >>> version_drift({"torch": "2.8.0+cu126"}, {"torch": "2.9.1"})
    {'torch': ('2.8.0+cu126', '2.9.1')}
    """
    def differs(here: str, there: str) -> bool:
        return here != there if "+" in here and "+" in there else here.split("+")[0] != there.split("+")[0]

    return {name: (here, installed[name]) for name, here in loaded.items()
            if name in installed and differs(here, installed[name])}


def checks(params: Any = None, *, folder: str | Path = ".") -> list[Check]:
    """Look at this machine: packages, disk, GPU and its free memory, and that Unsloth came first.

    Args:
        params: a params file's values; adds the check that the estimated need fits the free memory.
        folder: where the run writes; its disk is looked at.
    """
    free_disk = shutil.disk_usage(folder).free / GIB
    found = [
        _versions(),
        Check("disk", free_disk >= DISK_GIB, f"{free_disk:.0f} GiB free", f"free {DISK_GIB:.0f} GiB"),
    ]
    return found + _gpu(params)


def _versions() -> Check:
    loaded = {name: getattr(sys.modules[name], "__version__", "") for name in WATCHED if name in sys.modules}
    installed = {}
    for name in loaded:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    drift = version_drift({name: version for name, version in loaded.items() if version}, installed)
    text = ", ".join(f"{name} {here} in memory, {there} on disk" for name, (here, there) in drift.items())
    return Check("versions", not drift, text or "memory and disk agree", "restart the runtime and run again")


def _gpu(params: Any) -> list[Check]:
    import torch

    if not torch.cuda.is_available():
        return [Check("gpu", False, "no GPU", "choose a GPU runtime, or backbone: toy, which needs none")]
    capability = torch.cuda.get_device_capability()
    free = torch.cuda.mem_get_info()[0] / GIB
    found = [
        Check("gpu", True, f"{torch.cuda.get_device_name()}, {precision(capability)}"),
        unsloth_first(sys.modules),
    ]
    if params is not None:
        need = estimate(params).need_gib
        found.append(Check("memory", need <= free, f"{need:.1f} GiB needed (± 20 %), {free:.1f} GiB free",
                           "restart the runtime, or take the next rung of the estimate"))
    return found


def unsloth_first(modules: Mapping[str, Any]) -> Check:
    """Whether Unsloth has replaced TRL's trainer: it does so only where it is imported before TRL.

    Args:
        modules: ``sys.modules``.
    """
    remedy = "restart the runtime and make `import unsloth` the first import"
    if "unsloth" not in modules:
        return Check("unsloth", "trl" not in modules, "not imported yet", remedy)
    name = getattr(getattr(modules.get("trl"), "GRPOTrainer", None), "__name__", "no trainer")
    return Check("unsloth", name == "UnslothGRPOTrainer", f"trl.GRPOTrainer is {name}", remedy)
