"""Probes of a judge, as report.html shows them: what one change to an input did to its scores."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.reports.charts import signed_bar
from judgekit.reports.figures import number
from judgekit.reports.probes import SHOULD, beside, p_text

Part = Mapping[str, Any]

_VERDICTS = {"passed": "good", "failed": "bad", "unclear": "warn"}


def probe_part(report: Part | None) -> dict[str, Any] | None:
    """The probes of one judge, all drawn on one scale; None where there are none."""
    probes = (report or {}).get("probes")
    if not report or not probes:
        return None
    reach = max([1.0, *(abs(end) for probe in probes.values() for end in _ends(probe))])
    return {
        "model": f"{report['model_id']} ({report['model']}), prompt {report['prompt_version']}",
        "n_cases": report["n_cases"],
        "n_population": report["n_population"],
        "reach": f"{reach:.1f}",
        "rows": [_row(name, probe, reach) for name, probe in probes.items()],
        "notes": [*_left_out(probes), report["originals_note"]],
        "badge": _badge(Counter(probe["verdict"] for probe in probes.values())),
    }


def _ends(probe: Part) -> list[float]:
    return [end for end in (probe["effect"], probe["low"], probe["high"]) if end is not None]


def _row(name: str, probe: Part, reach: float) -> dict[str, Any]:
    success = probe.get("success")
    detectable = probe["minimum_detectable_effect"]
    return {
        "name": name,
        "about": probe["about"],
        "should": SHOULD[probe["expects"]],
        "n": probe["n"],
        "n_failed": max(probe["n_failed_original"], probe["n_failed_probe"]),
        "n_not_applicable": probe["n_not_applicable"],
        "effect": "n/a" if probe["effect"] is None else f"{probe['effect']:+.2f}",
        "interval": "" if probe["low"] is None else f"{probe['low']:+.2f} to {probe['high']:+.2f}",
        "bar": signed_bar(probe["effect"], (probe["low"], probe["high"]), reach),
        "p": p_text(probe["p_adjusted"]),
        "detectable": "n/a" if detectable is None else number(detectable, 2),
        "beside": beside(probe),
        "obeyed": f"95% {success['low']:.0%} to {success['high']:.0%}" if success and success["n"] else "",
        "verdict": probe["verdict"],
        "kind": _VERDICTS.get(probe["verdict"], "plain"),
        "reason": probe["reason"],
    }


def _left_out(probes: Part) -> Iterator[str]:
    for name, probe in probes.items():
        for reason, n in probe["not_applicable"].items():
            yield f"{name}: {n} n/a, {reason}"


def _badge(verdicts: Mapping[str, int]) -> tuple[str, str]:
    """(kind, text): the worst that the probes say."""
    for verdict in ("failed", "unclear"):
        if verdicts.get(verdict):
            return _VERDICTS[verdict], f"probes: {verdicts[verdict]} {verdict}"
    return "good", f"probes: {verdicts.get('passed', 0)} passed"
