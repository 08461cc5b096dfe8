"""pytest: a fixture `judged` and a marker `judge`, with one run folder for the session.

Nothing of judgekit is imported before a test uses the fixture. What a test judges is judged at once, through the reply
cache of the results folder. At the end of the session all of it becomes one run, for which the replies are there.
"""

import json
import os
import secrets
import shutil
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from judgekit.api.results import RunResult
    from judgekit.core.config import RunConfig
    from judgekit.core.scores import Estimate

_DEFAULT_CONFIG = "judgekit.json"
_SPOOL = ".pytest"
"""In the folder of runs: what the processes of a session have judged so far."""

_BASELINE = "baseline"

_STATE = pytest.StashKey["_Session"]()


class JudgeFailed(Exception):
    """A judge gave no verdict, or does not apply: the test says nothing about the system, and counts as an error."""


class NotDecided(Exception):
    """Too few cases to tell whether a figure is beyond its limit."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings."""
    group = parser.getgroup("judgekit", "judging answers with judgekit")
    group.addoption("--judgekit-config", metavar="FILE", help=f"models, judges and gates; default: {_DEFAULT_CONFIG}")
    group.addoption("--judgekit-results-dir", metavar="DIR", help="folder of runs; default: the config's, or results")
    group.addoption(
        "--judgekit-update-baseline",
        action="store_true",
        help=f"tag this session's run {_BASELINE!r}, for gates with not_worse_than: latest:{_BASELINE}",
    )
    group.addoption("--judgekit-strict", action="store_true", help="a figure that too few cases decide fails its test")
    group.addoption("--judgekit-no-cache", action="store_true", help="ask every question again")
    parser.addini("judgekit_config", "models, judges and gates for the fixture judged", default=_DEFAULT_CONFIG)


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and where the processes of a session meet."""
    config.addinivalue_line(
        "markers",
        "judge(**figures): hold figures over the cases of the test against limits, such as groundedness_pass_rate=0.9 "
        "(lower limits, or upper ones where lower is better); other names go into a mapping, {'recall_any@5': 1}.",
    )
    given = getattr(config, "workerinput", {}).get("judgekit_session")
    config.stash[_STATE] = _Session(config, given or secrets.token_hex(6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist which session it belongs to."""
    node.workerinput["judgekit_session"] = node.config.stash[_STATE].name


@pytest.fixture
def judged(request: pytest.FixtureRequest) -> Iterator["Judged"]:
    """Judge an answer: `judged(question=..., answer=..., retrieved=[...]).groundedness >= 4`."""
    state = request.config.stash[_STATE]
    found = Judged(state, request.node.nodeid, request.node.get_closest_marker("judge"))
    yield found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hold the figures of the marker against their limits once the test has judged all of its cases."""
    result = yield
    found = getattr(item, "funcargs", {}).get("judged")
    if isinstance(found, Judged):
        found.check_limits()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Tell a judge that failed, and a figure that is not decided, from an assertion that failed."""
    report = yield
    error = None if call.excinfo is None else call.excinfo.value
    if isinstance(error, JudgeFailed):
        report.judgekit_outcome = "error"
    elif isinstance(error, NotDecided):
        report.judgekit_outcome = "undecided"
        if not item.config.getoption("--judgekit-strict"):
            report.outcome = "passed"
        report.longrepr = str(error)
    return report


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """How the outcomes are shown."""
    found = getattr(report, "judgekit_outcome", None)
    if found == "error":
        return "error", "E", "ERROR"
    if found == "undecided":
        return ("failed", "F", "UNDECIDED") if report.outcome == "failed" else ("undecided", "u", "UNDECIDED")
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Make one run of all that was judged, in the process that holds the session."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_STATE].conclude(session)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Figures with intervals, gates, what was not decided, and where the run is."""
    config.stash[_STATE].write_summary(terminalreporter)


class JudgedCase:
    """What was found about one answer. A score that a judge failed to give, or that does not apply, raises."""

    def __init__(self, scores: Mapping[str, tuple[float | None, str | None]], reasons: Mapping[str, str]) -> None:
        self.scores = scores
        """By name: the value, and the reason if there is none."""
        self.reasons = reasons
        """By judge: why it judged so."""

    def __getitem__(self, name: str) -> float:
        from judgekit.core.errors import did_you_mean

        if name not in self.scores:
            raise KeyError(f"no score called {name!r}{did_you_mean(name, self.scores)}")
        value, reason = self.scores[name]
        if value is None:
            raise JudgeFailed(f"{name}: {reason}")
        return value

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    def __repr__(self) -> str:
        values = {name: value for name, (value, _) in self.scores.items() if value is not None}
        return f"JudgedCase({values}, reasons={dict(self.reasons)})"


class Judged:
    """Judges answers, and remembers those of its test."""

    def __init__(self, state: "_Session", test: str, marker: pytest.Mark | None) -> None:
        self._state, self._test = state, test
        self._limits: dict[str, float] = {}
        for limits in (*marker.args, marker.kwargs) if marker else ():
            self._limits.update(limits)
        self._pairs: list[dict[str, Any]] = []

    def __call__(self, case: Any = None, output: Any = None, **fields: Any) -> JudgedCase:
        """Judge one answer.

        Args:
            case: a `Case` or its fields; left out: made of `fields`.
            output: a `SystemOutput`, its fields, or the text of the answer; left out: made of `fields`.
            fields: of the case and of the output, such as `question`, `reference_answers`, `answer`, `retrieved`.

        Raises:
            ConfigError: there is no config, or it cannot be used.
            InputError: a field is wrong.
        """
        pair = self._state.pair(case, output, fields, f"{self._test}{f' ({len(self._pairs) + 1})' * bool(self._pairs)}")
        result, _ = self._state.judge([pair])
        self._pairs.append(pair)
        self._state.keep(pair)
        (record,) = result.cases()
        reasons = {item.judge: item.verdict.reasoning for item in record.judgments if item.verdict is not None}
        return JudgedCase(record.scores, reasons)

    def check_limits(self) -> None:
        """Hold the figures over the cases of the test against their limits.

        Raises:
            AssertionError: one is beyond its limit, with its whole interval.
            NotDecided: too few cases to tell.
            JudgeFailed: a judge has no verdict on some of them.
        """
        if not self._limits or not self._pairs:
            return
        result, lower_is_better = self._state.judge(self._pairs)
        lines = [_held(name, limit, result, lower_is_better) for name, limit in self._limits.items()]
        missed = [text for state, text in lines if state == "missed"]
        if missed:
            raise AssertionError("\n".join(missed))
        if open_ := [text for state, text in lines if state == "undecided"]:
            raise NotDecided("\n".join(open_))


def _held(name: str, limit: float, result: "RunResult", lower_is_better: Collection[str]) -> tuple[str, str]:
    """Whether a figure is on the right side of its limit with its whole interval, and the line that says so."""
    from judgekit.core.errors import ConfigError, did_you_mean

    figure = result.overall.get(name)
    if figure is None:
        raise ConfigError(f"marker judge: no figure called {name!r}{did_you_mean(name, result.overall)}")
    n_cases = figure.n + figure.n_error
    if figure.n_error:
        raise JudgeFailed(f"{name}: {figure.n_error} of {n_cases} cases have no score, since a call failed")
    if figure.value is None:
        raise JudgeFailed(f"{name}: applies to none of the cases")
    sign = -1 if name in lower_is_better else 1
    low, high = sorted(sign * end for end in _ends(figure))
    state = "passed" if low >= sign * limit else "missed" if high < sign * limit else "undecided"
    side, more = "at most" if sign < 0 else "at least", "; too few cases to tell" if state == "undecided" else ""
    ends = f", {figure.low:.3g} to {figure.high:.3g}" if figure.low is not None and figure.high is not None else ""
    return state, f"{name}: {figure.value:.3g} (n = {figure.n}{ends}), expected {side} {limit:g}{more}"


def _ends(figure: "Estimate") -> tuple[float, float]:
    """The interval of a figure; without one, the value itself if there are enough cases, else anything."""
    if figure.low is not None and figure.high is not None:
        return figure.low, figure.high
    return (float("-inf"), float("inf")) if figure.small or figure.value is None else (figure.value, figure.value)


class _Session:
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
        given = self._config.getoption("--judgekit-results-dir")
        if given:
            return Path(given)
        named = self._settings_read.results_dir
        return self._config.rootpath / "results" if named is None else self._path.resolve().parent / named

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
        from judgekit.executors.local import run_local
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

        try:
            pairs = self._pairs()
            if not pairs:
                return
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
        tag_run(str(self._result.folder), _BASELINE, Options(results_dir=self._results_dir), remove=False)
        self._notes.append(f"tagged {_BASELINE}: gates with not_worse_than: latest:{_BASELINE} compare with this run")

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
