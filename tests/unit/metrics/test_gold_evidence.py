"""Matching of hits and references by file, heading and snippet."""

from typing import Any

import pytest

from judgekit.core.cases import DocumentPlace, Hit, Support
from judgekit.core.text import normalise_path
from judgekit.metrics.gold_evidence import (
    GoldSupports,
    SnippetMode,
    by_rank,
    first_occurrences,
    fold_text,
    heading_parts,
)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("docs/a.md", "docs/a.md"),
        ("./docs/a.md", "docs/a.md"),
        ("docs\\guide\\intro.md", "docs/guide/intro.md"),
        (".\\docs\\a.md", "docs/a.md"),
        ("Gro\u0308\u00dfe.md", "Gr\u00f6\u00dfe.md"),
        (".hidden/a.md", ".hidden/a.md"),
        ("Docs/A.md", "Docs/A.md"),
    ],
)
def test_a_path_is_read_with_slashes_and_nfc(path: str, expected: str) -> None:
    assert normalise_path(path) == expected


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("", ()),
        ("   ", ()),
        ("# Setup", ("Setup",)),
        ("# Setup >  ##  Linux  > ### Apt", ("Setup", "Linux", "Apt")),
        ("Setup\t>\u00a0Linux", ("Setup", "Linux")),
        ("A>B", ("A>B",)),
        ("A >B", ("A >B",)),
        ("a > > b", ("a", "b")),
        ("A ->  B", ("A -> B",)),
        ("#", ()),
        ("C# guide", ("C# guide",)),
        (("Setup", "", "##", "Two  words"), ("Setup", "Two words")),
        (("A > B",), ("A > B",)),
        ("Cafe\u0301", ("Caf\u00e9",)),
    ],
)
def test_headings_become_clean_parts(heading: tuple[str, ...] | str, expected: tuple[str, ...]) -> None:
    assert heading_parts(heading) == expected


def test_snippets_are_folded_by_case_white_space_and_nfc() -> None:
    assert fold_text("  STRASSE \n und  Stra\u00dfe Cafe\u0301 ") == "strasse und strasse caf\u00e9"


def support(heading: Any = "", path: str = "a.md", **more: Any) -> Support:
    return Support(rel_path=path, heading_path=heading, **more)


def hit(heading: Any = "", path: str | None = "a.md", **more: Any) -> Hit:
    return Hit(rel_path=path, heading_path=heading, **more)


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        pytest.param(support("Setup"), hit("Setup > Linux"), True, id="prefix"),
        pytest.param(support("Setup"), hit("Setup guide"), False, id="part-not-letters"),
        pytest.param(support("Setup > Linux"), hit("Setup"), False, id="hit-is-wider"),
        pytest.param(support(""), hit("Anything"), True, id="whole-file"),
        pytest.param(support(""), hit("Anything", "b.md"), False, id="other-file"),
        pytest.param(support("setup"), hit("Setup"), False, id="case-counts"),
        pytest.param(support(), hit(path=None), False, id="hit-without-path"),
        pytest.param(support("Caf\u00e9"), hit("Cafe\u0301"), True, id="C18-heading"),
        pytest.param(support(path="Gr\u00f6\u00dfe.md"), hit(path="Gro\u0308\u00dfe.md"), True, id="C18-path"),
        pytest.param(
            support(["Guide", "Backup/Restore"]), hit("/Guide/Backup/Restore/"), False, id="C27-slash-is-no-separator"
        ),
        pytest.param(support(["Guide", "Backup/Restore"]), hit(["Guide", "Backup/Restore"]), True, id="C27-list"),
        pytest.param(support(["Guide", "A > B"]), hit(["Guide", "A > B"]), True, id="C27-separator-in-a-title"),
        pytest.param(support(["A > B"]), hit("A > B"), False, id="C27-separator-in-a-string"),
        pytest.param(
            support(path="docs/guide/intro.md"), hit(path="docs\\guide\\intro.md"), True, id="C28-windows-path"
        ),
    ],
)
def test_a_hit_matches_by_file_and_heading_prefix(gold: Support, found: Hit, expected: bool) -> None:
    assert bool(GoldSupports((gold,)).matched_by(found)) is expected


SNIPPETS = support(snippets=["Run apt-get", "other"])


@pytest.mark.parametrize(
    ("mode", "found", "expected"),
    [
        ("if_text", hit(text="please RUN  apt-get now"), True),
        ("if_text", hit(text="nothing"), False),
        ("if_text", hit(), True),
        ("if_text", hit(text=""), True),
        ("if_text", hit(text="nothing", text_truncated=True), True),
        ("require", hit(text="the other"), True),
        ("require", hit(), False),
        ("require", hit(text="nothing", text_truncated=True), False),
        ("require", hit(text="run apt-get", text_truncated=True), True),
        ("ignore", hit(text="nothing"), True),
    ],
)
def test_a_support_with_snippets_looks_into_the_text(mode: SnippetMode, found: Hit, expected: bool) -> None:
    assert bool(GoldSupports((SNIPPETS,), mode).matched_by(found)) is expected


@pytest.mark.parametrize("snippets", [[], ["", "  "]])
def test_a_support_without_snippets_or_with_blank_ones_needs_no_text(snippets: list[str]) -> None:
    assert GoldSupports((support(snippets=snippets),), "require").matched_by(hit())


def test_supports_are_told_apart_by_index_and_equal_ones_counted_once() -> None:
    gold = GoldSupports([support("Setup"), support(), support("# Setup"), support("Setup", "b.md")])
    assert gold.matched_by(hit("Setup > Linux")) == [0, 1, 2]
    assert gold.matched_by(hit("Intro")) == [1]
    assert gold.n_distinct == 3


def test_references_match_without_any_text() -> None:
    gold = GoldSupports([SNIPPETS, support("Setup", "b.md"), support("Plan")], "require")
    cited = gold.cited_by([DocumentPlace(rel_path="./a.md", heading_path="Setup"), DocumentPlace(rel_path="c.md")])
    assert cited == {0}


def test_hits_stand_by_their_rank_or_position_and_a_chunk_id_counts_once() -> None:
    hits = [Hit(chunk_id="x", rank=7), Hit(chunk_id="y"), Hit(chunk_id="x"), Hit(), Hit()]
    ranked = by_rank(hits)
    assert [(rank, entry.chunk_id) for rank, entry in ranked] == [(2, "y"), (3, "x"), (4, None), (5, None), (7, "x")]
    assert [rank for rank, _ in first_occurrences(ranked)] == [2, 3, 4, 5]
