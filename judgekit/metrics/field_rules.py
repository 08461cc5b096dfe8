"""How the values of one field are compared: the comparators that a config can name.

Each reads a value first. A value that cannot be read, since it has the wrong type or is not in the declared format,
is a format error if the system gave it. What two readings have in common is for `same` to say.
"""

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Hashable
from datetime import UTC, datetime
from decimal import Decimal
from functools import cached_property
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, field_validator, model_validator

from judgekit.core.errors import ConfigError, did_you_mean
from judgekit.core.text import instant_of

Kind = Literal["object", "array", "string", "number", "boolean", "absent"]
"""JSON type of a value; null, NaN and infinities are absent."""

_KINDS: dict[type, Kind] = {
    dict: "object",
    list: "array",
    tuple: "array",
    str: "string",
    bool: "boolean",
    int: "number",
    type(None): "absent",
}


def kind_of(value: Any) -> Kind:
    """The JSON type of a value.

    Raises:
        ValueError: JSON has no such value.
    """
    kind = _KINDS.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, float):
        return "number" if isfinite(value) else "absent"
    for base, name in _KINDS.items():
        if isinstance(value, base):
            return name
    raise ValueError(f"expected values that JSON has, found {type(value).__name__}")


_ISO = {
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "date-time": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}.*"),
}
"""What a JSON Schema calls `date` and `date-time` (RFC 3339), as far as a look can tell."""


class Unreadable(ValueError):
    """A value that has the wrong type or is not in the declared format."""


class ComparatorError(ConfigError):
    """A comparator of the user's own failed; one line that says which, where and how."""


class Comparator(BaseModel):
    """Base of the comparators of single values."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)

    @property
    def keyed(self) -> bool:
        """Whether values are the same exactly if their readings are equal."""
        return True

    @property
    def reads_expected(self) -> bool:
        """Whether the expected value must be readable too."""
        return True

    @abstractmethod
    def read(self, value: Any) -> Hashable:
        """What counts of a value.

        Raises:
            Unreadable: the value has the wrong type or format.
        """

    def same(self, expected: Any, extracted: Any) -> bool:
        """Whether two readings are the same value."""
        return bool(expected == extracted)


class ExactRule(Comparator):
    """The same JSON type and value; 1 and 1.0 are the same number, true is not a number."""

    compare: Literal["exact"] = "exact"

    def read(self, value: Any) -> Hashable:
        return kind_of(value), value


class TextRule(Comparator):
    """The same text after NFKC, without case, each run of white space one space."""

    compare: Literal["text"] = "text"

    def read(self, value: Any) -> Hashable:
        return fold(_text(value))


class NumberRule(Comparator):
    """The same number within a tolerance: |expected - extracted| <= max(absolute, relative |expected|).

    Reckoned in decimals as written, so that 1.10 and 1.09 differ by 0.01 and not by a little more.
    """

    compare: Literal["number"] = "number"
    absolute: Annotated[float, Field(ge=0)] = 0.0
    relative: Annotated[float, Field(ge=0)] = 0.0
    """Share of the expected value."""
    from_text: bool = False
    """Read numbers given as text too, such as `1,234.50`."""
    decimal: Literal[".", ","] = "."
    """Decimal sign of numbers given as text."""
    thousands: Literal[",", ".", " ", "'", ""] = ","
    """What may group the digits of numbers given as text by three; empty: nothing."""

    @model_validator(mode="after")
    def _signs_differ(self) -> "NumberRule":
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands are both {self.decimal!r}")
        return self

    @cached_property
    def _written(self) -> re.Pattern[str]:
        whole = "[0-9]+"
        if self.thousands:
            group = "[ \u00a0\u202f\u2009]" if self.thousands == " " else re.escape(self.thousands)
            whole = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+"
        return re.compile(rf"([+-]?)({whole})(?:{re.escape(self.decimal)}([0-9]+))?")

    @property
    def keyed(self) -> bool:
        return not (self.absolute or self.relative)

    def read(self, value: Any) -> Hashable:
        kind = kind_of(value)
        if kind == "number":
            return Decimal(repr(value)) if isinstance(value, float) else Decimal(int(value))
        if kind != "string" or not self.from_text:
            raise Unreadable
        match = self._written.fullmatch(value.strip())
        if match is None:
            raise Unreadable
        return Decimal(f"{match[1]}{re.sub('[^0-9]', '', match[2])}.{match[3] or '0'}")

    def same(self, expected: Any, extracted: Any) -> bool:
        allowed = self._absolute
        if self.relative:
            allowed = max(allowed, self._relative * abs(expected))
        return bool(-allowed <= expected - extracted <= allowed)

    @cached_property
    def _absolute(self) -> Decimal:
        return Decimal(repr(self.absolute))

    @cached_property
    def _relative(self) -> Decimal:
        return Decimal(repr(self.relative))


class DateRule(Comparator):
    """The same instant: ISO 8601, or a declared `strptime` format. A date is its midnight, no zone counts as UTC."""

    compare: Literal["date"] = "date"
    formats: tuple[str, ...] = ()
    """Formats of `strptime`, tried in this order before ISO 8601, such as `%d.%m.%Y`."""
    only: Literal["date", "date-time"] | None = None
    """Accept nothing but ISO dates (`2024-05-01`), or nothing but ISO dates with a time."""

    @field_validator("formats", mode="before")
    @classmethod
    def _one_or_more(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("formats")
    @classmethod
    def _are_formats(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for written in value:
            try:
                datetime.strptime(datetime(2024, 5, 1, tzinfo=UTC).strftime(written), written)
            except ValueError as error:
                raise ValueError(f"{written!r} is not a format of strptime: {error}") from None
        return value

    def read(self, value: Any) -> Hashable:
        text = _text(value).strip()
        moment = self._declared(text)
        if moment is None:
            if self.only is not None and not _ISO[self.only].fullmatch(text):
                raise Unreadable
            try:
                return instant_of(text)
            except ValueError:
                raise Unreadable from None
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)

    def _declared(self, text: str) -> datetime | None:
        for written in self.formats:
            try:
                return datetime.strptime(text, written)
            except ValueError:
                continue
        return None


class PatternRule(Comparator):
    """A text that a pattern matches in full, whatever the expected text.

    With a group named `value`, both texts must match and what the group holds must be equal.
    """

    compare: Literal["regex"] = "regex"
    pattern: str
    """Syntax of Python's `re`."""

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from None
        return value

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self.pattern)

    @property
    def keyed(self) -> bool:
        return self.reads_expected

    @property
    def reads_expected(self) -> bool:
        return "value" in self._compiled.groupindex

    def read(self, value: Any) -> Hashable:
        match = self._compiled.fullmatch(_text(value))
        if match is None:
            raise Unreadable
        return match["value"] if self.reads_expected else True

    def same(self, expected: Any, extracted: Any) -> bool:
        return not self.reads_expected or bool(expected == extracted)


class FunctionRule(Comparator):
    """What a Python function says: called with the expected and the extracted value, it returns True or False."""

    compare: Literal["python"] = "python"
    function: str | Callable[[Any, Any], bool]
    """`package.module:function`; from Python, the function itself."""

    @field_validator("function")
    @classmethod
    def _is_a_name(cls, value: str | Callable[[Any, Any], bool]) -> str | Callable[[Any, Any], bool]:
        if isinstance(value, str) and not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", value):
            raise ValueError(f"{value!r}: expected package.module:function")
        return value

    @property
    def keyed(self) -> bool:
        return False

    def read(self, value: Any) -> Hashable:
        return value  # type: ignore[no-any-return]

    def same(self, expected: Any, extracted: Any) -> bool:
        name = self.function if isinstance(self.function, str) else getattr(self.function, "__name__", "function")
        if isinstance(self.function, str):
            raise ComparatorError(f"{name}: not loaded; pass the function itself")
        try:
            said = self.function(expected, extracted)
        except Exception as error:  # noqa: BLE001  # it is the user's own code
            raise ComparatorError(f"{name} raised {type(error).__name__}: {' '.join(str(error).split())}") from None
        if said is True or said is False:
            return said
        raise ComparatorError(f"{name} returned {said!r:.60}, expected True or False")


class ListRule(BaseModel):
    """Base of the rules that say which items of two lists go together."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class SetRule(ListRule):
    """A list whose order does not count; each item stands for one, so that a repeated item must be repeated."""

    compare: Literal["set"] = "set"


class AlignedRule(ListRule):
    """A list whose items are paired so that the similarity of the pairs is largest in all."""

    compare: Literal["aligned"] = "aligned"
    min_similarity: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Items that are less alike than this are not paired."""


_NAMES = ("exact", "text", "number", "date", "set", "aligned", "regex", "python")


def _long_form(rule: object) -> object:
    """A rule with its name looked up; a text is short for a comparator without arguments."""
    found = {"compare": rule} if isinstance(rule, str) else rule
    if isinstance(found, dict):
        name = found.get("compare")
        if name not in _NAMES:
            what = 'a rule needs "compare"' if name is None else f"no comparator {name!r}"
            raise ValueError(f"{what}{did_you_mean(str(name), _NAMES)}")
    return found


Rule = Annotated[
    ExactRule | TextRule | NumberRule | DateRule | PatternRule | FunctionRule | SetRule | AlignedRule,
    Field(discriminator="compare"),
    BeforeValidator(_long_form),
]
"""A rule of a config; a text is short for the comparator of that name without arguments."""

Rules = dict[str, Rule]
"""Rules by path."""

RULES: TypeAdapter[Rules] = TypeAdapter(Rules)


def function_names(rules: Rules) -> tuple[str, ...]:
    """`package.module:function` of every comparator that is a Python function."""
    found = [rule.function for rule in rules.values() if isinstance(rule, FunctionRule)]
    return tuple(dict.fromkeys(name for name in found if isinstance(name, str)))


def fold(text: str) -> str:
    """NFKC, case folded, each run of white space one space."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(text.casefold().split())


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable
    return value
