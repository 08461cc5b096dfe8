"""Where labels are written: a file that grows label by label, and sheets for spreadsheet programs."""

import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from judgekit.core.errors import ConfigError, InputError
from judgekit.core.human_labels import LabelItem, Sheet
from judgekit.core.judgments import CANNOT_TELL, Verdict
from judgekit.core.kind import Kind
from judgekit.core.text import clean_text, spreadsheet_cell
from judgekit.core.written_labels import read_written
from judgekit.storage.encodings import faults_named
from judgekit.storage.label_files import Kinds, table_rows
from judgekit.storage.run_files import disk_faults_named

SHOWN_COLUMNS = ("question", "answer", "passages", "references", "key_facts", "citations")
"""What a sheet always has a column for; what else a judge was shown comes behind."""

LABEL_COLUMNS = ("expected", "label", "annotator", "comment", "sheet")

_SHEET = re.compile(r"(.+) seed (-?\d+), (\d+) of (\d+)")


class LabelJournal:
    """A file of labels, written line by line so that a crash loses nothing but the line it was in."""

    def __init__(self, path: Path) -> None:
        """Open it for appending; a torn last line is cut off.

        Raises:
            StorageError: it cannot be written.
        """
        self.path = path
        with disk_faults_named(path, "cannot be written"):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = path.open("ab+")
            self._cut_torn_line()

    @property
    def is_there(self) -> bool:
        """The file is still the one that was opened, not deleted or replaced since."""
        try:
            return os.path.samestat(os.fstat(self._stream.fileno()), self.path.stat())
        except (OSError, ValueError):
            return False

    def begin(self, sheet: Sheet, known: Iterable[Sheet]) -> None:
        """Say which cases are labelled here, unless the file says so already."""
        if sheet not in known:
            self._append({"sheet": sheet.model_dump(mode="json")})

    def keep(self, label: Mapping[str, Any]) -> None:
        """Store one label.

        Raises:
            StorageError: it cannot be written.
        """
        self._append({**label, "labelled_at": datetime.now(UTC).isoformat(timespec="seconds")})

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _append(self, record: Mapping[str, Any]) -> None:
        line = clean_text(json.dumps(record, ensure_ascii=False)).encode() + b"\n"
        with disk_faults_named(self.path, "cannot be written"):
            try:
                self._stream.write(line)
                self._stream.flush()
                os.fsync(self._stream.fileno())
            except OSError:
                with suppress(OSError):
                    self._stream.close()
                raise

    def _cut_torn_line(self) -> None:
        self._stream.seek(0)
        data = self._stream.read()
        end = data.rfind(b"\n") + 1
        tail = data[end:]
        if not tail.strip():
            return
        try:
            json.loads(tail)
        except ValueError:
            self._stream.truncate(end)
        else:
            self._stream.write(b"\n")  # a whole record of a file that was written by hand


def write_sheet(path: Path, sheet: Sheet, items: Sequence[LabelItem], kind: Kind) -> None:
    """A sheet as CSV that spreadsheet programs open as it is: no cell runs as a formula, none is too long.

    Raises:
        ConfigError: the file exists.
        StorageError: it cannot be written.
    """
    if path.exists():
        raise ConfigError(f"{path}: exists already; labels may be in it, so choose another name")
    stream = io.StringIO()
    writer = csv.writer(stream)
    names = list(dict.fromkeys([*SHOWN_COLUMNS, *(name for item in items for name in item.shown)]))
    writer.writerow(["key", "case_id", *map(cell_text, names), *LABEL_COLUMNS])
    drawn = f"{sheet.judge} seed {sheet.seed}, {len(sheet.case_ids)} of {sheet.n_population}"
    for item in items:
        texts = [item.case_id, *(_joined(item.shown.get(name, ())) for name in names)]
        # One line for each criterion, to be filled in behind the sign.
        label = "\n".join(f"{criterion.id} = " for criterion in item.criteria)
        expected = "\n".join([_expected(kind), *(f"{one.id}: {one.text}" for one in item.criteria)])
        writer.writerow([item.key, *map(cell_text, [*texts, expected]), label, "", "", drawn])
    with disk_faults_named(path, "cannot be written"):
        path.write_bytes(stream.getvalue().encode("utf-8-sig"))


def _joined(texts: Sequence[str]) -> str:
    """Texts one a line, or where one has several lines, with blank lines between them."""
    return ("\n\n" if any("\n" in text for text in texts) else "\n").join(texts)


def _expected(kind: Kind) -> str:
    """What a label may be, in a few words."""
    words: tuple[int | str, ...] = kind.options if kind.is_nominal else kind.levels
    if kind.has_parts or not (kind.has_points or kind.is_nominal):
        words = ("no", "yes")
    shown = f"{words[0]} to {words[-1]}" if isinstance(words[0], int) else " | ".join(map(str, words))
    return shown + (f" | {CANNOT_TELL}" if kind.cannot_tell else "")


def cell_text(text: str) -> str:
    """A foreign text as a cell: without control characters, not run as a formula, cut if it is too long."""
    return spreadsheet_cell(
        "".join(
            character if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs") else "\ufffd"
            for character in clean_text(text).replace("\r\n", "\n").replace("\t", " ")
        )
    )


@dataclass(frozen=True)
class SheetRow:
    """A row of a sheet with a label."""

    place: str
    key: str
    case_id: str
    annotator: str | None
    label: Verdict | bool
    comment: str


@dataclass(frozen=True)
class FilledSheet:
    """A sheet that came back."""

    rows: tuple[SheetRow, ...]
    judge: str | None
    """As the sheet says; None if it no longer does."""
    seed: int | None
    n: int | None
    n_blank: int
    problems: tuple[str, ...]


def read_sheet(path: Path, kinds: Kinds) -> FilledSheet:
    """The labels of a sheet, as it was saved by a spreadsheet program.

    Args:
        path: CSV.
        kinds: what labels are.

    Raises:
        InputError: there is no such file, or it has no column of labels.
    """
    with faults_named(path, "a sheet of labels"):
        data = path.read_bytes()
    problems: list[str] = []
    rows: list[SheetRow] = []
    drawn: set[str] = set()
    n_blank = 0
    for place, cells in table_rows(path, data, problems):
        if "label" not in cells or not ("key" in cells or "case_id" in cells):
            raise InputError(
                f"{place}: expected the columns key (or case_id) and label, as `label --export` writes them"
            )
        sheet = cells.get("sheet", "").strip()
        drawn.add(sheet)
        about = _SHEET.fullmatch(sheet)
        try:
            label = read_written(cells["label"], kinds.get(None if about is None else about[1]))
        except ValueError as error:
            problems.append(f"{place}: {error}")
            continue
        if label is None:
            n_blank += 1
        else:
            case_id = cells.get("case_id", "")
            annotator = cells.get("annotator", "").strip() or None
            comment = cells.get("comment", "").strip()
            rows.append(SheetRow(place, cells.get("key", "").strip(), case_id, annotator, label, comment))
    match = _SHEET.fullmatch(next(iter(drawn))) if len(drawn) == 1 else None
    judge, seed, n = (match[1], int(match[2]), int(match[3])) if match is not None else (None, None, None)
    return FilledSheet(tuple(rows), judge, seed, n, n_blank, tuple(problems))
