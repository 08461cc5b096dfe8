"""Lines of text reports: a name of a case or a slice is hostile, and stays inside its line."""

import pytest

from judgekit.core.runs import RunSummary
from judgekit.core.scores import Estimate
from judgekit.reports.figures import p_value
from judgekit.reports.run_text import plain_text
from judgekit.reports.safe_text import printable_line
from judgekit.stats.means import round4


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\tc", "a b c"),
        ("  indented", "  indented"),
        ("\x1b[31mred\r", "\ufffd[31mred\ufffd"),
        ("left\u202eright\u2028next", "left\ufffdright\ufffdnext"),
    ],
)
def test_a_line_is_one_line_and_keeps_its_indent(text: str, line: str) -> None:
    assert printable_line(text) == line


def test_a_slice_cannot_write_a_line_of_its_own() -> None:
    figure = Estimate(value=1.0, low=None, high=None, n=1, n_not_applicable=0, n_error=0, method="mean", small=True)
    summary = RunSummary(
        run_id="r",
        name="suite",
        created_at="2026-01-31T14:25:01+00:00",
        status="complete",
        config_sha256="",
        errors="exclude",
        cases={"n": 1},
        overall={},
        slices={"category": {"x\ngate: all passed": {"recall_any@5": figure}}},
        judges={},
        judge_reliability=None,
        latency={},
        cost={"n_calls": 0, "n_from_cache": 0, "usd": 0.0},
        operational={},
        n_gates=1,
    )
    lines = plain_text(summary, stats=True).splitlines()
    assert not [line for line in lines if line.startswith("gate: all")]
    assert any("category=x gate: all passed (1)" in line for line in lines)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.5, "0.500"), (0.0344, "0.034"), (0.00095, "0.001"), (0.0005, "< 0.001"), (0.0, "< 0.001")]
)
def test_a_p_value_is_never_shown_as_0_and_reads_the_same_once_it_is_stored(value: float, shown: str) -> None:
    assert p_value(value) == p_value(round4(value)) == shown
