"""Human labels against the judges of a stored run: what comes out, where it is written, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError, InputError
from judgekit.engine.passes import Observer
from judgekit.storage.prompt_files import shipped
from judgekit.testing import FaultServer, verdict
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.label import LabelWanted, open_labels
from judgekit.workflows.models import Options
from tests.builders import read_json, write_lines
from tests.workflows.stored_suites import by_model, check, first_run, rejudge

LABELS = shipped("configs") / "quickstart" / "labels.jsonl"
GROUNDED = [{"name": "groundedness", "model": "m"}]


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    judgekit.run("quickstart", results_dir=results, run_id="q")
    return results / "q"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Path]:
    """Sixty cases, of which the judge passes those whose number is no multiple of 4, and the other model all."""

    def judge(request: Any) -> Any:
        number = next(number for number in range(59, -1, -1) if f"kiln c{number} " in request.text.lower())
        return verdict(5 if number % 4 else 1, supported=["hot"])

    with FaultServer(by_model({"other": lambda _: verdict(5, supported=["hot"]), "m-": judge})) as server:
        yield first_run(tmp_path, server, judges=GROUNDED, n_cases=60)


def calibrated(run: Path, labels: Path | None, **wanted: Any) -> dict[str, Any]:
    return calibrate(str(run), CalibrationWanted(labels=labels, **wanted), Options(), Observer())[1]


def labels_of(folder: Path, values: dict[str, Any], **fields: Any) -> Path:
    rows = [{"case_id": case_id, "annotator": "ida", "label": value, **fields} for case_id, value in values.items()]
    return write_lines(folder / "labels.jsonl", rows)


def test_the_shipped_labels_say_what_the_judge_of_the_example_is_worth(quickstart: Path) -> None:
    found = calibrated(quickstart, LABELS)["judges"]["correctness"]
    anchors = found["anchors"]
    assert anchors["n"] == 28
    assert anchors["labels"]["annotators"] == {"mira": 28, "tomas": 28}
    assert anchors["labels"]["n_without_verdict"] == 0
    assert 0.5 < anchors["agreement"]["class"]["cohen_kappa"]["value"] < 1.0
    assert anchors["humans"]["ceiling"]["value"] < 1.0
    assert anchors["bias"]["direction"] is None
    assert found["corrected"]["score"]["rule"] == "human-only"
    assert found["corrected"]["score"]["target"] == "population"
    assert found["comparator_value"]["n"] > 0
    assert read_json(quickstart / "calibration.json")["judges"]["correctness"] == found
    by_judge = read_json(quickstart / "metrics.json")["judge_reliability"]["by_judge"]
    assert {part: by_judge["correctness"][part] for part in found} == found
    assert "spot_check" in by_judge["correctness"]
    assert "anchors" not in by_judge["groundedness"]
    assert "## Human labels" in (quickstart / "summary.md").read_text()


def test_a_run_without_a_spot_check_gets_its_part_too(run: Path) -> None:
    # the judge is right on all but c1, c5, c9 (people fail them), of the first twenty
    wrong = {"c1", "c5", "c9"}
    values = {f"c{n}": "no" if n % 4 == 0 or f"c{n}" in wrong else "yes" for n in range(20)}
    found = calibrated(run, labels_of(run.parent, values))["judges"]["groundedness"]
    # 15 of 20 have a number that is no multiple of 4; people pass 12 of them and fail 3 and the 5 others
    assert (found["anchors"]["sensitivity"]["k"], found["anchors"]["sensitivity"]["n"]) == (12, 12)
    assert (found["anchors"]["specificity"]["k"], found["anchors"]["specificity"]["n"]) == (5, 8)
    assert found["anchors"]["baseline"] is None
    assert found["comparator_value"] is None
    assert list(found["corrected"]) == ["pass_rate"]
    reliability = read_json(run / "metrics.json")["judge_reliability"]
    assert (reliability["disagreement_rate"], reliability["spot_check_n"]) == (None, 0)
    assert reliability["by_judge"]["groundedness"]["anchors"] == found["anchors"]
    text = (run / "summary.md").read_text()
    assert "spot check:" not in text
    assert "one annotator only" in " ".join(found["anchors"]["notes"])


def test_a_later_spot_check_leaves_it_and_gives_flags_a_worth(run: Path) -> None:
    labels = labels_of(run.parent, {f"c{n}": "yes" for n in range(60)})
    before = calibrated(run, labels)["judges"]["groundedness"]
    check(run, against="model:other", n=60)
    by_judge = read_json(run / "metrics.json")["judge_reliability"]["by_judge"]["groundedness"]
    assert by_judge["anchors"] == before["anchors"]
    after = calibrated(run, labels)["judges"]["groundedness"]
    # people pass all; the judge fails 15, which are just those that the other model flags: P(wrong) is 15/60, lift 4
    assert after["comparator_value"]["wrong_given_flag"]["value"] == 1.0
    assert after["comparator_value"]["lift"]["value"] == 4.0
    # the other model is right on these 15, the judge on none: p = 2 / 2^15, of 60 labels
    assert (after["anchors"]["baseline"]["n_only_baseline_right"], after["anchors"]["baseline"]["better"]) == (
        15,
        "baseline",
    )
    assert after["anchors"]["pass_bias"]["direction"] == "strict"


def test_another_run_is_a_baseline(run: Path) -> None:
    rejudge(run, "b", model="other")
    labels = labels_of(run.parent, {f"c{n}": "yes" for n in range(60)})
    found = calibrated(run, labels, baseline=str(run.parent / "b"))["judges"]["groundedness"]["anchors"]["baseline"]
    assert found["against"]["run_id"] == "b"
    assert (found["n_only_judge_right"], found["n_only_baseline_right"]) == (0, 15)


def test_labels_of_a_sheet_correct_the_mean_of_the_run(run: Path) -> None:
    sheet = open_labels(str(run), LabelWanted(n=50, seed=3), Options()).sheet
    assert len(sheet.case_ids) == 50
    # people are a point below the judge, and as strict as it is everywhere
    rows: list[dict[str, Any]] = [{"sheet": sheet.model_dump(mode="json")}]
    rows += [
        {"case_id": case_id, "annotator": "ida", "judge": "groundedness", "score": 4 if int(case_id[1:]) % 4 else 0}
        for case_id in sheet.case_ids
    ]
    path = write_lines(run.parent / "drawn.jsonl", rows)
    found = calibrated(run, path)["judges"]["groundedness"]
    assert found["anchors"]["labels"]["part"] == "random"
    score = found["corrected"]["score"]
    # people are one below the judge everywhere, so the labels say nothing that the judge does not: 4 - 1 = mean - 1
    assert (score["judge_mean"], score["target"]) == (4.0, "run")
    assert score["estimate"] == pytest.approx(3.0, abs=0.2)
    assert found["anchors"]["bias"]["value"] == 1.0


def test_answers_that_changed_since_are_left_out(run: Path) -> None:
    path = labels_of(run.parent, {"c1": 5, "c2": 4}, input_sha256="of another answer")
    with pytest.raises(
        ConfigError, match="no label is about a case that groundedness judged in this run; 2 labels left"
    ):
        calibrated(run, path)


def test_clusters_come_from_a_field_of_the_case(run: Path) -> None:
    path = labels_of(run.parent, {f"c{n}": n % 6 for n in range(12)})
    found = calibrated(run, path, cluster_by="question")["judges"]["groundedness"]["anchors"]
    assert (found["cluster_by"], found["n_clusters"]) == ("question", 12)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"cluster_by": "topic"}, "--cluster-by topic: no such field of a case"),
        ({"cluster_by": "metadata.topic"}, "no judged case has a value for it"),
        ({"width": -1.0}, "--width -1.0: expected a number above 0"),
        ({"judge": "correct"}, "no judge 'correct'"),
        ({"baseline": "nowhere"}, "no run here"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(run: Path, wanted: dict[str, Any], message: str) -> None:
    path = labels_of(run.parent, {"c1": 5})
    with pytest.raises(ConfigError) as raised:
        calibrated(run, path, **wanted)
    assert message in str(raised.value)
    assert not (run / "calibration.json").exists()


def test_labels_have_to_say_which_of_two_judges_they_are_about(quickstart: Path, tmp_path: Path) -> None:
    path = labels_of(tmp_path, {"q01-lamp-flashes": 5})
    with pytest.raises(ConfigError, match="name it by --judge"):
        calibrated(quickstart, path)
    assert list(calibrated(quickstart, path, judge="groundedness")["judges"]) == ["groundedness"]
    path = labels_of(tmp_path, {"q01-lamp-flashes": 5}, judge="style")
    with pytest.raises(ConfigError, match="is about style; the run has groundedness, correctness"):
        calibrated(quickstart, path)


def test_without_a_file_of_labels_there_is_a_next_step(run: Path) -> None:
    with pytest.raises(ConfigError, match="judgekit label a"):
        calibrated(run, None)
    with pytest.raises(InputError, match="no such file"):
        calibrated(run, run.parent / "no.csv")


def test_everything_that_is_written_is_strict_json(run: Path) -> None:
    calibrated(run, labels_of(run.parent, dict.fromkeys(["c1", "c2"], 5)), width=0.1)
    for name in ("calibration.json", "metrics.json"):
        json.loads((run / name).read_text(), parse_constant=pytest.fail)
