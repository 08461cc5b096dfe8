"""Groundedness and correctness by word overlap, without a language model.

What it sees: words, numbers and names of an answer that are nowhere in the context, and plain negation and opposites
against the closest context sentence. What it does not see: paraphrase that shares no word, swapped roles ("A beat B"),
reasoning, a true word from the wrong place. `strict=True` is a second judge for spot checks.

Method, in-house: an answer is split into claims. The support of a claim is the smallest of the weighted share of its
words that the context has, the share of its numbers and the share of its names, halved if the claim contradicts the
closest sentence. All functions are deterministic, linear in the length of the text, and take any text.
docs/decisions/overlap-baseline.md tells what each rule is worth.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from judgekit.core.sentences import CITATION, abstention_rule, sentences
from judgekit.core.text import clean_text
from judgekit.providers import overlap_words as w

Texts = Sequence[str]

NOTE = "Word-overlap baseline, no language model."
FUNCTION_WORD_WEIGHT = 0.25
"""Weight of a function word beside 1 for a content word (1 too in the strict variant)."""
SUPPORTED_FROM, STRICT_SUPPORTED_FROM, RELATED_FROM = 0.75, 0.9, 0.25
"""Share of words from which a claim is supported, and an answer is related to the contexts."""
NEGATION_REACH = 2
"""Content words after a negator that count as negated."""
ALIGNED_FROM = 0.6
"""Share of a claim's content words in one context sentence from which the two can contradict each other."""
MAX_PLACES = 64
"""Sentences remembered per word: keeps the search for the closest sentence linear."""
_GROUNDEDNESS_STEPS, _CORRECTNESS_STEPS = (0.6, 0.75, 0.9, 0.95), (1e-9, 0.25, 0.5, 0.6, 0.95)
"""Values from which a score is one higher."""
_YES, _NO = {"yes", "yeah", "true", "correct"}, {"no", "nope", "false"}
_LEADING_NO = re.compile(r"\W{0,9}(?:no|nope)\s{0,9}(?:[,.!;:–—-]|but\b)", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]{0,20}(?:[-*+•#>]{1,6}|\d{1,2}[.)])[ \t]+", re.MULTILINE)


class Statement(NamedTuple):
    """A sentence, or a whole answer or reference, and its words as written and in the forms that are compared.

    `content` are the forms without function words, `negated` those of them that stand right after a negator.
    """

    text: str
    words: list[str]
    forms: list[str]
    content: frozenset[str]
    negated: frozenset[str]

    @property
    def numbers(self) -> list[str]:
        """Its forms that are numbers."""
        return [form for form in self.forms if form[0].isdecimal()]

    @property
    def names(self) -> list[str]:
        """Case-folded capitalised words but for the first, and acronyms; none if everything is in capitals."""
        capitalised = [word for word in self.words[:1] if word[1:2].isupper()]
        capitalised += [word for word in self.words[1:] if word[0].isupper()]
        names = map(str.casefold, () if self.text.isupper() else capitalised)
        return [name for name in names if name not in w.COMMON_FORMS]


class Finding(NamedTuple):
    """The share of a claim's words that the contexts have, its support, and why it is not supported ("" if it is)."""

    claim: Statement
    share: float
    support: float
    contradicted: bool
    fault: str


class Passages:
    """The sentences of the contexts, and where each form stands."""

    def __init__(self, contexts: Texts, claims: Sequence[Statement]) -> None:
        pieces = dict.fromkeys(piece.strip() for context in contexts for piece in sentences(context))
        self.sentences = list(map(read, pieces))
        self.forms = set[str]().union(*(sentence.forms for sentence in self.sentences))
        wanted = frozenset[str]().union(*(claim.content for claim in claims))
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, sentence in enumerate(self.sentences):
            for form in sentence.content & wanted:
                self._places[form].append(place)

    @cached_property
    def names(self) -> set[str]:
        """Words as names are compared."""
        words = set[str]().union(*(sentence.words for sentence in self.sentences))
        return {word.casefold().removesuffix("s") for word in words}

    def closest(self, content: frozenset[str]) -> tuple[int, list[Statement]]:
        """How many forms the closest sentences share with a claim, and all that share so many, in order."""
        places = set[int]().union(*(self._places.get(form, [])[:MAX_PLACES] for form in content))
        shared = {place: len(content & self.sentences[place].content) for place in places}
        most = max(shared.values(), default=0)
        return most, [self.sentences[place] for place in sorted(shared) if shared[place] == most]


def read(text: str) -> Statement:
    """A text as it is compared."""
    words = w.words(w.fold(text))
    forms = list(map(w.form_of, words))
    content = frozenset(forms) - w.LIGHT
    if not text.isascii():
        content = frozenset(form for form in content if not w.HIRAGANA.search(form))
    return Statement(text, words, forms, content, _negated(text, forms, content) if w.NOT in forms else frozenset())


def _negated(text: str, forms: Texts, content: frozenset[str]) -> frozenset[str]:
    """The `NEGATION_REACH` content forms after each negator, up to a "but"; an answering "No," is not a negator."""
    reach = 0
    found: set[str] = set()
    for index, form in enumerate(forms):
        if form in (w.NOT, "but"):
            negates = form == w.NOT and (index > 0 or not _LEADING_NO.match(text))
            reach = NEGATION_REACH if negates else 0
        elif reach and form in content:
            found.add(form)
            reach -= 1
    return frozenset(found)


def read_claims(answer: str) -> tuple[list[Statement], bool]:
    """The statements of an answer, in order, and whether a sentence of it says that the answer is not known.

    Such a sentence claims nothing. Citation marks and bullets are dropped, and so is a piece without a content word
    ("Yes.") beside others.
    """
    pieces = [clean_text(piece.strip()) for piece in sentences(_BULLET.sub("", CITATION.sub("", answer)))]
    said = [piece for piece in pieces if not abstention_rule(piece)]
    claims = [claim for claim in map(read, said) if claim.forms]
    abstains = len(said) < len(pieces)
    return [claim for claim in claims if claim.content] or ([] if abstains else claims), abstains


def overlap_score(answer: str, contexts: Texts, *, strict: bool = False) -> float:
    """Mean support of the answer's claims by the contexts, each claim weighed by its number of words.

    Returns:
        0 (nothing is found) to 1 (all is found); 1 for an abstention, which claims nothing; 0 for a blank answer.
    """
    findings, abstains = _findings(answer, contexts, strict=strict)
    return _mean([finding.support for finding in findings], findings) if findings else float(abstains)


def judge_groundedness(answer: str, contexts: Texts, *, citations: int | None, strict: bool = False) -> dict[str, Any]:
    """A verdict on groundedness by the rubric of docs/judges.md, as far as words can tell.

    By mean support: 5 from 0.95, 4 from 0.9, 3 from 0.75, 2 from 0.6, else 1. At least 4 if every claim is supported,
    at most 4 if one is not, at most 3 if none is, or without citations (`citations` is 0 and no mark such as `[1]` is
    in the text; None: the system reports none, which costs nothing). 1 if a claim contradicts the context; 0 for an
    answer that is unrelated (mean share of words below 0.25), without context, or blank. An answer that only says it
    could not find the answer claims nothing: 5, with both lists empty.
    """
    findings, abstains = _findings(answer, contexts, strict=strict)
    score, reasoning = (5, "The answer abstains and claims nothing.") if abstains else (0, "There is no claim.")
    if findings:
        score, reasoning = _groundedness(findings)
        if citations == 0 and CITATION.search(answer) is None:
            score, reasoning = min(score, 3), f"{reasoning} No citations."
    return {
        "reasoning": f"{NOTE} {reasoning}",
        "supported_claims": [finding.claim.text for finding in findings if not finding.fault],
        "unsupported_claims": [finding.claim.text for finding in findings if finding.fault],
        "score": score,
    }


def _findings(answer: str, contexts: Texts, *, strict: bool) -> tuple[list[Finding], bool]:
    claims, abstains = read_claims(answer)
    passages = Passages(contexts if claims else (), claims)
    pairs = {pair for sentence in passages.sentences for pair in pairwise(sentence.forms)} if strict else None
    return [_examine(claim, passages, pairs) for claim in claims], abstains


def _mean(values: Sequence[float], findings: Sequence[Finding]) -> float:
    weights = [len(finding.claim.forms) for finding in findings]
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _examine(claim: Statement, passages: Passages, pairs: set[tuple[str, str]] | None) -> Finding:
    """A claim beside the passages; the strict variant looks for the pairs of neighbouring words too."""
    light = FUNCTION_WORD_WEIGHT if pairs is None else 1.0
    weights = {form: 1.0 if form in claim.content else light for form in claim.forms}
    found = sum(weights[form] for form in claim.forms if form in passages.forms)
    share = found / sum(weights[form] for form in claim.forms)
    if pairs is not None and len(claim.forms) > 1:
        share = (share + sum(pair in pairs for pair in pairwise(claim.forms)) / (len(claim.forms) - 1)) / 2
    numbers, names = claim.numbers, claim.names
    lost_numbers = [number for number in numbers if number not in passages.forms]
    lost_names = [name for name in names if name.removesuffix("s") not in passages.names]
    contradicted = _contradicts(claim, passages)
    least = min(share, 1 - len(lost_numbers) / max(len(numbers), 1), 1 - len(lost_names) / max(len(names), 1))
    fault, lost = "", lost_numbers + lost_names
    if contradicted:
        fault, least = "contradicts the context", least / 2
    elif lost or share < (SUPPORTED_FROM if pairs is None else STRICT_SUPPORTED_FROM):
        missing = (lost or sorted(claim.content - passages.forms))[:5]
        fault = f"not in the context: {', '.join(map(shortened, missing)) or 'too many of its words or word pairs'}"
    return Finding(claim, share, least, contradicted, fault)


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
    telling = (mine - theirs) & w.OPPOSITES_OF.keys()
    return any(theirs & w.OPPOSITES_OF[form] and not mine & w.OPPOSITES_OF[form] for form in telling)


def _groundedness(findings: Sequence[Finding]) -> tuple[int, str]:
    failed = [f'"{shortened(finding.claim.text)}": {finding.fault}.' for finding in findings if finding.fault]
    more = [f"{len(failed) - 3} more are not supported."] if len(failed) > 3 else []
    reasoning = [f"{len(findings) - len(failed)} of {len(findings)} claims found.", *failed[:3], *more]
    support = _mean([finding.support for finding in findings], findings)
    score = 1 + sum(support >= step for step in _GROUNDEDNESS_STEPS)
    if _mean([finding.share for finding in findings], findings) < RELATED_FROM:
        score = 0
    elif any(finding.contradicted for finding in findings):
        score = 1
    elif not failed:
        score = max(score, 4)
    else:
        score = min(score, 4 if len(failed) < len(findings) else 3)
    return score, " ".join(reasoning)


def shortened(text: str) -> str:
    """At most 80 characters of a text, on one line."""
    text = clean_text(" ".join(text.split()))
    return text if len(text) <= 80 else f"{text[:79]}…"


def judge_correctness(
    question: str, answer: str, contexts: Texts, references: Texts, key_facts: Texts = (), *, strict: bool = False
) -> dict[str, Any]:
    """A verdict on correctness by the rubric of docs/judges.md, as far as words can tell.

    The score is 5 from a value of 0.95, 4 from 0.6, 3 from 0.5, 2 from 0.25, 1 above 0; `assess_correctness` tells the
    value. Without references and key facts it is 4 at most, without contexts too 2 at most.
    """
    value, reasoning, highest = assess_correctness(question, answer, contexts, references, key_facts, strict=strict)
    score = sum(value >= step for step in _CORRECTNESS_STEPS)
    return {"reasoning": f"{NOTE} {reasoning}", "score": min(score, highest)}


def assess_correctness(
    question: str, answer: str, contexts: Texts, references: Texts, key_facts: Texts = (), *, strict: bool = False
) -> tuple[float, str, int]:
    """Value (0 to 1), what it rests on, and the highest score that such evidence can give.

    The best reference counts, and the mean of the key facts; with both, the mean of the two. The value of one is 1 if
    the answer contains it as a phrase (the strict variant: 0.8 beside other words), else 0.9 of the better of token
    F1 and recall (the strict variant: of F1), over content words that the question does not give away. It is 0.3 at
    most if a number is missing or a word is negated or opposite, and 0 for a wrong yes or no. Without references and
    key facts it is three quarters support by the contexts and one quarter the share of the question's words in the
    answer. An abstention is 1 if the references abstain as well, else 0; without references, the share of the
    question's words that are in no context.
    """
    contexts, references, facts = (list(filter(str.strip, texts)) for texts in (contexts, references, key_facts))
    if not answer.strip():
        return 0.0, "The answer is blank.", 5
    if not references and not facts:
        return _without_references(question, answer, contexts, strict=strict)
    if _is_silent(answer):
        right = bool(references) and all(map(_is_silent, references))
        return float(right), f"The answer abstains, {'as' if right else 'unlike'} the reference.", 5
    said, given = read(CITATION.sub("", answer)), read(question).content
    values = [_agreement(read(text), said, given, strict=strict) for text in (*references, *facts)]
    known, parts = [], []
    if references:
        known.append(max(values[: len(references)]))
        parts.append(f"Agreement with the closest of {len(references)} references: {known[-1]:.2f}.")
    if facts:
        known.append(sum(values[len(references) :]) / len(facts))
        parts.append(f"With {len(facts)} key facts on average: {known[-1]:.2f}.")
    return sum(known) / len(known), " ".join(parts), 5


def _without_references(question: str, answer: str, contexts: Texts, *, strict: bool) -> tuple[float, str, int]:
    asked, silent = read(question).content, _is_silent(answer)
    found = asked & read("\n".join(contexts) if silent else answer).content
    share = len(found) / len(asked) if asked else float(silent and bool(contexts))
    if silent:
        return 1 - share, f"The answer abstains; the context has {share:.0%} of the question's words.", 4
    if not contexts:
        return share, f"Nothing to check by; the answer has {share:.0%} of the question's words.", 2
    support = overlap_score(answer, contexts, strict=strict)
    reasoning = f"No reference; support by the context {support:.2f}, question's words in the answer {share:.0%}."
    return 0.75 * support + 0.25 * share, reasoning, 4


def _is_silent(text: str) -> bool:
    return read_claims(text) == ([], True)


def _agreement(wanted: Statement, answer: Statement, given: frozenset[str], *, strict: bool) -> float:
    """Value of one reference or key fact, 0 to 1."""
    first, said_first = ({word.casefold() for word in statement.words[:1]} for statement in (wanted, answer))
    if _is_silent(wanted.text) or (first & _YES and said_first & _NO) or (first & _NO and said_first & _YES):
        return 0.0
    key, said = (statement.content - given or set(statement.forms) for statement in (wanted, answer))
    value = 0.0
    if _phrase(wanted) in _phrase(answer):
        value = 0.8 if strict and wanted.forms != answer.forms else 1.0
    elif found := key.intersection(answer.forms):
        recall, precision = len(found) / len(key), len(said.intersection(wanted.forms)) / len(said)
        f1 = 2 * precision * recall / (precision + recall)
        value = 0.9 * (f1 if strict else max(f1, recall))
    opposed = (wanted.negated ^ answer.negated) & wanted.content & answer.content
    is_wrong = opposed or set(wanted.numbers).difference(answer.forms) or _is_opposite(wanted, answer)
    return min(value, 0.3) if is_wrong else value


def _phrase(statement: Statement) -> str:
    """Words between single spaces, so that `in` finds whole ones; a script without spaces as it is."""
    folded = w.fold(statement.text)
    return folded if w.UNSPACED_RUN.fullmatch(folded) else f" {' '.join(statement.forms)} "
