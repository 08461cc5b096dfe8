"""The embedded baseline judge: word overlap, no language model.

What it sees: words, numbers and names of an answer that are nowhere in the context, and plain negation and
opposites against the closest context sentence. What it does not see: paraphrase that shares no word, swapped roles
("A beat B"), reasoning, a true word from the wrong place. It is the yardstick that a model judge has to beat, and
it runs without a key. `strict=True` is a second judge for spot checks: function words count in full, and word
pairs have to be found too.

Method, in-house: an answer is split into claims. The support of a claim is the smallest of the weighted share of
its words that the context has, the share of its numbers and the share of its names, halved where the claim
contradicts the closest sentence. Words are compared by their first letters after stemming, scripts that are
written without spaces by pairs of characters. All functions are pure and deterministic, linear in the length of
the text, and take any text.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judgekit.core.sentences import CITATION, sentences
from judgekit.providers import overlap_words as w
from judgekit.providers.overlap_claims import (
    Evidence,
    Finding,
    abstains,
    contradicts,
    examine,
    gather,
    read_claim,
    read_claims,
)

RELATED_FROM = 0.25
"""Below this mean share of words an answer is unrelated to the context."""
BY_CONTEXT_MAX = 4
"""Highest correctness without a reference: agreement with the context is no proof."""
UNCHECKED_MAX = 2
"""Highest correctness with neither reference nor context."""
WITHOUT_ORDER = 0.9
"""Factor for a reference whose words are in the answer, but not as one phrase."""
STRICT_CONTAINED = 0.8
"""Strict value of a reference that the answer contains beside other words."""
_GROUNDEDNESS_STEPS = (0.6, 0.75, 0.9, 0.95)
"""Mean support from which the groundedness of a related answer is one above 1."""
_CORRECTNESS_STEPS = ((0.95, 5), (0.6, 4), (0.5, 3), (0.25, 2), (1e-9, 1))
"""Value from which a correctness score is given."""
_ARTICLES = frozenset({"a", "an", "the"})
_YES_NO = re.compile(r"\W{0,9}(?:(yes|yeah|true|correct)|no|nope|false|incorrect)\b(?!\.?\s?\d)", re.IGNORECASE)
_INITIAL = re.compile(r"\b([a-z])\.")


def overlap_score(answer: str, contexts: Sequence[str], *, strict: bool = False) -> float:
    """Mean support of the answer's claims by the contexts, each claim weighed by its number of words.

    Args:
        answer: Text of the answer.
        contexts: Texts that it should rest on; the order does not matter.
        strict: The stricter variant.

    Returns:
        0 (nothing is found) to 1 (all is found); 1 for an abstention, which claims nothing; 0 for a blank answer.
    """
    return _support(answer, _findings(answer, contexts, strict=strict))


def judge_groundedness(
    answer: str, contexts: Sequence[str], *, citations: int | None, strict: bool = False
) -> dict[str, Any]:
    """Groundedness by the rubric of docs/judges.md, as far as words can tell.

    By mean support: 5 from 0.95, 4 from 0.9, 3 from 0.75, 2 from 0.6, else 1. At least 4 where every claim is
    supported, at most 4 where one is not, at most 3 where none is, or without citations (`citations` is 0 and no mark
    such as `[1]` is in the text). 1 where a claim contradicts the context; 0 for an answer that is unrelated (mean
    share of words below 0.25), without context, or blank.
    An answer that only says it could not find the answer claims nothing: 5, with both lists empty.

    Args:
        answer: Text of the answer.
        contexts: Texts that it should rest on.
        citations: How many citations the system reported; None where it does not report any, which costs nothing.
        strict: The stricter variant.

    Returns:
        `reasoning`, `supported_claims`, `unsupported_claims` (together all claims, in order) and `score`, 0 to 5.
    """
    findings = _findings(answer, contexts, strict=strict)
    uncited = citations is not None and citations <= 0 and CITATION.search(answer) is None
    return {
        "reasoning": _groundedness_reasoning(answer, findings, uncited=uncited),
        "supported_claims": [finding.claim.text for finding in findings if finding.supported],
        "unsupported_claims": [finding.claim.text for finding in findings if not finding.supported],
        "score": _groundedness_score(answer, findings, uncited=uncited),
    }


def correctness_value(
    question: str,
    answer: str,
    contexts: Sequence[str],
    references: Sequence[str],
    key_facts: Sequence[str] = (),
    *,
    strict: bool = False,
) -> float:
    """How far the answer agrees with what is known to be right, 0 to 1; `judge_correctness` tells the rules."""
    return _assess(_Question(question, answer, contexts, references, key_facts, strict))[0]


def judge_correctness(
    question: str,
    answer: str,
    contexts: Sequence[str],
    references: Sequence[str],
    key_facts: Sequence[str] = (),
    *,
    strict: bool = False,
) -> dict[str, Any]:
    """Correctness by the rubric of docs/judges.md, as far as words can tell.

    References are alternatives, the best one counts; key facts are all wanted, their mean counts; with both, the
    mean of the two. One of them has the value 1 if the answer contains it as a phrase; else 0.9 of the better of
    token F1 and recall, over content words that the question does not give away. A missing number, a negated
    phrase or a contradiction lowers it to 0.3 or less, a wrong yes or no to 0; the right one gives 0.5 at least.
    The score is 5 from a value of 0.95, 4 from 0.6, 3 from 0.5, 2 from 0.25, 1 above 0.

    Without references and key facts: three quarters support by the contexts, one quarter the share of the
    question's words in the answer, at most 4; without contexts too, that share alone, at most 2. An abstention is
    0 where a reference tells the answer, 5 where the reference abstains as well; without references it is as
    right as the contexts lack the question's words, at most 4.

    Args:
        question: Text of the question.
        answer: Text of the answer.
        contexts: Texts that the system retrieved; used only where nothing else is known.
        references: Alternative right answers.
        key_facts: Facts that a complete answer holds.
        strict: Containment beside other words gives 0.8, and F1 alone counts: wordy answers lose.

    Returns:
        `reasoning` and `score`, 0 to 5.
    """
    value, reasoning, highest = _assess(_Question(question, answer, contexts, references, key_facts, strict))
    score = next((step for least, step in _CORRECTNESS_STEPS if value >= least), 0)
    return {"reasoning": f"Word-overlap baseline, no language model. {reasoning}", "score": min(score, highest)}


def _findings(answer: str, contexts: Sequence[str], *, strict: bool) -> list[Finding]:
    forms_of = w.Forms()
    claims = read_claims(answer, forms_of)
    evidence = gather(contexts, claims, forms_of, strict=strict) if claims else Evidence()
    return [examine(claim, evidence, strict=strict) for claim in claims]


def _support(answer: str, findings: Sequence[Finding]) -> float:
    if not findings:
        return float(_says_nothing_found(answer))
    return _mean([finding.support for finding in findings], findings)


def _mean(values: Sequence[float], findings: Sequence[Finding]) -> float:
    weights = [len(finding.claim.forms) for finding in findings]
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _says_nothing_found(answer: str) -> bool:
    """Whether an answer without claims abstains; if not, it is blank or has no words at all."""
    return any(abstains(sentence.strip()) for sentence in sentences(CITATION.sub("", answer)))


def _groundedness_score(answer: str, findings: Sequence[Finding], *, uncited: bool) -> int:
    if not findings:
        return 5 if _says_nothing_found(answer) else 0
    support = _support(answer, findings)
    if _mean([finding.share for finding in findings], findings) < RELATED_FROM:
        return 0
    if any(finding.contradicted for finding in findings):
        return 1
    score = 1 + sum(support >= step for step in _GROUNDEDNESS_STEPS)
    if all(finding.supported for finding in findings):
        score = max(score, 4)
    elif any(finding.supported for finding in findings):
        score = min(score, 4)
    else:
        score = min(score, 3)
    return min(score, 3) if uncited else score


def _groundedness_reasoning(answer: str, findings: Sequence[Finding], *, uncited: bool) -> str:
    if not findings:
        nothing = "The answer abstains and claims nothing." if _says_nothing_found(answer) else "There is no claim."
        return f"Word-overlap baseline, no language model. {nothing}"
    failed = [finding for finding in findings if not finding.supported]
    parts = [
        f"Word-overlap baseline, no language model. {len(findings) - len(failed)} of {len(findings)} claims found."
    ]
    for finding in failed[:3]:
        what = "contradicts the context" if finding.contradicted else "not in the context: " + _listed(finding.missing)
        parts.append(f'"{_shortened(finding.claim.text)}": {what}.')
    if len(failed) > 3:
        parts.append(f"{len(failed) - 3} more are not supported.")
    if uncited:
        parts.append("No citations.")
    return " ".join(parts)


def _listed(missing: Sequence[str]) -> str:
    return ", ".join(_shortened(form) for form in missing[:5]) if missing else "too many of its words or word pairs"


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


@dataclass(frozen=True, slots=True)
class _Question:
    text: str
    answer: str
    contexts: Sequence[str]
    references: Sequence[str]
    key_facts: Sequence[str]
    strict: bool


@dataclass(frozen=True, slots=True)
class _Reading:
    """A whole text, answer or reference, as the two are compared."""

    folded: str
    phrase: str
    forms: frozenset[str]
    content: frozenset[str]
    numbers: frozenset[str]
    negated: frozenset[str]
    initials: frozenset[str]
    yes: bool | None


def _assess(question: _Question) -> tuple[float, str, int]:
    """Value, what it rests on, and the highest score that such evidence can give."""
    if not question.answer.strip():
        return 0.0, "The answer is blank.", 5
    references = [text for text in question.references if text.strip()]
    facts = [text for text in question.key_facts if text.strip()]
    silent = _is_silent(question.answer)
    if not references and not facts:
        return _without_references(question, silent=silent)
    if silent:
        right = bool(references) and all(map(_is_silent, references))
        return float(right), f"The answer abstains, {'as' if right else 'unlike'} the reference.", 5
    values = _reference_values(question, [*references, *facts])
    best = max(values[: len(references)], default=None)
    facts_mean = sum(values[len(references) :]) / len(facts) if facts else None
    known = [part for part in (best, facts_mean) if part is not None]
    parts = [
        "" if best is None else f"Agreement with the closest of {len(references)} references: {best:.2f}.",
        "" if facts_mean is None else f"With {len(facts)} key facts on average: {facts_mean:.2f}.",
    ]
    return sum(known) / len(known), " ".join(filter(None, parts)), 5


def _without_references(question: _Question, *, silent: bool) -> tuple[float, str, int]:
    asked = _content(question.text)
    said = _content(question.answer)
    contexts = [text for text in question.contexts if text.strip()]
    if silent:
        covered = _content("\n".join(contexts))
        share = len(asked & covered) / len(asked) if asked else float(bool(contexts))
        return 1 - share, f"The answer abstains; the context has {share:.0%} of the question's words.", BY_CONTEXT_MAX
    share = len(asked & said) / len(asked) if asked else 0.0
    if not contexts:
        return share, f"Nothing to check by; the answer has {share:.0%} of the question's words.", UNCHECKED_MAX
    support = overlap_score(question.answer, contexts, strict=question.strict)
    reasoning = f"No reference; support by the context {support:.2f}, question's words in the answer {share:.0%}."
    return 0.75 * support + 0.25 * share, reasoning, BY_CONTEXT_MAX


def _is_silent(text: str) -> bool:
    return not read_claims(text, w.Forms()) and _says_nothing_found(text)


def _content(text: str) -> frozenset[str]:
    return read_claim(text, w.Forms(None)).content


def _reference_values(question: _Question, references: Sequence[str]) -> list[float]:
    exact, loose = w.Forms(None), w.Forms()
    answer = _read(CITATION.sub("", question.answer), exact)
    given = read_claim(question.text, exact).content
    claims = [read_claims(reference, loose) for reference in references]
    evidence = gather([question.answer], [claim for found in claims for claim in found], loose, strict=False)
    values = []
    for reference, found in zip(references, claims, strict=True):
        if not found and _says_nothing_found(reference):
            values.append(0.0)
            continue
        value = _agreement(_read(reference, exact), answer, given, strict=question.strict)
        contradicted = any(contradicts(claim, evidence) for claim in found)
        values.append(min(value, 0.3) if contradicted else value)
    return values


def _read(text: str, forms_of: w.Forms) -> _Reading:
    claims = [read_claim(sentence, forms_of) for sentence in sentences(text)]
    content = frozenset[str]().union(*(claim.content for claim in claims))
    folded = w.fold(text.strip()).casefold()
    return _Reading(
        folded=folded,
        phrase=_phrase(text, forms_of),
        forms=frozenset(form for claim in claims for form in claim.forms),
        content=content,
        numbers=frozenset(number for claim in claims for number in claim.numbers),
        negated=frozenset[str]().union(*(claim.negated for claim in claims)),
        initials=frozenset(_INITIAL.findall(folded)),
        yes=_yes_or_no(text),
    )


def _phrase(text: str, forms_of: w.Forms) -> str:
    """Forms without articles between single spaces, so that `in` looks for whole words."""
    words = w.words(w.fold(text))
    kept = [word for word in words if word not in _ARTICLES] or words
    return f" {' '.join(map(forms_of.__getitem__, kept))} "


def _yes_or_no(text: str) -> bool | None:
    match = _YES_NO.match(text)
    return None if match is None else match[1] is not None


def _agreement(wanted: _Reading, answer: _Reading, given: frozenset[str], *, strict: bool) -> float:
    """Value of one reference or key fact, 0 to 1, before contradictions across the sentence."""
    if wanted.yes is not None and answer.yes is not None and wanted.yes != answer.yes:
        return 0.0
    if wanted.yes is not None and len(wanted.phrase.split()) == 1:
        if answer.yes is not None:
            return 1.0
        return 0.5 if (w.NOT in answer.forms) != wanted.yes else 0.25
    if _contains(answer, wanted):
        value = STRICT_CONTAINED if strict and wanted.phrase != answer.phrase else 1.0
    else:
        value = WITHOUT_ORDER * _token_agreement(wanted, answer, given, strict=strict)
        if not wanted.numbers <= answer.forms:
            value = min(value, 0.3)
    if (wanted.content & answer.negated) - wanted.negated:
        return min(value, 0.3)
    return max(value, 0.5) if wanted.yes is not None and wanted.yes == answer.yes else value


def _contains(answer: _Reading, wanted: _Reading) -> bool:
    """Whether the answer has the reference as a phrase; in scripts without spaces wherever its characters begin."""
    if w.is_unspaced(wanted.folded):
        return wanted.folded in answer.folded
    return bool(wanted.phrase.strip()) and wanted.phrase in answer.phrase


def _token_agreement(wanted: _Reading, answer: _Reading, given: frozenset[str], *, strict: bool) -> float:
    """Token F1, or recall where that is better; `S.` in one text stands for any word with that letter in the other."""
    key = wanted.content - given or wanted.content
    initials = frozenset() if strict else answer.initials
    letters = frozenset(form[0] for form in answer.content)
    found = {
        form for form in key if form in answer.content or form[0] in initials or (len(form) == 1 and form in letters)
    }
    if not found & answer.content:
        return 0.0
    recall = len(found) / len(key)
    mine = answer.content - given or answer.content
    precision = sum(form in wanted.content or form in initials for form in mine) / len(mine)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return f1 if strict else max(f1, recall)
