"""What the processes of one session share, and the run that it ends in."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from judgekit.api.results import RunResult
    from judgekit.core.config import RunConfig

DEFAULT_CONFIG = "judgekit.json"

BASELINE = "baseline"
"""The tag of a run that others are held against."""

_SPOOL = ".pytest"
"""In the folder of runs: what the processes of a session have judged so far."""


class JudgeFailed(Exception):
    """A judge gave no verdict, or does not apply: the test says nothing about the system, and counts as an error."""


class Session:
    """What the processes of one session share: the config, and a folder to which each of them writes."""

    def __init__(self, config: pytest.Config, name: str) -> None:
        self._config, self.name = config, name
        self._process = os.environ.get("PYTEST_XDIST_WORKER", "main")
        self._settings: RunConfig | None = None
        self._result: RunResult | None = None
        self._notes: list[str] = []

    @property
    def _path(self) -> Path:
        """The config file.

        Raises:
            ConfigError: there is none.
        """
        from judgekit.core.errors import ConfigError

        named = self._config.getoption("--judgekit-config")
        path = Path(named) if named else self._config.rootpath / self._config.getini("judgekit_config")
        if not path.is_file():
            raise ConfigError(f"{path}: no such file; it holds models and judges (--judgekit-config names another)")
        return path

    @property
    def _settings_read(self) -> "RunConfig":
        if self._settings is None:
            from judgekit.storage.config_files import load_config

            unset = {"name": "pytest", "cases": "cases.jsonl", "system": {"name": "recorded", "path": "outputs.jsonl"}}
            self._settings = load_config(self._path, unset)
        return self._settings

    @property
    def _results_dir(self) -> Path:
        from judgekit.storage.remote_runs import local_results
        from judgekit.workflows.models import Options
        from judgekit.workflows.selectors import results_dir_of

        given = self._config.getoption("--judgekit-results-dir")
        if given:
            return local_results(given)
        named = self._settings_read.results_dir
        return self._config.rootpath / "results" if named is None else results_dir_of(named, self._path, Options())

    @property
    def _spool(self) -> Path:
        return self._results_dir / _SPOOL / self.name

    def pair(self, case: Any, output: Any, fields: Mapping[str, Any], case_id: str) -> dict[str, Any]:
        """A case and its output, as they are stored.

        Raises:
            InputError: a field is wrong.
        """
        from judgekit.api.in_memory import Given
        from judgekit.core.cases import Case, SystemOutput
        from judgekit.core.errors import InputError, did_you_mean

        known = {*Case.model_fields, *SystemOutput.model_fields} - {"id", "case_id"}
        unknown = next((name for name in fields if name not in known), None)
        if unknown is not None:
            raise InputError(f"judged: no field called {unknown!r}{did_you_mean(unknown, known)}")
        of_case = {name: value for name, value in fields.items() if name in Case.model_fields}
        of_output = {name: value for name, value in fields.items() if name not in Case.model_fields}
        given = case if isinstance(case, Case) else {"id": case_id, **(case or {}), **of_case}
        (asked,) = Given([given], Case)
        if isinstance(output, SystemOutput):
            answered: Any = output.model_copy(update={"case_id": asked.id})
        else:
            text = {"answer": output} if isinstance(output, str) else dict(output or {})
            answered = {**text, **of_output, "case_id": asked.id}
        (answered,) = Given([answered], SystemOutput)
        parts = {"case": asked, "output": answered}
        return {name: part.model_dump(mode="json", exclude_defaults=True) for name, part in parts.items()}

    def judge(self, pairs: Sequence[Mapping[str, Any]]) -> tuple["RunResult", frozenset[str]]:
        """Judge some answers, and say of which figures less is better; replies are kept for the run of the session."""
        gone = {"gates": (), "spot_check": None, "report": False, "results_dir": None}
        return self._run(pairs, self._settings_read.model_copy(update=gone), self._spool / "runs")

    def _run(
        self, pairs: Sequence[Mapping[str, Any]], settings: "RunConfig", folder: Path
    ) -> tuple["RunResult", frozenset[str]]:
        from judgekit.api.in_memory import Given, write_inputs
        from judgekit.api.results import RunResult
        from judgekit.core.cases import Case, SystemOutput
        from judgekit.core.errors import ProviderError
        from judgekit.engine.passes import Observer
        from judgekit.executors.event_loop import run_local
        from judgekit.workflows.job import start
        from judgekit.workflows.models import Options
        from judgekit.workflows.run import run
        from judgekit.workflows.setup import set_up
        from judgekit.workflows.stored_runs import stored_figures

        document = settings.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"cases", "system"})
        cases = Given([pair["case"] for pair in pairs], Case)
        outputs = Given([pair["output"] for pair in pairs], SystemOutput)
        cached = not self._config.getoption("--judgekit-no-cache")
        options = Options(results_dir=folder, use_cache=cached, cache_dir=self._results_dir)
        path = write_inputs(folder, {"name": "pytest", **document}, cases, outputs, self._path.parent)
        job = start(set_up(path, options), options)
        columns = [column for part in [*job.metrics, *job.judge_components] for column in part.columns()]
        less = frozenset(column.aggregate or column.name for column in columns if not column.higher_is_better)
        try:
            summary = run_local(lambda: run(job, Observer()))
        except ProviderError as error:
            # Every call of a judge failed: the figures are there, and say so.
            if not job.folder.has("metrics.json"):
                raise JudgeFailed(str(error)) from None
            summary = stored_figures(job.folder)[1]
        return RunResult(job.folder.path, summary), less

    def keep(self, pair: Mapping[str, Any]) -> None:
        """Write down what was judged, for the run of the session."""
        self._spool.mkdir(parents=True, exist_ok=True)
        with (self._spool / f"{self._process}.jsonl").open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(pair, ensure_ascii=False) + "\n")

    def conclude(self, session: pytest.Session) -> None:
        """One run of everything that was judged; a gate that is missed fails the session."""
        if self._settings is None and not self._config.getoption("--judgekit-update-baseline") and not self._was_used():
            return
        from judgekit.core.errors import JudgekitError
        from judgekit.storage.remote_uploads import uploads

        try:
            pairs = self._pairs()
            if not pairs:
                return
            with uploads(self._notes.append):
                self._result, _ = self._run(pairs, self._settings_read, self._results_dir)
                if self._config.getoption("--judgekit-update-baseline"):
                    self._tag(session)
            shutil.rmtree(self._spool, ignore_errors=True)
        except (JudgekitError, JudgeFailed) as error:
            self._notes.append(f"the session's run failed: {error}")
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
            return
        if any(gate.fails for gate in self._result.gates):
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def _was_used(self) -> bool:
        """Whether a process of pytest-xdist judged something."""
        from judgekit.core.errors import JudgekitError

        try:
            return self._config.pluginmanager.hasplugin("dsession") and self._spool.is_dir()
        except JudgekitError:
            return False

    def _pairs(self) -> list[Mapping[str, Any]]:
        """What all processes judged; of a test that was run again, what it judged last."""
        found: dict[str, Mapping[str, Any]] = {}
        for path in sorted(self._spool.glob("*.jsonl")):
            for line in path.read_text(encoding="utf-8").splitlines():
                pair = json.loads(line)
                found[pair["case"]["id"]] = pair
        return [found[case_id] for case_id in sorted(found)]

    def _tag(self, session: pytest.Session) -> None:
        from judgekit.workflows.models import Options
        from judgekit.workflows.stored_runs import tag_run

        if session.exitstatus or self._result is None:
            self._notes.append("the baseline stays as it was, since tests failed")
            return
        tag_run(str(self._result.folder), BASELINE, Options(results_dir=self._results_dir), remove=False)
        self._notes.append(f"tagged {BASELINE}: gates with not_worse_than: latest:{BASELINE} compare with this run")

    def write_summary(self, reporter: Any) -> None:
        """The section at the end of a session in which something was judged."""
        if self._result is None and not self._notes:
            return
        from judgekit.reports.figures import gate_lines
        from judgekit.reports.safe_text import printable_line

        reporter.section("judgekit", sep="=")
        lines = repr(self._result).splitlines() if self._result is not None else []
        if self._result is not None:
            lines += [text for _, text in gate_lines(self._result.summary)] if self._result.gates else []
        open_ = reporter.stats.get("undecided", [])
        lines += [f"not decided: {report.nodeid}: {report.longrepr}" for report in open_]
        for line in [*lines, *self._notes]:
            reporter.write_line(printable_line(line))
