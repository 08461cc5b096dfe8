"""The command line as its users meet it: what it prints, and the exit code."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import typer

from judgekit.cli.app import app
from judgekit.testing import FaultServer, error_reply, hang, sequence, verdict, with_latency
from tests.builders import case, output, read_json, read_lines, write_lines, write_suite
from tests.cli.fork_server import ENVIRONMENT, judgekit, one_error_line


def started(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Start the command line and leave it running."""
    return subprocess.Popen(
        [sys.executable, "-m", "judgekit", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_quickstart_in_an_empty_folder_prints_a_table_and_ends_with_the_run_folder(tmp_path: Path) -> None:
    result = judgekit("quickstart", cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("quickstart, 40 cases: Good enough on these cases: all 3 gates passed")
    folder = tmp_path / lines[-1]
    assert read_json(folder / "metrics.json")["status"] == "complete"
    shown = {line.split()[0]: line.split()[1] for line in lines if re.match(r"\S+ +\d", line)}
    figure = read_json(folder / "metrics.json")["headline"]["groundedness"]
    assert float(shown["groundedness"]) == pytest.approx(figure["value"], abs=0.05)
    assert shown["error_rate"] == "7.5%"
    assert len(lines) <= 25
    everything = judgekit("runs", "show", str(folder), "--stats", cwd=tmp_path).stdout
    assert "overlap baseline, not an LLM" in everything
    assert len(everything.splitlines()) > 50


@pytest.mark.slow
def test_json_prints_one_object_and_nothing_else_on_stdout(tmp_path: Path) -> None:
    result = judgekit("run", "quickstart", "--json", "--run-id", "q", cwd=tmp_path)
    document = json.loads(result.stdout)
    assert document["run_id"] == "q"
    assert document["status"] == "complete"
    assert document["metrics"] == read_json(tmp_path / document["run_dir"] / "metrics.json")


def test_limit_takes_the_first_cases_and_says_so(tmp_path: Path) -> None:
    result = judgekit("run", "quickstart", "--limit", "5", "--run-id", "q", cwd=tmp_path)
    assert result.returncode in (0, 1)
    assert read_json(tmp_path / "results" / "q" / "metrics.json")["cases"]["n"] == 5
    assert read_json(tmp_path / "results" / "q" / "manifest.json")["limit"] == 5


def test_dry_run_counts_calls_tokens_and_cost_without_a_call_or_a_folder(tmp_path: Path) -> None:
    models = {"m": {"model": "gpt-4o-2024-08-06", "max_output_tokens": 100}}
    config = write_suite(tmp_path, models=models)
    result = judgekit("run", str(config), "--dry-run", "--json", cwd=tmp_path, OPENAI_API_KEY="sk-not-used-1234")
    dry_run = json.loads(result.stdout)
    assert dry_run["n_calls"] == 6
    assert dry_run["completion_tokens_at_most"] == 600
    # The price list's 2.50 and 10.00 USD a million tokens for this model.
    expected = dry_run["prompt_tokens"] * 2.5e-6 + 600 * 10e-6
    assert dry_run["usd_at_most"] == pytest.approx(expected)
    assert not (tmp_path / "results").exists()


def test_dry_run_tells_what_the_cache_will_answer(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = write_suite(tmp_path, server.base_url)
        pin = json.loads(judgekit("pin", str(config), cwd=tmp_path).stdout)["m"]["pin"]
        write_suite(tmp_path, server.base_url, model={"pin": pin})
        judgekit("run", str(config), "--limit", "4", cwd=tmp_path)
        n_requests = server.log.totals.n_requests
        text = judgekit("run", str(config), "--dry-run", cwd=tmp_path).stdout
        dry_run = json.loads(judgekit("run", str(config), "--dry-run", "--json", cwd=tmp_path).stdout)
        uncached = json.loads(judgekit("run", str(config), "--dry-run", "--json", "--no-cache", cwd=tmp_path).stdout)
        write_suite(tmp_path, server.base_url)
        unpinned = json.loads(judgekit("run", str(config), "--dry-run", "--json", cwd=tmp_path).stdout)
        assert server.log.totals.n_requests == n_requests

    assert "2 calls to m, 4 answered from the cache" in text
    assert (dry_run["n_cached"], dry_run["n_calls"]) == (4, 2)
    assert (uncached["n_cached"], uncached["n_calls"]) == (0, 6)
    assert unpinned["judges"]["groundedness"]["n_cached"] is None
    assert unpinned["n_calls"] == 6


@pytest.mark.parametrize(
    ("content", "needle"),
    [
        (None, "no such file; `judgekit init` writes a first config"),
        ("", "the file is empty"),
        ('{"name": "x",\n "cases": }', ":2: not valid JSON: Expecting value (column 11)"),
        ("[1, 2]", "expected an object with keys such as 'name' and 'cases', found a list"),
    ],
)
def test_a_config_that_cannot_be_read_is_one_line_and_exit_2(tmp_path: Path, content: str | None, needle: str) -> None:
    path = tmp_path / "config.json"
    if content is not None:
        path.write_text(content)
    result = judgekit("run", str(path), cwd=tmp_path)
    assert result.returncode == 2
    assert needle in one_error_line(result)


@pytest.mark.parametrize(
    ("change", "needle"),
    [
        ({"metrics": ["retreival"]}, "metrics[0]: no metric called 'retreival'; did you mean 'retrieval'?"),
        ({"judges": [{"name": "groundednes", "model": "m"}]}, "no judge called 'groundednes'; did you mean"),
        ({"judges": [{"name": "correctness", "model": "n"}]}, "judges[0].model names 'n', but models has m"),
        ({"judges": [{"name": "correctness", "model": "m", "prompt_version": "v9"}]}, "no prompt version 'v9'"),
        ({"gates": [{"metric": "groundednes", "op": ">=", "value": 4}]}, "gates[0]: no figure called 'groundednes' in"),
        ({"models": {"m": {"model": "x", "base_url": "http://127.0.0.1:9/v1"}}, "budget": {"max_usd": 1}}, "max_usd"),
        ({"slises": ["category"]}, "$.slises: unknown key; did you mean 'slices'?"),
        ({"slices": ["categry"]}, "slices: no dimension 'categry'; did you mean 'category'?"),
        ({"cases": "nowhere.jsonl"}, "nowhere.jsonl: no such file"),
        ({"models": {"m": {"provider": "lexicl", "model": "overlap-2"}}}, "did you mean 'lexical'?"),
        ({"models": {"m": {"model": "gpt-4o-2024-08-06"}}}, "environment variable OPENAI_API_KEY is not set"),
        ({"models": {"m": {"model": "x", "api_key_env": "sk-secret-key-123456"}}}, "not the key itself"),
        ({"models": {"m": {"model": "x", "base_url": "localhost:8000"}}}, "expected an address such as http"),
    ],
)
def test_a_config_that_names_something_wrong_is_one_line_and_exit_2(
    tmp_path: Path, change: dict[str, Any], needle: str
) -> None:
    config = write_suite(tmp_path, **change)
    result = judgekit("run", str(config), cwd=tmp_path, OPENAI_API_KEY="")
    assert result.returncode == 2, result.stderr
    line = one_error_line(result)
    assert needle in line
    assert "sk-secret" not in result.stderr + result.stdout


def test_a_floating_alias_of_a_hosted_model_is_refused(tmp_path: Path) -> None:
    config = write_suite(tmp_path, models={"m": {"model": "gpt-4o"}})
    result = judgekit("validate", str(config), cwd=tmp_path, OPENAI_API_KEY="sk-abcdefgh")
    assert result.returncode == 2
    assert "'gpt-4o' is an alias" in one_error_line(result)
    config = write_suite(tmp_path, models={"m": {"model": "gpt-4o", "pin": {"allow_floating": True}}})
    assert judgekit("validate", str(config), cwd=tmp_path, OPENAI_API_KEY="sk-abcdefgh").returncode == 0


def test_bad_cases_are_named_with_file_line_and_path_and_counted(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    rows = [case(f"c{number}") for number in range(25)] * 2
    write_lines(tmp_path / "cases.jsonl", rows)
    result = judgekit("run", str(config), cwd=tmp_path)
    lines = [line for line in result.stderr.splitlines() if line.startswith("judgekit: error: ")]
    assert result.returncode == 2
    assert len(lines) == 21
    assert f"{tmp_path}/cases.jsonl:26: $: id 'c0' is already on line 1" in lines[0]
    assert lines[-1].endswith("... and 5 more")


def test_a_column_that_is_wrong_in_every_row_is_one_line(tmp_path: Path) -> None:
    config = write_suite(tmp_path)
    write_lines(tmp_path / "cases.jsonl", [case(f"c{number}", must_contain=f"text {number}") for number in range(25)])
    result = judgekit("run", str(config), cwd=tmp_path)
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("judgekit: error: ")]
    assert result.returncode == 2
    assert "cases.jsonl:1: $.must_contain: expected a list, found the text 'text 0'" in line
    assert line.endswith("(the same in 24 more records, on lines 2, 3, 4, 5, 6 ...)")


@pytest.mark.parametrize(
    ("script", "needle"),
    [
        (error_reply(401, "Incorrect API key provided: sk-hidden-abcdefgh"), "the key is missing or wrong: HTTP 401"),
        (error_reply(404, "model not found"), "no such model or address: HTTP 404"),
    ],
)
def test_a_provider_that_refuses_for_good_is_exit_3_with_a_resumable_folder(
    tmp_path: Path, script: Any, needle: str
) -> None:
    with FaultServer(script) as server:
        config = write_suite(tmp_path, server.base_url)
        result = judgekit("run", str(config), "--run-id", "r", cwd=tmp_path)
    assert result.returncode == 3
    assert needle in one_error_line(result)
    assert "--resume" in result.stderr
    assert "sk-hidden" not in result.stderr
    everything = b"".join(path.read_bytes() for path in (tmp_path / "results" / "r").iterdir())
    assert b"sk-hidden" not in everything


def test_the_key_of_a_run_stands_in_no_file_and_no_output(tmp_path: Path) -> None:
    key = "sk-proj-TOPSECRET0123456789"
    script = sequence([verdict(4, supported=["x"]), error_reply(400, f"bad request with {key}")])
    with FaultServer(script) as server:
        config = write_suite(tmp_path, server.base_url, model={"api_key_env": "MY_KEY"})
        result = judgekit("run", str(config), "--run-id", "r", cwd=tmp_path, MY_KEY=key)
        assert server.log.chat[0].headers["authorization"].endswith("6789")
    assert result.returncode == 3
    assert "TOPSECRET" not in result.stdout + result.stderr
    for path in (tmp_path / "results").rglob("*"):
        if path.is_file():
            assert b"TOPSECRET" not in path.read_bytes(), path


def test_a_missed_gate_is_exit_1_and_is_named(tmp_path: Path) -> None:
    gates = [
        {"metric": "groundedness", "op": ">=", "value": 4.9},
        {"metric": "recall_any@5", "op": ">=", "value": 0},
        {"metric": "groundedness", "op": ">=", "value": 1, "slice": {"category": "nowhere"}},
    ]
    outputs = [output(f"c{number}", answer="The moon is made of cheese.") for number in range(6)]
    config = write_suite(tmp_path, output_rows=outputs, gates=gates)
    result = judgekit("run", str(config), cwd=tmp_path)
    assert result.returncode == 1
    assert "gate: groundedness >= 4.9: missed" in result.stdout
    assert "gate: recall_any@5 >= 0: missed, no data (0 of 6 cases)" in result.stdout
    assert "gate: groundedness [category=nowhere] >= 1: missed, no data" in result.stdout


def wait_for_lines(path: Path, n_lines: int, process: subprocess.Popen[str]) -> None:
    """Wait until a file has so many lines."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_bytes().count(b"\n") >= n_lines:
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    raise AssertionError(f"{path} never had {n_lines} lines")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_an_interrupted_run_is_exit_130_keeps_what_was_judged_and_goes_on(tmp_path: Path, how: signal.Signals) -> None:
    with FaultServer(with_latency(0.05)) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=60, model={"max_concurrency": 2})
        process = started("run", str(config), "--run-id", "r", cwd=tmp_path)
        folder = tmp_path / "results" / "r"
        wait_for_lines(folder / "judgments.jsonl", 5, process)
        sent = time.monotonic()
        process.send_signal(how)
        _, stderr = process.communicate(timeout=30)
        assert time.monotonic() - sent < 5
        assert process.returncode == 130
        assert "judgekit: error: interrupted; resume with: judgekit run --resume" in stderr
        assert "Traceback" not in stderr
        kept = read_lines(folder / "judgments.jsonl")
        assert 5 <= len(kept) < 60
        assert read_json(folder / "manifest.json")["status"] == "interrupted"
        assert read_json(folder / "metrics.json")["overall"]["groundedness"]["n"] == len(kept)

        result = judgekit("run", "--resume", str(folder), cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    judgments = read_lines(folder / "judgments.jsonl")
    assert judgments[: len(kept)] == kept
    assert sorted(item["case_id"] for item in judgments) == sorted(f"c{number}" for number in range(60))
    assert read_json(folder / "manifest.json")["n_resumed"] == 1


@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_a_hanging_server_does_not_hold_up_an_interruption(tmp_path: Path) -> None:
    with FaultServer(sequence([verdict(4, supported=["x"]), hang()])) as server:
        config = write_suite(tmp_path, server.base_url, model={"timeout_seconds": 100})
        process = started("run", str(config), "--run-id", "r", cwd=tmp_path)
        server.log.wait_for(2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        assert process.returncode == 130


@pytest.mark.slow
@pytest.mark.usefixtures("ends_processes")
def test_a_killed_run_with_a_torn_line_is_resumed_without_a_case_twice(tmp_path: Path) -> None:
    with FaultServer(with_latency(0.03)) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=40, model={"max_concurrency": 2})
        process = started("run", str(config), "--run-id", "r", "--no-cache", cwd=tmp_path)
        folder = tmp_path / "results" / "r"
        wait_for_lines(folder / "judgments.jsonl", 5, process)
        process.kill()
        process.communicate()
        with (folder / "judgments.jsonl").open("ab") as stream:
            stream.write(b'{"case_id": "c39", "judge": "grounded')

        result = judgekit("run", "--resume", "r", "--results-dir", str(tmp_path / "results"), cwd=tmp_path)

    assert result.returncode == 0, result.stderr
    judged = [item["case_id"] for item in read_lines(folder / "judgments.jsonl")]
    assert sorted(judged) == sorted(f"c{number}" for number in range(40))


@pytest.mark.slow
def test_a_changed_config_is_refused_on_resume_and_what_changed_is_named(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = write_suite(tmp_path, server.base_url, budget={"max_calls": 2})
        assert judgekit("run", str(config), "--run-id", "r", cwd=tmp_path).returncode == 130
        write_suite(tmp_path, server.base_url, budget={"max_calls": 2}, seed=5, n_cases=7)
        result = judgekit("run", "--resume", str(tmp_path / "results" / "r"), cwd=tmp_path)
        assert result.returncode == 2
        assert "resolved.cases.sha256, resolved.outputs.n, resolved.outputs.sha256, seed changed" in one_error_line(
            result
        ).replace("resolved.cases.n, ", "")

        write_suite(tmp_path, server.base_url, budget={"max_calls": 100})
        assert judgekit("run", "--resume", str(tmp_path / "results" / "r"), cwd=tmp_path).returncode == 0
        again = judgekit("run", "--resume", str(tmp_path / "results" / "r"), cwd=tmp_path)
    assert again.returncode == 2
    assert "this run is complete" in one_error_line(again)


def test_calls_that_failed_on_the_way_are_asked_again_by_the_command_that_is_named(tmp_path: Path) -> None:
    state = {"down": True}

    def answer(request: Any) -> Any:
        busy = state["down"] and '{"ready": true}' not in request.text
        return error_reply(503, "busy") if busy else verdict(4, supported=["hot"])

    with FaultServer(answer) as server:
        config = write_suite(tmp_path, server.base_url, model={"max_attempts": 1})
        first = judgekit("run", str(config), "--run-id", "r", cwd=tmp_path)
        assert first.returncode == 3
        assert "measured 0 of 6, every call failed: server_error (6)" in one_error_line(first)
        folder = tmp_path / "results" / "r"
        assert f"(resume with: judgekit run --resume {folder})" in first.stderr
        notices = {notice["code"]: notice["message"] for notice in read_json(folder / "metrics.json")["warnings"]}
        assert "(server_error 6); `judgekit run --resume r` asks them again" in notices["failed_on_the_way"]
        state["down"] = False
        second = judgekit("run", "--resume", str(folder), cwd=tmp_path)
        third = judgekit("run", "--resume", str(folder), cwd=tmp_path)
    assert second.returncode == 0, second.stderr
    assert "failed on the way" not in second.stdout
    assert read_json(folder / "metrics.json")["overall"]["groundedness"]["n"] == 6
    assert third.returncode == 2
    assert "this run is complete; there is nothing to resume" in one_error_line(third)


@pytest.mark.parametrize("format_", ["json", "yaml", "toml"])
@pytest.mark.slow
def test_init_writes_a_commented_suite_that_runs(tmp_path: Path, format_: str) -> None:
    result = judgekit("init", "suite", "--format", format_, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    config = tmp_path / "suite" / f"config.{format_}"
    assert "comment" in config.read_text() or "#" in config.read_text()
    # The starting config also names a hosted model, whose key is only looked up where the model is used.
    assert judgekit("validate", str(config), cwd=tmp_path, OPENAI_API_KEY="").returncode == 0
    run = judgekit("run", str(config), cwd=tmp_path, OPENAI_API_KEY="")
    assert run.returncode == 0, run.stderr
    again = judgekit("init", "suite", "--format", format_, cwd=tmp_path)
    assert again.returncode == 2
    assert "exists already" in one_error_line(again)


def test_the_three_config_formats_say_the_same(tmp_path: Path) -> None:
    from judgekit.storage.config_files import load_config
    from judgekit.storage.starter import write_starter

    for format_ in ("json", "yaml", "toml"):
        write_starter(tmp_path / format_, format_)
    configs = [load_config(tmp_path / kind / f"config.{kind}") for kind in ("json", "yaml", "toml")]
    assert [config.cases for config in configs] == ["cases.jsonl", "cases.yaml", "cases.jsonl"]
    plain = [config.model_copy(update={"schema_": None, "cases": ""}) for config in configs]
    assert plain[0] == plain[1] == plain[2]


def test_the_schema_that_ships_beside_the_quickstart_is_the_one_that_is_printed(tmp_path: Path) -> None:
    from tests.builders import REPOSITORY

    result = judgekit("schema", cwd=tmp_path)
    assert result.stdout == (REPOSITORY / "configs" / "config.schema.json").read_text(encoding="utf-8")


@pytest.mark.slow
def test_pin_prints_what_a_config_can_hold(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = write_suite(tmp_path, server.base_url)
        pin = json.loads(judgekit("pin", str(config), cwd=tmp_path).stdout)["m"]["pin"]
        write_suite(tmp_path, server.base_url, model={"pin": pin})
        assert judgekit("run", str(config), cwd=tmp_path).returncode == 0
        server.info.build_info = "b9999-other"
        result = judgekit("run", str(config), "--no-cache", cwd=tmp_path)
    assert result.returncode == 3
    assert f"pinned is {pin['build_hash']}" in one_error_line(result)


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version(tmp_path: Path, flag: str) -> None:
    assert re.fullmatch(r"judgekit \d+\.\d+\.\d+\n", judgekit(flag, cwd=tmp_path).stdout)


def test_help_names_every_command_and_run_help_has_examples(tmp_path: Path) -> None:
    top = judgekit("--help", cwd=tmp_path).stdout
    for command in ("run", "quickstart", "init", "validate", "schema", "pin", "cache"):
        assert re.search(rf"^  {command} ", top, re.MULTILINE), top
    assert "judgekit run config.json --limit 20" in judgekit("run", "--help", cwd=tmp_path).stdout


def test_help_groups_commands_and_describes_each_in_one_line_of_80_columns(tmp_path: Path) -> None:
    lines = judgekit("--help", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    headings = [line for line in lines if re.fullmatch(r"\w[\w ]+:", line)]
    assert headings == ["Options:", "Start:", "Run:", "Look at runs:", "Trust a judge:", "Cache:"]
    for name in typer.main.get_command(app).commands:  # type: ignore[attr-defined]
        [line] = [line for line in lines if line.startswith(f"  {name} ")]
        assert re.fullmatch(r".{,78}[^.]\.", line), line


def test_a_shell_completes_commands_and_their_options(tmp_path: Path) -> None:
    def completed(words: str) -> list[str]:
        environment = {"_JUDGEKIT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return judgekit(cwd=tmp_path, **environment).stdout.split()

    assert completed("judgekit q") == ["quickstart"]
    assert completed("judgekit runs ta") == ["tag"]
    assert completed("judgekit drift --res") == ["--results-dir"]


def test_help_and_version_import_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; sys.argv = ['judgekit', '--help']\n"
        "from judgekit.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'openai', 'pydantic', 'rich', 'diskcache', 'jinja2', 'tenacity', 'httpx2', 'aiohttp', 'numpy'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "HEAVY []" in result.stdout


def test_hostile_text_reaches_the_terminal_without_control_characters(tmp_path: Path) -> None:
    evil = "\x1b[2Jx\u202ey\x07"
    config = write_suite(tmp_path, case_rows=[case("a"), case(f"b{evil}")], output_rows=[output("a")])
    result = judgekit("run", str(config), cwd=tmp_path)
    assert not set("\x1b\u202e\x07") & set(result.stdout + result.stderr)


def test_a_console_that_cannot_show_a_character_is_no_error(tmp_path: Path) -> None:
    config = write_suite(tmp_path, case_rows=[case("a"), case("成功✓")], output_rows=[output("a")])
    result = judgekit("run", str(config), cwd=tmp_path, PYTHONIOENCODING="cp1252")
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_shards_are_merged_without_a_call_or_put_together_by_a_plain_run_from_the_cache(tmp_path: Path) -> None:
    with FaultServer() as server:
        config = write_suite(tmp_path, server.base_url, n_cases=9)
        runs: list[str] = []
        for shard in ("1/2", "2/2"):
            result = judgekit("run", str(config), "--shard", shard, "--json", cwd=tmp_path)
            assert result.returncode == 0, result.stderr
            document = json.loads(result.stdout)
            assert document["run_id"].endswith(f"-shard{shard.replace('/', 'of')}")
            assert document["metrics"]["cases"]["n"] == (6 if shard == "1/2" else 3)
            runs.append(document["run_id"])
        n_requests = server.log.totals.n_requests
        results = str(tmp_path / "results")
        merged = judgekit("merge", *runs, "--run-id", "m", "--results-dir", results, "--json", cwd=tmp_path)
        assert merged.returncode == 0, merged.stderr
        whole = json.loads(judgekit("run", str(config), "--json", cwd=tmp_path).stdout)

    assert n_requests == 9 + 1  # nine questions and one for what the model takes
    assert server.log.totals.n_requests == n_requests
    assert whole["metrics"]["judges"]["groundedness"]["n_judged"] == 9
    assert json.loads(merged.stdout)["metrics"]["overall"] == whole["metrics"]["overall"]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "x", "1/0"])
def test_a_shard_that_cannot_be_is_one_line(tmp_path: Path, shard: str) -> None:
    config = write_suite(tmp_path)
    result = judgekit("run", str(config), "--shard", shard, cwd=tmp_path)
    assert result.returncode == 2
    assert "--shard" in one_error_line(result)
