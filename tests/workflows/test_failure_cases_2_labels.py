"""Labels that are not on the scale of the judge are refused, with the way out, and never averaged with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError
from judgekit.engine.passes import Observer
from judgekit.testing import FaultServer, verdict
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.models import Options
from tests.workflows.stored_suites import first_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Six cases; the judge gives 5 to all."""
    with FaultServer(lambda _: verdict(5, supported=["hot"])) as server:
        folder = tmp_path_factory.mktemp("labels")
        yield first_run(folder, server, judges=[{"name": "groundedness", "model": "m"}])


def calibrated(run: Path, csv: str, scores_are: str | None = None) -> dict[str, Any]:
    path = run.parent / "labels.csv"
    path.write_text(csv, encoding="utf-8")
    wanted = CalibrationWanted(labels=path, scores_are=scores_are)
    found = calibrate(str(run), wanted, Options(), Observer())[1]["judges"]["groundedness"]
    return dict(found)


def column(name: str, *values: object) -> str:
    return "\n".join([f"case_id,{name}", *[f"c{number},{value}" for number, value in enumerate(values)]])


@pytest.mark.parametrize(
    ("csv", "why"),
    [
        (column("score", 1, 0, 1, 1, 0, 1), "every score is 0 or 1, but groundedness gives 0 to 5"),
        (column("label", 1, 0, 1), "every score is 0 or 1"),
        (column("score", "1.0", "0.0", "1.0", "0.0"), "every score is 0 or 1"),
        (column("ida", 1, 0, 1, 1), "every score is 0 or 1"),
        (column("score", 1, 1, 1, 1, 1, 1), "every score is 0 or 1"),
        ("case_id,ida,tom\nc0,1,5\nc1,0,3\nc2,1,4\nc3,1,5", "every score of 'ida' is 0 or 1"),
        (column("score", 9, 7, 3, 10, 8, 2), "scores go from 2 to 10, but groundedness gives 0 to 5"),
        (column("score", 90, 75, 100, 20, 0, 60), "scores go from 0 to 100"),
        (column("score", 1, -1, 1, -1, -1), "scores go from -1 to 1"),
    ],
)
def test_labels_of_another_scale_are_refused_with_the_way_out(run: Path, csv: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        calibrated(run, csv)
    message = str(caught.value)
    assert why in message
    assert "--scores-are pass" in message
    assert "--scores-are scores" in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("csv", "scores_are"),
    [
        (column("score", 1, 0, 1, 1, 0, 1), "pass"),
        (column("pass", 1, 0, 1, 1, 0, 1), None),
        (column("label", "yes", "no", "yes", "yes", "no", "yes"), None),
        (column("label", "true", "false", "true", "true", "false", "true"), None),
    ],
)
def test_pass_and_fail_are_held_against_the_pass_class_only(run: Path, csv: str, scores_are: str | None) -> None:
    found = calibrated(run, csv, scores_are)
    assert found["anchors"]["n"] == 6
    assert "score" not in found["corrected"]
    assert found["corrected"]["pass_rate"]["human_mean"] == 0.6667  # 4 of 6


def test_who_says_so_is_believed(run: Path) -> None:
    found = calibrated(run, column("score", 1, 0, 1, 1, 0, 1), "scores")
    assert "score" in found["corrected"]


@pytest.mark.parametrize("csv", [column("score", 0, 0, 0, 0), column("score", 1, 0), column("score", 5, 7, 1, 0, 4, 3)])
def test_a_few_odd_labels_are_no_other_scale(run: Path, csv: str) -> None:
    assert calibrated(run, csv)["anchors"]["n"] >= 2


def test_what_is_neither_is_refused_as_pass(run: Path) -> None:
    with pytest.raises(ConfigError, match=r"labels.csv:\d: 5 is neither pass \(1\) nor fail \(0\)"):
        calibrated(run, column("score", 1, 0, 5), "pass")
    with pytest.raises(ConfigError, match="--scores-are 'class': expected scores or pass"):
        calibrated(run, column("score", 1, 0, 5), "class")
