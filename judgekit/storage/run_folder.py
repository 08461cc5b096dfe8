"""The run folder: what every file is called, and how it is written so that a crash loses nothing."""

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import ConfigError, JudgekitError, RunBusy, StorageError, first_problem
from judgekit.core.judgments import JudgeInput, Judgment
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import (
    CASES,
    CONFIG,
    FORMAT_VERSION,
    JUDGE_INPUTS,
    JUDGMENTS,
    MANIFEST,
    OUTPUTS,
    PROMPTS,
    SCORES,
    FileSeal,
    Manifest,
)
from judgekit.core.scores import Score
from judgekit.core.spot_checks import CHECKS, SpotCheckRecord
from judgekit.core.text import clean_text
from judgekit.storage.remote_runs import claim_run, fetch_run
from judgekit.storage.run_files import (
    damaged_line,
    differing_file,
    disk_faults_named,
    repair_tail,
    replacing,
    whole_line,
)
from judgekit.storage.score_lines import ScoreReader
from judgekit.storage.seals import SEALED, check_as_it_changes, seals_of

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")

Wanted = Callable[[str, str], bool]
"""Whether what a judge was asked, or said, about a case is wanted."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")


def new_run_id(name: str, now: datetime) -> str:
    """`name-20260131-142501-3f9a`: sorts by time, unique without asking anyone."""
    return f"{name}-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def is_run_id(name: str) -> bool:
    """Whether a text can be the name of a run's folder: one part of a path, without a way out of it."""
    return _RUN_ID.fullmatch(name) is not None


def of_judge(name: str) -> Wanted:
    """Wants all that one judge was asked, or said."""
    return lambda judge, _: judge == name


class _Question(msgspec.Struct):
    """Of a line of judge_inputs.jsonl or judgments.jsonl, which judge and case it is about."""

    judge: str
    case_id: str


class RunFolder:
    """One run on disk.

    What reads raises `StorageError` about a file that is damaged or cannot be read, and `ConfigError` about a JSON file
    that is missing; what writes raises `StorageError` about one that cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, results_dir: Path, run_id: str) -> "RunFolder":
        """A new folder; one that a run of this name left when it was killed before it began is taken over.

        Raises:
            ConfigError: a run of this name exists, or the id is not a folder name.
            StorageError: the folder cannot be made.
        """
        if not is_run_id(run_id):
            raise ConfigError(f"run id {run_id!r} is not a folder name; use letters, digits, '.', '_' and '-'")
        path = results_dir / run_id
        claim_run(path)
        with disk_faults_named(results_dir, "cannot be created"):
            results_dir.mkdir(parents=True, exist_ok=True)
        with disk_faults_named(path, "cannot be created"):
            try:
                path.mkdir()
            except FileExistsError:
                if not _is_unbegun(path):
                    raise ConfigError(
                        f"{path}: exists already; choose another --run-id, or resume it with --resume"
                    ) from None
        return cls(path)

    @classmethod
    def open(cls, path: Path, *, unread: Container[str] = (), check: bool = True) -> "RunFolder":
        """An existing run, its files held against the manifest.

        Args:
            path: the run.
            unread: files that may have changed, since they are written again without being read.
            check: False leaves all files unchecked, for a command that reads none of them.

        Raises:
            ConfigError: there is no run, or one of a newer format.
            StorageError: the manifest is damaged, or a file of a complete run is not what the run wrote.
        """
        fetch_run(path)
        if not os.path.isfile(path / MANIFEST):  # noqa: PTH113  # Path.is_file raises where a folder may not be entered
            if not os.path.exists(path):  # noqa: PTH110  # for the same reason
                hint = "name a run elsewhere by its path, or its folder of runs by --results-dir"
                raise ConfigError(f"{path}: no run here (no such folder); {hint}")
            hint = f"; it was killed before it began, so start it again: judgekit run CONFIG --run-id {path.name}"
            raise ConfigError(f"{path}: no run here (it has no {MANIFEST}){hint if _is_unbegun(path) else ''}")
        folder = cls(path)
        version = folder.read_json(MANIFEST).get("format_version")
        if not isinstance(version, int) or version < 1:
            raise StorageError(f"{path / MANIFEST}: damaged: format_version is {version!r}")
        if version > FORMAT_VERSION:
            raise ConfigError(
                f"{path}: written by a newer judgekit (format {version}; this one reads up to {FORMAT_VERSION}); "
                "upgrade judgekit"
            )
        if check:
            check_as_it_changes(path, folder.manifest, [name for name in SEALED if name not in unread])
        return folder

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for writing, so that two processes do not write the same run.

        Raises:
            RunBusy: another process holds it.
            StorageError: it cannot be locked.
        """
        with disk_faults_named(self.path, "cannot be locked"):
            handle = (self.path / ".lock").open("w")
        with handle:
            with disk_faults_named(self.path, "cannot be locked"):
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RunBusy(f"{self.path}: another process is writing this run; wait for it or stop it") from None
            yield

    @contextmanager
    def locked_as_found(self, found: Manifest | None) -> Iterator[None]:
        """Hold the folder for writing, and clear away half-written files that a killed process left.

        The manifest of a complete run says from the first write to the last that the run is changing, and has count and
        hash of its files as they are afterwards.

        Args:
            found: the manifest that was read before the folder was locked; None for a run that has not begun.

        Raises:
            RunBusy: another process holds it, or resumed the run after `found` was read.
            StorageError: it cannot be locked.
        """
        with self.locked():
            now = self.manifest() if (self.path / MANIFEST).exists() else None
            if now != found:
                raise RunBusy(f"{self.path}: another process has just resumed this run; look at how it ended")
            self._drop_unfinished()
            if now is not None and now.status == "complete":
                self._write_manifest(now, now.files, changing=True)
            try:
                yield
            except BaseException:
                # Of files written while they are read, those that did not fail are not at their end either.
                self._drop_unfinished()
                with suppress(JudgekitError):
                    self.seal()
                raise
            self.seal()

    def _drop_unfinished(self) -> None:
        """Remove files that were begun, by this process or by one that was killed, and did not take their place."""
        for leftover in self.path.glob(".*.tmp"):
            with suppress(OSError):
                leftover.unlink()

    def seal(self) -> None:
        """Put count and hash of the files of a complete run in its manifest; nothing is done to any other run."""
        if (self.path / MANIFEST).exists() and (manifest := self.manifest()).status == "complete":
            self._write_manifest(manifest, seals_of(self.path), changing=False)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest of a run that is held for writing."""
        is_complete = manifest.status == "complete"
        self._write_manifest(manifest, seals_of(self.path) if is_complete else {}, changing=is_complete)

    def _write_manifest(self, manifest: Manifest, files: Mapping[str, FileSeal], *, changing: bool) -> None:
        self.write_json(MANIFEST, manifest.model_copy(update={"files": dict(files), "changing": changing}))

    def manifest(self) -> Manifest:
        """The manifest."""
        try:
            return Manifest.model_validate(self.read_json(MANIFEST))
        except ValidationError as error:
            raise StorageError(f"{self.path / MANIFEST}: damaged: {first_problem(error)}") from None

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of the folder."""
        path = self.path / name
        with disk_faults_named(path, "cannot be read"):
            try:
                value = json.loads(path.read_bytes())
            except FileNotFoundError:
                raise ConfigError(f"{path}: no such file in this run") from None
            except (ValueError, RecursionError) as error:
                raise StorageError(f"{path}: damaged: {error}") from None
        if not isinstance(value, dict):
            raise StorageError(f"{path}: damaged: expected an object")
        return value

    def write_json(self, name: str, value: BaseModel | dict[str, Any], *, sort_keys: bool = True) -> None:
        """Replace a JSON file as a whole: strict, two-space indent, and keys in their order where not sorted."""
        data = value.model_dump(mode="json") if isinstance(value, BaseModel) else value
        text = json.dumps(data, indent=2, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False)
        self.write_text(name, text + "\n")

    def write_prompts(self, prompts: Mapping[str, PromptTemplate]) -> None:
        """Replace prompts.json; keys of reply schemas keep their order, which stands in the prompt that is sent."""
        self.write_json(PROMPTS, {name: prompts[name].record() for name in sorted(prompts)}, sort_keys=False)

    def write_text(self, name: str, text: str) -> None:
        """Replace a text file as a whole."""
        with replacing(self.path / name) as stream:
            stream.write(clean_text(text).encode("utf-8"))

    def write_lines(self, name: str, lines: Iterable[bytes]) -> int:
        """Replace a JSONL file as a whole; returns the number of lines."""
        n_lines = 0
        with replacing(self.path / name) as stream:
            for line in lines:
                stream.write(line)
                stream.write(b"\n")
                n_lines += 1
        return n_lines

    def written(self, name: str, records: Iterable[R], line: Callable[[R], bytes]) -> Iterator[R]:
        """Hand records on, each after its line is written; the file is replaced as a whole once the last one is.

        Args:
            name: the file.
            records: the records.
            line: gives the line of a record, without a line feed.
        """
        with replacing(self.path / name) as stream:
            for record in records:
                stream.write(line(record))
                stream.write(b"\n")
                yield record

    def discard(self) -> None:
        """Remove the folder of a run that turned out to be none; what cannot be removed stays."""
        shutil.rmtree(self.path, ignore_errors=True)

    def has(self, name: str) -> bool:
        """Whether the folder holds a file of this name."""
        return (self.path / name).exists()

    def cases(self) -> Iterator[Case]:
        """Stored cases in their order, streamed; none in a run that was written before runs kept their cases."""
        yield from self._records(CASES, Case)

    def outputs(self, name: str = OUTPUTS) -> Iterator[SystemOutput]:
        """Stored outputs in the order of the cases, streamed; a torn last line is left out."""
        yield from self._records(name, SystemOutput)

    def scores(self) -> Iterator[Score]:
        """Stored scores, streamed: those of one case follow one another."""
        number = 0

        def lines() -> Iterator[bytes]:
            nonlocal number
            for place in self.lines(SCORES):
                number, line = place
                yield line

        try:
            for case_id, scores, sources in ScoreReader().by_case(lines()):
                for name, (value, reason) in scores.items():
                    yield Score(case_id=case_id, name=name, value=value, reason=reason, source=sources.get(name))
        except (msgspec.MsgspecError, ValueError) as error:
            raise damaged_line(self.path / SCORES, number, error) from None

    def prompts(self) -> dict[str, PromptTemplate]:
        """The wordings that the run was judged with, by `judge/version`; empty in a run that did not keep them."""
        if not (self.path / PROMPTS).exists():
            return {}
        try:
            found = {name: PromptTemplate.model_validate(data) for name, data in self.read_json(PROMPTS).items()}
        except ValidationError as error:
            raise StorageError(f"{self.path / PROMPTS}: damaged: {first_problem(error)}") from None
        hashes = self.read_json(CONFIG).get("resolved", {}).get("prompts", {}) if self.has(CONFIG) else {}
        for name, prompt in found.items():
            if hashes.get(name, prompt.sha256) != prompt.sha256:
                raise differing_file(self.path / PROMPTS, f"{name} is not the wording whose sha256 {CONFIG} has")
        return found

    def spot_checks(self) -> list[SpotCheckRecord]:
        """Spot checks of the run, oldest first; none if none was made."""
        if not self.has(CHECKS):
            return []
        found = self.read_json(CHECKS).get("checks")
        try:
            return [SpotCheckRecord.model_validate(item) for item in found or ()]
        except (TypeError, ValidationError) as error:
            why = first_problem(error) if isinstance(error, ValidationError) else error
            raise StorageError(f"{self.path / CHECKS}: damaged: {why}") from None

    def judge_inputs(self, wanted: Wanted | None = None) -> Iterator[JudgeInput]:
        """Stored judge inputs, streamed; a torn last line is left out.

        Args:
            wanted: tells by judge and case id which ones are read; None: all.
        """
        yield from self._records(JUDGE_INPUTS, JudgeInput, wanted)

    def n_judge_inputs(self, wanted: Wanted) -> int:
        """Number of the stored judge inputs that are wanted."""
        return sum(1 for _ in self._lines_of(JUDGE_INPUTS, wanted))

    def judgments(self, name: str = JUDGMENTS, wanted: Wanted | None = None) -> Iterator[Judgment]:
        """Stored judgments in the order in which they came, streamed; `wanted` as for `judge_inputs`."""
        yield from self._records(name, Judgment, wanted)

    def _records(self, name: str, model: type[M], wanted: Wanted | None = None) -> Iterator[M]:
        for number, line in self._lines_of(name, wanted):
            yield self._record(name, model, number, line)

    def _lines_of(self, name: str, wanted: Wanted | None) -> Iterator[tuple[int, bytes]]:
        decode = msgspec.json.Decoder(_Question).decode
        for number, line in self.lines(name):
            if wanted is not None:
                try:
                    question = decode(line)
                except (msgspec.MsgspecError, ValueError) as error:
                    raise damaged_line(self.path / name, number, error) from None
                if not wanted(question.judge, question.case_id):
                    continue
            yield number, line

    def _record(self, name: str, model: type[M], number: int, line: bytes) -> M:
        try:
            return model.model_validate_json(line)
        except ValidationError as error:
            raise damaged_line(self.path / name, number, first_problem(error)) from None

    def lines(self, name: str) -> Iterator[tuple[int, bytes]]:
        """Number and text of each whole line: what a crash left without a line feed is not a record.

        Raises:
            StorageError: the file cannot be read, or one that is not appended to ends in the middle of a line.
        """
        path = self.path / name
        if not path.exists():
            return
        with disk_faults_named(path, "cannot be read"), path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if whole_line(path, number, line):
                    yield number, line

    def repair_tail(self, name: str) -> int:
        """Cut off a torn last line; returns the number of bytes dropped."""
        return repair_tail(self.path / name)


def _is_unbegun(path: Path) -> bool:
    """Whether a folder holds nothing but what a run writes before its manifest."""
    try:
        names = [entry.name for entry in path.iterdir()]
    except OSError:
        return False
    return all(name in (".lock", CONFIG, PROMPTS) or (name.startswith(".") and name.endswith(".tmp")) for name in names)
