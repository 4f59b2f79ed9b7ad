"""The process in which math-verify runs: one JSON list of way and two answers per line in, 0 or 1 per line out.

Started by :mod:`explorl.text.math_equality`, as a script, so that it loads nothing but math-verify. Each pair
has a budget of processor time; the operating system ends the process when it is used up, whatever sympy is
busy with. The memory is limited likewise.
"""

import json
import logging
import resource
import signal
import sys
from functools import lru_cache

import math_verify

MEMORY_BYTES = 4 << 30


@lru_cache(maxsize=512)
def expressions(answer: str) -> list[object]:
    """The answer as math-verify reads it: a box with nothing else in it."""
    return math_verify.parse(rf"\boxed{{{answer}}}", parsing_timeout=None)


def equal(way: str, first: str, second: str) -> bool:
    """What math-verify says with the first answer as gold (``one``), or in ``both`` directions."""
    one, two = expressions(first), expressions(second)
    forth = math_verify.verify(one, two, timeout_seconds=None)
    return forth and (way == "one" or math_verify.verify(two, one, timeout_seconds=None))


def serve(cpu_seconds: float) -> None:
    """Answer the pairs on standard input until it ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its default action ends the process
        try:
            verdict = equal(*json.loads(line))
        except Exception:  # whatever math-verify or sympy raises on an odd answer: it equals nothing
            verdict = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(f"{int(verdict)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    equal("both", r"\sqrt{2} + 1", r"\frac{x}{2} + 1")  # sympy loads parts of itself on first use: on nobody's budget
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    serve(float(sys.argv[1]))
