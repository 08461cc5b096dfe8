"""What GitHub Actions shows of a run: annotations, which are lines of a special form on the log."""

from judgekit.core.runs import RunSummary
from judgekit.reports.figures import printable


def annotations(summary: RunSummary) -> list[str]:
    """One line for each missed gate (an error) and each warning (a warning)."""
    lines = [
        annotation("error", f"gate missed: {gate.metric}", gate.message) for gate in summary.gates if not gate.passed
    ]
    return lines + [annotation("warning", item.code, item.message) for item in summary.warnings]


def annotation(level: str, title: str, message: str) -> str:
    """A workflow command whose title and message cannot end it or start another one.

    Args:
        level: `error`, `warning` or `notice`.
        title: a property, in which commas and colons are escaped too.
        message: any text; line breaks are kept.
    """
    return f"::{level} title={_property(printable(title))}::{_data(printable(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
