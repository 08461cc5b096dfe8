"""Who is told how judging goes."""

from typing import Protocol

from judgekit.engine.judging import Tally


class Observer(Protocol):
    """Who is told how the work goes."""

    def note(self, text: str) -> None:
        """What the user should know before the work begins."""

    def started(self, label: str, n_total: int) -> None:
        """A pass of `n_total` judgments begins."""

    def advanced(self, label: str, tally: Tally) -> None:
        """One more judgment of a pass is done."""

    def paused(self, label: str, reset_seconds: float) -> None:
        """A pass waits, since the server says that its limit is used up for so long."""

    def finished(self, label: str) -> None:
        """A pass is over."""


class SilentObserver:
    """Tells nobody."""

    def note(self, text: str) -> None:
        """Ignore."""

    def started(self, label: str, n_total: int) -> None:
        """Ignore."""

    def advanced(self, label: str, tally: Tally) -> None:
        """Ignore."""

    def paused(self, label: str, reset_seconds: float) -> None:
        """Ignore."""

    def finished(self, label: str) -> None:
        """Ignore."""
