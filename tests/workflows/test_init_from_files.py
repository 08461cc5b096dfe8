"""`judgekit init --from FILE`: a data file is looked at, a config is written, and it runs without a change by hand."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import judgekit
from judgekit.cli.app import app
from judgekit.storage.config_files import load_config
from tests.builders import read_json, read_lines
from tests.readers import needs_shared_files, shared


def init(path: Path, folder: Path, *options: str) -> tuple[int, str, list[str]]:
    result = CliRunner().invoke(app, ["init", str(folder), "--from", str(path), *options])
    return result.exit_code, result.stdout, result.stderr.strip().splitlines()


def table(rows: list[list[str]], separator: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=separator).writerows(rows)
    return text.getvalue()


def lines(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


GLAZES = [
    ("How hot is a glaze kiln?", "About 1240 degrees.", "1240 degrees"),
    ("Who loads the kiln?", "The apprentice does.", "the apprentice"),
]


def joined_by_semicolons() -> tuple[str, str]:
    """A mark at its beginning, no ids, several right answers in one cell."""
    rows = [["Kind", "Question", "Best Answer", "Correct Answers", "Source"]]
    rows += [["x", question, right, f"{right}; {right} or so", "https://x.example"] for question, _, right in GLAZES]
    return "known.csv", "\ufeff" + table(rows, ",")


def under_a_key() -> tuple[str, str]:
    records = [
        {
            "query_id": number,
            "query": question,
            "gt_answer": right,
            "response": answer,
            "retrieved_context": [{"doc_id": f"d{number}", "text": answer}],
        }
        for number, (question, answer, right) in enumerate(GLAZES)
    ]
    return "checked.json", json.dumps({"results": records})


def of_a_chain() -> tuple[str, str]:
    """Hits as LangChain has them."""
    hit = {"page_content": "About 1240 degrees.", "metadata": {"source": "kilns.md"}, "type": "Document"}
    return "chain.jsonl", lines([{"input": q, "output": a, "context": [hit]} for q, a, _ in GLAZES])


def of_an_index() -> tuple[str, str]:
    """Hits as LlamaIndex has them."""
    nodes = [{"node": {"id_": "n1", "text": "About 1240 degrees."}, "score": 0.8}]
    return "index.jsonl", lines([{"query": q, "response": a, "source_nodes": nodes} for q, a, _ in GLAZES])


def with_semicolons() -> tuple[str, str]:
    rows = [["Nr", "Frage", "Antwort", "Musterantwort", "Kategorie"]]
    rows += [[str(number), *texts, "Ofen"] for number, texts in enumerate(GLAZES, start=1)]
    return "export.csv", table(rows, ";")


def with_tabs() -> tuple[str, str]:
    rows = [["qid", "question", "generated_answer", "contexts"]]
    rows += [[f"q{number}", q, a, json.dumps([a])] for number, (q, a, _) in enumerate(GLAZES)]
    return "answers.tsv", table(rows, "\t")


def lines_under_json() -> tuple[str, str]:
    """One object a line, under the name of a document."""
    rows = [{"ID": f"{n}", "user_query": q, "chatgpt_response": a} for n, (q, a, _) in enumerate(GLAZES)]
    return "lines.json", lines(rows)


def hub_rows() -> tuple[str, str]:
    """Every second question has no answer."""
    answers = [{"text": [a] * (n % 2), "answer_start": [0] * (n % 2)} for n, (_, a, _) in enumerate(GLAZES)]
    rows = [{"id": f"s{n}", "context": a, "question": q, "answers": answers[n]} for n, (q, a, _) in enumerate(GLAZES)]
    return "rows.jsonl", lines(rows)


def as_columns() -> tuple[str, str]:
    """A table as pandas writes it by default."""
    columns = dict(zip(("prompt", "prediction", "target"), zip(*GLAZES, strict=True), strict=True))
    return "frame.json", json.dumps({name: {str(n): v for n, v in enumerate(vs)} for name, vs in columns.items()})


def rows_of_ragas() -> tuple[str, str]:
    header = ["user_input", "retrieved_contexts", "response", "reference"]
    return "scored.csv", table([header, *([q, f"['{a}']", a, r] for q, a, r in GLAZES)], ",")


def lists_of_ids() -> tuple[str, str]:
    records = [
        {"qid": f"q{n}", "query": q, "retrieval_gt": [[f"d{n}"]], "generation_gt": [r]}
        for n, (q, _, r) in enumerate(GLAZES)
    ]
    return "gold.jsonl", lines(records)


def traces_of_mlflow() -> tuple[str, str]:
    """What `search_traces` gives as a frame, as CSV: cells of objects, and keys with dots of their own."""
    header = ["trace_id", "request", "response", "trace_metadata"]
    rows = [
        [f"tr-{n}", str({"question": q, "passages": [a]}), a, str({"mlflow.source.type": "LOCAL"})]
        for n, (q, a, _) in enumerate(GLAZES)
    ]
    return "traces.csv", table([header, *rows], ",")


FILES: list[tuple[Callable[[], tuple[str, str]], set[str]]] = [
    (joined_by_semicolons, set()),
    (under_a_key, {"groundedness", "correctness"}),
    (of_a_chain, {"groundedness"}),
    (of_an_index, {"groundedness"}),
    (with_semicolons, {"correctness"}),
    (with_tabs, {"groundedness"}),
    (lines_under_json, set()),
    (hub_rows, set()),
    (as_columns, {"correctness"}),
    (rows_of_ragas, {"groundedness", "correctness"}),
    (lists_of_ids, set()),
    (traces_of_mlflow, {"groundedness"}),
]


@pytest.mark.parametrize("format_", ["json", "yaml", "toml"])
@pytest.mark.parametrize(("make", "judged"), FILES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_file_is_looked_at_and_run_as_it_is(
    tmp_path: Path, make: Callable[[], tuple[str, str]], judged: set[str], format_: str
) -> None:
    name, text = make()
    path = tmp_path / "data" / name
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8", newline="")
    code, said, error = init(path, tmp_path / "suite", "--format", format_)
    assert code == 0, error
    assert said.splitlines()[1].split() == ["column", "taken", "for", "example"]
    config = tmp_path / "suite" / f"config.{format_}"
    result = judgekit.run(config, results_dir=tmp_path / "results", run_id="r")
    assert result.summary.cases["n"] == len(GLAZES)
    assert set(result.summary.judges) == judged
    for judge in judged:
        assert result.overall[judge].n == len(GLAZES)
    cases = read_lines(tmp_path / "results" / "r" / "cases.jsonl")
    assert [case["question"] for case in cases] == [question for question, _, _ in GLAZES]


def test_what_a_column_is_taken_for_is_shown_with_an_example_and_what_is_not_sure(tmp_path: Path) -> None:
    name, text = joined_by_semicolons()
    (tmp_path / name).write_text(text, encoding="utf-8")
    _, said, _ = init(tmp_path / name, tmp_path / "suite")
    assert said.splitlines() == [
        f"{tmp_path / name}: csv, first 2 rows",
        "  column           taken for          example",
        "  Kind             metadata           x",
        "  Question         question           How hot is a glaze kiln?",
        "  Best Answer      metadata           1240 degrees",
        "  Correct Answers  reference_answers  1240 degrees; 1240 degrees or so",
        "  Source           metadata           https://x.example",
        "look at: reference_answers: 'Correct Answers' is taken, and not 'Best Answer'; map another if that is right",
        "look at: cells of lists are split at ';'",
        "look at: no column is an id, so each row has its position, from 1",
        f"next: judgekit run {tmp_path / 'suite' / 'config.json'}",
    ]
    assert read_lines(tmp_path / "suite" / "outputs.jsonl") == [{"case_id": "1"}, {"case_id": "2"}]
    system = read_json(tmp_path / "suite" / "config.json")["system"]
    assert system["$comment"] == "the data file holds no answers: put those of your system into this file"


ROW_OF_RAGAS = {"user_input": "Who fires?", "retrieved_contexts": ["Ada."], "response": "Ada", "reference": "Ada"}
ROW_OF_DEEPEVAL = {
    "input": "Who fires?",
    "actual_output": "Ada",
    "expected_output": "Ada",
    "retrieval_context": ["Ada."],
}
RESULT_OF_PROMPTFOO = {
    "provider": {"id": "p"},
    "prompt": {"raw": "r", "label": "r"},
    "vars": {"question": "Who fires?"},
    "response": {"output": "Ada"},
    "testIdx": 0,
}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(
            [ROW_OF_RAGAS],
            {
                "user_input": "question",
                "retrieved_contexts": "retrieved",
                "response": "answer",
                "reference": "reference_answers",
            },
            id="ragas",
        ),
        pytest.param(
            [ROW_OF_DEEPEVAL],
            {
                "input": "question",
                "actual_output": "answer",
                "expected_output": "reference_answers",
                "retrieval_context": "retrieved",
            },
            id="deepeval",
        ),
        pytest.param(
            {"evalId": "e", "results": {"version": 3, "results": [RESULT_OF_PROMPTFOO]}},
            {
                "provider": "metadata",
                "prompt": "metadata",
                "vars": "question",
                "response": "answer",
                "testIdx": "id",
            },
            id="promptfoo",
        ),
    ],
)
def test_columns_of_other_tools_are_shown_as_what_cases_and_outputs_take_them_for(
    tmp_path: Path, content: Any, expected: dict[str, str]
) -> None:
    path = tmp_path / "theirs.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    code, said, error = init(path, tmp_path / "suite")
    assert code == 0, error
    shown = [line.split()[:2] for line in said.splitlines()[2:] if line.startswith("  ")]
    assert dict(shown) == expected


def test_a_config_is_replaced_only_by_force_and_outputs_never(tmp_path: Path) -> None:
    name, text = joined_by_semicolons()
    (tmp_path / name).write_text(text, encoding="utf-8")
    folder = tmp_path / "suite"
    assert init(tmp_path / name, folder)[0] == 0
    (folder / "config.json").write_text("mine", encoding="utf-8")
    (folder / "outputs.jsonl").write_text("mine", encoding="utf-8")
    code, _, error = init(tmp_path / name, folder)
    assert code == 2
    assert error[-1].endswith("config.json: exists already; choose another folder, or --force to replace the config")
    assert (folder / "config.json").read_text(encoding="utf-8") == "mine"
    assert init(tmp_path / name, folder, "--force")[0] == 0
    assert load_config(folder / "config.json").name == "known"
    assert (folder / "outputs.jsonl").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", b"", "empty.csv: the file is empty"),
        ("header.csv", b"question,answer\n", "header.csv: the file has a header but no rows"),
        ("bad.jsonl", b"\xff\xfe\x00bad", "bad.jsonl:1: "),
        ("notes.txt", b"some words", "notes.txt: unknown extension"),
        ("folder", None, "folder: is a folder of no known kind"),
        (
            "other.json",
            b'[{"height": 3}]',
            "other.json: holds no questions that can be told from its columns",
        ),
        ("run.txt", b"1 Q0 d1 1 0.5 x\n", "a run is outputs"),
    ],
)
def test_a_file_that_is_none_is_one_line_and_leaves_nothing(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    path = tmp_path / name
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    code, _, error = init(path, tmp_path / "suite")
    assert (code, len(error)) == (2, 1)
    assert message in error[0]
    assert not (tmp_path / "suite").exists()
    [gone] = init(tmp_path / "gone.csv", tmp_path / "suite")[2]
    assert gone.endswith("gone.csv: no such file")


@pytest.mark.parametrize("format_", ["json", "yaml", "toml"])
def test_names_of_columns_may_hold_anything(tmp_path: Path, format_: str) -> None:
    names = ["question", "a\x1b[31mnswer", "=cmd|x", "answer[].x", 'a"b: {c}', "refrence_answers", "anwser", "tag"]
    (tmp_path / "odd.csv").write_text(table([names, *[list("abcdefgh"), list("ijklmnop")]], ","), encoding="utf-8")
    code, said, error = init(tmp_path / "odd.csv", tmp_path / "suite", "--format", format_)
    assert code == 0, error
    assert "\x1b" not in said
    summary = judgekit.run(tmp_path / "suite" / f"config.{format_}", results_dir=tmp_path / "results").summary
    assert summary.cases["n"] == 2


def test_only_the_head_of_a_long_file_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    row = {"question": "How hot?", "response": "1240"}
    path.write_text(lines([row] * 300) + "{broken\n", encoding="utf-8")
    code, said, _ = init(path, tmp_path / "suite")
    assert code == 0
    assert said.startswith(f"{path}: jsonl, first 200 rows\n")


def test_the_golden_set_in_yaml_says_what_an_empty_list_of_documents_means(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["init", str(tmp_path / "suite"), "--format", "yaml"])
    assert result.exit_code == 0
    text = (tmp_path / "suite" / "cases.yaml").read_text(encoding="utf-8")
    header = text.partition("\n- ")[0]
    assert all(line.startswith("#") for line in header.splitlines() if line)
    assert "`expected_doc_ids: []` means that it should refuse to answer" in header
    summary = judgekit.run(tmp_path / "suite" / "config.yaml", results_dir=tmp_path / "results").summary
    assert summary.cases["n"] == 3


TEN = [
    ("public/ragchecker_checking_inputs.head4.json", 0),
    ("public/truthfulqa.head29.csv", 0),
    ("public/autorag_qa_data_sample.parquet", 0),
    ("public/halueval_general.part.json", 2),  # an id is blank inside, which nobody but its owner can mend
    ("ragas/rag_outputs.head4.json", 0),
    ("ragas/ragas_results.head4.json", 0),
    ("squad/drop.json", 0),
    ("hotpotqa/hotpotqa_train.head3.json", 0),
    ("deepeval/goldens.csv", 0),
    ("inspect/samples.csv", 0),
]


@needs_shared_files
@pytest.mark.parametrize(("name", "expected"), TEN)
def test_files_of_others_are_run_as_they_are(tmp_path: Path, name: str, expected: int) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    code, _, error = init(shared(name), tmp_path / "suite")
    assert code == 0, error
    result = CliRunner().invoke(
        app, ["run", str(tmp_path / "suite" / "config.json"), "--results-dir", str(tmp_path / "results"), "-q"]
    )
    assert result.exit_code == expected, result.stderr
