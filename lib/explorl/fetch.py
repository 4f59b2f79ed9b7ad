"""Download and cache what real runs need, once, so that they work offline afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from explorl.errors import ConfigError


@dataclass(frozen=True)
class Model:
    """A model on the hub, at one commit where we know it (``main`` otherwise)."""

    hub: str
    revision: str = "main"
    ignore: tuple[str, ...] = ("*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf", "onnx/*", "openvino/*",
                               "original/*")


MODELS = {
    "minilm": Model("sentence-transformers/all-MiniLM-L6-v2", "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"),
    "Qwen/Qwen2.5-3B-Instruct": Model("Qwen/Qwen2.5-3B-Instruct", "aa8e72537993ba99e69dfaafa59ed015b17504d1"),
    "unsloth/Qwen2.5-3B-Instruct": Model("unsloth/Qwen2.5-3B-Instruct-unsloth-bnb-4bit"),
    "unsloth/Llama-3.2-3B-Instruct": Model("unsloth/Llama-3.2-3B-Instruct-unsloth-bnb-4bit"),
    "unsloth/Llama-3.1-8B-Instruct": Model("unsloth/Llama-3.1-8B-Instruct-unsloth-bnb-4bit"),
    "unsloth/Phi-3.5-mini-instruct": Model("unsloth/Phi-3.5-mini-instruct-bnb-4bit"),
    "unsloth/Qwen2.5-Math-1.5B": Model("unsloth/Qwen2.5-Math-1.5B-bnb-4bit"),
    "unsloth/Qwen2.5-Math-1.5B-Instruct": Model("unsloth/Qwen2.5-Math-1.5B-Instruct-bnb-4bit"),
    "unsloth/Qwen2.5-Math-7B": Model("unsloth/Qwen2.5-Math-7B-bnb-4bit"),
    "unsloth/Qwen2.5-Math-7B-Instruct": Model("unsloth/Qwen2.5-Math-7B-Instruct-bnb-4bit"),
    "unsloth/Qwen2.5-3B": Model("unsloth/Qwen2.5-3B-unsloth-bnb-4bit"),
    "unsloth/Qwen2.5-7B": Model("unsloth/Qwen2.5-7B-unsloth-bnb-4bit"),
    "unsloth/Qwen2.5-14B": Model("unsloth/Qwen2.5-14B-unsloth-bnb-4bit"),
    "OctoThinker/OctoThinker-3B-Long-Base": Model("OctoThinker/OctoThinker-3B-Long-Base"),
    "verifier": Model("TIGER-Lab/general-verifier"),
    "nli": Model("microsoft/deberta-v2-xlarge-mnli"),
}
"""What a params file calls ``backbone``, ``encoder`` or ``equality`` → what is read for it (Unsloth's copies in 4
bits)."""


def names() -> list[str]:
    """Everything that has a short name: data sets first."""
    from explorl.tasks import DATA_SETS

    return [*DATA_SETS, *MODELS]


def fetch(name: str, *, download: Callable[..., str] | None = None) -> str:
    """Download one thing into the hub's cache.

    Args:
        name: a data set, or what a params file calls its backbone, encoder or equality: one of :func:`names`, or any
            hub id of a model, such as ``BAAI/bge-small-en-v1.5``.
        download: stands in for ``huggingface_hub.snapshot_download``.

    Returns:
        One line that says what is there now.

    Raises:
        ConfigError: unknown name, or neither the hub nor a cached copy can be read.
    """
    from explorl.tasks import DATA_SETS
    from explorl.tasks import fetch as fetch_rows

    if name in DATA_SETS:
        return f"{name}: {fetch_rows(name)} rows"
    is_hub_id = name.count("/") == 1 and not name.startswith((".", "/", "~"))
    model = MODELS.get(name) or (Model(name) if is_hub_id else None)
    if model is None:
        raise ConfigError("name", name, f"one of {', '.join(names())}, or a hub id of the form owner/name")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        get = download or snapshot_download
        get(model.hub, revision=model.revision, ignore_patterns=list(model.ignore))
    except (OSError, LocalEntryNotFoundError, HfHubHTTPError) as error:
        why = "HF_HUB_OFFLINE is set" if os.environ.get("HF_HUB_OFFLINE") else "is there a network?"
        raise ConfigError("name", name, f"reachable: {model.hub} could not be read ({type(error).__name__}; "
                          f"{why}). Run this elsewhere and copy the cache ($HF_HOME)") from error
    return f"{name}: {model.hub} at {model.revision}"
