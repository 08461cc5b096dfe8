"""What the report says of each judge: every part alone, old forms, and what is left out where nothing is known."""

from typing import Any

import pytest

from judgekit.core.prompts import PromptTemplate
from judgekit.reports import pages
from judgekit.reports.calibration_report import human_label_parts
from judgekit.reports.charts import share_bar, signed_bar
from judgekit.reports.judge_questions import question_part
from judgekit.reports.page_judges import judge_blocks
from judgekit.reports.probe_report import probe_part
from tests.run_folders import a_summary

SHARE = {"value": 0.8, "low": 0.5, "high": 0.9, "k": 8, "n": 10}
PROBE = {
    "about": "the answer half as long again",
    "expects": "same",
    "n": 20,
    "n_failed_original": 0,
    "n_failed_probe": 1,
    "n_not_applicable": 2,
    "not_applicable": {"a single passage": 2},
    "effect": -2.0,
    "low": -2.5,
    "high": -1.5,
    "p": 0.0001,
    "p_adjusted": 0.0002,
    "minimum_detectable_effect": 0.4,
    "changed": SHARE,
    "verdict": "failed",
    "reason": "scores move",
}
PROBES = {
    "model": "m-1",
    "model_id": "m",
    "prompt_version": "v1",
    "n_cases": 20,
    "n_population": 50,
    "originals_note": "originals are of the run",
    "probes": {"answer_padded": PROBE, "unchanged": {**PROBE, "effect": None, "low": None, "high": None}},
}
CORRECTED = {
    "score": {
        "estimate": 3.5,
        "low": None,
        "high": None,
        "judge_mean": 3.0,
        "n_human": 12,
        "n_effective": None,
        "rule": "none",
        "reason": "fewer than 20 labels",
        "lambda": None,
        "target": "run",
        "labels_for_width": None,
    }
}
FLOOR = {"flip_rate": 0.1, "n_flips": 1, "n": 10, "n_changed": 3, "interval": {"low": 0.01, "high": 0.4}}
PANEL = {
    "rule": "median",
    "quorum": 2,
    "members": {"a": {"model": "a-1", "note": None}, "b": {"model": "b-1", "note": "local"}},
    "n_cases": 10,
    "n_complete": 9,
    "n_unanimous": 4,
    "n_ties": 1,
    "n_below_quorum": 1,
    "failures": {"a": {"timeout": 1}, "b": {}},
    "mean_rating": {"a": 3.0, "b": None},
    "agreement": [{"members": ["a", "b"], "n": 9, "exact": 0.5, "same_class": None}],
    "mean_correlation": None,
    "effective_votes": None,
    "undefined_reason": "no two members vary",
}
REJUDGED = {
    "parent": "old",
    "n": 10,
    "n_unscored": 1,
    "changed": 2,
    "n_disagree": 1,
    "mean_signed_difference": -0.2,
    "low": None,
    "high": None,
    "p": 0.5,
    "cases": [{"case_id": "<c1>", "before": 5, "after": 3}],
}


def page(summary: Any) -> str:
    """The section of the report, through its template."""
    blocks = judge_blocks(summary)
    text = "{% import 'judges.html' as judges_of %}{% for judge in blocks %}{{ judges_of.block(judge) }}{% endfor %}"
    return pages._environment().from_string(text).render(blocks=blocks)


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        ({"probes": PROBES}, ["answer_padded", "scores move", "changed 8 of 10", "&lt; 0.001", "probes: 2 failed"]),
        ({"corrected": CORRECTED}, ["The run as people would score it", "fewer than 20 labels"]),
        ({"noise_floor": FLOOR}, ["1 of 10 verdicts flip", "3 change at all"]),
        ({"comparator_value": None, "anchors": {}, "probes": PROBES}, ["answer_padded"]),
        ({"anchors": {"of another maker": 1}}, []),
        ({}, []),
    ],
)
def test_each_part_is_shown_alone(report: dict[str, Any], shown: list[str]) -> None:
    summary = a_summary().model_copy(update={"judge_reliability": {"by_judge": {"groundedness": report}}})
    text = page(summary)
    assert all(part in text for part in shown)
    assert bool(text) == bool(shown)


def test_a_spot_check_of_an_older_version_has_its_plain_figures() -> None:
    text = page(a_summary())
    assert "spot check: alarm" in text
    assert "0.100 to 0.600" in text
    assert "95%, this run" in text


def test_a_panel_says_what_it_is_worth() -> None:
    summary = a_summary()
    judges = {"groundedness": {**summary.judges["groundedness"], "panel": PANEL}}
    text = page(summary.model_copy(update={"judges": judges}))
    for part in ("panel of 2", "9 of 10", "a and b", "timeout (1)", "No two members vary"):
        assert part in text


def test_changed_verdicts_lead_to_their_cases_and_are_escaped() -> None:
    rejudged = {**REJUDGED, "by_judge": {"groundedness": REJUDGED}}
    text = page(a_summary().model_copy(update={"rejudged": rejudged}))
    assert 'data-case="&lt;c1&gt;"' in text
    assert "2 of 10 verdicts differ from those of <code>old</code>" in text
    assert "1 more in metrics.json" in text


def test_nothing_known_is_nothing_shown() -> None:
    assert judge_blocks(a_summary().model_copy(update={"judge_reliability": None})) == []
    assert probe_part(None) is None
    assert human_label_parts({}) == {"human_labels": None, "corrected": None, "comparator": None}


def test_bars_stay_on_their_track() -> None:
    # 120 wide: 0.5 of 1 is at 60, less half of the mark's 3
    assert 'class="mark" x="58.5"' in share_bar(0.5, (0.25, 0.75))
    assert 'class="band" x="30.0" y="4" width="60.0"' in share_bar(0.5, (0.25, 0.75))
    # -4 of a reach of 2 is drawn at the left end, 0 in the middle
    assert 'class="mark" x="0.0"' in signed_bar(-4.0, (None, None), 2.0)
    assert 'class="limit" x="60.0"' in signed_bar(-4.0, (None, None), 2.0)
    assert share_bar(None, (None, None)) == signed_bar(None, (None, None), 1.0) == ""
    assert share_bar(2.0, (None, None)) == ""


@pytest.mark.parametrize(
    ("rubric", "facts", "rows"),
    [
        (
            {"scale": (-1, 1), "levels": {-1: "cold"}},
            ["a whole number from -1 to 1", "nothing passes or fails"],
            ["-1"],
        ),
        ({"scale": (1, 5), "pass": 4}, ["a whole number from 1 to 5", "4 and above"], []),
        ({"yes_no": {"pass": "no"}}, ["yes or no", "no"], []),
        (
            {"labels": {"on": "a", "off": "b"}, "cannot_tell": True},
            ["that it cannot tell"],
            ["on", "off", "cannot tell"],
        ),
        ({"criteria": {"short": "It is short."}, "pass": 0.5}, ["0.5 and above"], ["short"]),
        ({"criteria": "case"}, ["each case brings its own"], []),
        ({"preference": True}, ["which of two answers is better, asked in both orders"], []),
    ],
)
def test_a_question_says_what_a_verdict_is_and_what_passes(
    rubric: dict[str, Any], facts: list[str], rows: list[str]
) -> None:
    prompt = PromptTemplate.model_validate({"judge": "own", "version": "v1", "ask": "Is it?", **rubric})
    part = question_part("own", a_summary(), prompt)
    assert part is not None
    said = [value for _, value in part["facts"]]
    assert all(fact in said for fact in facts)
    assert [row["name"] for row in part["rows"]] == rows
    assert question_part("own", a_summary(), None) is None
