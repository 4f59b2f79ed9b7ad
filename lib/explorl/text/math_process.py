"""The helper process that math-verify runs in, from outside: started when needed, one question at a time."""

import atexit
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


class Worker:
    """Started on first use and after its death; questions from several threads wait for one another."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, seconds: float, question: str, *answers: str) -> tuple[object, float]:
        """One question of :mod:`explorl.text.math_worker`, and the processor time that it may take.

        Returns:
            (the reply, seconds of processor time it took); where it was given up,
            the reply is ``None`` and the time is ``seconds``.

        Raises:
            RuntimeError: if math-verify cannot be started at all.
        """
        with self._lock:
            line = self._told(seconds, question, *answers) or self._told(seconds, question, *answers)
            reply, spent = json.loads(line) if line else (None, seconds)
            return reply, seconds if reply is None else spent

    def _told(self, seconds: float, question: str, *answers: str) -> bytes:
        """The helper's line; empty where something ended the helper, so that asking again is worth it."""
        if self._process is not None and self._process.poll() is not None:
            self._end()  # something else ended it since the last question
        process = self._process = self._process or self._start()
        line = b""
        try:
            process.stdin.write(json.dumps([seconds, question, *answers]).encode() + b"\n")
            line = process.stdout.readline()
        except OSError:
            pass  # it is gone: no verdict
        finally:  # also when interrupted: a late verdict must not answer the next question
            if not line:
                self._end()
        return line

    def _start(self) -> "subprocess.Popen[bytes]":
        script = Path(__file__).with_name("math_worker.py")
        command = [sys.executable, "-P", str(script)]
        pipe = subprocess.PIPE
        # unbuffered: a buffer has a lock, and a fork may find it taken by a thread that the child does not have
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0,
                                   start_new_session=True)
        if b"ready" not in process.stdout.readline():
            raise RuntimeError("math-verify does not start; `python -c 'import math_verify'` should show why")
        return process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:  # not reaped yet, so the number of its process group is still its own
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def forget(self) -> None:
        """In a forked child: leave the parent's process alone and start an own one when needed."""
        inherited = self._process
        self.__init__()
        if inherited is not None:
            inherited.stdin.close()
            inherited.stdout.close()
            inherited.returncode = 0  # not this process's child: nothing to wait for


WORKER = Worker()
atexit.register(WORKER._end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=WORKER.forget)
