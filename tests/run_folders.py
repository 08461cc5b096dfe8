"""Run folders written directly, so that a large one takes a second and a hostile one holds exactly what a test says."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from judgekit.core.conditions import GateResult
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import Manifest, Notice, RunStatus, RunSummary
from judgekit.core.scores import Estimate
from judgekit.storage.prompt_files import load_prompt

CATEGORIES = ("factual", "reasoning", "multi_hop", "conflict", "recency")
MODEL = "judge-2025-01-01"


def estimate(value: float | None, n: int, *, n_error: int = 0, n_not_applicable: int = 0) -> Estimate:
    """A figure with an interval of 0.05 on both sides."""
    low, high = (None, None) if value is None else (max(0.0, value - 0.05), value + 0.05)
    return Estimate(
        value=value, low=low, high=high, n=n, n_not_applicable=n_not_applicable, n_error=n_error, method="mean, test"
    )


def question_of(number: int) -> str:
    return f"What is fired in kiln {number} on day {number % 31}, and how hot does it get?"


def answer_of(number: int) -> str:
    return f"Kiln {number} is fired at {1000 + number % 300} degrees. It is opened on day {number % 31}."


def score_of(number: int) -> int:
    return number * 7 % 6


def has_failed(number: int) -> bool:
    return number % 50 == 49


def write_run(
    folder: Path,
    n_cases: int = 6,
    *,
    n_judged: int | None = None,
    status: RunStatus = "complete",
    answer: Callable[[int], str] = answer_of,
    question: Callable[[int], str] = question_of,
    context: Callable[[int], str] | None = None,
    reasoning: Callable[[int], str] = lambda _: "The first claim stands in passage 1, the second one does not.",
    case_id: Callable[[int], str] = lambda number: f"c{number:05}",
    label: str | None = None,
    gates: tuple[GateResult, ...] = (),
    warnings: tuple[Notice, ...] = (),
) -> Path:
    """A run of one judge, with a spot check of ten cases and some failures: every fiftieth output is an error.

    Args:
        folder: the run folder to make; its name is the run id.
        n_cases: number of cases.
        n_judged: cases judged, from the first one; None: all.
        status: of the manifest; a run that is `running` has no scores and no figures.
        answer: text of the answer by case number.
        question: text of the question.
        context: text of each of three contexts; None: the answer's first sentence.
        reasoning: reasoning of the verdict.
        case_id: id by case number.
        label: category of all cases; None: five in turn.
        gates: of metrics.json.
        warnings: of metrics.json.
    """
    folder.mkdir(parents=True)
    prompt = load_prompt("groundedness", "v1")
    n_done = n_cases if n_judged is None else n_judged
    about = context or (lambda number: answer(number).split(".", 1)[0] + ".")
    numbers = range(n_cases)
    good = [number for number in numbers if not has_failed(number)]
    ids = {number: case_id(number) for number in numbers}
    category = {number: label or CATEGORIES[number % len(CATEGORIES)] for number in numbers}

    def hits(number: int) -> list[dict[str, Any]]:
        return [
            {
                "chunk_id": f"k{number}-{rank}",
                "rel_path": f"kilns/{number}.md",
                "heading_path": ["Kiln", f"Part {rank}"],
                "text": about(number),
                "rank": rank,
                "score": round(1 / rank, 3),
            }
            for rank in (1, 2, 3)
        ]

    def variables(number: int) -> dict[str, Any]:
        passages = [{"number": rank, "source": f"kilns/{number}.md", "text": about(number)} for rank in (1, 2, 3)]
        return {"answer": answer(number), "passages": passages, "citations": None}

    def outputs() -> Iterator[dict[str, Any]]:
        for number in numbers:
            yield (
                {"case_id": ids[number], "error": {"kind": "timeout", "message": "no answer within 30 s"}}
                if has_failed(number)
                else {
                    "case_id": ids[number],
                    "answer": answer(number),
                    "retrieved": hits(number),
                    "latency_seconds": {"total": 1 + number % 7},
                }
            )

    _write_lines(
        folder / "cases.jsonl",
        (
            {
                "id": ids[number],
                "question": question(number),
                "answerable": True,
                "category": category[number],
                "reference_answers": [f"At {1000 + number % 300} degrees."],
                "gold_supports": [{"rel_path": f"kilns/{number}.md", "heading_path": ["Kiln", "Part 1"]}],
            }
            for number in numbers
        ),
    )
    _write_lines(folder / "outputs.jsonl", outputs())
    _write_lines(
        folder / "judge_inputs.jsonl",
        ({"case_id": ids[number], "judge": "groundedness", "variables": variables(number)} for number in good),
    )
    judged = [number for number in good if number < n_done]
    checked = judged[:10]
    _write_lines(
        folder / "judgments.jsonl",
        [
            _judgment(ids[number], score_of(number), answer(number), reasoning(number), prompt)
            for number in reversed(judged)
        ]
        + [_judgment(ids[number], 3, answer(number), reasoning(number), prompt, "spot_check") for number in checked],
    )
    (folder / "prompts.json").write_text(json.dumps({"groundedness/v1": prompt.model_dump()}), encoding="utf-8")
    (folder / "config.json").write_text(
        json.dumps(
            {
                "name": "kilns",
                "slices": ["category"],
                "errors": "exclude",
                "seed": 0,
                "judges": [{"name": "groundedness", "prompt_version": "v1", "model": "m"}],
            }
        ),
        encoding="utf-8",
    )
    manifest = Manifest(
        run_id=folder.name,
        name="kilns",
        status=status,
        created_at="2026-01-31T14:25:01+00:00",
        config_path="config.json",
        config_sha256="0" * 64,
        versions={"judgekit": "0.1.0", "python": "3.11.7"},
        wall_seconds=12.5,
        reason=None if status in ("complete", "running") else "interrupted by the user",
    )
    (folder / "manifest.json").write_text(manifest.model_dump_json(), encoding="utf-8")
    if status == "running":
        return folder
    _write_lines(
        folder / "scores.jsonl",
        (score for number in numbers for score in _scores(ids[number], number, number < n_done)),
    )
    values = {number: float(score_of(number)) for number in judged}
    figures = _figures(values, n_cases)
    by_category: dict[str, dict[int, float]] = {}
    for number, value in values.items():
        by_category.setdefault(category[number], {})[number] = value
    summary = RunSummary(
        run_id=folder.name,
        name="kilns",
        created_at=manifest.created_at,
        status=status,
        reason=manifest.reason,
        config_sha256="0" * 64,
        errors="exclude",
        cases={"path": "cases.jsonl", "sha256": "1" * 64, "n": n_cases},
        overall=figures,
        slices={"category": {name: _figures(own, len(own)) for name, own in sorted(by_category.items())}},
        judge_reliability=_reliability([(ids[number], score_of(number)) for number in checked]),
        judges={"groundedness": _judge_record(len(judged), prompt)},
        latency={"total": {"n": len(good), "p50_ms": 4000.0, "p95_ms": 7000.0}},
        cost={
            "n_calls": len(judged),
            "n_from_cache": 0,
            "n_without_usage": 0,
            "prompt_tokens": 1000,
            "completion_tokens": 200,
            "cached_tokens": 0,
            "usd": None,
            "usd_of_priced_models": 0.0,
            "price_list": None,
            "unpriced_models": ["m"],
        },
        operational={"error_rate": estimate(1 - len(good) / n_cases, n_cases).model_dump()},
        gates=gates,
        warnings=warnings,
    )
    (folder / "metrics.json").write_text(summary.model_dump_json(), encoding="utf-8")
    return folder


def _figures(values: dict[int, float], n_cases: int) -> dict[str, Estimate | dict[str, int]]:
    n = len(values)
    mean = sum(values.values()) / n if n else None
    counts = {str(score): sum(value == score for value in values.values()) for score in range(6)}
    passed = None if mean is None else sum(value >= 4 for value in values.values()) / n
    return {
        "groundedness": estimate(mean, n, n_error=n_cases - n),
        "groundedness.distribution": counts,
        "groundedness_pass_rate": estimate(passed, n, n_error=n_cases - n),
        "recall_any@5": estimate(0.75, n, n_not_applicable=n_cases - n),
        "mrr": estimate(0.5, n, n_not_applicable=n_cases - n),
    }


def _scores(case_id: str, number: int, is_judged: bool) -> list[dict[str, Any]]:
    failed = "failed: timeout" if has_failed(number) else "failed: not judged" if not is_judged else None
    score = score_of(number)
    found: list[tuple[str, float | None, str | None]] = [
        ("groundedness", None if failed else float(score), failed),
        ("groundedness_pass", None if failed else float(score >= 4), failed),
        ("recall_any@5", float(number % 4 != 0), None),
        ("mrr", 1 / (1 + number % 4), None),
        ("recency_conflict", None, "n/a: no rule"),
    ]
    return [{"case_id": case_id, "name": name, "value": value, "reason": reason} for name, value, reason in found]


def _judgment(
    case_id: str, score: int, answer: str, reasoning: str, prompt: PromptTemplate, role: str = "primary"
) -> dict[str, Any]:
    first, _, rest = answer.partition(". ")
    verdict = {
        "score": score,
        "reasoning": reasoning,
        "supported_claims": [first],
        "unsupported_claims": [rest] if rest else [],
    }
    return {
        "case_id": case_id,
        "judge": "groundedness",
        "role": role,
        "prompt_version": "v1",
        "prompt_sha256": prompt.sha256,
        "input_sha256": "2" * 64,
        "model_id": "m",
        "provider": "openai_compatible",
        "model": MODEL,
        "served_model": MODEL,
        "key": "reply:2:" + "3" * 64,
        "parameters": {"temperature": 0},
        "verdict": verdict,
        "raw_reply": json.dumps(verdict),
        "finish_reason": "stop",
        "parse_path": "strict",
        "parser_version": 1,
        "latency_seconds": 0.8,
        "created_at": "2026-01-31T14:25:02+00:00",
        "n_requests": 1,
    }


def _judge_record(n_judged: int, prompt: PromptTemplate) -> dict[str, Any]:
    return {
        "model": MODEL,
        "model_id": "m",
        "provider": "openai_compatible",
        "build_hash": None,
        "is_llm": True,
        "note": None,
        "prompt_version": "v1",
        "prompt_sha256": prompt.sha256,
        "n_judged": n_judged,
        "n_failed": 0,
        "n_asked_again": 0,
        "failures": {},
        "parse_paths": {"strict": n_judged},
        "flags": {},
        "temperature_accepted": True,
        "served_models": {MODEL: n_judged},
        "fingerprints": {},
    }


def _reliability(sample: list[tuple[str, int]]) -> dict[str, Any]:
    rows = [
        {"case_id": case_id, "first": score, "second": 3, "disagrees": abs(score - 3) > 1} for case_id, score in sample
    ]
    n = len(rows)
    rate = {
        "disagreement_rate": sum(bool(row["disagrees"]) for row in rows) / n if n else None,
        "spot_check_n": n,
        "interval": {"low": 0.1, "high": 0.6, "method": "wilson 95%"},
        "threshold": 0.2,
        "fired": True,
        "status": "alarm",
        "n_asked": n,
        "n_unscored": 0,
    }
    own = {
        **rate,
        "quadratic_weighted_kappa": 0.0,
        "krippendorff_alpha": None,
        "mean_signed_difference": 0.5,
        "sample": rows,
        "against": {
            "model": "second-2025-01-01",
            "model_id": "s",
            "prompt_version": "v1",
            "prompt_sha256": prompt_hash(),
        },
    }
    return {**rate, "by_judge": {"groundedness": own}}


def prompt_hash() -> str:
    return load_prompt("groundedness", "v1").sha256


def a_summary() -> RunSummary:
    """Figures of a small run with one judge and a spot check."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        return RunSummary.model_validate_json((write_run(Path(folder) / "run") / "metrics.json").read_text("utf-8"))


def _write_lines(path: Path, records: Any) -> None:
    with path.open("wb") as stream:
        for record in records:
            stream.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
