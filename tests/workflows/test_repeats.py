"""Several answers to one case: they are cases of their own that stay together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.case_parts import CasePart
from judgekit.core.cases import Case
from judgekit.core.errors import ConfigError
from judgekit.core.repeats import answers_to, asked_id, check_repeats
from judgekit.workflows.models import Options
from judgekit.workflows.setup import set_up


def repeated(cases: Sequence[Case], n: int) -> list[Case]:
    check_repeats(cases, n)
    return [answer for case in cases for answer in answers_to(case, n)]


def test_each_case_is_asked_n_times_under_ids_of_its_own() -> None:
    found = repeated([Case(id="q1", metadata={"topic": "a"}), Case(id="q2")], 3)
    assert [case.id for case in found] == ["q1", "q1#2", "q1#3", "q2", "q2#2", "q2#3"]
    assert found[1].metadata == {"topic": "a", "repeat_of": "q1"}
    assert [asked_id(case) for case in found] == ["q1"] * 3 + ["q2"] * 3


def test_an_id_that_a_repeat_would_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="'q1#2' is the id of a case, and of a repeat of 'q1'"):
        repeated([Case(id="q1"), Case(id="q1#2")], 2)


def test_cases_that_hold_repeats_already_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"'q1#2' has metadata.repeat_of already"):
        repeated(repeated([Case(id="q1")], 2)[1:], 2)


@pytest.mark.parametrize(
    "part", [CasePart(limit=2), CasePart(sample=2), CasePart(shard="1/2"), CasePart(case_ids=("q1", "q3"))]
)
def test_a_part_of_the_file_has_all_answers_to_a_case_or_none(part: CasePart) -> None:
    cases = repeated([Case(id=f"q{number}") for number in range(4)], 3)
    found = part.of(cases)
    assert len(found) in (3, 6)  # of a shard, which is not of a fixed size
    assert {case.id for case in found} == {case.id for case in cases if asked_id(case) in set(map(asked_id, found))}


def test_a_sample_draws_the_same_cases_with_repeats_as_without() -> None:
    plain = [Case(id=f"q{number}") for number in range(20)]
    alone = [case.id for case in CasePart(sample=5, sample_seed=1).of(plain)]
    together = CasePart(sample=5, sample_seed=1).of(repeated(plain, 2))
    assert list(dict.fromkeys(map(asked_id, together))) == alone


@pytest.mark.parametrize(
    ("further", "clustered"),
    [({"repeats": 2}, "metadata.repeat_of"), ({"repeats": 2, "cluster_by": "category"}, "category"), ({}, None)],
)
def test_intervals_take_the_answers_to_a_case_together(
    tmp_path: Path, further: dict[str, Any], clustered: str | None
) -> None:
    (tmp_path / "cases.jsonl").write_text(json.dumps({"id": "q1", "question": "?", "category": "a"}))
    (tmp_path / "outputs.jsonl").write_text(
        "\n".join(json.dumps({"case_id": name, "answer": "x"}) for name in ("q1", "q1#2"))
    )
    config = {"name": "t", "cases": "cases.jsonl", "system": {"path": "outputs.jsonl"}, **further}
    (tmp_path / "config.json").write_text(json.dumps(config))
    setup = set_up(tmp_path / "config.json", Options())
    assert setup.config.cluster_by == clustered
    assert len(setup.cases) == (setup.config.repeats or 1)
