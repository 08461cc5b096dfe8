"""What groundedness rests on: text that was retrieved, and citations where the system reports them."""

from pathlib import Path
from typing import Any

import pytest

from judgekit.judges.groundedness import Groundedness
from judgekit.testing import FaultServer, verdict
from tests.builders import case, output, read_json, read_lines
from tests.workflows.engine import after_capabilities, carried_out, good
from tests.workflows.stored_suites import check, first_run, rejudge, verdicts

ONE_JUDGE = [{"name": "groundedness", "model": "m"}]


def reasons(folder: Path) -> dict[str, str | None]:
    rows = read_lines(folder / "scores.jsonl")
    return {row["case_id"]: row["reason"] for row in rows if row["name"] == "groundedness"}


@pytest.mark.parametrize(
    "hits",
    [
        pytest.param([], id="T2-44-no-hits"),
        pytest.param([{"chunk_id": "k"}], id="T2-44-hits-without-text"),
        pytest.param([{"chunk_id": "k", "text": ""}, {"text": " \n\t"}], id="T2-44-blank-texts"),
        pytest.param([{"text": "\u200b\ufeff"}], id="T2-44-text-that-cannot-be-seen"),
    ],
)
def test_t2_44_nothing_is_asked_where_no_text_was_retrieved(tmp_path: Path, hits: list[dict[str, Any]]) -> None:
    rows = [output("c0", answer="The mill opens at nine.", retrieved=hits), output("c1")]
    ran = carried_out(tmp_path, good(5), n_cases=2, output_rows=rows)

    assert len(ran.asked) == 1
    assert reasons(ran.folder) == {"c0": "n/a: no retrieved text", "c1": None}
    figure = ran.metrics["overall"]["groundedness"]
    assert (figure["n"], figure["n_not_applicable"]) == (1, 1)
    assert ran.warnings["no_retrieved_text"].startswith("groundedness: 1 answers have no retrieved text")


def test_t2_44_a_run_in_which_nothing_was_retrieved_at_all_says_so_and_asks_nothing(tmp_path: Path) -> None:
    rows = [output("c0", retrieved=[]), output("c1", retrieved=[])]
    ran = carried_out(tmp_path, good(5), n_cases=2, output_rows=rows)

    assert ran.error is None
    assert not ran.asked
    assert ran.metrics["overall"]["groundedness"]["value"] is None
    assert {"no_retrieved_text", "judge_not_asked"} <= ran.warnings.keys()


def test_t2_44_an_error_stays_an_error_without_text(tmp_path: Path) -> None:
    rows = [{"case_id": "c0", "error": {"kind": "timeout"}}, output("c1")]
    ran = carried_out(tmp_path, good(5), n_cases=2, output_rows=rows)

    assert reasons(ran.folder) == {"c0": "failed: timeout", "c1": None}
    assert "no_retrieved_text" not in ran.warnings


def test_t2_44_inputs_without_text_that_an_earlier_version_stored_are_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [output("c0", retrieved=[]), *[output(f"c{number}") for number in range(1, 6)]]
    with FaultServer() as server, monkeypatch.context() as earlier:
        earlier.setattr(Groundedness, "not_asked", lambda *_: None)
        run = first_run(tmp_path, server, output_rows=rows, judges=ONE_JUDGE)
        assert len(read_lines(run / "judge_inputs.jsonl")) == 6
        earlier.undo()

        check(run, against="model:other")
        assert len(verdicts(run, role="spot_check")) == 5

        rejudge(run, "b", model="other")
        assert "c0" not in {item["case_id"] for item in read_lines(run.parent / "b" / "judge_inputs.jsonl")}
        assert reasons(run.parent / "b")["c0"] == "n/a: no retrieved text"


def claims(folder: Path) -> list[str]:
    (judgment,) = read_lines(folder / "judgments.jsonl")
    return list(judgment["flags"])


@pytest.mark.parametrize(
    ("score", "lists", "flags"),
    [(5, ([], []), ["inconsistent"]), (5, (["hot"], []), []), (4, ([], []), [])],
    ids=["T2-44-full-score-for-no-claim", "one-claim", "not-a-full-score"],
)
def test_t2_44_a_full_score_without_a_claim_contradicts_itself(
    tmp_path: Path, score: int, lists: tuple[list[str], list[str]], flags: list[str]
) -> None:
    reply = verdict(score, supported=lists[0], unsupported=lists[1])
    assert claims(carried_out(tmp_path, after_capabilities(reply), n_cases=1).folder) == flags


@pytest.mark.parametrize(
    ("score", "fields", "flags"),
    [
        pytest.param(5, {"citations": []}, ["inconsistent"], id="cites-nothing"),
        pytest.param(5, {}, [], id="citations-are-not-reported"),
        pytest.param(5, {"citations": [{"citation": "k1"}]}, [], id="cites"),
        pytest.param(5, {"citations": [], "references": [{"rel_path": "kilns.md"}]}, [], id="refers"),
        pytest.param(5, {"citations": [], "answer": "Fired at 1240 degrees [1]."}, [], id="a-mark-in-the-text"),
        pytest.param(4, {"citations": []}, [], id="not-a-full-score"),
    ],
)
def test_a_full_score_for_an_answer_that_cites_nothing_contradicts_itself(
    tmp_path: Path, score: int, fields: dict[str, Any], flags: list[str]
) -> None:
    ran = carried_out(tmp_path, good(score), n_cases=1, output_rows=[output("c0", **fields)], case_rows=[case("c0")])
    assert claims(ran.folder) == flags


def test_an_answer_that_cites_nothing_counts_in_the_inconsistent_rate(tmp_path: Path) -> None:
    rows = [output("c0", citations=[]), output("c1", citations=[{"citation": "k1"}])]
    with FaultServer(lambda _: verdict(5, supported=["hot"])) as server:
        run = first_run(tmp_path, server, n_cases=2, output_rows=rows, judges=ONE_JUDGE)
        check(run, against="model:other")

    assert read_json(run / "metrics.json")["judge_reliability"]["inconsistent_rate"] == 0.5  # 1 of 2 verdicts
