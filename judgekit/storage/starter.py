"""What `judgekit init` and `judgekit schema` write."""

import json
from pathlib import Path
from typing import Any

from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError, StorageError

_CONFIG: dict[str, Any] = {
    "$schema": "config.schema.json",
    "$comment": "One run. Paths start at this file. `judgekit validate` checks everything without a call.",
    "name": "my-suite",
    "cases": "cases.jsonl",
    "system": {
        "$comment": "recorded: the answers of your system stand in a file, one JSON object a line",
        "name": "recorded",
        "path": "outputs.jsonl",
    },
    "models": {
        "baseline": {
            "$comment": "embedded word-overlap judge: no key, no download, not an LLM",
            "provider": "lexical",
            "model": "overlap-1",
        },
        "baseline-strict": {"provider": "lexical", "model": "overlap-strict-1"},
        "hosted": {
            "$comment": "a real judge: export OPENAI_API_KEY and name this model in judges",
            "provider": "openai_compatible",
            "model": "gpt-4o-2024-08-06",
            "api_key_env": "OPENAI_API_KEY",
        },
        "local": {
            "$comment": "vLLM, llama.cpp or Ollama; `judgekit pin` prints the build_hash to put under pin",
            "provider": "openai_compatible",
            "model": "my-model",
            "base_url": "http://127.0.0.1:8000/v1",
            "max_concurrency": 4,
        },
    },
    "judges": [
        {"name": "groundedness", "prompt_version": "v1", "model": "baseline"},
        {"name": "correctness", "prompt_version": "v1", "model": "baseline"},
    ],
    "spot_check": {
        "$comment": "a second opinion on a random sample: how far can the judge be trusted?",
        "n": 20,
        "model": "baseline-strict",
    },
    "slices": ["category", "difficulty", "tags", "answerable"],
    "gates": [{"$comment": "a missed gate ends with exit code 1", "metric": "recall_any@5", "op": ">=", "value": 0.5}],
}

_CASES: list[dict[str, Any]] = [
    {
        "id": "q1",
        "question": "How long may the sourdough rest in the fridge?",
        "answerable": True,
        "category": "factual",
        "difficulty": "easy",
        "tags": ["baking"],
        "gold_supports": [{"rel_path": "baking/sourdough.md", "heading_path": ["Sourdough", "Resting"]}],
        "expected_doc_ids": ["baking/sourdough.md"],
        "reference_answers": ["up to 48 hours"],
    },
    {
        "id": "q2",
        "question": "Which two notes say when the oven was last serviced?",
        "answerable": True,
        "category": "multi_hop",
        "difficulty": "hard",
        "tags": ["oven"],
        "gold_supports": [
            {"rel_path": "oven/log.md", "heading_path": ["Log", "2025"]},
            {"rel_path": "oven/manual.md", "heading_path": ["Manual", "Service"]},
        ],
        "required_support_groups": [[0, 1]],
        "expected_doc_ids": ["oven/log.md", "oven/manual.md"],
        "reference_answers": ["The log for 2025 and the manual's service page"],
    },
    {
        "id": "q3",
        "question": "What is the owner's favourite film?",
        "answerable": False,
        "category": "factual",
        "difficulty": "medium",
        "tags": ["unanswerable"],
        "expected_doc_ids": [],
    },
]

_OUTPUTS: list[dict[str, Any]] = [
    {
        "case_id": "q1",
        "answer": "The dough may rest in the fridge for up to 48 hours.",
        "retrieved": [
            {
                "chunk_id": "sourdough-2",
                "doc_id": "baking/sourdough.md",
                "rel_path": "baking/sourdough.md",
                "heading_path": ["Sourdough", "Resting"],
                "text": "Shape the loaf and rest it in the fridge for up to 48 hours. Longer, and it turns too sour.",
            }
        ],
        "citations": ["sourdough-2"],
        "latency_seconds": {"retrieval": 0.04, "generation": 0.9, "total": 0.95},
    },
    {
        "case_id": "q2",
        "answer": "The log of 2025 says that the oven was serviced in May by two people.",
        "retrieved": [
            {
                "chunk_id": "log-7",
                "doc_id": "oven/log.md",
                "rel_path": "oven/log.md",
                "heading_path": ["Log", "2025"],
                "text": "In May the oven was serviced and the door seal replaced.",
            }
        ],
        "citations": ["log-7"],
        "latency_seconds": {"retrieval": 0.05, "generation": 1.4, "total": 1.46},
    },
    {
        "case_id": "q3",
        "answer": "I could not find that in the notes.",
        "abstained": True,
        "retrieved": [],
        "citations": [],
        "latency_seconds": {"retrieval": 0.03, "generation": 0.4, "total": 0.44},
    },
]


def config_schema() -> str:
    """The JSON Schema of configs, with `$comment` allowed in every object."""
    schema = RunConfig.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    _allow_comments(schema)
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _allow_comments(schema: Any) -> None:
    if isinstance(schema, dict):
        if "properties" in schema and schema.get("additionalProperties") is False:
            schema["properties"]["$comment"] = {"type": "string"}
        for value in schema.values():
            _allow_comments(value)
    elif isinstance(schema, list):
        for value in schema:
            _allow_comments(value)


def write_starter(folder: Path, format_: str) -> list[Path]:
    """Write config, schema, cases and outputs into a folder; nothing that exists is overwritten.

    Raises:
        ConfigError: an unknown format, or a file that exists already.
        StorageError: a file cannot be written.
    """
    writers = {"json": _as_json, "yaml": _as_yaml, "yml": _as_yaml, "toml": _as_toml}
    if format_ not in writers:
        raise ConfigError(f"--format {format_!r}: expected json, yaml or toml")
    suffix = "yaml" if format_ == "yml" else format_
    files = {
        folder / f"config.{suffix}": writers[format_](_CONFIG),
        folder / "config.schema.json": config_schema(),
        folder / "cases.jsonl": _as_lines(_CASES),
        folder / "outputs.jsonl": _as_lines(_OUTPUTS),
    }
    for path in files:
        if path.exists():
            raise ConfigError(f"{path}: exists already and is not overwritten; choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{folder}: cannot be written: {error.strerror}") from None
    return list(files)


def _as_lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _as_json(config: dict[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


def _as_yaml(config: dict[str, Any]) -> str:
    """YAML with the comments as real comments."""
    return "# yaml-language-server: $schema=config.schema.json\n" + "\n".join(_yaml_lines(config, 0)) + "\n"


def _yaml_lines(value: dict[str, Any], depth: int) -> list[str]:
    pad = "  " * depth
    lines = [f"{pad}# {value['$comment']}"] if "$comment" in value else []
    for key, item in value.items():
        if key in ("$comment", "$schema"):
            continue
        if isinstance(item, dict):
            lines += [f"{pad}{key}:", *_yaml_lines(item, depth + 1)]
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            lines.append(f"{pad}{key}:")
            for entry in item:
                inner = _yaml_lines({name: part for name, part in entry.items() if name != "$comment"}, depth + 2)
                if "$comment" in entry:
                    lines.append(f"{pad}  # {entry['$comment']}")
                lines += [f"{pad}  - {inner[0].lstrip()}", *inner[1:]]
        else:
            lines.append(f"{pad}{key}: {json.dumps(item, ensure_ascii=False)}")
    return lines


def _as_toml(config: dict[str, Any]) -> str:
    """TOML with the comments as real comments."""
    return "#:schema config.schema.json\n" + "\n".join(_toml_lines(config, ())) + "\n"


def _toml_lines(value: dict[str, Any], path: tuple[str, ...]) -> list[str]:
    lines = [f"# {value['$comment']}"] if "$comment" in value else []
    tables: list[tuple[str, dict[str, Any], bool]] = []
    for key, item in value.items():
        if key in ("$comment", "$schema"):
            continue
        if isinstance(item, dict):
            tables.append((key, item, False))
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            tables += [(key, entry, True) for entry in item]
        else:
            lines.append(f"{key} = {json.dumps(item, ensure_ascii=False)}")
    for key, table, repeated in tables:
        name = ".".join((*path, key))
        header = f"[[{name}]]" if repeated else f"[{name}]"
        lines += ["", header, *_toml_lines(table, (*path, key))]
    return lines
