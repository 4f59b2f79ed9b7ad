r"""What clustering costs: ``python benchmarks/clusters.py`` (about two minutes).

Promises, on made-up answers (integers, fractions, decimals, LaTeX variants, near misses, blanks, sets, intervals): the
fast scheme takes at least 1.9 times less processor time than plain Algorithm 1 on mixed answers and 100 times less on
integers, with the same partition for each of more than 1,000 groups; 512 groups of 8 integer answers are rewarded in
less than 0.5 s; a group of 16 hostile answers takes at most about 1 s.

*Plain* is :func:`greedy` on math-verify alone, verified both ways in this process: each distinct string of a group is
parsed once, and nothing else is remembered or decided without it. *Fast* is :func:`fast` on ``load("math")``: its time
is this process's and its helper's together, both told to forget what they know before every row. Both have seen other
groups first, so that neither pays for what sympy and the grammar load on first use.
"""

import logging
import random
import time
from collections.abc import Callable

import math_verify
from sympy.core.cache import clear_cache

from explorl.papers import empo
from explorl.text import equivalence, math_equality
from explorl.text.clusters import fast, greedy
from explorl.text.math_process import WORKER

MATH = equivalence.load("math")
SIZES = (8, 16, 32)
GROUPS = {"mixed": 250, "integers": 84}
"""Groups of each size."""

SURDS = ((r"2\sqrt{2}", r"\sqrt{8}"), (r"\frac{\sqrt{3}}{2}", r"\frac{1}{2}\sqrt{3}"), (r"\frac{\pi}{4}", r"\pi/4"),
         (r"3\pi", r"3 \pi"), (r"1+\sqrt{5}", r"\sqrt{5}+1"), ("2^{10}", "1024"), (r"\sqrt{2}", r"2^{1/2}"))
SHAPES = (("(1,2)", r"\{1,2\}", "1,2", "(2,1)", r"\{2,1\}", "[1,2]", "(1,2]"),
          ("x<2", r"(-\infty,2)", r"x\leq 2"), ("x=5", "5", "y=5", "5=x"), (r"50\%", "50", "0.5", r"\frac{1}{2}"),
          (r"5\text{ cm}", "5", r"5\text{ m}"), ("x^2+2x+1", "(x+1)^2", "x^2+1"),
          (r"\text{Paris}", "Paris", "London"), (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}2\\1\end{pmatrix}"))


def spellings(rng: random.Random) -> list[str]:
    """Several ways to write one right answer, or nearly: 60 % integers, 18 % fractions, 22 % the rest."""
    kind = rng.random()
    if kind < 0.6:
        n = rng.choice((rng.randint(-20, 99), rng.randint(100, 99_999)))
        return [str(n), str(n), f"{n:,}", f"{n}.0", rf"{n}\text{{ m}}", f"{n:,}".replace(",", "{,}")]
    if kind < 0.78:
        a, b = rng.randint(1, 30), rng.randint(2, 16)
        return [rf"\frac{{{a}}}{{{b}}}", f"{a}/{b}", rf"\dfrac{{{a}}}{{{b}}}", f"{a / b:.6f}", f"{a / b:.2f}",
                rf"\frac{{{2 * a}}}{{{2 * b}}}"]
    if kind < 0.86:
        x = rng.randint(1, 9_999) / 100
        return [f"{x}", f"{x:.3f}", rf"{x}\%", f"{x:.1f}"]
    if kind < 0.94:
        return list(rng.choice(SURDS))
    return list(rng.choice(SHAPES))


def miss(answer: str, rng: random.Random) -> str:
    """A wrong answer that looks like the right one."""
    digits = [place for place, sign in enumerate(answer) if sign.isdigit()]
    if not digits or rng.random() < 0.2:
        return str(rng.randint(-9, 30))
    place = rng.choice(digits)
    return answer[:place] + str((int(answer[place]) + rng.choice((1, 2, 9))) % 10 or 1) + answer[place + 1 :]


def mixed(size: int, rng: random.Random) -> list[str]:
    """A group of answers to one problem: how many are right differs widely from problem to problem, 6 % blank."""
    right, share = spellings(rng), rng.betavariate(1.2, 1.2)
    wrong = [miss(rng.choice(right), rng) for _ in range(rng.randint(1, 6))]
    answers = [rng.choice(right) if rng.random() < share else rng.choice(wrong) for _ in range(size)]
    return ["" if rng.random() < 0.06 else answer for answer in answers]


def integers(size: int, rng: random.Random) -> list[str]:
    """A group of plain integers, some with thousands commas."""
    right = rng.randint(-50, 5_000)
    pool = [str(right), f"{right:,}", *(str(right + rng.randint(-20, 20)) for _ in range(5))]
    return [rng.choice(pool[:2] if rng.random() < 0.5 else pool) for _ in range(size)]


DEEP = r"\frac{1}{" * 500 + "1" + "}" * 500
HOSTILE = {
    "of every kind": [
        "9^{9^{9^9}}", DEEP, r"\frac{1}{2}+" * 900 + "1", r"\frac{1}{2", "}{", r"(-\infty,2)\cup[3,7]",
        r"\{1,2,\{3\}\}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"5\text{ m/s}^2", "🦆🦆", "\0\0", "9" * 5000,
        "(x+y+z)^{9999}", r"\binom{9999999}{4999999}", r"\sum_{k=1}^{1000000000}\frac{1}{k^2}", "\ud800",
    ],
    "powers": [f"(x+y+z)^{{{n}}}" for n in range(9_984, 10_000)],
    "matrices": [
        r"\begin{pmatrix}" + r"\\".join("&".join("abcdefgh"[(i * k + j) % 8] for i in range(8)) for j in range(8))
        + r"\end{pmatrix}" for k in range(16)
    ],
    "inequalities": [rf"x^{{{k}}}+y^{{{k}}}<\sin(x)+{k}" for k in range(2, 18)],
    "towers of digits": ["1" * 90 + f"{k}^{{9}}!" for k in range(16)],
}
"""Groups of 16 answers that sympy cannot be let loose on."""


def plain(group: list[str]) -> list[int]:
    """Algorithm 1 with nothing but math-verify, both ways, each distinct string parsed once."""
    parsed: dict[str, list] = {}

    def read(answer: str) -> list:
        if answer not in parsed:
            parsed[answer] = math_verify.parse(rf"\boxed{{{answer}}}", parsing_timeout=None)
        return parsed[answer]

    def equal(a: str, b: str) -> bool:
        return all(math_verify.verify(read(x), read(y), timeout_seconds=None) for x, y in ((a, b), (b, a)))

    return greedy(group, equal)


def forget() -> None:
    """Clear what either side remembers."""
    math_equality.ask.cache_clear()
    WORKER.ask(1, "forget")
    clear_cache()


def cpu_seconds(work: Callable[[], object]) -> tuple[object, float]:
    """What the work returns, and the processor time that it takes here and in the helper process."""
    before, start = WORKER.ask(1, "spent")[0], time.process_time()
    result = work()
    here = time.process_time() - start
    return result, here + WORKER.ask(1, "spent")[0] - before


def warm_up() -> None:
    rng = random.Random(0)
    for _ in range(100):
        group = mixed(8, rng)
        plain(group)
        fast(group, MATH)


def compare(kind: str, size: int) -> int:
    """Print one row of the comparison; how many partitions differ."""
    rng = random.Random(size)
    make = {"mixed": mixed, "integers": integers}[kind]
    groups = [make(size, rng) for _ in range(GROUPS[kind])]
    forget()
    slow_ids, slow = cpu_seconds(lambda: [plain(group) for group in groups])
    forget()
    quick_ids, quick = cpu_seconds(lambda: [fast(group, MATH) for group in groups])
    different = [group for group, a, b in zip(groups, slow_ids, quick_ids, strict=True) if a != b]
    per_group = 1_000 / len(groups)
    print(f"{kind:<9} G = {size:<3} {slow * per_group:9.3f} ms {quick * per_group:9.3f} ms {slow / quick:8.1f} x"
          f"   {len(groups)} groups, {len(different)} different")
    for group in different:
        print("   ", group)
    return len(different)


def main() -> None:
    logging.disable(logging.CRITICAL)  # math-verify warns that it has no time limit
    warm_up()
    print("processor time a group       plain         fast    plain / fast")
    different = sum(compare(kind, size) for kind in GROUPS for size in SIZES)
    print(f"{different} of {len(SIZES) * sum(GROUPS.values())} partitions differ")

    rng = random.Random(512)
    groups = [integers(8, rng) for _ in range(512)]
    start = time.perf_counter()
    _, cpu = cpu_seconds(lambda: [empo.rewards(group, MATH) for group in groups])
    print(f"512 groups of 8 integers rewarded: {time.perf_counter() - start:.3f} s, {cpu:.3f} s of processor")

    for kind, group in HOSTILE.items():
        forget()
        start = time.perf_counter()
        _, cpu = cpu_seconds(lambda group=group: fast(group, MATH))
        print(f"16 hostile answers, {kind:<18} {time.perf_counter() - start:.2f} s, {cpu:.2f} s of processor")


if __name__ == "__main__":
    main()
