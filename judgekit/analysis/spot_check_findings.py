"""The spot check of one judge as findings: rate, parts, shift, alarm, agreement, and the pairs that disagree.

Disagreement alone ranks judges backwards (one that always says 4 never disagrees with itself), so chance-corrected
agreement and the signed shift stand beside it.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from judgekit.analysis.disagreement_rates import (
    DEFAULT_THRESHOLD,
    Draw,
    alarm,
    exact_interval,
    future_interval,
    inconsistent_rate,
    rate_against_threshold,
)
from judgekit.analysis.verdict_pairs import Pair, ScoredPair, compare_pair, raw_verdict
from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.core.spot_checks import DESIGN
from judgekit.core.verdict_kinds import Kind, said_text
from judgekit.stats.agreement import cohen_kappa, gwet_ac2, krippendorff_alpha, quadratic_weighted_kappa
from judgekit.stats.clusters import cluster_sums
from judgekit.stats.means import mean
from judgekit.stats.paired import sign_flip_p

INDICATIVE_BELOW = 50
"""Agreement from fewer pairs is marked as indicative."""

MOST_SHOWN = 50
"""Disagreeing pairs that are kept with their reasonings."""

REASONING_CHARACTERS = 400
"""Of a reasoning, what is kept beside a disagreeing pair."""

_UNKNOWN = Draw()


def spot_check_report(  # noqa: PLR0913  # all but the pairs are keywords
    pairs: Sequence[Pair],
    *,
    kind: Kind,
    seed: int,
    against: Mapping[str, Any],
    threshold: float = DEFAULT_THRESHOLD,
    of_all: tuple[int, int] | None = None,
    draw: Draw = _UNKNOWN,
    clusters: Sequence[int] | None = None,
) -> dict[str, Any]:
    """The object of one judge under `judge_reliability.by_judge` of metrics.json; figures are not yet rounded.

    `disagreement_rate` = `n_disagree` / `spot_check_n`, over pairs with two verdicts; `n_disagree` = `n_gap_over_one` +
    `n_class_flips` - `n_both`; `inconsistent_rate`: of all verdicts (`of_all`: those that are inconsistent, and all),
    or else of the first of each pair.

    Assumptions: the pairs are a simple random sample of the judge's verdicts. `interval` is for verdicts like these and
    does not shrink as the sample exhausts the run; `spot_check.interval_this_run` does, and rests on the draw of cases
    alone. All else takes clusters (a number for each pair) as independent, or without clusters, cases. What the pairs
    do not define is None.
    """
    compared, scored, groups = _scored(pairs, kind, clusters)
    n, n_disagree = len(scored), sum(item.disagrees for item in scored)
    spot_check = _sample_record(pairs, scored, draw)
    parts = spot_check["parts"]
    future = future_interval([item.disagrees for item in scored], groups)
    agreement = _agreement(pairs, kind, clusters)
    why = _why_undefined(agreement.pop("n_categories"), n)
    if of_all is None:
        flags = [pair.first.inconsistent for pair in pairs if isinstance(pair.first, Verdict)]
        of_all = sum(flags), len(flags)
    return {
        **rate_against_threshold(n_disagree, n, threshold, draw, future),
        "n_asked": len(pairs),
        "n_unscored": len(pairs) - n,
        "n_failed_first": sum(isinstance(pair.first, JudgeFailure) for pair in pairs),
        "n_failed_second": sum(isinstance(pair.second, JudgeFailure) for pair in pairs),
        "n_gap_over_one": parts["gap_over_one"],
        "n_class_flips": parts["class_flip"],
        "n_both": parts["both"],
        "exact_agreement": parts["exact_match"] / n if n else None,
        "mean_signed_difference": _mean_shift(scored),
        **{name: agreement[name]["value"] for name in ("quadratic_weighted_kappa", "cohen_kappa") if name in agreement},
        "krippendorff_alpha": agreement["krippendorff_alpha"]["value"],
        **why,
        **inconsistent_rate(*of_all),
        "sample": [_row(pair, item) for pair, item in zip(pairs, compared, strict=True)],
        "seed": seed,
        "against": dict(against),
        "spot_check": spot_check | {"seed": seed, "interval_future": future, "shift": _shift(scored, seed, groups)},
        "alarm": alarm(n_disagree, n, threshold, draw, future),
        "agreement": {**agreement, **why},
        "words": {"gap": kind.gap_words, "flip": kind.flip_words},
        **_confusion(pairs, kind),
        "disagreements": _disagreements(pairs, compared),
    }


def _sample_record(pairs: Sequence[Pair], scored: Sequence[ScoredPair], draw: Draw) -> dict[str, Any]:
    n, n_disagree = len(scored), sum(item.disagrees for item in scored)
    return {
        "design": DESIGN,
        "n_population": draw.n_population,
        "n_asked": len(pairs),
        "n_scored": n,
        "n_unscored": len(pairs) - n,
        "rate": n_disagree / n if n else None,
        "interval_this_run": exact_interval(n_disagree, n, draw.n_population),
        "parts": {
            "gap_over_one": sum(item.gap_over_one for item in scored),
            "class_flip": sum(item.class_flip for item in scored),
            "both": sum(item.gap_over_one and item.class_flip for item in scored),
            "exact_match": sum(item.is_same for item in scored),
        },
        "items": [
            {"case_id": pair.case_id, "J0": raw_verdict(pair.first), "J1": raw_verdict(pair.second)} for pair in pairs
        ],
    }


def repeat_report(
    pairs: Sequence[Pair], *, kind: Kind, seed: int, clusters: Sequence[int] | None = None
) -> dict[str, Any]:
    """The `noise_floor` of a judge: how often the same question, asked again, gets another verdict.

    `flip_rate`: share of pairs that disagree, by the same rule as in a spot check; `changed_rate`: share of pairs
    whose scores differ at all.

    The second verdict of each pair is of the same judge, asked again; see `spot_check_report` for the rest.
    """
    _, scored, groups = _scored(pairs, kind, clusters)
    n, flips, changes = len(scored), [item.disagrees for item in scored], [not item.is_same for item in scored]
    return {
        "n_asked": len(pairs),
        "n": n,
        "n_unscored": len(pairs) - n,
        "n_flips": sum(flips),
        "flip_rate": sum(flips) / n if n else None,
        "interval": future_interval(flips, groups),
        "n_changed": sum(changes),
        "changed_rate": sum(changes) / n if n else None,
        "changed_interval": future_interval(changes, groups),
        "mean_signed_difference": _mean_shift(scored),
        "seed": seed,
    }


def _scored(
    pairs: Sequence[Pair], kind: Kind, clusters: Sequence[int] | None
) -> tuple[list[ScoredPair | None], list[ScoredPair], list[int] | None]:
    """All pairs compared, those with two verdicts, and the clusters of these."""
    compared = [compare_pair(pair, kind) for pair in pairs]
    scored = [item for item in compared if item is not None]
    if clusters is None:
        return compared, scored, None
    return compared, scored, [cluster for cluster, item in zip(clusters, compared, strict=True) if item is not None]


def _mean_shift(scored: Sequence[ScoredPair]) -> float | None:
    """How much higher the second opinion rates, in points; below 0 it is stricter. None for what has no order."""
    return mean([item.difference for item in scored if item.difference is not None])


def _shift(scored: Sequence[ScoredPair], seed: int, clusters: Sequence[int] | None) -> dict[str, Any]:
    """How far the second opinion lies above the first, and whether that may be chance."""
    moved = [(item.difference, place) for place, item in enumerate(scored) if item.difference is not None]
    differences = [difference for difference, _ in moved]
    method = "sign-flip permutation" if clusters is None else "sign-flip permutation of clusters"
    if clusters is not None:  # cases of one cluster may shift together, so whole clusters change sign
        groups = [clusters[place] for _, place in moved]
        differences = [row[0] for row in cluster_sums([(difference,) for difference in differences], groups)]
    p, is_exact = sign_flip_p(differences, seed)
    return {
        "mean": _mean_shift(scored),
        "p": p,
        "method": f"{method}, two-sided" + (", exact" if p is not None and is_exact else ""),
    }


def _agreement(pairs: Sequence[Pair], kind: Kind, clusters: Sequence[int] | None) -> dict[str, Any]:
    """Agreement beyond chance, by the kind's level of measurement; of criteria over all of them, clustered by case."""
    rows = [
        (both, place if clusters is None else clusters[place])
        for place, pair in enumerate(pairs)
        if isinstance(pair.first, Verdict) and isinstance(pair.second, Verdict)
        for both in zip(kind.categories(pair.first), kind.categories(pair.second), strict=True)
    ]
    known = [(first, second, group) for (first, second), group in rows if first is not None and second is not None]
    is_alone = clusters is None and len({group for _, _, group in known}) == len(known)
    groups = None if is_alone else [group for _, _, group in known]
    found = agreement_beyond_chance([(first, second) for first, second, _ in known], kind, groups)
    return {
        "n": len(known),
        "indicative": len(known) < INDICATIVE_BELOW,
        **found,
        "method": "cluster jackknife 95%" + ("" if groups is None else f", {len(set(groups))} clusters"),
        "n_categories": len({value for first, second, _ in known for value in (first, second)}),
    }


def agreement_beyond_chance(
    pairs: Sequence[tuple[int, int]], kind: Kind, clusters: Sequence[Hashable] | None
) -> dict[str, Any]:
    """Kappa, AC2 and alpha of pairs of categories, weighted where the kind has an order, and nominal where not."""
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    low, high = kind.category_bounds
    values = {low, high, *first, *second}
    nominal = kind.is_nominal
    kappa = cohen_kappa(first, second, clusters) if nominal else quadratic_weighted_kappa(first, second, clusters)
    return {
        "cohen_kappa" if nominal else "quadratic_weighted_kappa": kappa._asdict(),
        "gwet_ac1" if nominal else "gwet_ac2": gwet_ac2(
            pairs, min(values), max(values), clusters, nominal=nominal
        )._asdict(),
        "krippendorff_alpha": krippendorff_alpha(pairs, clusters, nominal=nominal)._asdict(),
    }


def _confusion(pairs: Sequence[Pair], kind: Kind) -> dict[str, Any]:
    """`confusion`: how often each verdict (a row) met each of the second opinion; nothing of numbers."""
    if not kind.classes:
        return {}
    told = [
        (said_text(pair.first.said), said_text(pair.second.said))
        for pair in pairs
        if isinstance(pair.first, Verdict) and isinstance(pair.second, Verdict)
    ]
    counts = [[told.count((first, second)) for second in kind.classes] for first in kind.classes]
    return {"confusion": {"classes": list(kind.classes), "counts": counts}}


def _why_undefined(n_categories: int, n: int) -> dict[str, str]:
    if not n:
        return {"undefined_reason": "no case has two verdicts"}
    if n_categories == 1:
        return {"undefined_reason": "every rating is the same, so chance alone would agree as well"}
    return {}


def _disagreements(pairs: Sequence[Pair], compared: Sequence[ScoredPair | None]) -> list[dict[str, Any]]:
    """The pairs that disagree, the widest gaps first, with the beginnings of both reasonings."""
    found = [(pair, item) for pair, item in zip(pairs, compared, strict=True) if item is not None and item.disagrees]
    found.sort(key=lambda both: -abs(both[1].difference or 0))
    return [
        {
            "case_id": pair.case_id,
            "first": raw_verdict(pair.first),
            "second": raw_verdict(pair.second),
            "first_reasoning": _beginning(pair.first),
            "second_reasoning": _beginning(pair.second),
        }
        for pair, _ in found[:MOST_SHOWN]
    ]


def _beginning(opinion: Verdict | JudgeFailure) -> str:
    text = " ".join(opinion.reasoning.split()) if isinstance(opinion, Verdict) else ""
    return text if len(text) <= REASONING_CHARACTERS else text[: REASONING_CHARACTERS - 1].rstrip() + "\u2026"


def _row(pair: Pair, scored: ScoredPair | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "case_id": pair.case_id,
        "first": raw_verdict(pair.first),
        "second": raw_verdict(pair.second),
        "disagrees": None if scored is None else scored.disagrees,
    }
    if isinstance(pair.first, JudgeFailure):
        row["first_failure"] = pair.first.kind
    if isinstance(pair.second, JudgeFailure):
        row["second_failure"] = pair.second.kind
    return row
