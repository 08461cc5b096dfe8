"""Whatever a command prints begins with a sentence and fits one screen; `--stats` has the rest."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgekit.cli.app import app
from judgekit.testing import FaultServer
from tests.builders import REPOSITORY
from tests.workflows.test_prefer import answers_of, by_place_in_three_of_ten, judge_that, store

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


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("compare", "demo", "strict", "--allow-mismatch", "--format", "json"), "strict is worse in correctness"),
        (("spotcheck", "demo", "--seed", "0", "-q", "--json"), "Not decided for groundedness: "),
        (("calibrate", "demo", "--labels", str(LABELS), "--json"), "correctness agrees with people in 26 of 28 cases"),
        (("drift", "--json"), "Too little is known of correctness v1 to tell drift"),
        (("probe", "demo", "-q", "--judge", "groundedness", "--json"), "groundedness fails 1 of 8 probes."),
        (("bridge", "demo", "strict", "-q", "--json"), "groundedness did not move. correctness moved by -0.81"),
        (("rejudge", "demo", "-q", "--json"), "Good enough on these cases: all 3 gates passed"),
    ],
)
def test_the_json_of_a_command_has_its_finding_in_words(results: Path, words: tuple[str, ...], begins: str) -> None:
    document = json.loads("\n".join(printed(results, *words)))
    if isinstance(document, list):  # a history each
        document = document[0]
    found = document.get("groundedness", document)  # of probes there is one object for each judge
    assert found["sentence"].startswith(begins)


def test_a_comparison_of_answers_begins_with_which_are_better_and_how_certain_that_is(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with FaultServer(judge_that(by_place_in_three_of_ten)) as server:
        for name in "AB":
            store(tmp_path, name, answers_of(name, 20), server)
        # of 14 decided pairs 8 are B's
        short = printed(results, "prefer", "A", "B", "--run-id", "p", "-q")
        long = printed(results, "prefer", "A", "B", "--run-id", "again", "-q", "--stats")
    assert short[0].startswith(
        "prefer-suite, 20 cases: Neither is shown to be better: B is picked in 8 of 14 decided pairs (95% 33% to 79%); "
        "6 of 20 pairs flipped with the order."
    )
    assert short[0].endswith("`judgekit label p`.")
    assert "A is A, B is B" in short
    assert len(short) <= MOST_LINES
    assert [line for line in long if line.startswith("order effect: ")] and len(long) > len(short)
