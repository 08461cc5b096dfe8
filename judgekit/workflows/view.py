"""`judgekit view`: the runs of a results folder in a browser on this machine, to be read only.

Addresses are matched with a run id and never joined to a path as they are. Nothing is written, and nothing but our own
script can run: a report.html from disk is handed out only if it carries the policy of this version.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from http.server import ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs, unquote, urlsplit

from judgekit.core.errors import JudgekitError
from judgekit.core.runs import CASES, JUDGMENTS, MANIFEST, METRICS, OUTPUTS, REPORT, SCORES
from judgekit.reports.pages import policy
from judgekit.reports.runs_page import render_drift, render_runs, render_trend
from judgekit.storage.database import DATABASE
from judgekit.storage.run_folder import RunFolder, is_run_id
from judgekit.storage.run_list import list_runs
from judgekit.workflows.compare import compared, comparison_pieces
from judgekit.workflows.compared_runs import CompareOptions, open_runs
from judgekit.workflows.drift import DriftQuery, drift_reports
from judgekit.workflows.local_page import Answer, Asked, message, open_local, page
from judgekit.workflows.models import Options
from judgekit.workflows.report import html_pieces
from judgekit.workflows.trend import TrendQuery, find_trend

_IN_MEMORY = 16_000_000
_HEAD_BYTES = 4096
_DATA = (MANIFEST, METRICS, CASES, OUTPUTS, JUDGMENTS, SCORES)


class ResultsViewer:
    """Answers requests about the runs of one folder."""

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir

    def answer(self, asked: Asked) -> Answer:
        """The answer to a GET or HEAD."""
        address = urlsplit(asked.target)
        parts = unquote(address.path).split("/")
        if parts in ([""], ["", ""]):
            return self._runs(asked.known_tag)
        if parts == ["", "drift"]:
            return self._drift()
        if len(parts) == 4 and parts[1] == "compare" and is_run_id(parts[2]) and is_run_id(parts[3]):
            return self._compare(parts[2], parts[3])
        if len(parts) > 2 and parts[1] == "trend" and parts[2]:
            return self._trend("/".join(parts[2:]), parse_qs(address.query))
        if len(parts) == 3 and parts[1] == "runs" and is_run_id(parts[2]):
            return message(HTTPStatus.MOVED_PERMANENTLY, "Moved", "", Location=f"/runs/{parts[2]}/")
        if len(parts) == 4 and parts[1] == "runs" and is_run_id(parts[2]) and not parts[3]:
            return self._report(parts[2], asked.known_tag)
        return message(HTTPStatus.NOT_FOUND, "Not found", "There is no such page here.")

    def _runs(self, known_tag: str | None) -> Answer:
        runs = list_runs(self.results_dir)
        has_drift = (self.results_dir / DATABASE).is_file()
        version = f"{policy('runs.js')} {has_drift} {runs!r}"
        tag = f'"{hashlib.sha256(version.encode("utf-8", "replace")).hexdigest()[:24]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if known_tag == tag:
            return Answer(HTTPStatus.NOT_MODIFIED, BytesIO(), policy("runs.js"), headers)
        text = render_runs(str(self.results_dir), runs, has_drift=has_drift)
        return Answer(HTTPStatus.OK, BytesIO(text.encode("utf-8", "replace")), policy("runs.js"), headers)

    def _drift(self) -> Answer:
        try:
            found = drift_reports(DriftQuery(), Options(results_dir=self.results_dir))
        except JudgekitError as error:
            return message(HTTPStatus.NOT_FOUND, "No drift history", str(error))
        return page(HTTPStatus.OK, render_drift([report.document() for report in found]))

    def _compare(self, a: str, b: str) -> Answer:
        try:
            # As folders, so that an id is never taken for the beginning of another one.
            with open_runs(str(self.results_dir / a), str(self.results_dir / b), Options(self.results_dir)) as sides:
                comparison = compared(sides, CompareOptions())
                text = "".join(comparison_pieces(sides, comparison, (), "html"))
        except (JudgekitError, OSError) as error:
            return message(HTTPStatus.CONFLICT, "These runs cannot be compared", str(error))
        headers = {"Cache-Control": "no-store"}
        return Answer(HTTPStatus.OK, BytesIO(text.encode("utf-8", "replace")), policy("compare.js"), headers)

    def _trend(self, metric: str, wanted: Mapping[str, Sequence[str]]) -> Answer:
        suite, tag = (wanted.get(name, [None])[-1] for name in ("suite", "tag"))
        try:
            found = find_trend(TrendQuery(metric, suite, tag), Options(results_dir=self.results_dir))
        except JudgekitError as error:
            return message(HTTPStatus.NOT_FOUND, "No such figure", str(error))
        return page(HTTPStatus.OK, render_trend(found.trend.document(), found.other_suites, found.names))

    def _report(self, run_id: str, known_tag: str | None) -> Answer:
        path = self.results_dir / run_id
        try:
            tag = _tag(path)
            if known_tag == tag:
                return Answer(HTTPStatus.NOT_MODIFIED, BytesIO(), policy("report.js"), {"ETag": tag})
            body = _stored_report(path) or _fresh_report(RunFolder.open(path))
        except (JudgekitError, OSError) as error:
            if not (path / MANIFEST).is_file():
                gone = f"There is no run {run_id} in {self.results_dir}."
                more = "It may have been deleted since the list was made."
                return message(HTTPStatus.NOT_FOUND, "This run is not there", f"{gone} {more}")
            return message(HTTPStatus.INTERNAL_SERVER_ERROR, "This run cannot be shown", str(error))
        return Answer(HTTPStatus.OK, body, policy("report.js"), {"ETag": tag, "Cache-Control": "no-cache"})


def _tag(path: Path) -> str:
    """The version of a run: when its files were changed and how long they are."""
    parts = [policy("report.js")]
    for name in (*_DATA, REPORT):
        try:
            status = (path / name).stat()
        except OSError:
            continue
        parts.append(f"{name} {status.st_mtime_ns} {status.st_size}")
    return f'"{hashlib.sha256(" ".join(parts).encode()).hexdigest()[:24]}"'


def _stored_report(path: Path) -> IO[bytes] | None:
    """report.html of the run; None if it is missing, older than the run, or of another version of judgekit."""
    try:
        handle = os.open(path / REPORT, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    stream = os.fdopen(handle, "rb")
    written = os.fstat(handle).st_mtime_ns
    head = stream.read(_HEAD_BYTES)
    stream.seek(0)
    is_ours = policy("report.js").replace("'", "&#39;").encode() in head
    if is_ours and all(_changed(path / name) <= written for name in _DATA if name != MANIFEST):
        return stream
    stream.close()
    return None


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _fresh_report(folder: RunFolder) -> IO[bytes]:
    """A new report; a large one goes through a temporary file that is gone once it is sent."""
    body = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed when it is sent
    try:
        for piece in html_pieces(folder):
            body.write(piece.encode("utf-8", "replace"))
    except BaseException:
        body.close()
        raise
    body.seek(0)
    return body


def open_server(results_dir: Path, port: int) -> ThreadingHTTPServer:
    """A server on loopback that is ready to serve, see `open_local`.

    Raises:
        ConfigError: the port is taken.
    """
    return open_local(ResultsViewer(results_dir).answer, port)
