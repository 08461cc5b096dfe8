"""How well the embedded word-overlap judge agrees with people, and what it costs.

Area under the ROC curve of its continuous score and of its 0-5 score against human labels, on public sets that are
no part of this repository; for correctness also raw agreement and Cohen's kappa of "pass" (4 or 5) with the human
verdict. 95% intervals are percentile bootstraps over clusters of items that share a source (seed 0). The cost is
process CPU time of the full judge, whole set, median of five runs.

    python benchmarks/lexical.py [--data ../shared/data]
"""

import argparse
import json
import random
import re
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from judgekit.core.sentences import abstention_rule
from judgekit.providers.lexical import judge_abstention
from judgekit.providers.overlap import assess_correctness, judge_correctness, judge_groundedness, overlap_score

DEFAULT_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
N_TIMED_RUNS = 5
N_BOOTSTRAP = 1000
PASS_SCORE = 4
ABSTENTION = "abstention_nomiracl_en.jsonl"
TOLD_TO_SAY = re.compile(r"\W*(?:(i don'?t know|i do not know)|yes,? (?:the )?answer is present)", re.IGNORECASE)

Row = dict[str, Any]


@dataclass(frozen=True)
class Suite:
    """One human-labelled set and how its rows are judged."""

    name: str
    file: str
    label: Callable[[Row], bool]
    """Whether people found the answer good."""
    cluster: Callable[[Row], str]
    """What rows that are not independent share."""
    value: Callable[[Row, bool], float]
    """Continuous score of a row; the flag asks for the strict variant."""
    score: Callable[[Row, bool], int]
    """0-5 score of a row."""


def contexts_of(row: Row) -> list[str]:
    return list(row["context"]) if "context" in row else [row["source"]]


def grounded_value(row: Row, strict: bool) -> float:
    return overlap_score(row["answer"], contexts_of(row), strict=strict)


def grounded_score(row: Row, strict: bool) -> int:
    verdict = judge_groundedness(row["answer"], contexts_of(row), citations=None, strict=strict)
    return int(verdict["score"])


def correct_value(row: Row, strict: bool) -> float:
    return assess_correctness(row["question"], row["answer"], row["context"], row["gold_answers"], strict=strict)[0]


def correct_score(row: Row, strict: bool) -> int:
    verdict = judge_correctness(row["question"], row["answer"], row["context"], row["gold_answers"], strict=strict)
    return int(verdict["score"])


GROUNDEDNESS = (
    Suite(
        "BEGIN",
        "groundedness_begin_wow.jsonl",
        lambda row: bool(row["human_label"] == "Fully attributable"),
        lambda row: str(row["context"]),
        grounded_value,
        grounded_score,
    ),
    Suite(
        "own40",
        "grounded_pairs_own40.jsonl",
        lambda row: bool(row["label"] == 1),
        lambda row: str(row["source"]),
        grounded_value,
        grounded_score,
    ),
    Suite(
        "WiCE",
        "groundedness_wice.jsonl",
        lambda row: bool(row["human_label"] == "supported"),
        lambda row: str(row["context"]),
        grounded_value,
        grounded_score,
    ),
)
CORRECTNESS = (
    Suite(
        "NQ301",
        "correctness_openqa_nq301.jsonl",
        lambda row: bool(row["human_label"]),
        lambda row: str(row["cluster"]),
        correct_value,
        correct_score,
    ),
    Suite(
        "EVOUNA-NQ",
        "correctness_evouna_nq.jsonl",
        lambda row: bool(row["human_label"]),
        lambda row: str(row["cluster"]),
        correct_value,
        correct_score,
    ),
)


def auc(scores: Sequence[float], labels: Sequence[bool]) -> float:
    """Chance that a good item scores above a bad one, a tie counting half (Mann-Whitney U / n1 n0)."""
    good = [score for score, label in zip(scores, labels, strict=True) if label]
    bad = sorted(score for score, label in zip(scores, labels, strict=True) if not label)
    wins = sum(bisect_left(bad, score) + bisect_right(bad, score) for score in good)
    return wins / (2 * len(good) * len(bad))


def kappa(one: Sequence[bool], other: Sequence[bool]) -> tuple[float, float]:
    """Raw agreement and Cohen's kappa of two yes/no judges."""
    n = len(one)
    agreement = sum(a == b for a, b in zip(one, other, strict=True)) / n
    p, q = sum(one) / n, sum(other) / n
    by_chance = p * q + (1 - p) * (1 - q)
    return agreement, (agreement - by_chance) / (1 - by_chance)


def interval(scores: Sequence[float], labels: Sequence[bool], clusters: Sequence[str]) -> tuple[float, float]:
    """95% percentile bootstrap of the AUC, clusters drawn with replacement."""
    rng = random.Random(0)
    order = sorted(range(len(scores)), key=lambda i: clusters[i])
    groups = [list(group) for _, group in groupby(order, key=lambda i: clusters[i])]
    found: list[float] = []
    while len(found) < N_BOOTSTRAP:
        drawn = [i for group in rng.choices(groups, k=len(groups)) for i in group]
        drawn_labels = [labels[i] for i in drawn]
        if len(set(drawn_labels)) == 2:
            found.append(auc([scores[i] for i in drawn], drawn_labels))
    found.sort()
    return found[round(0.025 * N_BOOTSTRAP)], found[round(0.975 * N_BOOTSTRAP) - 1]


def microseconds_per_item(rows: Sequence[Row], score: Callable[[Row, bool], int], strict: bool) -> float:
    runs = []
    for _ in range(N_TIMED_RUNS):
        start = time.process_time()
        for row in rows:
            score(row, strict)
        runs.append(time.process_time() - start)
    return median(runs) / len(rows) * 1e6


def report(suite: Suite, rows: Sequence[Row], strict: bool, *, with_agreement: bool) -> None:
    labels = [suite.label(row) for row in rows]
    values = [suite.value(row, strict) for row in rows]
    scores = [suite.score(row, strict) for row in rows]
    low, high = interval(values, labels, [suite.cluster(row) for row in rows])
    cost = microseconds_per_item(rows, suite.score, strict)
    agreement, chance_corrected = kappa([score >= PASS_SCORE for score in scores], labels)
    tail = f"   {agreement:9.3f} {chance_corrected:5.3f}" if with_agreement else ""
    print(
        f"{suite.name:10} {'strict' if strict else '':6} {len(rows):4} {sum(labels):4}   "
        f"{auc(values, labels):.3f} [{low:.3f}, {high:.3f}]   {auc(scores, labels):.3f}   {cost:7.0f}{tail}"
    )


def report_abstention(rows: Sequence[Row]) -> None:
    """Recorded replies of models that were told to say "I don't know" or "Yes, answer is present".

    The label is how a reply opens; no person read it. Replies that open otherwise have no label and are left out.
    """
    replies = [reply for row in rows for reply in row["system_outputs"].values()]
    opened = [(reply, match[1] is not None) for reply in replies if (match := TOLD_TO_SAY.match(reply))]
    print(f"\nabstention: {len(opened)} of {len(replies)} replies open as they were told to")
    ways: dict[str, Callable[[str], bool]] = {
        "": lambda reply: bool(judge_abstention(reply)["abstains"]),
        "strict": lambda reply: bool(judge_abstention(reply, strict=True)["abstains"]),
        "rule": abstention_rule,
    }
    for name, abstains in ways.items():
        start = time.process_time()
        found = [(abstains(reply), declined) for reply, declined in opened]
        cost = (time.process_time() - start) / len(opened) * 1e6
        right = sum(said == declined for said, declined in found)
        hits = sum(said and declined for said, declined in found)
        n_declined = sum(declined for _, declined in found)
        wrong = sum(said and not declined for said, declined in found)
        print(
            f"NoMIRACL   {name:6} {len(found)} {n_declined:4}   "
            f"agreement {right / len(found):.3f}   found {hits}   wrongly found {wrong}   {cost:.0f} us/item"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Agreement of the word-overlap judge with human labels.")
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder of the labelled sets")
    data: Path = parser.parse_args().data
    present = [suite for suite in (*GROUNDEDNESS, *CORRECTNESS) if (data / suite.file).is_file()]
    if not present:
        print(f"skipped: no data at {data}")
        return
    for title, suites, with_agreement in (("groundedness", GROUNDEDNESS, False), ("correctness", CORRECTNESS, True)):
        print(f"\n{title}")
        print(f"{'set':10} {'':6} {'n':>4} {'good':>4}   AUC continuous [95%]    AUC 0-5   us/item", end="")
        print("   agreement kappa" if with_agreement else "")
        for suite in suites:
            if suite not in present:
                print(f"{suite.name:10} skipped: no {suite.file}")
                continue
            rows = [json.loads(line) for line in (data / suite.file).read_text(encoding="utf-8").splitlines()]
            for strict in (False, True):
                report(suite, rows, strict, with_agreement=with_agreement)
    if (data / ABSTENTION).is_file():
        report_abstention([json.loads(line) for line in (data / ABSTENTION).read_text(encoding="utf-8").splitlines()])
    else:
        print(f"abstention skipped: no {ABSTENTION}")


if __name__ == "__main__":
    main()
