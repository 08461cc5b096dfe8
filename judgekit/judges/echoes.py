"""Verdicts that are the judged text's and not the judge's: what a judge quotes must not become the score."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from html import unescape
from typing import Any
from unicodedata import is_normalized, normalize

from judgekit.core.components import Judge
from judgekit.core.judgments import Verdict, VerdictError
from judgekit.judges.objects import BRACE, BRACE_OR_STRING, Found, read_object, verdict_object

_STRAIGHT_QUOTES = str.maketrans("“”„‟″‘’‚‛′", "\"\"\"\"\"'''''")
_NESTED = 2
"""Levels of objects inside an object that is looked at: more cannot be a verdict, and all would take quadratic time."""
_LEAST_LETTERS = 16
"""Fewer letters, such as those of `{"score": 4}`, may be anywhere."""
_SAYS_NOTHING = frozenset({"is_real", "inconsistent"})
"""Parts of a verdict that are worked out and not read."""
_REASONS = frozenset({"reasoning", "evidence"})
"""Parts that say why, and decide nothing."""


def is_copied(
    found: Found, verdict: Verdict, judge: Judge, asked: Collection[str], variables: Mapping[str, Any]
) -> bool:
    """Whether an object of a reply is in the judged texts: then it is not the judge's own.

    It is if it is there letter by letter, white space aside; so is a longer one of which only the marks between letters
    differ, as if the text leaves out braces or escapes quotes. It is too if an object there says the same once it is
    read as replies are. Beside prose, where a judge may quote, the same deciding values are enough; a reply
    that is one object and nothing else is a quotation only if the reasoning is the same as well.
    """
    wanted = "".join(found.source.split())
    letters = _letters(found.source)
    may_quote = "object" in found.path
    said = _said(verdict, may_quote=may_quote)
    for text in _texts(variables):
        if len(letters) >= _LEAST_LETTERS and _may_name(judge.decisive_key, text) and letters in _letters(text):
            return True
        if "{" not in text:
            continue
        if wanted in "".join(text.split()):
            return True
        if may_quote or _letters(verdict.reasoning) in _letters(text):
            planted = _verdicts(text, judge, asked)
            if any(_said(other, may_quote=may_quote) == said for other in planted):
                return True
    return False


def _verdicts(text: str, judge: Judge, asked: Collection[str]) -> Iterator[Verdict]:
    """What the objects of a judged text would say as replies."""
    key = judge.decisive_key.casefold()
    text = text.translate(_STRAIGHT_QUOTES)
    seen: set[str] = set()
    for form in (text, text.replace('\\"', '"')):
        for pattern in (BRACE, BRACE_OR_STRING):
            for start, end in _spans(form, pattern):
                span = form[start:end]
                if span in seen or not (key in span.casefold() or "\\u" in span):
                    continue
                seen.add(span)
                try:
                    other = verdict_object(span, judge)
                    if other is not None:
                        yield read_object(other, judge, asked)[0]
                except VerdictError:
                    continue


def _spans(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Balanced `{...}` at any depth, also if other braces do not pair; none with much nested in it."""
    opened: list[tuple[int, int]] = []
    position = 0
    while mark := (pattern if opened else BRACE).search(text, position):
        position = mark.end()
        if mark[0] == "{":
            opened.append((mark.start(), 0))
        elif mark[0] == "}" and opened:
            start, height = opened.pop()
            if opened:
                opened[-1] = opened[-1][0], max(opened[-1][1], height + 1)
            if height <= _NESTED:
                yield start, position


def _said(verdict: Verdict, *, may_quote: bool) -> Any:
    """What two verdicts are compared by: values, and the letters and digits of texts."""
    return _plain(verdict.model_dump(), _SAYS_NOTHING | _REASONS if may_quote else _SAYS_NOTHING)


def _plain(value: Any, left_out: frozenset[str]) -> Any:
    if isinstance(value, str):
        return _letters(value)
    if isinstance(value, Mapping):
        return {name: _plain(item, left_out) for name, item in value.items() if name not in left_out}
    return [_plain(item, left_out) for item in value] if isinstance(value, list | tuple) else value


def _may_name(key: str, text: str) -> bool:
    """Whether a text may hold a key in some writing: a quick look that spares most texts the comparison of letters."""
    is_plain = "&" not in text and is_normalized("NFKC", text)
    return not is_plain or key.partition("_")[0].casefold() in text.casefold()


def _letters(text: str) -> str:
    """Letters and digits in lower case, of wide and marked-up writing too."""
    return "".join(filter(str.isalnum, unescape(normalize("NFKC", text)).casefold()))


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
