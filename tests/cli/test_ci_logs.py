"""What commands print of hostile cases: nothing that the log of a CI job or a terminal would act on."""

import json
from pathlib import Path

import pytest

from tests.builders import case, output, write_suite
from tests.cli.fork_server import judgekit

EVIL = "##[command]x ##vso[task.complete] ##teamcity[x]\u0085\u202e\x9b31m"
START = "::error::y"
GATES = [{"metric": "hit@1", "op": ">=", "value": 1, "slice": {"category": f"{START}{EVIL}"}}]


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite whose ids and slices hold commands, and two runs of it that differ."""
    folder = tmp_path_factory.mktemp("ci")
    ids = [f"{START}1{EVIL}", f"{START}2{EVIL}"]
    rows = [case(name, category=f"{START}{EVIL}", tags=[START, EVIL], expected_chunk_ids=["k1"]) for name in ids]
    for run_id, outputs in (
        ("a", [output(name) for name in ids]),
        ("b", [output(name, answer="It is 90 degrees.", retrieved=[]) for name in ids]),
    ):
        config = write_suite(folder, case_rows=rows, output_rows=outputs, gates=GATES)
        assert judgekit("run", str(config), "--run-id", run_id, cwd=folder).returncode in (0, 1)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "config.json"],
        ["run", "config.json", "--json"],
        ["run", "config.json", "--dry-run"],
        ["compare", "results/a", "results/b"],
        ["compare", "results/a", "results/b", "--format", "json"],
        ["compare", "results/a", "results/b", "--format", "md"],
        ["runs", "list"],
        ["runs", "list", "--json"],
        ["runs", "show", "a"],
        ["runs", "show", "a", "--json"],
        ["rescore", "a"],
        ["validate", "config.json"],
    ],
    ids=" ".join,
)
def test_attack_16_17_no_command_prints_what_a_log_or_a_terminal_would_act_on(
    suite: Path, arguments: list[str]
) -> None:
    result = judgekit(*arguments, cwd=suite, GITHUB_ACTIONS="true")
    assert result.returncode in (0, 1), result.text
    assert result.text
    assert not {
        mark for mark in ("##[", "##vso[", "##teamcity[", "\x85", "\u202e", "\x9b") if mark in result.text.lower()
    }
    begun = [line for line in result.text.splitlines() if line.strip().startswith("::")]
    # What begins a line is ours: a missed gate or a warning, with everything of the case behind its title.
    assert [line for line in begun if not line.startswith(("::error title=", "::warning title="))] == []
    if "json" in arguments[-1] and "list" not in arguments and arguments[-1] != "config.json":
        assert START in json.dumps(json.loads(result.stdout))
