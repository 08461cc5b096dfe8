"""Pieces of a text: its sentences, and the citation marks that stand in it.

Every function takes any text (lone surrogates, control characters, megabytes without a space) and is linear in its
length: patterns use bounded or possessive repeats.
"""

import re
from collections.abc import Iterator

CITATION = re.compile(
    r"[ \t]?(?:[\[【]\^?\d{1,4}(?:\s?[,;–-]\s?\d{1,4}){0,20}[\]】]|[\[(](?:source|ref|doc)s?\b[^\])\n]{1,200}[\])])",
    re.IGNORECASE,
)
"""A citation mark in the text: `[1]`, `[2, 3]`, `(source: guide.md)`."""
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        """approx bzw ca capt cf co col corp dept dr e.g ed eds eg est etc fig figs gen gov i.e ie inc jr lt ltd messrs
        mr mrs ms mt nr op p pp prof rev sen sgt sr st u.k u.s univ usw vol vs z.b jan feb mar apr jun jul aug sep
        sept oct nov dec""",
    )
)
_SENTENCE_END = re.compile(
    r"""[.!?…;。！？｡；।॥؟۔\n\r\u2028\u2029](?:
        (?<=[.!?…])(?<![.!?…]{2})[.!?…]*+["'”’»)\]]*+(?=\s)
        |(?<=;)(?=\s)
        |(?<=[。！？｡；।॥؟۔])[。！？｡；।॥؟۔]*+[”」』）]*+
        |(?<=[\n\r\u2028\u2029])[\n\r\u2028\u2029]*+)""",
    re.VERBOSE,
)
_WORD_BEFORE = re.compile(r"[^\s(\[\"“]+$")


def sentences(text: str) -> Iterator[str]:
    """Pieces of `text`, which they add up to: cut at full stops, semicolons and line ends.

    A stop after an abbreviation or an initial, or inside a number, does not cut.
    """
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match[0] == "." and _is_abbreviated(text, start, match.start()):
            continue
        yield text[start : match.end()]
        start = match.end()
    if start < len(text):
        yield text[start:]


def _is_abbreviated(text: str, start: int, stop: int) -> bool:
    before = _WORD_BEFORE.search(text[max(start, stop - 12) : stop])
    if before is None:
        return False
    word = before[0]
    if word.lower() == "no":
        return text[stop + 1 : stop + 4].lstrip()[:1].isdecimal()
    return word.lower() in _ABBREVIATIONS or (len(word.rpartition(".")[2]) == 1 and word.isupper() and word != "I")
