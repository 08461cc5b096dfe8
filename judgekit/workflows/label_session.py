"""One person goes through a sheet, in the terminal or on a page: case by case, and criteria one after the other."""

from collections.abc import Callable
from typing import Any, Literal

from judgekit.core.cases import Criterion
from judgekit.core.human_labels import HumanLabel, LabelItem, label_fields
from judgekit.core.judgments import CriterionVerdict, Verdict
from judgekit.core.kind import Kind
from judgekit.core.verdict_kinds import YesNo
from judgekit.core.written_labels import read_written
from judgekit.reports.label_text import CANNOT_TELL_KEY
from judgekit.workflows.label import Labelling, label_line

Step = Literal["labelled", "answered", "skipped", "back", "help", "quit", "unread"]


def typed_label(text: str, kind: Kind) -> Verdict | bool:
    """What was typed, as a label: a score, y or n, a label by name or number, or c for what cannot be told.

    Raises:
        ValueError: it is none of these; the text says why.
    """
    word = text.strip()
    label: Verdict | bool | None = None
    if kind.cannot_tell and word.casefold() == CANNOT_TELL_KEY:
        return Verdict(cannot_tell=True)
    if word.isdecimal() and kind.is_nominal and word not in kind.options and 0 < int(word) <= len(kind.options):
        label = Verdict(**kind.read({kind.key: kind.options[int(word) - 1]}, kind.key))
    elif word.isdecimal() and not (kind.is_nominal or kind.has_points):
        raise ValueError("type y or n")
    else:
        label = read_written(word, kind)
    if label is None or (kind.is_nominal and isinstance(label, bool)):
        raise ValueError("type a label, s, b, q or ?")
    (low, high), score = kind.category_bounds, None if isinstance(label, bool) else label.score
    if score is not None and not low <= score <= high:
        raise ValueError(f"{score} is off the scale of {low} to {high}")
    return label


class Session:
    """Goes through a sheet, from the first case without a label."""

    def __init__(self, labelling: Labelling, keep: Callable[[dict[str, Any]], None]) -> None:
        """Begin.

        Args:
            labelling: what is labelled.
            keep: stores one line of the file of labels; called for each label before the next case is shown.
        """
        self._labelling = labelling
        self._keep = keep
        self._labelled = {item.case_id for item in labelling.items if item.case_id in labelling.given}
        self._position = self._next_open(0)
        self._said: list[CriterionVerdict] = []
        self.message = ""

    @property
    def current(self) -> LabelItem | None:
        """The case to be labelled; None at the end."""
        items = self._labelling.items
        return items[self._position] if self._position < len(items) else None

    @property
    def criterion(self) -> Criterion | None:
        """The criterion that is asked about next; None if the case is asked about as a whole."""
        item = self.current
        return item.criteria[len(self._said)] if item is not None and item.criteria else None

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
            return self._go(self._next_open(self._position + 1), "skipped")
        if word == "b" and self._said:
            self._said.pop()
            return "answered"
        if word == "b":
            return self._go(max(0, self._position - 1), "back")
        return self.label(item, text)

    def go_to(self, case_id: str) -> None:
        """Show a case of the sheet, with or without a label."""
        self._go([item.case_id for item in self._labelling.items].index(case_id), "back")

    def _go(self, position: int, step: Step) -> Step:
        self._position, self._said = position, []
        return step

    def label(self, item: LabelItem, text: str, comment: str = "") -> Step:
        """Take a label of the case that is shown, or of the criterion that is asked about, as it was typed."""
        kind, asked = self._labelling.kind, self.criterion
        try:
            label = typed_label(text, kind if asked is None else YesNo(cannot_tell=kind.cannot_tell))
        except ValueError as error:
            self.message = str(error)
            return "unread"
        if asked is not None and isinstance(label, Verdict):
            self._said.append(CriterionVerdict(id=asked.id, met=label.answer))
            if len(self._said) < len(item.criteria):
                return "answered"
            label = Verdict(criteria=tuple(self._said))
        self._keep(
            label_line(
                HumanLabel(
                    case_id=item.case_id,
                    judge=self._labelling.sheet.judge,
                    annotator=self._labelling.annotator,
                    input_sha256=item.input_sha256,
                    revised=item.case_id in self._labelled,
                    comment=comment,
                    **label_fields(label),
                )
            )
        )
        self._labelled.add(item.case_id)
        return self._go(self._next_open(self._position + 1), "labelled")

    def _next_open(self, start: int) -> int:
        items = self._labelling.items
        still_open = (n for n in range(start, len(items)) if items[n].case_id not in self._labelled)
        return next(still_open, len(items))
