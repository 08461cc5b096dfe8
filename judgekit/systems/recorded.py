"""Recorded outputs: the system under test has already answered, its outputs stand in a file."""

from collections.abc import AsyncIterator, Mapping, Sequence

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
        known = set(case_ids)
        missing = [case_id for case_id in case_ids if case_id not in self._outputs]
        unknown = [case_id for case_id in self._outputs if case_id not in known]
        if missing and len(missing) == len(case_ids):
            found = f"such as {unknown[0]!r}" if unknown else "none at all"
            raise InputError(
                f"{self._source}: no output belongs to a case; cases have ids such as {missing[0]!r}, outputs {found}; "
                'map the right field with "fields": {"case_id": ...}'
            )
        self._warnings.clear()
        both = f" (cases {len(case_ids)}, outputs {len(self._outputs)}, both {len(case_ids) - len(missing)})"
        if missing:
            effect = "; nothing was retrieved there, which counts as 0" if self._missing_is_empty else ""
            self._warnings.append(
                ("cases_without_output", f"{self._source}: no output for {_named(missing)}{effect}{both}")
            )
        if unknown:
            self._warnings.append(("outputs_without_case", f"{self._source}: no case for {_named(unknown)}{both}"))

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


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(case_id) for case_id in ids[:20])
    more = f" ... and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"{len(ids)} of them: {shown}{more}" if len(ids) > 1 else shown
