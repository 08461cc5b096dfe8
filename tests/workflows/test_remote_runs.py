"""Data and runs at addresses: fetched, worked on here, uploaded with the manifest last; and what goes wrong there."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.core.errors import StorageError
from judgekit.storage.remote_files import PLACE_VARIABLE
from judgekit.testing import FaultServer, error_reply, verdict
from tests.builders import case, read_json, write_lines, write_suite

fsspec = pytest.importorskip("fsspec", reason="fsspec is an extra")
MemoryFileSystem = fsspec.get_filesystem_class("memory")

RUNS = "memory://store/runs"


@pytest.fixture(autouse=True)
def _first_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "first machine"))
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


@pytest.fixture
def second_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Goes on as on a machine that has nothing of what the first one has."""
    return lambda: monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "second machine"))


def said(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def stored(name: str = "") -> dict[str, bytes]:
    """The files of the store below a folder, by name."""
    root = f"/store/{name}"
    found = {path: file.getvalue() for path, file in MemoryFileSystem.store.items() if path.startswith(root)}
    return {path.removeprefix(root).lstrip("/"): data for path, data in found.items()}


def manifest(run: str = "r") -> Any:
    return json.loads(stored(f"runs/{run}")["manifest.json"])


def put(name: str, data: bytes) -> None:
    MemoryFileSystem().pipe_file(f"/store/{name}", data)


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A suite whose cases, outputs and runs are in the store."""
    path = write_suite(tmp_path / "suite")
    for name in ("cases", "outputs"):
        put(f"{name}.jsonl", (path.parent / f"{name}.jsonl").read_bytes())
    document = {
        **read_json(path),
        "cases": "memory://store/cases.jsonl",
        "system": {"name": "recorded", "path": "memory://store/outputs.jsonl"},
        "results_dir": RUNS,
    }
    path.write_text(json.dumps(document))
    return str(path)


def run(config: str, run_id: str = "r", **more: str) -> tuple[int, str, str]:
    return said("run", config, "--run-id", run_id, "--quiet", *(word for item in more.items() for word in item))


@pytest.mark.slow
def test_a_run_on_addresses_is_the_run_on_files(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_machine: Callable[[], None]
) -> None:
    sent: list[str] = []
    for name in ("put_file", "pipe_file"):
        real = getattr(MemoryFileSystem, name)

        def keep(self: Any, *words: Any, real: Any = real, at: int = name == "put_file", **more: Any) -> Any:
            sent.append(str(words[at]).rpartition("/")[2])
            return real(self, *words, **more)

        monkeypatch.setattr(MemoryFileSystem, name, keep)
    code, _, err = run(config)
    assert (code, err) == (0, f"uploaded {RUNS}/r\n")
    assert sent[0] == ".claim"
    assert sent[-1] == "manifest.json"
    assert sent.count("manifest.json") == 1
    assert {"judgments.jsonl", "scores.jsonl", "metrics.json", "report.html"} <= set(sent)

    here = judgekit.run(write_suite(tmp_path / "suite on a disk"), run_id="r")
    assert json.loads(stored("runs/r")["metrics.json"])["overall"] == read_json(here.folder / "metrics.json")["overall"]
    assert manifest()["files"]["scores.jsonl"] == read_json(here.folder / "manifest.json")["files"]["scores.jsonl"]
    assert json.loads(stored("runs/r")["config.json"])["cases"] == "memory://store/cases.jsonl"

    second_machine()
    before = stored()
    assert said("runs", "show", f"{RUNS}/r", "--json")[0] == 0
    assert said("runs", "show", "latest", "--results-dir", RUNS)[0] == 0
    assert said("report", f"{RUNS}/r", "--format", "csv", "--out", str(tmp_path / "scores.csv"))[0] == 0
    assert stored() == before, "reading changes nothing"
    note = f"note: 1 run in {RUNS} not in the results database; `judgekit runs reindex` adds them\n"
    assert said("runs", "list", "--results-dir", RUNS)[2] == note

    assert said("runs", "tag", f"{RUNS}/r", "base")[2] == f"uploaded {RUNS}/r\n"
    assert said("rejudge", "latest:base", "--results-dir", RUNS, "--run-id", "again", "--quiet")[0] == 0
    assert manifest("again")["parent"] == "r"
    assert said("runs", "reindex", "--results-dir", RUNS)[:2] == (0, "runs indexed: 2\n")
    assert said("runs", "delete", f"{RUNS}/r", "--yes")[0] == 0
    assert not stored("runs/r/")
    MemoryFileSystem().rm("/store/runs/again", recursive=True)
    assert said("runs", "show", f"{RUNS}/again")[0] == 2, "it was here, and was deleted there"
    (row,) = json.loads(said("runs", "list", "--results-dir", RUNS, "--json")[1])
    assert (row["run_id"], row["folder_exists"]) == ("again", False)


@pytest.mark.slow
def test_shards_of_several_machines_are_merged_at_their_address_and_are_a_baseline_there(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in "123":
        monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / f"machine {number}"))
        assert run(config, number, **{"--shard": f"{number}/3"})[0] == 0
    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "machine 4"))
    shards = [f"{RUNS}/{number}" for number in "123"]
    code, _, err = said("merge", *shards, "--run-id", "whole", "--results-dir", RUNS, "--quiet")
    assert code == 0, err
    assert run(config, "plain")[0] == 0
    figures = [json.loads(stored(f"runs/{name}")["metrics.json"])["overall"] for name in ("whole", "plain")]
    assert figures[0] == figures[1]

    monkeypatch.setenv(PLACE_VARIABLE, str(tmp_path / "machine 5"))
    gate = {"metric": "groundedness", "not_worse_than": f"{RUNS}/whole", "margin": 0.1}
    Path(config).write_text(json.dumps({**read_json(Path(config)), "gates": [gate]}))
    code, _, err = run(config, "gated")
    assert code == 0, err
    assert json.loads(stored("runs/gated")["metrics.json"])["gates"][0]["passed"] is True


@pytest.mark.slow
def test_python_runs_on_addresses_and_on_a_folder_that_is_one(config: str, tmp_path: Path) -> None:
    result = judgekit.run(config, run_id="r", results_dir=f"file://{tmp_path}/share")
    assert read_json(tmp_path / "share" / "r" / "manifest.json")["status"] == "complete"
    assert judgekit.open_run(f"file://{tmp_path}/share/r").summary.run_id == result.summary.run_id
    assert judgekit.open_run("r", results_dir=f"file://{tmp_path}/share").folder == result.folder
    (tmp_path / "share" / "r" / "scores.jsonl").unlink()
    with pytest.raises(StorageError, match=r"scores\.jsonl: damaged: it is gone"):
        judgekit.open_run(f"file://{tmp_path}/share/r")


def test_an_upload_that_breaks_leaves_no_manifest_and_the_next_command_goes_on(
    config: str, monkeypatch: pytest.MonkeyPatch, second_machine: Callable[[], None], tmp_path: Path
) -> None:
    left = 3
    put_file = MemoryFileSystem.put_file

    def breaking(self: Any, *words: Any, **more: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise ConnectionResetError("Connection reset by peer")
        return put_file(self, *words, **more)

    with monkeypatch.context() as broken:
        broken.setattr(MemoryFileSystem, "put_file", breaking)
        code, _, err = run(config)
    assert code == 4
    (line,) = err.splitlines()
    assert f"{RUNS}/r: cannot be uploaded: ConnectionResetError: Connection reset by peer" in line
    folder = next((tmp_path / "first machine").glob("*-runs/r"))
    assert line.endswith(f"; the run is in the local folder {folder}, and the next command about it uploads it")
    assert len(stored("runs/r")) == 4  # three files, and the claim
    assert "manifest.json" not in stored("runs/r")

    with monkeypatch.context() as elsewhere:
        elsewhere.setenv(PLACE_VARIABLE, str(tmp_path / "second machine"))
        assert said("runs", "show", f"{RUNS}/r")[0] == 2
        code, _, err = run(config)
        assert code == 2
        assert "a run of this id was begun elsewhere and is not uploaded yet" in err

    for name in stored("runs/r"):  # the store forgets what it took
        MemoryFileSystem().rm_file(f"/store/runs/r/{name}")
    assert said("runs", "show", f"{RUNS}/r")[2] == f"uploaded {RUNS}/r\n"
    second_machine()
    assert said("runs", "show", f"{RUNS}/r")[0] == 0


@pytest.mark.slow
def test_while_a_complete_run_is_uploaded_again_its_manifest_says_that_it_changes(
    config: str, monkeypatch: pytest.MonkeyPatch, second_machine: Callable[[], None], tmp_path: Path
) -> None:
    run(config)
    before = manifest()
    put_file = MemoryFileSystem.put_file

    def breaking(self: Any, local: str, remote: str, **more: Any) -> Any:
        if remote.endswith("scores.jsonl"):
            raise TimeoutError
        return put_file(self, local, remote, **more)

    folder = next((tmp_path / "first machine").glob("*-runs/r"))
    (folder / "scores.jsonl").unlink()  # what rescore makes again
    with monkeypatch.context() as broken:
        broken.setattr(MemoryFileSystem, "put_file", breaking)
        code, _, err = said("rescore", str(folder))
    assert (code, "cannot be uploaded: TimeoutError" in err) == (4, True)
    assert manifest() == {**before, "changing": True}
    assert said("runs", "show", f"{RUNS}/r")[2] == f"uploaded {RUNS}/r\n"
    assert manifest()["changing"] is False
    second_machine()
    assert said("runs", "show", f"{RUNS}/r")[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda: MemoryFileSystem().rm_file("/store/runs/r/judgments.jsonl"), "judgments.jsonl: damaged: it is gone"),
        (lambda: put("runs/r/scores.jsonl", stored("runs/r")["scores.jsonl"][:-40]), "scores.jsonl:"),
        (lambda: put("runs/r/manifest.json", b"{"), "manifest.json: damaged"),
    ],
)
def test_a_lost_or_cut_object_is_refused(
    config: str, second_machine: Callable[[], None], spoil: Callable[[], None], message: str
) -> None:
    run(config)
    second_machine()
    spoil()
    code, _, err = said("runs", "show", f"{RUNS}/r")
    assert (code, message in err) == (4, True)
    assert err.startswith(f"judgekit: error: {RUNS}/r/")


def test_a_file_that_is_lost_after_it_was_fetched_is_not_taken_from_here(config: str) -> None:
    run(config)
    MemoryFileSystem().rm_file("/store/runs/r/judgments.jsonl")
    assert said("runs", "show", f"{RUNS}/r")[0] == 4


@pytest.mark.slow
def test_of_two_runs_with_one_id_the_second_is_refused(config: str, second_machine: Callable[[], None]) -> None:
    run(config)
    before = stored()
    for _ in range(2):
        code, _, err = run(config)
        assert (code, f"{RUNS}/r: exists already; choose another --run-id" in err) == (2, True)
        second_machine()
    assert stored() == before


@pytest.mark.slow
def test_a_run_that_was_changed_in_both_places_is_never_overwritten(
    config: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second_machine: Callable[[], None]
) -> None:
    run(config)
    folder = next((tmp_path / "first machine").glob("*-runs/r"))
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv(PLACE_VARIABLE, str(tmp_path / "second machine"))
        assert said("runs", "tag", f"{RUNS}/r", "theirs")[0] == 0
    before = stored()
    (folder / "tags.json").write_text('{"tags": ["mine"]}')
    code, _, err = said("runs", "show", f"{RUNS}/r")
    assert code == 4
    assert f"{RUNS}/r: somebody else changed it" in err
    assert stored() == before
    (folder / "tags.json").unlink()
    assert said("runs", "show", f"{RUNS}/r")[0] == 0, "without changes here, what is there counts"


def test_a_run_that_is_refused_leaves_nothing(config: str) -> None:
    document = read_json(Path(config))
    Path(config).write_text(json.dumps({**document, "metrics": [{"name": "extraction"}]}))
    put("outputs.jsonl", b'{"case_id": "c0"}\n')
    assert run(config)[0] == 2
    assert not stored("runs")


@pytest.mark.slow
def test_a_run_that_was_interrupted_is_uploaded_and_resumed_on_another_machine(
    tmp_path: Path, second_machine: Callable[[], None]
) -> None:
    replies = [verdict(4, supported=["hot"])] * 2 + [error_reply(401, "Incorrect API key")]
    with FaultServer(lambda request: replies.pop(0) if replies else verdict(4)) as server:
        path = write_suite(tmp_path / "suite", server.base_url, results_dir=RUNS, model={"max_concurrency": 1})
        assert run(str(path))[0] == 3
        assert manifest()["status"] == "interrupted"
        n_before = len(stored("runs/r")["judgments.jsonl"].splitlines())
        assert 1 <= n_before < 6
        second_machine()
        code, _, err = said("run", str(path), "--resume", "r", "--quiet")
        assert code == 0, err
    assert manifest()["status"] == "complete"
    assert len(stored("runs/r")["judgments.jsonl"].splitlines()) == 6


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("cases", "memory://store/no.jsonl", "memory://store/no.jsonl: cannot be read: nothing is there"),
        ("cases", "memory://store/no-*.jsonl", "memory://store/no-*.jsonl: cannot be read: nothing is there"),
        ("cases", "nostore://a/b.jsonl", "nostore://a/b.jsonl: Protocol not known: nostore"),
        ("cases", "s3://me:sk-hidden@bucket/a.jsonl", "s3://***@bucket/a.jsonl: the address holds a key, password or"),
        ("results_dir", "s3://me:sk-hidden@bucket/runs", "s3://***@bucket/runs: the address holds a key, password or"),
        ("corpus_chunk_ids", "https://x.org/a.csv?sig=sk-hidden", "https://x.org/a.csv: the address holds a key"),
    ],
)
def test_a_wrong_address_is_one_line(config: str, tmp_path: Path, key: str, value: str, message: str) -> None:
    Path(config).write_text(json.dumps({**read_json(Path(config)), key: value}))
    code, _, err = run(config)
    assert code == 2
    (line,) = err.splitlines()
    assert line.startswith(f"judgekit: error: {message}")
    assert "sk-hidden" not in err
    assert not any(b"sk-hidden" in data for data in stored().values())
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != Path(config)]
    assert not any(b"sk-hidden" in path.read_bytes() for path in written)


def test_an_address_with_a_key_is_refused_as_a_run_and_as_an_option() -> None:
    for words in (
        ("runs", "show", "s3://me:sk-hidden@b/r"),
        ("runs", "list", "--results-dir", "s3://me:sk-hidden@b/r"),
    ):
        code, out, err = said(*words)
        assert (code, "sk-hidden" in out + err, "s3://***@b/r" in err) == (2, False, True)


def test_access_denied_is_found_before_a_call_and_shows_no_key(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_SECRET_KEY", "sk-hidden")

    def denied(*_: Any, **__: Any) -> None:
        raise PermissionError("Forbidden: the key sk-hidden may not write")

    with monkeypatch.context() as read_only:
        read_only.setattr(MemoryFileSystem, "pipe_file", denied)
        code, _, err = run(config)
    expected = f"{RUNS}/r: cannot be written: access denied: Forbidden: the key *** may not write"
    assert (code, err) == (4, f"judgekit: error: {expected}\n")
    assert not stored("runs")
    put("cases.jsonl", b'{"id": "c0"}\n')
    monkeypatch.setattr(MemoryFileSystem, "get_file", denied)
    code, _, err = run(config)
    assert code == 4
    assert "memory://store/cases.jsonl: cannot be read: access denied: Forbidden: the key *** may not write" in err


def test_without_fsspec_one_line_says_how_to_get_it(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    code, _, err = run(config)
    expected = "memory://store/cases.jsonl: reading and writing addresses needs fsspec: pip install fsspec"
    assert (code, err) == (2, f"judgekit: error: {expected}\n")


@pytest.mark.slow
def test_data_that_changed_is_fetched_again_and_what_is_gone_is_not_read(config: str, tmp_path: Path) -> None:
    lines = [json.dumps(case(f"c{number}")).encode() + b"\n" for number in range(6)]
    Path(config).write_text(json.dumps({**read_json(Path(config)), "cases": "memory://store/data/part-*.jsonl"}))
    put("data/part-0.jsonl", b"".join(lines[:4]))
    put("data/part-1.jsonl", b"".join(lines[4:]))
    assert run(config, "a")[0] == 0
    MemoryFileSystem().rm_file("/store/data/part-1.jsonl")
    assert run(config, "b", **{"--sample": "2"})[0] == 0
    put("data/part-0.jsonl", b"".join(lines[:3]))
    assert run(config, "c")[0] == 0
    found = {name: json.loads(stored(f"runs/{name}")["config.json"])["resolved"]["cases"] for name in "abc"}
    assert [found[name]["n"] for name in "abc"] == [6, 2, 3]
    assert len({found[name]["sha256"] for name in "abc"}) == 3


def test_what_is_wrong_with_fetched_data_is_named_by_its_address(config: str) -> None:
    put("cases.jsonl", b'{"id": "c0"}\n{"id": 1.5}\n')
    code, _, err = run(config)
    assert code == 2
    assert err.startswith("judgekit: error: memory://store/cases.jsonl/data/cases.jsonl:2:")


def test_score_and_convert_read_addresses(tmp_path: Path) -> None:
    write_lines(tmp_path / "cases.jsonl", [{"id": "q", "expected_chunk_ids": ["d"]}])
    put("cases.jsonl", (tmp_path / "cases.jsonl").read_bytes())
    put("outputs.jsonl", b'{"case_id": "q", "retrieved": [{"chunk_id": "d"}]}\n')
    words = ["--cases", "memory://store/cases.jsonl", "--outputs", "memory://store/outputs.jsonl", "--json"]
    assert json.loads(said("score", *words)[1])["figures"]["hit@1"]["value"] == 1.0
    assert said("convert", "memory://store/cases.jsonl", str(tmp_path / "copy.jsonl"))[0] == 0
    assert read_json(tmp_path / "copy.jsonl")["id"] == "q"
