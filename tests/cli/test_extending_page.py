"""docs/extending.md as its reader follows it: each way is tried with the page's own text."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import judgekit
from judgekit.core.errors import ConfigError
from judgekit.testing import FaultServer
from judgekit.workflows.models import Options
from judgekit.workflows.setup import set_up
from tests.builders import read_json

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")


def block(language: str, begins: str) -> str:
    """The one block of the page that begins so."""
    found: str
    (found,) = [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if text.startswith(begins)]
    return found


CASES = [{"id": f"q{n}", "question": "how long is it"} for n in range(1, 4)]
OUTPUTS = [
    {"case_id": "q1", "answer": "it is long. it is very long.\n- yes"},
    {"case_id": "q2", "answer": " ".join(["word"] * 25)},
    {"case_id": "q3", "error": {"kind": "timeout", "message": "too slow"}},
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, rows in (("cases", CASES), ("outputs", OUTPUTS)):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "my_metrics.py").write_text(block("python", "import judgekit"))
    (tmp_path / "my_classes.py").write_text(block("python", "from typing"))
    (tmp_path / "my_executors.py").write_text(block("python", '"""Shards in processes'))
    for name in ("tone", "Language"):
        folder = tmp_path / "prompts" / name
        folder.mkdir(parents=True)
        (folder / "v1.toml").write_text(block("toml", f'judge = "{name}"'))
    return tmp_path


def config(project: Path, **more: Any) -> Path:
    system = {"name": "recorded", "path": "outputs.jsonl"}
    data = {"name": "own", "cases": "cases.jsonl", "system": system, "metrics": [], "results_dir": "results", **more}
    path = project / "config.json"
    path.write_text(json.dumps(data))
    return path


def value(summary: Any, name: str) -> Any:
    return summary.overall[name].value


@pytest.mark.parametrize("entry", [json.loads(block("json", '{"name": "tone"')), {"name": "tone", "model": "judge"}])
def test_a_judge_is_an_entry_of_the_config_or_a_prompt_file(project: Path, entry: dict[str, Any]) -> None:
    with FaultServer('{"reasoning": "kind", "score": 4}') as server:
        models = {"judge": {"model": "judge-test", "base_url": server.base_url}}
        path = config(project, models=models, judges=[entry], **({} if "ask" in entry else {"prompts_dir": "prompts"}))
        summary = judgekit.run(path)
    assert value(summary, "tone") == 4
    assert summary.overall["tone"].n == 2


def test_functions_give_shares_means_and_a_figure_for_each_key(project: Path) -> None:
    summary = judgekit.run(config(project, **json.loads(block("json", '{"metrics": [\n'))))
    assert value(summary, "brevity") == 0.5  # 9 words, then 25, at most 20
    assert "wilson" in summary.overall["brevity"].method
    assert value(summary, "overlap") == 0.25  # it and is of 4 words, then none: (2/4 + 0) / 2
    assert (value(summary, "form.sentences"), value(summary, "form.list")) == (1.0, 0.5)
    assert summary.overall["form.list"].n_error == 1


def test_a_metric_and_a_judge_are_classes_of_a_file(project: Path) -> None:
    named = json.loads(block("json", '{"metrics": [{"name": "file:my_classes'))
    with FaultServer('{"reasoning": "both are English", "answer": true}') as server:
        models = {"judge": {"model": "judge-test", "base_url": server.base_url}}
        summary = judgekit.run(config(project, models=models, prompts_dir="prompts", **named))
    assert value(summary, "length.too_many") == 2.5  # 0 and 25 - 20
    assert (value(summary, "Language"), summary.overall["Language"].n) == (1.0, 2)


@pytest.fixture
def installed(project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project as an installed package, without the work of an installer."""
    from judgekit.core import components

    points = tomllib.loads(block("toml", "[build-system]"))["project"]["entry-points"]
    info = project / "my_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items()]
    (info / "entry_points.txt").write_text("\n".join([*lines, "broken = nowhere_at_all:Nothing\n"]))
    monkeypatch.syspath_prepend(str(project))
    components._installed.cache_clear()
    yield project
    components._installed.cache_clear()


def test_an_installed_metric_takes_part_only_if_the_config_names_it(installed: Path) -> None:
    names = [metric.name for metric in set_up(config(installed, metrics=None), Options()).metrics]
    assert "retrieval" in names
    assert not {"length", "broken"}.intersection(names)
    summary = judgekit.run(config(installed, metrics=["length"]))
    assert value(summary, "length.words") == 17.0  # (9 + 25) / 2
    with pytest.raises(ConfigError, match="'broken' cannot be loaded: ModuleNotFoundError"):
        set_up(config(installed, metrics=["broken"]), Options())


@pytest.mark.slow
def test_an_executor_of_thirty_lines_keeps_the_contract_and_judges_a_run(installed: Path) -> None:
    names: dict[str, Any] = {}
    exec(block("python", "from judgekit.testing import check_executor"), names)
    (installed / "shards").mkdir()
    names["test_processes"](installed / "shards")
    metrics: dict[str, Any] = {"metrics": ["length"]}
    plain = judgekit.run(config(installed, **metrics), run_id="plain").summary
    shared = judgekit.run(
        config(installed, executor={"name": "processes", "workers": 2, "shards": 3}, **metrics), run_id="shared"
    ).summary
    assert shared.overall == plain.overall
    assert [shard["shard"] for shard in read_json(installed / "results" / "shared" / "manifest.json")["shards"]] == [
        "1/3", "2/3", "3/3",
    ]  # fmt: skip
