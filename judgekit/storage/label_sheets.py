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
from judgekit.core.text import clean_text
from judgekit.storage.encodings import faults_named
from judgekit.storage.label_files import read_value, table_rows
from judgekit.storage.run_files import disk_faults_named

SHEET_COLUMNS = (
    "key", "case_id", "question", "answer", "passages", "references", "key_facts", "citations", "conversation",
    "label", "annotator", "comment", "sheet"
)  # fmt: skip

MOST_CHARACTERS = 32_000
"""Of a cell; a spreadsheet program cuts what is longer and breaks the row."""

_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r]")
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


def write_sheet(path: Path, sheet: Sheet, items: Sequence[LabelItem]) -> None:
    """A sheet as CSV that spreadsheet programs open as it is: no cell runs as a formula, none is too long.

    Raises:
        ConfigError: the file exists.
        StorageError: it cannot be written.
    """
    if path.exists():
        raise ConfigError(f"{path}: exists already; labels may be in it, so choose another name")
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(SHEET_COLUMNS)
    for item in items:
        passages = "\n\n".join(f"[{number}] {source}\n{text}" for number, (source, text) in enumerate(item.passages, 1))
        texts = [
            item.case_id,
            item.question,
            item.answer,
            passages,
            "\n".join(item.references),
            "\n".join(item.key_facts),
            "\n".join(item.citations),
            "\n".join(item.conversation),
        ]
        drawn = f"{sheet.judge} seed {sheet.seed}, {len(sheet.case_ids)} of {sheet.n_population}"
        writer.writerow([item.key, *map(cell_text, texts), "", "", "", drawn])
    with disk_faults_named(path, "cannot be written"):
        path.write_bytes(stream.getvalue().encode("utf-8-sig"))


def cell_text(text: str) -> str:
    """A foreign text as a cell: without control characters, not run as a formula, cut if it is too long."""
    clean = "".join(
        character if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs") else "\ufffd"
        for character in clean_text(text).replace("\r\n", "\n").replace("\t", " ")
    )
    if len(clean) > MOST_CHARACTERS:
        clean = f"{clean[:MOST_CHARACTERS]} [cut: {len(clean) - MOST_CHARACTERS} more characters]"
    return f"'{clean}" if _FORMULA.match(clean) else clean


@dataclass(frozen=True)
class SheetRow:
    """A row of a sheet with a label."""

    place: str
    key: str
    case_id: str
    annotator: str | None
    score: int | None
    passed: bool | None


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


def read_sheet(path: Path) -> FilledSheet:
    """The labels of a sheet, as it was saved by a spreadsheet program.

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
        drawn.add(cells.get("sheet", "").strip())
        label = read_value(cells["label"])
        if label is None:
            n_blank += 1
        elif isinstance(label, str):
            problems.append(f"{place}: {label}")
        else:
            case_id = cells.get("case_id", "")
            annotator = cells.get("annotator", "").strip() or None
            rows.append(SheetRow(place, cells.get("key", "").strip(), case_id, annotator, *label))
    match = _SHEET.fullmatch(next(iter(drawn))) if len(drawn) == 1 else None
    judge, seed, n = (match[1], int(match[2]), int(match[3])) if match is not None else (None, None, None)
    return FilledSheet(tuple(rows), judge, seed, n, n_blank, tuple(problems))
