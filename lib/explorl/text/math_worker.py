"""The process in which math-verify runs: one JSON list (a question and its answers) per line in, one reply per line out.

Started by :mod:`explorl.text.math_equality`, as a script, so that it loads nothing but math-verify. The process that
was started only waits: a forked child answers, and the operating system ends it when one question has used up its
processor time, whatever sympy is busy with. Then the reply is ``null`` and the next child is a fork away. The memory is
limited likewise.
"""

import json
import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from functools import lru_cache

import math_verify
import sympy

MEMORY_BYTES = 4 << 30
FORGET = 3
"""Exit status of a child that was asked to forget what it has read."""
APART = 1e-5
"""Two constants further apart than this, or a billionth of their size, are unequal: verify rounds to 1e-6."""


@lru_cache(maxsize=512)
def expressions(answer: str) -> list[object]:
    """The answer as math-verify reads it: a box with nothing else in it."""
    return math_verify.parse(rf"\boxed{{{answer}}}", parsing_timeout=None)


@lru_cache(maxsize=512)
def constant(answer: str) -> float | None:
    """The value of an answer that is one real number and no percentage (50% is both 50 and 1/2)."""
    read = expressions(answer)
    if len(read) != 2 or not isinstance(read[0], sympy.Expr) or not isinstance(read[1], str):
        return None
    number = read[0]
    if number.free_symbols or not number.is_number or number.has(sympy.UnevaluatedExpr):
        return None
    try:
        value = complex(number.evalf(15))
    except Exception:  # sympy cannot work it out: verify has to say
        return None
    return value.real if value.imag == 0 and abs(value.real) < 1e300 else None


def one(gold: str, pred: str) -> bool:
    """Whether math-verify takes ``pred`` for ``gold``."""
    return not apart(gold, pred) and math_verify.verify(expressions(gold), expressions(pred), timeout_seconds=None)


def both(first: str, second: str) -> bool:
    """Whether math-verify says so in both directions: each answer once as the gold one."""
    return one(first, second) and one(second, first)


def apart(first: str, second: str) -> bool:
    """Whether both are constants with values far enough apart that verify cannot call them equal."""
    x, y = constant(first), constant(second)
    return x is not None and y is not None and abs(x - y) > max(APART, 1e-9 * max(abs(x), abs(y)))


QUESTIONS: dict[str, Callable[..., object]] = {"one": one, "both": both}


def reply(line: str) -> object:
    """The answer to one line; ``False`` for whatever math-verify or sympy raises on an odd answer."""
    question, *answers = json.loads(line)
    try:
        return QUESTIONS[question](*answers)
    except Exception:
        return False


def serve(cpu_seconds: float, spent: float) -> None:
    """Answer the lines on standard input until it ends. ``spent``: seconds of the children before this one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in sys.stdin:
        if line.startswith('["spent"'):
            send(spent + time.process_time(), 0.0)
        elif line.startswith('["forget"'):
            os._exit(FORGET)
        else:
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, cpu_seconds)  # its default action ends the process
            verdict = reply(line)
            signal.setitimer(signal.ITIMER_PROF, 0)
            send(verdict, time.process_time() - start)


def send(*values: object) -> None:
    """Write one line of JSON values."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main(cpu_seconds: float) -> None:
    """Keep one child answering; end with the input."""
    both(r"\sqrt{2} + 1", r"\frac{x}{2} + 1")  # sympy loads parts of itself on first use: on nobody's budget
    send("ready")
    while True:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if child == 0:
            serve(cpu_seconds, before.ru_utime + before.ru_stime)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        send(None, 0.0 if status == FORGET else cpu_seconds)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main(float(sys.argv[1]))
