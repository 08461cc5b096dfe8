"""`judgekit label`: one person labels cases of a stored run, in the terminal or in a sheet, blind to the judge."""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from judgekit.analysis.verdict_pairs import draw_order
from judgekit.core.errors import ConfigError
from judgekit.core.human_labels import LABELS, SOLE_ANNOTATOR, HumanLabel, LabelFile, LabelItem, Sheet, item_key
from judgekit.core.judgments import JudgeInput
from judgekit.judges.rubrics import find_rubric
from judgekit.storage.label_files import read_labels, read_value
from judgekit.storage.label_sheets import FilledSheet, LabelJournal, SheetRow, read_sheet
from judgekit.workflows.models import Options
from judgekit.workflows.stored import StoredRun, open_stored

DEFAULT_N = 50

Step = Literal["labelled", "skipped", "back", "help", "quit", "unread"]


@dataclass(frozen=True)
class LabelWanted:
    """What the command line says of labelling."""

    judge: str | None = None
    n: int | None = None
    seed: int | None = None
    annotator: str = SOLE_ANNOTATOR
    out: Path | None = None
    """File of labels; None: labels.jsonl of the run."""


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
    path: Path
    """The file that labels go to."""
    sheets: Sequence[Sheet] = ()
    """Those that the file has already."""
    notes: Sequence[str] = ()

    def journal(self) -> LabelJournal:
        """The file, open, with the sheet in it.

        Raises:
            StorageError: it cannot be written.
        """
        journal = LabelJournal(self.path)
        journal.begin(self.sheet, self.sheets)
        return journal


def open_labels(run: str, wanted: LabelWanted, options: Options) -> Labelling:
    """The cases of a run that one person labels; nothing is written yet.

    Raises:
        ConfigError: no such run or judge, a run without judge inputs, or a file of labels of another run.
        StorageError: the run is damaged.
    """
    return _labelling(open_stored(run, options), wanted)


def _labelling(stored: StoredRun, wanted: LabelWanted) -> Labelling:
    there = [item.name for item in stored.config.judges]
    if wanted.judge is None and len(there) != 1:
        raise ConfigError(
            f"{stored.folder.path}: name the judge to label for by --judge ({', '.join(there) or 'none'})"
        )
    judge = stored.judge_config(wanted.judge or there[0])
    ids = [item.case_id for item in stored.inputs(judge.name)]
    n = wanted.n or DEFAULT_N
    sheet = _drawn_sheet(stored, judge.name, wanted.seed, n, ids)
    path = wanted.out or stored.folder.path / LABELS
    before = _labels_of(path)
    others = {item.run_id for item in before.sheets} - {stored.manifest.run_id}
    if others:
        raise ConfigError(f"{path}: holds labels of run {min(others)}; name another file by --out")
    items = _items(stored, sheet)
    low, high = stored.judge(judge.name).kind.bounds
    scale = int(low), int(high)
    system = stored.prompt(judge.name, judge.prompt_version).system
    rubric = find_rubric(system, *scale)
    notes = [f"{n} cases wanted, {judge.name} judged {len(ids)}; all of them are on the sheet"]
    return Labelling(
        sheet=sheet,
        items=items,
        scale=scale,
        annotator=wanted.annotator,
        rubric=system if rubric is None else "\n".join(line for _, own in rubric.items for line in own),
        given=_given(before, judge.name, wanted.annotator, items),
        path=path,
        sheets=before.sheets,
        notes=[*(notes if n > len(ids) else ()), *before.problems],
    )


def _labels_of(path: Path) -> LabelFile:
    """A file of labels; an empty one if there is none yet."""
    if path.exists() and path.stat().st_size:
        return read_labels(path)
    return LabelFile(str(path), "", (), (), ())


def _drawn_sheet(stored: StoredRun, judge: str, seed: int | None, n: int, ids: Sequence[str]) -> Sheet:
    """The first n cases of a random order of all judged ones, so that a larger sheet begins with a smaller one."""
    seed = stored.config.resampling_seed if seed is None else seed
    rng = random.Random(f"labels {seed}")  # noqa: S311  # a sample, not a secret
    order = draw_order(ids, len(ids), rng)
    return Sheet(
        run_id=stored.manifest.run_id, judge=judge, seed=seed, n_population=len(ids), case_ids=tuple(order[:n])
    )


def _items(stored: StoredRun, sheet: Sheet) -> list[LabelItem]:
    wanted = set(sheet.case_ids)
    questions = {case.id: case.question for case in stored.folder.cases() if case.id in wanted}
    inputs = (item for item in stored.inputs(sheet.judge) if item.case_id in wanted)
    found = {item.case_id: _label_item(item, questions.get(item.case_id, "")) for item in inputs}
    return [found[case_id] for case_id in sheet.case_ids]


def _label_item(judge_input: JudgeInput, question: str) -> LabelItem:
    """What a person is shown of a judge input; a variable that a plug-in judge calls otherwise is not shown."""
    variables: Mapping[str, Any] = judge_input.variables
    passages = [item for item in variables.get("passages") or () if isinstance(item, Mapping)]
    return LabelItem(
        case_id=judge_input.case_id,
        input_sha256=judge_input.sha256,
        question=question or str(variables.get("question") or ""),
        answer=str(variables.get("answer") or ""),
        passages=tuple((str(item.get("source") or ""), str(item.get("text") or "")) for item in passages),
        references=_texts(variables.get("reference_answers")),
        key_facts=_texts(variables.get("key_facts")),
        citations=_texts(variables.get("citations")),
        conversation=tuple(map(_message, variables.get("conversation") or ())),
    )


def _message(message: Mapping[str, Any]) -> str:
    """A message of a conversation; a judge that goes through the answers calls each by a name."""
    passages = [f"retrieved: {item['source']}\n{item['text']}\n" for item in message.get("passages") or ()]
    who = message.get("answer") or message["role"]
    return "".join([*passages, f"{message['number']}. {who}: {message['text']}"])


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _given(before: LabelFile, judge: str, annotator: str, items: Sequence[LabelItem]) -> dict[str, HumanLabel]:
    """What the file holds of this person on these very answers."""
    current = {item.case_id: item.input_sha256 for item in items}
    return {
        label.case_id: label
        for label in before.labels
        if label.annotator == annotator
        and label.judge in (None, judge)
        and label.case_id in current
        and label.input_sha256 in (None, current[label.case_id])
    }


class Session:
    """Goes through a sheet in the terminal, from the first case without a label."""

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
        label = read_value(text)
        if not isinstance(label, tuple):
            self.message = label or "type a label, s, b, q or ?"
            return "unread"
        about, (score, _) = self._labelling, label
        low, high = about.scale
        if score is not None and (not low <= score <= high or (low, high) == (0, 1)):
            self.message = "type y or n" if low <= score <= high else f"{score} is off the scale of {low} to {high}"
            return "unread"
        line = _line(item.case_id, about.sheet.judge, about.annotator, item.input_sha256, label)
        self._keep({**line, "revised": True} if item.case_id in self._labelled else line)
        self._labelled.add(item.case_id)
        self._position = self._next_open(self._position + 1)
        return "labelled"

    def _next_open(self, start: int) -> int:
        items = self._labelling.items
        still_open = (n for n in range(start, len(items)) if items[n].case_id not in self._labelled)
        return next(still_open, len(items))


def _line(
    case_id: str, judge: str, annotator: str, input_sha256: str, label: tuple[int | None, bool | None]
) -> dict[str, Any]:
    """A label as a line of the file of labels."""
    score, passed = label
    about = {"case_id": case_id, "judge": judge, "annotator": annotator, "input_sha256": input_sha256}
    return {**about, "pass": passed} if score is None else {**about, "score": score}


@dataclass(frozen=True)
class Imported:
    """The labels that came back in a sheet."""

    counts: Mapping[str, int]
    """Labels that are `new`, `revised` and the `same` as before."""
    n_blank: int
    problems: tuple[str, ...]
    path: Path
    judge: str


def import_sheet(run: str, path: Path, wanted: LabelWanted, options: Options, *, named: bool) -> Imported:
    """Take over the labels of a sheet into the file of labels; taking over a sheet twice changes nothing.

    Args:
        run: id or folder of the run.
        path: the sheet.
        wanted: judge, annotator and file; the sheet's own judge and sample count where it still names them.
        options: where runs are kept.
        named: the annotator was named on the command line, and counts for rows that name none.

    Raises:
        ConfigError: no such run or judge, or no row of the sheet belongs to the run.
        StorageError: the file of labels cannot be written.
    """
    filled = read_sheet(path)
    judge = wanted.judge or filled.judge
    if filled.judge is not None and judge != filled.judge:
        raise ConfigError(f"{path}: was exported for {filled.judge}, not for {judge}")
    stored = open_stored(run, options)
    about = LabelWanted(judge, filled.n or wanted.n, filled.seed, wanted.annotator, wanted.out)
    labelling = _labelling(stored, about)
    judge = labelling.sheet.judge
    hashes = {item.case_id: item.sha256 for item in stored.inputs(judge)}
    taken, problems = _rows_of_run(filled, hashes)
    if not taken:
        raise ConfigError(f"{path}: no label of it is about this run" + (f": {problems[0]}" if problems else ""))
    before = (label for label in _labels_of(labelling.path).labels if label.judge in (None, judge))
    given = {(label.annotator, label.case_id): (label.score, label.passed) for label in before}
    counts = Counter({"new": 0, "revised": 0, "same": 0})
    journal = labelling.journal() if filled.seed is not None else LabelJournal(labelling.path)
    try:
        for row, case_id in taken:
            annotator = row.annotator or (wanted.annotator if named else path.stem)
            label = (row.score, row.passed)
            old = given.get((annotator, case_id))
            what = "new" if old is None else "same" if old == label else "revised"
            counts[what] += 1
            if what != "same":
                line = _line(case_id, judge, annotator, hashes[case_id], label)
                journal.keep({**line, "revised": True} if what == "revised" else line)
    finally:
        journal.close()
    return Imported(counts, filled.n_blank, tuple(problems), labelling.path, judge)


def _rows_of_run(filled: FilledSheet, hashes: Mapping[str, str]) -> tuple[list[tuple[SheetRow, str]], list[str]]:
    """Rows with the case that each is about, and why the others are left out."""
    keys = {item_key(case_id, sha256): case_id for case_id, sha256 in hashes.items()}
    problems = list(filled.problems)
    taken = []
    for row in filled.rows:
        case_id = keys.get(row.key) or (row.case_id if not row.key and row.case_id in hashes else None)
        if case_id is None:
            problems.append(f"{row.place}: case {row.case_id!r} with this answer is not in the run; left out")
        else:
            taken.append((row, case_id))
    return taken, problems
