"""Groundedness and correctness by word overlap, without a language model.

What it sees: words, numbers and names of an answer that are nowhere in the context, and plain negation and opposites
against the closest context sentence. What it does not see: paraphrase that shares no word, swapped roles ("A beat B"),
reasoning, a true word from the wrong place. `strict=True` is a second judge for spot checks.

Method, in-house: an answer is split into claims. The support of a claim is the smallest of the weighted share of its
words that the context has, the share of its numbers and the share of its names, halved if the claim contradicts the
closest sentence. All functions are pure and deterministic, linear in the length of the text, and take any text.
docs/decisions/overlap-baseline.md tells what each rule is worth.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from judgekit.core.sentences import CITATION, abstention_rule, sentences
from judgekit.core.text import clean_text
from judgekit.providers import overlap_words as w

NOTE = "Word-overlap baseline, no language model."
FUNCTION_WORD_WEIGHT = 0.25
"""Weight of a function word beside 1 for a content word (1 too in the strict variant)."""
SUPPORTED_FROM, STRICT_SUPPORTED_FROM = 0.75, 0.9
"""Share of a claim's words that the contexts must have for the claim to be supported."""
NEGATION_REACH = 2
"""Content words after a negator that count as negated."""
ALIGNED_FROM = 0.6
"""Share of a claim's content words in one context sentence from which the two can contradict each other."""
RELATED_FROM = 0.25
"""Below this mean share of words an answer is unrelated to the context."""
MAX_PLACES = 64
"""Sentences remembered per word: keeps the search for the closest sentence linear."""
WITHOUT_ORDER, STRICT_CONTAINED = 0.9, 0.8
"""Factor for a reference whose words are in the answer, but not as one phrase; and the strict value of one that is."""
_GROUNDEDNESS_STEPS = (0.6, 0.75, 0.9, 0.95)
"""Mean support from which the groundedness of a related answer is one above 1."""
_CORRECTNESS_STEPS = ((0.95, 5), (0.6, 4), (0.5, 3), (0.25, 2), (1e-9, 1))
"""Value from which a correctness score is given."""
_YES_OR_NO = dict.fromkeys(["yes", "yeah", "true", "correct"], True) | dict.fromkeys(["no", "nope", "false"], False)
_LEADING_NO = re.compile(r"\W{0,9}(?:no|nope)\s{0,9}(?:[,.!;:–—-]|but\b)", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]{0,20}(?:[-*+•#>]{1,6}|\d{1,2}[.)])[ \t]+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, or a whole answer or reference, in the forms in which it is compared."""

    text: str
    words: Sequence[str]
    forms: Sequence[str]
    content: frozenset[str]
    """Its forms without function words."""
    negated: frozenset[str]
    """Content forms that stand right after a negator."""

    @property
    def numbers(self) -> list[str]:
        """Its forms that are numbers."""
        return [form for form in self.forms if form[0].isdecimal()]


@dataclass(frozen=True, slots=True)
class Finding:
    """How far the contexts bear out one claim."""

    claim: Statement
    share: float
    """Weighted share of the claim's words that the contexts have."""
    support: float
    """`share`, lowered by missing numbers, missing names and contradiction; 0 to 1."""
    supported: bool
    contradicted: bool
    missing: Sequence[str]
    """Numbers and names of the claim that the contexts lack, else its words that they lack."""


class Passages:
    """The sentences of the contexts, and where each form stands."""

    def __init__(self, contexts: Sequence[str], forms_of: w.Forms, *, strict: bool = False) -> None:
        pieces = (piece.strip() for context in contexts for piece in sentences(context))
        self.sentences = [read(piece, forms_of) for piece in dict.fromkeys(pieces)]
        self.forms = {form for sentence in self.sentences for form in sentence.forms}
        self.names = {word.removesuffix("s") for sentence in self.sentences for word in sentence.words}
        self.pairs = {pair for sentence in self.sentences if strict for pair in pairwise(sentence.forms)}
        self._places: dict[str, list[int]] = {}
        for place, sentence in enumerate(self.sentences):
            for form in sentence.content:
                places = self._places.setdefault(form, [])
                if len(places) < MAX_PLACES:
                    places.append(place)

    def closest(self, content: frozenset[str]) -> tuple[int, list[Statement]]:
        """How many forms the closest sentences share with `content`, and all that share so many, in order."""
        places = {place for form in content for place in self._places.get(form, ())}
        shared = {place: len(content & self.sentences[place].content) for place in places}
        most = max(shared.values(), default=0)
        return most, [self.sentences[place] for place in sorted(shared) if shared[place] == most]


def read(text: str, forms_of: w.Forms) -> Statement:
    """A text as it is compared."""
    words = w.words(w.fold(text).casefold())
    forms = [forms_of[word] for word in words]
    content = w.content_of(forms)
    return Statement(text, words, forms, content, _negated(text, forms, content))


def _negated(text: str, forms: Sequence[str], content: frozenset[str]) -> frozenset[str]:
    """The `NEGATION_REACH` content forms after each negator, up to a "but"; an answering "No," is not a negator."""
    if w.NOT not in forms:
        return frozenset()
    reach = 0
    found: set[str] = set()
    for index, form in enumerate(forms):
        if form == w.NOT:
            reach = 0 if index == 0 and _LEADING_NO.match(text) else NEGATION_REACH
        elif form == "but":
            reach = 0
        elif reach and form in content:
            found.add(form)
            reach -= 1
    return frozenset(found)


def _names(text: str) -> list[str]:
    """Case-folded capitalised words but for the first, and acronyms; none if everything is in capitals."""
    folded = w.fold(text)
    if folded.islower() or folded.isupper():
        return []
    capitalised = [
        word for index, word in enumerate(w.words(folded)) if word[0].isupper() and (index or word[1:2].isupper())
    ]
    return [name for word in capitalised if not w.is_common(name := word.casefold())]


def read_claims(answer: str, forms_of: w.Forms) -> tuple[list[Statement], bool]:
    """The statements of an answer, in order, and whether a sentence of it says that the answer is not known.

    Such a sentence claims nothing. Citation marks and bullets are dropped, and so is a piece without a content word
    ("Yes.") beside others.
    """
    pieces = [clean_text(piece.strip()) for piece in sentences(_BULLET.sub("", CITATION.sub("", answer)))]
    said = [piece for piece in pieces if not abstention_rule(piece)]
    claims = [claim for piece in said if (claim := read(piece, forms_of)).forms]
    abstains = len(said) < len(pieces)
    return [claim for claim in claims if claim.content] or ([] if abstains else claims), abstains


def overlap_score(answer: str, contexts: Sequence[str], *, strict: bool = False) -> float:
    """Mean support of the answer's claims by the contexts, each claim weighed by its number of words.

    Returns:
        0 (nothing is found) to 1 (all is found); 1 for an abstention, which claims nothing; 0 for a blank answer.
    """
    findings, abstains = _findings(answer, contexts, strict=strict)
    return _mean([finding.support for finding in findings], findings) if findings else float(abstains)


def judge_groundedness(
    answer: str, contexts: Sequence[str], *, citations: int | None, strict: bool = False
) -> dict[str, Any]:
    """A verdict on groundedness by the rubric of docs/judges.md, as far as words can tell.

    By mean support: 5 from 0.95, 4 from 0.9, 3 from 0.75, 2 from 0.6, else 1. At least 4 if every claim is supported,
    at most 4 if one is not, at most 3 if none is, or without citations (`citations` is 0 and no mark such as `[1]` is
    in the text; None: the system reports none, which costs nothing). 1 if a claim contradicts the context; 0 for an
    answer that is unrelated (mean share of words below 0.25), without context, or blank. An answer that only says it
    could not find the answer claims nothing: 5, with both lists empty.
    """
    findings, abstains = _findings(answer, contexts, strict=strict)
    if findings:
        score, reasoning = _groundedness_score(findings), _groundedness_reasoning(findings)
        if citations is not None and citations <= 0 and CITATION.search(answer) is None:
            score, reasoning = min(score, 3), f"{reasoning} No citations."
    elif abstains:
        score, reasoning = 5, "The answer abstains and claims nothing."
    else:
        score, reasoning = 0, "There is no claim."
    return {
        "reasoning": f"{NOTE} {reasoning}",
        "supported_claims": [finding.claim.text for finding in findings if finding.supported],
        "unsupported_claims": [finding.claim.text for finding in findings if not finding.supported],
        "score": score,
    }


def _findings(answer: str, contexts: Sequence[str], *, strict: bool) -> tuple[list[Finding], bool]:
    forms_of = w.Forms()
    claims, abstains = read_claims(answer, forms_of)
    passages = Passages(contexts if claims else (), forms_of, strict=strict)
    return [_examine(claim, passages, strict=strict) for claim in claims], abstains


def _mean(values: Sequence[float], findings: Sequence[Finding]) -> float:
    weights = [len(finding.claim.forms) for finding in findings]
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _examine(claim: Statement, passages: Passages, *, strict: bool) -> Finding:
    share = _word_share(claim, passages, strict=strict)
    numbers, names = claim.numbers, _names(claim.text)
    lost_numbers = [number for number in numbers if number not in passages.forms]
    lost_names = [name for name in names if name.removesuffix("s") not in passages.names]
    contradicted = _contradicts(claim, passages)
    least = min(share, 1 - len(lost_numbers) / max(len(numbers), 1), 1 - len(lost_names) / max(len(names), 1))
    enough = share >= (STRICT_SUPPORTED_FROM if strict else SUPPORTED_FROM)
    return Finding(
        claim=claim,
        share=share,
        support=least / 2 if contradicted else least,
        supported=enough and not (lost_numbers or lost_names or contradicted),
        contradicted=contradicted,
        missing=lost_numbers + lost_names or sorted(claim.content - passages.forms),
    )


def _word_share(claim: Statement, passages: Passages, *, strict: bool) -> float:
    """Weighted share of words found; the strict variant averages it with the share of neighbouring pairs found."""
    light = 1.0 if strict else FUNCTION_WORD_WEIGHT
    weights = [1.0 if form in claim.content else light for form in claim.forms]
    found = sum(weight for weight, form in zip(weights, claim.forms, strict=True) if form in passages.forms)
    share = found / sum(weights)
    if not strict or len(claim.forms) < 2:
        return share
    return (share + sum(pair in passages.pairs for pair in pairwise(claim.forms)) / (len(claim.forms) - 1)) / 2


def _contradicts(claim: Statement, passages: Passages) -> bool:
    """Whether all of the closest context sentences negate what the claim affirms, or the reverse, or say the opposite.

    Only a sentence that shares `ALIGNED_FROM` of the content words, and two at least, is close enough for that.
    """
    most, closest = passages.closest(claim.content)
    if most < 2 or most < ALIGNED_FROM * len(claim.content - w.OPPOSITES_OF.keys()):
        return False
    return all(
        bool(claim.negated & sentence.content) != bool(sentence.negated & claim.content)
        or _is_opposite(claim, sentence)
        for sentence in closest
    )


def _is_opposite(one: Statement, other: Statement) -> bool:
    """Whether `other` has the opposite of a word of `one`, and neither has both."""
    mine, theirs = set(one.forms), set(other.forms)
    return any(
        theirs & w.OPPOSITES_OF[form] and not mine & w.OPPOSITES_OF[form]
        for form in (mine - theirs) & w.OPPOSITES_OF.keys()
    )


def _groundedness_score(findings: Sequence[Finding]) -> int:
    if _mean([finding.share for finding in findings], findings) < RELATED_FROM:
        return 0
    if any(finding.contradicted for finding in findings):
        return 1
    support = _mean([finding.support for finding in findings], findings)
    score = 1 + sum(support >= step for step in _GROUNDEDNESS_STEPS)
    if all(finding.supported for finding in findings):
        return max(score, 4)
    return min(score, 4 if any(finding.supported for finding in findings) else 3)


def _groundedness_reasoning(findings: Sequence[Finding]) -> str:
    failed = [finding for finding in findings if not finding.supported]
    parts = [f"{len(findings) - len(failed)} of {len(findings)} claims found."]
    for finding in failed[:3]:
        missing = ", ".join(map(shortened, finding.missing[:5])) or "too many of its words or word pairs"
        what = "contradicts the context" if finding.contradicted else f"not in the context: {missing}"
        parts.append(f'"{shortened(finding.claim.text)}": {what}.')
    if len(failed) > 3:
        parts.append(f"{len(failed) - 3} more are not supported.")
    return " ".join(parts)


def shortened(text: str) -> str:
    """At most 80 characters of a text."""
    return text if len(text) <= 80 else f"{text[:79]}…"


def judge_correctness(
    question: str,
    answer: str,
    contexts: Sequence[str],
    references: Sequence[str],
    key_facts: Sequence[str] = (),
    *,
    strict: bool = False,
) -> dict[str, Any]:
    """A verdict on correctness by the rubric of docs/judges.md, as far as words can tell.

    The score is 5 from a value of 0.95, 4 from 0.6, 3 from 0.5, 2 from 0.25, 1 above 0; `assess_correctness` tells the
    value. Without references and key facts it is 4 at most, without contexts too 2 at most.
    """
    value, reasoning, highest = assess_correctness(question, answer, contexts, references, key_facts, strict=strict)
    score = next((step for least, step in _CORRECTNESS_STEPS if value >= least), 0)
    return {"reasoning": f"{NOTE} {reasoning}", "score": min(score, highest)}


def assess_correctness(
    question: str,
    answer: str,
    contexts: Sequence[str],
    references: Sequence[str],
    key_facts: Sequence[str] = (),
    *,
    strict: bool = False,
) -> tuple[float, str, int]:
    """Value (0 to 1), what it rests on, and the highest score that such evidence can give.

    References are alternatives, the best one counts; key facts are all wanted, their mean counts; with both, the mean
    of the two. The value of one is 1 if the answer contains it as a phrase (the strict variant: 0.8 beside other
    words), else 0.9 of the better of token F1 and recall (the strict variant: of F1), over content words that the
    question does not give away. A missing number, a negated word or an opposite lowers it to 0.3 or less, a wrong yes
    or no to 0; the right one gives 0.5 at least. Contexts are used only without references and key facts: three
    quarters are then support by the contexts, one quarter is the share of the question's words in the answer. An
    abstention is 0 if a reference tells the answer, 1 if the reference abstains as well; without references it is as
    right as the contexts lack the question's words.
    """
    references = [text for text in references if text.strip()]
    facts = [text for text in key_facts if text.strip()]
    if not answer.strip():
        return 0.0, "The answer is blank.", 5
    if not references and not facts:
        return _without_references(question, answer, [text for text in contexts if text.strip()], strict=strict)
    if _is_silent(answer):
        right = bool(references) and all(map(_is_silent, references))
        return float(right), f"The answer abstains, {'as' if right else 'unlike'} the reference.", 5
    forms_of = w.Forms()
    said, given = read(CITATION.sub("", answer), forms_of), read(question, forms_of).content
    values = [_agreement(read(text, forms_of), said, given, strict=strict) for text in (*references, *facts)]
    known, parts = [], []
    if references:
        known.append(max(values[: len(references)]))
        parts.append(f"Agreement with the closest of {len(references)} references: {known[-1]:.2f}.")
    if facts:
        known.append(sum(values[len(references) :]) / len(facts))
        parts.append(f"With {len(facts)} key facts on average: {known[-1]:.2f}.")
    return sum(known) / len(known), " ".join(parts), 5


def _without_references(question: str, answer: str, contexts: Sequence[str], *, strict: bool) -> tuple[float, str, int]:
    forms_of = w.Forms()
    asked = read(question, forms_of).content
    silent = _is_silent(answer)
    found = asked & read("\n".join(contexts) if silent else answer, forms_of).content
    share = len(found) / len(asked) if asked else float(silent and bool(contexts))
    if silent:
        return 1 - share, f"The answer abstains; the context has {share:.0%} of the question's words.", 4
    if not contexts:
        return share, f"Nothing to check by; the answer has {share:.0%} of the question's words.", 2
    support = overlap_score(answer, contexts, strict=strict)
    reasoning = f"No reference; support by the context {support:.2f}, question's words in the answer {share:.0%}."
    return 0.75 * support + 0.25 * share, reasoning, 4


def _is_silent(text: str) -> bool:
    return read_claims(text, w.Forms()) == ([], True)


def _agreement(wanted: Statement, answer: Statement, given: frozenset[str], *, strict: bool) -> float:
    """Value of one reference or key fact, 0 to 1."""
    yes, said_yes = _yes_or_no(wanted), _yes_or_no(answer)
    if _is_silent(wanted.text) or {yes, said_yes} == {True, False}:
        return 0.0
    key, said = (statement.content - given or set(statement.forms) for statement in (wanted, answer))
    if _phrase(wanted) in _phrase(answer):
        value = STRICT_CONTAINED if strict and wanted.forms != answer.forms else 1.0
    elif found := key & set(answer.forms):
        recall, precision = len(found) / len(key), len(said & set(wanted.forms)) / len(said)
        f1 = 2 * precision * recall / (precision + recall)
        value = WITHOUT_ORDER * (f1 if strict else max(f1, recall))
    else:
        value = 0.0
    opposed = (wanted.negated ^ answer.negated) & wanted.content & answer.content
    lost = set(wanted.numbers).difference(answer.forms)
    if opposed or lost or _is_opposite(wanted, answer):
        value = min(value, 0.3)
    return value if yes is None or yes != said_yes else max(value, 0.5)


def _phrase(statement: Statement) -> str:
    """Words between single spaces, so that `in` finds whole ones; a script without spaces as it stands."""
    folded = w.fold(statement.text)
    return folded if w.is_unspaced(folded) else f" {' '.join(statement.forms)} "


def _yes_or_no(statement: Statement) -> bool | None:
    """Whether a text begins with a yes or with a no; None if with neither. "No. 5" is a number."""
    first, second = [*statement.words[:2], "", ""][:2]
    return None if second[:1].isdecimal() else _YES_OR_NO.get(first)
