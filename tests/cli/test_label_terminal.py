"""`judgekit label` on a pseudo terminal, and sheets that go out and come back."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from tests.builders import case, output, read_json, read_lines, write_suite
from tests.cli.fork_server import Ended
from tests.cli.fork_server import judgekit as command

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("ends_processes")]

PROMPT = "q quit: "
NASTY_ID = "=1+1 \x1b[31m007"


class Terminal:
    """The command on a pseudo terminal: what it shows, and what is typed."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self._main, side = pty.openpty()
        command = [sys.executable, "-m", "judgekit", *arguments]
        self.process = subprocess.Popen(command, cwd=cwd, stdin=side, stdout=side, stderr=side, close_fds=True)
        os.close(side)
        self.shown = ""

    def until(self, text: str, seconds: float = 120.0) -> str:
        """What is shown until the text comes, without what was shown before."""
        start, end = len(self.shown), time.monotonic() + seconds
        while text not in self.shown[start:]:
            if time.monotonic() > end or not self._read(end):
                raise AssertionError(f"{text!r} did not come; shown: {self.shown[start:]!r}")
        return self.shown[start:]

    def type(self, text: str) -> None:
        os.write(self._main, text.encode())

    def close(self) -> int:
        while self._read(time.monotonic() + 10):
            pass
        os.close(self._main)
        return self.process.wait(timeout=30)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._main], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return False
        try:
            data = os.read(self._main, 65536)
        except OSError:  # the other side is closed
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run `r` of six cases, one with a hostile id and answer."""
    cases = [case(f"c{n}") for n in range(5)] + [{**case("x"), "id": NASTY_ID, "question": "How hot is kiln x?"}]
    outputs = [output(f"c{n}") for n in range(5)]
    outputs.append({**output("x"), "case_id": NASTY_ID, "answer": "Kiln\x1b]0;owned\x07 x is hot\x1b[2J."})
    judgekit.run(write_suite(tmp_path, case_rows=cases, output_rows=outputs), run_id="r")
    return tmp_path


@pytest.fixture
def terminal(folder: Path) -> Iterator[Any]:
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal("label", "r", "--annotator", "ida", *arguments, cwd=folder))
        return opened[-1]

    yield start
    for one in opened:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def labels_in(folder: Path) -> list[tuple[str, Any]]:
    lines = read_lines(folder / "results" / "r" / "labels.jsonl")
    return [(line["case_id"], line.get("score", line.get("pass"))) for line in lines if "sheet" not in line]


def test_a_person_labels_goes_back_skips_and_goes_on_another_day(folder: Path, terminal: Any) -> None:
    screen = terminal()
    first = screen.until(PROMPT)
    assert "1 of 6, 0 labelled" in first
    assert "Question:" in first
    assert "Answer:" in first
    assert "Passages:" in first
    screen.type("?\n")
    assert "5: every claim is directly supported" in screen.until(PROMPT)
    screen.type("9\n")
    assert "9 is off the scale of 0 to 5" in screen.until(PROMPT)
    screen.type("4\n")
    assert "2 of 6, 1 labelled" in screen.until(PROMPT)
    screen.type("b\n")
    assert "1 of 6" in screen.until(PROMPT)
    screen.type("2\n")
    screen.until(PROMPT)
    screen.type("s\n")
    assert "3 of 6" in screen.until(PROMPT)
    screen.type("n\n")
    screen.until(PROMPT)
    screen.type("q\n")
    assert "2 of 6 labelled" in screen.until("next: judgekit calibrate r --judge groundedness")
    assert screen.close() == 0
    order = read_lines(folder / "results" / "r" / "labels.jsonl")[0]["sheet"]["case_ids"]
    assert labels_in(folder) == [(order[0], 4), (order[0], 2), (order[2], False)]

    again = terminal()
    assert "2 of 6, 2 labelled" in again.until(PROMPT)
    again.type("5\n")
    assert "4 of 6, 3 labelled" in again.until(PROMPT)
    again.type("\x04")  # the end of what is typed
    again.until("3 of 6 labelled")
    assert again.close() == 0
    assert labels_in(folder)[-1] == (order[1], 5)


def test_the_page_goes_on_where_the_terminal_was_left_and_the_other_way_round(folder: Path, terminal: Any) -> None:
    screen = terminal()
    screen.until(PROMPT)
    screen.type("4\nq\n")
    screen.until("1 of 6 labelled")
    assert screen.close() == 0

    page = terminal("--web", "--no-open")
    address = re.search(r"http://127\.0\.0\.1:(\d+)/\?token=(\S{40,})", page.until("press Ctrl-C to stop"))
    assert address is not None
    origin, token = f"http://127.0.0.1:{address[1]}", address[2]
    with urllib.request.urlopen(f"{origin}/case?token={token}&annotator=ida") as reply:
        case_ = json.load(reply)
    assert (case_["number"], case_["n_labelled"]) == (2, 1)
    sent = json.dumps({"annotator": "ida", "key": case_["case"]["key"], "typed": ["2"]}).encode()
    headers = {"Origin": origin, "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(f"{origin}/label?token={token}", sent, headers)).close()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{origin}/?token={token}x")
    page.process.send_signal(signal.SIGINT)
    assert "2 of 6 labelled" in page.until("next: judgekit calibrate r --judge groundedness")
    assert page.close() == 0
    assert [value for _, value in labels_in(folder)] == [4, 2]
    assert "3 of 6, 2 labelled" in terminal().until(PROMPT)


def test_nothing_of_what_the_judge_said_is_shown_and_no_text_steers_the_terminal(folder: Path, terminal: Any) -> None:
    screen = terminal()
    for _ in range(6):
        screen.until(PROMPT)
        screen.type("3\n")
    screen.until("6 of 6 labelled")
    assert screen.close() == 0
    reasonings = [line["verdict"]["reasoning"] for line in read_lines(folder / "results" / "r" / "judgments.jsonl")]
    assert reasonings
    assert not any(text and text in screen.shown for text in reasonings)
    assert "\x1b" not in screen.shown
    assert "\x07" not in screen.shown
    assert "owned" in screen.shown
    assert len(labels_in(folder)) == 6
    assert NASTY_ID in dict(labels_in(folder))


def test_a_stopped_terminal_keeps_every_label(folder: Path, terminal: Any) -> None:
    screen = terminal()
    screen.until(PROMPT)
    screen.type("1\n")
    screen.until(PROMPT)
    screen.process.send_signal(signal.SIGINT)
    screen.until("interrupted; what was labelled is kept")
    assert screen.close() == 130
    assert len(labels_in(folder)) == 1


def judgekit_command(folder: Path, *arguments: str) -> Ended:
    return command(*arguments, cwd=folder)


def test_a_sheet_goes_out_is_filled_in_elsewhere_and_comes_back(folder: Path) -> None:
    assert judgekit_command(folder, "label", "r", "--export", "sheet.csv", "--seed", "5").returncode == 0
    raw = (folder / "sheet.csv").read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline="")))
    at = {name: place for place, name in enumerate(rows[0])}
    assert "verdict" not in at
    for number, row in enumerate(rows[1:]):
        row[at["label"]] = str(number % 6)
        row[at["case_id"]] = row[at["case_id"]].replace("c", "C")  # what a spreadsheet program makes of it
    stream = io.StringIO()
    csv.writer(stream, delimiter=";", lineterminator="\r\n").writerows(rows)
    (folder / "back.csv").write_bytes(b"\xef\xbb\xbf" + stream.getvalue().encode())

    done = judgekit_command(folder, "label", "r", "--import", "back.csv", "--annotator", "tom")
    assert done.returncode == 0, done.stderr
    assert "labels taken over: 6; revised: 0; known already: 0; rows without a label: 0" in done.stdout
    order = read_lines(folder / "results" / "r" / "labels.jsonl")[0]["sheet"]
    assert order["seed"] == 5
    assert labels_in(folder) == [(case_id, number) for number, case_id in enumerate(order["case_ids"])]
    assert NASTY_ID in dict(labels_in(folder))
    twice = judgekit_command(folder, "label", "r", "--import", "back.csv", "--annotator", "tom")
    assert "labels taken over: 0; revised: 0; known already: 6" in twice.stdout

    done = judgekit_command(folder, "calibrate", "r", "--json")
    assert done.returncode == 0, done.stderr
    anchors = json.loads(done.stdout)["judges"]["groundedness"]["anchors"]
    assert anchors["labels"]["part"] == "census"
    assert anchors["labels"]["annotators"] == {"tom": 6}
    assert read_json(folder / "results" / "r" / "calibration.json")["labels"]["problems"] == []


def test_a_sheet_of_another_run_is_refused(folder: Path) -> None:
    (folder / "alien.csv").write_text("key,case_id,label\nk0000000000000000,c1,4\n")
    done = judgekit_command(folder, "label", "r", "--import", "alien.csv")
    assert done.returncode == 2
    assert "no label of it is about this run" in done.stderr


def test_what_cannot_be_read_is_said_and_the_rest_is_taken(folder: Path) -> None:
    (folder / "some.csv").write_text("case_id,label\nc1,4\nc2,fine\nghost,3\nc3,\n")
    done = judgekit_command(folder, "label", "r", "--import", "some.csv")
    assert done.returncode == 0
    assert "labels taken over: 1; revised: 0; known already: 0; rows without a label: 1" in done.stdout
    assert "some.csv:3: 'fine' is not a label" in done.stderr
    assert "case 'ghost' with this answer is not in the run" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--export", "a.csv", "--import", "b.csv"), "--export, --import and --web are ways to label"),
        (("--judge", "correctness"), "no judge 'correctness'"),
        (("--import", "none.csv"), "none.csv: no such file"),
    ],
)
def test_what_cannot_be_is_said_in_one_line(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = judgekit_command(folder, "label", "r", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_labels_of_another_run_are_not_mixed_in(folder: Path) -> None:
    first = read_json(folder / "config.json")
    assert first
    judgekit.run(folder / "config.json", run_id="s")
    assert judgekit_command(folder, "label", "r", "--out", "shared.jsonl").returncode == 0
    done = judgekit_command(folder, "label", "s", "--out", "shared.jsonl")
    assert done.returncode == 2
    assert "holds labels of run r" in done.stderr
