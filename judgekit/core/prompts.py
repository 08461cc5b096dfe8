"""Prompt templates: one versioned wording of one judge, and the fences around the text that is judged."""

import hashlib
import json
import re
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import PrivateAttr

from judgekit.core.errors import ConfigError
from judgekit.core.rubric_fields import Rubric
from judgekit.core.text import canonical_json

if TYPE_CHECKING:
    from jinja2 import Template


_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


def schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Why no server could take a reply schema, as the path in it and what is wrong; None if nothing is."""
    if schema.get("type") != "object":
        return '$.reply_schema: expected the schema of an object, with type = "object"'
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping):
        return "$.reply_schema.properties: expected a table with the keys of the reply"
    if not isinstance(required, list) or not all(name in properties for name in required):
        return "$.reply_schema.required: expected a list of names that stand in properties"
    for name, value in properties.items():
        if not isinstance(value, Mapping):
            return f"$.reply_schema.properties.{name}: expected a schema"
        kinds = value.get("type", [])
        if any(kind not in _TYPES for kind in (kinds if isinstance(kinds, list) else [kinds])):
            return f"$.reply_schema.properties.{name}.type: expected one of {', '.join(sorted(_TYPES))}"
    return None


class PromptTemplate(Rubric):
    """One wording: instructions, question and the shape of the reply. With `ask` it says what the judge is, too."""

    judge: str
    version: str
    description: str = ""
    system: str = ""
    """Instructions; no judged text may stand here. Left out beside `ask`: those of `rubric/v1`."""
    user: str = ""
    """Jinja2 template over the judge input's variables and `reply_schema`; judged text goes through the filter `data`,
    such as `answer | data("answer")`."""
    reply_schema: dict[str, Any] = {}
    """JSON Schema of the reply; left out beside `ask`, it follows from the kind of verdict."""
    verdict_alone: bool = False
    """Ask for no reasoning: without a `reply_schema`, the reply is the verdict and nothing else."""
    reverse_levels: bool = False
    """List scores or labels the other way round, as a probe does."""
    _path: str | None = PrivateAttr(default=None)

    @property
    def where(self) -> str:
        """Its file, if it was read from one of the user's; else its name."""
        return self._path or f"prompt {self.judge}/{self.version}"

    @property
    def is_own(self) -> bool:
        """Whether it was read from a file of the user's."""
        return self._path is not None

    def read_from(self, path: str) -> None:
        """Remember the user's file that it was read from."""
        self._path = path

    @cached_property
    def sha256(self) -> str:
        """Hash over everything that reaches the model."""
        parts = [self.system, self.user, self.reply_schema, *([self._rubric_values] if self.is_given else ())]
        return hashlib.sha256(canonical_json(parts)).hexdigest()

    @cached_property
    def _rubric_values(self) -> dict[str, Any]:
        """What the wording takes of its rubric."""
        if not self.is_given:
            return {}
        found = self.values
        return {**found, "levels": found["levels"][::-1]} if self.reverse_levels else found

    def record(self) -> dict[str, Any]:
        """The wording as a run keeps it, without the parts that it does not have."""
        found = self.model_dump(mode="json", by_alias=True)
        return {name: value for name, value in found.items() if value is not None and value is not False}

    @cached_property
    def _templates(self) -> "tuple[Template, Template]":
        from jinja2 import TemplateError

        try:
            return _compiled(self.system), _compiled(self.user)
        except TemplateError as error:
            raise ConfigError(f"prompt {self.judge}/{self.version}: {error}") from None

    def check(self) -> None:
        """Compile both templates.

        Raises:
            ConfigError: a template has a syntax error.
        """
        _ = self._templates

    @cached_property
    def _system_text(self) -> str:
        """Instructions take no variables of a case, so they are the same for every one."""
        return self._templates[0].render(self._rubric_values)

    @cached_property
    def _schema_text(self) -> str:
        return json.dumps(self.reply_schema, ensure_ascii=False)

    def has_foreign_braces(self, user: str) -> bool:
        """Whether a rendered user text holds an opening brace that is not one of the reply schema's."""
        n_own, n_braces = self._schema_text.count("{"), user.count("{")
        if n_braces <= n_own and user.rfind(self._schema_text) >= 0:  # at its end, where wordings name the schema
            return False
        return n_braces > user.count(self._schema_text) * n_own

    def render(self, variables: Mapping[str, Any]) -> tuple[str, str]:
        """System and user text for one judge input.

        Raises:
            ConfigError: the template names a variable that the input does not have, or cannot work with its value.
        """
        try:
            values = self._rubric_values
            return self._system_text, self._templates[1].render(variables, reply_schema=self._schema_text, **values)
        except Exception as error:  # noqa: BLE001  # a template can raise anything: 1/0, a filter without its argument
            raise ConfigError(f"prompt {self.judge}/{self.version}: {error}") from None


@lru_cache(maxsize=64)
def _compiled(text: str) -> "Template":
    """A template without any name but the variables; kept, since each run of a process reads its prompts again."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=False, trim_blocks=True
    )
    environment.globals.clear()
    environment.filters["data"] = fence
    return environment.from_string(text)


_BLOCK_START = re.compile(r"<<<data (\w+) ([0-9a-f]{16})>>>\n")


def fence(text: str, name: str) -> str:
    """The text between delimiters that carry its name and a hash that does not occur in it.

    What stands inside is data and cannot close its own fence. The hash is one of the text, so the same input always
    gives the same request.

    Raises:
        ValueError: the name is more than one word, so that the text could not be found again.
    """
    return (_fenced_once if len(text) <= _SHORT else _fenced)(text, name)


def _fenced(text: str, name: str) -> str:
    content = text.encode("utf-8", "surrogatepass")
    salt = 0
    while True:
        hashed = _begun(f"{salt}:{name}:").copy()
        hashed.update(content)
        digest = hashed.hexdigest()[:16]
        if digest not in text:
            return f"<<<data {name} {digest}>>>\n{text}\n<<<end {name} {digest}>>>"
        salt += 1


_SHORT = 250
"""Characters of a text that many cases have, such as the source of a passage."""

_fenced_once = lru_cache(maxsize=4096)(_fenced)


@lru_cache(maxsize=64)
def _begun(start: str) -> "hashlib._Hash":
    """The hash of what stands before the text: a copy of it is quicker than a new one."""
    name = start.split(":", 1)[1][:-1]
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"expected one word as the name of fenced data, found {name!r}")
    return hashlib.sha256(start.encode("utf-8", "surrogatepass"))


def unfence(prompt: str) -> list[tuple[str, str]]:
    """(name, text) of every fenced block, in order: what `fence` was given."""
    blocks: list[tuple[str, str]] = []
    position = 0
    while match := _BLOCK_START.search(prompt, position):
        closing = f"\n<<<end {match[1]} {match[2]}>>>"
        end = prompt.find(closing, match.end())
        position = match.start() + 1 if end < 0 else end + len(closing)
        if end >= 0:
            blocks.append((match[1], prompt[match.end() : end]))
    return blocks
