"""How long the text functions take on hostile input: ``python benchmarks/hostile.py``.

Promise: ``parse``, ``last_boxed``, ``extract``, ``canonical``, and the whole reward of SD-E² without its encoder take
at most 50 ms of processor time for a megabyte of anything (of which the first MAX_CHARS or the last WINDOW_CHARS
characters are read).
``math_equal`` has a budget of processor time; an answer that exceeds it costs that and a new helper process.
"""

import time
from collections.abc import Callable

from explorl.papers import sde2
from explorl.text import answers, strategies

MEGABYTE = 1_000_000
PARSER = {
    "plain words": "word " * (MEGABYTE // 5),
    "10,000 blocks": "".join(
        f'<strategy id="{i}"><reasoning>r{i}</reasoning><strategy_outcome>{i}</strategy_outcome></strategy>'
        for i in range(10_000)
    ),
    "100k unclosed openers": "<strategy>" * 100_000,
    "100k openers without >": "<strategy " * 100_000,
    "1 MB of <": "<" * MEGABYTE,
    "nested tags": "<strategy><reasoning>" * 20_000 + "</reasoning></strategy>" * 20_000,
    "1 MB attribute": "<strategy " + "a=1 " * (MEGABYTE // 4) + ">",
    "fences": "```a " * (MEGABYTE // 5),
    "null bytes": "\0" * MEGABYTE,
    "right to left": "\u202eשלום " * (MEGABYTE // 6),
    "curly quotes": "“”" * (MEGABYTE // 2),
}
REWARD = {
    "blocks joined by dashes": PARSER["10,000 blocks"].replace("</strategy>", "</strategy>—"),
    "4,000 LaTeX outcomes": "".join(
        f"<strategy><reasoning>“a{i}”</reasoning><strategy_outcome>"
        rf"\boxed{{\frac{{1}}{{{i}}}}} = $1,000</strategy_outcome></strategy>"
        for i in range(4_000)
    ),
}
BOXES = {
    "unclosed boxes": r"\boxed{" * (MEGABYTE // 7),
    "braces in a box": r"\boxed{" + "{" * MEGABYTE,
    "backslashes": r"\boxed{" + "\\" * MEGABYTE,
    "numbers": "1 " * (MEGABYTE // 2),
    "answer is": "answer is " * (MEGABYTE // 10),
    "hashes": "#" * MEGABYTE,
}
NUMBERS = {
    "1 MB of digits": "9" * MEGABYTE,
    "9,999 digits": "9" * 9_999,
    "9**9**9": "9**9**9",
    "1e999999": "1e999999",
    "1e-999999": "1e-999999",
    "1/9…9": "1/" + "9" * 9_000,
    "groups": "1" + ",111" * 2_000 + "1",
    "deep braces": r"\frac{" * 1_500 + "1",
    "signs": "-" * 9_999,
}
FRACTION = "1"
for _ in range(500):
    FRACTION = rf"\frac{{1}}{{{FRACTION}}}"
FORMULAS = {
    "plain pair": r"\frac{1}{2}",
    "9**9**9": "9**9**9",
    "power tower": "10^{10^{10}}",
    "fraction, 500 deep": FRACTION,
    "1 MB of digits": "9" * MEGABYTE,
    "1 MB sum": "1+" * (MEGABYTE // 2) + "1",
    r"\sum": r"\sum",
    "long sum": r"\sum_{k=1}^{1000000000}\frac{1}{k^2}",
    "factorial": "99999999!",
    "(x+y+z)^9999": "(x+y+z)^{9999}",
    "binomial": r"\binom{9999999}{4999999}",
    "integral": r"\int_0^\infty e^{-x^2}\sin(x^3)\,dx",
    "8x8 matrix": r"\begin{pmatrix}" + r"\\".join("&".join("abcdefgh") for _ in range(8)) + r"\end{pmatrix}",
    "parentheses": "(" * 12 + "1" + ")" * 12,
    "null bytes": "\0" * 50,
}


def milliseconds(function: Callable[..., object], *arguments: str) -> tuple[float, float]:
    """Processor time of this process and wall-clock time of one call."""
    cpu, wall = time.process_time(), time.perf_counter()
    function(*arguments)
    return 1_000 * (time.process_time() - cpu), 1_000 * (time.perf_counter() - wall)


def main() -> None:
    answers.math_equal("x", "1 + x")  # starts the helper process
    groups: list[tuple[str, Callable[..., object], dict[str, str], tuple[str, ...]]] = [
        ("parse", strategies.parse, PARSER, ()),
        ("last_boxed", answers.last_boxed, BOXES, ()),
        ("extract", answers.extract, PARSER | BOXES, ()),
        ("canonical", answers.canonical, PARSER | BOXES | NUMBERS, ()),
        ("reward", lambda text: sde2.components([text], "18", None), PARSER | REWARD, ()),
        ("math_equal", answers.math_equal, FORMULAS, ("x + 2",)),
    ]
    for name, function, texts, more in groups:
        for label, text in texts.items():
            cpu, wall = milliseconds(function, text, *more)
            print(f"{name:<11} {label:<24} {cpu:8.1f} ms of processor {wall:8.1f} ms")


if __name__ == "__main__":
    main()
