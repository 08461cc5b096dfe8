"""Which second verdicts count as the same judge asked again."""

from typing import Any

import pytest

from judgekit.core.judgments import Judgment, JudgmentKey, Verdict
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.judges.correctness import Correctness
from judgekit.workflows.verdicts_again import verdicts_again
from tests.unit.analysis.test_judge_calls import judgment


def record(**fields: Any) -> SpotCheckRecord:
    return SpotCheckRecord(
        **{
            "check": "1",
            "judge": "correctness",
            "kind": "repeat",
            "model_id": "m",
            "model": "m-2025-01-01",
            "prompt_version": "v1",
            "prompt_sha256": "0" * 64,
            "seed": 0,
            "n_population": 1,
            "case_ids": ("a",),
            "threshold": 0.2,
            **fields,
        }
    )


def keyed(*judgments: Judgment) -> dict[JudgmentKey, Judgment]:
    return {JudgmentKey.of(item): item for item in judgments}


def first(**fields: Any) -> Judgment:
    return judgment(judge="correctness", verdict=Verdict(score=5), **fields)


def second(check: str = "1", score: int = 2, **fields: Any) -> Judgment:
    return judgment(judge="correctness", role="spot_check", check=check, verdict=Verdict(score=score), **fields)


def scores(*judgments: Judgment, checks: tuple[SpotCheckRecord, ...] = (record(),)) -> Any:
    return verdicts_again([Correctness()], checks, keyed(*judgments)).scores


def test_every_repeat_of_the_same_judge_counts() -> None:
    found = scores(first(), second(), second("2", 4), checks=(record(), record(check="2")))
    assert found["a"]["correctness"] == [5.0, 2.0, 4.0]
    assert found["a"]["correctness_pass"] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "other",
    [
        second(prompt_sha256="2" * 64),
        second(model_id="n"),
        second(key_parts={"model": "m-2025-01-01@new"}),
        second("9"),
        judgment(judge="correctness", role="spot_check", check="1", verdict=None),
    ],
)
def test_another_wording_model_or_build_and_what_is_no_repeat_does_not(other: Judgment) -> None:
    assert scores(first(key_parts={"model": "m-2025-01-01@old"}), other) == {}


def test_a_second_opinion_is_no_repeat() -> None:
    assert scores(first(), second(), checks=(record(kind="model"),)) == {}


def test_without_a_verdict_of_the_run_there_is_nothing_to_repeat() -> None:
    assert scores(judgment(judge="correctness", verdict=None), second()) == {}
    assert scores(second()) == {}


def test_verdicts_of_more_than_a_day_later_are_counted() -> None:
    soon, late = second(created_at="2026-01-31T09:00:00+00:00"), second("2", created_at="2026-02-03T00:00:00+00:00")
    found = verdicts_again([Correctness()], [record(), record(check="2")], keyed(first(), soon, late))
    assert found.n_later == {"correctness": 1}
