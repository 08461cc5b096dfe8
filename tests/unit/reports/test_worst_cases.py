"""A report of a large run has the worst cases and a sample of the others."""

import pytest

from judgekit.core.scores import Scale, ScoreOf
from judgekit.reports import worst_cases
from judgekit.reports.worst_cases import shown_cases

SCALES = {
    "groundedness": Scale(unit="points", high=5.0, better="higher"),
    "missed": Scale(unit="share", high=1.0, better="lower"),
}


def scored(*values: tuple[str, float | None, float | None]) -> list[tuple[str, dict[str, ScoreOf]]]:
    def score(value: float | None) -> ScoreOf:
        return (value, None) if value is not None else (None, "n/a: no gold")

    return [(case_id, {"groundedness": score(points), "missed": score(missed)}) for case_id, points, missed in values]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worst_cases, "N_WORST", 2)
    monkeypatch.setattr(worst_cases, "N_SAMPLED", 3)


def test_the_worst_are_those_whose_scores_are_worst_on_average() -> None:
    # goodness: a (1 + 1) / 2 = 1, b (0.8 + 0) / 2 = 0.4, c 0.2 of groundedness alone, d (0.6 + 0.5) / 2 = 0.55
    cases = scored(("a", 5.0, 0.0), ("b", 4.0, 1.0), ("c", 1.0, None), ("d", 3.0, 0.5), ("e", None, None))
    found = shown_cases(cases, SCALES)
    assert {"b", "c"} <= found.case_ids
    assert (found.n_worst, found.ranked) == (2, ("groundedness", "missed"))


def test_a_failure_is_worse_than_any_score() -> None:
    failed: dict[str, ScoreOf] = {"groundedness": (None, "failed: judge timeout"), "missed": (0.0, None)}
    found = shown_cases([*scored(("a", 0.0, 1.0), ("b", 0.1, 1.0), ("c", 5.0, 0.0)), ("f", failed)], SCALES)
    assert {"a", "f"} <= found.case_ids


def test_the_sample_does_not_depend_on_the_order_and_counts_what_is_not_among_the_worst() -> None:
    cases = scored(*[(f"c{number}", number / 10, 0.0) for number in range(40)])
    found = shown_cases(cases, SCALES)
    assert found == shown_cases(cases[::-1], SCALES)
    assert found.n_worst + found.n_sampled == len(found.case_ids)
    assert len(shown_cases(cases, {}).case_ids) == shown_cases(cases, {}).n_sampled == 3
