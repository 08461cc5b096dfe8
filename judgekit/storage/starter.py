"""What `judgekit init` and `judgekit schema` write."""

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from judgekit.core.config import RunConfig
from judgekit.core.errors import ConfigError
from judgekit.storage.case_files import iterate_cases
from judgekit.storage.first_look import Look
from judgekit.storage.format_names import known_formats
from judgekit.storage.prompt_files import shipped
from judgekit.storage.run_files import disk_faults_named

_GOLDEN_HEADER = """# A golden set: one entry a case. Only id and question are needed.
# expected_doc_ids: what the system should find; `expected_doc_ids: []` means that it should refuse to answer.
# Leave the key out where you do not know. An unanswerable question also says `answerable: false`."""


def config_schema() -> str:
    """The JSON Schema of configs, with the formats that are known here and `$comment` allowed in every object."""
    schema = RunConfig.model_json_schema(by_alias=True)
    schema["$defs"]["DataFile"]["properties"]["format"]["anyOf"][0]["enum"] = list(known_formats())
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


def write_starter(folder: Path, format_: str, *, replace: bool = False) -> list[Path]:
    """Write config, schema, cases and outputs into a folder.

    Args:
        folder: where to write.
        format_: json, yaml or toml. With yaml the cases are a golden set in YAML, too.
        replace: write over a config that exists; cases and outputs that exist stay as they are.

    Raises:
        ConfigError: an unknown format, or a file that exists already.
        StorageError: a file cannot be written.
    """
    suffix = _suffix(format_)
    cases = "cases.yaml" if suffix == "yaml" else "cases.jsonl"
    lines = _shipped("cases.jsonl")
    files = {
        folder / f"config.{suffix}": _WRITERS[suffix]({**_config(), "cases": cases}),
        folder / "config.schema.json": config_schema(),
        folder / cases: _as_golden_set(lines) if suffix == "yaml" else lines,
        folder / "outputs.jsonl": _shipped("outputs.jsonl"),
    }
    return _written(folder, files, replace=replace)


def write_config_for(look: Look, folder: Path, format_: str, *, replace: bool = False) -> list[Path]:
    """Write a config that runs on a data file, and its schema.

    A file without outputs gets a file of outputs beside the config, with one line a case to be filled.

    Args:
        look: what the file holds.
        folder: where to write.
        format_: json, yaml or toml.
        replace: write over a config that exists; outputs that exist stay as they are.

    Raises:
        ConfigError: an unknown format, a file that exists already, or a case that cannot be read.
        StorageError: a file cannot be written.
    """
    suffix = _suffix(format_)
    path = os.path.relpath(look.path.resolve(), folder.resolve())
    files = {
        folder / f"config.{suffix}": _WRITERS[suffix](_config_for(look, path)),
        folder / "config.schema.json": config_schema(),
    }
    if "outputs" not in look.files:
        cases = iterate_cases(look.files["cases"], look.path)
        files[folder / "outputs.jsonl"] = _as_lines([{"case_id": case.id} for case in cases])
    return _written(folder, files, replace=replace)


def _config_for(look: Look, path: str) -> dict[str, Any]:
    entries = {
        kind: file.model_copy(update={"path": path}).model_dump(mode="json", exclude_defaults=True)
        for kind, file in look.files.items()
    }
    cases, outputs = look.present["cases"], look.present.get("outputs", set())
    system: dict[str, Any] = {"name": "recorded", **entries.get("outputs", {"path": "outputs.jsonl"})}
    if "outputs" not in entries:
        system["$comment"] = "the data file holds no answers: put those of your system into this file"
    judged = {
        "groundedness": {"answer", "retrieved"} <= outputs,
        "correctness": "answer" in outputs and "reference_answers" in cases,
    }
    judges = [
        {"name": name, "prompt_version": "v1", "model": "baseline"} for name, applies in judged.items() if applies
    ]
    slices = [name for name in ("category", "difficulty", "lang", "tags", "answerable") if name in cases]
    starter = _config()
    name = re.sub(r"[^A-Za-z0-9]+", "-", look.path.stem).strip("-")[:60] or "my-suite"
    return {
        **{key: starter[key] for key in ("$schema", "$comment")},
        "name": name,
        "cases": path if entries["cases"] == {"path": path} else entries["cases"],
        "system": system,
        **({"models": starter["models"], "judges": judges, "spot_check": starter["spot_check"]} if judges else {}),
        **({"slices": slices} if slices else {}),
    }


def _shipped(name: str) -> str:
    return (shipped("configs") / "starter" / name).read_text(encoding="utf-8")


def _config() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_shipped("config.json"))
    return found


def _suffix(format_: str) -> str:
    suffix = "yaml" if format_ == "yml" else format_
    if suffix not in _WRITERS:
        raise ConfigError(f"--format {format_!r}: expected json, yaml or toml")
    return suffix


def _written(folder: Path, files: Mapping[Path, str], *, replace: bool) -> list[Path]:
    there = [path for path in files if path.exists()]
    if there and not replace:
        raise ConfigError(f"{there[0]}: exists already; choose another folder, or --force to replace the config")
    # What the user may have filled in is never lost.
    written = [path for path in files if path not in there or path.name.startswith("config.")]
    with disk_faults_named(folder, "cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for path in written:
            path.write_text(files[path], encoding="utf-8", errors="replace")
    return written


def _as_golden_set(cases: str) -> str:
    """Cases as YAML, with what the keys mean above them."""
    lines = [_GOLDEN_HEADER]
    for case in map(json.loads, cases.splitlines()):
        entries = [f"{_key(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in case.items()]
        lines += ["", f"- {entries[0]}", *(f"  {entry}" for entry in entries[1:])]
    return "\n".join(lines) + "\n"


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
            lines.append(f"{pad}{_key(key)}: {json.dumps(item, ensure_ascii=False)}")
    return lines


def _key(key: str) -> str:
    """A key as YAML and TOML can have it; names of columns may hold anything."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


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
            lines.append(f"{_key(key)} = {json.dumps(item, ensure_ascii=False)}")
    for key, table, repeated in tables:
        name = ".".join((*path, key))
        header = f"[[{name}]]" if repeated else f"[{name}]"
        lines += ["", header, *_toml_lines(table, (*path, key))]
    return lines


_WRITERS: Mapping[str, Callable[[dict[str, Any]], str]] = {"json": _as_json, "yaml": _as_yaml, "toml": _as_toml}
