"""Progress on stderr: a bar with rate and time left on a terminal, else a line every ten seconds."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

from judgekit.cli.commands import say
from judgekit.core.text import in_words
from judgekit.engine.limiter import LONGEST_RESET_SECONDS
from judgekit.engine.passes import Observer

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from judgekit.engine.judging import Tally

LINE_SECONDS = 10.0
WAIT_LINE_SECONDS = 600.0


class ProgressObserver(Observer):
    """Shows how judging goes; a context manager, so that the bar is taken down on errors."""

    def __init__(self, *, quiet: bool) -> None:
        """Show nothing where `quiet`."""
        self._quiet = quiet
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._totals: dict[str, int] = {}
        self._started: dict[str, float] = {}
        self._last_line = time.monotonic()
        self._last_bar = self._last_wait = 0.0

    def __enter__(self) -> "ProgressObserver":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def note(self, text: str) -> None:
        """What the user should know before the work begins, said even where nothing else is shown."""
        say(f"note: {text}")

    def started(self, label: str, n_total: int) -> None:
        """A pass of `n_total` judgments begins."""
        self._totals[label] = n_total
        self._started[label] = time.monotonic()
        if self._quiet or not n_total or not sys.stderr.isatty():
            return
        if self._bars is None:
            self._bars = _open_bars()
        if label in self._tasks:  # the same pass again, once a batch is answered
            self._bars.reset(self._tasks[label], total=n_total, note="", rate="")
        else:
            self._tasks[label] = self._bars.add_task(label, total=n_total, note="", rate="")

    def advanced(self, label: str, tally: "Tally") -> None:
        """One more judgment of a pass is done."""
        if self._quiet:
            return
        now = time.monotonic()
        n_total = self._totals[label]
        if self._bars is not None:
            # Drawing costs more than judging a cached item, so the bar moves ten times a second at most.
            if now - self._last_bar >= 0.1 or tally.n_done == n_total:
                self._last_bar = now
                note = f"{tally.n_failed} failed" if tally.n_failed else ""
                speed = pace(tally.n_done, now - self._started[label])
                self._bars.update(self._tasks[label], completed=tally.n_done, note=note, rate=speed)
        elif now - self._last_line >= LINE_SECONDS:
            self._last_line = now
            seconds = now - self._started[label]
            left = seconds * (n_total - tally.n_done) / tally.n_done
            speed = pace(tally.n_done, seconds)
            say(f"{label}: {tally.n_done} of {n_total}, {speed}, {left:.0f} s left, {tally.n_failed} failed")

    def paused(self, label: str, reset_seconds: float) -> None:
        """A pass waits, since the server says that its limit is used up for so long."""
        if self._quiet:
            return
        once = "; one call is made after a minute" if reset_seconds > LONGEST_RESET_SECONDS else ""
        self._say(
            f"{label}: waiting, since the server says that its limit is used up for {in_words(reset_seconds)}{once}"
        )

    def waiting(self, text: str, *, is_new: bool) -> None:
        """A batch is not answered yet; said when something has changed, and every ten minutes."""
        now = time.monotonic()
        if self._quiet or not (is_new or now - self._last_wait >= WAIT_LINE_SECONDS):
            return
        self._last_wait = now
        self._say(text)

    def _say(self, text: str) -> None:
        if self._bars is not None:
            from judgekit.reports.safe_text import printable

            self._bars.console.print(printable(text), markup=False, highlight=False)
        else:
            say(text)

    def finished(self, label: str) -> None:
        """A pass is over."""
        if self._bars is not None and label in self._tasks:
            self._bars.stop_task(self._tasks[label])


def pace(n_done: int, seconds: float) -> str:
    """How fast judging goes: `12.5/s`, or `16.2 s each` where one takes longer than a second.

    Args:
        n_done: judgments so far, from 1.
        seconds: since the first of them began.
    """
    rate = n_done / max(seconds, 1e-9)
    return f"{rate:.1f}/s" if rate >= 1.0 else f"{seconds / n_done:.1f} s each"


def _open_bars() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bars = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    bars.start()
    return bars
