"""Sample completions from a policy for evaluation, without disturbing the training around it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from explorl.errors import ConfigError

if TYPE_CHECKING:
    import torch

Prompt = str | list[dict[str, str]]


@dataclass(frozen=True)
class Completion:
    """One sampled answer.

    Attributes:
        text: decoded without special tokens.
        ids: token ids, end-of-sequence included where it was reached.
        truncated: true where the token limit came before the end of the sequence.
    """

    text: str
    ids: list[int]
    truncated: bool


def sample(
    policy_model: Any,
    tokenizer: Any,
    prompts: Sequence[Prompt],
    *,
    n: int = 1,
    temperature: float = 1.0,
    top_p: float = 1.0,
    max_new_tokens: int = 64,
    seed: int = 0,
    batch_size: int = 64,
) -> list[list[Completion]]:
    """Draw n completions for every prompt.

    Neither the global random state nor the model's train/eval mode is changed, and the result does not depend
    on them: the same seed, batch size and weights give the same completions, in the midst of training too.

    Args:
        policy_model: a Transformers causal language model, with or without an adapter.
        tokenizer: its tokenizer, with a padding token.
        prompts: texts, or lists of chat messages (put through the chat template).
        n: completions per prompt, ≥ 1.
        temperature: ≥ 0; 0 takes the likeliest token each time, and then the n completions are equal.
        top_p: nucleus, 0 < p ≤ 1.
        max_new_tokens: token limit, ≥ 1.
        seed: seed of the sampling, ≥ 0.
        batch_size: sequences per call of ``generate``, ≥ 1.

    Returns:
        One list of n completions for each prompt.

    Raises:
        ConfigError: a setting is out of its range, or the tokenizer has no padding token.

    >>> sample(None, None, ["2 + 2 ="], n=0)
    Traceback (most recent call last):
        ...
    explorl.errors.ConfigError: n = 0: must be an integer ≥ 1
    """
    import torch

    for name, value in (("n", n), ("max_new_tokens", max_new_tokens), ("batch_size", batch_size)):
        if not isinstance(value, int) or value < 1:
            raise ConfigError(name, value, "an integer ≥ 1")
    if temperature < 0:
        raise ConfigError("temperature", temperature, "≥ 0")
    if not 0 < top_p <= 1:
        raise ConfigError("top_p", top_p, "above 0 and at most 1")
    check_padding(tokenizer, policy_model)
    choice = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    if temperature > 0:
        choice = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
    encoded = [ids for prompt in prompts for ids in [encode(tokenizer, prompt)] * n]
    flat: list[Completion] = []
    with preserved_randomness(), inference_mode(policy_model), torch.no_grad():
        torch.manual_seed(seed)
        for start in range(0, len(encoded), batch_size):
            batch = encoded[start : start + batch_size]
            flat += _generate(policy_model, tokenizer, batch, max_new_tokens, choice)
    return [flat[i : i + n] for i in range(0, len(flat), n)]


def encode(tokenizer: Any, prompt: Prompt) -> list[int]:
    """Token ids of a prompt, as the trainer forms them: chat messages through the chat template."""
    if isinstance(prompt, str):
        return list(tokenizer(prompt)["input_ids"])
    text = tokenizer.apply_chat_template(prompt, tokenize=False, add_generation_prompt=True)
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def end_tokens(tokenizer: Any, model: Any) -> list[int]:
    """Ids that end a completion: the tokenizer's, and those of the model's generation settings."""
    configured = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ids = [configured] if isinstance(configured, int) else list(configured or [])
    return sorted({tokenizer.eos_token_id, *ids} - {None})


def check_padding(tokenizer: Any, model: Any) -> None:
    """Raise ConfigError unless there is a padding token that is no end token.

    Unsloth rebuilds its loss mask from the token ids, so where both are one token the end is never trained.
    """
    ends = end_tokens(tokenizer, model)
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id in ends:
        raise ConfigError("pad_token_id", tokenizer.pad_token_id, f"set, and none of the end tokens {ends}")


@contextmanager
def preserved_randomness() -> Iterator[None]:
    """Give back the global random states (torch, CUDA, numpy, random) as they were."""
    import torch

    python_state, numpy_state = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)


@contextmanager
def inference_mode(model: Any) -> Iterator[None]:
    """Evaluation mode (Unsloth's fast one where the model has it), and back to the mode before."""
    was_training = model.training
    model.eval()
    if hasattr(model, "for_inference"):
        model.for_inference()
    try:
        yield
    finally:
        if was_training and hasattr(model, "for_training"):
            model.for_training()
        model.train(was_training)


def _generate(
    model: Any, tokenizer: Any, encoded: list[list[int]], max_new_tokens: int, choice: dict
) -> list[Completion]:
    ends = end_tokens(tokenizer, model)
    input_ids, mask = _left_pad(encoded, tokenizer.pad_token_id, model.device)
    produced = model.generate(
        input_ids=input_ids, attention_mask=mask, max_new_tokens=max_new_tokens, repetition_penalty=1.0,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=ends, **choice,
    )[:, input_ids.shape[1] :].tolist()
    completions = []
    for row in produced:
        stop = next((i + 1 for i, token in enumerate(row) if token in ends), None)
        ids = row[:stop]
        completions.append(Completion(tokenizer.decode(ids, skip_special_tokens=True), ids, stop is None))
    return completions


def _left_pad(encoded: list[list[int]], pad_id: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    width = max(map(len, encoded))
    ids = [[pad_id] * (width - len(row)) + row for row in encoded]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in encoded]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)
