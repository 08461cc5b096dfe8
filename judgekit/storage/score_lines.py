"""The lines of scores.jsonl: how scores are written, the many that do not apply in a short form, and read back.

The first line has the names of all scores. A score with a value, or one that failed, is a line. All scores of a case
that do not apply are one line, which names a pattern: which scores, by the reason why. Cases of a kind have the same
pattern, which is written once, before the first of them. `case_id` and `name` stand in every line, null where it has
none, so that a script can go by them. Older runs have a line for every score.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from judgekit.core.scores import Failed, NotApplicable, Outcomes, ScoreOf

_MOST_PATTERNS = 1000
"""Patterns that are written once; a case with another one has it in its own line, so that a reader keeps no more."""

Pattern = Mapping[str, Sequence[str]]
"""By the reason why they do not apply, names of scores."""


class ScoreLine(msgspec.Struct, gc=False):
    """Any line of scores.jsonl."""

    case_id: str | None = None
    """None: the line is about no case."""
    name: str | None = None
    """None: it is not about one score."""
    value: float | None = None
    reason: str | None = None
    source: str | None = None
    names: tuple[str, ...] = ()
    pattern: int = 0
    """Of a case: the pattern that it has; 0: none, or its own. With `not_applicable` alone: its number."""
    not_applicable: Pattern | None = None


class CaseScores(NamedTuple):
    """The scores of one case."""

    case_id: str
    scores: dict[str, ScoreOf]
    """By name, in the order of the first line of the file."""
    sources: dict[str, str]
    """By name, what said so, if a score has several sources."""


_MISSING: ScoreOf = (None, None)
"""In place of a score that has no line."""


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
        start = b'{"case_id":' + _text(case_id)
        left_out: list[tuple[str, str]] = []
        for name, outcome in outcomes.items():
            source = sources.get(name)
            if isinstance(outcome, float) and source is None:
                # Finite, so its shortest form in Python is JSON too.
                yield b'%b,"name":%b,"value":%b,"reason":null}' % (
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
                yield b'%b,"name":null,"not_applicable":%b}' % (start, _line(pattern))
                return
            self._patterns[left_out] = number = len(self._patterns) + 1
            yield _line({"case_id": None, "name": None, "pattern": number, "not_applicable": pattern})
        yield b'%b,"name":null,"pattern":%d}' % (start, number)


def _record(case_id: str, name: str, outcome: float | NotApplicable | Failed, source: str | None) -> dict[str, object]:
    value, reason = (outcome, None) if isinstance(outcome, float) else (None, _reason(outcome))
    record: dict[str, object] = {"case_id": case_id, "name": name, "value": value, "reason": reason}
    return record if source is None else {**record, "source": source}


def _reason(outcome: NotApplicable | Failed) -> str:
    return f"n/a: {outcome.reason}" if isinstance(outcome, NotApplicable) else f"failed: {outcome.kind}"


class ScoreReader:
    """Makes scores of lines; whatever reads them raises what `msgspec` raises, or `ValueError` about what they say."""

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """Take the lines that are about no case, as far as they are known already."""
        self._decode = msgspec.json.Decoder(ScoreLine).decode
        self._decode_all = msgspec.json.Decoder(list[ScoreLine]).decode
        self._blank: dict[str, ScoreOf] = {}
        self._patterns: dict[int, Pattern] = {}
        self._filled: dict[int, dict[str, ScoreOf]] = {}
        """What cases of a pattern begin with: a dict is copied sooner than made."""
        for line in lines:
            self._keep(self._decode(line))

    @property
    def names(self) -> list[str]:
        """Names of all scores in their order; empty for an older run."""
        return list(self._blank)

    def of_case(self, case_id: str, lines: Sequence[bytes]) -> CaseScores:
        """The scores of one case, from all of its lines."""
        return self._made(case_id, self._decode_all(b"[%b]" % b",".join(lines)))

    def by_case(self, lines: Iterable[bytes]) -> Iterator[CaseScores]:
        """The scores of each case, one case after the other."""
        decode = self._decode
        found: list[ScoreLine] = []
        last = None
        for line in lines:
            read = decode(line)
            if read.case_id is None:
                self._keep(read)
                continue
            if last is not None and read.case_id != last:
                yield self._made(last, found)
                found = []
            last = read.case_id
            found.append(read)
        if last is not None:
            yield self._made(last, found)

    def _keep(self, line: ScoreLine) -> None:
        """Take a line that is about no case."""
        if line.names:
            self._blank.update(dict.fromkeys(line.names, _MISSING))
            self._filled.clear()
        if line.pattern:
            self._patterns[line.pattern] = line.not_applicable or {}

    def _made(self, case_id: str, lines: Sequence[ScoreLine]) -> CaseScores:
        scores = self._begun(case_id, [line for line in lines if line.name is None])
        sources = {}
        for line in lines:
            name = line.name
            if name is None:
                continue
            if scores.get(name, _MISSING) is not _MISSING:
                raise ValueError(f"a score of case {case_id!r} stands there twice")
            scores[name] = (line.value, line.reason)
            if line.source is not None:
                sources[name] = line.source
        if _MISSING in scores.values():
            scores = {name: score for name, score in scores.items() if score is not _MISSING}
        return CaseScores(case_id, scores, sources)

    def _begun(self, case_id: str, lines: Sequence[ScoreLine]) -> dict[str, ScoreOf]:
        """The scores that do not apply, between places of the others."""
        if not lines:
            return self._blank.copy()
        if len(lines) > 1:
            raise ValueError(f"a score of case {case_id!r} stands there twice")
        number = lines[0].pattern
        if not number:
            return self._fill(lines[0].not_applicable or {})
        if number not in self._filled:
            if number not in self._patterns:
                raise ValueError(f"there is no pattern {number}")
            self._filled[number] = self._fill(self._patterns[number])
        return self._filled[number].copy()

    def _fill(self, pattern: Pattern) -> dict[str, ScoreOf]:
        found = self._blank.copy()
        for reason, names in pattern.items():
            found.update(dict.fromkeys(names, (None, f"n/a: {reason}")))
        return found


def _text(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
