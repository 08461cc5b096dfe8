"""Failure cases of a part of a file that stands for the whole: it is always said which part it is."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.case_parts import CasePart, cases_text
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError
from judgekit.core.history_points import dataset_sha256
from judgekit.core.runs import Manifest
from judgekit.testing import FaultServer
from judgekit.workflows.job import start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.setup import set_up
from tests.builders import case, output, read_json, read_lines, write_suite
from tests.cli.fork_server import judgekit as command
from tests.workflows.engine import good


def write_sorted(folder: Path, base_url: str | None = None, **suite: Any) -> Path:
    """40 cases, sorted by topic: 10 each of a, b, c and d."""
    ids = [f"{topic}{number}" for topic in "abcd" for number in range(10)]
    return write_suite(
        folder,
        base_url,
        case_rows=[{**case(case_id), "category": case_id[0]} for case_id in ids],
        output_rows=[output(case_id) for case_id in ids],
        **suite,
    )


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        pytest.param("--limit", "10 of 40 cases (--limit 10: the first ones)", id="T2-12-limit"),
        pytest.param("--sample", "10 of 40 cases (--sample 10: drawn at random with seed 0)", id="T2-12-sample"),
    ],
)
def test_t2_12_a_part_of_a_file_is_called_one_everywhere(tmp_path: Path, flag: str, said: str) -> None:
    config = write_sorted(tmp_path)
    run = command("run", str(config), flag, "10", "--run-id", "r", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert said in run.stdout
    folder = tmp_path / "results" / "r"
    assert said in (folder / "summary.md").read_text()
    assert said in (folder / "report.html").read_text()
    assert said in command("run", str(config), flag, "10", "--dry-run", cwd=tmp_path).stdout
    assert said in command("runs", "show", "r", cwd=tmp_path).stdout
    assert "10 of 40" in command("runs", "list", cwd=tmp_path).stdout
    topics = Counter(item["category"] for item in read_lines(folder / "cases.jsonl"))
    assert (topics == {"a": 10}) == (flag == "--limit")
    assert len(topics) > 1 or flag == "--limit"


def test_t2_12_a_sample_is_the_same_each_time_and_part_of_a_larger_one_whatever_the_order() -> None:
    cases = [Case(id=f"c{number}", question="?") for number in range(200)]

    def drawn(n: int, seed: int = 0, of: list[Case] = cases) -> list[str]:
        return [item.id for item in CasePart(sample=n, sample_seed=seed).of(of)]

    assert drawn(20) == drawn(20)
    assert set(drawn(20)) < set(drawn(50))
    assert set(drawn(20)) == set(drawn(20, of=cases[::-1]))
    assert drawn(20) != drawn(20, seed=1)
    assert drawn(20) == sorted(drawn(20), key=lambda case_id: int(case_id[1:]))
    # Of 100 drawn, 50 are expected of the first half; 3 standard deviations are 11.
    assert abs(sum(int(case_id[1:]) < 100 for case_id in drawn(100)) - 50) < 11
    assert drawn(500) == [item.id for item in cases]


def test_t2_12_a_sample_is_resumed_and_sharded_as_it_was_drawn(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_sorted(tmp_path, server.base_url, budget={"max_calls": 4}, seed=7)
        options = Options(run_id="r", sample=10)
        with pytest.raises(judgekit.core.errors.Interrupted):
            judgekit.run(config, run_id="r", sample=10)
        ids = [item["id"] for item in read_lines(tmp_path / "results" / "r" / "cases.jsonl")]
        config.write_text(json.dumps({**read_json(config), "budget": {}}))
        job = resume_job(str(tmp_path / "results" / "r"), None, Options())
        assert [item.id for item in job.cases] == ids == [item.id for item in set_up(config, options).cases]
        manifest = read_json(tmp_path / "results" / "r" / "manifest.json")
        assert (manifest["sample"], manifest["sample_seed"], manifest["n_cases_in_file"]) == (10, 7, 40)
        halves = [set_up(config, Options(sample=10, shard=f"{part}/2")).cases for part in (1, 2)]
        assert sorted(item.id for half in halves for item in half) == sorted(ids)


def test_t2_12_a_part_is_a_data_set_of_its_own_and_a_cut_of_nothing_is_the_whole(tmp_path: Path) -> None:
    config = write_sorted(tmp_path)

    def dataset(**part: Any) -> str:
        job = start(set_up(config, Options(**part)), Options(**part))
        return dataset_sha256("0" * 64, job.manifest)

    whole = dataset()
    assert whole == "0" * 64 == dataset(limit=40) == dataset(sample=99)
    assert len({whole, dataset(limit=10), dataset(sample=10), dataset(sample=11), dataset(sample=10, shard="1/2")}) == 5


def test_t2_12_what_was_rejudged_or_scored_again_is_still_a_part(tmp_path: Path) -> None:
    config = write_sorted(tmp_path)
    assert command("run", str(config), "--sample", "10", "--run-id", "r", cwd=tmp_path).returncode == 0
    said = "10 of 40 cases (--sample 10"
    assert command("rescore", "r", cwd=tmp_path).returncode == 0
    assert said in (tmp_path / "results" / "r" / "summary.md").read_text()
    again = command("rejudge", "r", "--run-id", "again", cwd=tmp_path)
    assert said in again.stdout, again.stderr
    assert Manifest.model_validate(read_json(tmp_path / "results" / "again" / "manifest.json")).sample == 10


def test_t2_12_limit_and_sample_exclude_each_other(tmp_path: Path) -> None:
    config = write_sorted(tmp_path)
    with pytest.raises(ConfigError, match="--limit and --sample: choose one"):
        set_up(config, Options(limit=3, sample=3))
    refused = command("run", "--resume", "r", "--sample", "3", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--sample" in refused.stderr


def test_named_cases_are_a_part_that_a_run_keeps_and_a_resume_takes_again(tmp_path: Path) -> None:
    config = write_sorted(tmp_path)
    run = command("run", str(config), "--case", "d3", "--case", "a1", "--case", "d3", "--run-id", "r", cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    said = "2 of 40 cases (--case d3 a1)"
    folder = tmp_path / "results" / "r"
    for text in (run.stdout, (folder / "summary.md").read_text(), command("runs", "show", "r", cwd=tmp_path).stdout):
        assert said in text
    assert [item["id"] for item in read_lines(folder / "cases.jsonl")] == ["a1", "d3"]  # in the order of the file
    manifest = Manifest.model_validate(read_json(folder / "manifest.json"))
    assert manifest.case_ids == ("d3", "a1")
    assert read_json(folder / "metrics.json")["cases"]["case_ids"] == ["d3", "a1"]
    swapped = manifest.model_copy(update={"case_ids": ("a1", "d3")})
    assert dataset_sha256("0" * 64, manifest) == dataset_sha256("0" * 64, swapped) != "0" * 64
    again = command("rejudge", "r", "--run-id", "again", cwd=tmp_path)
    assert said in again.stdout, again.stderr


def test_named_cases_that_are_interrupted_are_resumed_as_they_were_named(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        config = write_sorted(tmp_path, server.base_url, budget={"max_calls": 2})
        stopped = command(
            "run", str(config), "--case", "a1", "--case", "b2", "--case", "c3", "--run-id", "r", cwd=tmp_path
        )
        assert stopped.returncode == 130, stopped.stderr
        config.write_text(json.dumps({**read_json(config), "budget": {}}))
        resumed = command("run", "--resume", "r", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    judged = {item["case_id"] for item in read_lines(tmp_path / "results" / "r" / "judgments.jsonl")}
    assert judged == {"a1", "b2", "c3"}


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"case_ids": ("a11",)}, "--case 'a11': the file has no such case; did you mean 'a1'"),
        ({"case_ids": ("a1", "something else")}, "--case 'something else': the file has no such case; ids are such as"),
        ({"case_ids": ("a1",), "limit": 3}, "--case names the cases; leave out --limit, --sample and --shard"),
        ({"case_ids": ("a1",), "shard": "1/2"}, "--case names the cases; leave out"),
    ],
)
def test_cases_that_cannot_be_named_so_are_refused(tmp_path: Path, part: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_up(write_sorted(tmp_path), Options(**part))
    assert said in str(caught.value)


def test_naming_every_case_is_no_part(tmp_path: Path) -> None:
    options = Options(case_ids=tuple(f"{topic}{number}" for topic in "abcd" for number in range(10)))
    assert set_up(write_sorted(tmp_path), options).part == CasePart()


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"n": 6, "n_in_file": 40, "case_ids": list("abcdef")}, "6 of 40 cases (--case of 6 ids)"),
        ({"n": 1, "n_in_file": 1}, "1 case"),
        ({"n": 40, "n_in_file": 40, "limit": None}, "40 cases"),
        ({"n": 10, "n_in_file": 40}, "10 of 40 cases"),  # of a run that did not keep why
        (
            {"n": 5, "n_in_file": 40, "limit": 10, "shard": "1/2"},
            "5 of 40 cases (--limit 10: the first ones, --shard 1/2 of them)",
        ),
        ({"n": 20, "n_in_file": 40, "shard": "1/2"}, "20 of 40 cases (--shard 1/2)"),
    ],
)
def test_t2_12_how_a_part_is_said(record: dict[str, Any], text: str) -> None:
    assert cases_text(record) == text
