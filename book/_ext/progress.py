"""Sphinx extension: say which cell of which chapter is being executed, so that a long build is not silent."""

import sys
import threading
import time

from nbclient import NotebookClient
from sphinx.application import Sphinx

EVERY_SECONDS = 10


class Progress:
    """Prints one line every ten seconds while a notebook is executed.

    ``page`` and ``cell`` are set by Sphinx and nbclient on the main thread; the printing thread only reads them.
    """

    def __init__(self) -> None:
        self.page, self.cell, self.since = "", 0, 0.0
        self.done = threading.Event()

    def start(self, app: Sphinx) -> None:
        """Begin to watch (event ``builder-inited``)."""
        threading.Thread(target=self._watch, daemon=True).start()

    def read(self, app: Sphinx, docname: str, source: list[str]) -> None:
        """A page begins (event ``source-read``)."""
        self.page, self.cell, self.since = docname, 0, time.monotonic()

    def cell_starts(self, cell: object, cell_index: int) -> None:
        """A cell begins (nbclient's hook)."""
        self.cell = cell_index + 1

    def finish(self, app: Sphinx, error: Exception | None) -> None:
        """Stop to watch (event ``build-finished``)."""
        self.done.set()

    def _watch(self) -> None:
        while not self.done.wait(EVERY_SECONDS):
            if self.cell:
                seconds = time.monotonic() - self.since
                print(f"  … {self.page}: cell {self.cell}, {seconds:.0f} s", file=sys.stderr, flush=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    progress = Progress()
    NotebookClient.on_cell_start.default_value = progress.cell_starts
    app.connect("builder-inited", progress.start)
    app.connect("source-read", progress.read)
    app.connect("doctree-read", lambda app, doctree: setattr(progress, "cell", 0))
    app.connect("build-finished", progress.finish)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
