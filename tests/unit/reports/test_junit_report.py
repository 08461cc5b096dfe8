"""junit.xml: red exactly where the command's exit code is not 0, and well-formed whatever it holds."""

from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.conditions import GateResult
from judgekit.core.runs import Manifest, Notice, RunStatus, RunSummary
from judgekit.reports.ci_servers import render_junit


def manifest(status: RunStatus = "complete", reason: str | None = None, name: str = "suite") -> Manifest:
    return Manifest(
        run_id="r",
        name=name,
        status=status,
        reason=reason,
        created_at="2026-01-31T14:25:01+00:00",
        config_path="c",
        config_sha256="0",
        versions={},
    )


def gate(*, passed: bool, message: str = "mrr >= 0.8: missed, 0.5000", **more: Any) -> GateResult:
    known: dict[str, Any] = {"metric": "mrr", "op": ">=", "value": 0.8, "bound": "point", "observed": 0.5, "n": 9}
    return GateResult(**{**known, **more}, passed=passed, message=message)


def summary(
    *gates: GateResult, judges: dict[str, dict[str, Any]] | None = None, warnings: tuple[Notice, ...] = ()
) -> RunSummary:
    return RunSummary(
        run_id="r",
        name="suite",
        created_at="2026-01-31T14:25:01+00:00",
        status="complete",
        config_sha256="0",
        errors="exclude",
        cases={"n": 9},
        overall={},
        slices={},
        judge_reliability=None,
        judges=judges or {},
        latency={},
        cost={},
        operational={},
        gates=gates,
        warnings=warnings,
    )


def counts(text: str) -> tuple[int, int, int]:
    root = ElementTree.fromstring(text)
    elements = (len(root.findall(".//testcase")), len(root.findall(".//failure")), len(root.findall(".//error")))
    assert elements == tuple(int(root.attrib[key]) for key in ("tests", "failures", "errors"))
    return elements


JUDGE = {"n_judged": 3, "n_failed": 2, "failures": {"invalid": 2}}

# (what, test cases, failures, errors): one test case for the run, one a gate, one a judge.
TABLE: list[tuple[Manifest, RunSummary | None, tuple[int, int, int]]] = [
    (manifest(), summary(), (1, 0, 0)),
    (manifest(), summary(gate(passed=True), gate(passed=True)), (3, 0, 0)),
    (manifest(), summary(gate(passed=True), gate(passed=False)), (3, 1, 0)),
    (manifest(), summary(judges={"groundedness": JUDGE}), (2, 0, 0)),
    (manifest(), summary(judges={"groundedness": {**JUDGE, "n_judged": 0}}), (2, 0, 1)),
    (manifest("interrupted", "budget"), summary(gate(passed=False)), (2, 1, 1)),
    (manifest("running"), None, (1, 0, 1)),
]


@pytest.mark.parametrize(("run", "figures", "expected"), TABLE)
def test_missed_gates_are_failures_and_unfinished_runs_and_mute_judges_errors(
    run: Manifest, figures: RunSummary | None, expected: tuple[int, int, int]
) -> None:
    assert counts(render_junit(run, figures)) == expected


def test_failed_judgments_are_counted_in_the_text_of_their_judge() -> None:
    text = render_junit(manifest(), summary(judges={"groundedness": JUDGE}))
    root = ElementTree.fromstring(text)
    assert [node.text for node in root.findall(".//system-out")][-1] == "3 verdicts, 2 failed: invalid 2"


def test_a_gate_says_its_slice_and_bound() -> None:
    text = render_junit(manifest(), summary(gate(passed=True, slice={"category": "a<b"}, bound="lower")))
    names = [node.attrib["name"] for node in ElementTree.fromstring(text).findall(".//testcase")]
    assert names == ["complete", "mrr >= 0.8 (lower end of the interval) in category=a<b"]


@given(st.text())
def test_any_text_gives_well_formed_xml_without_control_characters(text: str) -> None:
    found = render_junit(
        manifest("interrupted", text, name=text),
        summary(gate(passed=False, message=text), warnings=(Notice(code="c", message=text),)),
    )
    ElementTree.fromstring(found)
    assert not [character for character in found if ord(character) < 32 and character not in "\t\n"]
