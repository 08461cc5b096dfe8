"""A BEIR folder: `queries.jsonl` with `_id` and `text`, and judgements in `qrels/<split>.tsv`. The corpus is not read.

A query with judgements in the split is a case; documents with a grade above 0 are expected. The outputs of a system
come from another file, such as a TREC run.
"""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.formats.trec import judged_case, named
from judgekit.storage.problems import one_part
from judgekit.storage.record_formats import Format, Source
from judgekit.storage.rows import Origin, Row, is_folder, is_plain_file, read_rows, read_text

_QUERIES = "queries.jsonl"


class Beir(Format):
    """Questions and judgements."""

    def claims_path(self, path: Path) -> bool:
        """A folder with queries and qrels, or a `.tsv` file in a folder `qrels`."""
        if path.suffix.lower() == ".tsv":
            return path.parent.name == "qrels"
        return is_plain_file(path / _QUERIES) and is_folder(path / "qrels")

    def files(self, file: DataFile, path: Path) -> list[Path]:
        """Queries and the judgements of the split."""
        judgements = _judgements(file, path) if is_folder(path) else path
        queries = judgements.parent.parent / _QUERIES
        return [judgements, *([queries] if is_plain_file(queries) else [])]

    def rows(self, source: Source) -> Iterator[Row]:
        """One row for each judged query, in the order of the queries."""
        path = source.path
        if source.kind == "outputs":
            raise InputError(
                f"{path}: a BEIR folder holds questions and judgements, no outputs; give your system's run as TREC"
            )
        judgements = _judgements(source.file, path) if is_folder(path) else path
        root = judgements.parent.parent
        grades: dict[str, dict[str, float]] = {}
        n_wrong = 0
        for row in _graded(source.file, judgements, grades):
            n_wrong += 1
            yield replace(row, file=str(judgements.relative_to(path)) if is_folder(path) else "")
        if not grades and not n_wrong:
            raise InputError(f"{judgements}: the file has no judgements")
        found: set[str] = set()
        if is_folder(path) or is_plain_file(root / _QUERIES):
            yield from _with_text(source, root / _QUERIES, grades, found)
        bare = [query for query in grades if query not in found]
        if bare:
            source.notice("judgements_without_query", f"no question text for {named(bare)}")
        for query in bare:
            yield Row(0, f"query {query!r}", judged_case(query, grades[query]), origin=Origin({}))


def _with_text(source: Source, queries: Path, grades: dict[str, dict[str, float]], found: set[str]) -> Iterator[Row]:
    """Cases of the queries that are judged; their ids are noted in `found`."""
    unjudged = []
    for row in read_rows(DataFile(path=_QUERIES), queries):
        placed = (
            replace(row, file=_QUERIES)
            if is_folder(source.path)
            else replace(row, line=0, path=f"{_QUERIES}:{row.line}")  # beside the file that is named
        )
        if row.data is None:
            yield placed
            continue
        query = str(row.data.get("_id"))
        if query in grades:
            found.add(query)
            yield _case(placed, query, grades[query])
        else:
            unjudged.append(query)
    if unjudged and grades and not found:
        raise InputError(
            f"{source.path}: no query of {_QUERIES} has judgements; queries have ids such as {unjudged[0]!r}, "
            f"judgements such as {next(iter(grades))!r}"
        )
    if unjudged:
        source.notice("queries_without_judgements", f"left out, no judgements for {named(unjudged)}")


def _case(row: Row, query: str, grades: dict[str, float]) -> Row:
    record = row.data or {}
    rest = {key: value for key, value in record.items() if key not in ("_id", "text", "metadata")}
    case = judged_case(query, grades)
    if isinstance(record.get("metadata"), dict):
        case["metadata"] = {**record["metadata"], **case["metadata"]}
    case = {**rest, **case, "question": record.get("text")}
    return replace(row, data=case, origin=Origin(record, {"id": "_id", "question": "text"}))


def _judgements(file: DataFile, path: Path) -> Path:
    splits = sorted(entry.stem for entry in (path / "qrels").glob("*.tsv"))
    if not splits:
        raise InputError(f"{path}: has no qrels/*.tsv")
    return path / "qrels" / f"{one_part(file.part, path, splits, 'split')}.tsv"


def _graded(file: DataFile, path: Path, grades: dict[str, dict[str, float]]) -> Iterator[Row]:
    """Fill in grades by query and document; yields what is wrong."""
    for number, line in enumerate(read_text(file, path).split("\n"), start=1):
        cells = [cell.strip() for cell in line.split("\t")]
        if not line.strip() or (number == 1 and cells[0] in ("query-id", "query_id")):
            continue
        if len(cells) != 3:
            problem = f"expected 3 columns with tabs between (query, document, grade), found {len(cells)}"
            yield Row(number, "$", None, problem)
            continue
        query, document, written = cells
        try:
            grade = float(written)
        except ValueError:
            yield Row(number, "$", None, f"grade {written!r} is not a number")
            continue
        if document in grades.setdefault(query, {}):
            yield Row(number, "$", None, f"query {query!r}: document {document!r} is judged twice")
        grades[query][document] = grade
