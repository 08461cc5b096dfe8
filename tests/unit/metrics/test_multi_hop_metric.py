"""Multi-hop cases: the place in the best group where retrieval first misses."""

from typing import Any

import pytest

from judgekit.analysis.estimates import Tally
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.scores import Failed, NotApplicable, Outcome
from judgekit.metrics.multi_hop import MultiHop

FILES = ("a.md", "b.md", "c.md", "d.md")


def first_missing(groups: list[list[int]], found: list[str], **args: Any) -> Outcome:
    case = Case.model_validate(
        {"id": "q", "gold_supports": [{"rel_path": path} for path in FILES], "required_support_groups": groups}
    )
    hits = [{"rel_path": path, "chunk_id": f"{path}#{number}"} for number, path in enumerate(found)]
    output = SystemOutput.model_validate({"case_id": "q", "retrieved": hits})
    return MultiHop(**args).calculate(case, output)["first_missing_support"]


NONE = NotApplicable("no support is missing", label="none")


@pytest.mark.parametrize(
    ("groups", "found", "expected"),
    [
        ([[0, 1, 2]], [], 0.0),
        ([[0, 1, 2]], ["a.md", "c.md"], 1.0),
        ([[0, 1, 2]], ["c.md", "a.md", "b.md"], NONE),  # ranks play no part within k
        ([[2, 0]], ["c.md"], 1.0),  # the place in the group, not the index of the support
        ([[0, 1], [2, 3]], ["c.md", "d.md"], NONE),  # any group that is complete will do
        ([[0, 1, 2], [2, 3]], ["c.md"], 1.0),  # two missing against one: the second group counts
        ([[0, 1], [2, 3]], ["b.md", "c.md"], 0.0),  # one missing in each: the first group counts
        ([[0, 0, 1]], ["a.md"], 1.0),  # a support named twice is one hop
        ([[0]], [], NotApplicable("a required group has one support only")),
        ([[0, 1], [2]], [], NotApplicable("a required group has one support only")),
        ([], [], NotApplicable("no required_support_groups")),
    ],
)
def test_the_first_support_of_the_best_group_that_no_hit_matches(
    groups: list[list[int]], found: list[str], expected: Outcome
) -> None:
    assert first_missing(groups, found) == expected


def test_only_hits_up_to_k_count() -> None:
    eleven = ["a.md", *["x.md"] * 9, "b.md"]
    assert first_missing([[0, 1]], eleven) == 1.0
    assert first_missing([[0, 1]], eleven, k=11) == NONE


def test_an_errored_output_fails_where_the_case_applies() -> None:
    error = SystemOutput.model_validate({"case_id": "q", "error": {"kind": "api"}})
    case = {"id": "q", "gold_supports": [{"rel_path": "a"}, {"rel_path": "b"}], "required_support_groups": [[0, 1]]}
    assert MultiHop().calculate(Case.model_validate(case), error) == {"first_missing_support": Failed("api")}
    assert isinstance(
        MultiHop().calculate(Case.model_validate({"id": "q"}), error)["first_missing_support"], NotApplicable
    )


def test_the_distribution_counts_places_and_complete_cases() -> None:
    tally = Tally(MultiHop().columns(), ())
    outcomes: list[Outcome] = [
        0.0,
        2.0,
        2.0,
        NONE,
        NONE,
        NONE,
        NotApplicable("no required_support_groups"),
        Failed("api"),
    ]
    for outcome in outcomes:
        tally.add({"first_missing_support": outcome})
    assert tally.figures("exclude") == {"first_missing_support.distribution": {"0": 1, "1": 0, "2": 2, "none": 3}}
    assert Tally(MultiHop().columns(), ()).figures("exclude") == {"first_missing_support.distribution": {}}
