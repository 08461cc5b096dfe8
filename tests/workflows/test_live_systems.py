"""Live systems end to end: outputs on disk as they come, resumed without asking twice, the same figures afterwards."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from judgekit.core.errors import ConfigError, InputError, ProviderError
from judgekit.core.runs import RunSummary
from judgekit.engine.passes import Observer
from judgekit.storage.cache_entries import CacheReader, cache_record
from judgekit.systems import python
from judgekit.workflows.dry_run import dry_run
from judgekit.workflows.job import RunJob, start
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run
from judgekit.workflows.setup import set_up
from tests.builders import case, write_lines

APP = """
import asyncio, time
from pathlib import Path
from judgekit.core.protocols import AskError

LOG = Path(__file__).with_name("asked.log")


def note(case):
    with LOG.open("a") as stream:
        stream.write(case.id + "\\n")


def text(case):
    return f"Kiln {case.id.partition('#')[0]} is fired at 1240 degrees."


def ask(case):
    note(case)
    print("noise on stdout")
    return {"answer": text(case), "retrieved": [{"chunk_id": "k1", "text": text(case)}]}


async def ask_async(case):
    note(case)
    await asyncio.sleep(0)
    return ask(case)


def stream(case):
    yield "Kiln is "
    yield "fired."


async def stream_async(case):
    yield "Kiln is "
    yield "fired."


def lazy(case):
    return ask_async(case)


def failing(case):
    if case.id == "c2":
        raise RuntimeError("the index is gone")
    return ask(case)


def dies_after_three(case):
    if LOG.exists() and len(LOG.read_text().split()) >= 3:
        raise AskError("connection", "down")
    return ask(case)


def exits(case):
    raise SystemExit(3)


def numbers(case):
    yield 4


def blocks(case):
    time.sleep(3)
    return "late"


not_a_function = 7
"""


def suite(folder: Path, call: str = "ask", *, n_cases: int = 4, judged: bool = True, **more: Any) -> Path:
    """A config whose system is a function of `app.py`."""
    (folder / "app.py").write_text(APP)
    write_lines(folder / "cases.jsonl", [case(f"c{number}") for number in range(1, n_cases + 1)])
    system = {"name": "python", "call": f"app.py:{call}", "max_attempts": 1, **more.pop("system", {})}
    judges = {
        "models": {"m": {"provider": "lexical", "model": "overlap-2"}},
        "judges": [{"name": "groundedness", "model": "m"}],
    }
    config = {"name": "live", "cases": "cases.jsonl", "system": system, **(judges if judged else {}), **more}
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return path


def begun(config: Path, **options: Any) -> RunJob:
    wanted = Options(results_dir=config.parent / "results", **options)
    return start(set_up(config, wanted), wanted)


def carried_out(config: Path, **options: Any) -> tuple[RunSummary, RunJob]:
    job = begun(config, **options)
    return asyncio.run(run(job, Observer())), job


def asked(folder: Path) -> list[str]:
    path = folder / "asked.log"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("call", ["ask", "ask_async", "lazy"])
def test_a_function_is_asked_once_a_case_and_recorded_outputs_give_the_same_figures(tmp_path: Path, call: str) -> None:
    summary, job = carried_out(suite(tmp_path, call))
    assert summary.status == "complete"
    assert "python, asked 4 times" in (job.folder.path / "report.html").read_text()
    assert set(asked(tmp_path)) == {"c1", "c2", "c3", "c4"}
    assert summary.overall["groundedness"].value == 5.0  # type: ignore[union-attr]
    folder = job.folder
    assert [output.case_id for output in folder.outputs()] == ["c1", "c2", "c3", "c4"]
    assert not folder.has("outputs.partial.jsonl")
    assert folder.manifest().system["failures"] == {}
    before = len(asked(tmp_path))
    recorded = tmp_path / "recorded.json"
    document = json.loads((tmp_path / "config.json").read_text())
    recorded.write_text(json.dumps({**document, "system": {"path": str(folder.path / "outputs.jsonl")}}))
    again, _ = carried_out(recorded)
    assert again.overall == summary.overall
    assert again.slices == summary.slices
    assert len(asked(tmp_path)) == before


@pytest.mark.parametrize("call", ["stream", "stream_async"])
def test_the_texts_of_a_generator_are_the_answer(tmp_path: Path, call: str) -> None:
    _, job = carried_out(suite(tmp_path, call, n_cases=1, judged=False))
    assert [output.answer for output in job.folder.outputs()] == ["Kiln is fired."]


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        ("exits", "exception", "SystemExit: 3 (app.py:"),
        ("numbers", "invalid_output", "a generator gives the answer in texts, found int 4"),
    ],
)
def test_what_a_function_does_wrong_is_an_error_row(tmp_path: Path, call: str, kind: str, message: str) -> None:
    _, job = carried_out(suite(tmp_path, call, n_cases=1, judged=False))
    (output,) = job.folder.outputs()
    assert output.error is not None
    assert output.error.kind == kind
    assert message in output.error.message


def test_one_failed_case_does_not_cost_the_others_and_is_counted(tmp_path: Path) -> None:
    summary, job = carried_out(suite(tmp_path, "failing"))
    assert summary.overall["groundedness"].n_error == 1  # type: ignore[union-attr]
    assert [notice.message for notice in summary.warnings if notice.code == "system_failures"] == [
        "system python failed on 1 of 4 cases (exception 1); they are in n_error"
    ]
    assert job.folder.manifest().system["failures"] == {"exception": 1}


def test_a_call_that_blocks_is_a_timeout_and_holds_nobody_up(tmp_path: Path) -> None:
    config = suite(tmp_path, "blocks", n_cases=2, judged=False, system={"timeout_seconds": 0.05})
    _, job = carried_out(config)
    assert [output.error and output.error.kind for output in job.folder.outputs()] == ["timeout", "timeout"]


def test_a_stopped_recording_is_resumed_and_no_case_is_asked_twice(tmp_path: Path) -> None:
    config = suite(tmp_path, "dies_after_three", n_cases=9, system={"max_concurrency": 1, "stop_after": 2})
    job = begun(config)
    with pytest.raises(ProviderError, match="2 calls in a row failed"):
        asyncio.run(run(job, Observer()))
    assert job.folder.manifest().status == "interrupted"
    assert asked(tmp_path) == ["c1", "c2", "c3"]
    partial = job.folder.path / "outputs.partial.jsonl"
    partial.write_bytes(partial.read_bytes() + b'{"case_id": "c4", "ans')  # as a kill leaves it
    text = (tmp_path / "app.py").read_text()
    (tmp_path / "app.py").write_text(text.replace(">= 3", ">= 300"))
    options = Options(results_dir=tmp_path / "results")
    with pytest.raises(ConfigError, match=r"resolved.system.code_sha256 changed"):
        resume_job(job.folder.path.name, None, options)
    (tmp_path / "app.py").write_text(text)
    (tmp_path / "asked.log").write_text("")  # the system is up again
    resumed = resume_job(job.folder.path.name, None, options)
    with pytest.raises(ProviderError):  # three more, then it is down again
        asyncio.run(run(resumed, Observer()))
    assert asked(tmp_path) == ["c4", "c5", "c6"]
    (tmp_path / "asked.log").write_text("")
    assert asyncio.run(run(resume_job(job.folder.path.name, None, options), Observer())).status == "complete"
    assert asked(tmp_path) == ["c7", "c8", "c9"]


def test_recording_alone_stops_before_the_judges_and_a_resume_judges(tmp_path: Path) -> None:
    job = begun(suite(tmp_path))
    summary = asyncio.run(run(job, Observer(), only_record=True))
    assert (summary.status, summary.reason) == ("interrupted", "the outputs are recorded, and no judge was asked yet")
    assert not list(job.folder.judgments())
    resumed = resume_job(job.folder.path.name, None, Options(results_dir=tmp_path / "results"))
    assert asyncio.run(run(resumed, Observer())).status == "complete"
    assert len(asked(tmp_path)) == 4


def test_outputs_of_a_version_are_cached_for_other_runs(tmp_path: Path) -> None:
    config = suite(tmp_path, system={"version": "7"})
    carried_out(config)
    _, job = carried_out(config)
    assert len(asked(tmp_path)) == 4
    assert job.folder.manifest().system["n_from_cache"] == 4
    with CacheReader(tmp_path / "results" / ".cache") as reader:
        assert cache_record(reader)["n_outputs"] == 4
    carried_out(config, use_cache=False)
    assert len(asked(tmp_path)) == 8


def test_repeats_are_answered_one_by_one(tmp_path: Path) -> None:
    summary, _ = carried_out(suite(tmp_path, n_cases=2, repeats=3))
    assert sorted(asked(tmp_path)) == ["c1", "c1#2", "c1#3", "c2", "c2#2", "c2#3"]
    assert summary.cluster_by == "metadata.repeat_of"
    assert summary.overall["groundedness"].n == 6  # type: ignore[union-attr]


def test_a_dry_run_asks_nobody(tmp_path: Path) -> None:
    options = Options(results_dir=tmp_path / "results")
    found = asyncio.run(dry_run(set_up(suite(tmp_path), options), options))
    assert not asked(tmp_path)
    assert found["judges"]["groundedness"]["n_inputs"] == 4
    assert [code for code, _ in found["warnings"] if code == "outputs_not_known"] == ["outputs_not_known"]


def test_what_no_output_has_is_said_with_the_place_of_the_outputs(tmp_path: Path) -> None:
    job = begun(suite(tmp_path, "stream"))
    with pytest.raises(InputError, match=r"needs retrieved, which no output has(.|\n)*are kept; name them as system"):
        asyncio.run(run(job, Observer()))
    assert len(list(job.folder.outputs())) == 4


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ({"name": "pyhton"}, "no system called 'pyhton'; did you mean 'python'?"),
        ({"name": "python"}, 'name the function: "call": "app.py:ask"'),
        ({"name": "python", "call": "app.py"}, "expected file:PATH.py:NAME"),
        ({"name": "python", "call": "app.py:nothing"}, "has no 'nothing'"),
        ({"name": "python", "call": "gone.py:ask"}, "no file gone.py"),
        ({"name": "python", "call": "app.py:not_a_function"}, "is a int; expected a function of a case"),
        ({"name": "python", "call": "app.py:ask", "timeout": 3}, "timeout"),
        ({"name": "python", "call": "app.py:ask", "max_concurrency": 0}, "max_concurrency"),
    ],
)
def test_a_wrong_config_is_one_line_before_anything_is_asked(
    tmp_path: Path, system: dict[str, Any], message: str
) -> None:
    config = suite(tmp_path)
    document = json.loads(config.read_text())
    config.write_text(json.dumps({**document, "system": system}))
    with pytest.raises(ConfigError) as caught:
        set_up(config, Options())
    assert message in str(caught.value)
    assert not asked(tmp_path)


def test_a_function_itself_may_be_the_system() -> None:
    system = python.Python(function=lambda case: case.question)
    assert system.settings()["function"].endswith("<lambda>")
    with pytest.raises(ValidationError, match=r"was the function ask in Python; resume with judgekit.evaluate"):
        python.Python.model_validate({"function": "ask"})
