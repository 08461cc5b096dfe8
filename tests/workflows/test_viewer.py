"""The viewer: to be read only, on this machine only, and nothing but runs."""

import http.client
import json
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import judgekit
from judgekit.analysis.drift_states import drift_report, histories
from judgekit.core.errors import ConfigError
from judgekit.reports.pages import policy
from judgekit.reports.runs_page import render_drift
from judgekit.workflows.local_page import Asked
from judgekit.workflows.report import write_report
from judgekit.workflows.view import ResultsViewer, open_server
from tests.builders import weekly_point, write_suite
from tests.run_folders import write_run


@pytest.fixture
def results(tmp_path: Path) -> Path:
    write_run(tmp_path / "results" / "first", 3)
    write_run(tmp_path / "results" / "second", 3, n_judged=1, status="running")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "results"


@pytest.fixture
def port(results: Path) -> Iterator[int]:
    with open_server(results, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    response = connection.getresponse()
    body = response.read().decode("utf-8")
    connection.close()
    return response.status, dict(response.getheaders()), body


def test_the_list_leads_to_reports(port: int) -> None:
    status, headers, body = ask(port, "/")
    assert status == 200
    assert 'href="/runs/first/"' in body
    assert 'href="/runs/second/"' in body
    assert headers["Content-Security-Policy"] == f"{policy('runs.js')}; frame-ancestors 'none'"
    status, headers, body = ask(port, "/runs/first/")
    assert status == 200
    assert "<title>kilns: complete</title>" in body
    assert headers["Content-Security-Policy"] == f"{policy('report.js')}; frame-ancestors 'none'"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert ask(port, "/runs/first")[1]["Location"] == "/runs/first/"


def test_a_run_without_a_report_gets_one_and_nothing_is_written(port: int, results: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    assert "Partial: this run is running" in ask(port, "/runs/second/")[2]
    assert {path: path.stat().st_mtime_ns for path in results.rglob("*")} == before


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ANYTHING"])
def test_only_reading_is_allowed(port: int, method: str) -> None:
    status, headers, _ = ask(port, "/", method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_head_gives_headers_and_no_body(port: int) -> None:
    _, full, body = ask(port, "/runs/first/")
    status, headers, nothing = ask(port, "/runs/first/", "HEAD")
    assert (status, nothing) == (200, "")
    assert headers["Content-Length"] == full["Content-Length"] == str(len(body.encode()))


@pytest.mark.parametrize(
    "path",
    [
        "/runs/../secret.txt",
        "/runs/..%2f..%2fsecret.txt/",
        "/runs/%2e%2e/",
        "/runs/..%5c..%5csecret.txt/",
        "/runs/first/../../../secret.txt",
        "/runs/first/metrics.json",
        "/runs/.cache/",
        "//etc/passwd",
        "/runs/",
        "/runs/first%00/",
        "/runs/nobody/",
    ],
)
def test_nothing_but_runs_can_be_had(port: int, path: str) -> None:
    status, _, body = ask(port, path)
    assert status == 404
    assert "secret" not in body.replace("secret.txt", "")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "127.0.0.1.evil:{port}", ""]
)
def test_a_name_that_is_not_this_machine_is_refused(port: int, host: str) -> None:
    status, _, body = ask(port, "/", Host=host.format(port=port))
    assert status == 403
    assert "/runs/" not in body


@pytest.mark.parametrize("host", ["localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}", "127.0.0.1:{port}"])
def test_the_names_of_this_machine_are_answered(port: int, host: str) -> None:
    assert ask(port, "/", Host=host.format(port=port))[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://localhost:{port}"]
)
def test_a_page_from_elsewhere_is_refused(port: int, origin: str) -> None:
    status, _, body = ask(port, "/", Origin=origin.format(port=port))
    assert status == 403
    assert "/runs/" not in body


def test_a_run_that_is_deleted_meanwhile_gives_a_clear_page(port: int, results: Path) -> None:
    assert ask(port, "/runs/first/")[0] == 200
    shutil.rmtree(results / "first")
    status, _, body = ask(port, "/runs/first/")
    assert status == 404
    assert "It may have been deleted" in body
    assert 'href="/runs/first/"' not in ask(port, "/")[2]


def test_a_damaged_run_gives_a_page_that_says_what_is_wrong(port: int, results: Path) -> None:
    (results / "first" / "judgments.jsonl").write_text("{broken\n")
    status, _, body = ask(port, "/runs/first/")
    assert status == 500
    assert "judgments.jsonl:1: damaged line" in body


def test_what_the_browser_has_is_not_sent_again_until_the_run_changes(port: int, results: Path) -> None:
    _, headers, _ = ask(port, "/runs/first/")
    assert headers["Cache-Control"] == "no-cache"
    assert ask(port, "/runs/first/", If_None_Match=headers["ETag"])[0] == 304
    os.utime(results / "first" / "outputs.jsonl")
    assert ask(port, "/runs/first/", If_None_Match=headers["ETag"])[0] == 200


def test_a_stored_report_is_used_only_while_it_is_ours_and_fresh(port: int, results: Path) -> None:
    report = write_report(results / "first")
    stored = report.read_text()
    report.write_text(stored.replace("<h1>", "<h1>stored "))
    assert "<h1>stored " in ask(port, "/runs/first/")[2]
    os.utime(results / "first" / "metrics.json")
    os.utime(report, ns=(0, 0))
    assert "<h1>stored " not in ask(port, "/runs/first/")[2]
    report.write_text("<script>alert(1)</script>")
    assert "alert(1)" not in ask(port, "/runs/first/")[2]
    report.unlink()
    report.symlink_to(results.parent / "secret.txt")
    assert "<title>kilns: complete</title>" in ask(port, "/runs/first/")[2]


def test_a_port_in_use_is_named(port: int, results: Path) -> None:
    with pytest.raises(ConfigError, match=f"port {port} cannot be used"):
        open_server(results, port)


def test_the_list_is_sent_again_only_if_a_run_has_changed(port: int, results: Path) -> None:
    _, headers, _ = ask(port, "/")
    assert ask(port, "/", If_None_Match=headers["ETag"])[0] == 304
    write_run(results / "third", 3)
    status, _, body = ask(port, "/", If_None_Match=headers["ETag"])
    assert status == 200
    assert 'href="/runs/third/"' in body


def test_two_runs_are_compared_and_nothing_is_written(tmp_path: Path) -> None:
    for name in ("one", "two"):
        judgekit.run(write_suite(tmp_path / name), results_dir=tmp_path / "results", run_id=name)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    viewer = ResultsViewer(tmp_path / "results")
    answer = viewer.answer(Asked("/compare/one/two"))
    with answer.body as body:
        text = body.read().decode()
    assert (answer.status, answer.policy) == (200, policy("compare.js"))
    assert "<title>one and two</title>" in text
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    missing = viewer.answer(Asked("/compare/one/nobody"))
    assert (missing.status, b"nobody" in missing.body.read()) == (409, True)
    assert viewer.answer(Asked("/compare/one/..%2fsecret.txt")).status == 404


def test_a_folder_without_a_history_says_how_to_make_one(port: int) -> None:
    status, _, body = ask(port, "/drift")
    assert status == 404
    assert "judgekit spotcheck RUN" in body


def test_a_complete_run_whose_calls_all_failed_is_not_green(port: int, results: Path) -> None:
    metrics = results / "first" / "metrics.json"
    document = json.loads(metrics.read_text())
    name, record = next(iter(document["judges"].items()))
    record |= {"n_judged": 0, "n_failed": 3, "failures": {"connection": 3}}
    metrics.write_text(json.dumps(document))
    row = ask(port, "/")[2].partition('data-state="calls failed"')[2].partition("</tr>")[0]
    assert f"The judge {name} gave no verdict in 3 of 3 cases (connection)" in row
    assert "judgekit doctor" in row
    assert "badge good" not in row


def test_the_timelines_of_judges_are_drawn_and_their_texts_are_inert(tmp_path: Path) -> None:
    points = [weekly_point(week, n, judge="<b>tone</b>") for week, n in ((1, 1), (2, 1), (3, 12))]
    page = render_drift([drift_report(history).document() for history in histories(points)])
    assert "&lt;b&gt;tone&lt;/b&gt; v1" in page
    assert "<b>tone" not in page
    assert page.count("<rect") == 3
    assert "12 of 20 (60%)" in page
    judgekit.run("quickstart", results_dir=tmp_path / "results", run_id="checked")
    with ResultsViewer(tmp_path / "results").answer(Asked("/drift")).body as body:
        assert "checked" in body.read().decode()
