"""Ids that are kept in few bytes, and the order of ids that is kept in none."""

import hashlib
import random

from judgekit.analysis.verdict_pairs import draw_order, draw_sample
from judgekit.core.history_points import answers_sha256
from judgekit.core.judgments import JudgeInput
from judgekit.core.streams import IdList, IdOrder

IDS = ["a", "", "\xe9\u4e2d", "\ud800", "b" * 300, *(f"c{number}" for number in range(50))]


def test_a_list_of_ids_is_read_and_drawn_from_like_any_other() -> None:
    found = IdList()
    assert list(found) == []
    for name in IDS:
        found.append(name)
    assert list(found) == IDS
    assert (found[-1], found[2:5], len(found)) == (IDS[-1], IDS[2:5], len(IDS))
    for draw in (draw_order, draw_sample):
        assert draw(found, 7, random.Random(1)) == draw(IDS, 7, random.Random(1))


def test_what_a_judge_was_asked_about_is_one_hash_in_whatever_order_it_comes() -> None:
    inputs = [JudgeInput(case_id=name, judge="j", variables={"q": name}) for name in ("b", "c10", "c9", "\xe9")]
    lines = [f"{len(item.case_id)} {item.case_id} {item.sha256}\n" for item in inputs]
    wanted = hashlib.sha256("".join(lines).encode()).hexdigest()
    assert {answers_sha256(inputs), answers_sha256(inputs[::-1]), answers_sha256(iter(inputs))} == {wanted}


def test_an_order_of_ids_tells_them_apart_and_counts_them() -> None:
    assert IdOrder(IDS) == IdOrder(IDS)
    assert IdOrder(IDS).n == len(IDS)
    for other in (IDS[::-1], IDS[:-1], ["ab", "c"]):
        assert IdOrder(other) != IdOrder(IDS)
    assert IdOrder(["ab", "c"]) != IdOrder(["a", "bc"])
