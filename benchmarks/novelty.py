"""What IMAGINE costs: ``python benchmarks/novelty.py``.

Promises: novelty, bonus and one update of the predictor take less than 100 ms for 64 completions of 1,280 positions,
with the published sizes and the vocabulary of Qwen2.5, on two idle cores; and in the toy run, with its own 64 completions
of 72 positions, less than 5 % of a training step of the same run, measured beside it. The first is judged by processor
time, summed over the threads: never less than wall clock on idle cores, and steadier beside other work. Then the first
batch with novelty of every prefix (eq 3–4): inputs, token positions and time; ``--skip-tokens`` leaves that out.
"""

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace

import numpy as np
import torch

from explorl import params
from explorl.papers.imagine import OFFICIAL, Config, Novelty, Outcome, bonus, layout
from explorl.papers.imagine_tokens import TokenNovelty, costs
from explorl.tasks import digits
from explorl.train import policies
from explorl.train.arm import train

PROMISE_MS, PROMISE_SHARE = 100.0, 0.05
VOCAB, ROWS, GROUP = 151_936, 64, 8
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]


def batch(config: Config, vocab: int, rows: int, seed: int) -> Rows:
    """Ids, mask, and which are right: prompts of 2/5 of their room; completions of about as much, long ones cut."""
    generator, room = np.random.default_rng(seed), config.max_completion_tokens
    lengths = np.clip(generator.lognormal(np.log(0.4 * room), 0.42, size=rows), 1, room).astype(int)
    prompts = [generator.integers(vocab, size=2 * config.max_prompt_tokens // 5).tolist() for _ in range(rows // GROUP)]
    completions = [generator.integers(vocab, size=length).tolist() for length in lengths]
    ids, mask = layout([prompts[i // GROUP] for i in range(rows)], completions, config)
    return ids, mask, generator.random(rows) < 0.3


def step(novelty: Novelty, data: Rows) -> None:
    """What training adds to a step."""
    n = novelty.calls
    bonus(novelty.observe(*data[:2])[0], data[2], n, novelty.config, group_size=GROUP)


def timed(work) -> tuple[float, float]:
    """Milliseconds of wall clock and of the processor."""
    begin, used = time.perf_counter(), time.process_time()
    work()
    return 1000 * (time.perf_counter() - begin), 1000 * (time.process_time() - used)


def median_ms(config: Config, vocab: int, rows: int, rounds: int) -> tuple[float, float]:
    """Of a training step's addition, after two steps to warm up."""
    novelty, batches = Novelty(vocab, config), [batch(config, vocab, rows, seed) for seed in range(rounds + 2)]
    times = [timed(lambda data=data: step(novelty, data)) for data in batches]
    return tuple(statistics.median(column) for column in zip(*times[2:], strict=True))


def toy_step_ms(run: params.ImagineParams, policy: policies.Policy, steps: int = 12) -> float:
    """Wall clock of one step of the toy run without novelty: rollout, reward and update; the first two are left out."""
    ends: list[float] = []
    config = replace(run.train_config(0), steps=steps, save_every=0, threads=0)
    with tempfile.TemporaryDirectory() as folder:
        train(policy, digits.load().train, Outcome(lambda text, gold, meta: float(gold in text)), config, folder,
              on_step=lambda row: ends.append(time.perf_counter()))
    return 1000 * statistics.median(np.diff(ends[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--skip-tokens", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ms, cpu_ms = median_ms(OFFICIAL, VOCAB, ROWS, options.rounds)
    found = {"sequence_ms": ms, "sequence_cpu_ms": cpu_ms}
    ids, mask, _ = batch(OFFICIAL, VOCAB, ROWS, 0)
    if not options.skip_tokens:
        tokens = TokenNovelty(Novelty(VOCAB, OFFICIAL))
        found["token_ms"], found["token_cpu_ms"] = timed(lambda: tokens.observe(ids, mask))
        found["times_slower"] = found["token_cpu_ms"] / cpu_ms
    run, policy = params.load("imagine", "toy"), policies.load("toy", seed=0)
    found["toy_ms"], _ = median_ms(run.imagine_config(0), policy.model.config.vocab_size, ROWS, options.rounds)
    found["toy_step_ms"] = toy_step_ms(run, policy)
    share = round(found["toy_ms"] / found["toy_step_ms"], 4)
    kept = bool(cpu_ms < PROMISE_MS and share < PROMISE_SHARE)
    counted = costs(mask[:, OFFICIAL.max_prompt_tokens :].sum(axis=1))
    print(json.dumps({"rows": ROWS, "threads": options.threads, "promise_ms": PROMISE_MS, "promise_share": PROMISE_SHARE,
                      "kept": kept, "toy_share": share} | {name: round(float(value), 1) for name, value in found.items()}
                     | vars(counted)))


if __name__ == "__main__":
    main()
