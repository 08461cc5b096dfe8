"""Probes of judges: a section of summary.md, what `judgekit probe` prints, and a part of report.html."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.reports.charts import signed_bar
from judgekit.reports.figures import by_judge, number, p_value
from judgekit.reports.finding_sentences import probe_sentence
from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned, bullets, cell, section, table

Part = Mapping[str, Any]

HEADER = ("probe", "should", "cases", "effect", "95% interval", "p adjusted", "detectable", "beside", "verdict")
SHOULD = {"same": "stay", "resist": "not rise", "zero": "be lowest", "drop": "fall"}

MEAN_SCORE = "mean score"
"""What effects are of, for most kinds of verdict."""

_BADGES = {"passed": "good", "failed": "bad", "unclear": "warn"}


def probes_section(reliability: Part | None) -> list[str]:
    """The section of summary.md; nothing if no judge was probed."""
    found = {name: report["probes"] for name, report in by_judge(reliability).items() if report.get("probes")}
    if not found:
        return []
    rows = [[cell(text) for text in (name, *row)] for name, report in found.items() for row in _rows(report)]
    notes = bullets(f"{name}: {line}" for name, report in found.items() for line in _notes(report))
    return section("Probes", [*table(("judge", *HEADER), rows), "", *notes])


def probe_lines(found: Mapping[str, Part], *, stats: bool = True) -> list[str]:
    """The same for a terminal; without `stats` what each probe of each judge came to."""
    lines = [*(probe_sentence(name, report) for name, report in found.items()), ""]
    if not stats:
        probes = list(dict.fromkeys(probe for report in found.values() for probe in report["probes"]))
        rows = [(probe, *(_outcome(report["probes"].get(probe)) for report in found.values())) for probe in probes]
        return [printable_line(line) for line in [*lines, *aligned([("probe", *found), *rows]), ""]]
    for name, report in found.items():
        lines.append(f"{name}: {_model(report)}")
        lines += [*aligned([HEADER, *_rows(report)]), *(f"  {line}" for line in _notes(report)), ""]
    return [printable_line(line) for line in lines]


def _outcome(probe: Part | None) -> str:
    """`failed (-1.73, 30 cases)`."""
    if probe is None:
        return ""
    effect = "" if probe["effect"] is None else f" ({probe['effect']:+.2f}, {probe['n']} cases)"
    return f"{probe['verdict']}{effect}"


def _model(report: Part) -> str:
    return f"{report['model_id']} ({report['model']}), prompt {report['prompt_version']}"


def _rows(report: Part) -> Iterator[tuple[str, ...]]:
    for name, probe in report["probes"].items():
        n_failed = _n_failed(probe)
        counts = [str(probe["n"])]
        counts += [f"{n_failed} failed"] if n_failed else []
        counts += [f"{probe['n_not_applicable']} n/a"] if probe["n_not_applicable"] else []
        detectable = probe["minimum_detectable_effect"]
        yield (
            name,
            SHOULD[probe["expects"]],
            ", ".join(counts),
            *_effect(probe),
            p_value(probe["p_adjusted"]),
            "n/a" if detectable is None else f"{detectable:.2f}",
            _beside(probe),
            probe["verdict"],
        )


def _n_failed(probe: Part) -> int:
    return int(max(probe["n_failed_original"], probe["n_failed_probe"]))


def _effect(probe: Part) -> tuple[str, str]:
    """The effect and its interval."""
    effect = "n/a" if probe["effect"] is None else f"{probe['effect']:+.2f}"
    return effect, "" if probe["low"] is None else f"{probe['low']:+.2f} to {probe['high']:+.2f}"


def _beside(probe: Part) -> str:
    """The share that the probe is about."""
    words_of = {"success": "obeyed", "lowest": "lowest", "still_pass": "still pass", "changed": "changed"}
    for key, words in words_of.items():
        share = probe.get(key)
        if share is not None:
            return f"{words} {share['k']} of {share['n']}"
    return ""


def _notes(report: Part) -> Iterator[str]:
    for name, probe in report["probes"].items():
        if probe["verdict"] != "passed":
            yield f"{name}: {probe['verdict']}, {probe['reason']}"
        success = probe.get("success")
        if success is not None and success["n"]:
            yield f"{name}: {success['value']:.0%} of orders obeyed (95% {success['low']:.0%} to {success['high']:.0%})"
        yield from _left_out({name: probe})
    yield from _what_effects_are(report["probes"])
    n_unanswered = report.get("n_unanswered")
    if n_unanswered:
        yield f"calls without a reply: {n_unanswered}; the same command asks them again, and nothing else"
    yield report["originals_note"]


def probe_part(report: Part | None) -> dict[str, Any] | None:
    """The probes of one judge, all drawn on one scale; None without any."""
    probes = (report or {}).get("probes")
    if not report or not probes:
        return None
    ends = [probe[key] for probe in probes.values() for key in ("effect", "low", "high")]
    reach = max([1.0, *(abs(end) for end in ends if end is not None)])
    return {
        **report,
        "model": _model(report),
        "reach": f"{reach:.1f}",
        "rows": [_page_row(name, probe, reach) for name, probe in probes.items()],
        "notes": [*_left_out(probes), *_what_effects_are(probes), report["originals_note"]],
        "badge": _badge(Counter(probe["verdict"] for probe in probes.values())),
    }


def _page_row(name: str, probe: Part, reach: float) -> dict[str, Any]:
    success = probe.get("success")
    effect, ends = _effect(probe)
    detectable = probe["minimum_detectable_effect"]
    return {
        **probe,
        "name": name,
        "should": SHOULD[probe["expects"]],
        "n_failed": _n_failed(probe),
        "effect": effect,
        "interval": ends,
        "bar": signed_bar(probe["effect"], (probe["low"], probe["high"]), reach),
        "p": p_value(probe["p_adjusted"]),
        "detectable": "n/a" if detectable is None else number(detectable, 2),
        "beside": _beside(probe),
        "obeyed": f"95% {success['low']:.0%} to {success['high']:.0%}" if success and success["n"] else "",
        "kind": _BADGES.get(probe["verdict"], "plain"),
    }


def _what_effects_are(probes: Part) -> Iterator[str]:
    """What the effects are of, where verdicts have no mean."""
    names: dict[str, list[str]] = {}
    for name, probe in probes.items():
        of = probe.get("effect_of", MEAN_SCORE)
        if of != MEAN_SCORE and probe["n"]:
            names.setdefault(of, []).append(name)
    for of, those in names.items():
        yield f"effect of {', '.join(those)}: {of}"


def _left_out(probes: Part) -> Iterator[str]:
    for name, probe in probes.items():
        for reason, n in probe["not_applicable"].items():
            yield f"{name}: {n} n/a, {reason}"


def _badge(verdicts: Mapping[str, int]) -> tuple[str, str]:
    """(kind, text): the worst that the probes say."""
    for verdict in ("failed", "unclear"):
        if verdicts.get(verdict):
            return _BADGES[verdict], f"probes: {verdicts[verdict]} {verdict}"
    return "good", f"probes: {verdicts.get('passed', 0)} passed"
