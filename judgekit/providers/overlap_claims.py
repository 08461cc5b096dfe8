"""Claims of an answer and how far contexts bear each of them out, by words, numbers and names."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from judgekit.core.sentences import CITATION, sentences
from judgekit.core.text import clean_text
from judgekit.providers import overlap_words as w

FUNCTION_WORD_WEIGHT = 0.25
"""Weight of a function word beside 1 for a content word (1 too in the strict variant)."""
SUPPORTED_FROM = 0.75
"""Share of a claim's words that the contexts must have for the claim to be supported."""
STRICT_SUPPORTED_FROM = 0.9
NEGATION_REACH = 2
"""Content words after a negator that count as negated."""
ALIGNED_FROM = 0.6
"""Share of a claim's content words in one context sentence from which the two can contradict each other."""
MAX_POSTINGS = 32
"""Sentences remembered per word: keeps the search for the closest sentence linear."""
MAX_ABSTENTION_LENGTH = 400
"""Longest sentence, in characters, that is read as "I could not find it"."""

_UNCOUNTED = frozenset({"one", "once"})
"""Number words that mostly count nothing ("one of the"): never asked of the contexts."""
_DATE_WORDS = w.MONTH_WORDS - {"may", "march", "mar"}
"""Months, which a claim must have right like a number; without those that are other words too."""
_OPPOSITES = """able unable,above below,accept reject,add remove,after before,agree disagree,allow ban,allow forbid,
    allow prohibit,approve reject,arrive depart,available unavailable,best worst,better worse,buy sell,close open,
    cold hot,confirm deny,decrease increase,disable enable,early late,east west,exclude include,export import,fail
    succeed,failure success,fall rise,false true,fast slow,fell rose,female male,few many,fewer more,first last,
    gain loss,good bad,grow shrink,high low,higher lower,illegal legal,impossible possible,inside outside,known
    unknown,large small,larger smaller,left right,less more,likely unlikely,long short,lose win,lost won,major minor,
    maximum minimum,negative positive,new old,north south,open shut,oppose support,optional mandatory,optional
    required,paid unpaid,private public,reduce increase,safe dangerous,safe unsafe,same different,start end,start
    finish,strong weak,upper lower,with without"""
_LEADING_NO = re.compile(r"\W{0,9}(?:no|nope)\s{0,9}(?:[,.!;:–—-]|but\b)", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]{0,20}(?:[-*+•#>]{1,6}|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_ABSTENTION = re.compile(
    r"""\b(?:(?:could|can|did|do|does|was|were|am|is|are|ca|has|have)\s?n[o']t|cannot|not|unable\sto|never)\b.{0,40}?
        \b(?:find|found|locate|know|answer|determined?|mention(?:ed|s)?|specif(?:y|ied)|provided?|contain|stated?
            |available|say|include|have\s(?:any\s|enough\s|sufficient\s)?information)\b
    |\b(?:no|insufficient|not\senough|lacks?)\s(?:\w{1,20}\s){0,2}(?:information|answer|evidence|mention|context|data)\b
    |^\W*(?:(?:i\sam\s|i'm\s)?sorry|unknown|unanswerable|n/a|none|no\sanswer|not\s(?:found|available|given))\W*$
    |\bwei(?:ß|ss)\s(?:es\s|ich\s|das\s)*nicht\b|\bkeine\s(?:\w{1,20}\s)?(?:information|angabe|antwort)
    |\bne\s(?:sais|trouve|peux)\spas\b|\baucune\s(?:information|réponse)|\bno\s(?:lo\s)?(?:sé|encontré|encuentro)\b
    |无法(?:回答|确定|找到)|不知道|没有(?:找到|提到|提及|相关)|未(?:找到|提及|提到)|わかりません|分かりません|見つかりません""",
    re.IGNORECASE | re.VERBOSE,
)
_SPEAKER_OR_SOURCE = re.compile(
    r"""\b(?:i|we|ich|je|aucune|keine|context|documents?|sources?|passages?|texts?|information|answer|excerpts?|articles?|data|provided)\b
    |[^\x00-\x7f]|^\W*(?:\w+\s?){1,2}\W*$|n/a""",
    re.IGNORECASE | re.VERBOSE,
)
_GOES_ON = re.compile(
    r"\b(?:but|however|although|though|except|instead|other\sthan|aber|mais|pero)\b|但", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement of an answer, in the forms in which it is compared."""

    text: str
    forms: tuple[str, ...]
    content: frozenset[str]
    """Its forms without function words."""
    numbers: tuple[str, ...]
    """Numbers and months."""
    names: tuple[str, ...]
    negated: frozenset[str]
    """Content forms that stand right after a negator."""


@dataclass(frozen=True, slots=True)
class Finding:
    """How far the contexts bear out one claim."""

    claim: Claim
    share: float
    """Weighted share of the claim's words that the contexts have."""
    support: float
    """`share`, lowered by missing numbers, missing names and contradiction; 0 to 1."""
    supported: bool
    contradicted: bool
    missing: tuple[str, ...]
    """Numbers and names of the claim that the contexts lack, else its words that they lack."""


@dataclass(slots=True)
class Evidence:
    """What the contexts hold of the forms that the claims ask about."""

    forms: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """Neighbouring forms; kept by the strict variant only."""
    verbatim: set[tuple[str, ...]] = field(default_factory=set)
    """Claims that are a whole sentence of the contexts."""
    sentences: list[tuple[set[str], frozenset[str]]] = field(default_factory=list)
    """Per sentence: the forms asked about that it holds, and those of them that it negates."""
    postings: dict[str, list[int]] = field(default_factory=dict)
    """Form to its first `MAX_POSTINGS` sentences."""


def _opposites(text: str) -> dict[str, frozenset[str]]:
    forms, table = w.Forms(), dict[str, set[str]]()
    for pair in text.split(","):
        one, other = map(forms.__getitem__, pair.split())
        table.setdefault(one, set()).add(other)
        table.setdefault(other, set()).add(one)
    return {form: frozenset(others) for form, others in table.items()}


_OPPOSITES_OF = _opposites(_OPPOSITES)


def read_claims(answer: str, forms_of: w.Forms) -> list[Claim]:
    """The statements of an answer, in order; none for a blank answer or one that only says it found nothing.

    A piece without a content word ("Yes.") goes with the next one. Citation marks and list bullets are dropped.
    """
    text = CITATION.sub("", answer)
    if "\n" in text:
        text = _BULLET.sub("", text)
    claims: list[Claim] = []
    pending: list[str] = []
    for sentence in sentences(text):
        claim = read_claim(sentence.strip(), forms_of)
        if not claim.content:
            if claim.forms:
                pending.append(claim.text)
        elif not abstains(claim.text):
            if pending:
                joined = read_claim(" ".join([*pending, claim.text]), forms_of)
                claim = replace(joined, negated=claim.negated)  # "No." negates no word of the next sentence
            claims.append(claim)
            pending = []
    if pending and not claims and not abstains(" ".join(pending)):
        claims.append(read_claim(" ".join(pending), forms_of))
    return claims


def read_claim(text: str, forms_of: w.Forms) -> Claim:
    """One statement, whatever it is."""
    folded = w.fold(text)
    words = w.words(folded)
    forms = tuple(map(forms_of.__getitem__, words))
    return Claim(
        text=clean_text(text),
        forms=forms,
        content=frozenset(form for form in forms if not w.is_light(form)),
        numbers=tuple(
            form
            for word, form in zip(words, forms, strict=True)
            if (form[0].isdecimal() and word not in _UNCOUNTED) or word in _DATE_WORDS
        ),
        names=_names(folded),
        negated=_negated(folded, forms) if w.NOT in forms else frozenset(),
    )


def _names(folded: str) -> tuple[str, ...]:
    """Case-folded capitalised words but for the first, and acronyms; none where everything is in capitals."""
    if folded.islower() or folded.isupper():
        return ()
    return tuple(
        word
        for index, token in enumerate(w.tokens(folded))
        if token[0].isupper()
        and (index or token[1:2].isupper())
        and (word := token.casefold()) not in w.FUNCTION_WORDS
        and word not in w.NEGATORS
        and word not in w.NUMBER_WORDS
        and word not in w.SCALES
        and word not in w.MONTH_WORDS
    )


def _negated(sentence: str, forms: Sequence[str]) -> frozenset[str]:
    """The `NEGATION_REACH` content forms after each negator, up to a "but"; an answering "No," is no negator."""
    reach = 0
    found: set[str] = set()
    skip_first = _LEADING_NO.match(sentence) is not None
    for index, form in enumerate(forms):
        if form == w.NOT:
            reach = 0 if skip_first and index == 0 else NEGATION_REACH
        elif form == "but":
            reach = 0
        elif reach and form not in w.LIGHT_FORMS:
            found.add(form)
            reach -= 1
    return frozenset(found)


def abstains(sentence: str) -> bool:
    """Whether a sentence only says that the answer is not known, or not in the sources."""
    if len(sentence) > MAX_ABSTENTION_LENGTH:
        return False
    text = sentence.replace("\u2019", "'")
    return bool(_ABSTENTION.search(text) and _SPEAKER_OR_SOURCE.search(text) and not _GOES_ON.search(text))


def gather(contexts: Sequence[str], claims: Sequence[Claim], forms_of: w.Forms, *, strict: bool) -> Evidence:
    """What the contexts hold of what the claims ask about."""
    asked = {form for claim in claims for form in claim.forms}
    asked |= {other for form in asked & _OPPOSITES_OF.keys() for other in _OPPOSITES_OF[form]}
    names = {variant for claim in claims for name in claim.names for variant in _name_variants(name)}
    pairs = {pair for claim in claims for pair in pairwise(claim.forms)} if strict else set()
    telling = {form for claim in claims for form in claim.content}
    whole = {claim.forms for claim in claims}
    evidence = Evidence()
    last: tuple[str, ...] = ()
    for raw in sentences("\n".join(contexts)):
        sentence = w.fold(raw)
        words = w.words(sentence)
        forms = tuple(map(forms_of.__getitem__, words))
        if forms in whole:
            evidence.verbatim.add(forms)
        if strict:
            evidence.pairs |= pairs.intersection(pairwise([*last, *forms]))
            last = forms[-1:] or last
        present = asked.intersection(forms)
        if not present:
            continue
        if names:
            evidence.names |= names.intersection(words)
        for form in present & telling:
            places = evidence.postings.setdefault(form, [])
            if len(places) < MAX_POSTINGS:
                places.append(len(evidence.sentences))
        evidence.sentences.append((present, _negated(sentence, forms) if w.NOT in forms else frozenset()))
        evidence.forms |= present
    return evidence


def _name_variants(name: str) -> tuple[str, ...]:
    return (name, name[:-1]) if name.endswith("s") else (name, f"{name}s")


def examine(claim: Claim, evidence: Evidence, *, strict: bool) -> Finding:
    """One claim against the evidence."""
    share = _word_share(claim, evidence, strict=strict)
    numbers = [number for number in claim.numbers if number not in evidence.forms]
    names = [name for name in claim.names if evidence.names.isdisjoint(_name_variants(name))]
    contradicted = contradicts(claim, evidence)
    support = min(
        share,
        1 - len(numbers) / len(claim.numbers) if numbers else 1.0,
        1 - len(names) / len(claim.names) if names else 1.0,
    )
    return Finding(
        claim=claim,
        share=share,
        support=support / 2 if contradicted else support,
        supported=not (numbers or names or contradicted)
        and share >= (STRICT_SUPPORTED_FROM if strict else SUPPORTED_FROM),
        contradicted=contradicted,
        missing=tuple(numbers + names or sorted(claim.content - evidence.forms)),
    )


def _word_share(claim: Claim, evidence: Evidence, *, strict: bool) -> float:
    """Weighted share of words found; the strict variant averages it with the share of neighbouring pairs found."""
    light = 1.0 if strict else FUNCTION_WORD_WEIGHT
    weights = [1.0 if form in claim.content else light for form in claim.forms]
    found = sum(weight for weight, form in zip(weights, claim.forms, strict=True) if form in evidence.forms)
    share = found / sum(weights) if weights else 0.0
    if not strict or len(claim.forms) < 2:
        return share
    return (share + sum(pair in evidence.pairs for pair in pairwise(claim.forms)) / (len(claim.forms) - 1)) / 2


def contradicts(claim: Claim, evidence: Evidence) -> bool:
    """Whether all of the closest context sentences negate what the claim affirms, or the reverse, or say the opposite.

    Only a sentence that shares `ALIGNED_FROM` of the content words, and two at least, is close enough for that.
    """
    if claim.forms in evidence.verbatim:
        return False
    opposed = {form: _OPPOSITES_OF[form] for form in claim.forms if form in _OPPOSITES_OF}
    shared = Counter(place for form in claim.content for place in evidence.postings.get(form, ()))
    most = max(shared.values(), default=0)
    if most < 2 or most < ALIGNED_FROM * len(claim.content - opposed.keys()):
        return False
    said = set(claim.forms)
    for place in [place for place, n in shared.items() if n == most]:
        present, negated = evidence.sentences[place]
        one_sided = bool(claim.negated & present) != bool(negated & said)
        opposite = any(
            form not in present and others & present and not others & said for form, others in opposed.items()
        )
        if not one_sided and not opposite:
            return False
    return True
