"""report.html on the disk has the new part after each command that adds one to a stored run."""

from collections.abc import Callable
from pathlib import Path

import pytest

import judgekit
from judgekit.engine.passes import Observer
from judgekit.storage.prompt_files import shipped
from judgekit.workflows.bridge import bridge
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.models import Options
from judgekit.workflows.probe import ProbesWanted, probe
from judgekit.workflows.rescore import rescore
from tests.workflows.stored_suites import carried_out, check, rejudge

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path: Path) -> Path:
    judgekit.run("quickstart", results_dir=tmp_path, run_id="q")
    return tmp_path / "q"


def spot_checked(run: Path) -> Path:
    check(run, judge="correctness", against="repeat")
    return run


def calibrated(run: Path) -> Path:
    calibrate(str(run), CalibrationWanted(shipped("configs") / "quickstart/labels.jsonl"), Options(), Observer())
    return run


def probed(run: Path) -> Path:
    probe(str(run), ProbesWanted(probes=("blank_answer",)), Options(), Observer())
    return run


def rescored(run: Path) -> Path:
    rescore(str(run), Options())
    return run


def rejudged(run: Path) -> Path:
    rejudge(run, "again", model="baseline-strict")
    return run.parent / "again"


def bridged(run: Path) -> Path:
    judgekit.run("quickstart", results_dir=run.parent, run_id="new")
    bridge(str(run), str(run.parent / "new"), Options(), carried_out)
    return run.parent / "new"


@pytest.mark.parametrize(
    ("command", "part"),
    [
        (spot_checked, "The same judge, asked again within a day, 0 of 20 verdicts flip"),
        (calibrated, "28 labelled verdicts by mira (28), tomas (28)"),
        (probed, "nothing or punctuation for an answer"),
        (rescored, '<h2 id="overview-title"'),
        (rejudged, "verdicts differ from those of <code>q</code>"),
        (bridged, "Bridge from <code>q</code>"),
    ],
)
def test_the_report_on_the_disk_has_the_new_part(run: Path, command: Callable[[Path], Path], part: str) -> None:
    before = (run / "report.html").read_text("utf-8")
    (run / "report.html").unlink()
    changed = command(run)
    assert part in (changed / "report.html").read_text("utf-8")
    assert command is rescored or part not in before


def test_parts_that_are_there_stay_when_another_comes(run: Path) -> None:
    for command in (calibrated, probed, spot_checked, rescored):
        command(run)
    page = (run / "report.html").read_text("utf-8")
    for part in ("28 labelled verdicts", "nothing or punctuation for an answer", "The same judge, asked again"):
        assert part in page


def test_a_history_is_drawn_with_its_second_point(run: Path) -> None:
    assert "<svg xmlns" not in (run / "report.html").read_text("utf-8")
    judgekit.run("quickstart", results_dir=run.parent, run_id="second")
    page = (run.parent / "second" / "report.html").read_text("utf-8")
    assert page.count("<svg xmlns") == 2  # one for each of the two judges
    assert "2 of 4 points of the baseline" in page


def test_a_damaged_database_costs_the_history_and_not_the_report(run: Path) -> None:
    from judgekit.workflows.report import write_report

    (run.parent / "judgekit.db").write_bytes(b"no database" * 1000)
    assert '<h2 id="judges-title"' in write_report(run).read_text("utf-8")
