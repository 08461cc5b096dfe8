"""The labelling page: who may ask, what is kept, and that nothing is lost or told that should not be."""

import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError
from judgekit.engine.passes import Observer
from judgekit.reports.pages import policy
from judgekit.storage.label_sheets import LabelJournal
from judgekit.workflows.calibrate import CalibrationWanted, calibrate
from judgekit.workflows.label import LabelWanted, open_labels
from judgekit.workflows.label_web import LabelDesk, Place, open_desk
from judgekit.workflows.local_page import Asked
from judgekit.workflows.models import Options
from tests.builders import read_lines
from tests.run_folders import score_of, write_run

TOKEN = "the-token"
REASON = "NEVER-TOLD: the judge thinks that this is wrong"
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m"


class Page:
    """Asks the server as the page does."""

    def __init__(self, desk: LabelDesk, port: int, labels: Path) -> None:
        self.desk = desk
        self.port = port
        self.labels = labels

    def ask(self, path: str, sent: bytes | None = None, **headers: str | None) -> tuple[int, dict[str, str], str]:
        own: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        if sent is not None:
            own |= {
                "Origin": f"http://127.0.0.1:{self.port}",
                "Content-Type": "application/json",
                "Content-Length": str(len(sent)),
            }
        own |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.putrequest("GET" if sent is None else "POST", path, skip_host=True)
        for name, value in own.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(sent)
        response = connection.getresponse()
        body = response.read().decode("utf-8")
        connection.close()
        return response.status, dict(response.getheaders()), body

    def case(self, annotator: str = "ida", **place: str) -> dict[str, Any]:
        more = "".join(f"&{name}={value}" for name, value in place.items())
        status, _, body = self.ask(f"/case?token={TOKEN}&annotator={annotator}{more}")
        assert status == 200, body
        found: dict[str, Any] = json.loads(body)
        return found

    def send(self, path: str, **sent: Any) -> tuple[int, dict[str, Any]]:
        status, _, body = self.ask(f"{path}?token={TOKEN}", json.dumps({"annotator": "ida", **sent}).encode())
        return status, json.loads(body)

    def label(self, key: str, typed: str, **sent: Any) -> dict[str, Any]:
        status, found = self.send("/label", key=key, typed=[typed], **sent)
        assert status == 200, found
        return found

    def rows(self) -> list[dict[str, Any]]:
        return read_lines(self.labels)

    def counted(self) -> dict[tuple[str, str], Any]:
        """By annotator and case, the label that counts."""
        held = self.desk._labelling.held()
        return {(label.annotator, label.case_id): label.value for label in held.labels}


def stored_run(folder: Path, n_cases: int, **texts: Any) -> Path:
    """A run that commands on stored runs can open."""
    run = write_run(folder / "results" / "kilns", n_cases, **texts)
    document = json.loads((run / "config.json").read_text())
    document |= {
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "models": {"m": {"provider": "lexical", "model": "overlap-2"}},
    }
    (run / "config.json").write_text(json.dumps(document))
    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored_run(
        tmp_path,
        8,
        reasoning=lambda _: REASON,
        answer=lambda number: f"Kiln {number}. {HOSTILE}",
    )


def opened(run: Path, **wanted: Any) -> LabelDesk:
    return LabelDesk(open_labels(str(run), LabelWanted(annotator="ida", seed=1, **wanted), Options()))


@pytest.fixture
def page(run: Path) -> Iterator[Page]:
    desk = opened(run)
    with open_desk(desk, 0, TOKEN) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield Page(desk, server.server_port, run / "labels.jsonl")
        server.shutdown()
        thread.join()
    desk.close()


@pytest.mark.parametrize("path", ["/", "/case", "/?token=", "/?token=wrong", "/case?token=wrong&annotator=ida"])
def test_without_the_token_nothing_is_told(page: Page, path: str) -> None:
    status, _, body = page.ask(path)
    assert status == 403
    assert "Kiln" not in body
    assert TOKEN not in body


def test_two_tokens_are_none(page: Page) -> None:
    assert page.ask(f"/?token={TOKEN}&token=wrong")[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
    ],
)
@pytest.mark.parametrize("changes", [False, True])
def test_a_foreign_host_or_page_is_refused(page: Page, headers: dict[str, str | None], changes: bool) -> None:
    key = page.case()["case"]["key"]
    sent = json.dumps({"annotator": "ida", "key": key, "typed": ["4"]}).encode() if changes else None
    wanted = {name: value and value.format(port=page.port) for name, value in headers.items()}
    status, _, body = page.ask(f"/{'label' if changes else 'case'}?token={TOKEN}&annotator=ida", sent, **wanted)
    assert status == 403
    assert "Kiln" not in body
    assert page.counted() == {}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": None}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Length": None}, 411),
        ({"Content_Length": "-1"}, 411),
        ({"Content_Length": "100001"}, 413),
    ],
)
def test_what_a_form_of_another_page_could_send_changes_nothing(
    page: Page, headers: dict[str, str | None], status: int
) -> None:
    sent = json.dumps({"annotator": "ida", "key": page.case()["case"]["key"], "typed": ["4"]}).encode()
    assert page.ask(f"/label?token={TOKEN}", sent, **headers)[0] == status
    assert page.counted() == {}


def test_only_post_changes_anything(page: Page) -> None:
    before = page.labels.read_bytes()
    key = page.case()["case"]["key"]
    for path in ("/label", "/undo", "/case"):
        page.ask(f"{path}?token={TOKEN}&annotator=ida&key={key}&typed=4")
    assert page.labels.read_bytes() == before
    assert page.label(key, "4")["n_labelled"] == 1


def test_the_page_lets_only_our_script_in_and_is_not_kept(page: Page) -> None:
    status, headers, body = page.ask(f"/?token={TOKEN}")
    assert status == 200
    assert headers["Content-Security-Policy"] == f"{policy('label.js')}; frame-ancestors 'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert "connect-src 'self'" in headers["Content-Security-Policy"]
    assert "connect-src" not in policy("report.js")
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert TOKEN not in body


def test_nothing_of_what_the_judge_said_is_told(page: Page) -> None:
    _, _, html = page.ask(f"/?token={TOKEN}")
    told = [html]
    found = page.case()
    while found["case"] is not None:
        told.append(json.dumps(found))
        assert {question["chosen"] for question in found["case"]["questions"]} == {None}
        assert found["case"].keys() == {"key", "id", "shown", "questions", "given", "comment"}
        found = page.case(after=found["case"]["key"])
    assert len(told) == 9
    assert not any("NEVER-TOLD" in text for text in told)


def test_hostile_texts_are_told_as_data_without_what_could_act(page: Page) -> None:
    body = page.ask(f"/case?token={TOKEN}&annotator=ida")
    assert body[1]["Content-Type"] == "application/json"
    assert body[1]["X-Content-Type-Options"] == "nosniff"
    shown = {part["title"]: part["texts"] for part in json.loads(body[2])["case"]["shown"]}
    assert "<script>alert(1)</script>" in shown["Answer"][0]
    assert "\u202e" not in shown["Answer"][0]
    assert "\x1b" not in shown["Answer"][0]
    assert [*shown][-1] == "Passages"


def test_labels_are_the_lines_that_the_terminal_writes(page: Page) -> None:
    first = page.case()
    assert (first["number"], first["n"], first["n_labelled"]) == (1, 8, 0)
    second = page.label(first["case"]["key"], "4", comment=" off by ten degrees\x00 ")
    assert (second["number"], second["n_labelled"]) == (2, 1)
    sheet, line = page.rows()
    assert second["message"] == f"{line['case_id']}: 4"
    assert sheet["sheet"]["case_ids"][0] == line["case_id"]
    line.pop("labelled_at")
    line.pop("input_sha256")
    assert line == {
        "case_id": sheet["sheet"]["case_ids"][0],
        "judge": "groundedness",
        "annotator": "ida",
        "score": 4,
        "comment": "off by ten degrees\ufffd",
    }
    assert page.case(at=first["case"]["key"])["case"]["comment"] == "off by ten degrees\ufffd"


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ({"typed": ["9"]}, "9 is off the scale of 0 to 5"),
        ({"typed": ["s"]}, "is not a label"),
        ({"typed": ["c"]}, "is not a label"),
        ({"typed": []}, "Choose a label first"),
        ({"typed": ["4", "4"]}, "Choose a label first"),
        ({"typed": "4"}, "Not understood"),
        ({"typed": ["4"], "key": "k0"}, "not on the sheet"),
        ({"typed": ["4"], "annotator": "  "}, "Give a name"),
        ({"typed": ["4"], "annotator": "x" * 61}, "Give a name"),
        ({"typed": ["4"], "comment": "x" * 5001}, "Not understood"),
        ({"typed": ["4"], "verdict": 5}, "Not understood"),
    ],
)
def test_what_is_no_label_is_refused_in_words(page: Page, sent: dict[str, Any], why: str) -> None:
    status, found = page.send("/label", **{"key": page.case()["case"]["key"], **sent})
    assert status == 422
    assert why in found["message"]
    assert page.counted() == {}


def test_what_is_not_json_is_refused(page: Page) -> None:
    assert page.ask(f"/label?token={TOKEN}", b"\xff{")[0] == 422


def test_undo_takes_the_last_label_back_and_the_one_before_counts_again(page: Page) -> None:
    first = page.case()["case"]["key"]
    second = page.label(first, "4")["case"]["key"]
    page.label(second, "1")
    page.label(first, "2")
    case_id = page.case(at=first)["case"]["id"]
    assert page.counted()["ida", case_id] == 2
    found = page.send("/undo")[1]
    assert found["case"]["key"] == first
    assert found["case"]["given"] == "4"
    assert found["case"]["questions"][0]["chosen"] == "4"
    assert page.counted()["ida", case_id] == 4
    assert page.send("/undo")[1]["case"]["key"] == second
    last = page.send("/undo")[1]
    assert (last["case"]["given"], last["n_labelled"]) == (None, 0)
    assert page.counted() == {}
    status, found = page.send("/undo")
    assert (status, found["message"]) == (422, "There is nothing to undo.")
    page.label(first, "5")
    assert page.counted() == {("ida", case_id): 5}


def test_two_tabs_lose_nothing(page: Page) -> None:
    one, other = page.case()["case"], page.case()["case"]
    assert one["key"] == other["key"]
    page.label(one["key"], "4", known=False)
    found = page.label(other["key"], "2", known=False)
    assert "another tab had saved 4 before" in found["message"]
    scores = [(line["score"], line.get("revised", False)) for line in page.rows()[1:]]
    assert scores == [(4, False), (2, True)]
    page.send("/undo")
    assert page.counted() == {("ida", one["id"]): 4}


def test_many_at_once_are_whole_lines(page: Page) -> None:
    keys = []
    found = page.case()
    while found["case"] is not None:
        keys.append(found["case"]["key"])
        found = page.case(after=keys[-1])

    def work(annotator: str) -> None:
        for key in keys:
            page.label(key, "3", annotator=annotator, comment="long " * 800)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("ida", "tom", "eve", "ida")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(page.rows()) == 1 + 4 * 8
    assert page.desk._labelling.held().problems == ()
    assert len(page.counted()) == 3 * 8


def test_a_restart_and_the_terminal_go_on_where_it_was_left(page: Page, run: Path) -> None:
    first = page.case()["case"]["key"]
    page.label(first, "4")
    again = opened(run)
    state = again._state("ida", Place())
    again.close()
    assert (state["number"], state["n_labelled"]) == (2, 1)
    assert open_labels(str(run), LabelWanted(annotator="ida", seed=1), Options()).given.keys() == {
        page.rows()[1]["case_id"]
    }
    assert len([row for row in page.rows() if "sheet" in row]) == 1


def test_what_another_process_adds_is_seen_at_once(page: Page, run: Path) -> None:
    other = opened(run)
    key = page.case()["case"]["key"]
    sent = json.dumps({"annotator": "tom", "key": key, "typed": ["5"]}).encode()
    assert other.answer(Asked("/label", sent=sent)).status == 200
    other.close()
    assert page.case()["annotators"] == ["ida", "tom"]
    assert page.case("tom")["n_labelled"] == 1


def test_skipping_is_counted_and_the_skipped_can_be_had_again(page: Page) -> None:
    first = page.case()["case"]["key"]
    second = page.case(after=first)["case"]["key"]
    found = page.label(second, "3")
    assert (found["number"], found["n_skipped"]) == (3, 1)
    assert page.case(before=found["case"]["key"])["case"]["key"] == second
    assert page.case()["case"]["key"] == first


def test_people_get_the_same_cases_and_see_how_far_they_agree_but_not_what_others_said(page: Page) -> None:
    for annotator, scores in (("ida", "012345"), ("tom", "012344")):
        for score in scores:
            found = page.label(page.case(annotator)["case"]["key"], score, annotator=annotator)
            if annotator == "tom" and score == "0":
                assert found["agreement"] == ["ida and tom: 1 case labelled by both; agreement is shown from 5 on"]
    # by hand: squares 1/6 seen; expected from the marginals, 1 - 6 * 1 / (6 * (55 + 46) - 2 * 15 * 14) = 1 - 6 / 186
    assert found["agreement"] == ["ida and tom: 6 cases labelled by both, the same label in 5 of 6 (83%), kappa 0.97"]
    last = page.case("eve", at=page.case("eve")["case"]["key"])
    assert last["case"]["given"] is None
    assert last["annotators"] == ["eve", "ida", "tom"]


def test_a_file_that_cannot_be_written_is_said_and_the_next_label_works(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = page.case()["case"]["key"]
    journal = page.desk._journal
    assert journal is not None
    real, journal._stream = journal._stream, Path("/dev/full").open("ab+")  # noqa: SIM115  # the journal closes it
    monkeypatch.setattr(LabelJournal, "is_there", True)
    status, found = page.send("/label", key=key, typed=["4"])
    real.close()
    monkeypatch.undo()
    assert status == 500
    assert "Not saved" in found["message"]
    assert page.counted() == {}
    page.label(key, "4")
    assert len(page.counted()) == 1


def test_a_file_that_is_deleted_meanwhile_is_begun_again(page: Page) -> None:
    first = page.case()["case"]["key"]
    page.label(first, "4")
    page.labels.unlink()
    assert page.case()["n_labelled"] == 0
    page.label(first, "3")
    sheet, line = page.rows()
    assert (sheet["sheet"]["n_population"], line["score"]) == (8, 3)


def test_a_file_that_cannot_be_read_is_said(page: Page) -> None:
    page.labels.write_text("{broken\n{broken\n")
    status, _, body = page.ask(f"/case?token={TOKEN}&annotator=ida")
    assert status == 500
    assert "The labels cannot be read" in json.loads(body)["message"]


def test_a_port_in_use_is_named(page: Page, run: Path) -> None:
    desk = opened(run)
    with pytest.raises(ConfigError, match=f"port {page.port} cannot be used"):
        open_desk(desk, page.port, TOKEN)
    desk.close()


def labelled_run(run: Path, seed: int, n: int, skip: bool = False) -> dict[str, Any]:
    """What calibrate finds after one person labels n cases on the page, a point below the judge in every third."""
    out = run.parent / f"{seed}.jsonl"
    desk = LabelDesk(open_labels(str(run), LabelWanted(annotator="ida", seed=seed, n=n, out=out), Options()))
    numbers = {item.key: int(item.case_id.removeprefix("case-")) for item in desk._labelling.items}
    state = desk._state("ida", Place())
    while state["case"] is not None:
        key = state["case"]["key"]
        score = human(numbers[key])
        if skip and score < 2:
            state = desk._state("ida", Place(after=key))
            continue
        sent = json.dumps({"annotator": "ida", "key": key, "typed": [str(score)]}).encode()
        with desk.answer(Asked("/label", sent=sent)).body as body:
            state = json.load(body)
    desk.close()
    found = calibrate(str(run), CalibrationWanted(labels=out), Options(), Observer())[1]
    corrected: dict[str, Any] = found["judges"]["groundedness"]["corrected"]["score"]
    return corrected


def human(number: int) -> int:
    """What people would say of a case."""
    return max(0, score_of(number) - (number % 3 == 0))


@pytest.mark.slow
def test_the_mean_of_labels_of_the_page_is_right_as_often_as_it_says(tmp_path: Path) -> None:
    run = stored_run(tmp_path, 200, case_id=lambda number: f"case-{number}")
    truth = [human(number) for number in range(200) if number % 50 != 49]
    mean = sum(truth) / len(truth)
    found = [labelled_run(run, seed, 60) for seed in range(60)]
    assert {item["target"] for item in found} == {"run"}
    n_right = sum(item["low"] <= mean <= item["high"] for item in found)
    # of 60 intervals of 95%, 51 or fewer hold the mean in one of 500 trials
    assert n_right >= 52
    assert sum(item["estimate"] - mean for item in found) / 60 == pytest.approx(0, abs=0.05)


@pytest.mark.slow
def test_labels_with_skipped_cases_are_not_taken_for_a_random_part(tmp_path: Path) -> None:
    run = stored_run(tmp_path, 200, case_id=lambda number: f"case-{number}")
    found = labelled_run(run, 1, 60, skip=True)
    assert found["target"] == "population"
    assert "of the sheet skipped" in found["target_reason"]
