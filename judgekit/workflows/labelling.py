"""`judgekit label`: one person labels the cases of a sheet one by one, without seeing what the judge said."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from judgekit.core.human_labels import HumanLabel, LabelItem, Sheet

Step = Literal["labelled", "skipped", "back", "help", "quit", "unread"]

Reader = Callable[[str], tuple[int | None, bool | None] | str | None]
"""What was typed -> score and pass, of which one is None; a text says why it is no label."""


@dataclass(frozen=True)
class Labelling:
    """A sheet to be labelled by one person."""

    sheet: Sheet
    items: Sequence[LabelItem]
    scale: tuple[int, int]
    annotator: str
    rubric: str
    """What the scores mean, as the judge is told."""
    given: Mapping[str, HumanLabel]
    """By case id, what this person said before."""


class Session:
    """Goes through a sheet, from the first case without a label."""

    def __init__(self, labelling: Labelling, read: Reader, keep: Callable[[dict[str, Any]], None]) -> None:
        """Begin.

        Args:
            labelling: what is labelled.
            read: how a typed label is read.
            keep: stores one line of the file of labels; called for each label before the next case is shown.
        """
        self._labelling = labelling
        self._read = read
        self._keep = keep
        self._labelled = {item.case_id for item in labelling.items if item.case_id in labelling.given}
        self._position = self._next_open(0)
        self.message = ""

    @property
    def current(self) -> LabelItem | None:
        """The case to be labelled; None at the end."""
        items = self._labelling.items
        return items[self._position] if self._position < len(items) else None

    @property
    def place(self) -> str:
        """`3 of 50, 2 labelled`."""
        return f"{self._position + 1} of {len(self._labelling.items)}, {self.n_labelled} labelled"

    @property
    def n_labelled(self) -> int:
        """Cases of the sheet with a label."""
        return len(self._labelled)

    def answer(self, text: str) -> Step:
        """Take what was typed: a label, s, b, q or ?; why it was not understood is in `message`."""
        item = self.current
        self.message = ""
        word = text.strip().casefold()
        if word == "q" or item is None:
            return "quit"
        if word == "?":
            return "help"
        if word == "s":
            self._position = self._next_open(self._position + 1)
            return "skipped"
        if word == "b":
            self._position = max(0, self._position - 1)
            return "back"
        return self._label(item, text)

    def _label(self, item: LabelItem, text: str) -> Step:
        label = self._read(text)
        problem = self._problem(label)
        if problem is not None or label is None or isinstance(label, str):
            self.message = problem or ""
            return "unread"
        score, passed = label
        value: dict[str, Any] = {"pass": passed} if score is None else {"score": score}
        about = {
            "case_id": item.case_id,
            "judge": self._labelling.sheet.judge,
            "annotator": self._labelling.annotator,
            "input_sha256": item.input_sha256,
        }
        revised = {"revised": True} if item.case_id in self._labelled else {}
        self._keep({**about, **value, **revised})
        self._labelled.add(item.case_id)
        self._position = self._next_open(self._position + 1)
        return "labelled"

    def _problem(self, label: tuple[int | None, bool | None] | str | None) -> str | None:
        low, high = self._labelling.scale
        if label is None:
            return "type a label, s, b, q or ?"
        if isinstance(label, str):
            return label
        score, _ = label
        if score is not None and not low <= score <= high:
            return f"{score} is off the scale of {low} to {high}"
        if score is not None and (low, high) == (0, 1):
            return "type y or n"
        return None

    def _next_open(self, start: int) -> int:
        items = self._labelling.items
        for position in range(start, len(items)):
            if items[position].case_id not in self._labelled:
                return position
        return len(items)
