"""What differs between two runs besides the answers."""

from dataclasses import replace
from typing import Any

import pytest

from judgekit.analysis.run_differences import causes, changed, chunker_match, query_notes
from judgekit.core.comparison import JudgeIdentity, RunIdentity

JUDGE = JudgeIdentity(
    model_id="m", model="judge-2025-01-01", provider="openai_compatible", build_hash=None, served_models=frozenset(),
    fingerprints=frozenset(), prompt_version="v1", prompt_sha256="a" * 64, args={"pass_score": 4},
)  # fmt: skip
RUN = RunIdentity(
    run_id="r", dataset_sha256="d" * 64, parser_version="3", errors="exclude", versions={"chunker_version": "c1"},
    judges={"groundedness": JUDGE}, metrics={"retrieval": {"snippets": "if_text"}},
    config={"seed": 0, "system": {"path": "a.jsonl"}}, abstention="flag",
)  # fmt: skip


def other(**fields: Any) -> RunIdentity:
    return replace(RUN, **fields)


def judged(**fields: Any) -> RunIdentity:
    return other(judges={"groundedness": replace(JUDGE, **fields)})


@pytest.mark.parametrize(
    ("b", "kind", "line", "is_refused"),
    [
        (other(dataset_sha256="e" * 64), "dataset", "data set (dddddddddddd, then eeeeeeeeeeee)", True),
        (judged(model="judge-2026"), "judge", "judge groundedness: model (judge-2025-01-01, then judge-2026)", True),
        (judged(provider="own"), "judge", "model (openai_compatible judge-2025-01-01, then own judge-2025", True),
        (judged(args={"pass_score": 3}), "judge", "arguments (pass_score 4, then pass_score 3)", True),
        (judged(prompt_version="v2", prompt_sha256="b" * 64), "prompt", "wording (v1, then v2)", True),
        (judged(prompt_sha256="b" * 64), "prompt", "wording (v1 aaaaaaaaaaaa, then v1 bbbbbbbbbbbb)", True),
        (other(parser_version="4"), "parser", "parser of judge replies (3, then 4)", True),
        (judged(request_fields={"reasoning_effort": "low"}), "judge", "request (reasoning_effort absent", True),
        (judged(temperature_accepted=False), "judge", "temperature (0, then the provider's)", False),
        (other(versions={"chunker_version": "c2"}), "index", "chunker (c1, then c2)", False),
        (other(versions={"chunker_version": "c1", "embedding_model": "e"}), "index", "embedding model (unknown", False),
        (other(versions={"chunker_version": "c1", "prompt_version": "p"}), "prompt", "system prompt (unknown", False),
        (other(metrics={"retrieval": {"snippets": "ignore"}}), "metric", "settings of retrieval (snippets if_t", False),
        (other(errors="as_zero"), "metric", "how failed cases count (exclude, then as_zero)", False),
        (other(metrics_version=2), "metric", "definition of figures (version 1, then version 2)", False),
        (other(abstention="rule"), "metric", "what says which answers abstain (flag, then rule)", False),
        (other(judges={}), "config", "judge groundedness (there, then absent)", False),
        (other(config={"system": {"path": "b.jsonl"}}), "config", "system.path (a.jsonl, then b.jsonl)", False),
    ],
)
def test_each_difference_is_named_once(b: RunIdentity, kind: str, line: str, is_refused: bool) -> None:
    (cause,) = causes(RUN, b)
    assert (cause.kind, cause.is_refused) == (kind, is_refused)
    assert line in cause.line


def test_a_run_does_not_differ_from_itself() -> None:
    assert causes(RUN, RUN) == ()
    assert changed(RUN, RUN) == ()
    assert chunker_match(RUN, RUN) == "exact"


@pytest.mark.parametrize(
    ("first", "second", "match"),
    [
        ({"chunker_version": "c1"}, {"chunker_version": "c2"}, "fallback_doc_span"),
        ({"chunker_version": "c1"}, {}, "unknown"),
        ({}, {"chunker_version": "c1"}, "unknown"),
        ({}, {}, "unknown"),
    ],
)
def test_chunkers_match_only_where_both_runs_name_one(
    first: dict[str, str], second: dict[str, str], match: str
) -> None:
    assert chunker_match(replace(RUN, versions=first), replace(RUN, versions=second)) == match


def test_served_models_and_builds_are_told_apart_where_both_are_known() -> None:
    first = judged(served_models=frozenset({"x-1"}), fingerprints=frozenset({"f1"}))
    moved = judged(served_models=frozenset({"x-2"}))
    assert [cause.line for cause in causes(first, moved)] == ["judge groundedness: served model (x-1, then x-2)"]
    assert causes(RUN, moved) == ()  # the one says nothing
    built, rebuilt = judged(build_hash="1" * 64), judged(build_hash="2" * 64)
    assert causes(built, rebuilt)[0].is_refused
    for upstreams, is_refused in (({"Azure", "DeepInfra"}, False), ({"DeepInfra"}, True)):
        (other,) = causes(judged(upstreams=frozenset({"Azure"})), judged(upstreams=frozenset(upstreams)))
        assert (other.what, other.is_refused) == ("judge groundedness: upstream of the gateway", is_refused)
    (fingerprint,) = causes(first, judged(served_models=frozenset({"x-1"}), fingerprints=frozenset({"f2"})))
    assert (fingerprint.what, fingerprint.is_refused) == ("judge groundedness: fingerprint of the server", False)


def test_what_refuses_comes_first() -> None:
    b = replace(judged(model="z"), versions={"chunker_version": "c2"})
    assert [cause.is_refused for cause in causes(RUN, b)] == [True, False]


def test_notes_of_cases_name_causes_in_a_few_words() -> None:
    b = replace(
        judged(model="z", prompt_sha256="b" * 64),
        versions={"chunker_version": "c2", "embedding_model": "e", "prompt_version": "p2"},
    )
    assert query_notes(causes(RUN, b)) == [
        "judge differs",
        "judge prompt differs",
        "chunker differs",
        "embedding model differs",
        "system prompt differs",
    ]


def test_changed_names_paths_of_the_config_and_versions() -> None:
    b = other(config={"seed": 1, "system": {"path": "b.jsonl"}, "name": "x"}, versions={"chunker_version": "c2"})
    assert changed(RUN, b) == ("seed", "system.path", "versions.chunker_version")
