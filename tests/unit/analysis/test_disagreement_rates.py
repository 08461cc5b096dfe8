"""The alarm of a spot check: which interval decides, and how many pairs would."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.analysis.disagreement_rates import Draw, alarm, exact_interval, rate_against_threshold


@pytest.mark.parametrize(
    ("n_disagree", "n", "n_population", "status"),
    [
        (1, 20, None, "inconclusive"),  # Wilson's upper end 0.2361
        (1, 20, 22, "ok"),  # at most 3 of 22: 0.1364
        (4, 20, 20, "ok"),  # everything is known: exactly the threshold
        (5, 20, 20, "alarm"),
        (4, 20, 100, "inconclusive"),
        (0, 20, 10_000, "ok"),  # upper end 0.168
    ],
)
def test_the_interval_of_this_run_decides_where_its_size_is_known(
    n_disagree: int, n: int, n_population: int | None, status: str
) -> None:
    assert rate_against_threshold(n_disagree, n, 0.2, Draw(n_population))["status"] == status


def test_an_inconclusive_check_says_how_many_pairs_would_decide() -> None:
    # Wilson leaves 0.2 out from n = 1.96^2 * 0.2 * 0.8 / (0.1 - 0.2)^2 = 61.5 on
    assert alarm(2, 20, 0.2, Draw())["n_to_decide"] == 62
    assert alarm(2, 20, 0.2, Draw(40))["n_to_decide"] == 40  # there are no more
    assert alarm(4, 20, 0.2, Draw())["n_to_decide"] is None  # exactly the threshold: no number decides
    assert alarm(4, 20, 0.2, Draw(90))["n_to_decide"] == 90  # but all of them do
    assert alarm(5, 20, 0.2, Draw(90))["n_to_decide"] is None  # fired
    assert alarm(0, 0, 0.2, Draw(90))["n_to_decide"] is None  # nothing is known


@given(st.integers(0, 30), st.integers(1, 30), st.integers(0, 40), st.floats(0.02, 0.9))
def test_what_would_decide_is_more_than_what_there_is_and_not_more_than_all(
    n_disagree: int, n: int, n_left: int, threshold: float
) -> None:
    found = alarm(min(n_disagree, n), n, threshold, Draw(n + n_left))
    if found["n_to_decide"] is not None:
        assert found["status"] == "inconclusive"
        assert n < found["n_to_decide"] <= n + n_left
    if not n_left:
        assert found["status"] in ("ok", "alarm")


def test_a_sample_that_grew_is_ok_by_its_e_value_and_not_by_its_interval() -> None:
    # 0 of 14: the e-value against "at least 0.2" is (1 - 0.8^15) / 15 / 0.2 / 0.8^14 = 7.3, below 20
    growing = Draw(1000, adaptive=True)
    assert rate_against_threshold(0, 14, 0.2, growing)["status"] == "inconclusive"
    assert alarm(0, 14, 0.2, growing)["adaptive"]["decided"] is None
    assert rate_against_threshold(0, 25, 0.2, growing)["status"] == "ok"
    assert alarm(0, 25, 0.2, growing)["adaptive"]["decided"] == "below"


def test_without_the_size_of_the_run_there_is_no_exact_interval() -> None:
    assert exact_interval(1, 20, None) is None
    assert exact_interval(0, 0, 10) == {"low": None, "high": None, "method": "hypergeometric 95%"}
