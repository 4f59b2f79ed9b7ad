"""The two models behind :mod:`explorl.judges`, each as a function from cases to labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

from explorl.errors import ConfigError
from explorl.judges import MAX_NEW_TOKENS, NEUTRAL, NO, YES, Ask, Case, decision, prompt

if TYPE_CHECKING:
    from transformers import BatchEncoding

CONTEXT_TOKENS = 4_096
"""Of a longer prompt the beginning is cut off; the classifier's own limit is lower."""


def verifier(hub: str, read: str, device: str) -> Ask:
    """A language model that judges whether two answers to a question are equivalent.

    Raises:
        OSError: the model is not on this machine.
        ConfigError: its tokenizer begins " Yes" and " No" with the same token.
    """
    tokenizer, model = _read(AutoModelForCausalLM, hub, device)
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    yes, no = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in (" Yes", " No"))
    if yes == no:
        raise ConfigError("model", hub, 'one whose tokenizer tells " Yes" and " No" apart')

    def tokens(cases: Sequence[Case]) -> dict[str, torch.Tensor]:
        texts = [_clean(prompt(*case, read=read)) for case in cases]
        encoded = _encode(tokenizer, model, texts, max_length=CONTEXT_TOKENS)
        return {name: encoded[name] for name in ("input_ids", "attention_mask")}

    @torch.inference_mode()
    def by_logits(cases: Sequence[Case]) -> list[str]:
        inputs = tokens(cases)
        positions = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp(min=0)  # padding, on the left, has none
        logits = model(**inputs, position_ids=positions).logits[:, -1]
        return [YES if row[yes] > row[no] else NO for row in logits]

    @torch.inference_mode()
    def by_text(cases: Sequence[Case]) -> list[str]:
        inputs = tokens(cases)
        limits = {"max_new_tokens": MAX_NEW_TOKENS, "do_sample": False, "pad_token_id": tokenizer.pad_token_id}
        written = model.generate(**inputs, **limits)[:, inputs["input_ids"].shape[1] :]
        return [decision(text) for text in tokenizer.batch_decode(written, skip_special_tokens=True)]

    return by_logits if read == "logits" else by_text


def classifier(hub: str, device: str) -> Ask:
    """A classifier of entailment: does the later answer follow from the earlier one?

    Raises:
        OSError: the model is not on this machine.
        ConfigError: it has other than three classes.
    """
    tokenizer, model = _read(AutoModelForSequenceClassification, hub, device)
    labels = _labels(hub, model.config.id2label)
    longest = min(tokenizer.model_max_length, model.config.max_position_embeddings or 512)

    @torch.inference_mode()
    def ask(cases: Sequence[Case]) -> list[str]:
        earlier = [_clean(f"{question} {a}".strip()) for question, a, _ in cases]
        later = [_clean(f"{question} {b}".strip()) for question, _, b in cases]
        logits = model(**_encode(tokenizer, model, earlier, later, max_length=longest)).logits
        return [labels[index] for index in logits.argmax(dim=-1).tolist()]

    return ask


def _labels(hub: str, names: dict[int, str]) -> list[str]:
    """The model's classes in its own order; unnamed ones are contradiction, neutral, entailment, as DeBERTa's."""
    found = [names[index].lower() for index in range(len(names))]
    if found == ["label_0", "label_1", "label_2"]:
        return [NO, NEUTRAL, YES]
    if sorted(found) != sorted([NO, NEUTRAL, YES]):
        raise ConfigError("model", hub, f"a classifier of {NO}, {NEUTRAL} and {YES}, not of {', '.join(found)}")
    return found


def _read(kind: type, hub: str, device: str) -> tuple:
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    dtype = torch.float32
    if device != "cpu":  # by capability: a T4 says that it can do bfloat16, and emulates it
        dtype = torch.bfloat16 if torch.cuda.get_device_capability() >= (8, 0) else torch.float16
    tokenizer = AutoTokenizer.from_pretrained(hub, local_files_only=True)
    model = kind.from_pretrained(hub, local_files_only=True, dtype=dtype)
    return tokenizer, model.to(device).eval()


def _encode(tokenizer, model, *texts: list[str], max_length: int) -> BatchEncoding:
    how = {"return_tensors": "pt", "padding": True, "truncation": True, "max_length": max_length}
    return tokenizer(*texts, **how).to(model.device)


def _clean(text: str) -> str:
    """A lone surrogate, which no tokenizer takes, becomes ``?``."""
    return text.encode("utf-8", "replace").decode("utf-8")
