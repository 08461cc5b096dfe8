"""Recorded outputs: the system under test has already answered, its outputs stand in a file."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from judgekit.core.cases import Case, OutputError, SystemOutput
from judgekit.core.errors import InputError
from judgekit.core.protocols import System


class Recorded(System):
    """Hands out recorded outputs by case id; a case without one becomes an error row, not a gap."""

    def __init__(self, outputs: Mapping[str, SystemOutput], source: str, *, missing_is_empty: bool = False) -> None:
        """Take the outputs.

        Args:
            outputs: by case id.
            source: names the file in messages.
            missing_is_empty: a case without an output retrieved nothing, as in a TREC run, and is no error.
        """
        self._outputs = outputs
        self._source = source
        self._missing_is_empty = missing_is_empty
        self._warnings: list[tuple[str, str]] = []

    def check(self, case_ids: Sequence[str]) -> None:
        """Hold the ids of all cases against those of the outputs.

        Raises:
            InputError: not one output belongs to a case.
        """
        self._warnings = ids_on_one_side(case_ids, self._outputs, self._source, missing_is_empty=self._missing_is_empty)

    async def outputs(self, cases: Sequence[Case]) -> AsyncIterator[SystemOutput]:
        """The recorded output of each case."""
        for case in cases:
            found = self._outputs.get(case.id)
            if found is None and self._missing_is_empty:
                found = SystemOutput(case_id=case.id)
            elif found is None:
                error = OutputError(kind="missing_output", message=f"{self._source} has no row for this case")
                found = SystemOutput(case_id=case.id, error=error)
            yield found

    def warnings(self) -> Sequence[tuple[str, str]]:
        """Ids that stand on one side only."""
        return tuple(self._warnings)


def ids_on_one_side(
    case_ids: Sequence[str], output_ids: Collection[str], source: str, *, missing_is_empty: bool
) -> list[tuple[str, str]]:
    """Warnings, as (code, message), about cases without an output and outputs without a case.

    Args:
        case_ids: ids of all cases.
        output_ids: case ids of all outputs.
        source: names the file of outputs in messages.
        missing_is_empty: a case without an output retrieved nothing, and is no error.

    Raises:
        InputError: not one output belongs to a case.
    """
    if list(case_ids) == list(output_ids):
        return []
    known, found = set(case_ids), set(output_ids)
    missing = [case_id for case_id in case_ids if case_id not in found]
    unknown = [case_id for case_id in output_ids if case_id not in known]
    if missing and len(missing) == len(case_ids):
        example = f"such as {unknown[0]!r}" if unknown else "none at all"
        raise InputError(
            f"{source}: no output belongs to a case; cases have ids such as {missing[0]!r}, outputs {example}; "
            'map the right field with "fields": {"case_id": ...}'
        )
    both = f" (cases {len(case_ids)}, outputs {len(output_ids)}, both {len(case_ids) - len(missing)})"
    warnings = []
    if missing:
        effect = "; nothing was retrieved there, which counts as 0" if missing_is_empty else ""
        warnings.append(("cases_without_output", f"{source}: no output for {_named(missing)}{effect}{both}"))
    if unknown:
        warnings.append(("outputs_without_case", f"{source}: no case for {_named(unknown)}{both}"))
    return warnings


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(case_id) for case_id in ids[:20])
    more = f" ... and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"{len(ids)} of them: {shown}{more}" if len(ids) > 1 else shown
