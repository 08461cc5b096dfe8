"""`judgekit view`: the runs of a results folder in a browser on this machine, to be read only.

Only loopback is listened on, and only requests that name it as their host are answered, so that a page from elsewhere
cannot reach the reports through a name that it points here. Addresses are matched with a run id and never joined to a
path as they are. Nothing is written, and nothing but our own script can run: a report.html from disk is handed out only
if it carries the policy of this version.
"""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from shutil import copyfileobj
from typing import IO
from urllib.parse import parse_qs, unquote, urlsplit

from judgekit.core.errors import ConfigError, JudgekitError
from judgekit.core.runs import CASES, JUDGMENTS, MANIFEST, METRICS, OUTPUTS, REPORT, SCORES
from judgekit.reports.pages import policy
from judgekit.reports.runs_page import render_message, render_runs, render_trend
from judgekit.storage.run_folder import RunFolder, is_run_id
from judgekit.storage.run_list import list_runs
from judgekit.workflows.models import Options
from judgekit.workflows.report import html_pieces
from judgekit.workflows.trend import TrendQuery, find_trend

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names that requests may use."""

_IN_MEMORY = 16_000_000
_HEAD_BYTES = 4096
_DATA = (MANIFEST, METRICS, CASES, OUTPUTS, JUDGMENTS, SCORES)


@dataclass
class Answer:
    """What is sent for one request."""

    status: HTTPStatus
    body: IO[bytes]
    policy: str
    headers: Mapping[str, str] = field(default_factory=dict)


class ResultsViewer:
    """Answers requests about the runs of one folder."""

    def __init__(self, results_dir: Path) -> None:
        self.results_dir = results_dir

    def answer(self, target: str, known_tag: str | None = None) -> Answer:
        """The answer to a GET or HEAD.

        Args:
            target: path of the address, as it came.
            known_tag: the version that the browser has, from `If-None-Match`.
        """
        address = urlsplit(target)
        parts = unquote(address.path).split("/")
        if parts in ([""], ["", ""]):
            return _page(HTTPStatus.OK, render_runs(str(self.results_dir), list_runs(self.results_dir)))
        if len(parts) > 2 and parts[1] == "trend" and parts[2]:
            return self._trend("/".join(parts[2:]), parse_qs(address.query))
        if len(parts) == 3 and parts[1] == "runs" and is_run_id(parts[2]):
            return _message(HTTPStatus.MOVED_PERMANENTLY, "Moved", "", Location=f"/runs/{parts[2]}/")
        if len(parts) == 4 and parts[1] == "runs" and is_run_id(parts[2]) and not parts[3]:
            return self._report(parts[2], known_tag)
        return _message(HTTPStatus.NOT_FOUND, "Not found", "There is no such page here.")

    def _trend(self, metric: str, wanted: Mapping[str, Sequence[str]]) -> Answer:
        suite, tag = (wanted.get(name, [None])[-1] for name in ("suite", "tag"))
        try:
            found = find_trend(TrendQuery(metric, suite, tag), Options(results_dir=self.results_dir))
        except JudgekitError as error:
            return _message(HTTPStatus.NOT_FOUND, "No such figure", str(error))
        return _page(HTTPStatus.OK, render_trend(found.trend.document(), found.other_suites))

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
                return _message(HTTPStatus.NOT_FOUND, "This run is not there", f"{gone} {more}")
            return _message(HTTPStatus.INTERNAL_SERVER_ERROR, "This run cannot be shown", str(error))
        return Answer(HTTPStatus.OK, body, policy("report.js"), {"ETag": tag, "Cache-Control": "no-cache"})


def _page(status: HTTPStatus, text: str, **headers: str) -> Answer:
    body = BytesIO(text.encode("utf-8", "replace"))
    return Answer(status, body, policy(), {"Cache-Control": "no-store", **headers})


def _message(status: HTTPStatus, title: str, message: str, **headers: str) -> Answer:
    return _page(status, render_message(title, message), **headers)


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
    """A server on loopback that is ready to serve.

    Args:
        results_dir: folder of runs.
        port: its port; 0 takes a free one.

    Raises:
        ConfigError: the port is taken.
    """
    viewer = ResultsViewer(results_dir)

    class Handler(_Handler):
        answering = viewer

    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise ConfigError(
            f"port {port} cannot be used: {error.strerror or error}; choose another --port, or 0 for a free one"
        ) from None
    Handler.port = server.server_port
    return server


class _Handler(BaseHTTPRequestHandler):
    """Checks a request and sends the answer."""

    answering: ResultsViewer
    port: int
    server_version = "judgekit"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """Answer; to HEAD without a body."""
        if not self._is_for_us():
            refusal = "This viewer answers on this machine only, under 127.0.0.1 or localhost."
            self._send(_message(HTTPStatus.MISDIRECTED_REQUEST, "Wrong host", refusal))
            return
        self._send(self.answering.answer(self.path, self.headers.get("If-None-Match")))

    def do_HEAD(self) -> None:
        self.do_GET()

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self._refuse_method
        raise AttributeError(name)

    def _refuse_method(self) -> None:
        refusal = "This viewer only shows; it takes GET and HEAD."
        self.close_connection = True
        self._send(_message(HTTPStatus.METHOD_NOT_ALLOWED, "Not allowed", refusal, Allow="GET, HEAD"))

    def _is_for_us(self) -> bool:
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or not self.path.startswith("/"):
            return False
        name, colon, port = hosts[0].rpartition(":")
        if not colon or hosts[0].endswith("]"):
            name, port = hosts[0], "80"
        return name.lower() in HOSTS and port == str(self.port)

    def _send(self, answer: Answer) -> None:
        with answer.body as body:
            length = body.seek(0, os.SEEK_END)
            body.seek(0)
            self.send_response(answer.status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            if answer.status != HTTPStatus.NOT_MODIFIED:
                self.send_header("Content-Length", str(length))
            self.send_header("Content-Security-Policy", f"{answer.policy}; frame-ancestors 'none'")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                copyfileobj(body, self.wfile)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: requests are private, and foreign text would reach the terminal."""
