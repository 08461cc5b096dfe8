"""Files of human labels: JSONL, JSON and CSV, one label a row or one column an annotator, also as Excel saves them."""

import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError, first_problem
from judgekit.core.human_labels import SOLE_ANNOTATOR, HumanLabel, LabelFile, Sheet, label_fields
from judgekit.core.judgments import Verdict
from judgekit.core.kind import Kind
from judgekit.core.text import canonical_id
from judgekit.core.verdict_kinds import Scale
from judgekit.core.written_labels import read_written
from judgekit.storage.encodings import encoding_of, faults_named
from judgekit.storage.problems import one_line
from judgekit.storage.rows import read_rows
from judgekit.storage.table_rows import checked_header, csv_records

VALUE_COLUMNS = ("label", "score", "pass")
"""Columns with a label in a file of one label a row."""

ID_COLUMNS = ("case_id", "id")
OTHER_COLUMNS = frozenset({
    "annotator", "answer", "citations", "cluster", "comment", "comments", "context", "contexts", "conversation",
    "expected", "human_label", "input_sha256", "judge", "key", "key_facts", "label", "labelled_at", "labels",
    "license", "metadata", "note", "notes", "pass", "passages", "question", "reference", "reference_answers",
    "references", "revised", "row", "scale", "score", "sheet", "skipped", "source"
})  # fmt: skip
"""Columns that are never the name of an annotator."""

Kinds = Mapping[str | None, Kind]
"""What labels are, by judge; under None those that name no judge. For others any word may be a label."""


@dataclass
class _Gathered:
    """What is read so far."""

    path: Path
    kinds: Kinds
    labels: list[HumanLabel] = field(default_factory=list)
    sheets: list[Sheet] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    by_column: dict[str, tuple[list[HumanLabel], list[str]]] = field(default_factory=dict)
    """Where columns are annotators: their labels, and what is none."""

    def problem(self, place: str, text: str) -> None:
        self.problems.append(f"{place}: {one_line(text)}")

    def take_back(self, about: Mapping[str, Any], annotator: str) -> None:
        """The last label of a person on a case does not count, so that the one before it does again."""
        known = (about["case_id"], about["judge"], annotator)
        for place in reversed(range(len(self.labels))):
            label = self.labels[place]
            if (label.case_id, label.judge, label.annotator) == known:
                del self.labels[place]
                return

    def settle_columns(self) -> None:
        """A column without a single label is not an annotator, which is said once and not for every cell."""
        for name, (labels, problems) in self.by_column.items():
            if problems and not labels:
                self.problems.append(f"{self.path}: column {one_line(name)!r} holds no label and is left out")
            else:
                self.problems += problems
            self.labels += labels


def read_labels(path: Path, kinds: Kinds) -> LabelFile:
    """Every label of a file; what cannot be read is named and left out.

    Args:
        path: `.csv` or `.tsv`, `.json`, or JSON lines under any other name. A torn last line of JSON lines is
            left out.
        kinds: what labels are.

    Raises:
        InputError: there is no such file, or nothing in it can be read as a label.
    """
    found = _Gathered(path, kinds)
    with faults_named(path, "a file of labels"):
        data = path.read_bytes()
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv", ".txt"):
        rows = table_rows(path, data, found.problems)
    elif suffix == ".json":
        rows = _json_rows(path, found)
    else:
        rows = _json_lines(path, data, found)
    for place, row in rows:
        _read_row(place, row, found)
    found.settle_columns()
    if not found.labels and not found.sheets:
        why = f": {found.problems[0]}" if found.problems else ""
        raise InputError(
            f"{path}: holds no label{why}; expected case_id with label, score or pass, or a column for each annotator"
        )
    digest = hashlib.sha256(data).hexdigest()
    return LabelFile(str(path), digest, tuple(found.labels), tuple(found.sheets), tuple(found.problems))


def table_rows(path: Path, data: bytes, problems: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and cells of every row of a CSV file with commas, semicolons or tabs, in UTF-8, UTF-16 or cp1252.

    Args:
        path: for messages.
        data: the file.
        problems: what is wrong with single rows is added here.

    Raises:
        InputError: it is empty, is not CSV, or two columns have one name.
    """
    text = io.BytesIO(_decoded(path, data, problems).encode("utf-8"))
    with csv_records(text, path, "utf-8", None) as (_, records):
        header = next(records, None)
        if header is None:
            raise InputError(f"{path}: the file is empty")
        names = checked_header(header[1], f"{path}:{header[0]}", None)
        for line, cells in records:
            if any(cell.strip() for cell in cells[len(names) :]):
                problems.append(f"{path}:{line}: {len(cells)} cells, but the header has {len(names)}")
            else:
                yield f"{path}:{line}", {name: cell for name, cell in zip(names, cells, strict=False) if name}


def _decoded(path: Path, data: bytes, problems: list[str]) -> str:
    encoding = encoding_of(None, io.BytesIO(data), path)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        problems.append(f"{path}: is not UTF-8; read as cp1252, in which Excel saves plain CSV")
        return data.decode("cp1252", "replace")


def _json_lines(path: Path, data: bytes, found: _Gathered) -> Iterator[tuple[str, dict[str, Any]]]:
    lines = data.decode(encoding_of(None, io.BytesIO(data), path), "replace").split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                continue  # what a killed process left without a line feed is not a label
            found.problem(f"{path}:{number}", f"not valid JSON: {error}")
            continue
        if isinstance(row, dict):
            yield f"{path}:{number}", row
        else:
            found.problem(f"{path}:{number}", "expected an object")


def _json_rows(path: Path, found: _Gathered) -> Iterator[tuple[str, dict[str, Any]]]:
    for row in read_rows(DataFile(path=str(path), format="json"), path):
        place = f"{path}:{row.line} {row.path}" if row.line else f"{path} {row.path}"
        if row.data is None:
            found.problem(place, row.problem or "expected an object")
        else:
            yield place, row.data


def _read_row(place: str, row: Mapping[str, Any], found: _Gathered) -> None:
    sheet = row.get("sheet")
    if isinstance(sheet, dict):
        try:
            found.sheets.append(Sheet.model_validate(sheet))
        except ValidationError as error:
            found.problem(place, f"damaged sheet: {first_problem(error)}")
        return
    case_id = _case_id(row)
    if case_id is None:
        found.problem(place, "no case_id")
        return
    about: dict[str, Any] = {
        "case_id": case_id,
        "judge": _text(row.get("judge")),
        "input_sha256": _text(row.get("input_sha256")),
        "revised": row.get("revised") is True,
        "comment": _text(row.get("comment")) or "",
        "place": place,
    }
    if row.get("taken_back") is True:
        found.take_back(about, _text(row.get("annotator")) or SOLE_ANNOTATOR)
        return
    kind = found.kinds.get(about["judge"])
    own, values = _values(row, kind)
    for annotator, column, value in values:
        labels, problems = (found.labels, found.problems) if own else found.by_column.setdefault(column, ([], []))
        try:
            label = read_value(value, kind, column)
        except ValueError as error:
            problems.append(f"{place}: case {one_line(repr(case_id))}: {one_line(str(error))}")
            continue
        if label is not None:
            labels.append(HumanLabel(**about, annotator=annotator, **label_fields(label)))


def _case_id(row: Mapping[str, Any]) -> str | None:
    value = next((row[name] for name in ID_COLUMNS if row.get(name) not in (None, "")), None)
    try:
        found = canonical_id(value)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _values(row: Mapping[str, Any], kind: Kind | None) -> tuple[bool, list[tuple[str, str, Any]]]:
    """Whether a row is one label, and else has one for each annotator; annotator, column and value of each."""
    annotator = _text(row.get("annotator")) or SOLE_ANNOTATOR
    own = [name for name in VALUE_COLUMNS if name in row]
    if own:
        # Of several columns the first that is filled in counts.
        name = next((name for name in own if row[name] not in (None, "")), own[0])
        return True, [(annotator, name, row[name])]
    criteria = [name for name in kind.part_names if name in row] if kind is not None and kind.has_parts else []
    if criteria:
        return True, [(annotator, "label", {name: row[name] for name in criteria})]
    wide = row.get("labels")
    columns = wide if isinstance(wide, dict) else row
    return False, [
        (str(name), str(name), value)
        for name, value in columns.items()
        if columns is wide or (name not in OTHER_COLUMNS and name not in ID_COLUMNS)
    ]


def read_value(value: object, kind: Kind | None, column: str = "label") -> Verdict | bool | None:
    """A label as it stands in a file, see `read_written`; in the column `pass`, 1 and 0 are pass and fail.

    Raises:
        ValueError: it is no label; the text says why.
    """
    if column != "pass":
        return read_written(value, kind)
    label = read_written(value, Scale())
    if not isinstance(label, Verdict):
        return label
    if label.score not in (0, 1):
        raise ValueError(f"{str(label.said)[:40]} is neither pass (1) nor fail (0)")
    return label.score == 1


def _text(value: object) -> str | None:
    text = "" if value is None else str(value).strip()
    return text or None
