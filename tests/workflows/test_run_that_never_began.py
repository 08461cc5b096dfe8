"""What is to be mended in the data is found before any call, and leaves nothing that looks like a run."""

from pathlib import Path

import pytest

import judgekit
from judgekit.core.errors import ConfigError, InputError
from judgekit.testing import FaultServer
from tests.builders import case, output, write_suite
from tests.cli.fork_server import judgekit as command
from tests.cli.fork_server import one_error_line
from tests.workflows.engine import good

WITHOUT_ANSWERS = [{"case_id": "a", "retrieved": []}]


def test_data_to_be_mended_leave_no_folder_and_the_same_run_id_can_be_taken_again(tmp_path: Path) -> None:
    config = write_suite(tmp_path, case_rows=[case("a")], output_rows=WITHOUT_ANSWERS)
    with pytest.raises(InputError, match="judge groundedness needs answer, which no output has"):
        judgekit.run(config, run_id="r")
    assert not (tmp_path / "results" / "r").exists()
    write_suite(tmp_path, case_rows=[case("a")], output_rows=[output("a")])
    assert judgekit.run(config, run_id="r").status == "complete"


def test_the_command_names_no_run_folder_then(tmp_path: Path) -> None:
    write_suite(tmp_path, case_rows=[case("a")], output_rows=WITHOUT_ANSWERS)
    result = command("run", "config.json", "-q", cwd=tmp_path)
    assert result.returncode == 2
    assert one_error_line(result).startswith("judge groundedness needs answer")
    assert "run folder" not in result.stderr
    assert list((tmp_path / "results").iterdir()) == []


def test_a_run_that_has_begun_keeps_its_folder_whatever_is_found_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise ConfigError("found late")

    with FaultServer(good()) as server:
        config = write_suite(tmp_path, server.base_url)
        with monkeypatch.context() as patched:
            patched.setattr("judgekit.workflows.run.conclude", lambda *_: wrong())
            with pytest.raises(ConfigError, match="found late"):
                judgekit.run(config, run_id="r")
    assert len((tmp_path / "results" / "r" / "judgments.jsonl").read_text(encoding="utf-8").splitlines()) == 6
