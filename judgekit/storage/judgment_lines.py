"""The lines of judge_inputs.jsonl, judgments.jsonl and probes.jsonl as they are written.

A judge input is written in full, since it is judged again. Of a judgment, a field that has its default value is left
out, except for those that a script looks for: most are at their default in most judgments, and judgments are many.
"""

import json
from typing import Any

import msgspec
from pydantic import BaseModel

from judgekit.core.judgments import JudgeInput, Judgment, Verdict
from judgekit.core.text import clean_text

_ALWAYS_THERE: dict[type[BaseModel], tuple[str, ...]] = {
    Judgment: (
        *("role", "verdict", "failure", "raw_reply", "served_model", "finish_reason"),
        *("flags", "from_cache", "n_requests"),
    ),
    Verdict: ("score", "reasoning"),
}
"""Fields that have a default and are written all the same."""


def _form(model: type[BaseModel]) -> type[msgspec.Struct]:
    """The fields of a record as they are written: those without a default always."""
    fields = [
        (name, Any) if field.is_required() or name in _ALWAYS_THERE[model] else (name, Any, field.default)
        for name, field in model.model_fields.items()
    ]
    return msgspec.defstruct(model.__name__, fields, omit_defaults=True, kw_only=True)


JudgmentLine = _form(Judgment)
"""The fields of `Judgment`, which is three times as slow to make."""
_VerdictForm = _form(Verdict)


def input_line(item: JudgeInput) -> bytes:
    """A judge input as it is written, without a line feed."""
    return _encoded(vars(item))


def judgment_line(line: msgspec.Struct) -> bytes:
    """A judgment as it is written, without a line feed."""
    return _encoded(line)


def line_of(judgment: Judgment) -> bytes:
    """The line of a judgment that was read or ruled."""
    return judgment_line(JudgmentLine(**vars(judgment)))


def judgment_fields(line: bytes) -> dict[str, Any]:
    """The fields of `Judgment` of a line that was written here; its verdict is as it stands there."""
    return msgspec.structs.asdict(_unpack(line))


def _stored(record: object) -> object:
    """What is written of a record within a judgment."""
    return _VerdictForm(**vars(record)) if isinstance(record, Verdict) else vars(record)


def _encoded(record: object) -> bytes:
    try:
        return _pack(record)
    except UnicodeEncodeError:
        # A lone surrogate; the record keeps U+FFFD in its place.
        return json.dumps(_cleaned(msgspec.to_builtins(record, enc_hook=_stored)), ensure_ascii=False).encode()


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {key: _cleaned(item) for key, item in value.items()}
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


_pack = msgspec.json.Encoder(enc_hook=_stored).encode
_unpack = msgspec.json.Decoder(JudgmentLine).decode
