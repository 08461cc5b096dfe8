"""How far a judge can be trusted: a second opinion on a random sample of its verdicts, as findings.

A pair is one case judged twice, by the judge of the run and by what it is checked against. A pair without two
verdicts is a failure: it is listed and counted, but agrees with nothing and stands in no denominator.

Disagreement alone ranks judges backwards (one that always says 4 never disagrees with itself), so chance-corrected
agreement and the signed shift stand beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from judgekit.core.judgments import JudgeFailure, Verdict
from judgekit.stats.agreement import (
    exact_agreement,
    krippendorff_alpha_ordinal,
    mean_signed_difference,
    quadratic_weighted_kappa,
)
from judgekit.stats.means import TOLERANCE
from judgekit.stats.proportions import wilson_interval

DEFAULT_THRESHOLD = 0.20
INTERVAL_METHOD = "wilson 95%"


class Sampler(Protocol):
    """The one thing asked of a source of randomness; `random.Random` has it."""

    def sample(self, population: Sequence[int], k: int) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class Pair:
    """One case of the sample, judged twice."""

    case_id: str
    first: Verdict | JudgeFailure
    """What the run says."""
    second: Verdict | JudgeFailure
    """What the second model or wording says of the same judge input."""


@dataclass(frozen=True, slots=True)
class _Scored:
    """What is known of a pair with two verdicts; a yes/no answer is rated 1 or 0."""

    first: int
    second: int
    gap_over_one: bool
    class_flip: bool

    @property
    def disagrees(self) -> bool:
        return self.gap_over_one or self.class_flip


def draw_sample(ids: Sequence[str], n: int, rng: Sampler) -> list[str]:
    """A simple random sample without replacement: every set of n ids is as likely as any other.

    Args:
        ids: what to draw from. The same ids in the same order and the same seed give the same sample, so give them
            in the order of the cases and not in the order in which judgments came back.
        n: number of ids wanted, at least 0; more than there are takes all.
        rng: a seeded source of randomness.

    Returns:
        min(n, len(ids)) ids in the order of `ids`.

    Raises:
        ValueError: n is below 0.
    """
    if n < 0:
        raise ValueError(f"a sample has at least 0 ids, not {n}")
    return [ids[position] for position in sorted(rng.sample(range(len(ids)), min(n, len(ids))))]


def pair_disagrees(first: Verdict, second: Verdict, pass_score: int | None) -> bool:
    """Whether two verdicts on one case contradict each other.

    Scores: they differ by more than one point, or one passes (score >= pass_score) and the other does not. Yes/no
    verdicts: the answers differ.

    Args:
        first: verdict of the run.
        second: verdict of the check.
        pass_score: lowest score that passes; None: the judge has no pass class.

    Raises:
        ValueError: the verdicts are of different kinds, or one of them says nothing.

    Source: in-house.
    """
    return _compare(first, second, pass_score).disagrees


def spot_check_report(
    pairs: Sequence[Pair],
    *,
    pass_score: int | None,
    seed: int,
    against: Mapping[str, Any],
    threshold: float = DEFAULT_THRESHOLD,
    verdicts: Iterable[Verdict] | None = None,
) -> dict[str, Any]:
    """The object of one judge under `judge_reliability.by_judge` of metrics.json; figures are not yet rounded.

    `disagreement_rate` = `n_disagree` / `spot_check_n`, over pairs with two verdicts; `n_disagree` =
    `n_gap_over_one` + `n_class_flips` - `n_both`. `fired`: the rate is above the threshold. `status`: `alarm` if
    fired, `ok` only if the upper end of the interval is not above the threshold either, else `inconclusive`.
    `inconsistent_rate`: share of verdicts that contradict themselves.

    Assumptions: the pairs are a simple random sample of the judge's verdicts (see `draw_sample`); the interval is
    for verdicts like these and does not shrink as the sample exhausts the run.

    Args:
        pairs: the sample, in the order in which it is listed.
        pass_score: lowest score that passes; None: the judge has no pass class.
        seed: seed of the sample, for the record.
        against: what the judge was checked against (model, prompt version and hash), for the record.
        threshold: disagreement rate above which the check fires, in (0, 1).
        verdicts: all verdicts of this judge in the run, for `inconsistent_rate`; None: the first of each pair.

    Returns:
        A strict-JSON object. Every rate and statistic is None where no pair has two verdicts; kappa and alpha are
        also None where every rating is the same, with `undefined_reason`.

    Raises:
        ValueError: a pair's verdicts are of different kinds, or a verdict says nothing.

    Source: in-house; Wilson 1927 for the interval.
    """
    compared = [_compare_pair(pair, pass_score) for pair in pairs]
    scored = [item for item in compared if item is not None]
    first, second = [item.first for item in scored], [item.second for item in scored]
    flags = [item.inconsistent for item in (_first_verdicts(pairs) if verdicts is None else verdicts)]
    return {
        **_rate(sum(item.disagrees for item in scored), len(scored), threshold),
        "n_asked": len(pairs),
        "n_unscored": len(pairs) - len(scored),
        "n_failed_first": sum(isinstance(pair.first, JudgeFailure) for pair in pairs),
        "n_failed_second": sum(isinstance(pair.second, JudgeFailure) for pair in pairs),
        "n_gap_over_one": sum(item.gap_over_one for item in scored),
        "n_class_flips": sum(item.class_flip for item in scored),
        "n_both": sum(item.gap_over_one and item.class_flip for item in scored),
        "exact_agreement": exact_agreement(first, second),
        "mean_signed_difference": mean_signed_difference(first, second),
        **_chance_corrected(first, second),
        **_inconsistent(sum(flags), len(flags)),
        "sample": [_row(pair, item) for pair, item in zip(pairs, compared, strict=True)],
        "seed": seed,
        "against": dict(against),
    }


def judge_reliability(
    by_judge: Mapping[str, Mapping[str, Any]], threshold: float = DEFAULT_THRESHOLD
) -> dict[str, Any]:
    """The `judge_reliability` object of metrics.json: the headline over all judges checked, and each of them.

    The headline pools the pairs: sum of `n_disagree` / sum of `spot_check_n`; so do the inconsistent verdicts. A
    warning is raised for each judge that fired. The headline is a weighted mean of the judges' rates, so where all
    share one threshold it cannot be above it without such a judge; a bad judge beside good ones warns all the same.

    Assumptions: the pooled interval takes pairs as independent. Two judges checked on the same cases are not quite,
    so it is somewhat too narrow then; the intervals of single judges are not touched by this.

    Args:
        by_judge: report of each judge by name, from `spot_check_report`.
        threshold: the threshold of the headline, in (0, 1); that of the judges' reports.

    Returns:
        A strict-JSON object with the headline keys, `by_judge` and `warnings`, a list of (code, message). No judges,
        or none with a pair of two verdicts: the rate and the ends of the interval are None.

    Source: in-house.
    """
    reports = by_judge.values()
    warnings = [("judge_unstable", _warning(name, report)) for name, report in by_judge.items() if report["fired"]]
    return {
        **_rate(_total(reports, "n_disagree"), _total(reports, "spot_check_n"), threshold),
        "n_asked": _total(reports, "n_asked"),
        "n_unscored": _total(reports, "n_unscored"),
        **_inconsistent(_total(reports, "n_inconsistent"), _total(reports, "n_verdicts")),
        "by_judge": {name: dict(report) for name, report in by_judge.items()},
        "warnings": warnings,
    }


def _compare_pair(pair: Pair, pass_score: int | None) -> _Scored | None:
    if isinstance(pair.first, JudgeFailure) or isinstance(pair.second, JudgeFailure):
        return None
    return _compare(pair.first, pair.second, pass_score)


def _compare(first: Verdict, second: Verdict, pass_score: int | None) -> _Scored:
    if first.score is not None and second.score is not None:
        gap = abs(first.score - second.score) > 1
        flip = pass_score is not None and (first.score >= pass_score) != (second.score >= pass_score)
        return _Scored(first.score, second.score, gap, flip)
    if first.answer is None or second.answer is None:
        raise ValueError("two verdicts can be compared where both are scores or both are yes/no answers")
    return _Scored(int(first.answer), int(second.answer), False, first.answer != second.answer)


def _rate(n_disagree: int, n: int, threshold: float) -> dict[str, Any]:
    rate = n_disagree / n if n else None
    low, high = wilson_interval(n_disagree, n) or (None, None)
    fired = rate is not None and rate > threshold + TOLERANCE
    within = high is not None and high <= threshold + TOLERANCE
    return {
        "disagreement_rate": rate,
        "spot_check_n": n,
        "n_disagree": n_disagree,
        "interval": {"low": low, "high": high, "method": INTERVAL_METHOD},
        "threshold": threshold,
        "fired": fired,
        "status": "alarm" if fired else "ok" if within else "inconclusive",
    }


def _chance_corrected(first: Sequence[int], second: Sequence[int]) -> dict[str, Any]:
    ratings = {*first, *second}
    low, high = min(ratings, default=0), max(ratings, default=0)
    figures: dict[str, Any] = {
        "quadratic_weighted_kappa": quadratic_weighted_kappa(first, second, low, high),
        "krippendorff_alpha": krippendorff_alpha_ordinal(list(zip(first, second, strict=True))),
    }
    if not ratings:
        figures["undefined_reason"] = "no case has two verdicts"
    elif len(ratings) == 1:
        figures["undefined_reason"] = "every rating is the same, so chance alone would agree as well"
    return figures


def _first_verdicts(pairs: Sequence[Pair]) -> list[Verdict]:
    return [pair.first for pair in pairs if isinstance(pair.first, Verdict)]


def _inconsistent(n_inconsistent: int, n_verdicts: int) -> dict[str, Any]:
    return {
        "inconsistent_rate": n_inconsistent / n_verdicts if n_verdicts else None,
        "n_inconsistent": n_inconsistent,
        "n_verdicts": n_verdicts,
    }


def _row(pair: Pair, scored: _Scored | None) -> dict[str, Any]:
    row: dict[str, Any] = {"case_id": pair.case_id, "first": _shown(pair.first), "second": _shown(pair.second)}
    row["disagrees"] = None if scored is None else scored.disagrees
    if isinstance(pair.first, JudgeFailure):
        row["first_failure"] = pair.first.kind
    if isinstance(pair.second, JudgeFailure):
        row["second_failure"] = pair.second.kind
    return row


def _shown(opinion: Verdict | JudgeFailure) -> int | bool | None:
    if isinstance(opinion, JudgeFailure):
        return None
    return opinion.answer if opinion.score is None else opinion.score


def _total(reports: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(report[key] for report in reports)


def _warning(name: str, report: Mapping[str, Any]) -> str:
    interval = report["interval"]
    return (
        f"judge {name}: {report['n_disagree']} of {report['spot_check_n']} spot-checked verdicts disagree with the "
        f"second opinion (rate {report['disagreement_rate']:.2f}, 95% interval {interval['low']:.2f} to "
        f"{interval['high']:.2f}), more than {report['threshold']:.2f}; read the disagreeing cases before its scores "
        "are relied on"
    )
