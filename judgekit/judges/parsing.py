"""From a model's reply to a verdict, without being talked into a score.

The order is fixed: what the server says of the reply (cut off, filtered, refused), then a strict parse of the
whole text, then one surrounding fence, then the model's thinking taken out, then the one top-level object of
the right shape, mended only in ways that cannot change what it says. Whatever is left is a failure with a
kind: no number is looked for in prose, nothing is clamped, rounded or filled in.

Every step takes time linear in the length of the reply. Where a reply can be read in two ways it is refused:
a failure is asked again or counted, a wrong score is neither.

`PARSER_VERSION` is raised whenever a reply could be read differently than before; replies are stored, so
that a better parser needs no new calls.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from judgekit.core.components import Judge
from judgekit.core.judgments import JudgeInput, ModelResponse, Quote, Verdict, VerdictError
from judgekit.core.reply_values import type_name
from judgekit.core.text import clean_text
from judgekit.judges.echoes import is_copied
from judgekit.judges.objects import Found, decode, read_object, top_level_spans, verdict_object
from judgekit.judges.thinking import without_thinking

PARSER_VERSION = 2

_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_BROKEN_OFF = frozenset({"abort", "cancelled", "error", "insufficient_system_resource"})
_FILTERED = frozenset({"content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii"})
_REPLY_FIELDS = ("content", "tool_call")

_MOST_INDENTATION = 16
_ESCAPED_BLANKS = ("\\n", "\\t", "\\r")

_BLANK = " \t\r\n\f\v\ufeff\u200b"
_ONLY_DOTS = re.compile(r"[\s\[(]*(?:\.{2,}|…)[\s.…\])]*")


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A verdict and how it was read."""

    verdict: Verdict
    parse_path: str
    source: str = ""
    """The object that it was read from, as the reply writes it."""


def parse_reply(
    response: ModelResponse,
    judge: Judge,
    judge_input: JudgeInput | None = None,
    reply_schema: Mapping[str, Any] | None = None,
) -> ParsedReply:
    """The verdict that a reply holds.

    Args:
        response: what came back.
        judge: knows the right shape and scale.
        judge_input: what was judged; if given, an object copied from it is refused as a verdict.
        reply_schema: what the wording asked for. An optional key of the judge is read only if it is there, and
            must then be in the reply. None: no optional key is read.

    Raises:
        VerdictError: there is no verdict, or more than one; its kind says which.
    """
    _check_server_word(response)
    text = (response.text or "").strip(_BLANK)
    if not text:
        raise VerdictError("empty", "the reply is empty")
    asked = frozenset(judge.optional_keys).intersection((reply_schema or {}).get("properties", ()))
    is_reply = response.source in _REPLY_FIELDS
    found = _find(text, judge, asked) if is_reply else _in_thinking(text, response.source)
    verdict, mended = read_object(found, judge, asked)
    if judge_input is not None and is_copied(found, verdict, judge, asked, judge_input.variables):
        raise VerdictError("invalid", "the object of the reply is copied from the judged text")
    source = "" if response.source == "content" else f"{response.source}+"
    return ParsedReply(verdict, source + found.path + mended, found.source)


def _check_server_word(response: ModelResponse) -> None:
    reason = str(response.finish_reason or "").lower()
    if reason in _CUT:
        raise VerdictError("truncated", _why_cut_off(response))
    if reason in _BROKEN_OFF:
        raise VerdictError("truncated", f"the server broke the reply off ({reason})")
    if reason in _FILTERED:
        raise VerdictError("filtered", "the provider's content filter withheld the reply")
    if response.refusal or reason == "refusal":
        raise VerdictError("refused", f"the model declined: {clean_text(str(response.refusal or ''))[:300]}")


def _why_cut_off(response: ModelResponse) -> str:
    spent = response.usage.completion_tokens if response.usage is not None else None
    what = f"the reply was cut off at max_output_tokens{f' after {spent} tokens' if spent is not None else ''}"
    text = response.text or ""
    if text and response.source not in _REPLY_FIELDS:
        what += f", in its thinking ({len(text)} characters in `{response.source}`, none in content)"
    if not _ends_blank(text):
        return f"{what}; raise it for this model"
    # Constrained decoding may write white space for ever, which a grammar allows between two keys.
    return (
        f"{what}, and its end is white space only, so a larger limit will not help; "
        "set reply_format to json_object or text for this model"
    )


def _ends_blank(text: str) -> bool:
    """Whether a text ends in more white space, escaped or not, than any indentation has."""
    end = text[-2 * _MOST_INDENTATION :]
    rest = end.rstrip()
    while rest.endswith(_ESCAPED_BLANKS):
        rest = rest[:-2].rstrip()
    return len(end) - len(rest) >= _MOST_INDENTATION


def _in_thinking(text: str, source: str) -> Found:
    """A reply in a field for thinking counts only if it is one object and nothing else."""
    try:
        value = decode(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise VerdictError("empty", f"content is empty; {len(text)} characters in `{source}`")
    return Found(value, text, "strict")


def _find(text: str, judge: Judge, asked: Collection[str]) -> Found:
    whole = _whole(text)
    if whole is not None:
        return whole
    rest, thinking = without_thinking(text, judge.decisive_key)
    if not thinking:
        return _only_object(text, judge, asked, "object")
    if not rest.strip(_BLANK):
        raise VerdictError("empty", "the reply is empty but for its thinking")
    whole = _whole(rest)
    if whole is not None:
        return Found(whole.payload, whole.source, thinking if whole.path == "strict" else f"{thinking}+fence")
    return _only_object(rest, judge, asked, f"{thinking}+object")


def _whole(text: str) -> Found | None:
    """The text as one object, as it is or in one fence; None if it is not JSON."""
    for path, body in (("strict", text), ("fence", _unfenced(text))):
        # Prose may begin with a word that JSON readers take for a number: Infinity, NaN.
        if body is None or body.lstrip()[:1] in ("I", "N", "-"):
            continue
        try:
            value = decode(body)
        except ValueError:
            continue
        if not isinstance(value, dict):
            raise VerdictError("invalid", f"the reply is {type_name(value)}, not a JSON object")
        return Found(value, body, path)
    return None


def _unfenced(text: str) -> str | None:
    body = text.strip()
    if len(body) < 7 or not body.startswith("```") or not body.endswith("```"):
        return None
    tag, newline, inner = body[3:-3].partition("\n")
    return inner if newline and (not tag.strip() or tag.strip().isalnum()) else None


def _only_object(text: str, judge: Judge, asked: Collection[str], path: str) -> Found:
    """The one top-level object that holds a verdict, between whatever else was said."""
    first: tuple[Found, Verdict] | None = None
    for start, end in top_level_spans(text):
        found = verdict_object(text[start:end], judge)
        if found is None:
            continue
        before = text[max(0, start - 80) : start].rstrip()
        if before.endswith("[") or text[end : end + 80].lstrip().startswith("]"):
            raise VerdictError("invalid", "the verdict is inside a list")
        verdict, _ = read_object(found, judge, asked)
        if first is None:
            first = found, verdict
        elif verdict != first[1]:
            raise VerdictError("ambiguous", "the reply holds two different verdicts")
    if first is None:
        raise VerdictError("invalid", f"the reply holds no JSON object with {judge.decisive_key!r}")
    return Found(first[0].payload, first[0].source, path + first[0].path)


def read_texts(payload: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of texts.

    Raises:
        VerdictError: missing, not a list, or an item that is not a text, blank, or `...`.
    """
    value = payload.get(key)
    if not isinstance(value, list):
        raise VerdictError("invalid", f"{key!r} is {type_name(value)}, expected a list of texts")
    for item in value:
        if not isinstance(item, str):
            raise VerdictError("invalid", f"{key!r} holds {type_name(item)}, expected texts only")
        if not item.strip():
            raise VerdictError("invalid", f"{key!r} holds a blank text")
        if _ONLY_DOTS.fullmatch(item):
            raise VerdictError("invalid", f"{key!r} is abbreviated with '...', so it is incomplete")
    return tuple(clean_text(item) for item in value)


def read_quotes(payload: Mapping[str, Any], key: str) -> tuple[Quote, ...] | None:
    """A list of `{"claim", "quote"}` objects; None if the key is absent, since the wording does not ask for it.

    Raises:
        VerdictError: not a list, or an entry that is not exactly two texts that are not blank.
    """
    if key not in payload:
        return None
    entries = payload[key]
    if not isinstance(entries, list):
        raise VerdictError("invalid", f"{key!r} is {type_name(entries)}, expected a list")
    found = []
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != {"claim", "quote"}:
            raise VerdictError("invalid", f"{key!r} holds an entry that is not an object of 'claim' and 'quote'")
        claim, quote = read_texts({key: [entry["claim"], entry["quote"]]}, key)
        found.append(Quote(claim=claim, quote=quote))
    return tuple(found)
