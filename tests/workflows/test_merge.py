"""Shards merged: the figures of one process, whatever the judges, and what is refused."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.case_parts import CasePart, shard_of
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError, JudgekitError, ProviderError, StorageError
from judgekit.core.runs import RunSummary
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_history import read_points
from judgekit.testing import FaultServer, Reply, chat_reply, error_reply, verdict
from judgekit.workflows.job import start
from judgekit.workflows.merge import open_merge
from judgekit.workflows.models import Options
from judgekit.workflows.rejudge import RejudgeWanted, open_rejudge
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run
from judgekit.workflows.setup import set_up
from tests.builders import case, output, read_json, read_lines, seal_again, write_suite
from tests.workflows.engine import is_capability_call
from tests.workflows.test_panel_run import play
from tests.workflows.test_panel_run import suite as panel_suite

OF_ITS_OWN = {"run_id", "created_at"}
"""What two runs of one thing never share."""


def carried_out(config: Path, run_id: str, **options: Any) -> RunSummary:
    wanted = Options(run_id=run_id, use_cache=False, **options)
    job = start(set_up(config, wanted), wanted)
    return run_local(lambda: run(job, Observer()))


def merged(config: Path, runs: list[str], run_id: str = "whole", **options: Any) -> RunSummary:
    wanted = Options(run_id=run_id, results_dir=config.parent / "results", use_cache=False, **options)
    job = open_merge(runs, wanted)
    return run_local(lambda: run(job, Observer()))


def shards(config: Path, n: int, **options: Any) -> list[str]:
    for number in range(1, n + 1):
        carried_out(config, f"s{number}", shard=f"{number}/{n}", **options)
    return [f"s{number}" for number in range(1, n + 1)]


def figures(config: Path, run_id: str) -> dict[str, Any]:
    found = read_json(config.parent / "results" / run_id / "metrics.json")
    operational = {key: value for key, value in found["operational"].items() if key != "wall_seconds"}
    return {**{key: value for key, value in found.items() if key not in OF_ITS_OWN}, "operational": operational}


def suite(folder: Path, base_url: str | None = None, n_cases: int = 24, **config: Any) -> Path:
    """Cases of two topics, answers of which some are wrong, abstain or are missing; a second judge and gates."""
    rows = [case(f"c{number}", category=f"t{number % 2}", tags=["x"] * (number % 3 == 0)) for number in range(n_cases)]
    outputs = [output(f"c{number}") for number in range(n_cases) if number % 7 != 5]
    for number, row in enumerate(outputs):
        if number % 4 == 1:
            row["answer"] = "Nobody knows about the moon."
        if number % 6 == 4:
            row["abstained"] = True
    models = {
        "m": {"provider": "lexical", "model": "overlap-2"},
        "strict": {"provider": "lexical", "model": "overlap-strict-2"},
    }
    known: dict[str, Any] = {} if base_url is not None else {"models": models}
    known["gates"] = [{"metric": "groundedness", "op": ">=", "value": 3}]
    known["slices"] = ["category", "tags"]
    return write_suite(folder, base_url, case_rows=rows, output_rows=outputs, **{**known, **config})


@pytest.mark.parametrize(
    ("config", "n"),
    [
        ({"spot_check": {"n": 5, "model": "strict"}, "seed": 3}, 2),
        pytest.param(
            {"spot_check": {"n": "30%", "model": "strict", "adaptive": True}, "seed": 4, "cluster_by": "category"},
            3,
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"spot_check": {"n": 4, "model": "strict"}, "repeats": 2, "seed": 1, "errors": "as_zero"},
            3,
            marks=pytest.mark.slow,
        ),
        pytest.param({}, 40, marks=pytest.mark.slow),
    ],
)
def test_merged_shards_have_the_figures_of_one_process(tmp_path: Path, config: dict[str, Any], n: int) -> None:
    path = suite(tmp_path, **config)
    carried_out(path, "plain")
    merged(path, shards(path, n)[::-1])
    assert figures(path, "whole") == figures(path, "plain")
    results = tmp_path / "results"
    for name in ("cases.jsonl", "outputs.jsonl", "judge_inputs.jsonl", "scores.jsonl", "config.json"):
        assert (results / "whole" / name).read_bytes() == (results / "plain" / name).read_bytes()
    questions = [
        (item["judge"], item["case_id"], item["role"]) for item in read_lines(results / "whole/judgments.jsonl")
    ]
    assert len(questions) == len(set(questions)) == len(read_lines(results / "plain" / "judgments.jsonl"))
    manifest = RunFolder.open(results / "whole").manifest()
    assert [shard["run_id"] for shard in manifest.shards] == [f"s{number}" for number in range(1, n + 1)]
    assert (manifest.status, manifest.shard, manifest.config_sha256) == (
        "complete", None, RunFolder(results / "plain").manifest().config_sha256,
    )  # fmt: skip


@pytest.mark.slow
def test_a_part_of_the_cases_is_merged_as_it_was_drawn(tmp_path: Path) -> None:
    path = suite(tmp_path, seed=5, spot_check={"n": 3, "model": "strict"})
    carried_out(path, "plain", sample=10)
    merged(path, shards(path, 2, sample=10))
    assert figures(path, "whole") == figures(path, "plain")


@pytest.mark.slow
def test_without_a_seed_all_shards_draw_one_sample(tmp_path: Path) -> None:
    path = suite(tmp_path, spot_check={"n": 6, "model": "strict"})
    merged(path, shards(path, 3))
    (record,) = read_json(tmp_path / "results" / "whole" / "checks.json")["checks"]
    assert len(record["case_ids"]) == 6
    parts = [read_json(tmp_path / "results" / f"s{number}" / "checks.json")["checks"][0] for number in (1, 2, 3)]
    assert sorted(case_id for part in parts for case_id in part["case_ids"]) == sorted(record["case_ids"])
    assert {part["seed"] for part in parts} == {record["seed"]}
    assert read_points(RunFolder(tmp_path / "results" / "s1")) == []  # they count once, in the merged run
    assert len(read_points(RunFolder(tmp_path / "results" / "whole"))) == 1


@pytest.mark.slow
def test_a_panel_and_its_members_are_merged_without_a_call(tmp_path: Path) -> None:
    with FaultServer(play) as server:
        path = panel_suite(tmp_path, server, {})
        carried_out(path, "plain")
        runs = shards(path, 2)
        n_requests = server.log.totals.n_requests
        merged(path, runs)
        assert server.log.totals.n_requests == n_requests
    of_panel = [figures(path, run_id) for run_id in ("whole", "plain")]
    for found in of_panel:
        found.pop("latency")
    assert of_panel[0] == of_panel[1]


def on_kiln(*fails: str) -> Any:
    """A server that is down for some cases."""

    def answer(request: Any) -> Reply:
        if is_capability_call(request.body):
            return chat_reply('{"ready": true}')
        if any(f"Kiln {name} " in request.text for name in fails):
            return error_reply(503, "down")
        return verdict(4, supported=["hot"])

    return answer


@pytest.mark.slow
def test_what_failed_on_the_way_stays_failed_until_the_merged_run_is_resumed(tmp_path: Path) -> None:
    with FaultServer(on_kiln("c3")) as server:
        path = write_suite(tmp_path, server.base_url, model={"max_attempts": 1})
        runs = shards(path, 2)
        n_requests = server.log.totals.n_requests
        summary = merged(path, runs)
        assert server.log.totals.n_requests == n_requests
    assert (summary.judges["groundedness"]["n_judged"], summary.judges["groundedness"]["n_failed"]) == (5, 1)
    assert "failed_on_the_way" in {notice.code for notice in summary.warnings}
    with FaultServer(on_kiln(), port=server.port) as server:
        job = resume_job(str(tmp_path / "results" / "whole"), None, Options())
        summary = run_local(lambda: run(job, Observer()))
    assert summary.judges["groundedness"]["n_judged"] == 6


@pytest.mark.slow
def test_a_sample_that_grows_is_asked_by_the_merged_run_which_names_the_key_that_it_needs(tmp_path: Path) -> None:
    with FaultServer(on_kiln()) as server:
        second = {"model": "judge-2025-01-01", "base_url": server.base_url, "api_key_env": "SECOND_KEY"}
        models = {"m": {"provider": "lexical", "model": "overlap-2"}, "second": second}
        path = suite(tmp_path, models=models, spot_check={"n": 2, "model": "second", "adaptive": True}, seed=1)
        runs = shards(path, 2, environment={"SECOND_KEY": "k"})
        with pytest.raises(ProviderError, match="SECOND_KEY is not set"):
            merged(path, runs, environment={})
        job = resume_job(str(tmp_path / "results" / "whole"), None, Options(environment={"SECOND_KEY": "k"}))
        assert run_local(lambda: run(job, Observer())).status == "complete"
        carried_out(path, "plain", environment={"SECOND_KEY": "k"})
    assert figures(path, "whole")["judge_reliability"] == figures(path, "plain")["judge_reliability"]


@pytest.mark.slow
def test_a_live_system_is_not_asked_again(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n\n\ndef answer(case):\n"
        "    with (Path(__file__).parent / 'asked.txt').open('a') as stream:\n        stream.write(case.id + '\\n')\n"
        "    if case.id == 'c4':\n        raise RuntimeError('no')\n"
        "    return {'answer': case.question, 'retrieved': [{'text': case.question}]}\n"
    )
    system = {"name": "python", "call": "mine.py:answer"}
    path = suite(tmp_path, system=system, spot_check={"n": 6, "model": "strict"}, seed=1)
    merged(path, shards(path, 3))
    asked = (tmp_path / "asked.txt").read_text().split()
    assert sorted(set(asked)) == sorted(f"c{number}" for number in range(24))
    assert asked.count("c0") == 1
    carried_out(path, "plain")
    apart = ("latency", "operational", "cost")
    found = [
        {key: value for key, value in figures(path, name).items() if key not in apart} for name in ("whole", "plain")
    ]
    assert found[0] == found[1]
    whole = RunFolder(tmp_path / "results" / "whole").manifest()
    plain = RunFolder(tmp_path / "results" / "plain").manifest()
    assert whole.system["failures"] == plain.system["failures"]


@pytest.mark.slow
def test_a_merged_run_is_judged_again_like_any_other(tmp_path: Path) -> None:
    path = suite(tmp_path)
    merged(path, shards(path, 2))
    wanted = Options(results_dir=tmp_path / "results", run_id="again")
    job = open_rejudge("whole", RejudgeWanted(model="strict"), wanted)
    assert run_local(lambda: run(job, Observer())).status == "complete"
    with pytest.raises(ConfigError, match="there is nothing to resume"):
        resume_job(str(tmp_path / "results" / "whole"), None, Options())


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite with two shards and a plain run, for tests to copy."""
    path = suite(tmp_path_factory.mktemp("judged"))
    shards(path, 2)
    carried_out(path, "plain")
    return path


@pytest.fixture
def two(tmp_path: Path, judged: Path) -> Path:
    shutil.copytree(judged.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / judged.name


def changed(folder: Path, name: str, **update: Any) -> None:
    document = read_json(folder / name)
    for key, value in update.items():
        *parents, last = key.split("__")
        inner = document
        for parent in parents:
            inner = inner[parent]
        inner[last] = value
    (folder / name).write_text(json.dumps(document))
    seal_again(folder)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("manifest.json", {"status": "interrupted"}, "interrupted, not complete; resume it: judgekit run --resume"),
        ("manifest.json", {"shard": "2/3"}, "shards of one run have the same N"),
        ("manifest.json", {"shard": "1/2"}, "are both shard 1/2 and differ; name one of them"),
        ("manifest.json", {"shard": None}, "is not a shard"),
        ("manifest.json", {"shard_by": None}, "which took every N-th case"),
        ("manifest.json", {"limit": 3}, "differ in limit"),
        ("manifest.json", {"versions__system": "2"}, "differ in versions.system"),
        ("manifest.json", {"models__m__build_hash": "other"}, "models.m: build"),
        ("config.json", {"resolved__judgekit": "0.1"}, "differ in resolved.judgekit"),
        ("config.json", {"resolved__cases__sha256": "0"}, "differ in resolved.cases.sha256"),
        ("config.json", {"resolved__prompts__groundedness/v1": "0"}, "differ in resolved.prompts.groundedness/v1"),
        ("config.json", {"models__m__model": "overlap-1"}, "differ in models.m.model"),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(two: Path, name: str, change: Any, said: str) -> None:
    results = two.parent / "results"
    changed(results / "s1", "manifest.json", models__m={"build_hash": "one"})
    changed(results / "s2", "manifest.json", models__m={"build_hash": "one"})
    changed(results / "s2", name, **change)
    with pytest.raises(ConfigError) as caught:
        merged(two, ["s1", "s2"])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (results / "whole").exists()


def test_what_is_missing_is_named_and_what_is_given_twice_counts_once(two: Path) -> None:
    results = two.parent / "results"
    with pytest.raises(ConfigError, match=r"shard 2/2 is missing; judge it: judgekit run .* --shard 2/2"):
        merged(two, ["s1"])
    shutil.copytree(results / "s1", results / "copy")
    merged(two, ["copy", "s1", "s2"])
    assert figures(two, "whole") == figures(two, "plain")


def test_changed_data_is_refused(two: Path) -> None:
    changed(two.parent / "results" / "s1", "manifest.json", config_path=str(two))
    cases = two.parent / "cases.jsonl"
    cases.write_text(cases.read_text() + json.dumps(case("new")) + "\n")
    with pytest.raises(ConfigError, match=r"resolved.cases.sha256 changed in .*config.json or beside it"):
        merged(two, ["s1", "s2"])


@pytest.mark.parametrize("name", ["judgments.jsonl", "outputs.jsonl", "cases.jsonl", "metrics.json"])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_damaged_shard_is_exit_code_4(two: Path, name: str, is_lost: bool) -> None:
    path = two.parent / "results" / "s2" / name
    if is_lost:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(StorageError) as caught:
        merged(two, ["s1", "s2"])
    assert str(path) in str(caught.value)
    assert not (two.parent / "results" / "whole").exists()


def test_a_judgment_of_another_shard_is_damage(two: Path) -> None:
    results = two.parent / "results"
    foreign = read_lines(results / "s1" / "judgments.jsonl")[0]
    with (results / "s2" / "judgments.jsonl").open("a") as stream:
        stream.write(json.dumps(foreign) + "\n")
    seal_again(results / "s2")
    with pytest.raises(StorageError, match=r"judgments.jsonl:\d+: damaged line: case 'c\d+' is not one of shard 2/2"):
        merged(two, ["s1", "s2"])


def test_a_merge_that_was_killed_is_made_again(two: Path) -> None:
    merged(two, ["s1", "s2"])
    folder = two.parent / "results" / "whole"
    changed(folder, "manifest.json", status="running", files={})
    (folder / "judgments.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"delete the folder and merge again: judgekit merge .*s1 .*s2"):
        resume_job(str(folder), None, Options())


def test_a_shard_of_an_older_judgekit_is_not_resumed(two: Path) -> None:
    folder = two.parent / "results" / "s1"
    changed(folder, "manifest.json", shard_by=None, status="interrupted", files={})
    with pytest.raises(ConfigError, match=r"which took every N-th case; start it again: judgekit run .* --shard 1/2"):
        resume_job(str(folder), None, Options())


@pytest.mark.slow
def test_verdicts_older_than_a_day_are_asked_again_by_the_merged_run_only(tmp_path: Path) -> None:
    later = datetime.now(UTC) + timedelta(days=2)
    with FaultServer(on_kiln()) as server:
        path = write_suite(tmp_path, server.base_url, spot_check={"n": 2, "model": "x"}, models={
            "m": {"model": "judge-2025-01-01", "base_url": server.base_url},
            "x": {"provider": "lexical", "model": "overlap-strict-2"},
        })  # fmt: skip
        runs = shards(path, 2)
        summary = merged(path, runs, now=lambda: later)
    checks = read_json(tmp_path / "results" / "whole" / "checks.json")["checks"]
    assert [(item["check"], len(item["case_ids"])) for item in checks] == [("run", 2), ("again", 6)]
    assert summary.status == "complete"


def test_every_case_is_in_one_shard_and_the_id_alone_says_in_which() -> None:
    cases = [Case(id=f"c{number}") for number in range(1000)]
    found = [list(CasePart(shard=f"{number}/7").of(cases)) for number in range(1, 8)]
    assert sorted(item.id for part in found for item in part) == sorted(item.id for item in cases)
    # 143 expected in each; 4 standard deviations are 44.
    assert all(abs(len(part) - 143) < 44 for part in found)
    assert list(CasePart(shard="3/7").of(cases[::-1])) == found[2][::-1]
    assert shard_of("c0", 7) == 1 + int("122c597083bd438b", 16) % 7  # printf c0 | sha256sum | cut -c1-16


def test_a_shard_that_no_case_falls_into_is_a_run_of_no_case(tmp_path: Path) -> None:
    path = suite(tmp_path, n_cases=3)
    empty = next(number for number in range(1, 50) if not any(shard_of(f"c{n}", 50) == number for n in range(3)))
    assert carried_out(path, "none", shard=f"{empty}/50").status == "complete"


@pytest.mark.parametrize(
    ("wrong", "is_said_by_all"),
    [
        ({"cases": [case("c3")]}, True),
        ({"outputs": [output("c3")]}, True),
        ({"cases": [{"question": "no id"}]}, True),
        ({"outputs": [{"case_id": "c99", "answer": 7, "retrieved": "none"}]}, False),
        ({"cases": [case("c99", answerable="perhaps")]}, False),
        ({"cases": [case("c99", repeat_of="c3"), case("c98", answerable="perhaps")]}, False),
        ({"outputs": [output("c99")]}, None),
        ({"cases": [case("c99")]}, None),
        ({"cases": [case("c99", repeat_of="c3")]}, None),
    ],
)
def test_what_is_wrong_with_the_data_is_found_though_shards_read_only_their_own(
    tmp_path: Path, wrong: dict[str, Any], is_said_by_all: bool | None
) -> None:
    path = suite(tmp_path)
    for name, more in wrong.items():
        with (tmp_path / f"{name}.jsonl").open("a") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in more)

    def said(shard: str | None) -> str:
        """What a run of the data is refused for, or is warned of."""
        try:
            setup = set_up(path, Options(shard=shard))
        except JudgekitError as error:
            return str(error)
        return f"warned of {[*setup.warnings, *setup.system.warnings()]}"  # type: ignore[union-attr]

    whole, parts = said(None), [said(f"{number}/3") for number in (1, 2, 3)]
    assert whole.startswith("warned of") == (is_said_by_all is None)
    assert whole in parts if is_said_by_all is False else set(parts) == {whole}


@pytest.mark.slow
def test_python_shares_a_run_out_and_puts_it_together(two: Path) -> None:
    here = two.parent / "parts"
    halves = [judgekit.run(two, shard=f"{number}/2", run_id=f"p{number}", results_dir=here) for number in (1, 2)]
    assert [half.manifest.shard for half in halves] == ["1/2", "2/2"]
    result = judgekit.merge(halves[::-1], run_id="together", results_dir=two.parent / "results")
    assert result.folder == two.parent / "results" / "together"
    merged(two, ["s1", "s2"])
    assert figures(two, "together") == figures(two, "whole")
    for given, said in (("p1", "expected a list"), ([], "expected a list"), (halves[:1], "shard 2/2 is missing")):
        with pytest.raises(ConfigError, match=said):
            judgekit.merge(given, results_dir=here)


def test_errors_of_the_command_are_one_line(two: Path) -> None:
    with pytest.raises(JudgekitError, match="no run here"):
        merged(two, ["s1", "nothing"])
