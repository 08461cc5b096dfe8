"""Whatever a command prints begins with a sentence and fits one screen; `--stats` has the rest."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgekit.cli.app import app
from tests.builders import REPOSITORY

LABELS = REPOSITORY / "configs" / "quickstart" / "labels.jsonl"
MOST_LINES = 25

pytestmark = pytest.mark.slow


def printed(results: Path, *words: str) -> list[str]:
    done = CliRunner().invoke(app, [*words, "--results-dir", str(results)])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("printouts")
    printed(folder, "run", "quickstart", "--run-id", "demo", "-q")
    printed(
        folder, "rejudge", "demo", "--judge", "correctness", "--model", "baseline-strict", "--run-id", "strict", "-q"
    )
    yield folder


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("runs", "show", "demo"), "quickstart, 40 cases: Good enough on these cases: all 3 gates passed"),
        (("compare", "demo", "strict", "--allow-mismatch"), "strict is worse in correctness"),
        (("spotcheck", "demo", "--seed", "0", "-q"), "Not decided for groundedness: the second opinion disagrees in "),
        (("calibrate", "demo", "--labels", str(LABELS)), "correctness agrees with people in 26 of 28 cases"),
        (("drift",), "Too little is known of correctness v1 to tell drift"),
        (("probe", "demo", "-q"), "groundedness fails 1 of 8 probes. answer_padded"),
        (("bridge", "demo", "strict", "-q"), "groundedness did not move."),
    ],
)
def test_a_printout_begins_with_its_finding_and_has_all_the_rest_behind_stats(
    results: Path, words: tuple[str, ...], begins: str
) -> None:
    short = printed(results, *words)
    assert short[0].startswith(begins)
    assert len(short) <= MOST_LINES
    assert len(printed(results, *words, "--stats")) > len(short)
