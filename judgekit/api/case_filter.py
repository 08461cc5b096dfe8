"""Cases by a condition on their scores: `groundedness < 3`, `correctness >= 4 and not groundedness_pass = 1`."""

import operator
import re
from collections.abc import Callable, Mapping

from judgekit.core.errors import ConfigError
from judgekit.core.familiar_names import name_hint

_TOKEN = re.compile(r"\s*(?:(<=|>=|==|!=|<|>|=|\(|\))|([^\s<>=!()]+))")
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
}

Values = Mapping[str, float | None]
Condition = Callable[[Values], bool]


def parse_condition(text: str, names: Mapping[str, object] | list[str]) -> Condition:
    """What a condition says of the scores of a case; a score without a value meets none, nor its opposite.

    Args:
        text: comparisons of a score with a number, joined by `and`, `or`, `not` and brackets.
        names: of all scores.

    Raises:
        ConfigError: it is not a condition, or names a score that there is none of.
    """
    parser = _Parser(text, names)
    found = parser.any_of()
    if parser.word is not None:
        raise parser.expected("and, or, or the end")
    return lambda values: found(values) is True


class _Parser:
    """Reads a condition from left to right; what it makes says True, False, or None for a score without a value."""

    def __init__(self, text: str, names: Mapping[str, object] | list[str]) -> None:
        self._text, self._names = text, names
        self._words: list[str] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                raise ConfigError(f"condition {text!r}: cannot be read from {text[position:].strip()[:20]!r} on")
            self._words.append(match[1] or match[2])
            position = match.end()
        self._place = 0

    @property
    def word(self) -> str | None:
        return self._words[self._place] if self._place < len(self._words) else None

    def expected(self, what: str) -> ConfigError:
        found = "the end" if self.word is None else repr(self.word)
        return ConfigError(f"condition {self._text!r}: expected {what}, found {found}; an example: groundedness < 3")

    def _next(self) -> str | None:
        word = self.word
        self._place += 1
        return word

    def any_of(self) -> Callable[[Values], bool | None]:
        """Conditions with `or` between."""
        parts = [self._all_of()]
        while self.word == "or":
            self._next()
            parts.append(self._all_of())
        return lambda values: _first(True, [part(values) for part in parts])

    def _all_of(self) -> Callable[[Values], bool | None]:
        parts = [self._one()]
        while self.word == "and":
            self._next()
            parts.append(self._one())
        return lambda values: _first(False, [part(values) for part in parts])

    def _one(self) -> Callable[[Values], bool | None]:
        if self.word == "not":
            self._next()
            inner = self._one()
            return lambda values: None if (found := inner(values)) is None else not found
        if self.word == "(":
            self._next()
            inside = self.any_of()
            if self.word != ")":
                raise self.expected("a closing bracket")
            self._next()
            return inside
        return self._comparison()

    def _comparison(self) -> Callable[[Values], bool | None]:
        name = self.word
        if name is None or name in _OPERATORS or name in ("and", "or", ")"):
            raise self.expected("the name of a score")
        if name not in self._names:
            raise ConfigError(f"condition {self._text!r}: no score called {name!r}{name_hint(name, self._names)}")
        self._next()
        compare = _OPERATORS.get(self.word or "")
        if compare is None:
            raise self.expected("one of <, <=, >, >=, = and !=")
        self._next()
        try:
            limit = float(self.word or "")
        except ValueError:
            raise self.expected("a number") from None
        self._next()

        def met(values: Values) -> bool | None:
            value = values.get(name)
            return None if value is None else compare(value, limit)

        return met


def _first(decisive: bool, found: list[bool | None]) -> bool | None:
    """What several conditions together say: the decisive one, else unknown if one is, else the other."""
    if decisive in found:
        return decisive
    return None if None in found else not decisive
