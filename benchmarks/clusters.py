r"""What clustering costs: ``python benchmarks/clusters.py``.

Promises, on groups of made-up answers (integers, fractions, decimals, LaTeX variants, near misses, blanks, sets and
intervals): the fast scheme takes at least 1.9 times less processor time than plain Algorithm 1 on mixed answers and 100
times less on integers, with the same partition for each of 1,000 groups; 512 groups of 8 integer answers are rewarded
in less than 0.5 s; a group of 16 hostile answers takes at most about 1 s.
"""

import random

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
