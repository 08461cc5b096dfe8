"""Damaged files of every format: each is read or refused with a line, and never ends in a traceback."""

import copy
import json
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.errors import InputError
from tests.readers import cases_of, outputs_of, written

pytestmark = pytest.mark.slow  # a fuzzer

ANSWERS = [{"text": "a", "answer_start": 0}]
SEEDS: dict[str, Any] = {
    "squad": {"data": [{"title": "t", "paragraphs": [{"context": "a b", "qas": [{"id": "1", "answers": ANSWERS}]}]}]},
    "squad-quoref": {
        "data": [{"paragraphs": [{"context_id": "c", "context": "a", "qas": [{"id": 1, "answers": ANSWERS}]}]}]
    },
    "squad-drop": {"p": {"passage": "a", "qa_pairs": [{"query_id": "q", "answer": {"number": "", "spans": ["a"]}}]}},
    "squad-predictions": {"1": "a"},
    "hotpotqa": [{"_id": 1, "question": "q", "context": [["t", ["s"]]], "supporting_facts": [["t", 0]], "answer": "a"}],
    "hotpotqa-musique": [{"id": 1, "paragraphs": [{"title": "t", "is_supporting": True}], "answer_aliases": ["b"]}],
    "hotpotqa-predictions": {"answer": {"1": "a"}, "sp": {"1": [["t", 0]]}},
    "ragas": [
        {
            "user_input": "q",
            "response": "a",
            "retrieved_contexts": ["c"],
            "retrieved_context_ids": [1],
            "reference": "r",
        }
    ],
    "deepeval": [
        {"input": "q", "actual_output": "a", "context": ["c"], "additional_metadata": {"x": 1}, "tags": ["t"]}
    ],
    "deepeval-run": {"testCases": [{"input": "q", "metricsData": [{}]}], "conversationalTestCases": []},
    "inspect": {
        "eval": {},
        "status": "success",
        "samples": [
            {
                "id": 1,
                "epoch": 1,
                "input": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
                "target": ["t"],
                "output": {"choices": [{"message": {"content": "a"}}], "usage": {"input_tokens": 1}},
                "attachments": {"x": "y"},
            }
        ],
    },
    "promptfoo": {
        "results": {
            "results": [
                {
                    "testIdx": 0,
                    "provider": {"id": "p"},
                    "prompt": {"label": "l"},
                    "vars": {"question": "q", "context": ["c"]},
                    "testCase": {"assert": [{"type": "equals", "value": "r"}], "metadata": {}},
                    "response": {"output": "a", "tokenUsage": {"prompt": 1}},
                    "gradingResult": {"pass": True},
                }
            ]
        }
    },
    "otlp": {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "a" * 32,
                                "spanId": "b" * 16,
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": "2",
                                "status": {"code": 2},
                                "events": [{"name": "exception", "attributes": []}],
                                "attributes": [
                                    {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
                                    {
                                        "key": "input.value",
                                        "value": {"stringValue": '{"messages": [{"role": "user"}]}'},
                                    },
                                    {"key": "output.value", "value": {"kvlistValue": {"values": []}}},
                                    {"key": "tag.tags", "value": {"arrayValue": {"values": [{"stringValue": "t"}]}}},
                                ],
                            }
                        ]
                    }
                ],
            }
        ]
    },
    "openinference": [
        {
            "context": {"trace_id": "t", "span_id": "s"},
            "parent_id": None,
            "start_time": "2025-01-01T00:00:00Z",
            "end_time": 1.0,
            "status": {"status_code": "ERROR"},
            "attributes": {
                "openinference.span.kind": "LLM",
                "input.value": "q",
                "llm.input_messages": [
                    {"message.role": "user", "message.contents": [{"message_content": {"type": "text", "text": "q"}}]}
                ],
                "gen_ai.output.messages": [
                    {
                        "role": "assistant",
                        "parts": [
                            {"type": "tool_call", "id": "1", "name": "n", "arguments": {}},
                            {"type": "tool_call_response", "id": "1", "response": {"a": 1}},
                        ],
                    }
                ],
                "llm.token_count.prompt": 1,
                "metadata": {"m": 1},
            },
        },
        {
            "context": {"trace_id": "t", "span_id": "u"},
            "parent_id": "s",
            "attributes": {
                "openinference.span.kind": "RETRIEVER",
                "retrieval": {"documents": [{"document": {"id": 1, "content": "c", "score": 1, "metadata": "{}"}}]},
            },
        },
        {
            "context": {"trace_id": "t", "span_id": "v"},
            "parent_id": "s",
            "attributes": {"openinference.span.kind": "TOOL", "input.value": {"a": 1}, "tool.name": "n"},
        },
    ],
}
VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    float("nan"),
    "",
    "x",
    "attachment://x",
    [],
    {},
    [None],
    [1],
    [[]],
    [{}],
    {"a": 1},
    10**30,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def damaged(value: Any, rng: random.Random) -> Any:
    """The value with one to three of its parts taken out or replaced."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 2, 3])):
        found = places(value)[1:]
        if not found:
            break
        *path, last = rng.choice(found)
        holder = value
        for key in path:
            holder = holder[key]
        if rng.random() < 0.2:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(rng.choice(VALUES))
    return value


@pytest.mark.parametrize("name", list(SEEDS))
def test_a_damaged_document_is_read_or_refused(tmp_path: Path, name: str) -> None:
    rng = random.Random(name)
    for _ in range(150):
        path = written(tmp_path, "x.json", json.dumps(damaged(SEEDS[name], rng)))
        for read in (cases_of, outputs_of):
            for form in (name.partition("-")[0], None):
                with suppress(InputError):
                    read(path, format=form)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x.run", "1 Q0 d1 1 0.5 r\n1 Q0 d2 2 0.4 r\n"),
        ("x.qrels", "# c\n1 0 d1 1\n1 0 d2 0\n"),
        ("qrels/x.tsv", "query-id\tcorpus-id\tscore\n1\td\t1\n"),
        ("x.yaml", "- id: 1\n  query: &a [q]\n- id: 2\n  tags: *a\n"),
        ("x.csv", "input,actual_output,retrieval_context\nq,a,\"['b']\"\n"),
        ("x.jsonl", '{"input": "q", "target": "t", "metadata": "{}"}\n'),
        ("x.eval", "PK\x03\x04" + "\0" * 60),
    ],
)
def test_damaged_bytes_are_read_or_refused(tmp_path: Path, name: str, text: str) -> None:
    rng = random.Random(name)
    for _ in range(150):
        data = bytearray(text.encode())
        for _ in range(rng.choice([1, 2, 5])):
            data[rng.randrange(len(data))] = rng.randrange(256)
        path = written(tmp_path, name, bytes(data[: rng.choice([len(data), rng.randrange(len(data))])]))
        for read in (cases_of, outputs_of):
            with suppress(InputError):
                read(path)
