"""Human labels on judged cases, and the sheet that says which cases were drawn for labelling."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from judgekit.core.cases import Criterion
from judgekit.core.judgments import CANNOT_TELL, Verdict
from judgekit.core.scores import Frozen

LABELS = "labels.jsonl"
"""File of the run folder that `judgekit label` writes if no other is named."""

CALIBRATION = "calibration.json"
"""File of the run folder with what `judgekit calibrate` found."""

SOLE_ANNOTATOR = "annotator"
"""Name of the annotator if a file names none."""


YES_NO = ("no", "yes")
"""The answers of yes/no judges in words."""


class HumanLabel(Frozen):
    """What one person says of one case."""

    case_id: str
    judge: str | None = None
    """The judge that it is about; None if the file does not say."""
    annotator: str = SOLE_ANNOTATOR
    verdict: Verdict | None = None
    """What the person says, as a verdict of the judge; None if the label is pass or fail alone."""
    passed: bool | None = None
    """Pass or fail; None if the label is a verdict."""
    input_sha256: str | None = None
    """Hash of the judge input that was labelled, if it is known: a label is about one answer."""
    is_partial: bool = False
    """It leaves out a criterion, or has one that was not asked about."""
    revised: bool = False
    """It takes the place of an earlier label of the same person on purpose."""
    comment: str = ""
    """What the person has to say about it."""
    place: str = ""
    """Where it stands, for messages: file and line."""

    @property
    def score(self) -> int | None:
        """The score, if the label is one."""
        return None if self.verdict is None else self.verdict.score

    @property
    def value(self) -> Any:
        """The label as files hold it: a score, true or false for pass and fail, a word, or criterion -> met."""
        said = self.verdict
        if said is None:
            return self.passed
        if said.criteria is not None:
            return {item.id: CANNOT_TELL if item.met is None else item.met for item in said.criteria}
        return said.said if said.answer is None else YES_NO[said.answer]

    @property
    def fields(self) -> dict[str, Any]:
        """The label as columns of a line of a file."""
        if self.verdict is None:
            return {"pass": self.passed}
        return {"label" if self.score is None else "score": self.value}


def label_fields(label: Verdict | bool) -> dict[str, Any]:
    """A label as fields of `HumanLabel`."""
    return {"verdict": label} if isinstance(label, Verdict) else {"passed": label}


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
    shown: Mapping[str, tuple[str, ...]]
    """Texts by the name of what they are, such as `question` and `passages`, in the order in which they are shown."""
    criteria: tuple[Criterion, ...] = ()
    """What is asked about the case, one after the other; empty if a label is one word."""

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
