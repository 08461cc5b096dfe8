"""Take the pictures of the gallery from real runs of the shipped example: `make gallery`."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent / "images"
EXAMPLE = Path(__file__).parents[1] / "configs"


def judgekit(*words: str, cwd: Path) -> None:
    subprocess.run([sys.executable, "-m", "judgekit", *words], cwd=cwd, check=True, stdout=subprocess.DEVNULL)


def prepare(folder: Path) -> None:
    """Two runs of the example and their comparison; the second system forgets some answers."""
    shutil.copytree(EXAMPLE, folder / "configs")
    outputs = folder / "configs" / "quickstart" / "outputs.jsonl"
    judgekit("run", "configs/quickstart.json", "--run-id", "last-week", "-q", cwd=folder)
    rows = [json.loads(line) for line in outputs.read_text(encoding="utf-8").splitlines()]
    for place, row in enumerate(rows):
        if place % 8 == 2 and row.get("answer"):
            row["answer"] = f"{row['answer'].split('. ')[0]}. The goat knows the rest."
    outputs.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    judgekit("run", "configs/quickstart.json", "--run-id", "today", "-q", cwd=folder)
    judgekit("compare", "last-week", "today", "--format", "html", "--out", "compare.html", cwd=folder)


@contextmanager
def viewer(folder: Path) -> Iterator[str]:
    """The address of `judgekit view` while it runs."""
    command = [sys.executable, "-m", "judgekit", "view", "--no-open", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    guard = threading.Timer(60, process.kill)
    guard.start()
    try:
        yield next(word for line in process.stdout or () for word in line.split() if urlsplit(word).scheme == "http")
    finally:
        guard.cancel()
        process.terminate()


def shoot(
    browser: Browser, address: str, name: str, size: tuple[int, int] = (1280, 860), *, dark: bool = False
) -> None:
    scheme = "dark" if dark else "light"
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_timeout(700)
    page.screenshot(path=IMAGES / f"{name}.png")
    page.close()


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright, viewer_of(Path(name)) as address:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        report = (Path(name) / "results" / "today" / "report.html").as_uri()
        shoot(browser, report, "report")
        shoot(browser, report, "report-phone", (390, 780), dark=True)
        shoot(browser, (Path(name) / "compare.html").as_uri(), "compare")
        shoot(browser, address, "view")
        browser.close()


@contextmanager
def viewer_of(folder: Path) -> Iterator[str]:
    prepare(folder)
    with viewer(folder) as address:
        yield address


def chromium() -> str | None:
    """The browser: of the environment, else of the system, else playwright's own."""
    return os.environ.get("JUDGEKIT_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


if __name__ == "__main__":
    main()
