"""A live bar in a notebook, by the display that every kernel of IPython has; elsewhere nothing is shown."""

import sys
import time
from html import escape
from importlib import import_module
from typing import Any

from judgekit.core.text import in_words
from judgekit.engine.judging import Tally
from judgekit.engine.passes import Observer

_EVERY_SECONDS = 0.2
"""A notebook draws each change anew, and keeps all of them until the cell is done."""


def observer_here() -> Observer:
    """One that draws a bar where the program is a notebook, else one that is silent."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return Observer() if getattr(shell, "kernel", None) is None else LiveBar()


class LiveBar(Observer):
    """A line for each pass over the cases: how far it is, how long it takes, and how many failed."""

    def __init__(self) -> None:
        self._passes: dict[str, _Pass] = {}
        self._notes: list[str] = []
        self._batches = ""
        self._handle: Any = None
        self._drawn = 0.0

    def note(self, text: str) -> None:
        """What the user should know before the work begins."""
        self._notes.append(text)
        self._draw()

    def started(self, label: str, n_total: int) -> None:
        """A pass begins."""
        if n_total:
            self._passes[label] = _Pass(label, n_total)
            self._draw()

    def advanced(self, label: str, tally: Tally) -> None:
        """One more case of a pass is done."""
        found = self._passes[label]
        found.n_done, found.n_failed, found.waits = tally.n_done, tally.n_failed, ""
        if time.monotonic() - self._drawn >= _EVERY_SECONDS:
            self._draw()

    def paused(self, label: str, reset_seconds: float) -> None:
        """A pass waits for the server."""
        if label in self._passes:
            self._passes[label].waits = f"the server's limit is used up for {in_words(reset_seconds)}"
            self._draw()

    def waiting(self, text: str, *, is_new: bool) -> None:
        """A batch is not answered yet."""
        if is_new:
            self._batches = text
            self._draw()

    def finished(self, label: str) -> None:
        """A pass is over."""
        if label in self._passes:
            self._passes[label].seconds = time.monotonic() - self._passes[label].began
            self._draw()

    def _draw(self) -> None:
        ipython: Any = import_module("IPython.display")
        self._drawn = time.monotonic()
        lines = [f"<div>{escape(note)}</div>" for note in self._notes]
        lines += [found.html() for found in self._passes.values()]
        lines += [f"<div>{escape(self._batches)}</div>"] if self._batches else []
        shown = ipython.HTML(f"<div>{''.join(lines)}</div>")
        if self._handle is None:
            self._handle = ipython.display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Pass:
    """How far one pass is."""

    def __init__(self, label: str, n_total: int) -> None:
        self.label, self.n_total = label, n_total
        self.n_done = self.n_failed = 0
        self.waits = ""
        self.began = time.monotonic()
        self.seconds: float | None = None

    def html(self) -> str:
        """A bar with what is said beside it."""
        parts = [f"{self.n_done} of {self.n_total}"]
        if self.seconds is not None:
            parts.append(f"in {_seconds(self.seconds)}")
        elif self.n_done:
            left = (time.monotonic() - self.began) * (self.n_total - self.n_done) / self.n_done
            parts.append(f"{_seconds(left)} left")
        parts += [f"{self.n_failed} failed"] if self.n_failed else []
        parts += [f"waiting: {self.waits}"] if self.waits else []
        bar = f'<progress max="{self.n_total}" value="{self.n_done}"></progress>'
        return f"<div>{bar} {escape(self.label)}: {escape(', '.join(parts))}</div>"


def _seconds(seconds: float) -> str:
    return in_words(seconds) if seconds >= 60 else f"{seconds:.1f} s"
