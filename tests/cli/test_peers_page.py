"""docs/peers.md: what it says of judgekit's own judge is what a run does."""

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers_failing import ANSWERS, answers_of
from judgekit.testing import FaultServer
from tests.builders import REPOSITORY, read_json, read_lines, write_lines
from tests.cli.fork_server import judgekit

PAGE = (REPOSITORY / "docs" / "peers.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_judge_of_the_page_does_what_its_row_says(tmp_path: Path) -> None:
    [block] = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)]
    write_lines(tmp_path / "cases.jsonl", [{"id": str(n), "question": "Where is my order?"} for n in range(1, 6)])
    outputs = [{"case_id": str(n), "answer": answer} for n, answer in enumerate(ANSWERS, start=1)]
    write_lines(tmp_path / "outputs.jsonl", outputs)
    asked: Counter[int] = Counter()
    usual = answers_of("judgekit", asked)
    # The waits between the five requests are tested elsewhere.
    hurried = {"retry-after-ms": "10"}
    with FaultServer(lambda request: replace(usual(request), headers=hurried)) as server:
        config = {
            "name": "tone",
            "cases": "cases.jsonl",
            "system": {"name": "recorded", "path": "outputs.jsonl"},
            "metrics": [],
            "models": {"judge": {"model": "gpt-4.1-2025-04-14", "base_url": server.base_url}},
            **block,
        }
        (tmp_path / "config.json").write_text(json.dumps(config))
        done = judgekit("run", "config.json", "--run-id", "r", cwd=tmp_path)
        assert done.returncode == 0, done.text
    found = {record["case_id"]: record["failure"] for record in read_lines(tmp_path / "results" / "r/judgments.jsonl")}
    assert {case: failure and failure["kind"] for case, failure in found.items()} == {
        "1": None,
        "2": "invalid",
        "3": "server_error",
        "4": None,
        "5": "invalid",
    }
    # The first call finds out what the server takes.
    assert asked == {0: 1, 1: 1, 2: 2, 3: 5, 4: 1, 5: 2}
    figure = read_json(tmp_path / "results" / "r/metrics.json")["overall"]["tone"]
    [row] = [line for line in PAGE.splitlines() if line.startswith("| judgekit |")]
    assert row.endswith(
        f"| `tone` {figure['value']}, n {figure['n']}, {figure['n_error']} failed; between {figure['worst']} and "
        f"{figure['best']} if the failures had the worst or the best score |"
    )
