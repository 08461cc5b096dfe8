"""Inside GitHub Actions: missed gates and warnings as annotations, the summary on the page of the job."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from judgekit.cli.commands import say

if TYPE_CHECKING:
    from judgekit.core.runs import RunSummary

MOST_BYTES = 1_000_000
"""A step's summary may have 1 MiB; a longer one is not shown at all."""


def is_on_github() -> bool:
    """Whether this process is a step of a GitHub Actions job."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def announce(summary: "RunSummary") -> None:
    """Say on stderr (stdout may be JSON) what GitHub turns into annotations, and add summary.md to the job's page."""
    if not is_on_github():
        return
    from judgekit.reports.ci_servers import annotations
    from judgekit.reports.markdown import render_markdown

    for line in annotations(summary):
        typer.echo(line, err=True)
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    text = render_markdown(summary).encode("utf-8", "replace")
    if len(text) > MOST_BYTES:
        text = text[:MOST_BYTES].rpartition(b"\n")[0] + b"\n\nCut here; the whole is in summary.md of the run folder.\n"
    try:
        with Path(target).open("ab") as stream:
            stream.write(text + b"\n")
    except OSError as error:
        say(f"warning: the summary of this step cannot be written: {error.strerror or error}")


def announce_error(message: str) -> None:
    """An annotation for a run that did not come to its end."""
    if is_on_github():
        from judgekit.reports.ci_servers import annotation

        typer.echo(annotation("error", "judgekit", message), err=True)
