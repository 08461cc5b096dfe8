"""Human labels against judges of every kind of verdict: the figures of small tables worked out by hand."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.engine.passes import Observer
from judgekit.reports.calibration_report import calibration_lines
from judgekit.testing import FaultServer, Reply, Request, chat_reply
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.models import Options
from tests.builders import case, output, read_json, write_lines, write_suite

BRAND = {
    "name": "brand",
    "ask": "Does it fit our voice?",
    "labels": {"on": "plain", "off": "a pitch", "mixed": "some of each"},
    "pass": ["on"],
    "cannot_tell": True,
    "model": "m",
}
CRITERIA = [{"id": "short", "text": "It is short.", "weight": 2}, {"id": "source", "text": "It names its source."}]
RULES = {"name": "rules", "ask": "Does it keep the rules?", "criteria": CRITERIA, "cannot_tell": True, "model": "m"}

PAIRS = [("on", "on")] * 4 + [("on", "off"), ("off", "off"), ("off", "off"), ("off", "mixed")]
PAIRS += [("mixed", "mixed"), ("mixed", "on")]
"""What a person and the judge say of ten cases."""
OPEN = [("on", "cannot tell"), ("cannot tell", "off"), ("cannot tell", "cannot tell")]
"""Three more, of which one of them cannot tell, or both."""


def number_in(request: Request) -> int:
    found = re.search(r"Kiln c(\d+) ", request.text)
    return int(found[1]) if found else 0


def judged(folder: Path, judge: dict[str, Any], n_cases: int, says: Callable[[int], Any], **fields: Any) -> Path:
    """A run of this judge, which says of each case what `says` does of its number."""
    key = {"labels": "label", "criteria": "criteria", "scale": "score", "yes_no": "answer"}
    [decides] = [name for kind, name in key.items() if kind in judge]

    def answer(request: Request) -> Reply:
        return chat_reply(json.dumps({"reasoning": "so it is", decides: says(number_in(request))}))

    ids = [f"c{number}" for number in range(n_cases)]
    rows = [case(case_id, **fields) for case_id in ids]
    with FaultServer(answer) as server:
        config = write_suite(
            folder,
            server.base_url,
            case_rows=rows,
            output_rows=list(map(output, ids)),
            judges=[judge],
            metrics=["operations"],
        )
        judgekit.run(config, run_id="r", results_dir=folder)
    return folder / "r"


def calibrated(run: Path, labels: Path, **wanted: Any) -> dict[str, Any]:
    [found] = calibrate(str(run), CalibrationWanted(labels=labels, **wanted), Options(), Observer())[1][
        "judges"
    ].values()
    return dict(found)


def csv_of(folder: Path, header: str, *rows: str) -> Path:
    path = folder / "people.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def brand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    said = [judge for _, judge in [*PAIRS, *OPEN]]
    yield judged(tmp_path_factory.mktemp("brand"), BRAND, len(said), lambda number: said[number])


def test_labels_are_held_against_labels_as_categories_without_order(brand: Path) -> None:
    rows = [f"c{number},{human.upper()}" for number, (human, _) in enumerate(PAIRS)]
    found = calibrated(brand, csv_of(brand.parent, "case_id,ida", *rows))["anchors"]
    agreement = found["agreement"]["label"]
    # People: 5 on, 3 off, 2 mixed, and so the judge. Equal in 7 of 10, by chance .25 + .09 + .04 = .38.
    assert (agreement["n"], agreement["exact"]) == (10, 0.7)
    assert agreement["cohen_kappa"]["value"] == pytest.approx((0.7 - 0.38) / 0.62, abs=1e-4)
    # AC1 over four categories, as the judge may say that it cannot tell: (.5 * .5 + .3 * .7 + .2 * .8) / 3.
    assert agreement["gwet_ac1"]["value"] == pytest.approx((0.7 - 0.62 / 3) / (1 - 0.62 / 3), abs=1e-4)
    # Alpha: 10, 6 and 4 of 20 labels; two of them differ by chance in 1 - (90 + 30 + 12) / 380.
    assert agreement["krippendorff_alpha"]["value"] == pytest.approx(1 - 0.3 / (1 - 132 / 380), abs=1e-4)
    assert agreement["krippendorff_alpha"]["low"] < agreement["krippendorff_alpha"]["value"]
    parts = found["parts"]
    shares = {
        name: [(part[key]["k"], part[key]["n"]) for key in ("sensitivity", "specificity", "precision")]
        for name, part in parts.items()
    }
    assert shares == {
        "on": [(4, 5), (4, 5), (4, 5)],
        "off": [(2, 3), (6, 7), (2, 3)],
        "mixed": [(1, 2), (7, 8), (1, 2)],
    }
    assert found["confusion"]["levels"] == ["on", "off", "mixed", "cannot tell"]
    assert found["confusion"]["rows"] == [[4, 1, 0, 0], [0, 2, 1, 0], [1, 0, 1, 0], [0, 0, 0, 0]]
    # "on" passes: 4 of the 5 that people pass, and 1 of the 5 that they fail.
    assert (found["sensitivity"]["k"], found["specificity"]["k"]) == (4, 4)
    assert found["bias"]["value"] is None
    assert found["thresholds"] == []


def test_what_cannot_be_told_has_a_row_and_a_column_and_is_no_share(brand: Path) -> None:
    rows = [f"c{number},{human}" for number, (human, _) in enumerate([*PAIRS, *OPEN])]
    report = calibrated(brand, csv_of(brand.parent, "case_id,ida", *rows))
    found = report["anchors"]
    assert found["confusion"]["rows"] == [[4, 1, 0, 1], [0, 2, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]]
    assert found["cannot_tell"] == {"n": 13, "people": 2, "judge": 2, "both": 1}
    # As a label like others: 8 of 13 are equal.
    assert found["agreement"]["label"]["exact"] == pytest.approx(8 / 13, abs=1e-4)
    # Neither passes nor fails, and no label: 10 cases are left.
    assert found["class_agreement"]["n"] == 10
    assert found["parts"]["on"]["agreement"]["n"] == 10
    text = "\n".join(calibration_lines({"run_id": "r", "judges": {"brand": report}}))
    assert "cannot tell: people 2, the judge 2, both 1 of 13" in text
    assert "label agreement: kappa" in text
    assert "on: people 5, judge 5; says so in 0.800" in text
    summary = (brand / "summary.md").read_text(encoding="utf-8")
    assert "| **cannot tell** | 0 | 1 | 0 | 1 |" in summary
    page = (brand / "report.html").read_text(encoding="utf-8")
    assert '<th scope="row" class="num">cannot tell</th>' in page
    assert "Each label" in page
    assert "Cannot tell: people 2, the judge 2, both 1 of 13." in page


def test_labels_that_nobody_gives_are_named_and_left_out(brand: Path) -> None:
    notes: list[str] = []

    class Listening(Observer):
        def note(self, text: str) -> None:
            notes.append(text)

    path = csv_of(brand.parent, "case_id,label", "c0,on", "c1,of", "c2,4", "c3,pass")
    calibrate(str(brand), CalibrationWanted(labels=path), Options(), Listening())
    assert [note.partition(": ")[2] for note in notes] == [
        "case 'c1': 'of' is not a label; expected one of on, off, mixed, cannot tell",
        "case 'c2': '4' is not a label; expected one of on, off, mixed, cannot tell",
    ]
    # "pass" is a class and no label: c3 is in the table of classes alone
    found = read_json(brand / "calibration.json")
    assert found["judges"]["brand"]["anchors"]["class_agreement"]["n"] == 2
    assert found["judges"]["brand"]["anchors"]["agreement"]["label"]["n"] == 1
    assert found["labels_by_case"]["brand"] == {"c0": {"annotator": "on"}, "c3": {"annotator": True}}
    with pytest.raises(ConfigError, match="--scores-are is about judges that give scores; brand gives labels"):
        calibrated(brand, path, scores_are="pass")


def test_people_who_differ_have_no_label_together_and_a_ceiling(brand: Path) -> None:
    rows = ["c0,on,on,on", "c1,on,off,mixed", "c2,on,off,", "c3,on,on,off", "c4,cannot tell,cannot tell,on"]
    found = calibrated(brand, csv_of(brand.parent, "case_id,ida,tom,mia", *rows))["anchors"]
    # c1 and c2 have no label that more people give; the judge says on, on of c0, c3 and off of c4
    assert found["agreement"]["label"]["n"] == 3
    assert found["confusion"]["rows"][3] == [0, 1, 0, 0]
    assert "2 of the cases" in " ".join(found["notes"])
    # Left-one-out: c0 1; c1 each of three meets two others with one each: 0; c2 0; c3 ida and tom meet one "on" and one
    # "off", so half each, mia none: 1/3; c4 the same: 1/3.
    assert found["humans"]["ceiling_exact_label"]["value"] == pytest.approx((1 + 0 + 0 + 1 / 3 + 1 / 3) / 5, abs=1e-4)
    assert found["humans"]["ceiling_exact_label"]["n"] == 5


@pytest.mark.slow
def test_shares_of_labels_are_corrected_by_people(tmp_path: Path) -> None:
    # The judge says "on" of three cases in five; people agree but for every tenth case, which they call "off".
    run = judged(tmp_path, BRAND, 150, lambda number: "on" if number % 5 < 3 else "mixed")
    people = ["off" if n % 10 == 0 else "on" if n % 5 < 3 else "mixed" for n in range(60)]
    path = csv_of(tmp_path, "case_id,ida", *(f"c{n},{label}" for n, label in enumerate(people)))
    corrected = calibrated(run, path)["corrected"]
    assert list(corrected) == ["pass_rate", "brand.on", "brand.off", "brand.mixed"]
    for label in ("on", "off", "mixed"):
        given = [float(said == label) for said in people]
        judge = [float(label == ("on" if n % 5 < 3 else "mixed")) for n in range(150)]
        labelled, rest = judge[:60], judge[60:]
        spread = [own - mean(labelled) for own in labelled]
        variance = sum(value * value for value in spread)
        slope = sum(a * (y - mean(given)) for a, y in zip(spread, given, strict=True)) / variance if variance else 0
        weight = min(1.0, max(0.0, slope / (1 + 60 / 90)))
        expected = weight * mean(rest) + mean(y - weight * own for y, own in zip(given, labelled, strict=True))
        found = corrected[f"brand.{label}"]
        assert found["estimate"] == pytest.approx(expected, abs=0.01), label
        assert found["low"] < found["estimate"] < found["high"]
    assert corrected["brand.on"]["estimate"] == corrected["pass_rate"]["estimate"]


def test_a_baseline_is_right_by_its_labels_where_none_passes(tmp_path: Path) -> None:
    plain = {key: value for key, value in BRAND.items() if key != "pass"}
    first = judged(tmp_path / "a", plain, 12, lambda number: "on")
    second = judged(tmp_path / "b", plain, 12, lambda number: "off" if number < 9 else "on")
    path = csv_of(tmp_path, "case_id,ida", *(f"c{n},{'off' if n < 8 else 'on'}" for n in range(12)))
    found = calibrated(first, path, baseline=str(second))["anchors"]
    # The second is right on c0 to c7 and c9 to c11, the first on c8 to c11.
    baseline = found["baseline"]
    assert (baseline["n_only_judge_right"], baseline["n_only_baseline_right"]) == (1, 8)
    assert baseline["judge_right"]["k"] == 4
    assert found["class_agreement"]["n"] == 0
    assert found["undefined_reason"] == "labels and verdicts have no pass class in common"


def met(number: int) -> list[dict[str, Any]]:
    """Short is met by all, the source is named by every other."""
    return [
        {"id": "source", "evidence": "e", "met": number % 2 == 0},
        {"id": "short", "evidence": "e", "met": True},
    ]


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield judged(tmp_path_factory.mktemp("rules"), RULES, 10, met)


def check_eight(found: dict[str, Any]) -> None:
    """People: short in all but c0 and c1, source in c0, c4 and c6, of c0 to c7."""
    anchors = found["anchors"]
    short, source = anchors["parts"]["short"], anchors["parts"]["source"]
    assert [short[key]["k"] for key in ("sensitivity", "specificity", "agreement")] == [6, 0, 6]
    assert [source[key]["k"] for key in ("sensitivity", "specificity", "agreement")] == [3, 4, 7]
    assert (source["n_people"], source["n_judge"], source["precision"]["n"]) == (3, 4, 4)
    # Shares met (short counts 2 of 3): the judge 1 or 2/3; people 1/3, 0, 2/3, 2/3, 1, 2/3, 1, 2/3.
    assert anchors["bias"]["value"] == pytest.approx((2 / 3 + 2 / 3 + 1 / 3) / 8, abs=1e-4)
    # Sixteen criteria: 13 equal; people say met 9 times, the judge 12 times: by chance (9 * 12 + 7 * 4) / 256.
    kappa = anchors["agreement"]["criterion"]["cohen_kappa"]["value"]
    assert kappa == pytest.approx((13 / 16 - 136 / 256) / (1 - 136 / 256), abs=1e-4)
    assert anchors["confusion"]["levels"] == ["not met", "met", "cannot tell"]
    assert [row[:2] for row in anchors["confusion"]["rows"]][:2] == [[4, 3], [0, 9]]
    assert anchors["thresholds"] == []


def test_criteria_in_columns_are_held_against_the_judge_one_by_one(rules: Path) -> None:
    rows = [f"c{n},{n > 1},{'yes' if n in (0, 4, 6) else 'no'}" for n in range(8)]
    path = csv_of(rules.parent, "case_id,short,source", *rows, "c8,yes,", "c9,perhaps,no")
    report = calibrated(rules, path)
    check_eight(report)
    assert report["anchors"]["labels"]["n_partial"] == 1
    notes = " ".join(report["anchors"]["notes"])
    assert "1 label left out, with a criterion missing, or one that was not asked about: 'c8'" in notes
    assert report["corrected"]["score"]["judge_mean"] == pytest.approx(5 / 6, abs=1e-4)
    assert "of the share met" in "\n".join(calibration_lines({"run_id": "r", "judges": {"rules": report}}))
    assert "rules by criterion:" in (rules / "summary.md").read_text(encoding="utf-8")


def test_criteria_in_objects_are_the_same_and_one_may_be_open(rules: Path) -> None:
    rows = [
        {"case_id": f"c{n}", "annotator": "ida", "label": {"short": n > 1, "source": n in (0, 4, 6)}} for n in range(8)
    ]
    path = write_lines(rules.parent / "people.jsonl", rows)
    check_eight(calibrated(rules, path))
    write_lines(path, [*rows, {"case_id": "c8", "label": {"short": "cannot tell", "source": "cannot tell"}}])
    found = calibrated(rules, path)["anchors"]
    assert found["cannot_tell"] == {"n": 18, "people": 2, "judge": 0, "both": 0}
    assert found["confusion"]["rows"][2] == [0, 2, 0]
    assert found["parts"]["short"]["agreement"]["n"] == 8
    # No share of c8 can be told, so the bias is that of eight cases.
    assert found["bias"]["n"] == 8
    kept = read_json(rules / "calibration.json")["labels_by_case"]["rules"]
    assert kept["c8"] == {"annotator": {"short": "cannot tell", "source": "cannot tell"}}


def test_criteria_that_a_case_brings_are_counted_together(tmp_path: Path) -> None:
    own = {**RULES, "criteria": "case"}
    run = judged(tmp_path, own, 6, met, criteria=CRITERIA)
    rows = [{"case_id": f"c{n}", "label": {"short": n > 0, "source": n % 2 == 0}} for n in range(6)]
    rows[5]["label"] = {"short": True, "polite": True}
    found = calibrated(run, write_lines(tmp_path / "people.jsonl", rows))["anchors"]
    assert found["labels"]["n_partial"] == 1
    assert found["parts"] == {}
    # Ten criteria of five cases, of which only short of c0 differs; the share of c0 is 2/3 too high.
    assert found["agreement"]["criterion"]["exact"] == 0.9
    assert found["bias"]["value"] == pytest.approx(2 / 15, abs=1e-4)


def test_yes_is_an_answer_also_where_no_passes(tmp_path: Path) -> None:
    advice = {"name": "advice", "ask": "Is it medical advice?", "yes_no": {"pass": "no"}, "model": "m"}
    run = judged(tmp_path, advice, 6, lambda number: number < 3)
    labels = ["yes", "yes", "no", "yes", "fail", "0"]
    report = calibrated(run, csv_of(tmp_path, "case_id,label", *(f"c{n},{label}" for n, label in enumerate(labels))))
    found = report["anchors"]
    # People say yes, so fail, of c0, c1, c3 and c4, the judge of c0, c1 and c2: c2 and c5 pass for people.
    assert (found["specificity"]["k"], found["specificity"]["n"]) == (2, 4)
    assert (found["sensitivity"]["k"], found["sensitivity"]["n"]) == (1, 2)
    # A pass rate of 3/6 against 2/6; the table is of answers, without c4, which is only said to fail.
    assert found["pass_bias"]["value"] == pytest.approx(1 / 6, abs=1e-4)
    assert found["confusion"] == {"of": "no (0) and yes (1)", "levels": [0, 1], "rows": [[1, 1], [1, 2]]}
    assert "passes 0.500" in "\n".join(calibration_lines({"run_id": "r", "judges": {"advice": report}}))


def test_a_scale_has_any_bounds(tmp_path: Path) -> None:
    tone = {"name": "tone", "ask": "Is it polite?", "scale": [-2, 2], "pass": 1, "cannot_tell": True, "model": "m"}
    run = judged(tmp_path, tone, 9, lambda number: "cannot tell" if number == 8 else number % 5 - 2)
    rows = [f"c{n},{min(2, n % 5 - 1)}" for n in range(7)]
    found = calibrated(run, csv_of(tmp_path, "case_id,ida", *rows, "c7,-3", "c8,cannot tell"))["anchors"]
    # The judge says -2 -1 0 1 2 -2 -1, people one more each but for the 2: six of seven differ by one.
    assert found["bias"]["value"] == pytest.approx(-6 / 7, abs=1e-4)
    assert found["labels"]["n_off_scale"] == 1
    assert "off the scale of -2 to 2: 'c7'" in " ".join(found["notes"])
    assert found["confusion"]["levels"] == [-2, -1, 0, 1, 2, "cannot tell"]
    assert found["confusion"]["rows"][5] == [0, 0, 0, 0, 0, 1]
    assert found["agreement"]["score"]["n"] == 7
    # From 1 on: people pass c2, c3, c4 (1, 2, 2), the judge c3 and c4.
    assert (found["sensitivity"]["k"], found["sensitivity"]["n"]) == (2, 3)
    assert [row["threshold"] for row in found["thresholds"]] == [-1, 0, 1, 2]


def test_labels_of_several_judges_in_one_file_are_read_by_their_kinds(tmp_path: Path) -> None:
    advice = {"name": "advice", "ask": "Is it medical advice?", "yes_no": True, "model": "m"}
    text = {"brand": "on", "advice": True}

    def answer(request: Request) -> Reply:
        key, judge = ("label", "brand") if "voice" in request.text else ("answer", "advice")
        return chat_reply(json.dumps({"reasoning": "r", key: text[judge]}))

    with FaultServer(answer) as server:
        config = write_suite(tmp_path, server.base_url, judges=[BRAND, advice], metrics=["operations"])
        judgekit.run(config, run_id="r", results_dir=tmp_path)
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(
            [("case_id", "judge", "label"), ("c0", "brand", "on"), ("c1", "brand", "off"), ("c0", "advice", "no")]
        )
    found = calibrate(str(tmp_path / "r"), CalibrationWanted(labels=path), Options(), Observer())[1]["judges"]
    assert found["brand"]["anchors"]["agreement"]["label"]["exact"] == 0.5
    assert found["advice"]["anchors"]["class_agreement"]["k"] == 0
    path.write_text("case_id,label\nc0,on\n")
    with pytest.raises(
        ConfigError, match=r"does not say which judge it is about; name it by --judge \(brand, advice\)"
    ):
        calibrate(str(tmp_path / "r"), CalibrationWanted(labels=path), Options(), Observer())
