"""What docs/repeats.md shows is what a run prints of a system and a judge that waver."""

import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

import judgekit
from judgekit.reports.run_text import plain_text
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.run_records import read_summary
from judgekit.testing import FaultServer, Reply, Request, verdict
from tests.builders import case, output, write_suite
from tests.workflows.stored_suites import check

PAGE = Path(__file__).parents[2] / "docs" / "repeats.md"


def chance(text: str) -> float:
    """A number from 0 to 1 that a text always has."""
    return int(sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


class WaveringJudge:
    """One verdict in ten is a 3, whatever the answer; another one each time."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        found = re.search(r"answer (c\d+\S*)", request.text)
        name = "" if found is None else found[1]
        self.asked[name] += 1
        if chance(f"judge {name} {self.asked[name]}") < 0.1:
            return verdict(3, supported=["hot"], unsupported=["no"])
        return verdict(1, unsupported=["no"]) if "moon" in request.text else verdict(5, supported=["hot"])


@pytest.mark.slow
def test_the_example_is_what_a_run_prints(tmp_path: Path) -> None:
    cases, outputs = [], []
    for number in range(40):
        cases.append(case(f"c{number}"))
        for repeat in range(1, 5):
            name = f"c{number}" if repeat == 1 else f"c{number}#{repeat}"
            is_bad = chance(f"system {name}") < chance(f"case {number}") ** 3
            text = f"{'The moon is made of cheese' if is_bad else 'Kiln is fired at 1240'}, answer {name}"
            outputs.append({**output(name), "answer": text})
    with FaultServer(WaveringJudge()) as server:
        path = write_suite(tmp_path, server.base_url, case_rows=cases, output_rows=outputs, repeats=4)
        judgekit.run(path, run_id="r")
        check(tmp_path / "results" / "r", against="repeat", n=50, seed=1)
    summary = read_summary(RunFolder.open(tmp_path / "results" / "r"))
    assert summary is not None
    printed = plain_text(summary).splitlines()
    [shown] = re.findall(r"^```text\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert [line for line in shown.splitlines() if line not in printed] == [], "\n".join(printed)
