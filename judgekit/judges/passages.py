"""What judges see of an output: its passages, citations and references, as plain variables."""

import unicodedata
from typing import Any

from judgekit.core.cases import Case, Hit, SystemOutput
from judgekit.core.scores import Failed, NotApplicable
from judgekit.core.text import is_blank

ABSTAINED = NotApplicable("abstained")
"""Why nothing is said about an answer that declines."""
NO_TEXT = NotApplicable("no retrieved text", by_output=True)
"""Why nothing is said about what an answer rests on."""


def passages(output: SystemOutput, top_k: int) -> list[dict[str, Any]]:
    """Hits with text, best rank first, numbered from 1: `{"number", "source", "text"}`.

    A hit without text keeps its number and is left out.
    """
    found = []
    for number, hit in _numbered(output, top_k):
        place = _place(hit.rel_path, hit.heading_path) or hit.chunk_id or hit.doc_id or ""
        found.append({"number": number, "source": place, "text": hit.text})
    return found


def citations(output: SystemOutput, top_k: int) -> list[str] | None:
    """What the answer cites, one line each; None if the system does not report it.

    A cited chunk is `passage 2`, or its id with `(not shown)` if it is not a passage that `passages` gives.
    """
    if output.citations is None and not output.references:
        return None
    numbers: dict[str, int] = {}
    for number, hit in _numbered(output, top_k):
        if hit.chunk_id is not None:
            numbers.setdefault(hit.chunk_id, number)
    cited = [
        f"passage {numbers[entry.citation]}" if entry.citation in numbers else f"{_line(entry.citation)} (not shown)"
        for entry in output.citations or ()
    ]
    cited += [_line(_place(place.rel_path, place.heading_path)) for place in output.references]
    return list(dict.fromkeys(cited))


def _numbered(output: SystemOutput, top_k: int) -> list[tuple[int, Hit]]:
    ranked = sorted(enumerate(output.retrieved, start=1), key=lambda pair: pair[1].rank or pair[0])
    return [(number, hit) for number, (_, hit) in enumerate(ranked[:top_k], start=1) if hit.text is not None]


def folded(text: str) -> str:
    """The text after NFC, with every run of white space as one space and none at the ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def _line(text: str) -> str:
    """The text without line breaks, so that one citation cannot pass for several."""
    return " ".join(text.split())


def _place(rel_path: str | None, heading_path: tuple[str, ...] | str) -> str:
    """`file.md > Heading > Sub`, or what is known of it."""
    headings = heading_path if isinstance(heading_path, str) else " > ".join(heading_path)
    return " > ".join(part for part in (rel_path, headings) if part)


def unjudgeable(case: Case, output: SystemOutput) -> NotApplicable | Failed | None:
    """Why an output is not judged; None if it is.

    A failed or blank answer is a failure and not "does not apply": left out silently, it would raise the mean
    of a system that fails on hard cases.
    """
    if output.error is not None:
        return Failed(output.error.kind)
    if output.declared and case.answerable is not True:
        return ABSTAINED
    if output.answer is None:
        return Failed("no_answer")
    if is_blank(output.answer):
        return Failed("blank_answer")
    return None
