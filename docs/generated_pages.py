"""Pages of the site that are made from the program itself: commands and keys of a config."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from typer.main import get_command
from typer.testing import CliRunner

from judgekit.cli.app import app as cli
from judgekit.core.config import RunConfig

_LINK = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+)([^)]*)\)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", link_outside)
    return {"parallel_read_safe": True}


def write_pages(app: Sphinx) -> None:
    """Write the generated pages beside the written ones, if they have changed."""
    folder = Path(app.srcdir) / "reference"
    for name, lines in (("commands.md", command_lines()), ("config-keys.md", key_lines())):
        text, target = "\n".join(lines) + "\n", folder / name
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")


def link_outside(_: Sphinx, page: str, source: list[str]) -> None:
    """Name files of the checkout in place of links to them, since the site does not hold them."""

    def named(found: re.Match[str]) -> str:
        text, up, path = found.groups()
        if up.count("../") <= page.count("/"):
            return found[0]
        return text if path in text else f"{text} (`{path}` of the checkout)"

    source[0] = _LINK.sub(named, source[0])


def command_lines() -> Iterator[str]:
    """`--help` of every command."""
    yield "# Commands"
    yield ""
    yield "Every command prints this with `--help`."
    runner = CliRunner()
    for words in _commands(get_command(cli), ()):
        said = runner.invoke(cli, [*words, "--help"], env={"COLUMNS": "100"}).stdout
        yield from ("", f"## judgekit {' '.join(words)}", "", "```text", *said.strip().splitlines(), "```")


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    below: Mapping[str, Any] = getattr(command, "commands", {})
    if words and not below:
        yield words
    for name, found in below.items():
        yield from _commands(found, (*words, name))


def key_lines() -> Iterator[str]:
    """A table of the keys of each part of a config, from its JSON schema."""
    schema = RunConfig.model_json_schema()
    yield "# Keys of a config"
    yield ""
    yield "Made from the schema that `judgekit schema` prints. [Config](../config.md) explains the keys."
    for name, part in [("The config", schema), *schema.get("$defs", {}).items()]:
        if not part.get("properties"):
            continue
        yield from ("", f"## {name}", "", "| key | type | default | meaning |", "| --- | --- | --- | --- |")
        for key, field in part["properties"].items():
            default = json.dumps(field["default"]) if "default" in field else "required"
            cells = (f"`{key}`", _type(field), f"`{default}`", " ".join(field.get("description", "").split()))
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(map(_type, field["anyOf"])))
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    return str(field.get("type", "any"))
