"""Frames of pandas, polars and pyarrow, and columns in a dict, judged as they are."""

import datetime
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import judgekit
from judgekit.api.frames import rows_of
from judgekit.core.errors import ConfigError, InputError

MODELS = {"m": {"provider": "lexical", "model": "overlap-2"}}
COLUMNS: dict[str, list[Any]] = {
    "id": ["a", "b", "c"],
    "question": ["How hot is kiln a?", "How hot is kiln b?", "How hot is kiln c?"],
    "answer": ["It is 1240 degrees.", None, "It is cold."],
    "retrieved": [["Kiln a: it is 1240 degrees."], ["Kiln b."], ["Kiln c: it is 900 degrees."]],
    "topic": ["kilns", "kilns", "ovens"],
}
MAKERS: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "pandas with Arrow types": lambda columns: pd.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    "pandas with an index": lambda columns: pd.DataFrame(columns).set_index("id"),
    "polars": pl.DataFrame,
    "pyarrow table": pa.table,
    "pyarrow batch": pa.RecordBatch.from_pydict,
    "pyarrow reader": lambda columns: pa.table(columns).to_reader(),
}


class Exported:
    """A frame of another library, which only exports itself."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._table = pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Interchanged:
    """A frame of another library, with the older protocol."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self._table = pa.table(columns)

    def __dataframe__(self, **arguments: Any) -> Any:
        return self._table.__dataframe__(**arguments)


SCORES = {"a": (5.0, None), "b": (None, "failed: no_answer"), "c": (1.0, None)}


def judged(tmp_path: Path, cases: Any, outputs: Any = None, **more: Any) -> judgekit.RunResult:
    more = {"judges": ["groundedness"], "models": MODELS, **more}
    return judgekit.evaluate(cases, outputs, results_dir=tmp_path, **more)


def unjudged(tmp_path: Path, cases: Any, outputs: Any = None) -> judgekit.RunResult:
    return judged(tmp_path, cases, outputs, judges=[], metrics=["operations"])


@pytest.mark.parametrize("make", [*MAKERS.values(), Exported], ids=[*MAKERS, "Arrow stream"])
def test_every_kind_of_frame_is_judged_alike(tmp_path: Path, make: Callable[[Any], Any]) -> None:
    frame = make(COLUMNS)
    if isinstance(frame, pa.RecordBatchReader):  # read once, so it is for one of the two
        result = judged(tmp_path, make(COLUMNS), make({**COLUMNS, "case_id": COLUMNS["id"]}))
    else:
        result = judged(tmp_path, frame, slices=["metadata.topic"])
        assert set(result.slices["metadata.topic"]) == {"kilns", "ovens"}
    scored = {record.case_id: record.scores["groundedness"] for record in result.cases()}
    assert scored == SCORES


@pytest.mark.slow
def test_a_frame_is_judged_into_a_frame(tmp_path: Path) -> None:
    frame = judged(tmp_path, pd.DataFrame(COLUMNS)).to_pandas()
    assert list(frame["case_id"]) == ["a", "b", "c"]
    assert frame["groundedness"].tolist()[0] == 5.0
    assert frame["groundedness"].isna().tolist() == [False, True, False]


def test_a_table_takes_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = judged(tmp_path, pl.DataFrame(COLUMNS))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ConfigError, match="to_pandas takes pandas, which is not installed: pip install pandas"):
        result.to_pandas()


def test_what_is_missing_in_a_frame_is_absent_and_never_the_word_nan(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "id": [1.0, 2.0],
            "question": ["How hot?", np.nan],
            "answer": ["Hot.", pd.NA],
            "category": [None, "x"],
            "when": [pd.NaT, pd.Timestamp("2026-11-29")],
            "stars": [np.nan, 4.0],
        }
    )
    result = unjudged(tmp_path, frame)
    one, two = result.cases()
    assert one.case is not None and two.case is not None and two.output is not None
    assert (one.case_id, one.case.category, one.case.metadata) == ("1", None, {})
    assert (two.case.question, two.output.answer) == ("", None)
    assert two.case.metadata == {"when": "2026-11-29T00:00:00", "stars": 4.0}
    assert "ids_from_floats" in [notice.code for notice in result.warnings]
    assert "nan" not in (result.folder / "cases.jsonl").read_text().lower()


def test_cells_may_hold_arrays_dates_and_numbers_of_numpy(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": np.array([7, 8]), "question": ["a?", "b?"], "day": [datetime.date(2026, 1, 2), None]})
    frame["tags"] = [np.array(["x", "y"]), np.array([])]
    frame["scores"] = [np.array([1.5]), np.array([2])]
    first, second = unjudged(tmp_path, frame, [{"case_id": 7, "answer": "A."}, {"case_id": 8, "answer": "B."}]).cases()
    assert first.case is not None and second.case is not None
    assert (first.case_id, first.case.tags) == ("7", ("x", "y"))
    assert first.case.metadata == {"day": "2026-01-02", "scores": [1.5]}
    assert second.case.metadata == {"scores": [2]}


def test_a_frame_without_ids_is_numbered_and_a_frame_of_another_tool_is_known_by_its_columns(tmp_path: Path) -> None:
    ragas = {
        "user_input": ["How hot is kiln a?"],
        "response": ["It is 1240 degrees."],
        "retrieved_contexts": [["Kiln a: it is 1240 degrees."]],
    }
    result = judged(tmp_path, pl.DataFrame(ragas))
    assert result.overall["groundedness"].value == 5.0
    assert [record.case_id for record in result.cases()] == ["1"]
    assert "cases: read as ragas, by their keys" in [notice.message for notice in result.warnings]
    without = {name: column for name, column in COLUMNS.items() if name != "id"}
    assert [record.case_id for record in judged(tmp_path, pd.DataFrame(without)).cases()] == ["1", "2", "3"]


def test_what_only_an_output_has_is_not_kept_in_the_case_too(tmp_path: Path) -> None:
    record = judged(tmp_path, pl.DataFrame(COLUMNS)).cases()[0]
    assert record.case is not None and record.output is not None
    assert record.case.metadata == record.output.metadata == {"topic": "kilns"}


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame([["a", "b"]], columns=["id", "id"]), "the frame has the column 'id' twice"),
        (pa.table([["a"], ["b"]], names=["id", "id"]), "the frame has the column 'id' twice"),
        (pd.DataFrame([["a", "b"]], columns=["1", 1]), "the frame has the column '1' twice"),
        ({"id": ["a"], "question": ["a", "b"]}, "the columns are not of one length: id 1, question 2"),
        (pl.LazyFrame(COLUMNS), "a lazy frame, which holds no rows yet; give it as frame.collect()"),
        ({"id": "a", "question": "b"}, r"found dict; a single one goes into a list"),
        (pd.DataFrame({"id": ["1", 1], "question": ["a", "b"]}), r"\[1\]: id '1' is already at \[0\]"),
        (pl.DataFrame({"id": ["a"], "question": [4]}), r"\[0\].question: "),
        (pd.DataFrame({"id": ["a", "b"], "question": ["a", {"b": 1}]}), r"\[1\].question: "),
        (pd.DataFrame({"id": [], "question": []}), "cases: is empty"),
        (pd.DataFrame({"x": [1]}), r"\[0\].id: required, but missing; the record has x"),
    ],
)  # fmt: skip
def test_a_frame_that_cannot_be_read_is_named_and_leaves_nothing_behind(
    tmp_path: Path, frame: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        judged(tmp_path / "results", frame)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_that_only_exports_itself_takes_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(rows_of(Interchanged({"id": ["a"]}), "cases")) == [{"id": "a"}]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"reading a frame of \S+ needs pyarrow: pip install"):
        rows_of(Exported(COLUMNS), "cases")


def test_reading_a_frame_imports_no_other_library_of_frames(tmp_path: Path) -> None:
    import subprocess

    script = "import sys, polars, judgekit\n" \
        "list(__import__('judgekit.api.frames').api.frames.rows_of(polars.DataFrame({'id': ['a']}), 'cases'))\n" \
        "assert not {'pandas', 'pyarrow'} & set(sys.modules)"  # fmt: skip
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path)
