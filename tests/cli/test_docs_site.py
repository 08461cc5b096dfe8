"""The documentation site builds offline, with every link and anchor, and holds what it makes from the program."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import REPOSITORY

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    pytest.importorskip("furo")
    options = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(folder / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, "docs", str(folder / "html")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_the_site_builds_without_a_warning_and_reaches_every_page(site: Path) -> None:
    index = (site / "index.html").read_text(encoding="utf-8")
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    written = {path.relative_to(REPOSITORY / "docs").with_suffix(".html").as_posix() for path in _pages()}
    assert written <= pages
    assert [page for page in written if f'href="{page}"' not in index and page != "index.html"] == []


def test_the_reference_comes_from_the_program(site: Path) -> None:
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "judgekit runs trend" in commands
    assert "--stats" in commands
    keys = (site / "reference" / "config-keys.html").read_text(encoding="utf-8")
    assert "spot_check" in keys
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert "assert_gates" in python


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert 'src="http' not in text, path
        assert 'rel="stylesheet" type="text/css" href="http' not in text, path


def _pages() -> list[Path]:
    docs = REPOSITORY / "docs"
    return [path for path in docs.rglob("*.md") if "_build" not in path.parts]
