"""Which figures come first, and in what unit they stand."""

from typing import Any

import pytest

from judgekit.core.conditions import GateResult
from judgekit.core.runs import RunSummary
from judgekit.core.scores import Column, Estimate, Pooled, Scale
from judgekit.reports.figures import direction, interval_text, percent, value_text
from judgekit.reports.headline import headline, main_figures


def estimate(value: float, low: float | None = None, high: float | None = None, **more: Any) -> Estimate:
    given = {"n": 40, "n_not_applicable": 0, "n_error": 0, "method": "mean"}
    return Estimate(value=value, low=low, high=high, **{**given, **more})


def summary(overall: list[str], judges: list[str], gates: list[str], error_rate: float = 0.0) -> RunSummary:
    results = [
        GateResult(metric=name, op=">=", value=0.5, bound="point", observed=1.0, n=9, passed=True, message="")
        for name in gates
    ]
    return RunSummary(
        run_id="r",
        name="suite",
        created_at="",
        status="complete",
        config_sha256="",
        errors="exclude",
        cases={"n": 40},
        overall={name: estimate(1.0) for name in overall},
        slices={},
        judge_reliability=None,
        judges={name: {} for name in judges},
        latency={},
        cost={},
        operational={"error_rate": estimate(error_rate)},
        gates=tuple(results),
    )


RETRIEVAL = ["mrr", "recall_any@1", "recall_any@5", "recall_any@10", "ndcg@5", "hit@5"]


def names(found: list[tuple[str, Estimate]]) -> list[str]:
    return [name for name, _ in found]


def test_judges_come_first_then_gates_then_pass_rates_then_what_failed() -> None:
    judged = ["groundedness", "groundedness_pass_rate", "groundedness.quote_real_rate"]
    found = headline(summary([*RETRIEVAL, *judged], ["groundedness"], ["recall_any@10", "mrr"], error_rate=0.1))
    assert names(found) == ["groundedness", "recall_any@10", "mrr", "groundedness_pass_rate", "error_rate"]


def test_there_are_at_most_eight_and_five_are_shown_large() -> None:
    judges = [f"judge{number}" for number in range(12)]
    found = summary(judges, judges, [])
    assert names(headline(found)) == judges[:8]
    assert names(main_figures(found)) == judges[:5]


def test_without_judges_and_gates_the_usual_figures_stand_there() -> None:
    assert names(headline(summary(RETRIEVAL, [], []))) == ["recall_any@5", "hit@5", "mrr", "ndcg@5"]


SHARE = Column("hit@5", binary=True).scale
POINTS = Column("groundedness", high=5.0).scale


@pytest.mark.parametrize(
    ("figure", "scale", "value", "ends"),
    [
        (estimate(0.9, 0.7438, 0.9654), SHARE, "90%", "74% to 97%"),
        (estimate(0.0333, 0.0059, 0.1667), SHARE, "3.3%", "0.6% to 17%"),
        (estimate(0.996, 0.98, 1.0), SHARE, "99.6%", "98% to 100%"),
        (estimate(0.5609, 0.552, 0.5698), SHARE, "56.1%", "55.2% to 57.0%"),
        (estimate(0.5609, 0.5599, 0.5618), SHARE, "56.09%", "55.99% to 56.18%"),
        (estimate(1.0, 1.0, 1.0), SHARE, "100%", "100% to 100%"),
        (estimate(3.7111, 3.708, 3.7142), POINTS, "3.711 of 5", "3.708 to 3.714"),
        (estimate(3.0968, 2.4, 3.6), POINTS, "3.1 of 5", "2.4 to 3.6"),
        (estimate(3.0968, 3.02, 3.17), POINTS, "3.10 of 5", "3.02 to 3.17"),
        (estimate(0.8125, 0.66, 0.91), Column("mrr").scale, "0.81", "0.66 to 0.91"),
        (estimate(0.8125, 0.81, 0.815), Column("mrr").scale, "0.813", "0.810 to 0.815"),
        (estimate(15.0), Pooled("total", ("a",), float, is_total=True).scale, "15", ""),
        (estimate(0.8125, 0.66, 0.91), None, "0.813", "0.660 to 0.910"),
    ],
)
def test_a_value_has_its_unit_and_as_many_digits_as_its_interval_bears(
    figure: Estimate, scale: Scale | None, value: str, ends: str
) -> None:
    assert (value_text(figure, scale), interval_text(figure, scale)) == (value, ends)


def test_a_figure_without_a_value_says_so() -> None:
    assert value_text(estimate(0.0).model_copy(update={"value": None}), SHARE) == "n/a"


def test_which_way_is_better_is_an_arrow_with_a_word() -> None:
    less = Column("error_rate", higher_is_better=False, binary=True).scale
    neither = Column("label.mixed", binary=True, has_direction=False).scale
    assert [direction(scale) for scale in (SHARE, less, neither, None)] == ["↑ higher", "↓ lower", "", ""]


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0%"), (0.0004, "0.04%"), (0.0995, "10.0%"), (0.1, "10%"), (0.9999, "99.99%"), (1.0, "100%")],
)
def test_a_share_near_its_ends_has_a_digit_more(share: float, shown: str) -> None:
    assert percent(share) == shown
