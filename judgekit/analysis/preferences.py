"""What a judge of preference says over all pairs of answers: counts of picks, ties and flips, and strengths of runs."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

from judgekit.core.cases import Case
from judgekit.core.judgments import Verdict
from judgekit.stats.bradley_terry import Match, strengths

PAIR = "compared_pair"
"""Metadata of a case of a comparison of several runs: the pair of runs, such as `A-C`."""

SOURCE = "compared_case"
"""Metadata of such a case: its id in the runs."""

_WON = {"A": 1.0, "B": 0.0, "tie": 0.5}
"""What a verdict is worth for A; a flip says nothing of the answers."""


def letter(number: int) -> str:
    """What the run of this number is called, from 0: `A`, `B`, ..."""
    return chr(ord("A") + number)


def preference_record(
    verdicts: Mapping[str, Verdict], equal: Collection[str], cases: Iterable[tuple[Case, Hashable]], runs: Sequence[str]
) -> dict[str, Any]:
    """What metrics.json says of a judge of preference, beside what it says of every judge.

    Args:
        verdicts: by case id, of the pairs that were judged in both orders.
        equal: ids of cases whose two answers are equal, which nobody was asked about.
        cases: the cases with their clusters.
        runs: ids of the compared runs, A first; empty if outputs brought the other answer themselves.

    Returns:
        A strict-JSON object. `n_pairs` pairs were judged in both orders: `n_a` and `n_b` picks, `n_tie` and `n_flip`.
        `flips` says which ones: the same place picked twice, or a tie in one order only.
    """
    found = Counter(verdict.label for verdict in verdicts.values())
    record: dict[str, Any] = {
        "runs": {letter(number): run for number, run in enumerate(runs)},
        "n_pairs": len(verdicts),
        **{f"n_{label.lower()}": found[label] for label in ("A", "B", "tie", "flip")},
        "n_decided": found["A"] + found["B"],
        "n_equal": len(equal),
        "flips": dict(sorted(Counter(filter(None, map(_flip, verdicts.values()))).items())),
        "strengths": None,
    }
    if len(runs) > 2:
        record["strengths"], record["undefined_reason"] = _strengths(verdicts, equal, cases, runs)
    return record


def _flip(verdict: Verdict) -> str:
    """Which kind of flip a verdict is; blank if it is none."""
    if verdict.label != "flip":
        return ""
    picks = set(verdict.picks or ())
    return "tie_and_pick" if "tie" in picks else f"{min(picks, default='')}_twice"


def _strengths(
    verdicts: Mapping[str, Verdict], equal: Collection[str], cases: Iterable[tuple[Case, Hashable]], runs: Sequence[str]
) -> tuple[list[dict[str, Any]] | None, str | None]:
    """Bradley-Terry strengths of the runs, or why they cannot be given; equal answers are ties."""
    matches: list[Match] = []
    clusters: list[Hashable] = []
    for case, cluster in cases:
        verdict = verdicts.get(case.id)
        won = 0.5 if case.id in equal else None if verdict is None else _WON.get(str(verdict.label))
        if won is not None:
            first, _, second = str(case.metadata[PAIR]).partition("-")
            matches.append(Match(ord(first) - ord("A"), ord(second) - ord("A"), won))
            clusters.append(cluster)
    fitted = strengths(matches, clusters, len(runs))
    if fitted is None:
        return None, "some runs won against others without ever losing or a tie, so no finite strength fits"
    rows = [
        {"run": letter(number), "run_id": runs[number], "value": one.value, "low": one.low, "high": one.high}
        for number, one in enumerate(fitted)
    ]
    return sorted(rows, key=lambda row: -float(row["value"])), None
