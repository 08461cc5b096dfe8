"""`judgekit label --web`: people label a sheet on a page on this machine, each under a name, several tabs at once.

The file of labels is the only memory: before anything is answered it is read again if it has changed, and what somebody
says is appended to it as one line. So two tabs, two people and a restart see the same, and nothing is overwritten. What
a judge said is not even read here.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from io import BytesIO
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from judgekit.analysis.annotator_agreement import annotator_agreement
from judgekit.core.errors import JudgekitError, first_problem
from judgekit.core.human_labels import HumanLabel, LabelFile, LabelItem
from judgekit.core.text import clean_text
from judgekit.reports.label_page import LabelPage, known_names, label_words
from judgekit.reports.pages import policy
from judgekit.reports.safe_text import inert, json_text, printable_line
from judgekit.storage.label_sheets import LabelJournal
from judgekit.workflows.label import Labelling, taken_back_line
from judgekit.workflows.label_session import Session
from judgekit.workflows.local_page import JSON, Answer, Asked, message, open_local

MOST_OF_COMMENT = 5000
MOST_OF_NAME = 60


class Sent(BaseModel):
    """What the page sends: a label, or without a key that the last one is taken back."""

    model_config = ConfigDict(extra="forbid", strict=True)

    annotator: str
    key: str = ""
    typed: Annotated[list[str], Field(max_length=200)] = []
    """What the terminal would be typed: one text, or one for each criterion."""
    comment: Annotated[str, Field(max_length=MOST_OF_COMMENT)] = ""
    known: bool = True
    """The page shows what this person said of the case before, if there is something."""


class Unfit(Exception):
    """What is asked for cannot be done; the text says why."""


@dataclass(frozen=True)
class Place:
    """Where in the sheet a page wants to be: at a case, or behind one; neither: at the first open one."""

    at: str | None = None
    after: str | None = None
    before: str | None = None


class LabelDesk:
    """Answers what the page asks."""

    def __init__(self, labelling: Labelling) -> None:
        """Begin: the sheet is in the file from now on.

        Raises:
            StorageError: the file cannot be written.
        """
        self._labelling = labelling
        self._page = LabelPage(
            run_id=labelling.sheet.run_id,
            judge=labelling.sheet.judge,
            ask=labelling.ask,
            rubric=labelling.rubric,
            kind=labelling.kind,
            meanings=labelling.meanings,
        )
        self._items = {item.key: item for item in labelling.items}
        self._lock = threading.Lock()
        self._journal: LabelJournal | None = labelling.journal()
        self._read: tuple[tuple[int, int], LabelFile] | None = None

    def answer(self, asked: Asked) -> Answer:
        """The answer to a request that may be answered."""
        address = urlsplit(asked.target)
        try:
            if asked.sent is None and address.path == "/":
                return self._html()
            with self._lock:
                if asked.sent is None and address.path == "/case":
                    return _json(self._asked(parse_qs(address.query)))
                if asked.sent is not None and address.path in ("/label", "/undo"):
                    sent = _read_sent(asked.sent)
                    return _json(self._label(sent) if address.path == "/label" else self._take_back(sent))
        except Unfit as error:
            return _json({"message": str(error)}, HTTPStatus.UNPROCESSABLE_ENTITY)
        except JudgekitError as error:
            what = "The labels cannot be read" if asked.sent is None else "Not saved"
            return _json({"message": f"{what}: {error}"}, HTTPStatus.INTERNAL_SERVER_ERROR)
        return message(HTTPStatus.NOT_FOUND, "Not found", "There is no such page here.")

    def close(self) -> None:
        """Close the file."""
        if self._journal is not None:
            self._journal.close()

    @property
    def n_labelled(self) -> int:
        """Cases of the sheet with a label by anybody."""
        wanted = {item.case_id: item.input_sha256 for item in self._labelling.items}
        return len({label.case_id for label in self._labels() if label.case_id in wanted})

    def _html(self) -> Answer:
        text = self._page.html(inert(self._labelling.annotator))
        return Answer(HTTPStatus.OK, BytesIO(text.encode()), policy("label.js"), {"Cache-Control": "no-store"})

    def _asked(self, query: dict[str, list[str]]) -> dict[str, Any]:
        found = {name: values[-1] for name, values in query.items()}
        place = Place(found.get("at"), found.get("after"), found.get("before"))
        return self._state(_name(found.get("annotator", "")), place)

    def _label(self, sent: Sent) -> dict[str, Any]:
        annotator = _name(sent.annotator)
        item = self._items.get(sent.key)
        if item is None:
            raise Unfit("This case is not on the sheet; load the page again.")
        own = self._labelling.by(annotator, self._held())
        earlier = own.given.get(item.case_id)
        session = Session(own, self._keep)
        session.go_to(item.case_id)
        if len(sent.typed) != max(1, len(item.criteria)):
            raise Unfit("Answer every criterion first." if item.criteria else "Choose a label first.")
        for text in sent.typed:
            if session.label(item, text, _comment(sent.comment)) == "unread":
                raise Unfit(f"Not saved: {session.message}")
        said = self._labelling.by(annotator, self._held()).given[item.case_id]
        note = f"{item.case_id}: {label_words(said)}"
        if earlier is not None and not sent.known:
            note += f"; another tab had saved {label_words(earlier)} before, undo takes you back to it"
        return {**self._state(annotator, Place(after=item.key)), "message": inert(note)}

    def _take_back(self, sent: Sent) -> dict[str, Any]:
        annotator = _name(sent.annotator)
        given = self._labelling.by(annotator, self._held()).given
        if not given:
            raise Unfit("There is nothing to undo.")
        last = [*given.values()][-1]
        self._keep(taken_back_line(last))
        key = next(item.key for item in self._labelling.items if item.case_id == last.case_id)
        note = f"Taken back: {last.case_id}, {label_words(last)}"
        return {**self._state(annotator, Place(at=key)), "message": inert(note)}

    def _state(self, annotator: str, place: Place) -> dict[str, Any]:
        """Everything that the page shows for one person."""
        own = self._labelling.by(annotator, self._held())
        labels = self._labels()
        item = _at(own, place)
        skipped = _skipped(own, self._labelling.items)
        return {
            "annotator": inert(annotator),
            "annotators": known_names(labels, annotator),
            "n": len(own.items),
            "n_labelled": len(own.given),
            "n_skipped": skipped,
            "number": None if item is None else own.items.index(item) + 1,
            "case": None if item is None else self._page.case(item, own.given.get(item.case_id)),
            "agreement": [inert(pair.words) for pair in annotator_agreement(labels, own.kind)],
            "next": printable_line(
                f"judgekit calibrate {own.sheet.run_id} --judge {own.sheet.judge} --labels {own.path}"
            ),
            "message": "",
        }

    def _labels(self) -> list[HumanLabel]:
        """Everybody's labels of this judge on these very answers."""
        current = {item.case_id: item.input_sha256 for item in self._labelling.items}
        return [
            label
            for label in self._held().labels
            if label.judge in (None, self._labelling.sheet.judge)
            and label.case_id in current
            and label.input_sha256 in (None, current[label.case_id])
        ]

    def _held(self) -> LabelFile:
        try:
            status = self._labelling.path.stat()
            version = status.st_mtime_ns, status.st_size
        except OSError:
            version = 0, 0
        if self._read is None or self._read[0] != version:
            self._read = version, self._labelling.held()
        return self._read[1]

    def _keep(self, line: dict[str, Any]) -> None:
        """Append a line; a file that could not be written, or is no longer there, is opened again."""
        journal, self._journal = self._journal, None
        if journal is None or not journal.is_there:
            if journal is not None:
                journal.close()
            journal = replace(self._labelling, sheets=self._held().sheets).journal()
        journal.keep(line)
        self._journal = journal


def _at(own: Labelling, place: Place) -> LabelItem | None:
    """The case that is shown."""
    keys = [item.key for item in own.items]
    if place.at in keys:
        return own.items[keys.index(place.at)]
    if place.before in keys:
        return own.items[max(0, keys.index(place.before) - 1)]
    start = keys.index(place.after) + 1 if place.after in keys else 0
    return next((item for item in own.items[start:] if item.case_id not in own.given), None)


def _skipped(own: Labelling, items: Sequence[LabelItem]) -> int:
    """Cases without a label before the last one with one."""
    done = [place for place, item in enumerate(items) if item.case_id in own.given]
    return done[-1] + 1 - len(done) if done else 0


def _read_sent(data: bytes) -> Sent:
    try:
        return Sent.model_validate_json(data)
    except ValidationError as error:
        raise Unfit(f"Not understood: {first_problem(error)}") from None


def _name(text: str) -> str:
    """A name as the file keeps it."""
    name = printable_line(clean_text(text)).strip()
    if not name or len(name) > MOST_OF_NAME:
        raise Unfit(f"Give a name of 1 to {MOST_OF_NAME} characters.")
    return name


def _comment(text: str) -> str:
    return inert(clean_text(text)).strip()


def _json(document: dict[str, Any], status: HTTPStatus = HTTPStatus.OK) -> Answer:
    body = BytesIO(json_text(document).encode())
    return Answer(status, body, policy(), {"Cache-Control": "no-store"}, JSON)


def open_desk(desk: LabelDesk, port: int, token: str) -> ThreadingHTTPServer:
    """A server of the page on loopback that is ready to serve, see `open_local`.

    Raises:
        ConfigError: the port is taken.
    """
    return open_local(desk.answer, port, token=token, changing=True)
