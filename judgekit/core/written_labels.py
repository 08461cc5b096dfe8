"""Labels as people write them, read as verdicts of a judge; and what several people say together."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from judgekit.core.human_labels import YES_NO
from judgekit.core.judgments import CANNOT_TELL, CriterionVerdict, Verdict, VerdictError
from judgekit.core.kind import Kind
from judgekit.core.reply_values import folded_word
from judgekit.core.text import clean_text

YES = frozenset({"yes", "y", "true", "pass", "passed", "met"})
NO = frozenset({"no", "n", "false", "fail", "failed", "not met", "unmet"})

LONGEST_WORD = 60
"""Characters of a label at most."""


def read_written(value: object, kind: Kind | None = None) -> Verdict | bool | None:
    """A label as it was written: a verdict, true or false for pass and fail alone, or None if there is none.

    A score beyond the scale is read as it is, so that it can be counted.

    Args:
        value: what stands in the file or was typed: a number, true or false, a text such as `4`, `yes` or `off brand`,
            or for criteria an object from id to met, or lines `id = yes`.
        kind: what verdicts of the judge are; None: not known, so that every word may be a label.

    Raises:
        ValueError: it is no label; the text says what was expected.
    """
    parts = _entries(value) if kind is None or kind.has_parts else None
    if parts is not None:
        return _criteria(parts, tell=kind is None or kind.cannot_tell)
    text = _text(value)
    if not text:
        return None
    if kind is None:
        return value if isinstance(value, bool) else _any_verdict(text)
    word = folded_word(text)
    verdict = _verdict(text, word, kind)
    if verdict is not None:
        return verdict
    number = None if kind.is_nominal else _number(word)
    if number is not None:
        if number != int(number):
            raise ValueError(f"{number:g} is not a whole number; give each annotator's label and not their mean")
        return Verdict(score=int(number))
    if word in YES | NO and (kind.has_pass or not kind.is_nominal):
        return word in YES
    raise ValueError(f"{text[:40]!r} is not a label; expected {_expected(kind)}")


def _any_verdict(text: str) -> Verdict:
    """A text as a verdict of a judge of which nothing is known."""
    word = folded_word(text)
    number = _number(word)
    if number is not None and number == int(number):
        return Verdict(score=int(number))
    return Verdict(cannot_tell=True) if word == CANNOT_TELL else Verdict(label=text[:LONGEST_WORD])


def _verdict(text: str, word: str, kind: Kind) -> Verdict | None:
    """The verdict that a text is by itself; None if it is none of this kind."""
    if kind.has_parts:
        return None
    for form in dict.fromkeys([text, word.replace(",", "."), *(_answer(word))]):
        try:
            return Verdict(**kind.read({kind.key: form}, kind.key))
        except VerdictError:
            continue
    return None


def _answer(word: str) -> list[str]:
    return [YES_NO[word == "y"]] if word in ("y", "n") else []


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else clean_text(str(value)).strip()


def _number(word: str) -> float | None:
    """A finite number; a decimal comma is what some spreadsheets write."""
    try:
        found = float(word.replace(",", "."))
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _entries(value: object) -> dict[str, object] | None:
    """What is said of each criterion, by id; None if the value does not go through criteria."""
    if isinstance(value, Mapping):
        return {str(name): met for name, met in value.items()}
    if not isinstance(value, str) or "=" not in value:
        return None
    lines = [line.rpartition("=") for line in value.replace(";", "\n").splitlines() if line.strip()]
    return {name.strip(): met for name, _, met in lines}


def _criteria(entries: Mapping[str, object], *, tell: bool) -> Verdict | None:
    """Criteria as they were labelled, still without weights; None if nothing is said of any.

    Raises:
        ValueError: something is said that is neither met, not met nor that it cannot be told.
    """
    found = []
    for name, value in entries.items():
        word = folded_word(_text(value))
        met = True if word in YES or word == "1" else False if word in NO or word == "0" else None
        if word and met is None and not (tell and word == CANNOT_TELL):
            more = f", or {CANNOT_TELL}" if tell else ""
            raise ValueError(f"{word[:40]!r} for {name[:60]!r} is not a label; expected yes or no{more}")
        if word:
            found.append(CriterionVerdict(id=name, met=met))
    return Verdict(criteria=tuple(found)) if found else None


def _expected(kind: Kind) -> str:
    if kind.has_parts:
        return "yes or no for each criterion"
    if kind.is_nominal:
        return f"one of {', '.join(kind.all_options)}"
    tell = f", or {CANNOT_TELL}" if kind.cannot_tell else ""
    return ("a whole number, or yes or no" if kind.has_points else "yes or no") + tell


def together(verdicts: Sequence[Verdict], kind: Kind) -> Verdict | None:
    """What several people say of one case: they cannot tell if more than half say so, else those count who can.

    What has an order: the lower median. Labels: the one that most give; None if several are as frequent. Criteria: met
    if more than half say so of those who can tell.
    """
    if not verdicts:
        return None
    told = [item for item in verdicts if not item.cannot_tell]
    if 2 * len(told) < len(verdicts) or not told:
        return Verdict(cannot_tell=True)
    if kind.has_parts:
        return Verdict(criteria=tuple(_met_together(told, place) for place in range(len(told[0].criteria or ()))))
    if kind.is_ordered:
        rated = sorted(((rating, item) for item in told if (rating := kind.rating(item)) is not None), key=_rating)
        return rated[(len(rated) - 1) // 2][1] if rated else None
    ranked = Counter(item.label for item in told).most_common(2)
    return None if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else Verdict(label=ranked[0][0])


def _rating(rated: tuple[float, Verdict]) -> float:
    return rated[0]


def _met_together(verdicts: Sequence[Verdict], place: int) -> CriterionVerdict:
    """One criterion, which stands at the same place in every verdict on a case."""
    said = [item.criteria[place] for item in verdicts if item.criteria is not None]
    told = [item.met for item in said if item.met is not None]
    met = None if 2 * len(told) < len(said) or not told else 2 * sum(told) > len(told)
    return said[0].model_copy(update={"met": met, "evidence": ""})
