"""A random Qwen2 of two layers with a word-level tokenizer, problems of unequal length, and two tiny methods."""

import random
from dataclasses import dataclass, field

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from explorl.papers import imagine
from explorl.papers.empo import EMPO, Config
from explorl.papers.method import Advantages, Batch, Method, group_normalise

WORDS = ["<pad>", "<eos>", "yes", "no"] + [f"w{i}" for i in range(28)]


@dataclass(frozen=True)
class Problem:
    prompt: str
    gold: str
    meta: dict = field(default_factory=dict)


@dataclass
class Policy:
    model: object
    tokenizer: object

    def describe(self):
        return {"kind": "tiny", "parameters": self.model.num_parameters()}


def tokenizer():
    raw = Tokenizer(models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="<pad>", eos_token="<eos>", padding_side="left")


def model(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = Qwen2ForCausalLM(Qwen2Config(
            vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
            num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.2, tie_word_embeddings=True,
            pad_token_id=0, eos_token_id=1, bos_token_id=None))
    net.generation_config.pad_token_id, net.generation_config.eos_token_id = 0, 1
    net.config._attn_implementation = "eager"
    return net


def policy(seed=0):
    return Policy(model(seed), tokenizer())


def problems(count=6):
    """Prompts of 2, 3, 4, 2, … words: unequal lengths pad differently in one batch."""
    return [Problem(" ".join(f"w{(i + k) % 28}" for k in range(2 + i % 3)), f"w{i}", {"number": i})
            for i in range(count)]


class Wordy(Method):
    """Component ``oc`` counts "yes", ``words`` the words; no text is better off for being well-formed."""

    name = "wordy"

    def components(self, batch: Batch):
        self.last = batch
        return {"oc": np.array([float("yes" in c.split()) for c in batch.completions]),
                "words": np.array([0.1 * len(c.split()) for c in batch.completions])}

    def aggregate(self, components, batch):
        return components["oc"] + components["words"]


class Scripted(Wordy):
    """Wordy, with completions that depend on prompt and place in the group alone."""

    name = "scripted"

    def rollout(self, prompts, trainer):
        ids = [trainer.processing_class(p)["input_ids"] for p in prompts]
        completions = []
        for i, prompt in enumerate(ids):
            draw = random.Random(f"{prompt} {i % trainer.num_generations}")
            words = [draw.randrange(2, len(WORDS)) for _ in range(draw.randint(2, 8))]
            completions.append(words[:-1] + [1] if len(words) < 8 else words)
        return {"prompt_ids": ids, "completion_ids": completions, "logprobs": None}


class Tilted(Scripted):
    """Adds a bonus after normalisation, so that advantages do not sum to zero in a group."""

    name = "tilted"

    def advantages(self, total, components, batch):
        return Advantages(group_normalise(total, batch.group_size) + 0.05 * np.arange(len(total)))


class PerToken(Scripted):
    """Advantage falling from the first token to the last; every fifth completion is dropped."""

    name = "per_token"

    def advantages(self, total, components, batch):
        base = group_normalise(total, batch.group_size)
        weights = [a * np.linspace(1.8, 0.2, n) for a, n in zip(base, batch.lengths)]
        return Advantages(weights, keep=np.arange(len(total)) % 5 != 0)


class Agreeing(EMPO):
    """EMPO on groups of four that agree, half agree, or all differ, one of them without an answer.

    The answer is a completion's first word, "no" is none. Which kind a group is follows from its prompt's length.
    """

    GROUPS = (("yes", "w1", "no", "yes"), ("yes", "yes", "yes", "yes"), ("yes", "w1", "w2", "no"))

    def __init__(self, **settings):
        super().__init__(Config(**settings), lambda a, b: a == b)

    def read(self, completion):
        first = completion.split()[:1]
        return "" if first == ["no"] else "".join(first)

    def rollout(self, prompts, trainer):
        out = Scripted().rollout(prompts, trainer)
        for i, (prompt, words) in enumerate(zip(out["prompt_ids"], out["completion_ids"])):
            words[0] = WORDS.index(self.GROUPS[len(prompt) % 3][i % 4])
        return out


def curious(base=None, **settings):
    """IMAGINE on a tiny method: a bonus for completions without "yes"."""
    sizes = {"max_prompt_tokens": 4, "max_completion_tokens": 8, "emb_dim": 4, "lr": 1e-2}
    return imagine.IMAGINE(imagine.Config(**sizes | settings), base or Scripted(), len(WORDS),
                           tokens=lambda text: tokenizer()(text)["input_ids"])
