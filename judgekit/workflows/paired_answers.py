"""The answers of stored runs side by side, pair by pair of runs, as the data of a run that compares them."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from judgekit.analysis.preferences import PAIR, SOURCE, letter
from judgekit.analysis.repeated_answers import most_answers
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError
from judgekit.core.runs import OUTPUTS, Notices
from judgekit.core.streams import Streamed
from judgekit.storage.stored_cases import StoredAnswers
from judgekit.systems.recorded import Recorded
from judgekit.workflows.judged_data import JudgedData
from judgekit.workflows.stored import StoredRun

_NOT_COMPARED: dict[str, Any] = {"latency_seconds": {}, "usage": None, "versions": {}, "metadata": {}, "other": None}
"""Parts of an output that are about one run alone."""

_BEFORE_PAIR = "#"
"""Parts the id of a case from the name of its pair, of several pairs."""


def paired(runs: Sequence[StoredRun]) -> JudgedData:
    """The cases that pairs of runs have in common, with both outputs, which are read as they are asked for.

    Raises:
        ConfigError: two runs have no case in common, or other questions under one id.
        StorageError: a run is damaged.
    """
    found = [_Side(run.manifest.run_id, StoredAnswers(run.folder)) for run in runs]
    notices: Notices = [_not_complete(run) for run in runs if run.manifest.status != "complete"]
    pairs = []
    for a, b in combinations(range(len(runs)), 2):
        pair = _Pair(found[a], found[b], None if len(runs) == 2 else f"{letter(a)}-{letter(b)}")
        notices += pair.notices()
        pairs.append(pair)
    cases = Streamed(lambda: (case for pair in pairs for case in pair.cases()), sum(len(pair.common) for pair in pairs))
    system = Recorded(_PairedOutputs(pairs), OUTPUTS)
    return JudgedData(
        cases=cases,
        n_answers=most_answers(cases),
        system=system,
        files={"cases": _record(cases), "outputs": _record(map(system.output, cases))},
        notices=notices,
    )


@dataclass(frozen=True)
class _Side:
    """One of two runs."""

    run_id: str
    answers: StoredAnswers


class _Pair:
    """Two runs, and the cases that they have in common."""

    def __init__(self, a: _Side, b: _Side, name: str | None) -> None:
        """Find the common cases; `name` tells pairs apart, if there are several."""
        self.a, self.b, self.name = a, b, name
        of_b = set(b.answers.ids)
        self.common = [case_id for case_id in a.answers.ids if case_id in of_b]

    def notices(self) -> Notices:
        """What the reader should know of cases that are not in both runs, or are not the same in both.

        Raises:
            ConfigError: there is no common case, or one that asks something else.
        """
        a, b = self.a, self.b
        if not self.common:
            raise ConfigError(f"{a.run_id} and {b.run_id} have no case in common, so there is nothing to compare")
        n_edited = 0
        for case_id in self.common:
            one, other = a.answers.case(case_id), b.answers.case(case_id)
            n_edited += one != other
            if one and other and (one.question != other.question or one.messages != other.messages):
                raise ConfigError(
                    f"case {case_id!r} asks something else in {a.run_id} than in {b.run_id}; answers to two questions "
                    "cannot be compared, so give it another id in one of them"
                )
        found: Notices = []
        n_cases = [len(side.answers.ids) for side in (a, b)]
        if any(n > len(self.common) for n in n_cases):
            text = " and ".join(
                f"{n - len(self.common)} of {n} cases of {side.run_id}"
                for n, side in zip(n_cases, (a, b), strict=True)
                if n > len(self.common)
            )
            found.append(("cases_not_in_both", f"{text} are not in the other run, and are not judged"))
        if n_edited:
            text = f"{n_edited} cases are not the same in {a.run_id} and {b.run_id} (gold or labels)"
            found.append(("cases_differ", f"{text}; those of {b.run_id} are used"))
        return found

    def cases(self) -> Iterator[Case]:
        """The common cases, as they are judged: those of b, which say which pair they are of if there are several."""
        for case_id in self.common:
            case = self.b.answers.case(case_id)
            if case is not None:
                yield case if self.name is None else _of_pair(case, self.name)

    def output(self, source: str, case_id: str) -> SystemOutput:
        """The output of b with that of a beside it.

        Args:
            source: id of the case in the runs.
            case_id: id of the case that is judged.

        Raises:
            KeyError: a run has no output for it.
        """
        first, second = (side.answers.output(source) for side in (self.a, self.b))
        if first is None or second is None:
            raise KeyError(case_id)
        return _bare(second, case_id).model_copy(update={"other": _bare(first, case_id)})


class _PairedOutputs(Mapping[str, SystemOutput]):
    """The outputs of all pairs by the id of the case that is judged."""

    def __init__(self, pairs: Sequence[_Pair]) -> None:
        self._pairs = {pair.name: pair for pair in pairs}

    def __getitem__(self, case_id: str) -> SystemOutput:
        if None in self._pairs:
            return self._pairs[None].output(case_id, case_id)
        source, _, name = case_id.rpartition(_BEFORE_PAIR)
        return self._pairs[name].output(source, case_id)

    def __iter__(self) -> Iterator[str]:
        return (case.id for pair in self._pairs.values() for case in pair.cases())

    def __len__(self) -> int:
        return sum(len(pair.common) for pair in self._pairs.values())


def _not_complete(run: StoredRun) -> tuple[str, str]:
    return "run_not_complete", f"{run.manifest.run_id} is {run.manifest.status}; its outputs are compared as they are"


def _of_pair(case: Case, pair: str) -> Case:
    """A case as it is judged of one of several pairs of runs."""
    metadata = {**case.metadata, PAIR: pair, SOURCE: case.id}
    return case.model_copy(update={"id": f"{case.id}{_BEFORE_PAIR}{pair}", "metadata": metadata})


def _bare(output: SystemOutput, case_id: str) -> SystemOutput:
    """An output without what is about its own run alone, such as how long it took."""
    fields: Mapping[str, Any] = {
        name: value for name, value in _NOT_COMPARED.items() if name in output.model_fields_set
    }
    return output.model_copy(update={**fields, "case_id": case_id})


def _record(items: Iterable[Case | SystemOutput]) -> dict[str, Any]:
    """What a run stores of the data that it is made of."""
    digest, n = hashlib.sha256(), 0
    for line in _lines(items):
        digest.update(line)
        n += 1
    return {"sha256": digest.hexdigest(), "n": n}


def _lines(items: Iterable[Case | SystemOutput]) -> Iterator[bytes]:
    for item in items:
        yield item.model_dump_json(exclude_defaults=True).encode("utf-8", "replace") + b"\n"
