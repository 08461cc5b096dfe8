"""What a system gave back for a case, as an output, and why it is none."""

from collections.abc import Mapping

from pydantic import ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import first_problem
from judgekit.core.protocols import AskError
from judgekit.core.repeats import asked_id

INVALID = "invalid_output"
"""The kind of an answer that is not one."""

WRONG_CASE = "wrong_case"
"""The kind of an answer that names another case."""


def output_of(case: Case, answer: object) -> SystemOutput:
    """The output that a system gave back: a text, fields of `SystemOutput`, or one.

    Raises:
        AskError: it is neither, or belongs to another case.
    """
    if isinstance(answer, str):
        return SystemOutput(case_id=case.id, answer=answer)
    if isinstance(answer, SystemOutput):
        _check_id(case, answer.case_id)
        return answer if answer.case_id == case.id else answer.model_copy(update={"case_id": case.id})
    if not isinstance(answer, Mapping):
        raise AskError(
            INVALID, f"expected a text, a mapping or a SystemOutput, found {type(answer).__name__} {answer!r:.60}"
        )
    fields = dict(answer)
    _check_id(case, fields.get("case_id", case.id))
    fields["case_id"] = case.id
    try:
        return SystemOutput.model_validate(fields)
    except ValidationError as error:
        raise AskError(INVALID, first_problem(error)) from None


def _check_id(case: Case, found: object) -> None:
    """A repeat may be answered for under the id of the case that it repeats."""
    if str(found) not in (case.id, asked_id(case)):
        raise AskError(WRONG_CASE, f"asked about case {case.id!r}, and the answer is for {str(found)!r:.80}")
