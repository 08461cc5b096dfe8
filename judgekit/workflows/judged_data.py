"""The data that a config names: its cases, a system with an output for each, and what is known of the corpus."""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import judgekit.systems
from judgekit.analysis.indexing_coverage import indexing_coverage
from judgekit.analysis.input_mismatches import check_positions
from judgekit.analysis.repeated_answers import most_answers
from judgekit.core.case_parts import shard_filter
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.components import find, names_of
from judgekit.core.config import RunConfig, SystemConfig
from judgekit.core.data_files import DataFile
from judgekit.core.errors import ConfigError, InputError, did_you_mean, first_problem
from judgekit.core.protocols import Surroundings, System
from judgekit.core.repeats import REPEAT_OF, answers_to, check_repeats
from judgekit.core.runs import Notices
from judgekit.core.streams import IdOrder, Streamed
from judgekit.metrics.gold_evidence import (
    delimiter_notice,
    heading_texts,
    recognised_delimiter,
    split_case,
    split_output,
)
from judgekit.storage.case_files import Skim, data_sha256, file_sha256, iterate_cases, iterate_outputs
from judgekit.storage.id_lists import load_ids
from judgekit.storage.indexing_files import load_indexed_documents
from judgekit.storage.reading import missing_is_empty
from judgekit.storage.record_formats import NO_ID
from judgekit.storage.recorded_outputs import RecordedOutputs
from judgekit.storage.remote_files import local_data
from judgekit.systems.recorded import Recorded

RECORDED = "recorded"
"""The system whose outputs stand in a file."""


@dataclass(frozen=True, kw_only=True)
class JudgedData:
    """What a run works on, loaded: all its cases, and the system that has an output for each."""

    cases: Collection[Case]
    in_shard: Collection[Case] | None = None
    """Those of the shard, if the others were not read as a whole; `system` has no output for the others then."""
    outputs_of_all: Recorded | None = None
    """The outputs of all cases, if `system` has those of the shard only and they were wanted."""
    n_answers: int
    """Answers to the case that has most."""
    system: Recorded | System
    files: Mapping[str, Mapping[str, Any]]
    """By what they hold: sha256 and number of records of the files."""
    corpus_chunk_ids: frozenset[str] | None = None
    indexing: Mapping[str, Any] | None = None
    notices: Notices = field(default_factory=list)
    system_facts: Mapping[str, Any] = field(default_factory=dict)
    """What a live system says of itself before it is asked."""
    heading_delimiter: str | None = None
    """Where headings of live outputs are split beside ` > `."""


def judged_data(
    config: RunConfig,
    surroundings: Surroundings,
    instead: System | None = None,
    shard: str | None = None,
    *,
    keeps_all: bool = False,
) -> JudgedData:
    """The files that a config names, and its system.

    Args:
        config: the config.
        surroundings: what a live system may use.
        instead: takes the place of the config's system.
        shard: of records outside of this shard only the ids are read, as far as ids say in which shard a record is.
        keeps_all: the outputs of the other shards are wanted once as well.

    Raises:
        ConfigError: there is no such system, or a file is missing.
        InputError: a record is damaged.
    """
    base = surroundings.folder
    cases_path = local_data(base, config.cases_file.path)
    notices: Notices = []
    found = _cases(config, cases_path, notices, shard)
    system: Recorded | System
    outputs_of_all: Recorded | None = None
    facts: Mapping[str, Any] = {}
    if instead is None and config.system.name == RECORDED:
        system, outputs_of_all, record = _recorded(config, base, found, notices, keeps_all=keeps_all)
        files = {"outputs": record}
    else:
        system = instead or live_system(config.system)
        facts = system.facts(surroundings)
        files = {"system": dict(facts)} if facts else {}
    corpus = _corpus_chunk_ids(config.corpus_chunk_ids, base)
    indexing, indexing_record = _indexing(config.indexing_file, base)
    cases_record = {"sha256": data_sha256(config.cases_file, cases_path)}
    return JudgedData(
        cases=found.cases,
        in_shard=found.in_shard,
        outputs_of_all=outputs_of_all,
        n_answers=found.n_answers,
        system=system,
        files={"cases": cases_record, **files, **indexing_record},
        corpus_chunk_ids=corpus,
        indexing=indexing,
        notices=notices,
        system_facts=facts,
        heading_delimiter=found.delimiter,
    )


def live_system(wanted: SystemConfig) -> System:
    """The system that a config names, which is not asked yet.

    Raises:
        ConfigError: there is none of this name, or its arguments are wrong.
    """
    names = names_of(judgekit.systems, System)
    if wanted.name not in names:
        raise ConfigError(f"system: no system called {wanted.name!r}{did_you_mean(wanted.name, [*names, RECORDED])}")
    found = find(judgekit.systems, System, wanted.name, "system")
    try:
        return found(**wanted.args)
    except ValidationError as error:
        raise ConfigError(f"system ({wanted.name}): {first_problem(error)}") from None


@dataclass(frozen=True)
class _Cases:
    """What reading the cases once tells."""

    cases: Collection[Case]
    order: IdOrder
    n_answers: int
    delimiter: str | None
    """Where headings that are one text are split beside ` > `."""
    is_wanted: Callable[[str], bool]
    """Tells by its id whether a record is to be read as a whole."""
    ids: Callable[[], Sequence[str]]
    in_shard: Collection[Case] | None = None


def _cases(config: RunConfig, path: Path, notices: Notices, shard: str | None) -> _Cases:
    """The cases of the file, read through once; headings are split as the config says, else as all of the gold is."""
    source, delimiter, n_answers = config.cases_file, config.match.heading_delimiter, config.repeats or 1
    is_wanted = shard_filter(None if n_answers > 1 else shard)
    order, n_wanted, has_repeats, headings = IdOrder(), 0, False, set[str]()

    def is_told(case_id: str) -> bool:
        order.add(case_id)
        return is_wanted(case_id)

    # Where nothing says how headings are split, the gold of all cases does.
    unless = () if delimiter is not None else ("gold_supports",)
    for case in iterate_cases(source, path, notices, Skim(is_told, unless)):
        n_wanted += is_wanted(case.id)
        has_repeats = has_repeats or REPEAT_OF in case.metadata
        headings.update(heading_texts(case))
    if delimiter is None:
        delimiter = recognised_delimiter(headings)
        notices += [] if delimiter is None else [delimiter_notice(delimiter)]
    cases = Streamed(lambda: (split_case(case, delimiter) for case in iterate_cases(source, path)), order.n)
    if n_answers > 1:
        check_repeats(cases, n_answers)
        answers = Streamed(lambda: (own for case in cases for own in answers_to(case, n_answers)), order.n * n_answers)
        ids = IdOrder(case.id for case in answers)
        n_most = n_answers if order.n else 0
        return _Cases(answers, ids, n_most, delimiter, is_wanted, lambda: [case.id for case in answers])
    found = _Cases(cases, order, min(order.n, 1), delimiter, is_wanted, lambda: _ids(source, path))
    if has_repeats:  # an output does not say which case its own is an answer to
        return replace(found, n_answers=most_answers(cases), is_wanted=shard_filter(None))
    if shard is None:
        return found

    def read() -> Iterator[Case]:
        wanted = (
            case for case in iterate_cases(source, path, skim=Skim(is_wanted, is_first=False)) if is_wanted(case.id)
        )
        return (split_case(case, delimiter) for case in wanted)

    return replace(found, in_shard=Streamed(read, n_wanted))


def _ids(source: DataFile, path: Path) -> list[str]:
    """Ids of all cases."""
    found: list[str] = []

    def is_told(case_id: str) -> bool:
        found.append(case_id)
        return False

    deque(iterate_cases(source, path, skim=Skim(is_told, is_first=False)), maxlen=0)
    return found


def _recorded(
    config: RunConfig, base: Path, found: _Cases, notices: Notices, *, keeps_all: bool
) -> tuple[Recorded, Recorded, dict[str, Any]]:
    """The outputs that were recorded before: those that are wanted, and all; and what a run stores of their file."""
    try:
        source = DataFile.model_validate(config.system.args)
    except ValidationError as error:
        raise ConfigError(f"system (recorded): {first_problem(error)}") from None
    path = local_data(base, source.path)
    said: Notices = []
    is_first = True

    def read(tell: Callable[[str], object], reads_all: bool) -> Iterator[SystemOutput]:
        def is_told(case_id: str) -> bool:
            tell(case_id)
            return reads_all or found.is_wanted(case_id)

        nonlocal is_first
        skim, is_first = Skim(is_told, is_first=is_first), False
        said.clear()
        return (split_output(output, found.delimiter) for output in iterate_outputs(source, path, said, skim))

    outputs = RecordedOutputs(path, read, found.order, keeps_all=keeps_all)
    numbered = [kind for kind, told in (("cases", notices), ("outputs", said)) if NO_ID in dict(told)]
    is_empty = missing_is_empty(source, path)
    system, whole = (Recorded(own, path.name, missing_is_empty=is_empty) for own in (outputs, outputs.all()))
    if not outputs.is_in_order:
        case_ids = found.ids()
        check_positions(case_ids, outputs, numbered, path.name)
        system.check(case_ids)
    notices += said
    if path.resolve() == local_data(base, config.cases_file.path).resolve():  # positions of one file cannot differ
        notices[:] = [notice for notice in notices if notice[0] != NO_ID]
    return system, whole, {"sha256": data_sha256(source, path), "n": len(outputs)}


def _corpus_chunk_ids(entry: str | DataFile | None, base: Path) -> frozenset[str] | None:
    if entry is None:
        return None
    source = DataFile(path=entry) if isinstance(entry, str) else entry
    return load_ids(source, local_data(base, source.path))


def _indexing(source: DataFile | None, base: Path) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """Indexing coverage, and what a run stores of the file that it is of."""
    if source is None:
        return None, {}
    path = local_data(base, source.path)
    documents = load_indexed_documents(source, path)
    try:
        coverage = indexing_coverage(documents)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return coverage, {"indexing": {"sha256": file_sha256(path), "n": len(documents)}}
