"""`judgekit label`: one person labels cases of a stored run, in the terminal or in a sheet, blind to the judge."""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from judgekit.analysis.verdict_pairs import draw_order
from judgekit.core.cases import Criterion
from judgekit.core.errors import ConfigError
from judgekit.core.human_labels import (
    LABELS,
    SOLE_ANNOTATOR,
    HumanLabel,
    LabelFile,
    LabelItem,
    Sheet,
    item_key,
    label_fields,
)
from judgekit.core.judgments import JudgeInput, Verdict
from judgekit.core.kind import Kind
from judgekit.core.prompts import PromptTemplate
from judgekit.core.rubric_lines import find_rubric
from judgekit.storage.label_files import Kinds, read_labels
from judgekit.storage.label_sheets import FilledSheet, LabelJournal, SheetRow, read_sheet
from judgekit.workflows.calibrate import kinds_of
from judgekit.workflows.models import Options
from judgekit.workflows.stored import StoredRun, open_stored

DEFAULT_N = 50

SHOWN_AS = {"reference_answers": "references"}
"""What a variable is called for people, where that differs."""

SIDES = {"first": "A", "second": "B"}
"""What two answers are called that are compared."""


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
    kind: Kind
    annotator: str
    rubric: str
    """What the verdicts mean, as the judge is told."""
    given: Mapping[str, HumanLabel]
    """By case id, what this person said before, the last at the end."""
    path: Path
    """The file that labels go to."""
    sheets: Sequence[Sheet] = ()
    """Those that the file has already."""
    notes: Sequence[str] = ()
    ask: str = ""
    """The question that the judge is asked, of a judge that is data."""
    meanings: Mapping[str, str] = field(default_factory=dict)
    """What each label means, as far as the judge is told."""

    def held(self) -> LabelFile:
        """The file as it is now.

        Raises:
            InputError: it cannot be read.
        """
        return _labels_of(self.path, {self.sheet.judge: self.kind, None: self.kind})

    def by(self, annotator: str, held: LabelFile) -> "Labelling":
        """The same sheet as one person has it, after what the file holds."""
        return replace(self, annotator=annotator, given=_given(held, self.sheet.judge, annotator, self.items))

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
    before = _labels_of(path, kinds_of(stored, judge.name))
    others = {item.run_id for item in before.sheets} - {stored.manifest.run_id}
    if others:
        raise ConfigError(f"{path}: holds labels of run {min(others)}; name another file by --out")
    items = _items(stored, sheet)
    kind = stored.judge(judge.name).kind
    prompt = stored.prompt(judge.name, judge.prompt_version)
    notes = [f"{n} cases wanted, {judge.name} judged {len(ids)}; all of them are on the sheet"]
    return Labelling(
        sheet=sheet,
        items=items,
        kind=kind,
        annotator=wanted.annotator,
        rubric=_rubric(prompt, kind),
        given=_given(before, judge.name, wanted.annotator, items),
        path=path,
        sheets=before.sheets,
        notes=[*(notes if n > len(ids) else ()), *before.problems],
        ask=prompt.ask or "",
        meanings=_meanings(prompt, kind),
    )


def _rubric(prompt: PromptTemplate, kind: Kind) -> str:
    """What the judge is told of its verdicts: its question and levels, or the lines of the wording that say so."""
    if prompt.is_given:
        return "\n".join([prompt.ask or "", *(f"{name}: {text}" for name, text in _meanings(prompt, kind).items())])
    rubric = find_rubric(prompt.system, *kind.category_bounds)
    return prompt.system if rubric is None else "\n".join(line for _, own in rubric.items for line in own)


def _meanings(prompt: PromptTemplate, kind: Kind) -> dict[str, str]:
    if prompt.is_given:
        return {item["name"]: item["text"] for item in prompt.values["levels"]}
    rubric = None if kind.is_nominal else find_rubric(prompt.system, *kind.category_bounds)
    if rubric is None:
        return {}
    return {str(score): " ".join(map(str.strip, own)).lstrip("-*0123456789:.)= ") for score, own in rubric.items}


def _labels_of(path: Path, kinds: Kinds) -> LabelFile:
    """A file of labels; an empty one if there is none yet."""
    if path.exists() and path.stat().st_size:
        return read_labels(path, kinds)
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
    """What a person is shown of a judge input: all that the judge was shown, the answer last, and the question."""
    variables = judge_input.variables
    criteria = _criteria(judge_input)
    texts = dict(_shown(variables, question))
    answer = texts.pop("answer", ())
    return LabelItem(judge_input.case_id, judge_input.sha256, {**texts, "answer": answer}, criteria)


def _criteria(judge_input: JudgeInput) -> tuple[Criterion, ...]:
    return tuple(Criterion(**item) for item in judge_input.variables.get("criteria") or ())


def _shown(variables: Mapping[str, Any], question: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names and texts."""
    yield "question", (question or str(variables.get("question") or ""),)
    for name, value in variables.items():
        if name == "metadata" and isinstance(value, Mapping):
            yield from ((f"metadata.{key}", _texts(text)) for key, text in value.items())
        elif name in SIDES and isinstance(value, Mapping):
            yield from ((f"{key} {SIDES[name]}", _texts(text)) for key, text in value.items())
        elif name not in ("question", "criteria"):
            yield SHOWN_AS.get(name, name), _texts(value)


def _message(message: Mapping[str, Any]) -> str:
    """A message of a conversation; a judge that goes through the answers calls each by a name."""
    passages = [f"retrieved: {item['source']}\n{item['text']}\n" for item in message.get("passages") or ()]
    who = message.get("answer") or message["role"]
    return "".join([*passages, f"{message['number']}. {who}: {message['text']}"])


def _texts(value: Any) -> tuple[str, ...]:
    """The texts of a variable: passages and messages with their numbers, all else as it is."""
    if value is None:
        return ()
    return tuple(map(_one_text, value)) if isinstance(value, list | tuple) else (_one_text(value),)


def _one_text(value: Any) -> str:
    if isinstance(value, Mapping) and {"number", "source", "text"} <= value.keys():
        return f"[{value['number']}] {value['source']}\n{value['text']}"
    if isinstance(value, Mapping) and {"number", "role", "text"} <= value.keys():
        return _message(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _given(before: LabelFile, judge: str, annotator: str, items: Sequence[LabelItem]) -> dict[str, HumanLabel]:
    """What the file holds of this person on these very answers, what was said last at the end."""
    current = {item.case_id: item.input_sha256 for item in items}
    found: dict[str, HumanLabel] = {}
    for label in before.labels:
        if (
            label.annotator == annotator
            and label.judge in (None, judge)
            and label.case_id in current
            and label.input_sha256 in (None, current[label.case_id])
        ):
            found.pop(label.case_id, None)
            found[label.case_id] = label
    return found


def label_line(label: HumanLabel) -> dict[str, Any]:
    """A label as a line of the file of labels."""
    more: dict[str, Any] = {"comment": label.comment} if label.comment else {}
    return {**_about(label), **label.fields, **more, **({"revised": True} if label.revised else {})}


def taken_back_line(label: HumanLabel) -> dict[str, Any]:
    """A line of the file of labels that says that the last label of a person on a case does not count."""
    return {**_about(label), "taken_back": True}


def _about(label: HumanLabel) -> dict[str, Any]:
    return {name: getattr(label, name) for name in ("case_id", "judge", "annotator", "input_sha256")}


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
    stored = open_stored(run, options)
    filled = read_sheet(path, kinds_of(stored, wanted.judge))
    judge = wanted.judge or filled.judge
    if filled.judge is not None and judge != filled.judge:
        raise ConfigError(f"{path}: was exported for {filled.judge}, not for {judge}")
    about = LabelWanted(judge, filled.n or wanted.n, filled.seed, wanted.annotator, wanted.out)
    labelling = _labelling(stored, about)
    judge = labelling.sheet.judge
    asked = {item.case_id: (item.sha256, {one.id for one in _criteria(item)}) for item in stored.inputs(judge)}
    taken, problems = _rows_of_run(filled, asked)
    if not taken:
        raise ConfigError(f"{path}: no label of it is about this run" + (f": {problems[0]}" if problems else ""))
    before = _labels_of(labelling.path, {judge: labelling.kind, None: labelling.kind}).labels
    given = {(item.annotator, item.case_id): item.value for item in before if item.judge in (None, judge)}
    counts = Counter({"new": 0, "revised": 0, "same": 0})
    journal = labelling.journal() if filled.seed is not None else LabelJournal(labelling.path)
    try:
        for row, case_id in taken:
            label = HumanLabel(
                case_id=case_id,
                judge=judge,
                annotator=row.annotator or (wanted.annotator if named else path.stem),
                input_sha256=asked[case_id][0],
                comment=row.comment,
                **label_fields(row.label),
            )
            known = (label.annotator, case_id) in given
            what = "new" if not known else "same" if given[label.annotator, case_id] == label.value else "revised"
            counts[what] += 1
            if what != "same":
                journal.keep(label_line(label.model_copy(update={"revised": known})))
    finally:
        journal.close()
    return Imported(counts, filled.n_blank, tuple(problems), labelling.path, judge)


def _rows_of_run(
    filled: FilledSheet, asked: Mapping[str, tuple[str, set[str]]]
) -> tuple[list[tuple[SheetRow, str]], list[str]]:
    """Rows with the case that each is about, and why the others are left out."""
    keys = {item_key(case_id, sha256): case_id for case_id, (sha256, _) in asked.items()}
    problems = list(filled.problems)
    taken = []
    for row in filled.rows:
        case_id = keys.get(row.key) or (row.case_id if not row.key and row.case_id in asked else None)
        if case_id is None:
            problems.append(f"{row.place}: case {row.case_id!r} with this answer is not in the run; left out")
        elif (ids := criteria_of(row.label)) is not None and ids != asked[case_id][1]:
            odd = ", ".join(sorted(ids ^ asked[case_id][1]))
            problems.append(f"{row.place}: case {case_id!r} needs one answer for each criterion, see {odd}; left out")
        else:
            taken.append((row, case_id))
    return taken, problems


def criteria_of(label: Verdict | bool) -> set[str] | None:
    """Ids of the criteria that a label says something of; None if it is of another kind."""
    if isinstance(label, bool) or label.criteria is None:
        return None
    return {item.id for item in label.criteria}
