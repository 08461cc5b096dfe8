"""Keys in the `.env` beside a config: used like those of the environment, and written nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import ConfigError
from judgekit.testing import FaultServer, Reply, error_reply
from judgekit.workflows.models import Options, variables_of
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.setup import set_up
from tests.builders import write_suite
from tests.workflows.engine import after_capabilities, again, good

KEY = "f00d-cafe-of-some-service-0123456789"


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def test_a_key_of_the_file_is_sent_and_masked_where_the_server_repeats_it(tmp_path: Path) -> None:
    seen: list[str] = []

    def answer(request: Any) -> Reply:
        seen.append(request.headers.get("authorization", ""))
        reply: Reply = after_capabilities(good(reasoning=f"your key is {KEY}"))(request)
        return reply

    with FaultServer(answer) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=2, model={"api_key_env": "MY_KEY"})
        (tmp_path / ".env").write_text(f"MY_KEY={KEY}\n")
        ran = again(config, server)
    assert ran.error is None
    assert set(seen) == {f"Bearer {KEY}"}
    assert b"f00d-cafe" not in everything_in(tmp_path / "results")


def test_a_refusal_that_quotes_the_key_does_not_show_it(tmp_path: Path) -> None:
    with FaultServer(error_reply(401, f"Incorrect API key provided: {KEY}")) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=1, model={"api_key_env": "MY_KEY"})
        (tmp_path / ".env").write_text(f"MY_KEY={KEY}\n")
        ran = again(config, server)
    assert ran.error is not None
    assert "f00d-cafe" not in str(ran.error)


def test_what_the_environment_says_counts(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB=file\n")
    found = variables_of(tmp_path / "config.json", Options(environment={"A": "real", "C": "real"}))
    assert dict(found) == {"A": "real", "B": "file", "C": "real"}


def test_a_bad_line_is_found_before_any_call(tmp_path: Path) -> None:
    config = write_suite(tmp_path, "http://127.0.0.1:9/v1", model={"api_key_env": "MY_KEY"})
    (tmp_path / ".env").write_text(f"{KEY}\n")
    with pytest.raises(ConfigError, match=r"\.env:1: expected NAME=value") as caught:
        set_up(config, Options())
    assert KEY not in str(caught.value)


def test_a_rejudge_by_another_config_takes_the_variables_of_both(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(good())) as server:
        config = write_suite(tmp_path / "a", server.base_url, n_cases=1, model={"api_key_env": "FIRST_KEY"})
        (tmp_path / "a" / ".env").write_text("FIRST_KEY=first-0123456789\n")
        ran = again(config, server)
        assert ran.error is None
        document = json.loads(config.read_text())
        model = {**document["models"]["m"], "api_key_env": "SECOND_KEY"}
        (tmp_path / "b").mkdir()
        other = tmp_path / "b" / "config.json"
        other.write_text(json.dumps({**document, "models": {"m": document["models"]["m"], "other": model}}))
        (tmp_path / "b" / ".env").write_text("SECOND_KEY=second-0123456789\n")
        for name, key in (("m", "first-0123456789"), ("other", "second-0123456789")):
            options = Options(run_id=f"again-{name}")
            job = open_rejudge(str(ran.folder), RejudgeWanted(model=name, config_path=other), options)
            assert job.models[name].provider.api_key == key
            if job.cache is not None:
                job.cache.close()
