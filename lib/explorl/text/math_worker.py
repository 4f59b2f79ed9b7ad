"""The process in which math-verify runs: one JSON list per line in (seconds, a question, answers), one out.

Started by :mod:`explorl.text.math_process`, as a script, so that it loads nothing but math-verify. The process
that was started only waits: a forked child answers, and the operating system ends it when one question has used up
its processor time, whatever sympy is busy with. Then the reply is ``null`` and the next child is a fork away. The
memory is limited likewise.
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
from sympy.core.cache import clear_cache

MEMORY_BYTES = 4 << 30
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
    return not apart(gold, pred) and bare(gold, pred)


def both(first: str, second: str) -> bool:
    """Whether math-verify says so in both directions: each answer once as the gold one."""
    return one(first, second) and one(second, first)


def bare(gold: str, pred: str) -> bool:
    """Like :func:`one` without its shortcut: what the shortcut is tested against."""
    return math_verify.verify(expressions(gold), expressions(pred), timeout_seconds=None)


def apart(first: str, second: str) -> bool:
    """Whether both are constants with values far enough apart that verify cannot call them equal."""
    x, y = constant(first), constant(second)
    return x is not None and y is not None and abs(x - y) > max(APART, 1e-9 * max(abs(x), abs(y)))


def loose(gold: str, pred: str) -> bool:
    """Like :func:`one` with 3 digits of precision; any number inside a gold interval will do, and only such."""
    golds, preds = expressions(gold), expressions(pred)
    if golds and preds and isinstance(golds[0], sympy.Interval) and isinstance(preds[0], sympy.Number):
        return golds[0].contains(preds[0]) == sympy.true
    return math_verify.verify(golds, preds, numeric_precision=3, timeout_seconds=None)


def values(answer: str) -> list[float]:
    """The value of a constant with π read as itself, as 3.14, and as 180 (degrees); nothing for anything else."""
    read = expressions(answer)
    if not read or not isinstance(read[0], sympy.Expr) or read[0].free_symbols:
        return []
    found = [complex(read[0].subs(sympy.pi, pi).evalf(15)) for pi in (sympy.pi, 3.14, 180)]
    return [value.real for value in found] if all(value.imag == 0 for value in found) else []


WARM_UP = (
    (r"\sqrt{2} + 1", r"\frac{x}{2} + 1"),
    ("x<2", r"(-\infty,2)"),
    ("x=5", "y=4"),
    (r"\{1,2\}", r"\{1,a\}"),
    (r"5\%", "0.1"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\text{Paris}"),
)
"""sympy and the LaTeX grammar load parts of themselves on first use: on nobody's budget."""
QUESTIONS: dict[str, Callable[..., object]] = {
    "one": one, "both": both, "bare": bare, "loose": loose, "values": values,
}


def reply(question: str, answers: list[str]) -> object:
    """What one question gets, never ``None``; ``False`` where math-verify or sympy raises on an odd answer."""
    try:
        return QUESTIONS[question](*answers)
    except Exception:
        return False


def serve(spent: float) -> None:
    """Answer the lines on standard input until it ends. ``spent``: seconds of the children before this one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for line in sys.stdin:
        seconds, question, *answers = json.loads(line)
        if question == "spent":
            send(spent + time.process_time(), 0.0)
        elif question == "forget":
            forget()
            send(True, 0.0)
        else:
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, seconds)  # its default action ends the process
            verdict = reply(question, answers)
            signal.setitimer(signal.ITIMER_PROF, 0)
            send(verdict, time.process_time() - start)


def forget() -> None:
    """Clear what is remembered of earlier questions; the grammar stays warm."""
    expressions.cache_clear()
    constant.cache_clear()
    clear_cache()


def send(*values: object) -> None:
    """Write one line of JSON values."""
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Keep one child answering; end with the input."""
    for pair in WARM_UP:
        both(*pair)
    send("ready")
    while True:
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        child = os.fork()
        if child == 0:
            serve(spent.ru_utime + spent.ru_stime)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return
        send(None, 0.0)


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main()
