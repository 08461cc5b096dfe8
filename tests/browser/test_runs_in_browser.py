"""The list of runs answers what changed and what it cost, filters, compares two runs, and shows new ones."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.workflows.view import open_server
from tests.browser.conftest import Watched
from tests.browser.test_accessibility import violations
from tests.builders import output, write_suite

pytestmark = pytest.mark.slow

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    judgekit.run(write_suite(tmp_path / "old", name="kilns"), results_dir=folder, run_id="week-1")
    worse = [output(f"c{number}", answer="Nothing of this is known anywhere.") for number in range(6)]
    judgekit.run(write_suite(tmp_path / "new", name="kilns", output_rows=worse), results_dir=folder, run_id="week-2")
    judgekit.run(write_suite(tmp_path / "other", name="boats"), results_dir=folder, run_id="boats-1")
    manifest = folder / "boats-1" / "manifest.json"
    document = json.loads(manifest.read_text()) | {"name": HOSTILE, "status": "interrupted", "reason": HOSTILE}
    manifest.write_text(json.dumps(document))
    return folder


@pytest.fixture
def address(results: Path) -> Iterator[str]:
    with open_server(results, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    yield Watched(context.new_page())
    context.close()


def shown(page: Any) -> list[str]:
    return [row.locator("th a").inner_text() for row in page.locator("#runs tbody tr:visible").all()]


def test_the_first_screen_says_what_changed_and_what_it_cost(watched: Watched, address: str) -> None:
    page = watched.page
    page.goto(address)
    row = page.locator("#runs tbody tr", has=page.get_by_role("link", name="week-2", exact=True))
    assert "groundedness 5.0 of 5 to " in row.inner_text() or "groundedness 5.00 of 5 to " in row.inner_text()
    assert "no model was called" in row.inner_text()
    row.get_by_role("link", name="Compare week-2 with week-1").click()
    assert page.title() == "week-1 and week-2"
    assert watched.troubles == []


def test_two_chosen_runs_are_compared_the_earlier_first(watched: Watched, address: str) -> None:
    page = watched.page
    page.goto(address)
    assert page.locator("#compare").is_disabled()
    for name in ("week-2", "week-1"):
        page.get_by_label(f"Choose {name} to compare").check()
    page.locator("#compare").click()
    page.wait_for_url("**/compare/week-1/week-2")
    assert watched.troubles == []


def test_filters_and_hostile_names(watched: Watched, address: str) -> None:
    page = watched.page
    page.goto(address)
    assert set(shown(page)) == {"week-1", "week-2", "boats-1"}
    page.locator("#suite").select_option("kilns")
    assert set(shown(page)) == {"week-1", "week-2"}
    page.locator("#text").fill("week-1")
    assert shown(page) == ["week-1"]
    page.locator("#text").fill("")
    page.locator("#suite").select_option("")
    page.locator("#state").select_option("interrupted")
    assert shown(page) == ["boats-1"]
    assert HOSTILE in page.locator("#runs tbody tr:visible").inner_text()
    assert "judgekit run --resume boats-1" in page.locator("#runs .bad-text:visible").first.inner_text()
    assert watched.troubles == []


def test_a_new_run_comes_without_loading_the_page_again(watched: Watched, address: str, tmp_path: Path) -> None:
    page = watched.page
    page.goto(address)
    page.evaluate("window.stayed = true")
    page.locator("#suite").select_option("kilns")
    page.get_by_label("Choose week-1 to compare").check()
    judgekit.run(write_suite(tmp_path / "more", name="kilns"), results_dir=tmp_path / "results", run_id="week-3")
    page.get_by_role("link", name="week-3", exact=True).wait_for(timeout=15_000)
    assert page.evaluate("window.stayed")
    assert set(shown(page)) == {"week-1", "week-2", "week-3"}
    assert page.get_by_label("Choose week-1 to compare").is_checked()
    assert watched.troubles == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_on_a_phone(browser: Any, address: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("document.querySelector('#runs').scrollWidth") <= 390
    assert violations(page) == []
    context.close()
