"""The pages around reports: the list of runs, and a message where a page cannot be shown."""

from collections.abc import Sequence
from typing import Any

from judgekit.reports.pages import render


def render_runs(results_dir: str, runs: Sequence[Any]) -> str:
    """The list of runs.

    Args:
        results_dir: the folder, to be shown.
        runs: entries with the fields of `storage.run_list.RunEntry`, the newest first.
    """
    return "".join(render("runs.html", {"title": "Runs", "results_dir": results_dir, "runs": runs}))


def render_message(title: str, message: str) -> str:
    """A page that says why there is nothing else to see."""
    return "".join(render("message.html", {"title": title, "message": message}))
