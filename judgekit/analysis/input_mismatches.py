"""Where cases and outputs do not fit together: ids on one side alone, and gold names written unlike those of hits."""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from urllib.parse import unquote

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.errors import InputError
from judgekit.core.text import normalise_path

MOST_KEPT = 20_000
"""Distinct names kept on either side; a healthy run keeps none, since one match settles it."""

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:/")
_EXTENSION = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,7}$")
_UUID = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_HASH = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]{12,}", re.IGNORECASE)
_TOKEN = re.compile(r"[^\W\d_]+|\d+")

SHARE_ALIKE = 0.2
"""Share of the gold names that must be found with something in front, where it is not the same thing everywhere."""

MOST_COMPARED = 50
"""Gold names with the same last part that a hit is compared with; thousands of `index.md` would take a square."""

Parts = tuple[str, ...]


class NameForms:
    """Gathers gold and hits of a run, and says where they look written in different ways.

    There is a warning only if not one gold name of the run occurs among its hits, both sides have some, and either

    * a gold name and a hit are the same but for a way of writing: another case, another or no extension, URL encoding;
      for ids, other separators or leading zeros; or
    * they are the same but for something in front, which all names of the longer side have in front, or which sets
      apart a fifth of the gold names and at least two; or
    * all names of one side are of one kind and none of the other side is: numbers, UUIDs, hashes; for paths also
      addresses and absolute paths.

    A run that merely finds the wrong documents fits none of these. If there are hits and not one has a name of the
    kind, such as a path, nothing can match either, and that is said too.
    """

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._paths = _Names()
        self._chunks = _Names()
        self._documents = _Names()
        self._has_hits = False

    def add(self, case: Case, output: SystemOutput) -> None:
        """Count one case; once a gold name was found among the hits, its kind of name is not looked at again."""
        hits = output.retrieved
        self._has_hits = self._has_hits or bool(hits)
        if self._paths.is_open:
            gold = (normalise_path(support.rel_path) for support in case.gold_supports)
            self._paths.add(gold, (normalise_path(hit.rel_path) for hit in hits if hit.rel_path is not None))
        if self._chunks.is_open:
            self._chunks.add(case.expected_chunk_ids or (), (hit.chunk_id for hit in hits if hit.chunk_id is not None))
        if self._documents.is_open:
            self._documents.add(case.expected_doc_ids or (), (hit.doc_id for hit in hits if hit.doc_id is not None))

    def warnings(self) -> list[tuple[str, str]]:
        """(code, message) of each kind of name that looks different in labels and hits."""
        found = []
        for names, what, code, key, kind in (
            (self._paths, "path", "paths_look_different", _path_parts, _path_kind),
            (self._chunks, "chunk id", "ids_look_different", _id_parts, _id_kind),
            (self._documents, "document id", "ids_look_different", _id_parts, _id_kind),
        ):
            if self._has_hits and names.are_in_gold_alone:
                text = f"gold labels of this run name a {what} and not one hit does; scores over {what}s are 0"
                found.append(("hits_lack_names", text))
            pair = names.odd_pair(key, kind)
            if pair is not None:
                gold, hit = (name if len(name) <= 120 else f"...{name[-117:]}" for name in pair)
                text = (
                    f"no gold {what} of this run occurs among the hits, and they look different: gold {gold!r}, hit "
                    f"{hit!r}; scores over {what}s are 0 until both are written alike"
                )
                found.append((code, text))
        return found


class _Names:
    """Gold names and names of hits, as long as no gold name is among the hits."""

    def __init__(self) -> None:
        self.is_open = True
        self._gold: set[str] = set()
        self._hits: set[str] = set()

    def add(self, gold: Iterable[str], hits: Iterable[str]) -> None:
        """Take the names of one case."""
        new_gold, new_hits = set(gold), set(hits)
        if new_gold & new_hits or not new_gold.isdisjoint(self._hits) or not new_hits.isdisjoint(self._gold):
            self.is_open = False
            self._gold, self._hits = set(), set()
            return
        for kept, new in ((self._gold, new_gold), (self._hits, new_hits)):
            if len(kept) < MOST_KEPT:
                kept.update(new)

    @property
    def are_in_gold_alone(self) -> bool:
        """Whether there are gold names, and hits have none at all."""
        return self.is_open and bool(self._gold) and not self._hits

    def odd_pair(self, key: Callable[[str], Parts], kind: Callable[[str], str]) -> tuple[str, str] | None:
        """A gold name and one of a hit that show the difference; None if there is none to show."""
        if not (self.is_open and self._gold and self._hits):
            return None
        gold, hits = sorted(self._gold), sorted(self._hits)
        pair = _alike(gold, hits, key)
        if pair is not None:
            return pair
        kinds = {kind(name) for name in gold}, {kind(name) for name in hits}
        one_kind = any(len(own) == 1 and own != {""} for own in kinds)
        return (gold[0], hits[0]) if one_kind and not kinds[0] & kinds[1] else None


def _alike(gold: Sequence[str], hits: Sequence[str], key: Callable[[str], Parts]) -> tuple[str, str] | None:
    """A gold name and one of a hit that are the same but for the way of writing, or for what stands in front."""
    by_last: dict[str, list[tuple[Parts, str]]] = {}
    for name in gold:
        parts = key(name)
        if parts:
            by_last.setdefault(parts[-1], []).append((parts, name))
    prefixed: dict[str, str] = {}
    gold_is_longer = False
    for hit in hits:
        parts = key(hit)
        for other, name in by_last.get(parts[-1], [])[:MOST_COMPARED] if parts else ():
            if parts == other:
                return name, hit
            shorter = min(len(parts), len(other))
            if parts[-shorter:] == other[-shorter:]:
                prefixed.setdefault(name, hit)
                gold_is_longer = len(other) > shorter
    if not prefixed:
        return None
    in_front = {key(name)[:1] for name in (gold if gold_is_longer else hits)}
    if len(in_front) > 1 and len(prefixed) < max(2, SHARE_ALIKE * len(gold)):
        return None
    return min(prefixed.items())


def _path_parts(path: str) -> Parts:
    """Folders and name as a lenient reader sees them: decoded, without address, extension and case."""
    plain = _URL.sub("", unquote(path)).replace("\\", "/").split("#")[0].split("?")[0]
    return tuple([part for part in _EXTENSION.sub("", plain).casefold().split("/") if part not in ("", ".")])


def _path_kind(path: str) -> str:
    """What sets a path apart at first sight; empty for an ordinary relative path."""
    if _URL.match(path):
        return "address"
    if path.startswith("/") or _DRIVE.match(path):
        return "absolute"
    if "/" not in path and not _EXTENSION.search(path):
        return _id_kind(path)
    return ""


def _id_parts(name: str) -> Parts:
    """Words and numbers of an id; `doc_0012` and `Doc-12` are the same two."""
    return tuple([part.lstrip("0") or "0" for part in _TOKEN.findall(unquote(name).casefold())])


def _id_kind(name: str) -> str:
    """What sets an id apart at first sight; empty for any other text."""
    if name.isdigit():
        return "number"
    if _UUID.fullmatch(name):
        return "uuid"
    return "hash" if _HASH.fullmatch(name) else ""


def ids_on_one_side(
    case_ids: Sequence[str], output_ids: Collection[str], source: str, *, missing_is_empty: bool
) -> list[tuple[str, str]]:
    """Warnings, as (code, message), about cases without an output and outputs without a case.

    `source` names the file of outputs; `missing_is_empty`: a case without an output found nothing, and did not fail.

    Raises:
        InputError: not one output belongs to a case.
    """
    if list(case_ids) == list(output_ids):
        return []
    known, found = set(case_ids), set(output_ids)
    missing = [case_id for case_id in case_ids if case_id not in found]
    unknown = [case_id for case_id in output_ids if case_id not in known]
    if missing and len(missing) == len(case_ids):
        example = f"such as {unknown[0]!r}" if unknown else "none at all"
        raise InputError(
            f"{source}: no output belongs to a case; cases have ids such as {missing[0]!r}, outputs {example}; "
            'map the right field with "fields": {"case_id": ...}'
        )
    both = f" (cases {len(case_ids)}, outputs {len(output_ids)}, both {len(case_ids) - len(missing)})"
    warnings = []
    if missing:
        effect = "; nothing was retrieved there, which counts as 0" if missing_is_empty else ""
        warnings.append(("cases_without_output", f"{source}: no output for {_named(missing)}{effect}{both}"))
    if unknown:
        warnings.append(("outputs_without_case", f"{source}: no case for {_named(unknown)}{both}"))
    return warnings


def check_positions(
    case_ids: Collection[str], output_ids: Collection[str], numbered: Collection[str], source: str
) -> None:
    """Refuse to join by position what may not belong together.

    `numbered` holds "cases" or "outputs" if their rows have no ids and got their positions.

    Raises:
        InputError: there are more or fewer outputs than cases, or the ids of one side are not the positions.
    """
    if not numbered or set(case_ids) == set(output_ids):
        return
    if len(set(numbered)) == 2:
        found = f"neither cases nor outputs have ids, and {len(case_ids)} cases and {len(output_ids)} outputs"
    else:
        found = f"{next(iter(numbered))} have no ids, and their positions and the ids of the others"
    raise InputError(
        f'{source}: {found} cannot be joined by their order; give both an id, or name it with "fields": '
        '{"id": ...} of cases and {"case_id": ...} of outputs'
    )


def _named(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(case_id) for case_id in ids[:20])
    more = f" ... and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"{len(ids)} of them: {shown}{more}" if len(ids) > 1 else shown
