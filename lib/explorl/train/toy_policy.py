"""The embedded toy policy: a Qwen2 of about 0.2 million parameters that knows the world of ``tasks/digits``.

Its tokens are the world's phrases: a whole sentence, an operation, a value. A completion with three strategies is
some 40 tokens long, so two CPU cores train it in two minutes. It comes with three warm starts, made by
``python -m explorl.train.warm_start`` (seeded; checksums in ``toy_weights/<start>/SHA256``).
"""

from __future__ import annotations

import hashlib
from importlib.resources import files

from explorl.errors import ConfigError
from explorl.tasks import digits

MAX_TOKENS = 72
"""Positions of the model: a prompt of 5 tokens, :data:`MAX_BLOCKS` strategies of 11, a final answer of 4, and room."""
MAX_BLOCKS = 5
"""Strategies that there are tokens to number."""
WEIGHTS = files("explorl.train") / "toy_weights"
STARTS = ("habits", "right", "wrong")
"""Warm starts; what each has learned stands in :data:`explorl.train.warm_start.STARTS`."""

# Where a text falls apart into tokens: a pattern of shapes, much faster to match than an alternation of all tokens.
BOUNDARIES = "|".join((
    r"Numbers: ", r"\. The answer ends in \d\.",
    r'<strategy id="', r'\d"><reasoning>', r"</reasoning><strategy_outcome>", r"</strategy_outcome></strategy>",
    r"</?final_answer>", r"[A-Z][A-Za-z',: ]+\.", r" [-+*] \d", r" = \d+", r", \d+", r"\d+", r"<eos>|<pad>",
))


def vocabulary() -> list[str]:
    """Every token, in a fixed order; ids 0 and 1 are padding and end of sequence."""
    values = range(0, (2 * digits.HIGH) * digits.HIGH + 1)
    numbers = range(digits.LOW, digits.HIGH + 1)
    tokens = ["<pad>", "<eos>", "Numbers: "]
    tokens += [f". The answer ends in {d}." for d in range(10)]
    tokens += ['<strategy id="', *(f'{i}"><reasoning>' for i in range(1, MAX_BLOCKS + 1))]
    tokens += ["</reasoning><strategy_outcome>", "</strategy_outcome></strategy>", "<final_answer>", "</final_answer>"]
    tokens += list(digits.STORY_OF)
    tokens += [f" {sign} {n}" for sign in "+-*" for n in numbers]
    tokens += [form.format(v) for form in ("{}", ", {}", " = {}") for v in values]
    return tokens


def choice_tokens() -> list[str]:
    """The tokens that decide: one more strategy or the final answer, and which sentence."""
    return ['<strategy id="', "<final_answer>", *digits.STORY_OF]


def tokenizer():
    """The word-level tokenizer over :func:`vocabulary`; decoding gives back the exact text.

    >>> t = tokenizer()
    >>> t.decode(t("Numbers: 7, 4, 9. The answer ends in 7.")["input_ids"])
    'Numbers: 7, 4, 9. The answer ends in 7.'
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokens = vocabulary()
    raw = Tokenizer(models.WordLevel({t: i for i, t in enumerate(tokens)}, unk_token="<pad>"))
    raw.pre_tokenizer = pre_tokenizers.Split(Regex(BOUNDARIES), "isolated")
    raw.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", unk_token="<pad>",
                                   padding_side="left", clean_up_tokenization_spaces=False,
                                   model_max_length=MAX_TOKENS)


def untrained(tok, *, seed: int, width: int = 64, layers: int = 3, heads: int = 4):
    """A freshly initialised Qwen2 for the tokenizer ``tok`` (float32, CPU)."""
    import torch
    from transformers import Qwen2Config, Qwen2ForCausalLM

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Qwen2ForCausalLM(Qwen2Config(
            vocab_size=len(tok), hidden_size=width, intermediate_size=2 * width, num_hidden_layers=layers,
            num_attention_heads=heads, num_key_value_heads=heads, max_position_embeddings=MAX_TOKENS,
            tie_word_embeddings=True, initializer_range=0.05, pad_token_id=tok.pad_token_id,
            eos_token_id=tok.eos_token_id, bos_token_id=None))
    model.generation_config.pad_token_id = tok.pad_token_id
    model.generation_config.eos_token_id = tok.eos_token_id
    return model


def checksum(start: str = "habits") -> str:
    """SHA-256 of the packaged weights of a warm start."""
    return hashlib.sha256((WEIGHTS / start / "model.safetensors").read_bytes()).hexdigest()


def load(start: str = "habits"):
    """A warm-started policy from the package: (model, tokenizer).

    Args:
        start: one of :data:`STARTS`.

    Raises:
        ConfigError: unknown start, or its weights are absent or not the ones that the checksum names.
    """
    from safetensors.torch import load as read_safetensors

    if start not in STARTS:
        raise ConfigError("start", start, f"one of {', '.join(STARTS)}")
    folder = WEIGHTS / start
    expected = (folder / "SHA256").read_text().split()[0] if (folder / "SHA256").is_file() else "missing"
    if expected == "missing" or checksum(start) != expected:
        raise ConfigError("backbone", "toy", "backed by intact packaged weights; reinstall explorl, or make them "
                          f"again with `python -m explorl.train.warm_start {start}`")
    tok = tokenizer()
    model = untrained(tok, seed=0)
    state = read_safetensors((folder / "model.safetensors").read_bytes())
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ConfigError("backbone", "toy", f"weights that fit the model; missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model, tok
