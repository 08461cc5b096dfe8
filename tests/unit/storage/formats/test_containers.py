"""How rows are stored: columns, YAML, folders; and which format a path is."""

import builtins
import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.data_files import DataFile
from judgekit.core.errors import InputError
from judgekit.storage.case_files import data_sha256
from judgekit.storage.containers import plain
from judgekit.storage.reading import reading_of
from tests.readers import cases_of, complaint, outputs_of, said, written


class TestColumns:
    """Parquet and Arrow."""

    @pytest.fixture(autouse=True)
    def _needs_pyarrow(self) -> None:
        pytest.importorskip("pyarrow", reason="pyarrow is an extra")

    def table(self, **columns: Any) -> Any:
        import pyarrow as pa

        return pa.table(columns)

    def store(self, path: Path, table: Any) -> Path:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            opened = pa.ipc.new_stream if "stream" in path.name else pa.ipc.new_file
            with pa.OSFile(str(path), "wb") as sink, opened(sink, table.schema) as writer:
                writer.write_table(table)
        return path

    @pytest.mark.parametrize("name", ["x.parquet", "file.arrow", "stream.arrow"])
    def test_c11_values_are_plain(self, tmp_path: Path, name: str) -> None:
        import pyarrow as pa

        table = self.table(
            id=[7, 8],
            question=["a", None],
            expected_doc_ids=pa.array([["d1", "d2"], []], pa.list_(pa.string())),
            score=pa.array([0.5, None], pa.float32()),
            flag=[True, False],
            when=[datetime.date(2025, 1, 2), None],
            __index_level_0__=[50436, 7],
        )
        path = self.store(tmp_path / name, table)
        assert [said(case) for case in cases_of(path)] == [
            {
                "id": "7",
                "question": "a",
                "expected_doc_ids": ["d1", "d2"],
                "metadata": {"score": 0.5, "flag": True, "when": "2025-01-02"},
            },
            {"id": "8", "expected_doc_ids": [], "metadata": {"score": None, "flag": False, "when": None}},
        ]

    def test_c06_whole_floats_as_ids_are_whole_numbers_and_it_is_said(self, tmp_path: Path) -> None:
        path = self.store(tmp_path / "x.parquet", self.table(id=[7.0, 8.0]))
        notices: list[tuple[str, str]] = []
        assert [case.id for case in cases_of(path, notices)] == ["7", "8"]
        assert notices == [("ids_from_floats", "x.parquet: column id holds ids as floats; 7.0 is read as 7")]
        assert complaint(self.store(tmp_path / "y.parquet", self.table(id=[7.5]))).startswith("y.parquet: $[0].id: ")

    def test_a_folder_of_splits_and_shards(self, tmp_path: Path) -> None:
        for name, ids in [("test-00000-of-00002", [1, 2]), ("test-00001-of-00002", [3]), ("train-00000-of-00001", [4])]:
            self.store(tmp_path / "set/data" / f"{name}.parquet", self.table(id=ids))
        folder = tmp_path / "set"
        assert complaint(folder) == "set: holds 2 splits, 'test', 'train'; name one with \"part\""
        assert [case.id for case in cases_of(folder, part="test")] == ["1", "2", "3"]
        test, train = (DataFile(path="set", part=part) for part in ("test", "train"))
        assert data_sha256(test, folder) != data_sha256(train, folder)
        self.store(tmp_path / "set/data/test-00001-of-00002.parquet", self.table(id=[1]))
        assert complaint(folder, part="test") == (
            "set: $[2]: id '1' is already at $[0] of data/test-00000-of-00002.parquet".replace(
                "set:", "set/data/test-00001-of-00002.parquet:"
            )
        )

    def test_what_save_to_disk_writes(self, tmp_path: Path) -> None:
        self.store(tmp_path / "set/train/data-stream-00000-of-00001.arrow", self.table(id=[1]))
        state: dict[str, Any] = {"_data_files": [], "_indices_files": None}
        written(tmp_path, "set/train/state.json", json.dumps(state))
        assert [case.id for case in cases_of(tmp_path / "set")] == ["1"]
        written(tmp_path, "set/train/state.json", json.dumps({**state, "_indices_files": [{"filename": "i.arrow"}]}))
        assert "save it after flatten_indices()" in complaint(tmp_path / "set")

    def test_rows_of_another_format(self, tmp_path: Path) -> None:
        table = self.table(user_input=["q"], response=["a"], retrieved_contexts=[["c"]], f=[float("nan")])
        path = self.store(tmp_path / "r.parquet", table)
        assert said(outputs_of(path)[0]) == {
            "case_id": "1",
            "answer": "a",
            "retrieved": [{"text": "c"}],
            "metadata": {"f": None},
        }

    def test_a_damaged_file_is_named(self, tmp_path: Path) -> None:
        assert "is not a readable parquet file" in complaint(written(tmp_path, "x.parquet", b"PAR1"))
        assert "is not a readable arrow file" in complaint(written(tmp_path, "x.arrow", b"ARROW1"))


class TestSeveralFiles:
    """A pattern, or a folder of numbered files."""

    def parts(self, folder: Path) -> None:
        folder.mkdir()
        for number, ids in enumerate(("bc", "a", "de")):
            lines = [json.dumps({"id": name, "question": name}) for name in ids]
            (folder / f"part-{number}.jsonl").write_text("\n".join(lines) + "\n")

    @pytest.mark.parametrize("name", ["data/part-*.jsonl", "data/part-?.jsonl", "data/**/part-[0-9].jsonl", "data"])
    def test_they_are_read_in_the_order_of_their_names(self, tmp_path: Path, name: str) -> None:
        self.parts(tmp_path / "data")
        (tmp_path / "data" / "_SUCCESS").write_text("")
        assert "".join(case.id for case in cases_of(tmp_path / name)) == "bcade"
        file = DataFile(path=name)
        before = data_sha256(file, tmp_path / name)
        assert [path.name for path in reading_of(file, tmp_path / name).files()] == [
            f"part-{n}.jsonl" for n in range(3)
        ]
        (tmp_path / "data" / "part-1.jsonl").write_text('{"id": "x"}\n')
        assert data_sha256(file, tmp_path / name) != before

    @pytest.mark.parametrize("name", ["data/part-*.jsonl", "data"])
    def test_what_is_wrong_is_named_with_file_and_line(self, tmp_path: Path, name: str) -> None:
        self.parts(tmp_path / "data")
        (tmp_path / "data" / "part-2.jsonl").write_text('{"id": "d"}\n{"id": "b"}\n{"id": "e", "tags": 5}\n')
        assert [line.removeprefix("data/") for line in complaint(tmp_path / name).splitlines()] == [
            "part-2.jsonl:2: $: id 'b' is already on line 1 of part-0.jsonl",
            "part-2.jsonl:3: $.tags: expected a list, found a number",
        ]

    def test_rows_without_ids_are_numbered_through(self, tmp_path: Path) -> None:
        for number in range(2):
            (tmp_path / f"rows-{number}.csv").write_text("question,answer\nHow hot?,1240\nHow cold?,4\n")
        assert [case.id for case in cases_of(tmp_path / "rows-*.csv")] == ["1", "2", "3", "4"]

    def test_rows_of_another_tool_are_known_by_their_keys(self, tmp_path: Path) -> None:
        for number in range(2):
            row = {"user_input": f"q{number}", "response": "a", "reference": "a", "retrieved_contexts": ["c"]}
            (tmp_path / f"rows-{number}.jsonl").write_text(json.dumps(row) + "\n")
        assert reading_of(DataFile(path="x"), tmp_path / "rows-*.jsonl").name == "ragas"
        assert [output.answer for output in outputs_of(tmp_path / "rows-*.jsonl")] == ["a", "a"]

    def test_a_pattern_without_files_is_refused(self, tmp_path: Path) -> None:
        assert complaint(tmp_path / "part-*.parquet") == "part-*.parquet: no file has such a name"

    def test_a_file_whose_name_is_a_pattern_is_that_file(self, tmp_path: Path) -> None:
        for name in ("a[1].jsonl", "a1.jsonl"):
            (tmp_path / name).write_text(json.dumps({"id": name}) + "\n")
        assert [case.id for case in cases_of(tmp_path / "a[1].jsonl")] == ["a[1].jsonl"]

    def test_jsonl_files_of_different_names_are_no_series(self, tmp_path: Path) -> None:
        for name in ("cases", "outputs"):
            (tmp_path / f"{name}.jsonl").write_text('{"id": "a"}\n')
        assert "is a folder of no known kind" in complaint(tmp_path)

    @pytest.mark.parametrize("stem", ["part-{}", "part.{}", "part-0000{}-c1f8.c000.snappy", "000{}"])
    @pytest.mark.parametrize("name", ["", "*.parquet"])
    def test_parquet_parts_of_one_folder_are_one_table(self, tmp_path: Path, stem: str, name: str) -> None:
        parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
        import pyarrow as pa

        for number in (1, 0):
            table = pa.table({"id": [f"{number}a", f"{number}b"], "tags": [["x"], []]})
            parquet.write_table(table, tmp_path / (stem.format(number) + ".parquet"), row_group_size=1)
        assert [case.id for case in cases_of(tmp_path / name)] == ["0a", "0b", "1a", "1b"]


def test_without_pyarrow_one_line_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    assert complaint(written(tmp_path, "x.parquet", b"PAR1")) == (
        "x.parquet: reading parquet needs pyarrow: pip install pyarrow"
    )


def test_c11_numpy_values_are_plain() -> None:
    np = pytest.importorskip("numpy")
    value = {
        "ids": np.array(["d1", "d2"]),
        "none": np.array([]),
        "x": np.float32(0.5),
        "y": np.float64(2),
        "b": np.bool_(True),
    }
    found = plain(value)
    assert found == {"ids": ["d1", "d2"], "none": [], "x": 0.5, "y": 2.0, "b": True}
    assert [type(found[key]) for key in ("x", "y", "b")] == [float, float, bool]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (decimal.Decimal("3"), 3),
        (decimal.Decimal("1.5"), 1.5),
        (b"caf\xc3\xa9", "caf\u00e9"),
        (b"\xff\xd8", "<2 bytes>"),
        (datetime.timedelta(seconds=90), 90.0),
        ((1, {"a": datetime.time(1, 2)}), [1, {"a": "01:02:00"}]),
    ],
)
def test_values_that_json_does_not_have(value: object, expected: object) -> None:
    assert plain(value) == expected


GOLDEN = """# a golden set
- id: q1
  query: How hot?
  expected_doc_ids: [kiln.md]
  expected_chunk_ids: [7, "07"]
  must_contain: ["1240"]
  forbidden: ["1250"]
  difficulty: easy
  lang: no
  since: 2025-01-02
- id: q2
  query: Why?
  expected_doc_ids: []
"""


def test_a_golden_set_in_yaml(tmp_path: Path) -> None:
    expected = [
        {
            "id": "q1",
            "question": "How hot?",
            "difficulty": "easy",
            "lang": "no",
            "expected_chunk_ids": ["7", "07"],
            "expected_doc_ids": ["kiln.md"],
            "must_contain": ["1240"],
            "forbidden": ["1250"],
            "metadata": {"since": "2025-01-02"},
        },
        {"id": "q2", "question": "Why?", "expected_doc_ids": []},
    ]
    assert [said(case) for case in cases_of(written(tmp_path, "g.yaml", GOLDEN))] == expected
    nested = "version: 1\nqueries:\n" + "".join(f"  {line}\n" for line in GOLDEN.splitlines())
    assert [said(case) for case in cases_of(written(tmp_path, "g.yml", nested))] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- id: 1\n- id: 1\n", "g.yaml:2: $[1]: id '1' is already on line 1 ($[0])"),
        ("- id: 1\n\n- id: 2\n  query: [a]\n", "g.yaml:3: $[1].query: expected a text, found a list"),
        ("- a\n", "g.yaml:1: $[0]: expected an object, found a text"),
        ("x: 1\n", "g.yaml: unsupported shape: expected a list of objects, found an object with keys x; write one"),
        ("", "g.yaml: unsupported shape: expected a list of objects, found nothing"),
        ("[]", "g.yaml: the list is empty"),
        ("- id: 1\n  id: 2\n", "g.yaml:2: not valid YAML: found duplicate key"),
        ("- id: [\n", "g.yaml:2: not valid YAML"),
        ("- id: !!python/object:os.system x\n", "g.yaml:1: not valid YAML"),
    ],
)
def test_what_is_wrong_in_yaml_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert complaint(written(tmp_path, "g.yaml", text)).startswith(message)


def test_anchors_that_stand_for_billions_are_refused(tmp_path: Path) -> None:
    lines = ["- id: 1", "  a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "anchors expand to more than" in complaint(written(tmp_path, "g.yaml", "\n".join(lines)))


def test_a_folder_holds_one_record_a_file_in_the_order_of_names(tmp_path: Path) -> None:
    written(tmp_path, "set/b.json", '{"question": "b?"}')
    written(tmp_path, "set/a.json", '{"id": 7, "question": "a?"}')
    written(tmp_path, "set/.hidden.json", "{")
    assert [(case.id, case.question) for case in cases_of(tmp_path / "set")] == [("7", "a?"), ("b", "b?")]
    written(tmp_path, "set/c.json", '{"question": 5}')
    written(tmp_path, "set/d.json", "{\n\n")
    written(tmp_path, "set/e.json", "[]")
    assert complaint(tmp_path / "set").splitlines() == [
        "set/c.json:1: $.question: expected a text, found a number",
        "set/d.json:3: $: not valid JSON: Expecting property name enclosed in double quotes (column 1)",
        "set/e.json:1: $: expected an object, found a list; each file of the folder is one record",
    ]


def test_a_folder_of_another_tool(tmp_path: Path) -> None:
    written(tmp_path, "set/1.json", '{"user_input": "q", "response": "a", "reference": "r"}')
    assert said(cases_of(tmp_path / "set")[0]) == {"id": "1", "question": "q", "reference_answers": ["r"]}


def test_a_folder_that_is_nothing_known_is_refused_with_the_list(tmp_path: Path) -> None:
    written(tmp_path, "set/readme.md", "x")
    assert complaint(tmp_path / "set").startswith("set: is a folder of no known kind; known: JSON files")
    written(tmp_path, "data/1.json", '{"data": []}')
    assert complaint(tmp_path / "data").startswith("data: a folder of JSON files, but the first holds no field of")
    assert [case.id for case in cases_of(tmp_path / "data", format="folder")] == ["1"]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("x.jsonl", '{"id": 1, "question": "q", "contexts": []}', "jsonl"),
        ("x.jsonl", '{"question": "q", "contexts": [], "ground_truth": "g"}', "ragas"),
        ("x.jsonl", '{"question": "q", "contexts": [], "ground_truth": "g", "reference_answers": []}', "jsonl"),
        ("x.jsonl", '{"input": "q"}', "jsonl"),
        ("x.jsonl", '{"input": "q", "target": "t"}', "inspect"),
        ("x.jsonl", '{"input": "q", "target": "t", "expected_output": "e"}', "jsonl"),  # two formats: no guess
        ("x.csv", "input,expected_output\nq,e\n", "deepeval"),
        ("x.csv", "id,question,answer\n1,q,a\n", "csv"),
        ("x.json", "[]", "json"),
        ("x.json", "{", "json"),
        ("x.json", '{"question": "q"}\n{"question": "r"}', "json"),
        ("qrels.txt", "1 0 d 1\n", "trec"),
        ("my-qrels.csv", "a,b\n", "csv"),
        ("x.out", "1 Q0 d 1 0.5 tag\n", "trec"),
    ],
)
def test_a_format_is_known_by_decisive_keys_only(tmp_path: Path, name: str, text: str, found: str) -> None:
    path = written(tmp_path, name, text)
    assert reading_of(DataFile(path=name), path).name == found


@pytest.mark.parametrize("text", ["1 0 d 1\n", "", "hello world\n", "1 Q0 d one 0x1f tag\n"])
def test_a_file_that_nothing_names_is_refused_with_the_list(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"unknown extension '.out'; set \"format\" to one of jsonl, json, csv"):
        cases_of(written(tmp_path, "x.out", text))


def test_an_explicit_format_reads_a_json_file_of_lines(tmp_path: Path) -> None:
    path = written(tmp_path, "x.json", '{"user_input": "a"}\n{"user_input": "b"}\n')
    assert [case.question for case in cases_of(path, format="ragas")] == ["a", "b"]
