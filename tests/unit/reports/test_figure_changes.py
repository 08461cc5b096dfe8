"""What a report says of a figure since the run before."""

from typing import Any

import pytest

from judgekit.analysis.run_trends import Trend, TrendRun
from judgekit.core.conditions import AgainstBaseline
from judgekit.core.scores import Scale
from judgekit.reports.figure_changes import change_part, run_before
from tests.unit.reports.test_run_sentence import gate, summary

SHARE = Scale(unit="share", low=0.0, high=1.0, better="higher")
LESS = SHARE.model_copy(update={"better": "lower"})


def trend(*values: tuple[float, float, float], basis: tuple[str, ...] = ()) -> dict[str, Any]:
    runs = [
        TrendRun(
            run_id=f"r{place}",
            created_at=f"2026-01-0{place + 1}T10:00:00",
            value=value,
            low=low,
            high=high,
            n=40,
            basis={"data set": basis[place] if basis else "same"},
        )
        for place, (value, low, high) in enumerate(values)
    ]
    return Trend("mrr", "suite", None, runs).document()


@pytest.mark.parametrize(("scale", "word", "kind"), [(SHARE, "worse: ", "bad"), (LESS, "better: ", "good")])
def test_a_change_that_the_intervals_bear_out_is_better_or_worse(scale: Scale, word: str, kind: str) -> None:
    found = change_part(summary(scales={"mrr": scale}), "mrr", trend((0.9, 0.85, 0.95), (0.5, 0.4, 0.6)))
    assert found["change"] == f"{word}down from 90% on 2026-01-01 (r0)"
    assert found["kind"] == kind
    assert found["runs"] == "The last 2 comparable runs: 90%, 50%."
    assert "polyline" in found["line"]


def test_overlapping_intervals_are_never_called_better_or_worse() -> None:
    found = change_part(summary(scales={"mrr": SHARE}), "mrr", trend((0.9, 0.8, 0.95), (0.85, 0.7, 0.9)))
    assert found["change"] == "down from 90% on 2026-01-01 (r0), which may be chance"
    assert found["kind"] == ""


def test_only_runs_that_rest_on_the_same_are_drawn_and_compared() -> None:
    values = (0.2, 0.1, 0.3), (0.9, 0.8, 0.95), (0.9, 0.8, 0.95)
    moved = trend(*values, basis=("old", "new", "new"))
    found = change_part(summary(scales={"mrr": SHARE}), "mrr", moved)
    assert found["change"] == "the same as on 2026-01-02 (r1)"
    assert found["runs"] == "The last 2 comparable runs: 90%, 90%."
    assert run_before(moved) == "r1"
    other = trend(*values, basis=("old", "old", "new"))
    found = change_part(summary(scales={"mrr": SHARE}), "mrr", other)
    assert found["change"] == "not comparable with the run before: other data set"
    assert (found["line"], found["runs"], run_before(other)) == ("", "", None)


def test_the_paired_difference_of_a_baseline_gate_comes_before_the_run_before() -> None:
    baseline = AgainstBaseline(not_worse_than="latest:main", run_id="main-7", low=-0.2, high=0.02)
    relative = gate(None, op="not_worse_than", value=0.1, observed=-0.09, baseline=baseline)
    found = change_part(summary(gates=(relative,)), "mrr", trend((0.9, 0.8, 0.95), (0.85, 0.7, 0.9)))
    assert found["change"] == "-0.090 against main-7 (95% -0.200 to 0.020)"


def test_a_first_run_has_nothing_to_tell() -> None:
    assert change_part(summary(), "mrr", trend((0.9, 0.8, 0.95)))["change"] == ""
    assert change_part(summary(), "mrr", None) == {"line": "", "runs": "", "change": "", "kind": ""}
