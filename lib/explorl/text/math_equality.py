r"""Symbolic equality of two LaTeX answers, around math-verify.

math-verify's own time limits use signals and so fail outside the main thread; sympy can spend hours on
``9^{9^9}``. Here a cheap structural check turns away such answers, and math-verify runs in a helper process
that the operating system ends when one comparison has used up its processor time. So :func:`math_equal` works
in any thread, and a busy machine does not change its verdicts.
"""

import atexit
import json
import math
import os
import re
import subprocess
import sys
import threading
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

MAX_CHARS = 500
MAX_NESTING = 12
MAX_DIGITS = 100
CPU_SECONDS = 1.0
"""Processor time for one comparison; one that needs more is judged unequal."""

_PLAIN_NUMBER = re.compile(r"-?[0-9]{1,60}(?:\.[0-9]{1,60})?")
_BRACKET = re.compile(r"\\.|[{}()\[\]]", re.DOTALL)
_LONG_DIGITS = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")
_POWER = r"\s*(?:\^|\*\*)[\s{(+-]*"
_HUGE_POWER = re.compile(rf"{_POWER}[0-9]{{5}}|[0-9]{_POWER}[0-9]+[\s}})]*{_POWER}(?:[5-9]|[0-9]{{2}})")
_HUGE_FACTORIAL = re.compile(r"[0-9]{4}[\s)}\]]*!|[0-9][\s)}\]]*![\s)}\]]*!")


def math_equal(a: str, b: str) -> bool:
    r"""Whether two LaTeX answers mean the same: equal strings, or math-verify says so *in both directions*.

    One direction alone is not symmetric (``1<x<2`` accepts ``(1,2)``, not the reverse), and a clustering of
    answers needs a symmetric test. The relation is still not transitive: 50\% equals 50 and 1/2.

    Args:
        a: an answer without its box, such as ``\frac{1}{2}``.
        b: the other one.

    Returns:
        False if either is blank, is no string, or (unless the strings are equal) has more than ``MAX_CHARS``
        characters, is nested deeper than ``MAX_NESTING``, has unmatched braces, a number of more than
        ``MAX_DIGITS`` digits, or a power or factorial too large to work out, or needs more than
        ``CPU_SECONDS``. Never raises on text.

    Raises:
        RuntimeError: if math-verify cannot be started at all.

    >>> math_equal(r"\frac{1}{2}", "0.5"), math_equal("1<x<2", "(1,2)"), math_equal("", "")
    (True, False, False)
    """
    if not (isinstance(a, str) and isinstance(b, str)):
        return False
    a, b = sorted((a.strip(), b.strip()))
    if not a or not b:
        return False
    if a == b:
        return True
    if _PLAIN_NUMBER.fullmatch(a) and _PLAIN_NUMBER.fullmatch(b):
        if Fraction(a) == Fraction(b):
            return True
        if "." not in a + b:
            return False
    return tractable(a) and tractable(b) and _judge("both", a, b)


def math_accepts(gold: str, pred: str) -> bool:
    r"""Whether math-verify takes ``pred`` for ``gold``: one direction of :func:`math_equal`, so not symmetric.

    Args:
        gold: the reference answer, without its box.
        pred: the answer to judge.

    Returns:
        As :func:`math_equal`, with the same limits.

    >>> math_accepts("1<x<2", "(1,2)"), math_accepts("(1,2)", "1<x<2")
    (True, False)
    """
    if not (isinstance(gold, str) and isinstance(pred, str)):
        return False
    gold, pred = gold.strip(), pred.strip()
    if not gold or not pred:
        return False
    return gold == pred or (tractable(gold) and tractable(pred) and _judge("one", gold, pred))


def tractable(answer: str) -> bool:
    r"""Whether an answer is small and simple enough to be worked out.

    >>> tractable(r"\frac{1}{2}"), tractable("9^{9^9}")
    (True, False)
    """
    if len(answer) > MAX_CHARS or _nesting(answer) > MAX_NESTING:
        return False
    return not any(bomb.search(answer) for bomb in (_LONG_DIGITS, _HUGE_POWER, _HUGE_FACTORIAL))


def _nesting(answer: str) -> float:
    """How deep brackets of any kind are nested; infinity if the braces that group do not match."""
    depth = deepest = groups = 0
    for token in _BRACKET.findall(answer):
        depth += (token[-1] in "{([") - (token[-1] in "})]")
        groups += (token == "{") - (token == "}")
        if groups < 0:
            return math.inf
        deepest = max(deepest, depth)
    return math.inf if groups else deepest


@lru_cache(maxsize=4096)
def _judge(way: str, a: str, b: str) -> bool:
    return _WORKER.ask(way, a, b)


class _Worker:
    """The helper process: started on first use and after its death, one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, way: str, a: str, b: str) -> bool:
        with self._lock:
            if self._process is not None and self._process.poll() is not None:
                self._end()  # something else ended it since the last question
            process = self._process = self._process or self._start()
            verdict = ""
            try:
                process.stdin.write(json.dumps([way, a, b]) + "\n")
                process.stdin.flush()
                verdict = process.stdout.readline()
            except OSError:
                pass  # it is gone: no verdict
            finally:  # also when interrupted: a late verdict must not answer the next question
                if not verdict:
                    self._end()
            return verdict.strip() == "1"

    def _start(self) -> "subprocess.Popen[str]":
        script = Path(__file__).with_name("math_worker.py")
        command = [sys.executable, "-P", str(script), str(CPU_SECONDS)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        if process.stdout.readline().strip() != "ready":
            raise RuntimeError("math-verify does not start; `python -c 'import math_verify'` should show why")
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def forget(self) -> None:
        """In a forked child: leave the parent's process alone and start an own one when needed."""
        inherited = self._process
        self.__init__()
        if inherited is not None:
            inherited.stdin.close()
            inherited.stdout.close()
            inherited.returncode = 0  # not this process's child: nothing to wait for


_WORKER = _Worker()
atexit.register(_WORKER._end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_WORKER.forget)
