"""Small, valid things for tests to change."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from judgekit.core.history_points import HistoryPoint
from judgekit.storage.run_folder import RunFolder

REPOSITORY = Path(__file__).parent.parent


def case(case_id: str = "c1", **fields: Any) -> dict[str, Any]:
    """A case about a kiln, with whatever else a test needs."""
    return {"id": case_id, "question": f"How hot is kiln {case_id}?", "answerable": True, **fields}


def output(case_id: str = "c1", **fields: Any) -> dict[str, Any]:
    """A grounded output for it."""
    text = f"Kiln {case_id} is fired at 1240 degrees."
    return {"case_id": case_id, "answer": text, "retrieved": [{"chunk_id": "k1", "text": text}], **fields}


def write_lines(path: Path, records: Sequence[dict[str, Any]]) -> Path:
    """A JSONL file."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def write_suite(
    folder: Path,
    base_url: str | None = None,
    *,
    n_cases: int = 6,
    model: dict[str, Any] | None = None,
    case_rows: Sequence[dict[str, Any]] | None = None,
    output_rows: Sequence[dict[str, Any]] | None = None,
    **config: Any,
) -> Path:
    """A config with its cases and outputs: one groundedness judge, lexical or at a server.

    Args:
        folder: where to write.
        base_url: a server that speaks chat completions; None takes the embedded judge.
        n_cases: number of cases where none are given.
        model: entries of the model config that differ.
        case_rows: cases instead of the built ones.
        output_rows: outputs instead of the built ones.
        config: further keys of the config.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ids = [f"c{number}" for number in range(n_cases)]
    write_lines(folder / "cases.jsonl", case_rows or [case(case_id) for case_id in ids])
    write_lines(folder / "outputs.jsonl", output_rows or [output(case_id) for case_id in ids])
    if base_url is None:
        judge_model: dict[str, Any] = {"provider": "lexical", "model": "overlap-2"}
    else:
        judge_model = {"model": "judge-2025-01-01", "base_url": base_url, "max_concurrency": 4, "timeout_seconds": 10}
    document = {
        "name": "suite",
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "models": {"m": {**judge_model, **(model or {})}},
        "judges": [{"name": "groundedness", "model": "m"}],
        "results_dir": "results",
        **config,
    }
    path = folder / "config.json"
    path.write_text(json.dumps(document, indent=1), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records of a JSONL file; of scores.jsonl one for every score, those that do not apply too."""
    if path.name == "scores.jsonl":
        scores = RunFolder(path.parent).scores()
        return [score.model_dump(exclude=set() if score.source else {"source"}) for score in scores]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def read_json(path: Path) -> Any:
    """A JSON file, read strictly."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{path} holds {name}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def seal_again(folder: Path) -> None:
    """Put count and hash of the files of a run in its manifest, after a test changed one of them by hand."""
    RunFolder(folder).seal()


def weekly_point(week: int, n_disagree: int, **fields: Any) -> HistoryPoint:
    """One of the weekly points of a judge: 20 pairs, of which some disagree."""
    values = {
        "run_id": f"week-{week:02}",
        "judge": "groundedness",
        "prompt_version": "v1",
        "dataset_sha256": "d" * 64,
        "kind": "rejudge",
        "comparator": "overlap-2 with v1",
        "created_at": f"2026-01-{week:02}T00:00:00+00:00",
        "n_asked": 20,
        "n_pairs": 20,
        "n_disagree": n_disagree,
        "n_failed": 0,
        "prompt_sha256": "p",
        "parser_version": "1",
    }
    return HistoryPoint(**{**values, **fields})
