"""How fast Countdown is checked and made: ``python benchmarks/countdown.py``.

Promises: at least 10,000 answers a second under every reading of the rules; a verdict within 10 ms whatever the text;
32,768 problems of four numbers in under 10 minutes (one process; the time for 2,000 is measured and scaled, or all of
them with ``--all``).
"""

import itertools
import sys
import time

from explorl.tasks.countdown import World, generate
from explorl.text.countdown import RULES, score

MADE = 32_768
HOSTILE = {
    "100 kB of digits": "<answer>" + "9" * 100_000 + "</answer>",
    "power tower": "<answer>99**98**97</answer>",
    "import": "<answer>__import__('os')</answer>",
    "only opening tags": "</answer>" + "<answer>" * 120_000,
    "empty pairs": "<answer></answer>" * 60_000,
    "parentheses": "<answer>" + "(" * 1_000_000 + "</answer>",
    "signs": "<answer>" + "-" * 90_000 + "6</answer>",
    "special tokens": "<|a" * 300_000,
    "a megabyte of words": "word " * 200_000,
}


def main() -> None:
    count = MADE if "--all" in sys.argv else 2_000
    began = time.process_time()
    problems = generate(count, seed=0, world=World(sizes=(4,)))
    spent = time.process_time() - began
    needing = sum(problem.meta["needs_times_or_divide"] for problem in problems) / count
    print(f"generator: {count} problems of four numbers in {spent:.1f} s, so {MADE} in {spent / count * MADE:.0f} s; "
          f"{needing:.0%} need × or ÷")
    texts = [f"Let me try.\n{'thinking ' * 40}</think>\n<answer>{p.meta['witness']}</answer>" for p in problems]
    for rules in RULES:
        began = time.process_time()
        right = [score(text, p.meta["numbers"], p.meta["target"], rules=rules).reward == 1.0
                 for text, p in itertools.islice(itertools.cycle(zip(texts, problems, strict=True)), 20_000)]
        spent = time.process_time() - began
        print(f"{rules:9} {len(right) / spent:9,.0f} answers a second, {sum(right) / len(right):.0%} right")
    for name, text in HOSTILE.items():
        worst = max(_seconds(text, rules) for rules in RULES)
        print(f"{name:20} {1000 * worst:7.3f} ms, the slowest of the readings")


def _seconds(text: str, rules: str) -> float:
    """Processor time of one verdict, the best of five."""
    spent = []
    for _ in range(5):
        began = time.process_time()
        score(text, [9, 9, 9], 6, rules=rules)
        spent.append(time.process_time() - began)
    return min(spent)


if __name__ == "__main__":
    main()
