"""The part of a config that says how a file of cases or outputs is read.

It stands apart since commands that read files and no config load this alone.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationInfo, field_validator

from judgekit.core.errors import did_you_mean


class Section(BaseModel):
    """Base of every part of a config: frozen, unknown keys refused, numbers finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


CODE = "file:"
"""Begins the name of a component that stands in a Python file."""


@dataclass(frozen=True, slots=True)
class CodeName:
    """The name of a component in a Python file, such as `file:my_metrics.py:brevity`."""

    path: str
    """Relative paths start at the config file."""
    name: str

    @classmethod
    def of(cls, text: str) -> "CodeName | None":
        """What a name in a config stands for; None if it is not of this form.

        Raises:
            ValueError: it begins so and does not go on.
        """
        if not text.startswith(CODE):
            return None
        path, _, name = text.removeprefix(CODE).rpartition(":")
        if not path.endswith(".py") or not name.isidentifier() or name.startswith("_"):
            raise ValueError(f"expected {CODE}PATH.py:NAME, such as {CODE}my_metrics.py:brevity, found {text!r}")
        return cls(path, name)


def _checked(value: str) -> str:
    CodeName.of(value)
    return value


ComponentName = Annotated[str, AfterValidator(_checked)]
"""A shipped or installed component, or `file:PATH.py:NAME`."""


class DataFile(Section):
    """A file of cases or outputs, and how it is read."""

    path: str
    """Path of a file, a folder, or several files as in `part-*.parquet`; or an address such as `s3://bucket/cases.jsonl`.

    Relative paths start at the config file.
    """
    format: str | None = None
    """Left out: by the extension of the file, or by keys that only one format has; see docs/formats.md."""
    fields: dict[str, str] = {}
    """Our field name -> field name in the file, such as {"id": "qid", "reference_answers": "gold.answers"}.

    A text that is mapped to `reference_answers` or `retrieved` is the one right answer or passage. Parts of an object
    are named with a dot: `metadata.topic`, `usage.prompt_tokens`, `latency_seconds.total`.
    """
    encoding: str | None = None
    """Left out: UTF-8, or what a byte order mark says."""
    list_separator: str | None = None
    """In CSV, what separates the items of a list cell; left out, a cell that is not a JSON list is one item."""
    separator: str | None = None
    """In CSV, the one character between cells; left out, it is found by the header: comma, semicolon, tab or bar."""
    records: str | None = None
    """In a JSON or YAML document, what holds the records, such as "results" or "run.items"; left out, it is found."""
    part: str | None = None
    """Which part of a source that holds several is read: the split of a data set, the provider of promptfoo results,
    the sheet of a workbook."""
    ties: Literal["given", "trec_eval"] | None = None
    """How a TREC run orders documents with equal scores: as the file has them (left out), or as trec_eval does."""

    @field_validator("format")
    @classmethod
    def _is_known(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Hold it against the formats that whoever reads the config knows; a reader without a config does so itself."""
        known = (info.context or {}).get("formats", ())
        if value is not None and known and value not in known:
            raise ValueError(f"no format called {value!r}{did_you_mean(value, known)}")
        return value

    @field_validator("separator")
    @classmethod
    def _is_one_character(cls, value: str | None) -> str | None:
        if value is not None and (len(value) != 1 or value in '"\r\n'):
            raise ValueError(f"expected one character such as ';' or a tab, found {value!r}")
        return value
