"""Scores case by case as one table: a row a case, a column a score."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint
from judgekit.core.judgments import Verdict
from judgekit.core.runs import CaseRecord
from judgekit.core.text import MOST_OF_CELL, spreadsheet_cell
from judgekit.reports.safe_text import inert

Cell = str | float | None

REASON = ".reason"
"""Ends the name of the column beside a judge's score: why it judged so, or why there is no score."""

ALL_COLUMNS = "all"
"""Asks for every column that a run has something for."""

_METADATA = "metadata."

_FAILURE_WORDS: Mapping[str, str] = {
    "invalid": "the reply was no verdict",
    "ambiguous": "the reply had two verdicts",
    "truncated": "the reply was cut off",
    "prompt_truncated": "the server shortened the question",
    "empty": "nothing came back",
    "refused": "the model declined to answer",
    "filtered": "a content filter stopped the reply",
    "context_length": "the texts are too long for the model",
    "bad_request": "the server refused the question",
    "rate_limited": "the server was asked too often",
    "server_error": "the server failed",
    "timeout": "no answer came in time",
    "connection": "the server could not be reached",
    "panel_quorum": "too few members of the panel gave a verdict",
    "internal": "judgekit or a plug-in failed",
}


class ScoreTable:
    """The table of a run: a row a case, without columns in which nothing stands unless they are asked for.

    `failure` says what failed in words. A score that failed or does not apply is an empty cell; of a judge, the column
    beside it says why. A judge that gives labels has a column with the word.
    """

    def __init__(
        self, score_names: Sequence[str], records: Iterable[CaseRecord], columns: Sequence[str] = (ALL_COLUMNS,)
    ) -> None:
        """Look through the cases, which are read again for the rows.

        Args:
            score_names: names of the scores in their order.
            records: the cases.
            columns: further ones beside the texts and the scores of judges: names of scores, `retrieved`, or
                `metadata.KEY`; `all` for every score.

        Raises:
            ConfigError: there is no such column.
        """
        used: set[str] = set()
        judges: dict[str, bool] = {}
        for record in records:
            used.update(name for name, text in _texts(record).items() if text is not None)
            used.update(_more_names(record))
            used.update(name for name, (value, _) in record.scores.items() if value is not None)
            for judge, verdict in _verdicts(record).items():
                judges[judge] = judges.get(judge, False) or (verdict is not None and verdict.label is not None)
        found = list(_with_labels([name for name in score_names if name in used or judges.get(name)], judges))
        own = [name for name in found if any(is_score_of(judge, name) for judge in judges)] or found
        self._more = [name for name in dict.fromkeys(columns) if name == _RETRIEVED or name.startswith(_METADATA)]
        metadata = sorted(name for name in used if name.startswith(_METADATA))
        reasons = [f"{judge}{REASON}" for judge in judges]
        known = [*dict.fromkeys([*_TEXTS, *found, *reasons, *score_names, *metadata]), _RETRIEVED, ALL_COLUMNS]
        unknown = next((name for name in columns if name not in known), None)
        if unknown is not None:
            raise ConfigError(f"--columns: no column {unknown!r}{name_hint(unknown, known)}")
        self._texts = [name for name in _TEXTS if name in used or name == "case_id"]
        shown = [name for name in found if name in own or name in columns or ALL_COLUMNS in columns]
        self._columns = [*shown, *(name for name in score_names if name in columns and name not in shown)]
        self.n_cut = 0
        """Cells of the CSV that were cut, once its lines were read."""
        self._judges = judges
        """By judge, whether it gives labels, which are words and no number."""

    @property
    def columns(self) -> dict[str, type]:
        """Columns in their order with the type of their cells, text or number."""
        found: dict[str, type] = dict.fromkeys([*self._texts, *self._more], str)
        for name in self._columns:
            found[name] = str if self._judges.get(name) else float
            if name in self._judges:
                found[name + REASON] = str
        return found

    def row(self, record: CaseRecord) -> list[Cell]:
        """The cells of one case, as they are."""
        texts = _texts(record)
        cells: list[Cell] = [texts[name] for name in self._texts]
        cells += [_more_text(record, name) for name in self._more]
        verdicts = _verdicts(record)
        for name in self._columns:
            value, why = record.scores.get(name, (None, None))
            verdict = verdicts.get(name)
            if self._judges.get(name):
                cells.append(None if verdict is None else str(verdict.said))
                why = _why_no_label(record, name) if verdict is None else None
            else:
                cells.append(value)
            if name in self._judges:
                cells.append((verdict.reasoning if verdict is not None else None) or why)
        return cells

    def csv_lines(self, records: Iterable[CaseRecord]) -> Iterator[str]:
        """The table as CSV, line by line, first the names; texts cannot run as formulas of a spreadsheet program.

        What is too long for a cell is cut, and counted in `n_cut`.
        """
        yield _line([defused(name) for name in self.columns])
        for record in records:
            cells = self.row(record)
            self.n_cut += sum(isinstance(cell, str) and len(cell) > MOST_OF_CELL for cell in cells)
            yield _line([defused(cell) if isinstance(cell, str) else cell for cell in cells])


def defused(text: str) -> str:
    """The text as a cell of a spreadsheet program, see `spreadsheet_cell`; control characters are replaced."""
    return spreadsheet_cell(inert(text.replace("\r\n", "\n").replace("\r", "\n")))


def _line(cells: Sequence[Cell]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(["" if cell is None else cell for cell in cells])
    return stream.getvalue()


_RETRIEVED = "retrieved"
_TEXTS = ("case_id", "question", "answer", "reference", "category", "failure")


def _texts(record: CaseRecord) -> dict[str, str | None]:
    case, output = record.case, record.output
    return {
        "case_id": record.case_id,
        "question": None if case is None else case.question or None,
        "answer": None if output is None else output.answer,
        "reference": None if case is None else "\n".join(case.reference_answers) or None,
        "category": None if case is None else case.category,
        "failure": "; ".join(map(_in_words, record.failures)) or None,
    }


def _in_words(failure: str) -> str:
    """`system: timeout` as `system: no answer came in time (timeout)`; a system has kinds of its own too."""
    who, _, kind = failure.partition(": ")
    return f"{who}: {_FAILURE_WORDS.get(kind, 'failed')} ({kind})"


def _more_names(record: CaseRecord) -> Iterator[str]:
    for holder in (record.case, record.output):
        yield from (f"{_METADATA}{key}" for key in (holder.metadata if holder is not None else ()))


def _more_text(record: CaseRecord, name: str) -> str | None:
    if name == _RETRIEVED:
        hits = () if record.output is None else record.output.retrieved or ()
        return "\n\n".join(hit.text for hit in hits if hit.text) or None
    key = name.removeprefix(_METADATA)
    for holder in (record.case, record.output):
        if holder is not None and key in holder.metadata:
            value = holder.metadata[key]
            return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return None


def _verdicts(record: CaseRecord) -> dict[str, Verdict | None]:
    """By judge what it says of a case; None if it failed."""
    return {judgment.judge: judgment.verdict for judgment in record.judgments if judgment.role == "primary"}


def _with_labels(names: Sequence[str], judges: Mapping[str, bool]) -> Iterable[str]:
    """The scores, and before the first one of a judge that gives labels the judge itself."""
    labelling = [judge for judge, gives_labels in judges.items() if gives_labels]
    found: list[str] = []
    for name in names:
        found += [judge for judge in labelling if is_score_of(judge, name)]
        found.append(name)
    return dict.fromkeys(found)


def _why_no_label(record: CaseRecord, judge: str) -> str | None:
    return next((why for name, (_, why) in record.scores.items() if why is not None and is_score_of(judge, name)), None)


def is_score_of(judge: str, name: str) -> bool:
    """Whether a score is one of a judge's, by its name: all of them begin with that of the judge."""
    return name in (judge, f"{judge}_pass") or name.startswith(f"{judge}.")
