"""A run in the shared format Every Eval Ever 0.3: one document of figures, and one line for each score of a case.

A figure without a value is left out, since the format has no other outcome than a number; how many cases failed and how
many it does not apply to stands in the details of each figure. Source: https://evalevalai.com, schema version 0.3.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from judgekit.core.cases import Message
from judgekit.core.conversations import messages_of
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import CaseRecord, Manifest, RunSummary
from judgekit.core.scores import Column, Estimate, Pooled
from judgekit.core.text import canonical_sha256, instant_of
from judgekit.reports.safe_text import inert

SCHEMA_VERSION = "0.3.0"
_WITHOUT_DIRECTION = {"has_direction": "false"}
"""Neither way is better; the format has no other word for it."""
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}


@dataclass(frozen=True)
class SharedRun:
    """What the shared format takes of a run."""

    manifest: Manifest
    summary: RunSummary
    config: Mapping[str, Any]
    prompts: Mapping[str, PromptTemplate]
    columns: Mapping[str, Column | Pooled]
    """By name of the figure, the score that it is the mean of, or the sums that it is made of."""
    judge_of: Mapping[str, str]
    """By name of the figure, the judge that gives it."""
    experts: Mapping[str, float]
    """By name of the figure, the mean of human labels, where the run was held against some."""

    @property
    def system(self) -> dict[str, Any]:
        """The system under test, in the place of the model that is evaluated."""
        system = self.config.get("system", {})
        name = str(system.get("model") or self.manifest.name)
        version = system.get("version") or self.manifest.versions.get("index_version")
        found = {f"system.{key}": _text(value) for key, value in sorted(system.items()) if key in ("name", "call")}
        versions = {f"version.{key}": value for key, value in sorted(self.manifest.versions.items())}
        details = {**_UNKNOWN, **found, **versions}
        return {"name": name, "id": f"{name}/{version}" if version else name, "additional_details": details}

    @property
    def evaluation_id(self) -> str:
        """Suite, system and run."""
        return f"{self.manifest.name}/{self.system['id'].replace('/', '_')}/{self.manifest.run_id}"

    @property
    def figures(self) -> dict[str, Estimate]:
        """Those with a value, of scores that are known."""
        return {
            name: figure
            for name, figure in self.summary.overall.items()
            if isinstance(figure, Estimate) and figure.value is not None and name in self.columns
        }


def aggregate_document(run: SharedRun, samples: Mapping[str, Any], now: str) -> dict[str, Any]:
    """The figures of a run.

    Args:
        run: the run.
        samples: name, SHA-256 and number of lines of the file of samples.
        now: when this is written, ISO 8601.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": run.evaluation_id,
        "evaluation_timestamp": _seconds(run.manifest.created_at),
        "retrieved_timestamp": _seconds(now),
        "source_metadata": {
            "source_name": run.manifest.name,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "judgekit", "version": run.manifest.versions.get("judgekit", "unknown")},
        "model_info": run.system,
        "evaluation_results": [_result(run, name, figure) for name, figure in run.figures.items()],
        "detailed_evaluation_results": {"format": "jsonl", "hash_algorithm": "sha256", **samples},
    }


def _result(run: SharedRun, name: str, figure: Estimate) -> dict[str, Any]:
    column = run.columns[name]
    details = {
        "n_not_applicable": str(figure.n_not_applicable),
        "n_error": str(figure.n_error),
        "method": figure.method,
        **({"if_failed_were_worst": str(figure.worst)} if figure.worst is not None else {}),
        **({"if_failed_were_best": str(figure.best)} if figure.best is not None else {}),
    }
    uncertainty: dict[str, Any] = {"num_samples": figure.n}
    if figure.low is not None and figure.high is not None:
        ends = {"lower": figure.low, "upper": figure.high, "confidence_level": 0.95, "method": figure.method}
        uncertainty["confidence_interval"] = ends
    sha256 = run.summary.cases.get("sha256")
    return {
        "evaluation_result_id": result_id(run, name),
        "evaluation_name": name,
        "source_data": {
            "dataset_name": run.manifest.name,
            "source_type": "other",
            "additional_details": {"n_cases": str(run.summary.cases["n"]), **({"sha256": sha256} if sha256 else {})},
        },
        "metric_config": _metric(run, name, column),
        "score_details": {"score": figure.value, "details": details, "uncertainty": uncertainty},
    }


def _metric(run: SharedRun, name: str, column: Column | Pooled) -> dict[str, Any]:
    found: dict[str, Any] = {
        "metric_id": f"judgekit/{name}",
        "metric_name": name,
        "lower_is_better": not column.higher_is_better,
        "score_type": "continuous",
        "min_score": _bound(column.low),
        "max_score": _bound(float("inf") if isinstance(column, Pooled) and column.is_total else column.high),
    }
    if isinstance(column, Column) and not column.has_direction:
        found["additional_details"] = _WITHOUT_DIRECTION
    elif isinstance(column, Column) and column.binary:
        found |= {"metric_kind": "pass_rate" if column.higher_is_better else "rate", "metric_unit": "proportion"}
    judge = run.judge_of.get(name)
    if judge is not None and judge in run.summary.judges:
        found["llm_scoring"] = _judging(run, judge, run.experts.get(name))
    return found


def _judging(run: SharedRun, judge: str, expert: float | None) -> dict[str, Any]:
    record = run.summary.judges[judge]
    prompt = run.prompts.get(f"{judge}/{record.get('prompt_version')}")
    panel = record.get("panel") or {}
    members = panel.get("members") or {record.get("model_id", judge): record}
    at_zero = bool(record.get("temperature_accepted")) and bool(record.get("is_llm"))
    details = {
        "judge": judge,
        "prompt_version": _text(record.get("prompt_version")),
        "prompt_sha256": _text(record.get("prompt_sha256")),
        "n_judged": _text(record.get("n_judged")),
        "n_failed": _text(record.get("n_failed")),
        "parser_version": run.manifest.versions.get("parser", "unknown"),
        **(_question(prompt) if prompt is not None else {}),
    }
    found: dict[str, Any] = {
        "judges": [_judge(str(model_id), member, at_zero) for model_id, member in members.items()],
        "input_prompt": inert("\n\n".join([prompt.system, prompt.user])) if prompt is not None else "not stored",
        "additional_details": details,
    }
    if panel:
        found["aggregation_method"] = "median" if panel.get("rule") == "median" else "majority_vote"
    if expert is not None:
        found["expert_baseline"] = expert
    return found


def _question(prompt: PromptTemplate) -> dict[str, str]:
    """What a judge that is data fills its prompt with: the question, and what a verdict may be and mean."""
    if not prompt.is_given:
        return {}
    record, kind = prompt.record(), prompt.kind
    parts = {name: record[name] for name in ("levels", "labels", "criteria") if record.get(name)}
    told = {"ask": prompt.ask or "", "verdict": kind.about, **({"passes": kind.pass_words} if kind.has_pass else {})}
    return {name: inert(text) for name, text in told.items()} | {
        name: inert(json.dumps(value, ensure_ascii=False)) for name, value in parts.items()
    }


def _judge(model_id: str, record: Mapping[str, Any], at_zero: bool) -> dict[str, Any]:
    model = str(record.get("model") or model_id)
    info: dict[str, Any] = {"name": model, "id": model, "additional_details": dict(_UNKNOWN)}
    if record.get("provider"):
        info["inference_platform"] = str(record["provider"])
    details = {key: _text(record[key]) for key in ("build_hash", "note") if record.get(key)}
    found: dict[str, Any] = {
        "model_info": info,
        "additional_details": {**details, "is_llm": _text(record.get("is_llm"))},
    }
    return {**found, "temperature": 0.0} if at_zero else found


def sample_records(run: SharedRun, cases: Iterable[CaseRecord]) -> Iterator[dict[str, Any]]:
    """A record for each score of a case that has a value, case by case."""
    by_score = {column.name: name for name in run.figures if isinstance(column := run.columns[name], Column)}
    for record in cases:
        shared = _sample(run, record)
        turns = {"num_turns": len(shared["messages"])} if shared["messages"] else {}
        for score, (value, _) in record.scores.items():
            if value is None or score not in by_score:
                continue
            name = by_score[score]
            column = run.columns[name]
            has_direction = isinstance(column, Column) and column.has_direction
            best = column.high if column.higher_is_better else column.low
            passed = record.scores.get(f"{score}_pass", (None, None))[0]
            is_correct = has_direction and (value == best if passed is None else passed == 1.0)
            metadata = shared["metadata"] if has_direction else {**shared["metadata"], **_WITHOUT_DIRECTION}
            yield {
                **shared,
                "metadata": metadata,
                "evaluation_name": name,
                "evaluation_result_id": result_id(run, name),
                "evaluation": {"score": value, "is_correct": is_correct, **turns},
            }


def _sample(run: SharedRun, record: CaseRecord) -> dict[str, Any]:
    case, output = record.case, record.output
    question = "" if case is None else inert(case.question)
    references = [] if case is None else [inert(text) for text in case.reference_answers]
    answer = "" if output is None or output.answer is None else inert(output.answer)
    messages = [] if case is None or output is None else messages_of(case, output)
    found: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": run.evaluation_id,
        "model_id": run.system["id"],
        "sample_id": record.case_id,
        "sample_hash": canonical_sha256([question, references]),
        "interaction_type": "multi_turn" if messages else "single_turn",
        "input": {"raw": question, "reference": references},
        "output": None if messages else {"raw": [answer]},
        "messages": [_message(number, message) for number, message in enumerate(messages)] or None,
        "answer_attribution": [
            {
                "turn_idx": max(0, len(messages) - 1),
                "source": f"messages[{len(messages) - 1}].content" if messages else "output.raw",
                "extracted_value": answer,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ],
        "error": "; ".join(record.failures) or None,
        "metadata": {} if case is None or case.category is None else {"category": inert(case.category)},
    }
    if output is not None and output.usage is not None and output.usage.is_whole:
        usage = output.usage
        found["token_usage"] = {
            "input_tokens": usage.prompt_tokens,
            "output_tokens": usage.completion_tokens,
            "total_tokens": usage.known_tokens,
        }
    if output is not None and "total" in output.latency_seconds:
        found["performance"] = {"latency_ms": 1000 * output.latency_seconds["total"]}
    return found


def _message(number: int, message: Message) -> dict[str, Any]:
    found: dict[str, Any] = {"turn_idx": number, "role": message.role}
    found["content"] = None if message.text is None else inert(message.text)
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id or f"{number}.{place}", "name": inert(call.name), "arguments": _arguments(call.arguments)}
            for place, call in enumerate(message.tool_calls)
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = [message.tool_call_id]
    return found


def _arguments(arguments: Any) -> dict[str, str] | None:
    """Each as a text, which is all that the format takes."""
    if arguments is None:
        return None
    told = arguments if isinstance(arguments, Mapping) else {"text": arguments}
    return {
        inert(str(name)): inert(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in told.items()
    }


def result_id(run: SharedRun, name: str) -> str:
    """What the lines of a figure are joined by."""
    return f"{run.evaluation_id}#{name}"


def _bound(value: float) -> float | str:
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _seconds(text: str) -> str:
    return str(int(instant_of(text).timestamp()))


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value).lower() if isinstance(value, bool) else inert(str(value))
