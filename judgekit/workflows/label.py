"""From a stored run to cases for a person to label, in the terminal or in a sheet."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgekit.analysis.pairs import draw_order
from judgekit.core.errors import ConfigError
from judgekit.core.human_labels import LABELS, SOLE_ANNOTATOR, HumanLabel, LabelFile, LabelItem, Sheet, item_key
from judgekit.core.judgments import JudgeInput
from judgekit.judges.rubrics import find_rubric
from judgekit.storage.label_files import read_labels
from judgekit.storage.label_sheets import LabelJournal, read_sheet, write_sheet
from judgekit.workflows.labelling import Labelling
from judgekit.workflows.models import Options
from judgekit.workflows.reliability import scale_of
from judgekit.workflows.stored import StoredRun, open_stored

DEFAULT_N = 50


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
class OpenLabels:
    """A sheet of a run, and the file that labels go to."""

    run: StoredRun
    labelling: Labelling
    path: Path
    sheets: tuple[Sheet, ...]
    """What the file says already."""
    notes: tuple[str, ...]

    def journal(self) -> LabelJournal:
        """The file, open, with the sheet in it.

        Raises:
            StorageError: it cannot be written.
        """
        journal = LabelJournal(self.path)
        journal.begin(self.labelling.sheet, self.sheets)
        return journal


def open_labels(run: str, wanted: LabelWanted, options: Options) -> OpenLabels:
    """The cases of a run that one person labels; nothing is written yet.

    Raises:
        ConfigError: no such run or judge, a run without judge inputs, or a file of labels of another run.
        StorageError: the run is damaged.
    """
    stored = open_stored(run, options)
    judge = _judge(stored, wanted.judge)
    seed = stored.config.resampling_seed if wanted.seed is None else wanted.seed
    ids = [item.case_id for item in stored.inputs(judge)]
    n = wanted.n or DEFAULT_N
    sheet = drawn_sheet(stored, judge, seed, n, ids)
    path = wanted.out or stored.folder.path / LABELS
    before = read_labels(path) if path.exists() and path.stat().st_size else None
    _check_same_run(before, path, stored)
    component = stored.judge(judge)
    scale = scale_of(component)
    prompt = stored.prompt(judge, stored.judge_config(judge).prompt_version)
    rubric = find_rubric(prompt.system, *scale)
    said = prompt.system if rubric is None else "\n".join(line for _, own in rubric.items for line in own)
    items = _items(stored, judge, sheet.case_ids)
    labelling = Labelling(sheet, items, scale, wanted.annotator, said, _given(before, judge, wanted.annotator, items))
    notes = [f"{n} cases wanted, {judge} judged {len(ids)}; all of them are on the sheet"] if n > len(ids) else []
    notes += list(before.problems) if before is not None else []
    return OpenLabels(stored, labelling, path, before.sheets if before is not None else (), tuple(notes))


def drawn_sheet(stored: StoredRun, judge: str, seed: int, n: int, ids: Sequence[str]) -> Sheet:
    """The first n cases of a random order of all judged ones, so that a larger sheet begins with a smaller one."""
    rng = random.Random(f"labels {seed}")  # noqa: S311  # a sample, not a secret
    order = draw_order(ids, len(ids), rng)
    return Sheet(
        run_id=stored.manifest.run_id, judge=judge, seed=seed, n_population=len(ids), case_ids=tuple(order[:n])
    )


def _judge(stored: StoredRun, judge: str | None) -> str:
    there = [item.name for item in stored.config.judges]
    if judge is None and len(there) != 1:
        raise ConfigError(
            f"{stored.folder.path}: name the judge to label for by --judge ({', '.join(there) or 'none'})"
        )
    return stored.judge_config(judge or there[0]).name


def _check_same_run(before: LabelFile | None, path: Path, stored: StoredRun) -> None:
    runs = {sheet.run_id for sheet in before.sheets} if before is not None else set()
    if runs - {stored.manifest.run_id}:
        raise ConfigError(f"{path}: holds labels of run {sorted(runs)[0]}; name another file by --out")


def _items(stored: StoredRun, judge: str, case_ids: Sequence[str]) -> list[LabelItem]:
    wanted = set(case_ids)
    questions = {case.id: case.question for case in stored.folder.cases() if case.id in wanted}
    found = {
        item.case_id: label_item(item, questions.get(item.case_id, ""))
        for item in stored.inputs(judge)
        if item.case_id in wanted
    }
    return [found[case_id] for case_id in case_ids]


def label_item(judge_input: JudgeInput, question: str) -> LabelItem:
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
    )


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _given(before: LabelFile | None, judge: str, annotator: str, items: Sequence[LabelItem]) -> dict[str, HumanLabel]:
    """What the file holds of this person on these very answers."""
    if before is None:
        return {}
    current = {item.case_id: item.input_sha256 for item in items}
    return {
        label.case_id: label
        for label in before.labels
        if label.annotator == annotator
        and label.judge in (None, judge)
        and label.case_id in current
        and label.input_sha256 in (None, current[label.case_id])
    }


def export_sheet(opened: OpenLabels, path: Path) -> None:
    """Write the sheet as CSV for others.

    Raises:
        ConfigError: the file exists.
        StorageError: it cannot be written.
    """
    write_sheet(path, opened.labelling.sheet, opened.labelling.items)


@dataclass(frozen=True)
class Imported:
    """What came back in a sheet."""

    n_new: int
    n_revised: int
    n_same: int
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
    seed, n = filled.seed, filled.n
    opened = open_labels(run, LabelWanted(judge, n or wanted.n, seed, wanted.annotator, wanted.out), options)
    judge = opened.labelling.sheet.judge
    hashes = {item.case_id: item.sha256 for item in opened.run.inputs(judge)}
    keys = {item_key(case_id, sha256): case_id for case_id, sha256 in hashes.items()}
    problems = list(filled.problems)
    taken = []
    for row in filled.rows:
        case_id = keys.get(row.key) or (row.case_id if not row.key and row.case_id in hashes else None)
        if case_id is None:
            problems.append(f"{row.place}: case {row.case_id!r} with this answer is not in the run; left out")
        else:
            taken.append((row, case_id))
    if not taken:
        raise ConfigError(f"{path}: no label of it is about this run" + (f": {problems[0]}" if problems else ""))
    before = read_labels(opened.path).labels if opened.path.exists() and opened.path.stat().st_size else ()
    given = {(label.annotator, label.case_id): label for label in before if label.judge in (None, judge)}
    counts = {"new": 0, "revised": 0, "same": 0}
    journal = opened.journal() if seed is not None else LabelJournal(opened.path)
    try:
        for row, case_id in taken:
            annotator = row.annotator or (wanted.annotator if named else path.stem)
            old = given.get((annotator, case_id))
            what = "new" if old is None else "revised"
            if old is not None and (old.score, old.passed) == (row.score, row.passed):
                what = "same"
            counts[what] += 1
            if what == "same":
                continue
            value: dict[str, Any] = {"pass": row.passed} if row.score is None else {"score": row.score}
            record = {"case_id": case_id, "judge": judge, "annotator": annotator, "input_sha256": hashes[case_id]}
            journal.keep({**record, **value, **({"revised": True} if what == "revised" else {})})
    finally:
        journal.close()
    return Imported(
        counts["new"], counts["revised"], counts["same"], filled.n_blank, tuple(problems), opened.path, judge
    )
