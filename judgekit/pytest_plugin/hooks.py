"""What pytest calls: options, the fixture, outcomes, and the end of the session."""

import secrets
from collections.abc import Generator
from typing import Any

import pytest

from judgekit.pytest_plugin.judged import Judged, NotDecided
from judgekit.pytest_plugin.sessions import BASELINE, DEFAULT_CONFIG, JudgeFailed, Session

_STATE = pytest.StashKey[Session]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and settings."""
    group = parser.getgroup("judgekit", "judging answers with judgekit")
    group.addoption("--judgekit-config", metavar="FILE", help=f"models, judges and gates; default: {DEFAULT_CONFIG}")
    group.addoption("--judgekit-results-dir", metavar="DIR", help="folder of runs; default: the config's, or results")
    group.addoption(
        "--judgekit-update-baseline",
        action="store_true",
        help=f"tag this session's run {BASELINE!r}, for gates with not_worse_than: latest:{BASELINE}",
    )
    group.addoption("--judgekit-strict", action="store_true", help="a figure that too few cases decide fails its test")
    group.addoption("--judgekit-no-cache", action="store_true", help="ask every question again")
    parser.addini("judgekit_config", "models, judges and gates for the fixture judged", default=DEFAULT_CONFIG)


def pytest_configure(config: pytest.Config) -> None:
    """The marker, and where the processes of a session meet."""
    config.addinivalue_line(
        "markers",
        "judge(**figures): hold figures over the cases of the test against limits, such as groundedness_pass_rate=0.9 "
        "(lower limits, or upper ones where lower is better); other names go into a mapping, {'recall_any@5': 1}.",
    )
    given = getattr(config, "workerinput", {}).get("judgekit_session")
    config.stash[_STATE] = Session(config, given or secrets.token_hex(6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist which session it belongs to."""
    node.workerinput["judgekit_session"] = node.config.stash[_STATE].name


@pytest.fixture
def judged(request: pytest.FixtureRequest) -> Judged:
    """Judge an answer: `judged(question=..., answer=..., retrieved=[...]).groundedness >= 4`."""
    state = request.config.stash[_STATE]
    return Judged(state, request.node.nodeid, request.node.get_closest_marker("judge"))


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
