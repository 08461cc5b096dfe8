"""What the report says of judges, in a browser: every part, by keyboard, on a narrow screen and on paper."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Watched
from tests.browser.full_run import FABRICATED, REAL, WHO, write_full_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_full_run(tmp_path_factory.mktemp("full"))


def block(page: Any, judge: str) -> Any:
    return page.locator("details.judge").filter(has=page.get_by_role("heading", name=judge, exact=True))


def headings(found: Any) -> list[str]:
    return list(found.locator("h4").all_text_contents())


def test_each_judge_has_its_parts_and_no_others(watched: Watched, full: Path) -> None:
    page = watched.opened(full, "#judges")
    assert headings(block(page, "groundedness")) == [
        "Spot check",
        "Against people",
        "The run as people would score it",
        "What the second opinion is worth",
        "Probes",
        "Against the run that it judges again",
        "Drift",
    ]
    assert headings(block(page, "correctness"))[:2] == ["Panel", "Against people"]
    badges = block(page, "groundedness").locator("summary .badge").all_text_contents()
    assert badges[0].startswith("spot check: ")
    assert page.get_by_role("heading", name="Bridge from first").is_visible()
    spot_checks = block(page, "groundedness").locator("tbody").first.locator("tr").all_text_contents()
    assert len(spot_checks) == 3  # another wording, the judge itself, and another model
    assert "The same judge, asked again within a day, 0 of 20 verdicts flip" in block(page, "groundedness").inner_text()


def test_intervals_are_drawn_and_said(watched: Watched, full: Path) -> None:
    page = watched.opened(full, "#judges")
    row = page.locator(".probes tbody tr", has_text="blank_answer").first
    assert row.locator("svg .mark").count() == 1
    assert row.locator("svg .limit").count() == 1
    assert " to " in row.inner_text()
    table = block(page, "correctness").locator("table.confusion")
    counts = [int(text) for text in table.locator("td.num").all_text_contents()]
    assert len(counts) == 36
    assert sum(counts) == 28
    assert table.locator("td.same").count() == 6
    assert block(page, "groundedness").locator("svg.timeline rect").count() >= 2


def test_a_case_has_labels_of_people_and_quotes_real_and_made_up(watched: Watched, full: Path) -> None:
    page = watched.opened(full, "#case=q02-lamp-range")
    page.wait_for_selector("#case-body h3")
    body = page.locator("#case-body")
    own = body.locator(".box", has_text="verdict of the run").first
    assert own.locator(".quote", has_text=REAL).locator(".badge").text_content() == "real"
    assert own.locator(".quote", has_text=FABRICATED).locator(".badge").text_content() == "fabricated"
    assert body.locator("mark.quote").first.text_content() == REAL.rstrip(".")
    assert "99" not in "".join(body.locator("mark.quote").all_text_contents())
    people = body.locator(".people").first
    assert WHO in people.inner_text()
    assert "mira" in people.inner_text()
    assert "Counts as an answer, by its own flag." in body.inner_text()
    heads = body.locator(".opinions .box-head").all_text_contents()
    assert sum("member " in head for head in heads) == 3
    # drawn by a spot check or not, no second opinion stands twice
    assert len(set(heads)) == len(heads)


def test_a_changed_verdict_leads_to_its_case(watched: Watched, full: Path) -> None:
    page = watched.opened(full, "#judges")
    buttons = page.locator("button[data-case]")
    case_id = buttons.first.get_attribute("data-case")
    buttons.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#case-body h3")
    assert page.locator("#case-title").text_content() == case_id


@pytest.mark.parametrize("width", [400, 800, 1280])
def test_what_scrolls_can_be_reached_by_keyboard_and_the_page_does_not(
    watched: Watched, full: Path, width: int
) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    page = watched.opened(full, "#judges")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    unreachable = page.evaluate(
        """() => Array.from(document.querySelectorAll('#judges *')).filter((node) => {
          const style = getComputedStyle(node);
          const scrolls = ['auto', 'scroll'].includes(style.overflowX) && node.scrollWidth > node.clientWidth + 1;
          return scrolls && node.tabIndex < 0;
        }).map((node) => node.outerHTML.slice(0, 80))"""
    )
    assert unreachable == []
    if width == 400:
        region = page.get_by_role("region", name="Probes of groundedness")
        region.focus()
        page.keyboard.press("ArrowRight")
        page.wait_for_function("node => node.scrollLeft > 0", arg=region.element_handle())


def test_a_judge_folds_by_keyboard(watched: Watched, full: Path) -> None:
    page = watched.opened(full, "#judges")
    summary = block(page, "groundedness").locator("> summary")
    summary.focus()
    page.keyboard.press("Enter")
    assert block(page, "groundedness").get_attribute("open") is None
    page.keyboard.press("Enter")
    assert block(page, "groundedness").get_attribute("open") is not None


def test_on_paper_no_table_is_cut(watched: Watched, full: Path) -> None:
    watched.page.set_viewport_size({"width": 718, "height": 1000})  # A4 less its margins, at 96 dots an inch
    page = watched.opened(full, "#judges")
    page.emulate_media(media="print")
    too_wide = page.evaluate(
        """() => Array.from(document.querySelectorAll('#judges table')).filter(
          (table) => table.getBoundingClientRect().right > document.documentElement.clientWidth + 1
        ).map((table) => table.caption && table.caption.textContent)"""
    )
    assert too_wide == []
