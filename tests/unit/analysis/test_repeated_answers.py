"""Several answers to each case: pass^k with failures and clusters, variances by source, what more calls would buy."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.estimates import ErrorPolicy, FigureRules
from judgekit.analysis.judge_calls import PerVerdict
from judgekit.analysis.repeated_answers import RepeatedAnswers, most_answers, numbers_drawn, pass_names
from judgekit.core.cases import Case
from judgekit.core.repeats import pass_figure
from judgekit.core.scores import Column, Estimate, Failed, NotApplicable, Outcome

PASS = Column("ok_pass", binary=True, aggregate="ok_pass_rate")
SCORE = Column("ok", high=5.0)

MISSING, UNJUDGED, NONE = Failed("timeout"), Failed("judge timeout", by_judge=True), NotApplicable("no answer")

Answers = Mapping[str, Sequence[Outcome]]


def gathered(
    answers: Answers,
    column: Column = PASS,
    *,
    policy: ErrorPolicy = "exclude",
    again: Mapping[str, Sequence[float]] | None = None,
    cluster_by: str | None = "metadata.repeat_of",
) -> RepeatedAnswers:
    """Answers by case; `again` holds the verdicts on the first answer to a case."""
    found = RepeatedAnswers([column], policy, FigureRules(cluster_by=cluster_by))
    for case_id, outcomes in answers.items():
        for number, outcome in enumerate(outcomes, start=1):
            own = case_id if number == 1 else f"{case_id}#{number}"
            case = Case(id=own, metadata={"repeat_of": case_id, "document": case_id[0]})
            said = {column.name: again[case_id]} if again and number == 1 and case_id in again else None
            found.add(case, {column.name: outcome}, said)
    return found


def figure(found: RepeatedAnswers, name: str) -> Estimate:
    estimate = found.pass_figures()[name]
    assert isinstance(estimate, Estimate)
    return estimate


def record(found: RepeatedAnswers, judge: str | None = "ok", **calls: PerVerdict) -> dict[str, Any]:
    """What is known of the one column."""
    judges = {} if judge is None else {"ok": judge, "ok_pass": judge}
    (only,) = found.figures(judges, calls, {}).values()
    return only


def test_pass_figures_are_means_over_cases() -> None:
    # 3 of 3, 2 of 3, 0 of 3: pass^2 (1 + 1/3 + 0) / 3 = 4/9, pass@2 (1 + 1 + 0) / 3; pass^3 1/3
    found = gathered({"a": [1.0, 1.0, 1.0], "b": [1.0, 0.0, 1.0], "c": [0.0, 0.0, 0.0]})
    values = {name: figure(found, name).value for name in found.pass_figures()}
    assert values == pytest.approx(
        {
            "ok_pass_rate.pass^1": 5 / 9,
            "ok_pass_rate.pass^2": 4 / 9,
            "ok_pass_rate.pass^3": 1 / 3,
            "ok_pass_rate.pass@1": 5 / 9,
            "ok_pass_rate.pass@2": 2 / 3,
            "ok_pass_rate.pass@3": 2 / 3,
        }
    )
    assert figure(found, "ok_pass_rate.pass^3").method.endswith("all of 3 answers pass, wilson 95%")
    assert "bca bootstrap" in figure(found, "ok_pass_rate.pass^2").method


def test_what_is_better_low_passes_low() -> None:
    found = gathered({"a": [0.0, 0.0], "b": [1.0, 0.0]}, Column("wrong", binary=True, higher_is_better=False))
    assert (figure(found, "wrong.pass^2").value, figure(found, "wrong.pass@2").value) == (0.5, 1.0)


@pytest.mark.parametrize(
    "column",
    [
        Column("label", binary=True, has_direction=False),
        Column("abstained", binary=True, turns_if_unanswerable=True),
        Column("error", binary=True, section="operational"),
        Column("part", binary=True, aggregate=""),
        Column("score", high=5.0),
    ],
)
def test_nothing_passes_where_neither_way_is_better_or_nothing_is_shown(column: Column) -> None:
    assert gathered({"a": [1.0, 0.0]}, column).pass_figures() == {}


def test_a_failed_answer_is_missing_and_the_ends_say_what_it_could_have_been() -> None:
    # a has 2 of 2 and a failure, b has 1 of 3. pass^2: (1 + 0) / 2; the failure as the worst: C(2,2)/C(3,2) = 1/3
    found = gathered({"a": [1.0, MISSING, 1.0], "b": [1.0, 0.0, 0.0]})
    two, three = figure(found, "ok_pass_rate.pass^2"), figure(found, "ok_pass_rate.pass^3")
    assert (two.value, two.n, two.n_error) == (0.5, 2, 0)
    assert (two.worst, two.best) == pytest.approx((1 / 6, 1 / 2))
    # pass^3 is not known of a; it would be 0 or 1
    assert (three.value, three.n, three.n_error, three.worst, three.best) == (0.0, 1, 1, 0.0, 0.5)


def test_failures_count_as_not_passed_if_the_config_says_so_but_never_those_of_the_judge() -> None:
    answers: Answers = {"a": [1.0, MISSING], "b": [1.0, UNJUDGED], "c": [1.0, 1.0]}
    found = figure(gathered(answers, policy="as_zero"), "ok_pass_rate.pass^2")
    assert (found.value, found.n, found.n_error) == (0.5, 2, 1)
    assert (found.worst, found.best) == pytest.approx((1 / 3, 2 / 3))


def test_a_case_with_too_few_answers_does_not_apply() -> None:
    found = figure(gathered({"a": [1.0, 1.0, 1.0], "b": [1.0], "c": [1.0, NONE]}), "ok_pass_rate.pass^2")
    assert (found.value, found.n, found.n_not_applicable, found.n_error) == (1.0, 1, 2, 0)


def test_cases_of_one_cluster_are_taken_together() -> None:
    answers = {f"{letter}{n}": [1.0, 1.0 if letter < "c" else 0.0] for letter in "abcdef" for n in range(5)}
    alone = figure(gathered(answers), "ok_pass_rate.pass^2")
    together = figure(gathered(answers, cluster_by="metadata.document"), "ok_pass_rate.pass^2")
    assert alone.value == together.value == pytest.approx(1 / 3)
    assert "6 clusters" in together.method
    assert (together.low or 0.0) < (alone.low or 0.0)
    case = record(gathered(answers, cluster_by="metadata.document"))["components"]["case"]
    assert case["method"].endswith("2000 resamples of 6 clusters, seed 0")


def test_no_number_of_answers_is_drawn_from_one_and_few_from_many() -> None:
    assert numbers_drawn(1) == []
    assert numbers_drawn(3) == [1, 2, 3]
    assert numbers_drawn(50) == [*range(1, 11), 50]
    assert pass_names([PASS, SCORE], 2) == [f"ok_pass_rate.pass{sign}{k}" for sign in "^@" for k in (1, 2)]
    assert (pass_figure("a.b@5.pass^3"), pass_figure("hit@5"), pass_figure("pass^3")) == (("a.b@5", 3), None, None)


def test_the_case_with_most_answers_counts() -> None:
    cases = [Case(id="a"), Case(id="b", metadata={"repeat_of": "a"}), Case(id="c")]
    assert (most_answers(cases), most_answers(cases[2:]), most_answers([])) == (2, 1, 0)


passing = st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=4, max_size=4), min_size=1, max_size=12)


@given(passing)
def test_more_answers_make_pass_hat_smaller_and_pass_at_larger(cases: list[list[float]]) -> None:
    found = gathered({f"c{number}": outcomes for number, outcomes in enumerate(cases)})
    all_of, one_of = ([figure(found, f"ok_pass_rate.pass{sign}{k}").value or 0.0 for k in range(1, 5)] for sign in "^@")
    assert all_of == sorted(all_of, reverse=True)
    assert one_of == sorted(one_of)
    rate = sum(map(sum, cases)) / (4 * len(cases))
    assert all_of[0] == pytest.approx(rate, abs=1e-12)
    assert one_of[0] == pytest.approx(rate, abs=1e-12)


@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 1.0, MISSING, UNJUDGED, NONE]), min_size=1, max_size=4), min_size=2, max_size=9
    ),
    st.randoms(use_true_random=False),
)
def test_the_order_of_cases_and_answers_changes_nothing(cases: list[list[Outcome]], random: Random) -> None:
    answers = {f"c{number}": outcomes for number, outcomes in enumerate(cases)}
    names = list(answers)
    random.shuffle(names)
    moved = gathered({name: random.sample(answers[name], len(answers[name])) for name in names})
    plain = gathered(answers)
    assert moved.pass_figures() == plain.pass_figures()
    [one], [other] = ((*found.figures({}, {}, {}).values(), None)[:1] for found in (plain, moved))
    if one is not None and other is not None:
        one["differ"].pop("cases")
        other["differ"].pop("cases")
    assert one == other


# variance by source


def test_without_a_second_verdict_system_and_judge_are_not_told_apart() -> None:
    # means 2, 4, 3 as worked in the tests of the statistics: case 1/3, answers 4/3
    found = record(gathered({"a": [1.0, 3.0], "b": [5.0, 3.0], "c": [3.0, 3.0]}, SCORE))
    parts = found["components"]
    assert {name: part["variance"] for name, part in parts.items()} == pytest.approx(
        {"case": 1 / 3, "system and judge": 4 / 3}
    )
    assert parts["case"]["share"] == pytest.approx(0.2)
    assert "`judgekit spotcheck RUN --against repeat` asks it again" in found["notes"][0]


def test_second_verdicts_part_the_judge_from_the_system() -> None:
    # verdicts 1 and 2 on an answer of a, 3 and 3 on one of c: 0.5 / 2 = 1/4; system 4/3 - 1/4
    again = {"a": [1.0, 2.0], "c": [3.0, 3.0]}
    found = record(gathered({"a": [1.0, 3.0], "b": [5.0, 3.0], "c": [3.0, 3.0]}, SCORE, again=again))
    variances = {name: part["variance"] for name, part in found["components"].items()}
    assert variances == pytest.approx({"case": 1 / 3, "system": 4 / 3 - 1 / 4, "judge": 1 / 4})
    assert found["n_judged_again"] == 2


def test_a_verdict_that_is_not_the_score_says_nothing_of_it() -> None:
    # the score is 0 since the answer abstained, whatever the judge says of it
    found = record(gathered({"a": [0.0, 3.0], "b": [5.0, 3.0]}, SCORE, again={"a": [1.0, 2.0]}))
    assert found["n_judged_again"] == 0
    assert "system and judge" in found["components"]


def test_a_score_without_a_judge_varies_by_the_system_alone() -> None:
    found = record(gathered({"a": [1.0, 0.0], "b": [0.0, 0.0]}), judge=None)
    assert list(found["components"]) == ["case", "system"]


def test_an_estimate_below_zero_is_cut_off_and_said() -> None:
    found = record(gathered({"a": [0.0, 2.0], "b": [0.0, 2.0], "c": [2.0, 0.0]}, SCORE), judge=None)
    case = found["components"]["case"]
    assert (case["estimate"], case["variance"], case["share"]) == (-1.0, 0.0, 0.0)
    assert found["notes"][0] == "the estimate for case is -1, which no variance can be; it is taken as 0"


def test_failed_answers_are_missing_from_variances_whatever_the_policy() -> None:
    answers: Answers = {"a": [1.0, 3.0, MISSING], "b": [5.0, 3.0], "c": [3.0, 3.0, UNJUDGED]}
    plain = record(gathered({"a": [1.0, 3.0], "b": [5.0, 3.0], "c": [3.0, 3.0]}, SCORE))
    assert record(gathered(answers, SCORE, policy="as_zero")) == plain


def test_a_figure_whose_cases_have_one_score_each_has_no_variances() -> None:
    assert gathered({"a": [1.0, MISSING], "b": [5.0]}, SCORE).figures({}, {}, {}) == {}


def test_equal_answers_vary_by_nothing_and_nothing_is_advised() -> None:
    found = record(gathered({"a": [3.0, 3.0], "b": [3.0, 3.0]}, SCORE))
    assert (found["same_system"], found["next_calls"], found["generalizability"]["value"]) == (None, None, None)
    assert found["differ"] == {"n": 0, "cases": []}


def test_cases_that_differ_most_come_first() -> None:
    found = record(gathered({"a": [3.0, 3.0], "b": [3.0, 4.0], "c": [0.0, 5.0], "d": [2.0, 3.0]}, SCORE))
    assert found["differ"]["n"] == 3
    assert [case["case_id"] for case in found["differ"]["cases"]] == ["c", "b", "d"]
    assert found["differ"]["cases"][0] == {
        "case_id": "c",
        "n": 2,
        "n_passed": None,
        "mean": 2.5,
        "low": 0.0,
        "high": 5.0,
    }


def test_of_what_passes_the_number_of_answers_that_do_is_listed() -> None:
    found = record(gathered({"a": [1.0, 0.0, 0.0], "b": [1.0, 1.0, 1.0]}))
    assert [(case["case_id"], case["n_passed"], case["n"]) for case in found["differ"]["cases"]] == [("a", 1, 3)]


# what more calls would buy


def test_the_next_calls_by_hand() -> None:
    # case 1/3, answers 4/3, 3 cases of 2; an answer is 1 + 3 calls, so 1000 calls are 250 answers, or 125 cases
    found = record(
        gathered({"a": [1.0, 3.0], "b": [5.0, 3.0], "c": [3.0, 3.0]}, SCORE),
        ok=PerVerdict(1.0, 0.002),
        other=PerVerdict(2.0, 0.001),
    )
    calls, z = found["next_calls"], 1.959964
    assert calls["half_width"] == pytest.approx(z * (1 / 9 + 4 / 18) ** 0.5, abs=1e-5)
    assert calls["cases"] == {
        "n": 125,
        "half_width": pytest.approx(z * (1 / 3 / 128 + 4 / 3 / 256) ** 0.5, abs=1e-5),
        "judge_usd": pytest.approx(250 * 0.003),
    }
    assert calls["answers"]["n"] == 250
    assert calls["answers"]["half_width"] == pytest.approx(z * (1 / 9 + 4 / 3 / 256) ** 0.5, abs=1e-5)
    assert (calls["verdicts"], calls["best"], calls["answers_each"]) == (None, "cases", 2.0)
    assert found["same_system"] == pytest.approx(z * (2 * 4 / 3 / 6) ** 0.5, abs=1e-5)


def test_verdicts_are_the_best_buy_where_the_judge_alone_varies() -> None:
    # all answers are as good, and the judge gives 1 or 5: a verdict costs 1 call, an answer with one costs 2
    answers: Answers = {"a": [1.0, 5.0], "b": [5.0, 1.0], "c": [1.0, 5.0]}
    again = {"a": [1.0, 5.0], "b": [5.0, 1.0], "c": [1.0, 5.0]}
    found = record(gathered(answers, SCORE, again=again), ok=PerVerdict(1.0, None))
    assert found["next_calls"]["best"] == "verdicts"
    assert (found["next_calls"]["verdicts"]["n"], found["next_calls"]["verdicts"]["judge_usd"]) == (1000, None)


def test_an_embedded_judge_takes_no_calls() -> None:
    again = {"a": [1.0, 2.0]}
    found = record(gathered({"a": [1.0, 3.0], "b": [5.0, 3.0]}, SCORE, again=again), ok=PerVerdict(0.0, 0.0))
    assert found["next_calls"]["verdicts"] is None
    assert found["next_calls"]["answers"]["n"] == 1000


def test_answers_that_are_not_kept_together_are_said() -> None:
    answers: Answers = {"a": [1.0, 1.0], "b": [0.0, 1.0]}
    [(code, text)] = gathered(answers, cluster_by=None).warnings()
    assert code == "repeats_apart"
    assert text.startswith("4 answers to 2 cases, but intervals take them for as many cases; add ")
    assert gathered(answers).warnings() == []
