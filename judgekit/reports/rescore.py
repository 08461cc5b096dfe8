"""What scoring a run again changed, as text."""

from collections.abc import Mapping
from typing import Any

from judgekit.reports.columns import aligned
from judgekit.reports.figures import number, printable_line

NEW_NOTICES = ("internal_error", "index_not_written", "index_damaged")
"""Codes of warnings that come of scoring itself."""


def rescored_text(found: Mapping[str, Any]) -> str:
    """Run, versions, each changed figure as `name  old -> new`, and gates.

    Args:
        found: what `judgekit rescore --json` prints of one run.
    """
    n = len(found["changes"])
    how_many = "no figure changed" if not n else "1 figure changed" if n == 1 else f"{n} figures changed"
    versions = f"{found['old_version']} -> {found['new_version']}"
    lines = [f"{found['run_id']}: {how_many} ({versions}; stored verdicts kept)"]
    rows = [(f"  {item['name']}", f"{_shown(item['old'])} -> {_shown(item['new'])}") for item in found["changes"]]
    lines += aligned(rows)
    lines += [f"  gate: {gate['message']}" for gate in found["gates"]]
    lines += [
        f"  warning: {item['message']} [{item['code']}]" for item in found["warnings"] if item["code"] in NEW_NOTICES
    ]
    return "\n".join(printable_line(line) for line in lines)


def _shown(figure: Mapping[str, Any] | None) -> str:
    if figure is None:
        return "absent"
    failed = f", {figure['n_error']} failed" if figure.get("n_error") else ""
    return f"{number(figure['value'], 4)} ({figure['n']}{failed})"
