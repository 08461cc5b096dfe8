"""Systems that are programs: a line in, a line out, and what each fault becomes."""

import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError
from judgekit.engine import system_calls
from judgekit.systems.command import Command
from tests.unit.systems.asking import failure, outputs_of

pytestmark = pytest.mark.slow  # each test starts programs

CASES = [Case(id=f"q{number}", question="Why?") for number in range(1, 5)]

FRAME = """
import json, os, sys, time
for line in sys.stdin:
    case = json.loads(line)
    name = case["id"]
    {body}
"""


@pytest.fixture(autouse=True)
def _no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system_calls, "FIRST_WAIT_SECONDS", 0.001)


def outputs(folder: Path, body: str, **settings: Any) -> dict[str, SystemOutput]:
    """What a program gives for four cases; `body` is what it does with each."""
    (folder / "app.py").write_text(FRAME.format(body=textwrap.indent(textwrap.dedent(body), "    ").strip()))
    wanted = {"run": [sys.executable, "app.py"], "max_attempts": 1, "max_concurrency": 1, **settings}
    return outputs_of(Command(**wanted), CASES, folder)


def test_one_program_is_kept_and_answers_all_cases(tmp_path: Path) -> None:
    found = outputs(tmp_path, 'print(json.dumps({"case_id": name, "answer": str(os.getpid())}), flush=True)')
    assert len({output.answer for output in found.values()}) == 1
    assert len(found) == 4


def test_as_many_programs_as_cases_are_asked_at_once(tmp_path: Path) -> None:
    body = "time.sleep(0.2); print(json.dumps(str(os.getpid())), flush=True)"
    assert len({output.answer for output in outputs(tmp_path, body, max_concurrency=2).values()}) == 2


def test_lines_that_are_not_an_object_or_a_text_are_noise(tmp_path: Path) -> None:
    body = 'print("loading ...\\n17\\n[1]"); print(json.dumps({"answer": "x"}), flush=True)'
    assert {output.answer for output in outputs(tmp_path, body).values()} == {"x"}


def test_fields_are_mapped(tmp_path: Path) -> None:
    found = outputs(tmp_path, 'print(json.dumps({"out": {"text": "x"}}), flush=True)', fields={"answer": "out.text"})
    assert found["q1"].answer == "x"


def test_a_program_that_dies_costs_its_case_and_is_started_again(tmp_path: Path) -> None:
    body = """
    if name == "q2":
        sys.stderr.write("out of memory\\n"); sys.exit(7)
    print(json.dumps({"answer": "x"}), flush=True)
    """
    found = outputs(tmp_path, body)
    assert failure(found["q2"]) == ("crashed", "the program ended with status 7: out of memory")
    assert [found[name].answer for name in ("q1", "q3", "q4")] == ["x"] * 3


def test_a_program_that_hangs_is_killed_and_its_late_answer_is_nobody_elses(tmp_path: Path) -> None:
    body = """
    if name == "q1":
        time.sleep(1.5)
    print(json.dumps({"answer": "for " + name}), flush=True)
    """
    started = time.monotonic()
    found = outputs(tmp_path, body, timeout_seconds=0.7)
    assert failure(found["q1"])[0] == "timeout"
    assert [found[name].answer for name in ("q2", "q3", "q4")] == ["for q2", "for q3", "for q4"]
    assert time.monotonic() - started < 15


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ('print(json.dumps({"case_id": "q9", "answer": "x"}), flush=True)', "wrong_case", "the answer is for 'q9'"),
        ('print(json.dumps({"answr": "x"}), flush=True)', "invalid_output", "$.answr"),
        ('sys.stdout.write(chr(34) + "x" * 300000); sys.stdout.flush(); time.sleep(5)', "too_large", "100,000 bytes"),
        ("os.kill(os.getpid(), 9)", "crashed", "ended with SIGKILL"),
        ('sys.stdout.write(json.dumps("half")); sys.stdout.flush(); sys.exit()', "crashed", "ended with status 0"),
    ],
)
def test_each_fault_is_an_error_row_with_its_kind(tmp_path: Path, body: str, kind: str, message: str) -> None:
    found = outputs(tmp_path, body, max_bytes=100_000)
    assert failure(found["q1"])[0] == kind
    assert message in failure(found["q1"])[1]


def test_a_program_that_fills_stderr_is_not_held_up(tmp_path: Path) -> None:
    body = 'sys.stderr.write("x" * 500000); print(json.dumps({"answer": "x"}), flush=True)'
    assert {output.answer for output in outputs(tmp_path, body).values()} == {"x"}


def test_programs_end_with_the_run(tmp_path: Path) -> None:
    body = 'print(json.dumps({"answer": str(os.getpid())}), flush=True)'
    for output in outputs(tmp_path, body).values():
        assert output.answer is not None
        assert not Path(f"/proc/{output.answer}").exists()


def test_no_such_program_and_a_text_in_place_of_a_list_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"system.run: no program 'no-such-program'"):
        outputs_of(Command(run=("no-such-program",)), CASES, tmp_path)
    with pytest.raises(ValidationError, match="expected a list such as"):
        Command(run="python app.py")
