"""How much GPU memory a QLoRA run needs: weights, LoRA with its optimizer, a judge model where answers are compared by
one, PPO's critic, and the largest of what generation, the backward pass and the critic's pass hold at once.

The LoRA counts are exact. The weights come out at 2.23 GiB for Qwen2.5-3B where 2.22 was reported, and the
only peak known for a T4 (13.60 GiB) is overestimated by 5 %. Treat the rest as ± 20 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from explorl.errors import ConfigError

GIB = 1024**3
CONTEXT_GIB = 0.9
MARGIN = 1.08
NF4_BYTES = 0.516
DYNAMIC_4BIT = 1.24
LOGIT_CHUNK = 1024


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder-only model that memory depends on."""

    hidden: int
    mlp: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    tied: bool

    @property
    def linear_parameters(self) -> int:
        """Weights of the projections inside the layers: the part that is quantised."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.mlp)

    @property
    def embedding_parameters(self) -> int:
        """Weights of the embedding and, where it is not tied, of the output head: never quantised."""
        return self.vocabulary * self.hidden * (1 if self.tied else 2)


SHAPES = {
    "qwen2.5-0.5b": Shape(896, 4864, 24, 14, 2, 64, 151936, True),
    "qwen2.5-1.5b": Shape(1536, 8960, 28, 12, 2, 128, 151936, True),
    "qwen2.5-3b": Shape(2048, 11008, 36, 16, 2, 128, 151936, True),
    "llama-3.2-3b": Shape(3072, 8192, 28, 24, 8, 128, 128256, True),
    "llama-3.1-8b": Shape(4096, 14336, 32, 32, 8, 128, 128256, False),
    "phi-3.5-mini": Shape(3072, 8192, 32, 32, 32, 96, 32064, False),
    "qwen3-4b": Shape(2560, 9728, 36, 32, 8, 128, 151936, True),
    "qwen2.5-math-1.5b": Shape(1536, 8960, 28, 12, 2, 128, 151936, True),
    "qwen2.5-math-7b": Shape(3584, 18944, 28, 28, 4, 128, 152064, False),
    "qwen2.5-7b": Shape(3584, 18944, 28, 28, 4, 128, 152064, False),
    "qwen2.5-14b": Shape(5120, 13824, 48, 40, 8, 128, 152064, False),
    "octothinker-3b": Shape(3072, 8192, 28, 24, 8, 128, 128256, True),
    "deepseek-llm-7b": Shape(4096, 11008, 30, 32, 32, 128, 102400, False),
}
JUDGE_PARAMETERS = {"verifier": 1.54e9, "nli": 0.89e9}
"""Equalities that are models of their own, held in 16 bits beside the policy."""


@dataclass(frozen=True)
class Demand:
    """What a run asks of the GPU: lengths in tokens, ``rows`` sequences per pass, ``prompts`` · ``group_size``
    completions generated at once, or ``at_once`` of them where no group is sampled in training.

    ``trained`` is False where the policy is only evaluated; ``judge_parameters`` are those of a judge model.
    ``critic`` is its body, ``copy`` or ``policy`` (empty: none), which reads ``critic_rows`` completions per pass;
    ``held_out`` completions are sampled at once to look at it.
    """

    shape: Shape
    rank: int
    group_size: int
    prompt_tokens: int
    completion_tokens: int
    rows: int
    prompts: int = 1
    four_bit: bool = True
    trained: bool = True
    at_once: int | None = None
    judge_parameters: float = 0.0
    critic: str = ""
    critic_rows: int = 0
    held_out: int = 0

    @property
    def completions(self) -> int:
        """B·G, the completions of a step."""
        return self.prompts * self.group_size

    @property
    def generated(self) -> int:
        """Completions that are generated at once."""
        return max(self.completions, self.held_out) if self.at_once is None else self.at_once

    @property
    def weight_bytes(self) -> float:
        """Of one weight inside the layers."""
        return NF4_BYTES * DYNAMIC_4BIT if self.four_bit else 2


def lora_parameters(shape: Shape, rank: int) -> int:
    """Trainable parameters of LoRA on q, k, v, o, gate, up and down.

    >>> lora_parameters(SHAPES["qwen2.5-3b"], 64)
    119734272
    """
    query, key = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    per_rank = 2 * (shape.hidden + query) + 2 * (shape.hidden + key) + 3 * (shape.hidden + shape.mlp)
    return shape.layers * rank * per_rank


def memory_parts(demand: Demand) -> dict[str, float]:
    """The parts of the peak in GiB: Unsloth without vLLM, one packed forward per micro-batch.

    Generation, backward and the critic's pass (``valuing``) do not happen together: only the largest counts.
    """
    s, d = demand.shape, demand
    tokens = d.rows * (d.prompt_tokens + d.completion_tokens)
    layer = _layer_bytes(s) * tokens
    offload_window = 2 * 2 * s.hidden * tokens
    logits = 10 * min(d.rows * d.completion_tokens, LOGIT_CHUNK) * s.vocabulary
    length = d.prompt_tokens + d.completion_tokens
    cache = 4 * d.generated * length * s.layers * s.kv_heads * s.head_dim
    prefill = _forward_bytes(s) * d.generated * d.prompt_tokens
    parts = {
        "weights": d.weight_bytes * s.linear_parameters + 2 * s.embedding_parameters,
        "lora": (10 if d.trained else 4) * lora_parameters(s, d.rank),
        "judge": 2 * d.judge_parameters,
        "critic": _critic_bytes(d),
        "generation": cache + 8 * d.generated * s.vocabulary + prefill,
        "backward": (offload_window + layer + logits) if d.trained else 0,
        "valuing": _valuing_bytes(d),
    }
    return {name: size / GIB for name, size in parts.items()} | {"context": CONTEXT_GIB}


def _layer_bytes(s: Shape) -> float:
    """What one layer keeps of a token for its backward pass, in 16 bits."""
    return 2 * (24 * s.hidden + 4 * s.mlp)


def _forward_bytes(s: Shape) -> float:
    """What one layer holds of a token while it is passed without gradient, in 16 bits."""
    return 2 * (8 * s.hidden + 4 * s.mlp)


def _critic_bytes(d: Demand) -> float:
    """Held throughout: the head, and a copied body with its adapter; all that is trained takes AdamW in fp32."""
    if not d.critic:
        return 0
    s = d.shape
    head = 16 * (s.hidden * (s.hidden + 2) + 1)
    body = d.weight_bytes * s.linear_parameters + 2 * s.vocabulary * s.hidden + 16 * lora_parameters(s, d.rank)
    return head + (body if d.critic == "copy" else 0)


def _valuing_bytes(d: Demand) -> float:
    """Of one pass through the critic: a copied body keeps every layer for the backward pass, as it recomputes none."""
    s, tokens = d.shape, d.critic_rows * (d.prompt_tokens + d.completion_tokens)
    body = s.layers * _layer_bytes(s) if d.critic == "copy" else _forward_bytes(s)
    return body * tokens + 12 * s.hidden * d.critic_rows * d.completion_tokens if d.critic else 0


def need_gib(demand: Demand) -> float:
    """Peak GPU memory in GiB, with a margin of 8 %."""
    parts = memory_parts(demand)
    peak = max(parts.pop(name) for name in ("generation", "backward", "valuing"))
    return MARGIN * (sum(parts.values()) + peak)


def ladder(demand: Demand) -> Iterator[tuple[str, int | str, Demand]]:
    """Ever smaller demands in the order that costs least: rows, prompts, the critic's rows and its body, completion
    length, group size, rank.

    Rows stay divisors of B·G. Group size stops at 4, since two completions that tie give no gradient;
    completion length stops at 256 tokens, rank at 8.

    Yields:
        The field of the demand, its old value and the demand after the change.
    """
    floors = {"rows": 1, "prompts": 1, "critic_rows": 1, "completion_tokens": 256, "group_size": 4, "rank": 8}
    for field, floor in floors.items():
        if field == "completion_tokens" and demand.critic == "copy":
            demand = replace(demand, critic="policy")
            yield "critic", "copy", demand
        if field == "prompts" and demand.at_once is not None:
            continue  # no groups are sampled
        while (old := getattr(demand, field)) > floor:
            new = max(floor, old // 2)
            if field == "rows":
                new = max(n for n in range(1, new + 1) if demand.completions % n == 0)
            demand = replace(demand, **{field: new})
            yield field, old, demand


def shape_of(backbone: str) -> Shape:
    """The sizes of a backbone, from the table or from its cached configuration.

    >>> shape_of("unsloth/Qwen2.5-3B-Instruct").layers
    36
    """
    name = backbone.rsplit("/", 1)[-1].casefold().removeprefix("meta-")
    for known, shape in SHAPES.items():
        if name.startswith(known):
            return shape
    try:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(backbone, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(
            "backbone", backbone, f"one of {', '.join(SHAPES)}, or a model whose configuration is cached"
        ) from error
    heads = config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // heads
    return Shape(
        config.hidden_size, config.intermediate_size, config.num_hidden_layers, heads,
        getattr(config, "num_key_value_heads", heads), width, config.vocab_size, config.tie_word_embeddings,
    )
