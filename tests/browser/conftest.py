"""A browser for tests of pages: the system's Chromium, driven by Playwright. Without either, they are skipped."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = os.environ.get("JUDGEKIT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Watched:
    """A page, with everything that it should not have done."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.requests: list[str] = []
        self.troubles: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self._note(message.type, message.text))
        page.on("pageerror", lambda error: self._note("error", str(error)))
        page.on("dialog", self._dismiss)

    def _note(self, kind: str, text: str) -> None:
        if kind in ("error", "warning", "dialog"):
            self.troubles.append(f"{kind}: {text}")

    def _dismiss(self, dialog: Any) -> None:
        self._note("dialog", dialog.message)
        dialog.dismiss()

    def opened(self, path: Path, fragment: str = "") -> Any:
        """The page of a file, once its script has run."""
        self.page.goto(path.resolve().as_uri() + fragment)
        self.page.wait_for_selector("#count:not(:empty)", state="attached")
        return self.page

    def check(self) -> None:
        """It asked for nothing but itself, and nothing went wrong."""
        assert self.troubles == []
        assert len({url.split("#")[0] for url in self.requests}) == 1, self.requests


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of one file: while it runs, its event loop stands in the way of those of other tests."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium, or name one in JUDGEKIT_CHROMIUM")
    with playwright.sync_playwright() as driver:
        # Chromium has no sandbox for root, as which CI runs.
        arguments = ["--no-sandbox"] if os.getuid() == 0 else []
        try:
            found = driver.chromium.launch(executable_path=CHROMIUM, args=arguments)
        except playwright.Error as error:
            pytest.skip(f"{CHROMIUM} does not start: {str(error).splitlines()[0]}")
        yield found
        found.close()


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """A page that is checked when the test is over."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    page = Watched(context.new_page())
    yield page
    context.close()
    page.check()
