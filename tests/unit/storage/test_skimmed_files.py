"""Files of which some records are wanted: the others are not read as a whole, and nothing that is wrong gets lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage import case_files
from judgekit.storage.case_files import Skim, iterate_cases, iterate_outputs, load_cases
from judgekit.storage.field_mapping import FieldMapping
from judgekit.storage.rows import Row


def written(folder: Path, rows: list[Any], name: str = "cases.jsonl") -> tuple[DataFile, Path]:
    path = folder / name
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows))
    return DataFile(path=name), path


def skimmed(source: DataFile, path: Path, wanted: set[str], *unless: str) -> tuple[list[str], list[str]]:
    """Ids that the reader tells of, and ids of the records that it gives."""
    told: list[str] = []

    def is_wanted(key: str) -> bool:
        told.append(key)
        return key in wanted

    return told, [case.id for case in iterate_cases(source, path, skim=Skim(is_wanted, unless))]


ROWS: list[Any] = [{"id": f"c{number}", "question": "How hot?", "team": "x"} for number in range(6)]


def test_every_id_is_told_in_order_and_what_is_not_wanted_is_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    whole = case_files.record_of

    def record_of(row: Row, *more: Any) -> Any:
        read.append(row.line)
        return whole(row, *more)

    monkeypatch.setattr(case_files, "record_of", record_of)
    told, given = skimmed(*written(tmp_path, ROWS), {"c1", "c4"})
    assert told == [f"c{number}" for number in range(6)]
    assert given == ["c1", "c4"]
    assert read == [2, 5]
    source, path = written(tmp_path, [{"id": f"c{number}", "answer": "Hot."} for number in range(4)], "outputs.jsonl")
    outputs = iterate_outputs(source, path, skim=Skim(lambda key: key == "c2"))
    assert [output.case_id for output in outputs] == ["c2"]


@pytest.mark.parametrize(
    ("row", "fields", "unless", "key"),
    [
        ({"id": 7}, {}, (), "7"),
        ({"id": "e\u0301"}, {}, (), "\xe9"),
        ({"id": "x", "metadata": {"team": "y"}}, {}, (), "x"),
        ({"id": "x", "gold_supports": []}, {}, (), "x"),
        ({"qid": "x", "id": "other"}, {"id": "qid"}, (), "x"),
        ({"id": "x", "t": "y"}, {"metadata.team": "t"}, (), "x"),
        ({"id": " "}, {}, (), None),
        ({"id": True}, {}, (), None),
        ({"id": 7.0}, {}, (), None),
        ({"question": "no id"}, {}, (), None),
        ({"id": "x", "gold_supports": []}, {}, ("gold_supports",), None),
        ({"id": "x", "repeat_of": "y"}, {}, (), None),
        ({"id": "x", "metadata": {"repeat_of": "y"}}, {}, (), None),
        ({"id": "x", "metadata": '{"repeat_of": "y"}'}, {}, (), None),
        ({"id": "x", "metadata": 7}, {}, (), None),
        ({"id": "x", "r": "y"}, {"metadata.repeat_of": "r"}, (), None),
        ({"id": "x", "m": {"repeat_of": "y"}}, {"metadata": "m"}, (), None),
    ],
)
def test_an_id_is_told_only_if_it_says_all(
    row: dict[str, Any], fields: dict[str, str], unless: tuple[str, ...], key: str | None
) -> None:
    mapping = FieldMapping(DataFile(path="", fields=fields), Case)
    first: dict[str, Any] = {theirs: {} if ours == "metadata" else "first" for ours, theirs in fields.items()}
    mapping.apply(Row(1, "$", first))
    assert mapping.plain_id(Row(2, "$", row), unless) == key


@pytest.mark.parametrize(
    ("rows", "fields"),
    [
        ([*ROWS, {"id": "c3", "question": "again"}], {}),
        ([*ROWS, {"question": "no id"}], {}),
        ([*ROWS, "{broken\n"], {}),
        (ROWS, {"category": "topic"}),
        (ROWS, {"id": "number"}),
    ],
)
def test_what_is_wrong_with_ids_and_names_is_said_whoever_reads(
    tmp_path: Path, rows: list[Any], fields: dict[str, str]
) -> None:
    source, path = written(tmp_path, rows)
    source = source.model_copy(update={"fields": fields})
    with pytest.raises(InputError) as known:
        load_cases(source, path)
    with pytest.raises(InputError) as found:
        skimmed(source, path, {"c1"})
    assert str(found.value) == str(known.value)


def test_a_mapped_field_that_few_records_have_is_found(tmp_path: Path) -> None:
    source, path = written(tmp_path, [*ROWS, {"id": "c6", "question": "?", "topic": "kilns"}, {"id": "c7"}])
    source = source.model_copy(update={"fields": {"category": "topic"}})
    told, given = skimmed(source, path, {"c1"})
    assert told == [f"c{number}" for number in range(8)]
    assert given == [f"c{number}" for number in range(7)]  # the last one is known by its id alone


def test_what_is_wrong_with_a_record_is_found_where_it_is_wanted(tmp_path: Path) -> None:
    source, path = written(tmp_path, [*ROWS, {"id": "c6", "question": "?", "answerable": "perhaps"}])
    assert skimmed(source, path, {"c1"})[1] == ["c1"]
    with pytest.raises(InputError, match="answerable"):
        skimmed(source, path, {"c6"})


def test_outputs_of_a_table_are_told_by_their_cells(tmp_path: Path) -> None:
    path = tmp_path / "outputs.csv"
    path.write_text("case_id,answer\nc1,Hot.\n7,Cold.\n")
    told: list[str] = []

    def is_wanted(key: str) -> bool:
        told.append(key)
        return key == "7"

    outputs = iterate_outputs(DataFile(path="outputs.csv"), path, skim=Skim(is_wanted))
    assert list(outputs) == [SystemOutput(case_id="7", answer="Cold.")]
    assert told == ["c1", "7"]
