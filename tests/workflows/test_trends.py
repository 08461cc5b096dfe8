"""A figure over the runs: what it was, with its interval, and between which runs it can be compared at all."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import judgekit
from judgekit.analysis.run_trends import Trend, TrendRun, latest_stretch
from judgekit.core.errors import ConfigError
from judgekit.reports.runs_page import render_runs, render_trend
from judgekit.reports.timelines import trend_svg, trend_text
from judgekit.storage.run_list import list_runs
from judgekit.workflows.local_page import Asked
from judgekit.workflows.models import Options
from judgekit.workflows.trend import TrendQuery, find_trend, rests_on
from judgekit.workflows.view import ResultsViewer
from tests.builders import case, output, read_json, read_lines, write_lines, write_suite
from tests.cli.fork_server import judgekit as command

RATE = "hallucination_rate_unanswerable"


def write_unanswerable(folder: Path, n_answered: int, n_cases: int = 10, **suite: Any) -> Path:
    """Cases that no document answers, of which the system answers some all the same."""
    ids = [f"c{number}" for number in range(n_cases)]
    return write_suite(
        folder,
        case_rows=[{**case(case_id), "answerable": False} for case_id in ids],
        output_rows=[{**output(case_id), "abstained": number >= n_answered} for number, case_id in enumerate(ids)],
        **suite,
    )


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three weeks in which fewer and fewer are answered: 8, 3 and 0 of 10."""
    for week, n_answered in enumerate((8, 3, 0)):
        run_at(write_unanswerable(tmp_path, n_answered), week)
    return tmp_path / "results"


def run_at(config: Path, week: int, **options: Any) -> None:
    """A run that says of itself that it was made in this week."""
    judgekit.run(config, run_id=f"w{week}", **options)
    path = config.parent / "results" / f"w{week}" / "manifest.json"
    path.write_text(json.dumps({**read_json(path), "created_at": f"2026-01-{week + 1:02d}T10:00:00+00:00"}))


def document_of(results: Path, metric: str = RATE, **query: Any) -> dict[str, Any]:
    return find_trend(TrendQuery(metric, **query), Options(results_dir=results)).trend.document()


@pytest.mark.slow
def test_whether_a_rate_is_going_to_0_is_answered_with_intervals(results: Path) -> None:
    done = command("runs", "trend", RATE, "--results-dir", results)
    assert done.returncode == 0, done.stderr
    rows = [line.split()[2:] for line in done.stdout.splitlines() if re.search(r" w\d ", line)]
    # Wilson 95% of 8, 3 and 0 of 10.
    assert [(row[0], row[1], row[2], row[4], row[5]) for row in rows] == [
        ("w0", "80%", "49%", "94%", "10"),
        ("w1", "30%", "11%", "60%", "10"),
        ("w2", "0%", "0%", "28%", "10"),
    ]
    assert f"{RATE} (↓ lower is better) in runs of suite" in done.stdout
    assert "3 comparable runs: 80% (95% 49% to 94%) over 10 cases to 0%" in done.stdout
    assert "down by 80.0 pp; the two intervals do not overlap" in done.stdout
    assert "0 is within the interval of the last run, and so is everything up to 28%" in done.stdout
    assert "not comparable" not in done.stdout
    older = trend_text(document_of(results) | {"scale": None})
    assert "0.800 (95% 0.490 to 0.943) over 10 cases to 0.000" in older
    assert "down by 0.800" in older


def test_other_data_begin_a_new_stretch_and_say_so(results: Path) -> None:
    run_at(write_unanswerable(results.parent, 9, n_cases=12), 3)
    run_at(write_unanswerable(results.parent, 9, n_cases=12), 4, limit=11)
    document = document_of(results)
    assert [run["stretch"] for run in document["runs"]] == [0, 0, 0, 1, 2]
    assert document["runs"][3]["changed"][0].startswith("data set: ")
    assert document["runs"][4]["changed"][0].endswith(", 11 of 12 cases (--limit 11: the first ones)")
    assert document["latest"]["n_runs"] == 1
    text = trend_text(document)
    assert text.count("-- not comparable with the runs above: data set") == 2
    assert "1 run since the last change: 82% (95% 52% to 95%)" in text
    assert "a trend needs two runs" in text


def test_another_judge_or_wording_matters_to_its_own_figures_only(tmp_path: Path) -> None:
    run_at(write_suite(tmp_path), 0)
    run_at(write_suite(tmp_path, judges=[{"name": "groundedness", "model": "m", "prompt_version": "v2"}]), 1)
    run_at(write_suite(tmp_path, judges=[{"name": "groundedness", "model": "m", "args": {"pass_score": 5}}]), 2)
    document = document_of(tmp_path / "results", "groundedness")
    changed = [[text.partition(":")[0] for text in run["changed"]] for run in document["runs"]]
    assert changed == [
        [],
        ["prompt of judge groundedness"],
        ["prompt of judge groundedness", "settings of judge groundedness"],
    ]
    assert all(not run["changed"] for run in document_of(tmp_path / "results", "error_rate")["runs"])


def test_abstentions_by_a_flag_and_by_the_shipped_rule_are_two_figures(results: Path) -> None:
    config = write_unanswerable(results.parent, 2)
    outputs = config.parent / "outputs.jsonl"
    write_lines(outputs, [{**row, "abstained": None} for row in read_lines(outputs)])
    run_at(config, 3)
    changed = document_of(results)["runs"][3]["changed"]
    assert changed == ["what says which answers abstain: flag to rule"]


@pytest.mark.parametrize(
    ("metric", "families", "judges"),
    [
        ("recall_any@5", ("retrieval",), ()),
        (RATE, ("abstention",), ("abstention",)),
        ("groundedness_pass_rate", (), ("groundedness",)),
        ("abstention", (), ("abstention",)),
        ("figure_of_a_plugin", (), ("abstention", "groundedness")),
    ],
)
def test_what_a_figure_rests_on(metric: str, families: tuple[str, ...], judges: tuple[str, ...]) -> None:
    assert rests_on(metric, {"abstention": {}, "groundedness": {}}) == (families, judges)


def test_runs_without_a_figure_that_counts_are_shown_with_the_reason(results: Path) -> None:
    run_at(write_suite(results.parent), 3)  # all of its cases can be answered
    assert command("rejudge", "w3", "--run-id", "again", "--results-dir", results).returncode == 0
    path = results / "w1" / "manifest.json"
    path.write_text(json.dumps({**read_json(path), "status": "interrupted"}))
    (results / "w0" / "metrics.json").write_text("{")
    document = document_of(results)
    why = {run["run_id"]: run["why"] for run in document["runs"]}
    assert "damaged" in why["w0"] or "not valid JSON" in why["w0"]
    assert why["w1"] == "interrupted, so its figures are of a part"
    assert why["w2"] is None
    assert why["w3"] == "no case has a value"
    assert why["again"] == "judges the answers of w3 again"
    assert document["latest"]["n_runs"] == 1


def test_runs_are_chosen_by_suite_tag_and_number(results: Path) -> None:
    run_at(write_unanswerable(results.parent, 5, name="other"), 3)
    found = find_trend(TrendQuery(RATE), Options(results_dir=results))
    assert (found.trend.suite, found.other_suites) == ("other", ["suite"])
    assert len(document_of(results, suite="suite")["runs"]) == 3
    assert [run["run_id"] for run in document_of(results, suite="suite", limit=2)["runs"]] == ["w1", "w2"]
    assert command("runs", "tag", "w1", "nightly", "--results-dir", results).returncode == 0
    assert [run["run_id"] for run in document_of(results, tag="nightly")["runs"]] == ["w1"]
    done = command("runs", "trend", RATE, "--results-dir", results)
    assert "note: runs of other only; --suite shows those of suite" in done.stderr


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"metric": "halucination_rate_unanswerable"}, "did you mean 'hallucination_rate_unanswerable'"),
        ({"metric": RATE, "suite": "nobody"}, "no run in .* of suite nobody"),
        ({"metric": "mrr"}, "mrr: no run has a "),
    ],
)
def test_what_cannot_be_shown_is_one_line_with_exit_code_2(results: Path, query: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        document_of(results, **query)
    flags = ["--suite", query["suite"]] if "suite" in query else []
    done = command("runs", "trend", query["metric"], *flags, "--results-dir", results)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1


def test_the_picture_and_the_json_hold_what_the_text_says(results: Path, tmp_path: Path) -> None:
    run_at(write_unanswerable(results.parent, 9, n_cases=12), 3)
    picture = tmp_path / "trend.svg"
    done = command("runs", "trend", RATE, "--json", "--svg", picture, "--results-dir", results)
    document = json.loads(done.stdout)
    assert [run["value"] for run in document["runs"]] == [0.8, 0.3, 0.0, 0.75]
    root = ElementTree.fromstring(picture.read_text())
    circles = [element for element in root.iter() if element.tag.endswith("circle")]
    assert len(circles) == 4
    marked = [element for element in root.iter() if element.get("class") == "changed"]
    assert len(marked) == 1
    # Three runs are joined by two lines, and the fourth, of other data, by none.
    joins = [element for element in root if element.get("class") == "usual"]
    assert len(joins) == 2
    assert done.stderr.strip().endswith(f"wrote {picture}")


HOSTILE = '<script>alert("1")</script>\u202e&\x1b[31m'


def test_hostile_names_are_shown_and_never_carried_out() -> None:
    run = TrendRun(HOSTILE, "2026-01-01T10:00:00", 0.5, 0.4, 0.6, 10, basis={HOSTILE: "a"})
    other = TrendRun("b", "2026-01-02T10:00:00", why=HOSTILE)
    last = TrendRun("c", "2026-01-03T10:00:00", 0.5, 0.4, 0.6, 10, basis={HOSTILE: "b"})
    document = Trend(HOSTILE, HOSTILE, HOSTILE, [run, other, last]).document()
    for text in (trend_text(document), trend_svg(document), render_trend(document, [HOSTILE])):
        assert "\x1b" not in text
        assert "\u202e" not in text
    for page in (trend_svg(document), render_trend(document, [HOSTILE])):
        assert "<script>alert" not in page
    ElementTree.fromstring(trend_svg(document))


def test_the_viewer_has_a_page_for_a_figure_without_a_script(results: Path) -> None:
    viewer = ResultsViewer(results)
    index = viewer.answer(Asked("/")).body.read().decode()
    assert f'href="/trend/{RATE}?suite=suite"' in index
    page = viewer.answer(Asked(f"/trend/{RATE}"))
    body = page.body.read().decode()
    assert page.status == 200
    assert "script-src" not in page.policy
    assert "<script" not in body
    assert 'href="/runs/w2/"' in body
    assert "80% (95% 49% to 94%) over 10 cases to 0% (95% 0% to 28%) over 10 cases, down by 80.0 pp" in body
    assert "↓ lower is better" in body
    assert body.count("<circle") == 3
    assert 'href="/trend/abstention_accuracy?suite=suite"' in body
    assert f'href="/trend/{RATE}?suite=suite"' not in body
    assert viewer.answer(Asked(f"/trend/{RATE}?suite=suite")).status == 200
    for missing in (
        f"/trend/{RATE}?suite=nobody",
        "/trend/nothing",
        "/trend/",
        "/trend/../secret.txt",
        "/trend/%3Cb%3E",
    ):
        answer = viewer.answer(Asked(missing))
        assert answer.status == 404
        assert b"<b>" not in answer.body.read()
    assert "/trend/" in render_runs("x", list_runs(results))


@pytest.mark.parametrize(
    ("ends", "overlap"),
    [
        (((0.5, 0.4, 0.6), (0.3, 0.2, 0.39)), False),
        (((0.5, 0.4, 0.6), (0.3, 0.2, 0.4)), True),
        (((0.5, None, None), (0.3, 0.2, 0.4)), None),
    ],
)
def test_first_and_last_run_are_held_against_each_other(ends: Any, overlap: bool | None) -> None:
    runs = [TrendRun(str(number), "", value, low, high, 10) for number, (value, low, high) in enumerate(ends)]
    found = latest_stretch(runs)
    assert found is not None
    assert (found["difference"], found["intervals_overlap"]) == (-0.2, overlap)
    assert latest_stretch([]) is None
    assert not re.search("nan|inf", json.dumps(found, allow_nan=False))
