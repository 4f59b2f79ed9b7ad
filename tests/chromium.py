"""A headless Chromium that reports what a page does: its requests, its console errors, its rendered content."""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0",
         "--remote-allow-origins=*", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--allow-file-access-from-files")  # fmt: skip
READY = "(window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => document.readyState)"


def executable() -> str | None:
    """The path of a Chromium on this machine, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Page:
    """What one visit showed.

    Attributes:
        requests: every address that the page asked for.
        errors: console errors and uncaught exceptions.
    """

    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Browser:
    """One tab, driven by the DevTools protocol."""

    def __init__(self, address: str):
        from websocket import create_connection

        self.socket = create_connection(address, timeout=180)
        self.sent = 0
        self.page = Page()
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result; events that arrive meanwhile are noted."""
        self.sent += 1
        self.socket.send(json.dumps({"id": self.sent, "method": method, "params": params}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.sent:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._note(message.get("method", ""), message.get("params", {}))

    def visit(self, address: str, wait_seconds: float = 0.5) -> Page:
        """Open a page, wait for it and its formulas, and say what it did."""
        self.page = Page()
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + 120
        while self.value("document.readyState") != "complete":
            if time.monotonic() > deadline:
                raise TimeoutError(address)
            time.sleep(0.1)
        self.value(READY)
        time.sleep(wait_seconds)
        self.value("1")
        return self.page

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        reply = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return reply["result"].get("value")

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.page.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.page.errors.append(json.dumps(params["exceptionDetails"])[:400])
        elif method == "Runtime.consoleAPICalled" and params["type"] == "error":
            self.page.errors.append(json.dumps(params["args"])[:400])
        elif method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.page.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a Chromium with a fresh profile, and end it."""
    import urllib.request

    profile = tempfile.mkdtemp(prefix="explorl-chromium-")
    process = subprocess.Popen(
        [str(executable()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = _port(Path(profile) / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=30) as reply:
            tabs = json.load(reply)
        yield Browser(next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page"))
    finally:
        process.terminate()
        process.wait(timeout=20)
        shutil.rmtree(profile, ignore_errors=True)


def _port(file: Path) -> int:
    deadline = time.monotonic() + 120
    while not (file.is_file() and file.read_text()):
        if time.monotonic() > deadline:
            raise TimeoutError("Chromium did not start")
        time.sleep(0.1)
    return int(file.read_text().split()[0])
