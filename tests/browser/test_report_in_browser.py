"""report.html in a browser: what a reader does with it, by mouse and by keyboard, and what a hostile run cannot do."""

import json
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.runs import Notice
from judgekit.reports.figures import number
from judgekit.storage.prompt_files import shipped
from judgekit.workflows.report import write_report
from tests.browser.conftest import Watched
from tests.builders import read_json, read_lines, write_lines
from tests.run_folders import answer_of, has_failed, question_of, score_of, write_run

pytestmark = pytest.mark.slow

N_CASES = 10_000


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("results")
    judgekit.run("quickstart", results_dir=results, run_id="q")
    return results / "q" / "report.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_run(tmp_path_factory.mktemp("large") / "run", N_CASES))


def count_of(page: Any) -> str:
    return str(page.locator("#count").text_content())


def first_row(page: Any) -> str:
    return str(page.locator("tr[data-row='0'] td").first.text_content())


def choose(page: Any, selector: str, **value: str) -> None:
    page.locator(selector).select_option(**value)


def settled(page: Any, text: str) -> None:
    page.wait_for_function("text => document.getElementById('count').textContent === text", arg=text)


def test_the_first_screen_says_what_was_measured(watched: Watched, quickstart: Path) -> None:
    page = watched.opened(quickstart)
    assert page.title() == "quickstart: complete"
    tile = page.locator(".tile").first.inner_text()
    figure = read_json(quickstart.parent / "metrics.json")["overall"]["groundedness"]
    assert tile.split("\n")[0] == "groundedness"
    assert f"{figure['value']:.1f} of 5" in tile
    assert f"{number(figure['low'], 1)} to {number(figure['high'], 1)}" in tile
    assert "higher is better" in tile
    assert "3 failed" in tile
    assert page.locator("#overview .notice.good").count() == 3
    assert "judge_unstable" in page.locator(".notice.warn").first.inner_text()


def test_a_case_opens_to_everything_that_is_known_of_it(watched: Watched, quickstart: Path) -> None:
    page = watched.opened(quickstart, "#case=q05-bosun")
    body = page.locator("#case-body")
    page.wait_for_selector("#case-body h3")
    assert page.locator("#case-title").text_content() == "q05-bosun"
    assert page.locator("#case-body mark.supported").first.text_content() == "The starter is called Bosun"
    assert "Lucasta Pemberwick" in page.locator("#case-body mark.unsupported").first.text_content()
    assert page.locator("#case-body .hit-match").count() >= 1
    titles = page.locator("#case-body h3").all_text_contents()
    assert [title.split(" (")[0] for title in titles] == [
        "Question",
        "Conversation",
        "Answer",
        "Expected",
        "Verdicts",
        "Contexts",
        "Citations",
        "Scores",
        "Latency",
        "Replies and prompts",
    ]
    body.locator("details summary").first.click()
    assert "<<<data answer " in body.locator("details").first.inner_text()
    assert '"unsupported_claims"' in body.locator("details").first.inner_text()


def test_disagreements_stand_side_by_side(watched: Watched, quickstart: Path) -> None:
    page = watched.opened(quickstart, "#judges")
    first = page.locator(".disagreement").first
    first.wait_for()
    boxes = first.locator(".box")
    assert boxes.count() == 2
    assert "verdict of the run" in boxes.nth(0).inner_text()
    assert "second opinion" in boxes.nth(1).inner_text()
    before = page.locator(".disagreement").count()
    page.locator("#disagreements > button").click()
    page.wait_for_function("n => document.querySelectorAll('.disagreement').length > n", arg=before)


def test_ten_thousand_cases_paint_at_once_and_draw_few_rows(watched: Watched, large: Path) -> None:
    page = watched.opened(large)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    assert paint < 2000
    assert count_of(page) == "10,000 cases"
    page.get_by_role("link", name="Cases", exact=True).click()
    assert page.locator("#table table").get_attribute("aria-rowcount") == "10001"
    assert page.locator("#table tbody tr[data-row]").count() < 60
    page.locator("#table").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_selector("tr[data-row='9999']")
    assert page.locator("tr[data-row='9999']").get_attribute("aria-rowindex") == "10001"


def test_ten_thousand_cases_are_sorted_and_filtered_while_one_looks(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#cases")
    seconds = page.evaluate(
        """async () => {
          const start = performance.now();
          document.querySelector('#table thead button:nth-of-type(1)').click();
          const sorted = performance.now();
          const box = document.getElementById('search');
          box.value = 'kiln 77';
          box.dispatchEvent(new Event('input', { bubbles: true }));
          await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
          return [sorted - start, performance.now() - sorted];
        }"""
    )
    assert max(seconds) < 1000, seconds
    texts = [f"{question_of(number)} {answer_of(number)}" for number in range(N_CASES)]
    n_found = sum("77" in text for text, number in zip(texts, range(N_CASES), strict=True) if not has_failed(number))
    n_found += sum("77" in question_of(number) for number in range(N_CASES) if has_failed(number))
    assert count_of(page) == f"{n_found} of 10,000 cases"


def test_filters_add_up_and_clear(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#cases")
    choose(page, "select[data-dimension='category']", label="reasoning")
    settled(page, "2,000 of 10,000 cases")
    choose(page, "#score", label="groundedness")
    choose(page, "#condition", value="eq")
    page.locator("#limit").fill("5")
    expected = [n for n in range(N_CASES) if n % 5 == 1 and score_of(n) == 5 and n % 50 != 49]
    settled(page, f"{len(expected)} of 10,000 cases")
    assert first_row(page) == f"c{expected[0]:05}"
    page.locator("#filters button[type=reset]").click()
    settled(page, "10,000 cases")
    choose(page, "#failure", label="system: timeout")
    settled(page, "200 of 10,000 cases")
    assert first_row(page) == "c00049"
    choose(page, "#failure", value="none")
    settled(page, "9,800 of 10,000 cases")


def test_sorting_puts_what_has_no_number_last(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#cases")
    header = page.locator("#table thead th", has_text="groundedness").first
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert page.locator("tr[data-row='0'] td").nth(2).text_content() == "0"
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "descending"
    assert page.locator("tr[data-row='0'] td").nth(2).text_content() == "5"
    page.locator("#table").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_selector("tr[data-row='9999']")
    assert page.locator("tr[data-row='9999'] td").nth(2).text_content() == "failed"


def test_the_table_can_be_worked_by_keyboard_alone(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#cases")
    page.locator("tr[data-row='0']").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.row") == "9999"
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case-body h3")
    assert page.locator("#case-title").text_content() == "c00006"  # the worst first: of those with 0 points, the second
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.getElementById('case-title').textContent === 'c00012'")
    page.keyboard.press("Escape")
    page.wait_for_selector("#case", state="hidden")
    assert page.evaluate("document.activeElement.dataset.row") == "2"


def test_a_slice_and_a_bar_lead_to_their_cases(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#slices")
    page.locator("button[data-value='conflict']").click()
    settled(page, "2,000 of 10,000 cases")
    page.go_back()
    page.locator("button[aria-label^='groundedness 4:']").click()
    settled(page, f"{sum(score_of(n) == 4 and n % 50 != 49 for n in range(N_CASES)):,} of 10,000 cases")


def test_columns_can_be_chosen(watched: Watched, large: Path) -> None:
    page = watched.opened(large, "#cases")
    page.locator("#pick summary").click()
    page.get_by_role("checkbox", name="groundedness_pass").uncheck()
    assert page.locator("#table thead th", has_text="groundedness_pass").count() == 0
    page.get_by_role("checkbox", name="groundedness_pass").check()
    assert page.locator("#table thead th", has_text="groundedness_pass").count() == 1


HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>x</a> \u202e{{ 7*7 }}"
)


def test_hostile_texts_are_read_and_never_run(watched: Watched, tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "run",
        12,
        answer=lambda _: f"{HOSTILE}. {HOSTILE} again",
        question=lambda _: HOSTILE,
        context=lambda _: HOSTILE,
        reasoning=lambda _: HOSTILE,
        label=HOSTILE,
        case_id=lambda number: f"{number}{HOSTILE}",
        warnings=(Notice(code=HOSTILE, message=HOSTILE),),
    )
    page = watched.opened(write_report(folder), "#cases")
    for place in range(3):
        page.locator(f"tr[data-row='{place}'] td").first.click()
        page.wait_for_selector("#case-body h3")
        page.keyboard.press("Escape")
    assert page.locator("img").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    shown = HOSTILE.replace("\u202e", "\ufffd")
    assert page.locator("tr[data-row='0'] .asked-text").text_content() == shown
    assert "49" not in page.locator("tr[data-row='0'] .texts").inner_text()
    page.goto(page.url.split("#")[0] + "#overview")
    assert shown in page.locator("#worst li").first.inner_text()
    assert page.evaluate("[...document.querySelector('#worst').childNodes].every((node) => node instanceof Element)")


def test_what_is_cut_says_how_long_it_was_and_where_the_rest_is(watched: Watched, tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", 2, answer=lambda _: "word " * 2_000_000, context=lambda _: "short")
    page = watched.opened(write_report(folder), "#cases")
    page.locator("tr[data-row='0'] td").first.click()
    page.wait_for_selector("#case-body .cut")
    assert page.locator("#case-body .cut").first.text_content() == (
        "The first 8,000 of 10,000,000 characters; the whole is in outputs.jsonl of the run folder."
    )


def test_a_run_that_was_killed_can_be_read(watched: Watched, tmp_path: Path) -> None:
    page = watched.opened(write_report(write_run(tmp_path / "run", 30, n_judged=9, status="running")))
    assert "Groundedness: 9 of 30 judged" in page.locator(".notice.bad").first.inner_text()
    page.get_by_role("link", name="Cases", exact=True).click()
    page.locator("tr[data-row='3'] td").first.click()
    page.wait_for_selector("#case-body mark.supported")


def test_it_prints_with_its_cases_and_without_its_controls(watched: Watched, large: Path) -> None:
    page = watched.opened(large)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("tr[data-row]").count() == 200
    assert not page.locator("#filters").is_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert page.locator("tr[data-row]").count() < 100


@pytest.mark.parametrize("width", [390, 800, 1280])
def test_the_page_itself_never_scrolls_sideways(watched: Watched, quickstart: Path, width: int) -> None:
    watched.page.set_viewport_size({"width": width, "height": 800})
    page = watched.opened(quickstart)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def worse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The second run of a suite, in which two of three answers became useless: one gate is missed."""
    folder = tmp_path_factory.mktemp("worse")
    data = shipped("configs") / "quickstart"
    config = read_json(shipped("configs") / "quickstart.json") | {"indexing": str(data / "indexing.jsonl")}
    config.pop("$schema")
    rows = read_lines(data / "outputs.jsonl")
    spoiled = [row | ({"answer": f"I do not know. {number}"} if number % 3 else {}) for number, row in enumerate(rows)]
    for run_id, outputs in (("before", rows), ("now", spoiled)):
        write_lines(folder / f"{run_id}.jsonl", outputs)
        config |= {"cases": str(data / "cases.jsonl"), "system": {"name": "recorded", "path": f"{run_id}.jsonl"}}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        judgekit.run(folder / "config.json", results_dir=folder / "results", run_id=run_id)
    return folder / "results/now/report.html"


def test_which_gate_failed_is_said_first(watched: Watched, worse: Path) -> None:
    page = watched.opened(worse)
    assert page.locator(".finding").inner_text().startswith("Not good enough: 1 of 3 gates missed.")
    first = page.locator("#overview .gates li").first
    assert first.locator("strong").inner_text() == "missed"
    assert "over_abstention_rate" in first.inner_text()


def test_what_changed_since_the_run_before_stands_with_each_figure(watched: Watched, worse: Path) -> None:
    page = watched.opened(worse)
    tile = page.locator(".tile", has_text="correctness")
    assert "worse: down from 3.2 of 5 on " in tile.locator(".bad-text").last.inner_text()
    assert tile.locator("svg .spark").count() == 1
    assert "The last 2 comparable runs: 3.2 of 5, 1.1 of 5." in tile.text_content()
    assert "judgekit compare before now" in page.locator("#overview").inner_text()
    assert "the same as on " in page.locator(".tile", has_text="recall_any@5").inner_text()
    assert page.locator(".tile .spark").count() == 5
    before = (worse.parent.parent / "before/report.html").read_text(encoding="utf-8")
    assert 'class="spark"' not in before  # it is the first run


def test_the_worst_answers_stand_there_with_the_judges_reason_and_open(watched: Watched, worse: Path) -> None:
    page = watched.opened(worse)
    card = page.locator("#worst li").first
    card.locator(".asked-text").wait_for()
    assert "I do not know." in card.inner_text()
    assert "groundedness 0 of 5" in card.inner_text()
    assert "Word-overlap baseline" in card.inner_text()
    case_id = card.get_by_role("button").text_content()
    card.get_by_role("button").click()
    page.wait_for_selector("#case-body h3")
    assert page.locator("#case-title").text_content() == case_id
    page.keyboard.press("Escape")
    assert page.locator("#overview").is_visible()
    page.get_by_role("button", name="All cases, worst first").click()
    assert first_row(page) == case_id
    assert "tint-0" in str(page.locator("tr[data-row='0'] td").nth(2).get_attribute("class"))


def test_whether_the_judge_can_be_trusted_is_said_and_one_click_away(watched: Watched, quickstart: Path) -> None:
    page = watched.opened(quickstart)
    finding = page.locator(".finding").inner_text()
    assert "Do not rely on correctness yet: a second judge contradicts it in 8 of 20 checked cases." in finding
    page.get_by_role("link", name="Judges", exact=True).click()
    assert page.locator("#judges .badge", has_text="spot check: alarm").first.is_visible()
    page.locator(".disagreement").first.wait_for()


def test_what_it_cost_is_said_and_one_click_away(watched: Watched, large: Path) -> None:
    page = watched.opened(large)
    assert "Cost: 9,800 calls" in page.locator("#overview").inner_text()
    page.get_by_role("link", name="Latency and cost").click()
    assert page.get_by_role("cell", name="9,800", exact=True).is_visible()


def test_keys_search_move_and_open(watched: Watched, large: Path) -> None:
    page = watched.opened(large)
    page.keyboard.press("/")
    page.keyboard.type("kiln 77")
    page.wait_for_function("() => document.getElementById('count').textContent.includes(' of ')")
    page.locator("#cases-title").click()
    for key in ("j", "j", "k", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#case-body h3")
    first = page.locator("#case-title").text_content()
    page.keyboard.press("j")
    page.wait_for_function("id => document.getElementById('case-title').textContent !== id", arg=first)
    page.keyboard.press("k")
    page.wait_for_function("id => document.getElementById('case-title').textContent === id", arg=first)


def test_each_tab_has_an_address_and_back_leads_back(watched: Watched, quickstart: Path) -> None:
    page = watched.opened(quickstart, "#distributions")
    assert page.locator("#slices").is_visible()
    assert not page.locator("#overview").is_visible()
    for name in ("Run", "Judges", "Cases", "Overview"):
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_selector(f"#{name.lower()}:visible")
        assert page.locator(".tab:visible").count() == 1
    page.go_back()
    page.wait_for_selector("#cases:visible")
    assert page.locator(".sections a[aria-current]").all_text_contents() == ["Cases"]


def test_without_its_script_everything_stands_one_below_the_other(browser: Any, quickstart: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(quickstart.as_uri())
    assert page.locator(".tab:visible").count() == 5
    context.close()


def test_on_a_phone_a_case_is_a_card_with_its_answer_and_scores(watched: Watched, quickstart: Path) -> None:
    watched.page.set_viewport_size({"width": 390, "height": 844})
    page = watched.opened(quickstart, "#cases")
    row = page.locator("tr[data-row='0']")
    # What the script takes for the height of a row, and enough for all that the card shows.
    assert row.bounding_box()["height"] == 150
    assert (
        page.evaluate("getComputedStyle(document.querySelector('#table')).getPropertyValue('--row').trim()") == "150px"
    )
    cut = "[...document.querySelectorAll('tr[data-row]')].filter(row => row.scrollHeight > row.clientHeight).length"
    assert page.evaluate(cut) == 0
    assert row.locator(".answer-text").is_visible()
    assert row.locator("td").nth(2).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#table").evaluate("box => { box.scrollTop = box.scrollHeight; }")
    page.wait_for_selector("tr[data-row='39']")
