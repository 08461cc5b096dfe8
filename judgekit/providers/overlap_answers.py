"""The yes/no judges of the embedded baseline: phrases by which answers decline, or say that sources disagree.

Plain word rules: what is said in other words is not seen. All functions are pure, linear in the length of the text,
and take any text.
"""

import re
from collections.abc import Sequence
from typing import Any

from judgekit.core.sentences import CITATION, sentences
from judgekit.core.text import clean_text
from judgekit.providers import overlap_words as w
from judgekit.providers.overlap_claims import MAX_ABSTENTION_LENGTH, abstains, read_claims

_CANNOT_ANSWER = re.compile(
    r"""\b(?:can|could)(?:not|\snot|n't)\s(?:be\s)?(?:answer(?:ed)?|tell|told|say|said|determined?|work(?:ed)?\sout)\b
        |\bunable\sto\s(?:answer|tell|say|determine)\b|\bkann\s(?:\w{1,20}\s){0,4}nicht\sbeantwort|\bno\spuedo\sresponder""",
    re.IGNORECASE | re.VERBOSE,
)
"""Said of the question as such, so it counts wherever it stands."""
_NOT_THERE = re.compile(
    r"""\b(?:notes?|sources?|documents?|passages?|contexts?|texts?|files?|records?)\b.{0,40}?
        \b(?:do|does|did)(?:\snot|n't)\s(?:describe|give|name|cover|tell|list|record|hold|explain|address)\b
    |\bis(?:\snot|n't)\s(?:written|recorded|given|described|listed|covered|named)\s(?:down\s)?(?:in|by|anywhere)\b
    |\bno\she\sencontrado\b|\bfinde\s(?:\w{1,20}\s){0,3}(?:nichts|keine?n?)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_HEDGE = re.compile(r"\b(?:but|however|although|though|for\ssure|with\scertainty|exactly|aber|pero)\b", re.IGNORECASE)
_CONFLICT = re.compile(
    r"""\b(?:contradict\w{0,6}|conflict(?:s|ed|ing)?|disagree\w{0,5}|discrepanc\w{1,3}|inconsisten\w{1,3}|incompatible
        |at\sodds|(?:do|does|did)\s?n[o']t\s(?:agree|match|tally)|(?:do|does|did)\snot\s(?:agree|match|tally)
        |differ\sfrom\seach\sother|(?:sources?|notes?|documents?|passages?|files?|records?)\s(?:differ|vary)
        |different\s(?:figures?|numbers?|dates?|values?|accounts?|versions?)
        |widersprech\w{1,3}|widerspruch|widersprüch\w{1,6}|uneins)\b""",
    re.IGNORECASE | re.VERBOSE,
)
_DENIED = re.compile(
    r"\b(?:no|not|never|without|any|kein\w{0,2}|nicht)\s(?:\w{1,20}\s){0,1}$|n't\s(?:\w{1,20}\s)?$", re.IGNORECASE
)
_SAYS = r"(?:says?|states?|gives?|lists?|reports?|writes?|puts?|claims?|according\sto|mentions?|notes\sthat)"
_CONTRAST = re.compile(
    rf"\b{_SAYS}\b[^\n]{{1,300}}?(?:\bwhile\b|\bwhereas\b|\bbut\b|\bhowever\b|\bon\sthe\sother\shand\b)"
    rf"[^\n]{{1,200}}?\b{_SAYS}\b",
    re.IGNORECASE | re.VERBOSE,
)
MAX_PLACES = 100
"""Sentences looked at for each word of a claim: keeps the search for a quote linear."""
_NOTE = "Word-overlap baseline, no language model."


def judge_abstention(answer: str, *, strict: bool = False) -> dict[str, Any]:
    """Whether an answer declines, by the phrases it is made of.

    Yes where nothing is left but sentences that say that the answer is not known or not in the sources; where the first
    sentence says so, whatever explanation follows; and where any sentence says that the question cannot be answered.
    The strict variant takes the first of these only.

    Returns:
        `reasoning` and `abstains`.
    """
    said = [text for sentence in sentences(CITATION.sub("", answer)) if (text := sentence.strip())]
    declining = [text for text in said if abstains(text) or (not strict and _declines(text))]
    only = any(map(abstains, declining)) and not read_claims(answer, w.Forms())
    leads = bool(declining) and (declining[0] == said[0] or any(map(_CANNOT_ANSWER.search, declining)))
    found = only or (leads and not strict)
    why = f'It says "{_shortened(declining[0])}"' if declining else "No sentence says that the answer is not known"
    but = "" if found or not declining else ", among other things"
    return {"reasoning": f"{_NOTE} {why}{but}.", "abstains": found}


def _declines(sentence: str) -> bool:
    """Whether a sentence declines in words that the claims of groundedness do not take for an abstention."""
    text = sentence[:MAX_ABSTENTION_LENGTH].replace("\u2019", "'")
    return _HEDGE.search(text) is None and bool(_CANNOT_ANSWER.search(text) or _NOT_THERE.search(text))


def judge_conflict(answer: str, *, strict: bool = False) -> dict[str, Any]:
    """Whether an answer says that sources disagree, by words for disagreement.

    Yes where such a word stands without a negation before it; else, but for the strict variant, where one source
    "says" one thing "while" or "but" another "says" something.

    Returns:
        `reasoning` and `states_conflict`.
    """
    words = [match for match in _CONFLICT.finditer(answer) if not _DENIED.search(answer[: match.start()][-40:])]
    contrast = None if strict or words else _CONTRAST.search(answer)
    found = words[0] if words else contrast
    why = f'It says "{_shortened(found[0])}"' if found else "No word says that sources disagree"
    return {"reasoning": f"{_NOTE} {why}.", "states_conflict": found is not None}


def quotes_of(claims: Sequence[str], passages: Sequence[str]) -> list[dict[str, str]]:
    """For each claim the passage sentence that shares most content words with it, word for word, as evidence.

    Args:
        claims: supported claims.
        passages: texts of the passages.

    Returns:
        `{"claim", "quote"}` objects; a claim that shares no word with any sentence gets none.
    """
    forms_of = w.Forms()
    first: dict[frozenset[str], str] = {}
    for text in (sentence.strip() for passage in passages for sentence in sentences(passage)):
        first.setdefault(_content(text, forms_of), text)
    contents = list(first)
    places_of: dict[str, list[int]] = {}
    for place, content in enumerate(contents):
        for form in content:
            places = places_of.setdefault(form, [])
            if len(places) < MAX_PLACES:
                places.append(place)
    found = []
    for claim in claims:
        wanted = _content(claim, forms_of)
        candidates = {place for form in wanted for place in places_of.get(form, ())}
        if candidates:
            best = min(candidates, key=lambda place: (-len(wanted & contents[place]), place))
            found.append({"claim": claim, "quote": first[contents[best]]})
    return found


def _content(text: str, forms_of: w.Forms) -> frozenset[str]:
    return frozenset(form for word in w.words(w.fold(text)) if not w.is_light(form := forms_of[word]))


def _shortened(text: str) -> str:
    text = clean_text(" ".join(text.split()))
    return text if len(text) <= 80 else f"{text[:79]}…"
