"""The cases of a run as the report carries them: an index of all rows, and packed blocks with what a case opens to.

The report stays bounded whatever the run holds: every text has a cap, all caps shrink together where a run is large,
and past `MOST_ENCODED` characters cases keep their row and lose their texts. What is left out is said where it is
missing; the run folder has it in full.
"""

import base64
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from judgekit.core.runs import CaseRecord
from judgekit.reports.case_details import MOST_OF_A_CASE, Caps, CaseViewer
from judgekit.reports.safe_text import inert

MOST_ENCODED = 32_000_000
"""Characters that the packed texts of all cases may take."""

MOST_VALUES = 2_500_000
"""Scores in the index, over all cases; the last columns are left out."""

_RAW_TARGET = 100_000_000
_PREVIEW_TARGET = 6_000_000
_BLOCK = 200_000
_LEVEL = 4
"""Of packing: the next one takes half as much time again, for 3% less."""

_MOST_LABELS = 500


@dataclass
class _Labels:
    """A short list of texts, and for each case which of them it has."""

    values: dict[str, int] = field(default_factory=dict)
    of: list[Sequence[int]] = field(default_factory=list)

    def add(self, labels: Iterable[str]) -> None:
        found = []
        for label in labels:
            short = inert(label)[:120]
            if short in self.values or len(self.values) < _MOST_LABELS:
                found.append(self.values.setdefault(short, len(self.values)))
        # Most have one label or none, and an empty tuple takes no memory.
        self.of.append(tuple(found))

    def record(self) -> dict[str, Any]:
        return {"values": list(self.values), "of": self.of}


class CaseData:
    """Packs the cases of a run while they stream by: first `blocks`, then `index`."""

    def __init__(self, viewer: CaseViewer, n_cases: int, columns: Sequence[str], dimensions: Sequence[str]) -> None:
        """Set the sizes.

        Args:
            viewer: makes what a case opens to.
            n_cases: cases that will come.
            columns: score names in the order in which the table offers them.
            dimensions: slice dimensions.
        """
        n_rows = max(1, n_cases)
        self._viewer = viewer
        self._preview = max(60, min(200, _PREVIEW_TARGET // n_rows))
        self._columns: dict[str, list[Any]] = {name: [] for name in columns[: max(1, MOST_VALUES // n_rows)]}
        self._dimensions = {name: _Labels() for name in dimensions}
        self._failures = _Labels()
        self._reasons: dict[str, int] = {}
        self._cells: dict[str | None, str] = {}
        """What stands in the index for a reason."""
        self._ids: list[str] = []
        self._questions: list[str] = []
        self._answers: list[str | None] = []
        self._starts: list[int] = []
        self._n_encoded = 0
        self._n_packed = 0

    def blocks(self, records: Iterable[CaseRecord]) -> Iterator[str]:
        """The details of the cases, packed: JSON lists, deflated, in base64. One text a block."""
        waiting: list[bytes] = []
        size = 0
        for record in records:
            self._add_row(record)
            if self._n_encoded >= MOST_ENCODED:
                continue
            text = _json(self._viewer.details(record))
            waiting.append(text)
            size += len(text)
            if size >= _BLOCK:
                yield self._packed(waiting)
                waiting, size = [], 0
        if waiting:
            yield self._packed(waiting)

    def _packed(self, texts: Sequence[bytes]) -> str:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
        data = packer.compress(b"[%b]" % b",".join(texts)) + packer.flush()
        encoded = base64.b64encode(data).decode("ascii")
        self._starts.append(self._n_packed)
        self._n_packed += len(texts)
        self._n_encoded += len(encoded)
        return encoded

    def _add_row(self, record: CaseRecord) -> None:
        case, output = record.case, record.output
        self._ids.append(inert(record.case_id)[:200])
        self._questions.append(self._short("" if case is None else case.question) or "")
        self._answers.append(self._short(None if output is None else output.answer))
        self._failures.add(record.failures)
        slices = {} if case is None else self._viewer.slices(case)
        for name, labels in self._dimensions.items():
            labels.add(slices.get(name, ()))
        scores, cells = record.scores, self._cells
        for name, values in self._columns.items():
            score = scores.get(name)
            if score is None:
                values.append(None)
            elif score[0] is not None:
                values.append(_rounded(score[0]))
            else:
                values.append(cells.get(score[1]) or self._new_cell(score[1]))

    def _short(self, text: str | None) -> str | None:
        if text is None:
            return None
        flat = " ".join(inert(text[: self._preview * 2]).split())
        return flat if len(flat) <= self._preview and len(text) <= self._preview * 2 else f"{flat[: self._preview]}…"

    def _new_cell(self, reason: str | None) -> str:
        """The place of a reason as a text, since a number would be a score."""
        text = inert(reason or "failed: no reason")[:200]
        if text not in self._reasons and len(self._reasons) >= _MOST_LABELS:
            return str(self._place("n/a: other reasons" if text.startswith("n/a") else "failed: other reasons"))
        self._cells[reason] = cell = str(self._place(text))
        return cell

    def _place(self, text: str) -> int:
        return self._reasons.setdefault(text, len(self._reasons))

    def index(self, more: Mapping[str, Any]) -> str:
        """All rows as JSON that can stand inside a script element, with more entries for the page's script."""
        silent = {None, *(str(place) for text, place in self._reasons.items() if text.startswith("n/a"))}
        columns = {name: values for name, values in self._columns.items() if any(cell not in silent for cell in values)}
        return embedded(
            {
                **more,
                "ids": self._ids,
                "questions": self._questions,
                "answers": self._answers,
                "failures": self._failures.record(),
                "dimensions": {name: labels.record() for name, labels in self._dimensions.items() if labels.values},
                "scores": columns,
                "reasons": list(self._reasons),
                "starts": self._starts,
                "packed": self._n_packed,
            }
        )


def embedded(value: Any) -> str:
    """JSON whose text cannot end or open an element, whatever it holds; it reads back unchanged."""
    text = _json(value).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):  # half a character, or a whole number of more than 64 bits
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _rounded(value: float) -> float | int:
    rounded = round(value, 4)
    return int(rounded) if rounded == int(rounded) else rounded


def caps_for(n_cases: int, n_stored: int) -> Caps:
    """How much of each text a report of a run shows: all of a small run, less of each case where there is more.

    Args:
        n_cases: cases that it shows.
        n_stored: bytes of the outputs, judge inputs and judgments of the run.
    """
    expected = max(1, min(n_stored, n_cases * MOST_OF_A_CASE))
    return Caps().scaled(min(1.0, _RAW_TARGET / expected))
