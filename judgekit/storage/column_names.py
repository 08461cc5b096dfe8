"""What people call columns and retrievers call the parts of a hit, and which of our fields each is taken for."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from judgekit.core.cases import Hit
from judgekit.storage.cells import FLAGS
from judgekit.storage.dotted import EACH, opened, part_of, value_in
from judgekit.storage.id_lists import RETRIEVED_IDS

_NAMES: dict[str, tuple[str, ...]] = {
    "id": (
        "id", "caseid", "queryid", "questionid", "qid", "exampleid", "sampleid", "recordid", "itemid", "rowid",
        "spanid", "traceid", "runid", "uid",
        "uuid", "key", "nr", "no", "number", "index", "idx", "pid",
    ),
    "question": (
        "question", "query", "userquery", "userquestion", "userinput", "prompt", "input", "inputs", "instruction",
        "frage",
        "pregunta", "q",
    ),
    "answer": (
        "response", "modelresponse", "chatgptresponse", "llmresponse", "output", "outputs", "modeloutput",
        "systemoutput",
        "prediction", "predictedanswer", "generatedanswer", "modelanswer", "systemanswer", "botanswer", "ragresponse",
        "completion", "generation", "reply", "answer", "actualoutput", "antwort", "result",
    ),
    "reference_answers": (
        "referenceanswers", "referenceoutputs", "referenceoutput", "correctanswers", "goldanswers", "acceptedanswers",
        "referenceanswer", "reference",
        "groundtruths", "groundtruth", "groundtruthanswer", "gtanswer", "goldanswer", "gold", "correctanswer",
        "expectedanswer", "expectedoutput", "expected", "idealanswer", "ideal", "bestanswer", "target", "generationgt",
        "musteranswer", "musterantwort", "answers",
    ),
    "retrieved": (
        "retrieved", "retrievedcontexts", "retrievedcontext", "retrieveddocuments", "retrieveddocs", "retrievedchunks",
        "retrievedpassages", "retrievalcontext", "contexts", "context", "passages", "passage", "documents", "docs",
        "chunks", "hits", "searchresults", "evidence", "sourcedocuments", "sourcedocs", "sourcenodes", "nodes",
    ),
    RETRIEVED_IDS: ("retrievedids", "retrieveddocids", "retrievedchunkids", "retrievedcontextids", "hitids"),
    "expected_chunk_ids": (
        "expectedchunkids", "retrievalgt", "goldids", "goldchunkids", "relevantids", "relevantchunkids",
        "referencecontextids", "positiveids",
    ),
    "expected_doc_ids": ("expecteddocids", "golddocids", "relevantdocids", "relevantdocs", "golddocs"),
    "answerable": (
        "answerable", "isanswerable", "hasanswer", "unanswerable", "isunanswerable", "impossible", "isimpossible",
    ),
    "abstained": ("abstained", "refused", "isrefusal"),
    "category": ("category", "type", "topic", "questiontype", "kategorie", "domain"),
    "difficulty": ("difficulty", "level"),
    "lang": ("lang", "language", "locale"),
    "tags": ("tags", "tag"),
    "citations": ("citations", "citedids"),
    "latency_seconds.total": ("latencyseconds", "durationseconds", "responsetimeseconds", "elapsedseconds"),
}  # fmt: skip
"""By our field, names in the order in which one goes before another; compared without case, blanks and signs."""

OF_CASES = frozenset(
    {"id", "question", "reference_answers", "expected_chunk_ids", "expected_doc_ids", "answerable", "category",
     "difficulty", "lang", "tags"}
)  # fmt: skip
_TEXTS = frozenset({"question", "answer", "category", "difficulty", "lang"})
_LISTS = frozenset({"reference_answers", "retrieved", RETRIEVED_IDS, "expected_chunk_ids", "expected_doc_ids", "tags"})
_ID_LISTS = frozenset({RETRIEVED_IDS, "expected_chunk_ids", "expected_doc_ids"})
_WHOLE = frozenset(
    {"text", "content", "value", "answer", "answers", "response", "output", "result", "question", "query", "input"}
)
"""What an object called like a field calls the field itself."""
_SEPARATORS = ("; ", ";", " | ", "|")
_SIGNS = re.compile(r"[\W_]+")


def first_called(field: str, names: Iterable[str]) -> str | None:
    """The one of some names that is what others call a field of ours; None if none is."""
    known = {_SIGNS.sub("", name).casefold(): name for name in names}
    return next((known[name] for name in _NAMES[field] if name in known), None)


class Guess(NamedTuple):
    """Which columns are taken for which fields."""

    fields: dict[str, str]
    """Our field name -> name in the file."""
    unsure: list[str]
    """What the user should look at, one sentence each."""
    list_separator: str | None


def guess(records: Sequence[Mapping[str, Any]], *, from_csv: bool) -> Guess:
    """Take the columns of the first records for our fields, by their names and by what stands in them.

    Args:
        records: as they stand in the file.
        from_csv: every value is a text.
    """
    values = _columns(records)
    fields: dict[str, str] = {}
    unsure: list[str] = []
    taken: set[str] = set()
    for ours in _NAMES:
        fitting = [name for name in _named(values, ours) if name not in taken]
        good = [name for name in fitting if _fits(ours, values[name], len(records), from_csv=from_csv)]
        if fitting and not good:
            unsure.append(f"{fitting[0]!r} is called like {ours}, but does not hold what that holds; it is left out")
        if not good:
            continue
        taken.add(good[0])
        if len(good) > 1:
            also = ", ".join(map(repr, good[1:]))
            unsure.append(f"{ours}: {good[0]!r} is taken, and not {also}; map another if that is right")
        fields |= _mapped(ours, good[0], values[good[0]])
        if ours == "id" and len(values[good[0]]) < len(records):
            n_blank = len(records) - len(values[good[0]])
            unsure.append(f"{good[0]!r} is blank in {n_blank} of the first {len(records)} rows, which a run refuses")
    if "answer" in fields and not {"reference_answers", "retrieved", "retrieved[].text"} & fields.keys():
        unsure.append(
            f"{fields['answer']!r} is taken for what the system answered; if it is the right answer, map it to "
            "reference_answers under cases, and give the system's answers in a file of their own"
        )
    separator = _separator(fields, values) if from_csv else None
    if separator is not None:
        unsure.append(f"cells of lists are split at {separator!r}")
    return Guess(fields, unsure, separator)


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Values by column, those inside of an object under a dotted name; what says nothing is left out.

    A cell of a table may hold an object as JSON.
    """
    found: dict[str, list[Any]] = {}
    for record in records:
        for name, held in record.items():
            value = opened(held, "{")
            found.setdefault(name, []).extend([] if _says_nothing(value) else [value])
            if isinstance(value, Mapping):
                for inner, item in value.items():
                    if "." in str(inner):  # no name leads to it
                        continue
                    found.setdefault(f"{name}.{inner}", []).extend([] if _says_nothing(item) else [item])
    return found


def _says_nothing(value: object) -> bool:
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # noqa: PLR0124  # NaN


def _named(values: Mapping[str, Any], ours: str) -> list[str]:
    """Columns called like a field, the best name first and columns at the top before those inside of others."""
    found = {name: _rank(ours, name) for name in values}
    return sorted((name for name in found if found[name] is not None), key=lambda name: ("." in name, found[name]))


def _rank(ours: str, name: str) -> int | None:
    """How good a name is for a field, from 0; None: it is not one.

    The object around a part says more than the name of the part: `expected.answer` is what was expected, and no answer
    of the system.
    """
    names = _NAMES[ours]
    head, _, last = name.rpartition(".")
    plain, around = _plain(last), _plain(head.rpartition(".")[2])
    if around in _NAMES["reference_answers"] and ours in ("question", "answer"):
        return None
    if around in _NAMES["question"] and ours in ("answer", "reference_answers"):
        return None
    if around in names and plain in _WHOLE and ours in ("question", "answer", "reference_answers"):
        return names.index(around)
    return names.index(plain) if plain in names else None


def _plain(name: str) -> str:
    return _SIGNS.sub("", name).lower()


def _fits(ours: str, values: Sequence[Any], n_records: int, *, from_csv: bool) -> bool:
    if not values:
        return False
    if ours == "id":
        are_ids = all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)
        return are_ids and 2 * len(values) > n_records and len(set(map(str, values))) == len(values)
    if ours in _TEXTS:
        return all(isinstance(value, str) for value in values)
    if ours in ("answerable", "abstained"):
        return all(isinstance(value, bool) or str(value).strip().lower() in FLAGS for value in values)
    if ours == "latency_seconds.total":
        return all(_is_number(value) for value in values)
    if ours in _ID_LISTS and not from_csv:
        return all(isinstance(value, list) for value in values)
    if ours in ("reference_answers", "tags"):
        return all(
            isinstance(item, str) for value in values for item in (value if isinstance(value, list) else [value])
        )
    return all(isinstance(value, str | list) for value in values)


def _is_number(value: object) -> bool:
    try:
        float(str(value).replace(",", "."))
    except ValueError:
        return False
    return not isinstance(value, bool)


def _mapped(ours: str, name: str, values: Sequence[Any]) -> dict[str, str]:
    """The mapping of one field; of hits, of their parts."""
    if ours == "retrieved":
        lists = [value_in(value) if isinstance(value, str) else value for value in values]
        hits = [hit for value in lists if isinstance(value, list) for hit in value]
        if hits and isinstance(hits[0], Mapping) and not hits[0].keys() <= Hit.model_fields.keys():
            return hit_fields(hits[0], f"{name}{EACH}")
    return {ours: name}


def _separator(fields: Mapping[str, str], values: Mapping[str, Sequence[Any]]) -> str | None:
    """What stands between the items of list cells, where the name of the column is a plural and most cells have it."""
    for ours, name in fields.items():
        if ours in _LISTS and name.lower().endswith("s"):
            cells = [value for value in values[name] if isinstance(value, str) and not value.lstrip().startswith("[")]
            for separator in _SEPARATORS:
                if cells and 2 * sum(separator in cell for cell in cells) >= len(cells):
                    return separator.strip()
    return None


_INSIDE = ("", "node.", "document.", "payload.", "entity.", "fields.", "_source.")
_ABOUT = ("", "metadata.", "meta.")
_HIT_TEXTS = ("text", "page_content", "content", "contents", "passage", "chunk", "chunk_text", "snippet", "body")
_PATHS = ("rel_path", "source", "file_path", "path", "file_name", "filename", "doc_uri", "uri", "url", "name", "title")
_DOCUMENTS = ("doc_id", "document_id", "docid", "source_id", "ref_doc_id")
_CHUNKS = ("chunk_id", "passage_id", "node_id", "id", "id_", "_id")
_SCORES = ("score", "_score", "similarity", "relevance_score")


def hit_fields(hit: Mapping[str, Any], items: str = "retrieved[]") -> dict[str, str]:
    """The `fields` that would read a hit of a well-known shape, such as those of LangChain, LlamaIndex and Haystack.

    Args:
        hit: one of them, as it stands in the file.
        items: what a mapping calls the list, with its brackets.
    """
    texts = [inside + name for inside in _INSIDE for name in _HIT_TEXTS]
    wanted = {
        "text": (texts, str),
        "rel_path": (list(_names(_PATHS)), str),
        "doc_id": (list(_names(_DOCUMENTS)), str | int),
        "chunk_id": (list(_names(_CHUNKS)), str | int),
        "score": ([inside + name for inside in _INSIDE for name in _SCORES], int | float),
    }
    found: dict[str, str] = {}
    for part, (names, kind) in wanted.items():
        name = next((name for name in names if isinstance(part_of(hit, name), kind)), None)
        if name is not None and f"{items}.{name}" not in found.values():
            found[f"retrieved[].{part}"] = f"{items}.{name}"
    return found


def advice(hit: object, items: str) -> str:
    """What is said of a hit with keys that are not ours; "" where it is a slip.

    Args:
        hit: as it stands in the file.
        items: what a mapping calls the list, with its brackets.
    """
    if not isinstance(hit, Mapping):
        return ""
    fields = {ours: theirs for ours, theirs in hit_fields(hit, items).items() if ours != theirs}
    unknown = [str(key) for key in hit if key not in Hit.model_fields]
    if not fields and unknown and not difflib.get_close_matches(unknown[0], Hit.model_fields, n=1):
        fields = {"retrieved[].text": f"{items}.{unknown[0]}"}
    if not fields or not unknown:
        return ""
    pairs = ", ".join(f'"{ours}": "{theirs}"' for ours, theirs in fields.items())
    return (
        f"unknown key{'s' * (len(unknown) > 1)} {', '.join(unknown[:8])}; to read such hits, set "
        f'"fields": {{{pairs}}}; what is left goes into the metadata of the hit'
    )


def _names(names: tuple[str, ...]) -> Iterator[str]:
    return (inside + about + name for inside in _INSIDE for about in _ABOUT for name in names)
