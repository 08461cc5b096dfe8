"""The lines of scores.jsonl: how scores are written, the many that do not apply in a short form, and read back.

The first line has the names of all scores. A score with a value, or one that failed, is a line. All scores of a case
that do not apply are one line, which names a pattern: which scores, by the reason why. Cases of a kind have the same
pattern, which is written once, before the first of them. `case_id` and `name` stand in every line, null where it has
none, so that a script can go by them. Older runs have a line for every score.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from judgekit.core.scores import Failed, NotApplicable, Outcomes

_MOST_PATTERNS = 1000
"""Patterns that are written once; a case with another one has it in its own line, so that a reader keeps no more."""

Pattern = Mapping[str, Sequence[str]]
"""By the reason why they do not apply, names of scores."""


class StoredScore(msgspec.Struct):
    """A score. There are dozens a case, and `core.scores.Score` takes four times as long to read."""

    case_id: str
    name: str
    value: float | None = None
    reason: str | None = None
    source: str | None = None


class ScoreLine(msgspec.Struct):
    """Any line of scores.jsonl."""

    case_id: str | None = None
    """None: the line is about no case."""
    name: str | None = None
    """None: it is not about one score."""
    value: float | None = None
    reason: str | None = None
    source: str | None = None
    names: list[str] = []
    pattern: int = 0
    """Of a case: the pattern that it has; 0: none, or its own. With `not_applicable` alone: its number."""
    not_applicable: dict[str, list[str]] = {}


class ScoreWriter:
    """Makes the lines of a run, case by case."""

    def __init__(self, names: Iterable[str]) -> None:
        """Prepare for scores of these names, in their order."""
        self._names = {name: _text(name) for name in names}
        self._patterns: dict[tuple[tuple[str, str], ...], int] = {}

    def header(self) -> bytes:
        """The first line."""
        return _line({"case_id": None, "name": None, "names": list(self._names)})

    def lines(self, case_id: str, outcomes: Outcomes, sources: Mapping[str, str]) -> Iterator[bytes]:
        """The lines of one case, and that of a pattern that is new."""
        start = b'{"case_id": ' + _text(case_id)
        left_out: list[tuple[str, str]] = []
        for name, outcome in outcomes.items():
            source = sources.get(name)
            if isinstance(outcome, float) and source is None:
                # Finite, so its shortest form in Python is JSON too.
                yield b'%b, "name": %b, "value": %b, "reason": null}' % (
                    start,
                    self._names[name],
                    repr(outcome).encode(),
                )
            elif isinstance(outcome, NotApplicable) and source is None:
                left_out.append((outcome.reason, name))
            else:
                yield _line(_record(case_id, name, outcome, source))
        if left_out:
            yield from self._pattern_lines(start, tuple(left_out))

    def _pattern_lines(self, start: bytes, left_out: tuple[tuple[str, str], ...]) -> Iterator[bytes]:
        number = self._patterns.get(left_out)
        if number is None:
            pattern: dict[str, list[str]] = {}
            for reason, name in left_out:
                pattern.setdefault(reason, []).append(name)
            if len(self._patterns) == _MOST_PATTERNS:
                yield b'%b, "name": null, "not_applicable": %b}' % (start, _line(pattern))
                return
            self._patterns[left_out] = number = len(self._patterns) + 1
            yield _line({"case_id": None, "name": None, "pattern": number, "not_applicable": pattern})
        yield b'%b, "name": null, "pattern": %d}' % (start, number)


def _record(case_id: str, name: str, outcome: float | NotApplicable | Failed, source: str | None) -> dict[str, object]:
    value, reason = (outcome, None) if isinstance(outcome, float) else (None, _reason(outcome))
    record: dict[str, object] = {"case_id": case_id, "name": name, "value": value, "reason": reason}
    return record if source is None else {**record, "source": source}


def _reason(outcome: NotApplicable | Failed) -> str:
    return f"n/a: {outcome.reason}" if isinstance(outcome, NotApplicable) else f"failed: {outcome.kind}"


class ScoreReader:
    """Makes scores of lines; whatever decodes them raises what `msgspec` raises, or `ValueError` about a pattern."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """Take the lines that are about no case, as far as they are known already."""
        self._decode = msgspec.json.Decoder(ScoreLine).decode
        self._places: dict[str, int] = {}
        self._patterns: dict[int, Pattern] = {}
        for line in lines:
            self._read(line)

    @property
    def names(self) -> list[str]:
        """Names of all scores in their order; empty for an older run."""
        return list(self._places)

    def of_case(self, lines: Iterable[bytes]) -> list[StoredScore]:
        """The scores of one case, in the order of `names`."""
        return self._in_order([score for line in lines for score in self._read(line)])

    def by_case(self, lines: Iterable[bytes]) -> Iterator[list[StoredScore]]:
        """The scores of each case, one case after the other."""
        found: list[StoredScore] = []
        for line in lines:
            scores = self._read(line)
            if found and scores and scores[0].case_id != found[0].case_id:
                yield self._in_order(found)
                found = []
            found += scores
        if found:
            yield self._in_order(found)

    def _in_order(self, scores: list[StoredScore]) -> list[StoredScore]:
        places = self._places
        return sorted(scores, key=lambda score: places.get(score.name, len(places))) if places else scores

    def _read(self, line: bytes) -> Sequence[StoredScore]:
        """The scores that a line is about; none if it is about no case."""
        found = self._decode(line)
        case_id = found.case_id
        if case_id is None:
            self._places.update((name, place) for place, name in enumerate(found.names))
            if found.pattern:
                self._patterns[found.pattern] = found.not_applicable
            return ()
        if found.name is not None:
            return (StoredScore(case_id, found.name, found.value, found.reason, found.source),)
        pattern: Pattern = found.not_applicable
        if found.pattern:
            if found.pattern not in self._patterns:
                raise ValueError(f"there is no pattern {found.pattern}")
            pattern = self._patterns[found.pattern]
        return [
            StoredScore(case_id, name, None, f"n/a: {reason}") for reason, names in pattern.items() for name in names
        ]


def _text(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
