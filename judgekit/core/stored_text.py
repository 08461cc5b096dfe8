"""How much of what a system said is stored: all of it, the first characters, or nothing."""

import re
from collections.abc import Mapping
from typing import Any

from judgekit.core.cases import Hit, Message, SystemOutput
from judgekit.core.scores import NotApplicable
from judgekit.core.text import is_blank

NOT_STORED = "[not stored]"
"""Stands for a text of which nothing is stored."""

TEXT_NOT_STORED = NotApplicable("text not stored")
"""The outcome of a score that rests on such a text."""

STORE_TEXT = re.compile(r"full|none|truncated\((?P<n>[1-9]\d{0,5})\)")
"""What `store_text` of a config may say."""


def characters_kept(store_text: str | None) -> int | None:
    """How many characters of a text are stored; None: all."""
    if store_text in (None, "full"):
        return None
    match = STORE_TEXT.fullmatch(store_text or "")
    return int(match["n"]) if match is not None and match["n"] else 0


def as_stored(output: SystemOutput, n_kept: int | None) -> SystemOutput:
    """An output with its texts cut: answer, passages, messages, texts of errors and of metadata.

    Ids, ranks, scores, flags, citations, extracted fields and times stay. What is left out is marked, so that no score
    is taken from what is left.

    Args:
        output: as the system gave it.
        n_kept: characters of each text that stay; None: all.
    """
    if n_kept is None:
        return output
    answer, is_cut = _cut(output.answer, n_kept)
    changes: dict[str, Any] = {
        "answer": answer,
        "answer_left_out": is_cut,
        "retrieved": tuple(_hit(hit, n_kept) for hit in output.retrieved),
        "turns": None if output.turns is None else tuple(_message(turn, n_kept) for turn in output.turns),
        "metadata": _metadata(output.metadata, n_kept),
    }
    if output.error is not None:
        message = _cut(output.error.message, n_kept)[0] or ""
        changes["error"] = output.error.model_copy(update={"message": message})
    return output.model_copy(update=changes)


def _cut(text: str | None, n_kept: int) -> tuple[str | None, bool]:
    if text is None or is_blank(text) or (n_kept and len(text) <= n_kept):
        return text, False
    return (text[:n_kept] if n_kept else NOT_STORED), True


def _hit(hit: Hit, n_kept: int) -> Hit:
    text, is_cut = _cut(hit.text, n_kept)
    update = {"text": text if n_kept else None, "text_truncated": hit.text_truncated or is_cut}
    return hit.model_copy(update={**update, "metadata": _metadata(hit.metadata or {}, n_kept) or None})


def _message(message: Message, n_kept: int) -> Message:
    hits = None if message.retrieved is None else tuple(_hit(hit, n_kept) for hit in message.retrieved)
    calls = tuple(call.model_copy(update={"arguments": None}) for call in message.tool_calls)
    return message.model_copy(update={"text": _cut(message.text, n_kept)[0], "retrieved": hits, "tool_calls": calls})


def _metadata(metadata: Mapping[str, Any], n_kept: int) -> dict[str, Any]:
    """Numbers and flags, and texts that are short enough."""
    return {
        name: value
        for name, value in metadata.items()
        if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= n_kept)
    }
