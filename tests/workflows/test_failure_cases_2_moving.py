"""Runs of a project that was moved or renamed between start and resume."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from judgekit.core.errors import ConfigError, Interrupted
from judgekit.testing import FaultServer
from tests.builders import read_json, write_suite
from tests.workflows.engine import Ran, again, good, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")


def moved(ran: Ran, place: Path) -> Ran:
    project = ran.config.parent
    shutil.move(project, place)
    return replace(ran, config=place / ran.config.name, folder=place / ran.folder.relative_to(project))


def stopped(project: Path, server: FaultServer) -> Ran:
    """A run that its budget stopped; the config then allows any number of calls."""
    project.mkdir()
    ran = again(write_suite(project, server.base_url, budget={"max_calls": 3}), server)
    assert isinstance(ran.error, Interrupted)
    write_suite(project, server.base_url, budget={})
    return ran


def test_t2_25_a_run_of_a_moved_project_is_resumed_with_the_config_above_it(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = moved(stopped(tmp_path / "project", server), tmp_path / "project2")
        whole = resumed(ran)
        assert whole.error is None
        assert whole.metrics["overall"]["groundedness"]["n"] == 6
    assert read_json(whole.folder / "manifest.json")["config_path"] == str(tmp_path / "project2" / ran.config.name)


def test_t2_25_where_the_config_is_gone_the_command_that_names_one_is_said(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = moved(stopped(tmp_path / "project", server), tmp_path / "project2")
        ran.config.rename(tmp_path / "other.json")
        error = resumed(ran).error
    assert isinstance(error, ConfigError)
    assert f"name it: judgekit run CONFIG --resume {ran.folder}" in str(error)


def test_t2_25_another_config_of_the_same_name_is_not_taken_for_it(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        ran = moved(stopped(tmp_path / "project", server), tmp_path / "project2")
        write_suite(ran.config.parent, server.base_url, budget={}, seed=7)
        error = resumed(ran).error
    assert isinstance(error, ConfigError)
    assert "cannot be resumed, since seed changed" in str(error)


def test_t2_25_a_config_in_a_folder_of_the_project_is_found_where_that_was_moved(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        project = tmp_path / "project"
        project.mkdir()
        ran = stopped(project / "configs", server)
        folder = project / "results" / ran.folder.name
        folder.parent.mkdir()
        shutil.move(ran.folder, folder)
        shutil.move(project, tmp_path / "project2")
        place = tmp_path / "project2"
        whole = resumed(
            replace(ran, config=place / "configs" / ran.config.name, folder=place / "results" / folder.name)
        )
    assert whole.error is None
    assert whole.metrics["overall"]["groundedness"]["n"] == 6
