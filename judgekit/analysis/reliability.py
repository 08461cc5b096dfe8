"""How far the judges of a run can be trusted: the headline over all of them, and what each of them is.

The parts: `pairs` (which cases, and when two verdicts disagree), `alarms` (the rate against its threshold),
`spot_checks` (the findings of one judge).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from judgekit.analysis.alarms import DEFAULT_THRESHOLD, future_interval, rate_against_threshold
from judgekit.analysis.pairs import Pair, Sampler, draw_order, draw_sample, pair_disagrees
from judgekit.analysis.spot_checks import inconsistent, repeat_report, spot_check_report
from judgekit.core.judgments import Judgment

__all__ = [
    "DEFAULT_THRESHOLD",
    "KEPT_PARTS",
    "PARTS_OF_VERDICTS",
    "Pair",
    "Sampler",
    "draw_order",
    "draw_sample",
    "instrument",
    "judge_reliability",
    "kept_parts",
    "pair_disagrees",
    "repeat_report",
    "spot_check_report",
    "unstable_warning",
]

KEPT_PARTS = ("anchors", "corrected", "comparator_value", "drift", "bridge", "probes")
"""Parts of a judge's report that do not come from a spot check, so that a new check leaves them as they are."""

PARTS_OF_VERDICTS = ("anchors", "corrected", "comparator_value", "bridge")
"""Of these, what rests on all verdicts of the run and holds no more once there are others."""


def judge_reliability(
    by_judge: Mapping[str, Mapping[str, Any]],
    threshold: float = DEFAULT_THRESHOLD,
    clusters: Mapping[str, int] | None = None,
) -> dict[str, Any]:
    """The `judge_reliability` object of metrics.json: the headline over all judges checked, and each of them.

    The headline pools the pairs: sum of `n_disagree` / sum of `spot_check_n`; so do the inconsistent verdicts. A
    warning is raised for each judge that fired. The headline is a weighted mean of the judges' rates, so where all
    share one threshold it cannot be above it without such a judge; a bad judge beside good ones warns all the same.

    Assumptions: the pooled interval takes pairs as independent. Two judges checked on the same cases are not quite,
    so it is somewhat too narrow then; the intervals of single judges are not touched by this, nor is it with clusters.

    Args:
        by_judge: report of each judge by name, from `spot_check_report`.
        threshold: the threshold of the headline, in (0, 1); that of the judges' reports.
        clusters: number of the cluster of each case by its id; None: cases are independent.

    Returns:
        A strict-JSON object with the headline keys, `by_judge` and `warnings`, a list of (code, message). No judges,
        or none with a pair of two verdicts: the rate and the ends of the interval are None.

    Source: in-house.
    """
    reports = by_judge.values()
    rows = [row for report in reports for row in report["sample"] if row["disagrees"] is not None]
    groups = None if clusters is None else [clusters[row["case_id"]] for row in rows]
    future = future_interval([row["disagrees"] for row in rows], groups)
    n_disagree, n = _total(reports, "n_disagree"), _total(reports, "spot_check_n")
    warnings = [
        ("judge_unstable", unstable_warning(name, report)) for name, report in by_judge.items() if report["fired"]
    ]
    return {
        **rate_against_threshold(n_disagree, n, threshold, future=future),
        "n_asked": _total(reports, "n_asked"),
        "n_unscored": _total(reports, "n_unscored"),
        **inconsistent(_total(reports, "n_inconsistent"), _total(reports, "n_verdicts")),
        "by_judge": {name: dict(report) for name, report in by_judge.items()},
        "warnings": warnings,
    }


def instrument(judgments: Iterable[Judgment]) -> dict[str, Any]:
    """What gave a set of verdicts: model requested and served, prompt, parameters, parser.

    Args:
        judgments: of one judge in one role.

    Returns:
        A strict-JSON object; for no judgments, everything is None or empty. Served names and fingerprints come with
        the number of judgments that carry them, so that a change under way can be seen.

    Source: in-house.
    """
    last: Judgment | None = None
    served: Counter[str] = Counter()
    fingerprints: Counter[str] = Counter()
    upstreams: Counter[str] = Counter()
    parsers: set[int] = set()
    accepted = True
    for last in judgments:
        served.update([last.served_model] if last.served_model else [])
        fingerprints.update([last.fingerprint] if last.fingerprint else [])
        upstreams.update([last.upstream] if last.upstream else [])
        parsers.add(last.parser_version)
        accepted = accepted and last.temperature_accepted
    return {
        "model_id": last and last.model_id,
        "provider": last and last.provider,
        "model": last and last.model,
        "served_models": dict(sorted(served.items())),
        "fingerprints": dict(sorted(fingerprints.items())),
        "upstreams": dict(sorted(upstreams.items())),
        "prompt_version": last and last.prompt_version,
        "prompt_sha256": last and last.prompt_sha256,
        "temperature": 0,
        "temperature_accepted": accepted if last is not None else None,
        "parser_versions": sorted(parsers),
    }


def kept_parts(reliability: Mapping[str, Any] | None, judge: str, names: Sequence[str] = KEPT_PARTS) -> dict[str, Any]:
    """What an earlier `judge_reliability` says of a judge that does not come from a spot check.

    Args:
        reliability: the object of metrics.json, or None.
        judge: name of the judge.
        names: parts that are kept where they are there.

    Source: in-house.
    """
    report = ((reliability or {}).get("by_judge") or {}).get(judge) or {}
    return {name: report[name] for name in names if name in report}


def _total(reports: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(report[key] for report in reports)


def unstable_warning(name: str, report: Mapping[str, Any], second: str = "the second opinion") -> str:
    """Why a judge is unstable, in one sentence.

    Args:
        name: the judge.
        report: of a check that fired, from `spot_check_report`.
        second: who disagrees with it.

    Source: in-house.
    """
    interval = report["interval"]
    return (
        f"judge {name}: {report['n_disagree']} of {report['spot_check_n']} spot-checked verdicts disagree with "
        f"{second} (rate {report['disagreement_rate']:.2f}, 95% interval {interval['low']:.2f} to "
        f"{interval['high']:.2f}), more than {report['threshold']:.2f}; read the disagreeing cases before its scores "
        "are relied on"
    )
