"""People label on the page, by keyboard and pointer, in one tab and in two, and hostile texts stay texts."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.testing import FaultServer, Reply, Request, chat_reply, verdict
from judgekit.workflows.label import LabelWanted, open_labels
from judgekit.workflows.label_web import LabelDesk, open_desk
from judgekit.workflows.models import Options
from tests.browser.test_accessibility import violations
from tests.builders import case, output, read_lines, write_suite

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
RULES = [{"id": "short", "text": "It is short."}, {"id": "kiln", "text": "It names a kiln."}]
TONE = {
    "name": "tone",
    "model": "m",
    "ask": "How does the answer sound?",
    "labels": {"warm": "friendly", "cold": HOSTILE},
    "cannot_tell": True,
}
CHECKS = {
    "name": "checks",
    "model": "m",
    "ask": "Is the answer fit to be sent?",
    "criteria": RULES,
    "cannot_tell": True,
}


def judged(request: Request) -> Reply:
    """What the judges say, which is never shown."""
    if "How does the answer sound?" in request.text:
        return chat_reply(json.dumps({"reasoning": "NEVER-TOLD", "label": "warm"}))
    if "fit to be sent" in request.text:
        met = [{"id": name, "evidence": "NEVER-TOLD", "met": True} for name in ("short", "kiln")]
        return chat_reply(json.dumps({"reasoning": "NEVER-TOLD", "criteria": met}))
    return verdict(1, supported=["NEVER-TOLD"])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suite")
    cases = [{**case(f"c{n}"), "question": f"How hot is kiln {n}? {HOSTILE}"} for n in range(6)]
    outputs = [{**output(f"c{n}"), "answer": f"Kiln {n} is hot. {HOSTILE}"} for n in range(6)]
    judges = [{"name": "groundedness", "model": "m"}, TONE, CHECKS]
    with FaultServer(judged) as server:
        path = write_suite(folder, server.base_url, case_rows=cases, output_rows=outputs, judges=judges)
        judgekit.run(path, run_id="r")
    assert "NEVER-TOLD" in (folder / "results" / "r" / "judgments.jsonl").read_text()
    return folder / "results" / "r"


class Labelled:
    """A page that is served, and what comes into the file."""

    def __init__(self, page: Any, address: str, out: Path) -> None:
        self.page = page
        self.address = address
        self.out = out

    def open(self, page: Any = None) -> Any:
        page = page or self.page
        page.goto(self.address)
        page.wait_for_selector("#case-id:not(:empty)")
        return page

    def until(self, text: str, page: Any = None) -> None:
        (page or self.page).wait_for_function("text => document.body.innerText.includes(text)", arg=text)

    def rows(self) -> list[dict[str, Any]]:
        return [row for row in read_lines(self.out) if "sheet" not in row]


@contextmanager
def served(run: Path, out: Path, judge: str) -> Iterator[str]:
    desk = LabelDesk(open_labels(str(run), LabelWanted(judge=judge, annotator="ida", out=out), Options()))
    with open_desk(desk, 0, "token") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/?token=token"
        finally:
            server.shutdown()
            thread.join()
            desk.close()


@pytest.fixture(params=["groundedness"])
def labelled(request: pytest.FixtureRequest, browser: Any, run: Path, tmp_path: Path) -> Iterator[Labelled]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    troubles: list[str] = []

    def dismiss(dialog: Any) -> None:
        troubles.append(dialog.message)
        dialog.dismiss()

    context.on("console", lambda message: troubles.append(message.text) if message.type == "error" else None)
    context.on("weberror", lambda error: troubles.append(str(error.error)))
    context.on("dialog", dismiss)
    with served(run, tmp_path / "labels.jsonl", request.param) as address:
        yield Labelled(context.new_page(), address, tmp_path / "labels.jsonl")
        context.close()
    assert troubles == []


def test_a_person_labels_everything_by_keyboard(labelled: Labelled) -> None:
    page = labelled.open()
    keys = page.keyboard
    assert "Kiln" in page.inner_text("#shown")
    assert HOSTILE in page.inner_text("#shown")
    assert page.locator("#shown img, #shown script").count() == 0
    keys.press("Enter")
    labelled.until("Choose a label first.")
    keys.press("2")
    keys.press("4")  # another thought; 24 is no score
    keys.press("m")
    keys.type("n is a comment, 0 too")
    keys.press("Control+Enter")
    labelled.until("Case 2 of 6, 1 labelled by ida")
    keys.press("5")
    keys.press("Enter")
    labelled.until("Case 3 of 6, 2 labelled by ida")
    keys.press("u")
    labelled.until("Case 2 of 6, 1 labelled by ida")
    keys.press("1")
    keys.press("Enter")
    labelled.until("Case 3 of 6, 2 labelled by ida")
    keys.press("s")
    labelled.until("Case 4 of 6")
    for number in (4, 5, 6):
        labelled.until(f"Case {number} of 6")
        keys.press("3")
        keys.press("Enter")
    labelled.until("You are at the end")
    page.click("#open-ones")
    labelled.until("Case 3 of 6, 5 labelled by ida")
    keys.press("0")
    keys.press("Enter")
    labelled.until("All cases are labelled")
    assert "judgekit calibrate r --judge groundedness" in page.inner_text("#next")
    rows = labelled.rows()
    assert [row.get("score", "taken back") for row in rows] == [4, 5, "taken back", 1, 3, 3, 3, 0]
    assert rows[0]["comment"] == "n is a comment, 0 too"


def test_what_is_not_saved_is_still_there_after_going_on_and_back(labelled: Labelled) -> None:
    page = labelled.open()
    page.keyboard.press("2")
    page.fill("#comment", "half a thought")
    page.click("#skip")
    labelled.until("Case 2 of 6")
    assert page.input_value("#comment") == ""
    page.click("#back")
    labelled.until("Case 1 of 6")
    assert page.input_value("#comment") == "half a thought"
    assert page.locator("#questions :checked").get_attribute("value") == "2"


def test_two_tabs_of_one_person_lose_nothing(labelled: Labelled) -> None:
    one = labelled.open()
    other = labelled.open(one.context.new_page())
    one.keyboard.press("4")
    one.keyboard.press("Enter")
    labelled.until("Case 2 of 6, 1 labelled", one)
    other.keyboard.press("2")
    other.keyboard.press("Enter")
    labelled.until("another tab had saved 4 before", other)
    one.keyboard.press("3")
    one.keyboard.press("Enter")
    labelled.until("Case 3 of 6, 2 labelled", one)
    assert [row["score"] for row in labelled.rows()] == [4, 2, 3]


def test_a_second_person_takes_a_name_and_both_see_how_far_they_agree(labelled: Labelled) -> None:
    page = labelled.open()
    for number in range(1, 7):
        labelled.until(f"{number - 1} labelled by ida")
        page.keyboard.press(str(number % 6))
        page.keyboard.press("Enter")
    labelled.until("All cases are labelled")
    page.select_option("#who", label="someone else\u2026")
    page.fill("#name", "tom <b>")
    page.click("#new-name button")
    labelled.until("Case 1 of 6, 0 labelled by tom <b>")
    assert page.locator("#questions :checked").count() == 0
    for number in range(1, 7):
        labelled.until(f"{number - 1} labelled by tom")
        page.keyboard.press(str(number % 6))
        page.keyboard.press("Enter")
    labelled.until("ida and tom <b>: 6 cases labelled by both, the same label in 6 of 6 (100%), kappa 1.00")
    page.reload()
    labelled.until("6 labelled by tom <b>")
    assert page.locator("#agreement b").count() == 0


def test_a_page_whose_server_is_gone_keeps_what_was_chosen(browser: Any, run: Path, tmp_path: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    with served(run, tmp_path / "labels.jsonl", "groundedness") as address:
        page.goto(address)
        page.wait_for_selector("#case-id:not(:empty)")
        page.keyboard.press("4")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.getElementById('message').textContent.includes('does not answer')")
    assert page.locator("#questions :checked").get_attribute("value") == "4"
    context.close()


@pytest.mark.parametrize("labelled", ["checks"], indirect=True)
def test_criteria_are_answered_one_after_the_other(labelled: Labelled) -> None:
    page = labelled.open()
    assert "It names a kiln." in page.inner_text("#questions")
    page.keyboard.press("y")
    page.keyboard.press("Enter")
    labelled.until("Answer every criterion first.")
    page.keyboard.press("?")
    page.keyboard.press("Enter")
    labelled.until("Case 2 of 6, 1 labelled")
    first, second = labelled.rows()[0]["label"].items()
    assert {first[0], second[0]} == {"short", "kiln"}
    assert (first[1], second[1]) == (True, "cannot tell")
    page.keyboard.press("b")
    labelled.until(f"You said: {first[0]} yes, {second[0]} cannot tell")
    assert page.locator("#questions :checked").count() == 2


@pytest.mark.parametrize("labelled", ["tone"], indirect=True)
def test_labels_have_numbers_and_meanings(labelled: Labelled) -> None:
    page = labelled.open()
    assert "How does the answer sound?" in page.inner_text("#questions legend")
    assert HOSTILE in page.inner_text("#questions")
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    labelled.until("Case 2 of 6, 1 labelled")
    page.keyboard.press("c")
    page.keyboard.press("Enter")
    labelled.until("Case 3 of 6, 2 labelled")
    assert [row["label"] for row in labelled.rows()] == ["cold", "cannot tell"]


@pytest.mark.parametrize("judge", ["groundedness", "tone", "checks"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_has_no_violation_and_fits(
    browser: Any, run: Path, tmp_path: Path, judge: str, scheme: Any, width: int
) -> None:
    # axe-core is a script of another origin; the page's own policy would not let it in.
    context = browser.new_context(
        color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 900}, reduced_motion="reduce"
    )
    page = context.new_page()
    with served(run, tmp_path / "labels.jsonl", judge) as address:
        page.goto(address)
        page.wait_for_selector("#case-id:not(:empty)")
        page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.select_option("#who", label="someone else\u2026")
        assert violations(page) == []
        while page.is_visible("#work"):
            assert "NEVER-TOLD" not in page.content()
            before = page.inner_text("#place")
            page.click("#skip")
            page.wait_for_function("text => document.getElementById('place').innerText !== text", arg=before)
        assert violations(page) == []
        context.close()
