"""Failure cases of kind G, reports; last, that no case is without a test."""

import base64
import csv
import json
import re
import resource
import time
import zlib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import StorageError
from judgekit.core.runs import Notice
from judgekit.reports.pages import render
from judgekit.reports.tables import cell, table
from judgekit.workflows import report
from judgekit.workflows.report import write_report
from tests.builders import case, output, read_json, write_suite
from tests.cli.fork_server import judgekit
from tests.run_folders import question_of, write_run

HOSTILE = {
    "tag": '</script><script>alert(1)</script><!--<img src=x onerror="alert(1)">',
    "attribute": 'x" onmouseover="alert(1)\' y',
    "link": "[click](javascript:alert(1)) javascript:alert(1)",
    "controls": "bell\x07 null\x00 escape\x1b[31m red",
    "direction": "safe \u202etxt.exe\u202c \u2066inside\u2069",
    "surrogate": "half a pair \ud83d and a pair \U0001f600",
    "lines": "one\u2028two\u2029three",
}


class Page(HTMLParser):
    """What a browser would see: elements with their attributes, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._in: dict[str, str | None] | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self._in = dict(attrs)
            self.scripts.append((self._in, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._in = None

    def handle_data(self, data: str) -> None:
        if self._in is not None:
            self.scripts[-1] = (self._in, self.scripts[-1][1] + data)

    @property
    def index(self) -> dict[str, Any]:
        [text] = [text for attributes, text in self.scripts if attributes.get("id") == "index"]
        found: dict[str, Any] = json.loads(text)
        return found

    @property
    def details(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for attributes, text in self.scripts:
            if attributes.get("class") == "block":
                found += json.loads(zlib.decompress(base64.b64decode(text), -15))
        return found


def page_of(folder: Path) -> Page:
    return Page(write_report(folder).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", HOSTILE)
def test_g03_hostile_texts_stay_texts_wherever_they_stand(tmp_path: Path, name: str) -> None:
    hostile = HOSTILE[name]
    calm = page_of(write_run(tmp_path / "calm", 3, label="calm", warnings=(Notice(code="calm", message="calm"),)))
    folder = write_run(
        tmp_path / "run",
        3,
        answer=lambda _: f"{hostile}. More of it.",
        question=lambda _: hostile,
        context=lambda _: hostile,
        reasoning=lambda _: hostile,
        label=hostile.encode("utf-8", "replace").decode(),
        warnings=(Notice(code="hostile", message=hostile.encode("utf-8", "replace").decode()),),
    )
    page = page_of(folder)
    # The elements are those of a page about harmless texts: no text has made one, and none has lost its way out.
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in calm.elements]
    assert len(page.scripts) == len(calm.scripts) == 3
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert not [a for _, a in page.elements if (a.get("href") or "#")[0] != "#" and a.get("rel") != "icon"]
    assert len(page.index["ids"]) == len(page.details) == 3


def test_g03_what_is_embedded_reads_back_unchanged(tmp_path: Path) -> None:
    answer = "</script><script>alert(1)</script><!--"
    folder = write_run(tmp_path / "run", 2, answer=lambda _: answer, question=lambda _: answer)
    text = write_report(folder).read_text(encoding="utf-8")
    page = Page(text)
    assert page.index["questions"] == page.index["answers"] == [answer, answer]
    assert [case["answer"] for case in page.details] == [answer, answer]
    # Two packed or embedded data elements and one script of ours end, nothing else does.
    assert text.count("</script") == len(page.scripts) == 3


def test_g02_quotes_cannot_leave_an_attribute(tmp_path: Path) -> None:
    reason = 'x" onmouseover="alert(1)\' y'
    text = write_report(write_run(tmp_path / "run", 2, label=reason)).read_text(encoding="utf-8")
    assert 'data-value="x&#34; onmouseover=&#34;alert(1)&#39; y"' in text
    assert {a.get("data-value") for _, a in Page(text).elements} == {None, reason}


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_g05_a_console_that_cannot_show_a_text_is_no_error(tmp_path: Path, encoding: str) -> None:
    words = "\u2713 \u6210\u529f \U0001f600"
    # The terminal names the case without an output in a warning.
    write_suite(tmp_path, case_rows=[case("c1"), case(words)], output_rows=[output("c1")])
    environment = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "GITHUB_ACTIONS": "true"}
    result = judgekit("run", "config.json", "--run-id", "r", "--junit", "junit.xml", cwd=tmp_path, **environment)
    assert result.returncode == 0, result.stderr
    assert "warning: outputs.jsonl: no output for" in result.stdout
    assert "::warning title=cases_without_output::" in result.stderr
    for name in ("results/r/summary.md", "results/r/report.html", "junit.xml"):
        assert words in (tmp_path / name).read_text(encoding="utf-8"), name


def test_g06_no_file_holds_nan_and_a_missing_figure_is_null(tmp_path: Path) -> None:
    # Nothing was judged, so the mean has no value.
    folder = write_run(tmp_path / "run", 4, n_judged=0, status="interrupted")
    assert read_json(folder / "metrics.json")["overall"]["groundedness"]["value"] is None
    page = page_of(folder)
    [index] = [text for attributes, text in page.scripts if attributes.get("id") == "index"]

    def refuse(name: str) -> None:
        raise AssertionError(name)

    found = json.loads(index, parse_constant=refuse)
    assert found["scores"]["groundedness"] == ["0"] * 4
    assert found["reasons"][0] == "failed: not judged"


def test_g06_an_infinite_score_is_refused_and_the_old_report_stays(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 2)
    before = write_report(folder).read_bytes()
    scores = (folder / "scores.jsonl").read_text().replace('"value": 1.0', '"value": Infinity')
    (folder / "scores.jsonl").write_text(scores)
    with pytest.raises(StorageError, match=r"scores\.jsonl:\d+: damaged line"):
        write_report(folder)
    assert (folder / "report.html").read_bytes() == before


def test_g07_contexts_of_300_kb_give_a_small_report_that_says_where_the_rest_is(tmp_path: Path) -> None:
    # 60 of the 4,500 cases, each with three contexts of 100 kB: what is shown of a case does not depend on its length.
    folder = write_run(tmp_path / "run", 60, context=lambda number: f"kiln {number} " * 12_000)
    page = page_of(folder)
    assert (folder / "outputs.jsonl").stat().st_size > 16_000_000
    assert (folder / "report.html").stat().st_size < 500_000
    text, length = page.details[0]["hits"][0]["text"]
    assert (len(text), length) == (2500, len("kiln 0 " * 12_000))


@pytest.mark.slow
def test_g07_an_answer_of_10_mb_takes_bounded_memory_and_is_cut(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 2, answer=lambda number: "word " * (2_000_000 if number else 1), context=str)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    page = page_of(folder)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert page.details[1]["answer"] == [("word " * 2000)[:8000], 10_000_000]
    assert (folder / "report.html").stat().st_size < 400_000
    # The line with the answer, its text, and that of the prompt: some copies of 10 MB each.
    assert grown < 250


@pytest.mark.slow
def test_g07_time_is_linear_and_all_rows_are_there(tmp_path: Path) -> None:
    seconds = {}
    for n in (500, 4000):
        folder = write_run(tmp_path / f"run{n}", n)
        started = time.process_time()
        page = page_of(folder)
        seconds[n] = time.process_time() - started
        assert len(page.index["ids"]) == len(page.details) == n
    # Eight times the cases in eight times the time; sixteen leaves room for a busy machine, a square would take 64.
    assert seconds[4000] < 16 * max(seconds[500], 0.1)


@pytest.mark.slow
def test_g07_past_its_size_a_report_keeps_rows_and_says_that_texts_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgekit.reports.case_data.MOST_ENCODED", 50_000)
    page = page_of(write_run(tmp_path / "run", 3000))
    assert len(page.index["ids"]) == 3000
    assert page.index["packed"] == len(page.details) < 3000


def test_g07_past_its_rows_a_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("judgekit.workflows.report.MOST_ROWS", 10)
    monkeypatch.setattr("judgekit.reports.worst_cases.N_WORST", 4)
    monkeypatch.setattr("judgekit.reports.worst_cases.N_SAMPLED", 6)
    folder = write_run(tmp_path / "run", 30)
    page = page_of(folder)
    assert page.index["n_cases"] == 30
    assert len(page.index["ids"]) == len(page.details) == 6
    text = "The table has a random sample of 6 of 30 cases"  # a run without scales has no worst ones
    assert text in (folder / "report.html").read_text()


def test_g08_a_report_that_fails_half_way_leaves_the_old_one_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_run(tmp_path / "results" / "r", 3)
    before = write_report(folder).read_bytes()

    def failing(*arguments: Any) -> Any:
        yield next(iter(render(*arguments)))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("judgekit.reports.report_page.render", failing)
    with pytest.raises(StorageError, match=r"report\.html: cannot be written: No space left on device"):
        write_report(folder)
    assert (folder / "report.html").read_bytes() == before
    assert not list(folder.glob(".*.tmp"))


def test_g08_the_command_ends_with_the_exit_code_of_storage(tmp_path: Path) -> None:
    write_run(tmp_path / "results" / "r", 2)
    result = judgekit("report", "r", "--out", "no/such/folder/report.html", cwd=tmp_path)
    assert result.returncode == 4
    assert "cannot be written" in result.stderr
    assert "Traceback" not in result.stderr


def test_g09_a_cell_is_one_line_whatever_it_holds() -> None:
    answer = "a|b\n```\n# not a heading"
    lines = table(["answer"], [[cell(answer)], [cell("\u706f" * 300)], [cell("x\ty")]])
    assert lines[2] == r"| a\|b \`\`\` \# not a heading |"
    assert len(lines) == 2 + 3
    assert not [line for line in lines if "\n" in line]


def test_g09_a_summary_about_hostile_names_keeps_its_tables(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 5, label="a|b\n```\n# not a heading </details>")
    text = write_report(folder, "md").read_text(encoding="utf-8")
    assert "```" not in text
    assert not re.search(r"^# not", text, re.MULTILINE)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows[-3:]}) == 1
    assert text.count("</details>") == text.count("<details>") == 1


def test_d13_a_run_that_was_killed_is_reported_as_partial(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 20, n_judged=7, status="running")
    page = page_of(folder)
    text = (folder / "report.html").read_text()
    assert "Groundedness: 7 of 20 judged" in text
    assert "Resume it with: judgekit run --resume run" in text
    assert "complete</span>" not in text
    # It has no scores yet; the verdicts stand in.
    assert [type(cell) for cell in page.index["scores"]["groundedness"]] == [int] * 7 + [type(None)] * 13


def test_d14_a_torn_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 6, n_judged=4, status="running")
    with (folder / "judgments.jsonl").open("a") as stream:
        stream.write('{"case_id": "c00005", "judge": "groun')
    assert "4 of 6 judged" in write_report(folder).read_text()
    lines = (folder / "judgments.jsonl").read_text().splitlines()
    (folder / "judgments.jsonl").write_text("\n".join([lines[0], "{broken", *lines[1:]]) + "\n")
    with pytest.raises(StorageError, match=r"judgments\.jsonl:2: damaged line"):
        write_report(folder)


def test_d11_a_run_whose_report_cannot_be_written_is_complete_and_warns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from judgekit.api.running import run

    def full(*_: Any) -> None:
        raise StorageError("report.html: cannot be written: No space left on device")

    monkeypatch.setattr(report, "write_report", full)
    summary = run(write_suite(tmp_path), run_id="r")
    assert summary.status == "complete"
    assert [item.code for item in summary.warnings] == ["report_not_written"]
    stored = read_json(tmp_path / "results/r/metrics.json")
    assert [item["code"] for item in stored["warnings"]] == ["report_not_written"]
    assert (
        "report\\_not" in (tmp_path / "results/r/summary.md").read_text()
        or "report_not_written" in (tmp_path / "results/r/summary.md").read_text()
    )


def test_g03_a_table_of_hostile_texts_has_one_row_a_case(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 4, answer=lambda _: 'a,"b"\n=1+1', question=lambda _: "=cmd|' /C calc'!A0")
    with write_report(folder, "csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["question"] for row in rows] == ["'=cmd|' /C calc'!A0"] * 4
    assert [row["answer"] for row in rows] == ['a,"b"\n=1+1'] * 4
    assert question_of(1) not in {row["question"] for row in rows}
