"""What the encoder costs, as ratios measured in one run.

1. 320 distinct real solutions: length-sorted batches against one call per text (wanted: at least 1.3 times).
2. Generation batches of a toy run, 128 completions with about three blocks drawn from 30 sentences: with the
   encoder's memory against without (wanted: at least 10 times).
3. Everything else in the SD-E² reward, on the real solutions as strategy blocks (wanted: under 5 % of the encoder).
4. bfloat16 weights against float32: time, and how far the cosines move.

Run: EXPLORL_DATA=… python benchmarks/encoder.py [--texts 320] [--threads 2]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from explorl import encoders
from explorl.papers import sde2

BLOCK = ("<strategy><reasoning>{}</reasoning>"
         "<strategy_outcome>{}</strategy_outcome></strategy>")


def solutions(n: int) -> list[str]:
    """n distinct model solutions from the file that EXPLORL_DATA holds."""
    folder = os.environ.get("EXPLORL_DATA")
    if not folder:
        sys.exit("set EXPLORL_DATA to the folder that holds gsm8k_model_solutions.jsonl")
    lines = (Path(folder) / "gsm8k_model_solutions.jsonl").read_text(encoding="utf-8").splitlines()
    texts = (item["solution"] for line in lines for item in json.loads(line).values() if isinstance(item, dict))
    return list(dict.fromkeys(texts))[:n]


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def batched(texts: list[str], rounds: int) -> None:
    """Print how much faster length-sorted batches are; the order of the two alternates by chance."""
    encode = encoders.load(cache_size=0)
    encode(texts[:4])
    rng, ratios, totals = np.random.default_rng(0), [], np.zeros(2)
    for _ in range(rounds):
        times = []
        for alone in rng.permutation([True, False]):
            work = (lambda: [encode([text]) for text in texts]) if alone else (lambda: encode(texts))
            times.append((bool(alone), seconds(work)))
        one, many = dict(times)[True], dict(times)[False]
        ratios.append(one / many)
        totals += [one, many]
    tokens = encode.count_tokens(texts).mean()
    each = 1000 * totals / (rounds * len(texts))
    print(f"{len(texts)} distinct solutions, {tokens:.0f} word pieces on average, {torch.get_num_threads()} threads")
    print(f"one call per text {each[0]:.1f} ms a text, length-sorted batches {each[1]:.1f} ms a text")
    print(f"batched is {statistics.median(ratios):.2f} times as fast (rounds: "
          + ", ".join(f"{r:.2f}" for r in ratios) + ")")


def toy_batches(steps: int = 5) -> list[list[str]]:
    """Steps × 128 completions of two to four blocks from 30 sentences."""
    rng = np.random.default_rng(1)
    verbs = ("Add", "Multiply", "Subtract", "Double", "Compare")
    objects = ("the first two numbers", "all three numbers", "the last two numbers", "the first and the last number",
               "the two largest numbers", "the two smallest numbers")
    sentences = [f"{verb} {what}, then use the number that is left over." for verb in verbs for what in objects]

    def completion() -> str:
        chosen = rng.choice(sentences, size=rng.integers(2, 5))
        return "".join(BLOCK.format(sentence, rng.integers(0, 60)) for sentence in chosen)

    return [[completion() for _ in range(128)] for _ in range(steps)]


def cached() -> None:
    """Print what de-duplication and the cache save on generation batches."""
    plain, memory = encoders.load(cache_size=0), encoders.load()
    plain(["warm-up"])
    memory(["warm-up"])
    steps = toy_batches()
    texts = [[text for completion in step for text in sde2.read(completion).reasonings] for step in steps]
    size = plain.batch_size

    def without(step: list[str]) -> None:
        step = sorted(step, key=len)
        for start in range(0, len(step), size):
            plain._embed(step[start : start + size])

    slow = seconds(lambda: [without(step) for step in texts])
    fast = seconds(lambda: [memory(step) for step in texts])
    stats = memory.stats
    print(f"\n{len(steps)} generation batches of 128: {stats.asked} texts asked for, {stats.encoded} encoded, "
          f"{stats.hits} found in the cache")
    print(f"with memory {fast:.3f} s, without {slow:.3f} s: {slow / fast:.0f} times as fast")


def rest(texts: list[str]) -> None:
    """Print the share of everything but the encoder in the reward of real text."""
    encode = encoders.load()
    encode(["warm-up"])
    spent = []

    def timed(batch: list[str]) -> np.ndarray:
        start = time.perf_counter()
        vectors = encode(batch)
        spent.append(time.perf_counter() - start)
        return vectors

    rows = [texts[i : i + 4] for i in range(0, len(texts), 4)]
    completions = ["".join(BLOCK.format(text, i) for i, text in enumerate(row)) for row in rows]
    total = seconds(lambda: sde2.aggregate(sde2.components(completions, "2", timed)))
    print(f"\nreward of {len(completions)} completions with {len(texts)} real solutions as strategies: "
          f"{total:.2f} s, encoder {spent[0]:.2f} s")
    print(f"all else is {100 * (total - spent[0]) / spent[0]:.2f} % of the encoder's time; "
          f"{100 * encode.truncated_share:.1f} % of the texts were truncated")


def bfloat16(texts: list[str]) -> None:
    """Print what 16-bit weights gain and lose."""
    H, times = [], []
    for dtype in encoders.DTYPES:
        encode = encoders.load(dtype=dtype)
        encode(["warm-up"])
        times.append(seconds(lambda: H.append(encode(texts))))
    error = np.abs(sde2.pairwise_cosine(H[0]) - sde2.pairwise_cosine(H[1]))
    print(f"\nbfloat16 is {times[0] / times[1]:.2f} times as fast; cosines off by {error.mean():.4f} on average, "
          f"{error.max():.4f} at most")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=320)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    real = solutions(arguments.texts)
    batched(real, arguments.rounds)
    cached()
    rest(real)
    bfloat16(real[:96])
