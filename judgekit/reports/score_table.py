"""Scores case by case as one table: a row a case, a column a score."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

from judgekit.core.runs import CaseRecord
from judgekit.reports.safe_text import inert

Cell = str | float | None

TEXT_COLUMNS = ("case_id", "question", "answer", "failure")

_FORMULA = re.compile(r"\s*[=+\-@＝＋－＠]|\t")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)*")


class ScoreTable:
    """The table of a run.

    `failure` says what failed and how (`system: timeout; groundedness: invalid`). A score that failed or does not apply
    is an empty cell; scores.jsonl has the reasons.
    """

    def __init__(self, score_names: Sequence[str]) -> None:
        """Fix the columns: names of the scores in their order."""
        self._names = tuple(score_names)

    @property
    def columns(self) -> dict[str, type]:
        """Columns in their order with the type of their cells, text or number."""
        return {**dict.fromkeys(TEXT_COLUMNS, str), **dict.fromkeys(self._names, float)}

    def row(self, record: CaseRecord) -> list[Cell]:
        """The cells of one case, as they are."""
        case, output = record.case, record.output
        texts = [
            record.case_id,
            None if case is None else case.question,
            None if output is None else output.answer,
            "; ".join(record.failures) or None,
        ]
        return [*texts, *(record.scores.get(name, (None, None))[0] for name in self._names)]

    def csv_lines(self, records: Iterable[CaseRecord]) -> Iterator[str]:
        """The table as CSV, line by line, first the names; texts cannot run as formulas of a spreadsheet program."""
        yield _line([defused(name) for name in self.columns])
        for record in records:
            yield _line([defused(cell) if isinstance(cell, str) else cell for cell in self.row(record)])


def defused(text: str) -> str:
    """The text with a `'` before it where a spreadsheet program would run it as a formula; a plain number stays.

    Control characters are replaced, since some programs skip them and run what follows.
    """
    clean = inert(text.replace("\r\n", "\n").replace("\r", "\n"))
    return f"'{clean}" if _FORMULA.match(clean) and not _NUMBER.fullmatch(clean) else clean


def _line(cells: Sequence[Cell]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return stream.getvalue()
