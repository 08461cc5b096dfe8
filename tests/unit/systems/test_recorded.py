"""Recorded outputs: handed out by case, gaps shown and never skipped."""

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import InputError
from judgekit.systems.recorded import Recorded


def recorded(*ids: str) -> Recorded:
    return Recorded({case_id: SystemOutput(case_id=case_id, answer=f"answer {case_id}") for case_id in ids}, "o.jsonl")


def outputs_for(system: Recorded, *ids: str) -> list[SystemOutput]:
    return [system.output(Case(id=case_id)) for case_id in ids]


def test_outputs_come_in_the_order_of_the_cases_and_a_gap_becomes_an_error() -> None:
    found = outputs_for(recorded("1", "2", "3"), "3", "x", "1")
    assert [output.case_id for output in found] == ["3", "x", "1"]
    assert [output.answer for output in found] == ["answer 3", None, "answer 1"]
    assert found[1].error is not None
    assert (found[1].error.kind, found[1].error.message) == ("missing_output", "o.jsonl has no row for this case")


def test_c06_c26_ids_that_stand_on_one_side_only_are_named() -> None:
    system = recorded("1", "2", "extra")
    system.check(["1", "2", "gap", "gap2"])
    both = " (cases 4, outputs 3, both 2)"
    assert system.warnings() == (
        ("cases_without_output", f"o.jsonl: no output for 2 of them: 'gap', 'gap2'{both}"),
        ("outputs_without_case", f"o.jsonl: no case for 'extra'{both}"),
    )
    system.check(["1", "2", "extra"])
    assert system.warnings() == ()


def test_long_lists_of_ids_are_cut() -> None:
    system = recorded("1")
    system.check(["1", *(f"c{number}" for number in range(30))])
    ((_, message),) = system.warnings()
    assert message.startswith("o.jsonl: no output for 30 of them: 'c0', ")
    assert message.endswith("'c19' ... and 10 more (cases 31, outputs 1, both 1)")


@pytest.mark.parametrize(
    ("outputs", "said"),
    [(["7", "8"], "cases have ids such as 'a', outputs such as '7'; map the right field"), ([], "outputs none at all")],
)
def test_outputs_of_which_none_belongs_to_a_case_are_refused(outputs: list[str], said: str) -> None:
    with pytest.raises(InputError, match=r"^o.jsonl: no output belongs to a case") as caught:
        recorded(*outputs).check(["a", "b"])
    assert said in str(caught.value)


def test_no_cases_at_all_are_no_mismatch() -> None:
    system = recorded("1")
    system.check([])
    assert system.warnings() == (("outputs_without_case", "o.jsonl: no case for '1' (cases 0, outputs 1, both 0)"),)
