"""What CI servers show of a run: its gates as test cases in junit.xml, and annotations of GitHub Actions.

junit.xml is red exactly where the command's exit code is not 0: a missed gate is a failure (one that is undecided is
skipped, unless it fails the command), a run that is not complete and a judge without one verdict are errors. Single
failed judgments are counted in the text of their judge: they do not fail a run, so they do not fail its test cases.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from judgekit.core.conditions import AgainstBaseline, GateResult
from judgekit.core.runs import Manifest, RunSummary
from judgekit.reports.safe_text import inert, printable

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even as a reference."""


@dataclass(frozen=True)
class _TestCase:
    suite: str
    name: str
    outcome: Literal["passed", "failure", "error", "skipped"] = "passed"
    message: str = ""
    output: str = ""


def render_junit(manifest: Manifest, summary: RunSummary | None) -> str:
    """The run as JUnit XML; without figures if it has none."""
    suites: dict[str, list[_TestCase]] = {}
    for case in [_run(manifest, summary), *_gates(summary), *_judges(summary)]:
        suites.setdefault(case.suite, []).append(case)
    everything = [case for cases in suites.values() for case in cases]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(
        f'<testsuites name={_attribute(manifest.name)} {_counts(everything)} time="{manifest.wall_seconds:.3f}">'
    )
    for name, cases in suites.items():
        lines.append(
            f"<testsuite name={_attribute(name)} {_counts(cases)} timestamp={_attribute(manifest.created_at)}>"
        )
        lines += [_element(manifest.name, case) for case in cases]
        lines.append("</testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _run(manifest: Manifest, summary: RunSummary | None) -> _TestCase:
    warnings = [] if summary is None else [f"warning: {item.message} [{item.code}]" for item in summary.warnings]
    output = "\n".join([f"run {manifest.run_id}", *warnings])
    if manifest.status == "complete":
        return _TestCase("run", "complete", output=output)
    return _TestCase("run", "complete", "error", f"{manifest.status}: {manifest.reason or 'no reason given'}", output)


def _gates(summary: RunSummary | None) -> list[_TestCase]:
    found = []
    for gate in summary.gates if summary is not None else ():
        if gate.baseline is not None:
            found.append(_relative(gate, gate.baseline))
            continue
        where = "".join(f" in {dimension}={value}" for dimension, value in gate.slice.items())
        bound = "" if gate.bound == "point" else f" ({gate.bound} end of the interval)"
        name = f"{gate.metric} {gate.op} {gate.value:g}{bound}{where}"
        found.append(_TestCase("gates", name, "passed" if gate.passed else "failure", gate.message, gate.message))
    return found


def _relative(gate: GateResult, baseline: AgainstBaseline) -> _TestCase:
    """A gate that is undecided is skipped, which is neither green nor red, unless it fails then."""
    name = f"{gate.metric} not worse than {baseline.not_worse_than} by more than {gate.value:g}"
    outcome: Literal["failure", "skipped", "passed"]
    outcome = "failure" if gate.fails else "skipped" if gate.state == "undecided" else "passed"
    return _TestCase("gates", name, outcome, gate.message, gate.message)


def _judges(summary: RunSummary | None) -> list[_TestCase]:
    found = []
    for name, record in summary.judges.items() if summary is not None else ():
        kinds = ", ".join(f"{kind} {n}" for kind, n in record["failures"].items())
        text = f"{record['n_judged']} verdicts, {record['n_failed']} failed" + (f": {kinds}" if kinds else "")
        is_mute = record["n_failed"] and not record["n_judged"]
        found.append(_TestCase("judges", f"{name} gives verdicts", "error" if is_mute else "passed", text, text))
    return found


def _element(name: str, case: _TestCase) -> str:
    inner = "" if case.outcome == "passed" else f"<{case.outcome} message={_attribute(case.message)}/>"
    if case.output:
        inner += f"<system-out>{_text(case.output)}</system-out>"
    return f"<testcase classname={_attribute(f'{name}.{case.suite}')} name={_attribute(case.name)}>{inner}</testcase>"


def _counts(cases: Sequence[_TestCase]) -> str:
    n_failures = sum(case.outcome == "failure" for case in cases)
    n_errors = sum(case.outcome == "error" for case in cases)
    n_skipped = sum(case.outcome == "skipped" for case in cases)
    return f'tests="{len(cases)}" failures="{n_failures}" errors="{n_errors}" skipped="{n_skipped}"'


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", inert(text))


def _text(text: str) -> str:
    return escape(_clean(text), quote=False)


def _attribute(text: str) -> str:
    return f'"{escape(" ".join(_clean(text).split()))}"'


def annotations(summary: RunSummary) -> list[str]:
    """What GitHub Actions shows of a run: a line for each gate that did not pass, and one for each warning.

    What fails the command is an error, a gate that is undecided and does not fail a warning.
    """
    lines = [
        annotation("error" if gate.fails else "warning", f"gate {gate.state}: {gate.metric}", gate.message)
        for gate in summary.gates
        if gate.state != "passed"
    ]
    return lines + [annotation("warning", item.code, item.message) for item in summary.warnings]


def annotation(level: str, title: str, message: str) -> str:
    """A workflow command whose title and message cannot end it or start another one.

    Args:
        level: `error`, `warning` or `notice`.
        title: a property, in which commas and colons are escaped too.
        message: any text; line breaks are kept.
    """
    name = _data(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={name}::{_data(message)}"


def _data(text: str) -> str:
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
