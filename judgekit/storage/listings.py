"""Cases and outputs read for ranked figures alone: labels, and where they stand.

Where a format allows it, records are not built at all; elsewhere they are the records of every other reader, so that
what counts, and what is an error, is the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec.structs import replace

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.scores import Failed
from judgekit.metrics.anchors import SnippetMode
from judgekit.metrics.headings import delimiter_notice, heading_texts, recognised_delimiter
from judgekit.metrics.positions import Labels, Positions, SameRanks, labels_of, positions_of_output
from judgekit.storage.case_files import record_of
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.formats.lookup import reading_of
from judgekit.storage.formats.source import Notices
from judgekit.storage.hashed_file import Hashes
from judgekit.storage.intake import Intake
from judgekit.storage.ready import Labelled, Rankings, Scattered
from judgekit.storage.rows import ReadyRow, Row, jsonl_row

Placed = tuple[str, Positions | Failed | None]
"""Case id, and where its labels stand; None where no case has that id."""


def load_labels(
    source: DataFile, path: Path, snippets: SnippetMode, notices: Notices, hashes: Hashes
) -> dict[str, Labels]:
    """The labels of all cases of a file, by id, in order.

    Args:
        source: how it is read.
        path: where it is.
        snippets: how the snippets of supports are looked for.
        notices: takes (code, message) of what the reader of the numbers should know.
        hashes: takes that of a file that is read in order.

    Raises:
        InputError: as for `load_cases`.
    """
    mapping = FieldMapping(source, Case)
    reading = reading_of(source, path)

    def read(rows: Iterable[ReadyRow]) -> dict[str, Labels]:
        intake = Intake(reading)
        labels: dict[str, Labels] = {}
        with_texts: list[Case] = []
        for found in rows:
            if isinstance(found, Row):
                case = record_of(found, mapping, Case)
                made = intake.take(found, case if isinstance(case, list) else (case.id, case))
                if made is not None:
                    labels[made.id] = labels_of(made, snippets)
                    if heading_texts(made):
                        with_texts.append(made)
            elif isinstance(found, Labelled):
                labels.update(_labelled(found, intake))
        intake.close(mapping.unmatched())
        delimiter = recognised_delimiter(text for case in with_texts for text in heading_texts(case))
        if delimiter is not None:
            labels.update({case.id: labels_of(case, snippets, delimiter) for case in with_texts})
            said.append(delimiter_notice(delimiter))
        return labels

    said: Notices = []
    try:
        labels = read(reading.ready_rows("cases", 0, said, hashes))
    except Scattered:
        said.clear()
        labels = read(reading.rows("cases", said))
    notices += said
    return labels


def _labelled(found: Labelled, intake: Intake) -> Iterable[tuple[str, Labels]]:
    labels = zip(found.keys, found.labels, strict=True)
    if intake.take_all(found.keys, found.lines):
        return labels
    for line, label in zip(found.lines, labels, strict=True):
        intake.take(Row(line, "$", None), label)
    return ()


def iterate_positions(
    source: DataFile, path: Path, labels: Mapping[str, Labels], depth: int | None, notices: Notices, hashes: Hashes
) -> Iterator[SameRanks | Placed]:
    """Where the labels of each output's case stand, as the outputs are read.

    Args:
        source: how the file is read.
        path: where it is.
        labels: by case id.
        depth: the largest cut-off; None builds every record, as is needed where outputs are scattered.
        notices: takes (code, message) of what the reader of the numbers should know.
        hashes: takes that of a file that is read in order.

    Raises:
        InputError: as for `load_outputs`.
        Scattered: this file has to be read with a depth of None.
    """
    mapping = FieldMapping(source, SystemOutput)
    reading = reading_of(source, path)
    rows = reading.rows("outputs", notices) if depth is None else reading.ready_rows("outputs", depth, notices, hashes)
    intake = Intake(reading)
    placing = _Placing(labels, mapping, intake)
    for found in rows:
        if isinstance(found, Row):
            placed = intake.take(found, placing.of_row(found))
            if placed is not None:
                yield placed
        elif not isinstance(found, Labelled):
            yield from placing.of_many(found)
    intake.close(mapping.unmatched())


class _Placing:
    """Finds the labels in outputs."""

    def __init__(self, labels: Mapping[str, Labels], mapping: FieldMapping, intake: Intake) -> None:
        self._labels = labels
        self._mapping = mapping
        self._intake = intake

    def of_row(self, row: Row) -> tuple[str, Placed] | list[str]:
        """Case id and positions of one output, or what is wrong with it."""
        ready = row.ready
        if ready is not None:
            wanted = self._labels.get(ready.key)
            if wanted is None:
                return ready.key, (ready.key, None)
            placed = ready.positions(wanted)
            if placed is not None:
                return ready.key, (ready.key, placed)
            row = _whole(row)
        found = record_of(row, self._mapping, SystemOutput)
        if isinstance(found, list):
            return found
        return found.case_id, (found.case_id, _placed(found, self._labels.get(found.case_id)))

    def of_many(self, rankings: Rankings) -> Iterator[SameRanks | Placed]:
        """Positions of many outputs."""
        if not self._intake.take_all(rankings.keys, rankings.lines):
            for index in range(len(rankings.keys)):
                row = rankings.row(index)
                self._intake.take(row, self.of_row(row))
            return
        wanted = list(map(self._labels.get, rankings.keys))
        same, others = rankings.place(wanted)
        found: list[SameRanks | Placed] = [*same]
        read = set(others)
        unknown = [index for index, labels in enumerate(wanted) if labels is None] if None in wanted else []
        for index in sorted(read.union(unknown)):
            key = rankings.keys[index]
            if wanted[index] is None and index not in read:
                found.append((key, None))
                continue
            row = rankings.row(index)
            placed = self.of_row(row)
            if isinstance(placed, list):
                self._intake.refuse(row, placed, key)
            else:
                found.append(placed[1])
        if self._intake.is_good:
            yield from found


def _placed(output: SystemOutput, labels: Labels | None) -> Positions | Failed | None:
    if labels is None:
        return None
    return positions_of_output(labels, output) if output.error is None else Failed(output.error.kind)


def _whole(row: Row) -> Row:
    """The row with its fields."""
    if row.body:
        return jsonl_row(row.body, row.line)
    ids = [one.decode("utf-8") for one in row.ready.ids]  # type: ignore[union-attr]
    hits = [{"chunk_id": one, "doc_id": one, "rel_path": one} for one in ids]
    return replace(row, ready=None, data={"case_id": row.ready.key, "retrieved": hits})  # type: ignore[union-attr]
