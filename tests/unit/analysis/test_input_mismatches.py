"""Labels and hits that are written in different ways raise a warning; a bad retriever does not."""

from collections.abc import Sequence

import pytest

from judgekit.analysis import input_mismatches
from judgekit.analysis.input_mismatches import NameForms
from judgekit.core.cases import Case, Hit, SystemOutput

Names = Sequence[str]


def paths(*cases: tuple[Names, Names]) -> list[tuple[str, str]]:
    forms = NameForms()
    for number, (gold, hits) in enumerate(cases):
        forms.add(
            Case.model_validate({"id": str(number), "gold_supports": [{"rel_path": path} for path in gold]}),
            SystemOutput(case_id=str(number), retrieved=tuple(Hit(rel_path=path) for path in hits)),
        )
    return forms.warnings()


def ids(*cases: tuple[Names, Names]) -> list[tuple[str, str]]:
    forms = NameForms()
    for number, (gold, hits) in enumerate(cases):
        forms.add(
            Case.model_validate({"id": str(number), "expected_doc_ids": gold}),
            SystemOutput(case_id=str(number), retrieved=tuple(Hit(doc_id=name) for name in hits)),
        )
    return forms.warnings()


@pytest.mark.parametrize(
    "hit",
    [
        "/mnt/kb/docs/guide/intro.md",
        "kb/docs/guide/intro.md",
        "C:\\kb\\docs\\guide\\intro.md",
        "https://kb.example/docs/guide/intro.md#top",
        "docs/guide/intro.html",
        "docs/guide/intro",
        "intro",
        "intro.md",
        "Docs/Guide/Intro.md",
        "docs%2Fguide%2Fintro.md",
        "docs/guide//intro.md",
    ],
)
def test_the_same_file_written_differently_is_named_with_both_forms(hit: str) -> None:
    [(code, message)] = paths((["docs/guide/intro.md"], [hit]))
    assert code == "paths_look_different"
    assert message == (
        "no gold path of this run occurs among the hits, and they look different: gold 'docs/guide/intro.md', hit "
        f"{hit.replace(chr(92), '/')!r}; scores over paths are 0 until both are written alike"
    )


@pytest.mark.parametrize(
    ("gold", "hit"),
    [
        ("12", "doc_12"),
        ("0012", "12"),
        ("doc-12", "DOC_12"),
        ("a%20b", "a b"),
        ("12", "guide/intro.md"),
        ("intro", "3f2b8c1e-5d4a-4b6c-9e8f-0a1b2c3d4e5f"),
        ("intro", "9c56cc51b374c3ba189210d5b6d4bf57790d351c"),
        ("intro", "57"),
    ],
)
def test_ids_of_another_form_are_named_with_both_forms(gold: str, hit: str) -> None:
    [(code, message)] = ids(([gold], [hit]))
    assert code == "ids_look_different"
    assert f"no gold document id of this run occurs among the hits, and they look different: gold {gold!r}" in message
    assert f"hit {hit!r}" in message


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param([(["docs/a.md"], ["docs/b.md", "docs/c.md"])], id="wrong documents"),
        pytest.param([(["docs/a/index.md"], ["docs/b/index.md"])], id="files of one name"),
        pytest.param([(["a.md"], ["docs/b.md"])], id="other folders"),
        pytest.param([(["LICENSE"], ["docs/a.md"])], id="no extension"),
        pytest.param([(["docs/a.md"], ["/kb/docs/a.md"]), (["docs/b.md"], ["docs/b.md"])], id="one that matches"),
        pytest.param([(["docs/a.md"], ["docs/b.md"]), (["docs/c.md"], ["docs/a.md"])], id="gold of another case"),
        pytest.param([(["docs/c.md"], ["docs/a.md"]), (["docs/a.md"], ["docs/b.md"])], id="gold that comes later"),
        pytest.param([(["docs\\a.md"], ["./docs/a.md"])], id="what matching reads as equal"),
        pytest.param([(["index.md", "a.md", "b.md"], ["docs/index.md", "src/x.md", "y.md"])], id="a chance likeness"),
        pytest.param([([], ["docs/a.md"])], id="no labels"),
        pytest.param([(["docs/a.md"], [])], id="no hits"),
        pytest.param([], id="no cases"),
    ],
)
def test_a_system_that_finds_the_wrong_files_raises_no_false_alarm(cases: list[tuple[Names, Names]]) -> None:
    assert paths(*cases) == []


@pytest.mark.parametrize(
    ("gold", "hits"),
    [
        (["12", "57"], ["100", "125"]),
        (["doc-1"], ["doc-10", "doc-11"]),
        (["intro"], ["returns-faq"]),
        (["a-3"], ["b-3"]),
        (["12", "x"], ["y", "z"]),
    ],
)
def test_wrong_ids_of_the_same_form_raise_no_false_alarm(gold: Names, hits: Names) -> None:
    assert ids((gold, hits)) == []


def test_different_folders_in_front_need_more_than_one_likeness() -> None:
    gold = ["a/one.md", "a/two.md", "a/three.md"]
    assert paths((gold, ["x/a/one.md", "y/b/four.md"])) == []
    assert [code for code, _ in paths((gold, ["x/a/one.md", "y/a/two.md"]))] == ["paths_look_different"]


def test_memory_stays_bounded_and_a_late_match_is_still_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_mismatches, "MOST_KEPT", 3)
    many = [([f"docs/{n}.md"], [f"/kb/docs/{n}.md", f"/kb/docs/{n + 1}.md"]) for n in range(50)]
    assert [code for code, _ in paths(*many)] == ["paths_look_different"]
    assert paths(*many, (["docs/0.md"], ["docs/0.md"])) == []
    assert paths(*many, ([], ["docs/0.md"])) == []


def test_long_names_are_shown_by_their_ends() -> None:
    [(_, message)] = paths((["docs/intro.md"], ["/" + "x" * 500 + "/docs/intro.md"]))
    assert len(message) < 400
    assert "x/docs/intro.md'" in message
