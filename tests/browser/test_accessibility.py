"""No violation that axe-core finds, in light and dark, on every page and with a case open."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.reports.runs_page import render_message, render_runs
from judgekit.storage.run_list import list_runs
from judgekit.workflows.local_page import Asked
from judgekit.workflows.report import write_report
from judgekit.workflows.view import ResultsViewer
from tests.browser.full_run import write_full_run
from tests.browser.test_comparison_in_browser import wide_page_of
from tests.run_folders import write_run
from tests.workflows.test_answers_that_differ import suite as answers_that_differ

pytestmark = pytest.mark.slow

PAGES = [
    "quickstart/report.html",
    "full/report.html",
    "large/report.html",
    "repeats/report.html",
    "killed/report.html",
    "list.html",
    "message.html",
    "compare.html",
    "drift.html",
    "trend.html",
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    judgekit.run("quickstart", results_dir=folder, run_id="quickstart")
    write_full_run(folder)
    write_report(write_run(folder / "large", 3000))
    judgekit.run(answers_that_differ(folder / "answers"), results_dir=folder, run_id="repeats")
    write_report(write_run(folder / "killed", 60, n_judged=20, status="running"))
    (folder / "list.html").write_text(render_runs("results", list_runs(folder)), encoding="utf-8")
    (folder / "message.html").write_text(render_message("Not found", "There is no such page."), encoding="utf-8")
    viewer = ResultsViewer(folder)
    for name, target in (("drift", "/drift"), ("trend", "/trend/groundedness")):
        (folder / f"{name}.html").write_bytes(viewer.answer(Asked(target)).body.read())
    assert "groundedness v1" in (folder / "drift.html").read_text(encoding="utf-8")
    shutil.copy(wide_page_of(folder / "compared"), folder / "compare.html")
    return folder


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    # axe-core is a script of another origin; the page's own policy would not let it in.
    context = browser.new_context(
        color_scheme=request.param, bypass_csp=True, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    yield context.new_page()
    context.close()


def violations(page: Any) -> list[str]:
    """What axe-core finds; passes are left out, which are much larger."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{item['id']}: {node['target']} {node.get('failureSummary', '')}" for item in found for node in item["nodes"]
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_violation(page: Any, results: Path, name: str) -> None:
    page.goto((results / name).as_uri())
    page.wait_for_timeout(300)
    page.evaluate("document.querySelectorAll('details').forEach((node) => { node.open = true; })")
    assert violations(page) == []
    tabs = page.locator("nav.sections a").all() if name.endswith("report.html") else []  # other pages have no tabs
    for link in tabs:
        link.click()
        page.wait_for_selector(f"{link.get_attribute('href')}.shown")
        assert violations(page) == []


@pytest.mark.parametrize(
    "name", ["quickstart/report.html", "quickstart/report.html#cases", "compare.html", "list.html"]
)
def test_a_page_has_no_violation_on_a_phone_and_is_no_wider(page: Any, results: Path, name: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{results.as_uri()}/{name}")
    page.wait_for_timeout(300)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("address", ["quickstart/report.html#case=q05-bosun", "full/report.html#case=q02-lamp-range"])
def test_an_open_case_has_no_violation(page: Any, results: Path, address: str) -> None:
    page.goto(f"{results.as_uri()}/{address}")
    page.wait_for_selector("#case-body h3")
    page.locator("#case-body details").first.evaluate("node => { node.open = true; }")
    assert violations(page) == []


def test_a_table_that_is_scrolled_filtered_and_sorted_has_no_violation(page: Any, results: Path) -> None:
    page.goto((results / "large/report.html").as_uri() + "#cases")
    page.locator("#failure").select_option(label="system: timeout")
    page.locator("#table thead button").first.click()
    page.locator("#table").evaluate("box => { box.scrollTop = 400; }")
    page.wait_for_timeout(200)
    assert violations(page) == []
