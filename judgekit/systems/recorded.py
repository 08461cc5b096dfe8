"""Recorded outputs: the system under test has already answered, its outputs stand in a file."""

from collections.abc import Mapping, Sequence

from judgekit.analysis.input_mismatches import ids_on_one_side
from judgekit.core.cases import Case, OutputError, SystemOutput


class Recorded:
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

    def output(self, case: Case) -> SystemOutput:
        """The recorded output of a case."""
        found = self._outputs.get(case.id)
        if found is None and self._missing_is_empty:
            found = SystemOutput(case_id=case.id)
        elif found is None:
            error = OutputError(kind="missing_output", message=f"{self._source} has no row for this case")
            found = SystemOutput(case_id=case.id, error=error)
        return found

    def warnings(self) -> Sequence[tuple[str, str]]:
        """Ids that stand on one side only."""
        return tuple(self._warnings)
