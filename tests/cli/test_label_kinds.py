"""`judgekit label` and `calibrate` for judges that give labels or criteria, typed and in sheets."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.testing import FaultServer, Reply, Request, chat_reply
from tests.builders import case, output, read_lines, write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as command

BRAND = {
    "name": "brand",
    "ask": "Does it fit our voice?",
    "labels": {"on": "plain and friendly", "off": "a sales pitch"},
    "cannot_tell": True,
    "sees": ["question", "answer", "metadata.audience"],
    "model": "m",
}
RULES = {
    "name": "rules",
    "ask": "Does it keep the rules?",
    "criteria": {"short": "It is short.", "source": "It names its source."},
    "model": "m",
}


def answer(request: Request) -> Reply:
    """The judge of the voice says on, that of the rules that all are met."""
    ids = re.findall(r"^Criterion `([^`]+)`:$", request.text, re.MULTILINE)
    met = [{"id": name, "evidence": "e", "met": True} for name in ids]
    said = {"criteria": met} if "keep the rules" in request.text else {"label": "on"}
    return chat_reply(json.dumps({"reasoning": "never shown to people", **said}))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cases, judged by both."""
    folder = tmp_path_factory.mktemp("kinds")
    cases = [case(f"c{n}", metadata={"audience": "chefs \x1b[2J"}) for n in range(4)]
    with FaultServer(answer) as server:
        path = write_suite(
            folder,
            server.base_url,
            case_rows=cases,
            output_rows=[output(f"c{n}") for n in range(4)],
            judges=[BRAND, RULES],
            metrics=["operations"],
        )
        judgekit.run(path, run_id="r")
    return folder


def done(folder: Path, *arguments: str) -> Ended:
    found = command(*arguments, cwd=folder)
    assert found.returncode == 0, found.stderr
    return found


def typed(folder: Path, keys: str, *arguments: str) -> str:
    """What a person sees who types these lines."""
    line = [sys.executable, "-m", "judgekit", "label", "r", "--annotator", "ida", *arguments]
    ended = subprocess.run(line, cwd=folder, input=keys, capture_output=True, text=True, timeout=120, check=True)
    return ended.stdout


def labels_in(path: Path, judge: str) -> list[Any]:
    return [line["label"] for line in read_lines(path) if line.get("judge") == judge]


def calibrated(folder: Path, judge: str, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done(folder, "calibrate", "r", "--judge", judge, "--json", *arguments).stdout)
    return dict(found["judges"][judge]["anchors"])


@pytest.mark.slow
def test_labels_are_typed_by_number_or_name_beside_what_each_means(run: Path) -> None:
    shown = typed(run, "?\n2\nON\nwarm\nc\n1\n", "--judge", "brand")
    assert "Does it fit our voice?" in shown
    assert "  1 on: plain and friendly" in shown
    assert "label 1-2 or its name, c cannot tell" in shown
    assert "metadata.audience:\n  chefs" in shown
    assert "\x1b" not in shown
    assert "'warm' is not a label; expected one of on, off, cannot tell" in shown
    assert "never shown" not in shown
    assert shown.count("next: judgekit calibrate r --judge brand") == 1
    path = run / "results" / "r" / "labels.jsonl"
    assert labels_in(path, "brand") == ["off", "on", "cannot tell", "on"]
    anchors = calibrated(run, "brand")
    # The judge says on four times, the person off, on, cannot tell and on.
    assert anchors["confusion"]["rows"] == [[2, 0, 0], [1, 0, 0], [1, 0, 0]]
    assert anchors["labels"]["part"] == "census"
    text = done(run, "calibrate", "r", "--judge", "brand", "--stats").stdout
    assert "labels, people in rows, judge in columns:" in text
    assert "off: people 1, judge 0; says so in 0.000" in text


@pytest.mark.slow
def test_criteria_are_typed_one_by_one_and_half_a_case_is_not_kept(run: Path) -> None:
    shown = typed(run, "y\nn\nb\ny\ny\nn\n", "--judge", "rules", "--out", "rules.jsonl")
    assert "short: It is short." in shown
    assert "met? y or n, s skip" in shown
    # c is not asked here: this judge may not say that it cannot tell; "b" goes back to the first case.
    first, second = labels_in(run / "rules.jsonl", "rules")
    assert list(first.values()) == [True, False]
    assert list(second.values()) == [True, True]
    lines = [line for line in read_lines(run / "rules.jsonl") if "sheet" not in line]
    assert (lines[0]["case_id"], lines[1].get("revised")) == (lines[1]["case_id"], True)


def test_a_sheet_of_criteria_goes_out_and_comes_back(run: Path) -> None:
    done(run, "label", "r", "--judge", "rules", "--export", "sheet.csv")
    with (run / "sheet.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert {tuple(sorted(row["label"].split("\n"))) for row in rows} == {("short = ", "source = ")}
    assert "source: It names its source." in rows[0]["expected"]
    rows[0]["label"] = rows[0]["label"].replace("= ", "= yes")
    rows[1]["label"] = "source = no\nshort = yes"
    rows[2]["label"] = "source = no"
    with (run / "back.csv").open("w", encoding="utf-8-sig", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    back = done(run, "label", "r", "--import", "back.csv", "--annotator", "tom", "--out", "tom.jsonl")
    assert "labels taken over: 2; revised: 0; known already: 0; rows without a label: 1" in back.stdout
    assert "needs one answer for each criterion, see short; left out" in back.stderr
    again = done(run, "label", "r", "--import", "back.csv", "--annotator", "tom", "--out", "tom.jsonl")
    assert "labels taken over: 0; revised: 0; known already: 2" in again.stdout
    anchors = calibrated(run, "rules", "--labels", "tom.jsonl")
    assert anchors["parts"]["source"]["specificity"] == {**anchors["parts"]["source"]["specificity"], "k": 0, "n": 1}
    assert anchors["parts"]["short"]["sensitivity"]["k"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("case_id,judge,label\nc0,brand,onn\n", "'onn' is not a label; expected one of on, off, cannot tell"),
        ("case_id,judge,label\nc0,rules,yes\n", "'yes' is not a label; expected yes or no for each criterion"),
        ("case_id,label\nc0,on\n", "does not say which judge it is about; name it by --judge (brand, rules)"),
        ("case_id,judge,label\nc0,voice,on\n", "is about voice; the run has brand, rules"),
    ],
)
def test_what_cannot_be_a_label_is_one_line_and_exit_code_two(run: Path, text: str, message: str) -> None:
    (run / "odd.csv").write_text(text)
    found = command("calibrate", "r", "--labels", "odd.csv", cwd=run)
    assert found.returncode == 2
    [line] = found.stderr.splitlines()
    assert message in line
