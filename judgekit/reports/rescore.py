"""What scoring a run anew changed, as text."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from judgekit.core.runs import RunSummary
from judgekit.reports.columns import aligned
from judgekit.reports.figures import number, printable_line


class Change(Protocol):
    """A figure that is another one now."""

    @property
    def name(self) -> str: ...
    @property
    def old(self) -> Mapping[str, Any] | None: ...
    @property
    def new(self) -> Mapping[str, Any] | None: ...


class Rescored(Protocol):
    """What came of scoring a run anew."""

    @property
    def run_id(self) -> str: ...
    @property
    def old_version(self) -> str: ...
    @property
    def new_version(self) -> str: ...
    @property
    def summary(self) -> RunSummary: ...
    @property
    def changes(self) -> Sequence[Change]: ...


def rescored_text(result: Rescored) -> str:
    """Run, versions, each changed figure as `name  old -> new`, and gates."""
    n = len(result.changes)
    how_many = "no figure changed" if not n else "1 figure changed" if n == 1 else f"{n} figures changed"
    lines = [f"{result.run_id}: {how_many} ({result.old_version} -> {result.new_version}; stored verdicts kept)"]
    rows = [(f"  {change.name}", f"{_shown(change.old)} -> {_shown(change.new)}") for change in result.changes]
    lines += aligned(rows)
    lines += [f"  gate: {gate.message}" for gate in result.summary.gates]
    lines += [f"  warning: {notice.message} [{notice.code}]" for notice in result.summary.warnings if _is_new(notice)]
    return "\n".join(printable_line(line) for line in lines)


def _is_new(notice: Any) -> bool:
    return notice.code in ("internal_error", "index_not_written", "index_damaged")


def _shown(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "absent"
    failed = f", {figure['n_error']} failed" if figure.get("n_error") else ""
    return f"{number(figure['value'], 4)} ({figure['n']}{failed})"
