"""What a report embeds: capped texts, strict JSON that cannot leave its element, and a policy that fits the page."""

import base64
import hashlib
import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.core.cases import Case, Hit, Message, Support, SystemOutput, ToolCall
from judgekit.core.human_labels import HumanLabel, label_fields
from judgekit.core.judgments import CriterionVerdict, JudgeFailure, Judgment, Verdict
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import CaseRecord
from judgekit.core.written_labels import read_written
from judgekit.reports.case_data import CaseData, caps_for, embedded
from judgekit.reports.case_details import Caps, CaseViewer
from judgekit.reports.charts import share_bar
from judgekit.reports.figures import number
from judgekit.reports.pages import asset, policy, render
from judgekit.reports.safe_text import inert

VIEWER = CaseViewer(Caps(), {}, lambda case, output: [[0] for _ in output.retrieved], lambda case: {"tags": case.tags})


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_embedded_json_reads_back_and_holds_nothing_that_html_reads(value: object) -> None:
    text = embedded(value)
    assert not set("<>&\u2028\u2029") & set(text)
    expected = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    assert json.loads(text) == expected


@given(st.text())
def test_inert_text_has_no_controls_and_no_overrides_of_direction(text: str) -> None:
    found = inert(text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", found)
    found.encode("utf-8")


def test_what_scripts_need_stays() -> None:
    persian = "\u0645\u06cc\u200c\u0631\u0648\u0645"
    family = "\U0001f468\u200d\U0001f469"
    assert inert(f"{persian} {family} \u200e") == f"{persian} {family} \u200e"


def test_an_index_has_numbers_and_the_places_of_reasons() -> None:
    data = CaseData(VIEWER, 3, ["mrr", "never"], ["tags"])
    records = [
        CaseRecord(
            "a",
            Case(id="a", question="q", tags=("x", "y")),
            scores={"mrr": (0.123456, None), "never": (None, "n/a: no")},
        ),
        CaseRecord("b", scores={"mrr": (None, "failed: timeout"), "never": (None, "n/a: no")}),
        CaseRecord("c", scores={"mrr": (1.0, None)}),
    ]
    blocks = list(data.blocks(records))
    index = json.loads(data.index({"run": "r"}))
    assert len(blocks) == 1
    # `never` says nothing about any case, so it has no column.
    assert index["scores"] == {"mrr": [0.1235, "1", 1]}
    assert index["reasons"] == ["n/a: no", "failed: timeout"]
    assert index["failures"] == {"values": ["system: timeout"], "of": [[], [0], []]}
    assert index["dimensions"] == {"tags": {"values": ["x", "y"], "of": [[0, 1], [], []]}}
    assert (index["starts"], index["packed"]) == ([0], 3)


def test_a_hit_says_what_it_matches_and_a_cut_text_how_long_it_was() -> None:
    viewer = CaseViewer(Caps(context=100), {}, lambda case, output: [[0], []], lambda case: {})
    case = Case(id="a", question="q", gold_supports=(Support(rel_path="a.md"),), expected_chunk_ids=("k2",))
    hits = (Hit(rel_path="a.md", heading_path=("A", "B"), text="0123456789" * 13), Hit(chunk_id="k2", text="short"))
    details = viewer.details(CaseRecord("a", case, SystemOutput(case_id="a", answer="x", retrieved=hits)))
    first, second = details["hits"]
    assert (first["place"], first["text"], first["supports"]) == (
        "a.md \u203a A \u203a B",
        ["0123456789" * 10, 130],
        [0],
    )
    assert (second["text"], second["supports"], second["expected"]) == ("short", [], True)


def test_a_conversation_shows_its_last_messages_and_how_many_there_are() -> None:
    viewer = CaseViewer(Caps(contexts=200, answer=150), {}, lambda case, output: [[]], lambda case: {})
    said = [Message(role="user", text=f"m{number}") for number in range(70)]
    call = ToolCall(name="find", arguments={"x": 1})
    case = Case(id="a", messages=(*said, Message(role="user", text="long " * 40)), expected_tool_calls=(call,))
    turns = (
        Message(role="assistant", text="end\u202e", tool_calls=(ToolCall(name="find"),), retrieved=(Hit(text="t"),)),
    )
    details = viewer.details(CaseRecord("a", case, SystemOutput(case_id="a", turns=turns)))
    shown = details["conversation"]
    assert (details["n_messages"], len(shown), details["calls"]) == (72, 60, ['find {"x":1}'])
    assert shown[-1] == {"number": 72, "role": "assistant", "text": "end\ufffd\ncalls find {}", "n_hits": 1}
    assert (shown[-2]["text"], shown[-2]["n_hits"]) == ([("long " * 40)[:150], 200], None)
    assert shown[0] == {"number": 13, "role": "user", "text": "m12", "n_hits": None}


def test_human_labels_of_any_kind_are_shown_in_words() -> None:
    values = (4, True, "on\u202e", {"short": True, "source": False, "polite": "cannot tell"})
    said = [read_written(value) for value in values]
    labels = [
        HumanLabel(case_id="a", annotator=f"p{place}", **label_fields(label))
        for place, label in enumerate(said)
        if label is not None
    ]
    viewer = CaseViewer(Caps(), {}, lambda case, output: [], lambda case: {}, {"a": labels})
    shown = viewer.details(CaseRecord("a"))["labels"]
    assert [label["says"] for label in shown] == [
        4,
        "pass",
        "on\ufffd",
        "short met, source not met, polite cannot tell",
    ]


def test_a_judgment_shows_its_failure_or_its_score_and_probabilities() -> None:
    judgment = Judgment(
        case_id="a",
        judge="groundedness",
        prompt_version="v1",
        prompt_sha256="0",
        input_sha256="0",
        model_id="m",
        provider="p",
        model="m-1",
        key="k",
        parameters={},
        failure=JudgeFailure(kind="invalid", message="no JSON"),
        raw_reply="I think",
        parser_version=1,
        created_at="now",
    )
    [shown] = VIEWER.details(CaseRecord("a", judgments=(judgment,)))["judged"]
    assert shown["failure"] == ["invalid", "no JSON"]
    assert shown["reply"] == "I think"
    assert "score" not in shown
    verdict = Verdict(score=4, probabilities={"5": 0.3, "4": 0.7})
    judged = judgment.model_copy(update={"failure": None, "verdict": verdict})
    [shown] = VIEWER.details(CaseRecord("a", judgments=(judged,)))["judged"]
    assert (shown["score"], shown["chances"]) == (4, "probability: 4 0.700, 5 0.300")
    assert "said" not in shown
    parts = (CriterionVerdict(id="short", met=True, evidence="two"), CriterionVerdict(id="kind", met=False))
    for verdict, said in (
        (Verdict(label="on"), "on"),
        (Verdict(cannot_tell=True), "cannot tell"),
        (Verdict(criteria=parts), "0.50"),
    ):
        judged = judgment.model_copy(update={"failure": None, "verdict": verdict})
        [shown] = VIEWER.details(CaseRecord("a", judgments=(judged,)))["judged"]
        assert shown["said"] == said
    assert [item[:2] for item in shown["criteria"]] == [["short", "met"], ["kind", "not met"]]
    assert "passes" not in shown
    rubric = {"judge": "groundedness", "version": "v1", "ask": "Is it?", "labels": {"on": "fits", "off": "does not"}}
    for passing, passes in ((None, None), (["on"], True), (["off"], False)):
        prompt = PromptTemplate.model_validate(rubric | ({} if passing is None else {"pass": passing}))
        viewer = replace(VIEWER, prompts={"groundedness/v1": prompt})
        judged = judgment.model_copy(update={"failure": None, "verdict": Verdict(label="on")})
        [shown] = viewer.details(CaseRecord("a", judgments=(judged,)))["judged"]
        assert (shown.get("passes"), shown["means"]) == (passes, "fits")


@pytest.mark.parametrize(
    ("n_cases", "n_stored", "answer"),
    [
        (40, 400_000, 8000),  # a small run is shown in full
        (10_000, 200_000_000, 4000),  # 100 MB of 200 MB
        (4500, 2_700_000_000, 2962),  # what 4,500 cases show at most is 270 MB: 100 of 270 of 8,000
        (50_000, 10**12, 266),  # 3 GB at most
    ],
)
def test_caps_shrink_with_the_size_of_a_run(n_cases: int, n_stored: int, answer: int) -> None:
    assert caps_for(n_cases, n_stored).answer == answer


def test_the_policy_names_the_hashes_of_what_the_page_holds() -> None:
    page = "".join(render("message.html", {"title": "t", "message": "m", "listed": True}))
    [style] = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in policy()
    assert "script-src" not in policy()
    script = base64.b64encode(hashlib.sha256(asset("report.js").encode()).digest()).decode()
    assert f"script-src 'sha256-{script}'" in policy("report.js")
    assert "unsafe" not in policy("report.js")


def test_the_script_never_makes_markup_of_text() -> None:
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|srcdoc", asset("report.js")
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.5245, "2.525"), (0.06249, "0.063"), (-0.0004, "0.000"), (3.0, "3.000"), (None, "n/a"), (1e12, f"{10**12}.000")],
)
def test_a_figure_reads_the_same_before_and_after_it_is_stored(value: float | None, text: str) -> None:
    assert number(value).removeprefix("-") == text
    assert number(None if value is None else round(value, 4)) == number(value)


def test_an_interval_bar_stays_on_its_track_and_is_empty_without_a_value() -> None:
    assert share_bar(None, (None, None)) == ""
    assert share_bar(7.0, (6.5, 7.5), 5) == ""
    drawn = share_bar(1.0, (0.9, 1.1))
    for x, width in re.findall(r'x="([\d.]+)" y="\d+" width="([\d.]+)"', drawn):
        assert 0 <= float(x) <= float(x) + float(width) <= 120.1
