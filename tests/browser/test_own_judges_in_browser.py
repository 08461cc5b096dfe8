"""Judges of the user's own in the report: their question, their labels as texts, and no colour where nothing passes."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.testing import FaultServer
from judgekit.workflows.report import write_report
from tests.browser.conftest import Watched
from tests.browser.test_accessibility import violations
from tests.browser.test_report_in_browser import settled
from tests.builders import read_lines, seal_again, write_lines
from tests.own_judges import BRAND, MEDICAL, OWN, RULES, STEADY, TONE, answering, own_suite, telling, without_pass

pytestmark = pytest.mark.slow

HOSTILE = "<img src=x onerror=alert(1)>"
VOICE: dict[str, Any] = {**telling(without_pass(BRAND)), "name": "voice", "ask": "Which voice has the answer?"}
VOICE["labels"] = {"on": "plain and friendly", "off": "stiff", "mixed": HOSTILE}
FAULTS: dict[str, Any] = {**RULES, "name": "faults", "ask": "Which faults has the answer?"}
FAULTS["criteria"] = [
    {"id": "short", "text": HOSTILE, "weight": 2},
    {"id": "rude", "text": "It is rude.", "weight": -1},
]
TEMPERATURE = {**TONE, "name": "warmth", "ask": "How warm is it?", "scale": [-3, 3], "levels": {"-3": "icy"}, "pass": 1}
JUDGES = (MEDICAL, VOICE, FAULTS, TEMPERATURE, BRAND)
SAYS = {
    **STEADY,
    "voice": lambda n: ("on", "off", "mixed", "cannot tell")[n % 4],
    "faults": lambda n: {"short": True, "rude": n % 2 == 0},
    "warmth": lambda n: n % 7 - 3,
}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("own")
    with FaultServer(answering(SAYS, judges=JUDGES)) as server:
        config = own_suite(folder, server, *JUDGES)
        judgekit.run(config, results_dir=folder / "results", run_id="own")
    yield folder / "results" / "own" / "report.html"


TOPIC = {"name": "topic", "ask": "Which topic has it?", "labels": {f"topic {n}": f"of kind {n}" for n in range(20)}}
CHECKS = {"name": "checks", "ask": "What holds?", "criteria": {f"c{n}": f"rule {n} holds" for n in range(12)}}
SIX = (*OWN, {**TOPIC, "model": "m"}, {**CHECKS, "model": "m"})
SIX_SAY = {
    **STEADY,
    "topic": lambda n: f"topic {n % 20}",
    "checks": lambda n: {f"c{place}": n % (place + 2) == 0 for place in range(12)},
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 50 cases with six judges that are data, each of its lines two hundred times, for 10,000 cases."""
    folder = tmp_path_factory.mktemp("large")
    with FaultServer(answering(SIX_SAY, judges=SIX)) as server:
        judgekit.run(own_suite(folder, server, *SIX, n_cases=50, report=False), results_dir=folder, run_id="own")
    run = folder / "own"
    for name in ("cases", "outputs", "judge_inputs", "judgments", "scores"):
        path, key = run / f"{name}.jsonl", "id" if name == "cases" else "case_id"
        rows = read_lines(path)
        write_lines(path, [{**row, key: f"{row[key]}-{copy}"} for copy in range(200) for row in rows])
    seal_again(run)
    return write_report(run)


def test_ten_thousand_cases_of_six_judges_are_shown_sorted_and_filtered_while_one_looks(
    watched: Watched, large: Path
) -> None:
    assert large.stat().st_size < 16_000_000
    page = watched.opened(large, "#cases")
    assert page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") < 2000
    assert page.locator("#count").text_content() == "10,000 cases"
    assert page.locator("#table tbody tr[data-row]").count() < 60
    seconds = page.evaluate(
        """async () => {
          const start = performance.now();
          [...document.querySelectorAll('#table thead button')].find((one) => one.textContent === 'medical').click();
          const sorted = performance.now();
          const topic = document.querySelector("select[data-dimension='topic']");
          topic.value = [...topic.options].find((option) => option.textContent === 'topic 7').value;
          topic.dispatchEvent(new Event('input', { bubbles: true }));
          topic.dispatchEvent(new Event('change', { bubbles: true }));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return [sorted - start, performance.now() - sorted];
        }"""
    )
    assert max(seconds) < 1000, seconds
    settled(page, "600 of 10,000 cases")


def opinion(page: Any, judge: str) -> Any:
    return page.locator(".opinions .box").filter(has=page.locator(".box-head strong", has_text=judge)).first


def test_a_judge_of_labels_is_one_column_of_texts_that_sorts_and_filters(watched: Watched, own: Path) -> None:
    page = watched.opened(own, "#cases")
    heads = page.locator("#table th").all_text_contents()
    assert heads[2:7] == ["medical", "voice", "faults", "warmth", "brand"]
    column = page.locator("#table td[aria-colindex='4']")
    assert set(column.all_text_contents()) == {"on", "off", "mixed", "cannot tell"}
    page.get_by_role("button", name="voice", exact=True).click()
    assert column.first.text_content() == "on"
    page.locator("select[data-dimension='voice']").select_option(label="cannot tell")
    settled(page, "3 of 12 cases")
    assert set(column.all_text_contents()) == {"cannot tell"}
    drawn = page.locator("#histograms h3").all_text_contents()
    assert "voice" in drawn
    assert not any(name.startswith("voice.o") for name in drawn)
    page.get_by_role("link", name="Slices", exact=True).click()
    page.locator("#histograms").get_by_role("button", name="voice off: 3 cases").click()
    settled(page, "3 of 12 cases")
    assert set(column.all_text_contents()) == {"off"}


def test_yes_and_no_are_said_and_sort_and_filter(watched: Watched, own: Path) -> None:
    page = watched.opened(own, "#cases")
    column = page.locator("#table td[aria-colindex='3']")
    assert set(column.all_text_contents()) == {"no", "yes"}
    page.get_by_role("button", name="medical", exact=True).click()
    assert column.first.text_content() == "no"
    page.locator("select[data-dimension='medical']").select_option(label="yes")
    settled(page, "3 of 12 cases")
    assert set(column.all_text_contents()) == {"yes"}
    # two bars say no more than the share does
    assert not any(name.startswith("medical") for name in page.locator("#histograms h3").all_text_contents())
    page.locator("select[data-dimension='medical']").select_option(label="no")
    settled(page, "9 of 12 cases")
    page.locator("#table tr[data-row]").first.click()
    listed = page.locator("#case .scores-list").last.inner_text()
    assert re.search(r"faults\.short\s+met", listed)
    assert re.search(r"medical_pass\s+pass", listed)


def test_the_question_stands_with_the_figures_of_its_answers(watched: Watched, own: Path) -> None:
    page = watched.opened(own, "#judges")
    page.evaluate("document.querySelectorAll('details.judge').forEach((node) => { node.open = true; })")
    voice = page.locator("details.judge").filter(has=page.get_by_role("heading", name="voice", exact=True))
    assert "Which voice has the answer?" in voice.inner_text()
    assert "nothing passes or fails" in voice.inner_text()
    rows = voice.locator("tbody").first.locator("tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["on", "off", "mixed", "cannot tell"]
    assert HOSTILE in rows[2]  # read as text
    assert voice.locator("tbody svg .band").count() >= 4
    faults = page.locator("details.judge").filter(has=page.get_by_role("heading", name="faults", exact=True))
    assert [row.split("\t")[2] for row in faults.locator("tbody").first.locator("tr").all_inner_texts()] == ["2", "-1"]


def test_a_verdict_is_good_or_bad_only_by_the_rule_of_its_judge(watched: Watched, own: Path) -> None:
    page = watched.opened(own, "#case=c2")
    page.wait_for_selector(".opinions .box")
    assert opinion(page, "voice").locator(".score").inner_text() == "mixed"
    assert HOSTILE in opinion(page, "voice").inner_text()
    assert opinion(page, "voice").locator(".badge").count() == 0
    assert opinion(page, "brand").locator(".badge.bad").all_text_contents() == ["fail"]
    assert opinion(page, "medical").locator(".score").inner_text().split() == ["no", "pass"]
    assert "-1 on -3 to 3" in opinion(page, "warmth").inner_text()
    listed = opinion(page, "faults").locator(".claims li")
    assert [item.locator(".badge").get_attribute("class") for item in listed.all()] == ["badge good", "badge bad"]
    assert "a fault, weight -1" in listed.nth(1).inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_violation_is_found(browser: Any, own: Path, scheme: Any) -> None:
    context = browser.new_context(color_scheme=scheme, bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"{own.as_uri()}#case=c2")
    page.wait_for_selector(".opinions .box")
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert violations(page) == []
    context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_does_not_scroll_sideways(watched: Watched, own: Path, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    page = watched.opened(own, "#cases")
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
