"""Human labels on judged cases, and the sheet that says which cases were drawn for labelling."""

import hashlib
from dataclasses import dataclass

from judgekit.core.scores import Frozen

LABELS = "labels.jsonl"
"""File of the run folder that `judgekit label` writes if no other is named."""

CALIBRATION = "calibration.json"
"""File of the run folder with what `judgekit calibrate` found."""

SOLE_ANNOTATOR = "annotator"
"""Name of the annotator if a file names none."""


class HumanLabel(Frozen):
    """What one person says of one case."""

    case_id: str
    judge: str | None = None
    """The judge that it is about; None if the file does not say."""
    annotator: str = SOLE_ANNOTATOR
    score: int | None = None
    """On the scale of the judge; None if the label is pass or fail."""
    passed: bool | None = None
    """Pass or fail; None if the label is a score."""
    input_sha256: str | None = None
    """Hash of the judge input that was labelled, if it is known: a label is about one answer."""
    revised: bool = False
    """It takes the place of an earlier label of the same person on purpose."""
    place: str = ""
    """Where it stands, for messages: file and line."""


class Sheet(Frozen):
    """Which cases were drawn for labelling, and how."""

    run_id: str
    judge: str
    seed: int
    n_population: int
    """Judge inputs of the run that the cases were drawn from."""
    case_ids: tuple[str, ...]
    """In the order in which they are labelled; every beginning is a simple random sample."""


@dataclass(frozen=True)
class LabelItem:
    """What a person is shown of one case: what the judge was shown, and nothing of what it said."""

    case_id: str
    input_sha256: str
    question: str
    answer: str
    passages: tuple[tuple[str, str], ...]
    """Source and text of each passage."""
    references: tuple[str, ...]
    key_facts: tuple[str, ...]
    citations: tuple[str, ...]
    conversation: tuple[str, ...] = ()
    """Each message with what was retrieved for it."""

    @property
    def key(self) -> str:
        """Stands for case and answer in a sheet; a spreadsheet program cannot take it for a number or a date."""
        return item_key(self.case_id, self.input_sha256)


def item_key(case_id: str, input_sha256: str) -> str:
    """The key of a case in a sheet: `k` and 16 hexadecimal digits."""
    return f"k{hashlib.sha256(f'{input_sha256} {case_id}'.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


@dataclass(frozen=True)
class LabelFile:
    """A file of labels, read."""

    path: str
    sha256: str
    labels: tuple[HumanLabel, ...]
    sheets: tuple[Sheet, ...]
    problems: tuple[str, ...]
    """What could not be read, one line each, with its place; the rest was."""
