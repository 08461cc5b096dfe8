"""What a command found, in one or two plain sentences: the finding, how certain it is, and the next step.

Names of judges, probes and figures in them are foreign text. The sentence about a run is in `run_sentence`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.comparison import Comparison
from judgekit.core.scores import stored_scale
from judgekit.reports.figures import percent, signed_ends, signed_text

Part = Mapping[str, Any]

ENOUGH_LABELS = 50
"""Human labels from which on a judge's bias is told."""

TO_GATE, TO_COMPARE = 0.9, 0.75
"""Agreement with people, at the lower end of its interval, that a gate at 90% needs, and that comparing needs."""

_NAMED = 3
"""Names in one sentence."""


def spot_check_sentence(name: str, report: Part) -> str:
    """Whether a second opinion contradicts a judge too often.

    Args:
        name: the judge.
        report: one spot check of `judge_reliability`.
    """
    sample, alarm = report["spot_check"], report["alarm"]
    n, n_disagree = sample["n_scored"], report["n_disagree"]
    if not n:
        return f"Nothing can be said of {name}: no pair of verdicts could be had."
    is_repeat = report["against"].get("kind") == "repeat"
    who = "the same judge, asked again," if is_repeat else "the second opinion"
    limit = percent(alarm["threshold"])
    found = f"{who} disagrees in {n_disagree} of {n} verdicts{_ends(sample['interval_future'])}"
    if alarm["status"] == "alarm":
        return f"Do not rely on {name} yet: {found}, and {limit} is too much. Read the pairs that disagree: --stats."
    if alarm["status"] == "ok":
        return f"No alarm for {name}: {found}; the limit is {limit}."
    needed = alarm["n_to_decide"]
    more = f"about {needed} pairs would decide: --n {needed}" if needed is not None else "--adaptive asks until it is"
    return f"Not decided for {name}: {found}, and {limit} is the limit; {more}."


def with_sentence(document: Part, *sentences: str) -> dict[str, Any]:
    """What a command prints as JSON, with what it found in words first."""
    return {"sentence": " ".join(sentences), **document}


def calibration_sentence(name: str, report: Part, run: str) -> str:
    """How far a judge agrees with people, and what that is enough for.

    Args:
        name: the judge.
        report: its part of calibration.json.
        run: id of the run, for the next step.
    """
    compared = report["anchors"]
    same, n = compared["class_agreement"], compared["n"]
    label = f"`judgekit label {run} --judge {name}"
    if not n:
        return f"Nothing can be said of {name}: no verdict has a human label. Give some with {label}`."
    if not same["n"]:
        return f"{name} has {n} human labels, and no class in which they could agree; --stats shows the pairs."
    low, high = same["low"], same["high"]
    found = f"{name} agrees with people in {same['k']} of {same['n']} cases{_ends(same)}"
    if low >= TO_GATE:
        worth = f"enough to gate at {percent(TO_GATE)}"
        step = f"See what moves it: `judgekit probe {run} --judge {name}`."
    elif low >= TO_COMPARE:
        worth = f"enough to compare systems, not to gate at {percent(TO_GATE)}"
        step = f"See what moves it: `judgekit probe {run} --judge {name}`."
    elif high < TO_COMPARE:
        worth = "too little to rely on: change the wording or the model"
        step = f"See where it is wrong: `judgekit calibrate {run} --judge {name} --stats`."
    else:
        worth = f"too few labels to say that it is above {percent(TO_COMPARE)}"
        step = f"Label more cases: {label} --n {2 * n}`."
    bias = compared["bias"].get("direction")
    if n < ENOUGH_LABELS and not bias:
        step = f"Label {ENOUGH_LABELS - n} more cases to learn whether it is too mild or strict: {label}`."
    return f"{found}; {worth}.{f' It is {bias}.' if bias else ''} {step}"


def drift_sentence(report: Part) -> str:
    """Whether a judge changed, by `DriftReport.document()`."""
    name, n = f"{report['judge']} {report['prompt_version']}", len(report["timeline"])
    points = f"{n} point{_s(n)}"
    if report["state"] == "none":
        return f"No drift of {name} was found in {points}."
    if report["state"] == "insufficient":
        return (
            f"Too little is known of {name} to tell drift: {points} so far. Each `judgekit spotcheck` or `judgekit "
            "rejudge` of the same cases adds one."
        )
    if report["state"] == "not asked":
        return (
            f"{name} was never asked again, so nothing says that it did not drift: `judgekit rejudge RUN --no-cache`."
        )
    what = {
        "judge": f"{name} drifted: it judges the same answers differently",
        "system": f"{name} is stable, and the answers of the system changed",
        "judge+system": f"{name} drifted, and the answers of the system changed too",
        "instrument": f"{name} is another instrument than before, so older scores are of another judge",
    }[report["state"]]
    return f"{what}. Do not compare scores across it: `judgekit bridge OLD NEW` splits the change."


def probe_sentence(name: str, report: Part) -> str:
    """Which probes a judge failed.

    Args:
        name: the judge.
        report: its part of what `probe` found.
    """
    by_verdict: dict[str, list[str]] = {}
    for probe, found in report["probes"].items():
        by_verdict.setdefault(found["verdict"], []).append(probe)
    failed, unclear, passed = (by_verdict.get(verdict, []) for verdict in ("failed", "unclear", "passed"))
    n = len(failed) + len(unclear) + len(passed)
    if not n:
        return f"Nothing can be said of {name}: no probe could be measured."
    open_text = f" {len(unclear)} unclear ({_some(unclear)}): more cases would decide, --n." if unclear else ""
    if failed:
        reasons = "; ".join(f"{probe}: {report['probes'][probe]['reason']}" for probe in failed[:_NAMED])
        return f"{name} fails {len(failed)} of {n} probes. {reasons}.{open_text}"
    return f"{name} passes {len(passed)} of {n} probes and fails none.{open_text}"


def bridge_sentences(found: Part) -> Iterator[str]:
    """For each judge, how much of the change of its mean is due to the system and the judge; then the next step."""
    known: list[Part] = []
    for name, judge in found["judges"].items():
        figure = next(iter(judge["figures"].items()), None)
        if figure is None or figure[1]["total"]["value"] is None:
            yield f"Nothing can be said of {name}: no case has a verdict in both runs."
            continue
        label, parts = figure
        known.append(parts)
        scale = stored_scale(parts)
        total = signed_text(parts["total"]["value"], scale)
        if not any(parts[key]["value"] for key in ("total", "system", "judge")):
            yield f"{label} did not move."
        elif judge["same_judge"]:
            yield f"{label} moved by {total}, all of it the system's: the judge is the same in both runs."
        else:
            system, judged = (signed_ends(parts[key], scale) for key in ("system", "judge"))
            yield f"{label} moved by {total}: {system} is due to the system, {judged} to the judge."
    old, new, moved = found["old"], found["new"], found["old_by_new_judge"]
    if moved and known and not any(parts["system"]["value"] for parts in known):
        yield f"See which verdicts differ: `judgekit compare {old} {moved} --allow-mismatch`."
    elif known:
        # The old answers by the new judge against the new answers: what is left is the system.
        yield f"See which answers moved: `judgekit compare {moved or old} {new}`."


def comparison_sentence(comparison: Comparison) -> str:
    """Whether the second run is better, over how many cases it is, and whether anything else changed."""
    if comparison.same_run is not None:
        return f"Both are one run ({comparison.same_run}), so nothing can differ."
    verdicts = {word: [d.name for d in comparison.deltas if d.verdict == word] for word in ("better", "worse")}
    told = [f"{word} in {_some(names)}" for word, names in verdicts.items() if names]
    n = comparison.n_shared
    if not n:
        return f"Nothing can be compared: {comparison.run_a} and {comparison.run_b} share no case."
    if told:
        first = f"{comparison.run_b} is {' and '.join(told)}, over {n} shared case{_s(n)}."
    else:
        n_tests = sum(delta.p_holm is not None for delta in comparison.deltas)
        pair = f"{comparison.run_b} is better or worse than {comparison.run_a}"
        adjusted = f"adjusted for {n_tests} figure{_s(n_tests)}" if n_tests else "and no figure could be tested"
        first = f"No evidence that {pair}, over {n} shared case{_s(n)}, {adjusted}."
    counted = "; ".join(_moved_cases(comparison))
    cases = f" {counted}." if counted else ""
    changed = len(comparison.causes)
    caution = ", so a difference is not of the answers alone" if told else ""
    other = f" {changed} thing{_s(changed)} changed besides the answers{caution}." if changed else ""
    return f"{first}{cases}{other}"


def judges_of(comparison: Comparison) -> list[str]:
    """The judges that say which answers pass, in the order of the scores."""
    figures = {delta.name for delta in comparison.deltas}
    return [name for name in comparison.kinds if f"{name}_pass_rate" in figures]


def _moved_cases(comparison: Comparison) -> Iterator[str]:
    """`9 answers better, 2 worse, 49 the same by correctness`, of judges and else of the first score.

    An answer that failed or that a judge gave no verdict on is not counted as worse, but named.
    """
    for name in (judges_of(comparison) or list(comparison.kinds))[:2]:
        changes = [query.scores[name] for query in comparison.per_query if name in query.scores]
        counts = Counter(change.kind for change in changes if change.b is not None)
        better, worse = counts["mended"] + counts["win"], counts["regression"] + counts["loss"]
        gone = sum(change.b is None for change in changes)
        other = f", {counts['changed']} changed" if counts["changed"] else ""
        other += f", {gone} with no value now" if gone else ""
        yield f"{better} answers better, {worse} worse, {counts['draw']} the same{other} by {name}"


def _s(n: int) -> str:
    return "" if n == 1 else "s"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _ends(interval: Part | None) -> str:
    """` (84% to 96%)` of shares; empty if there is no interval."""
    if interval is None or interval["low"] is None or interval["high"] is None:
        return ""
    return f" (95% {percent(interval['low'])} to {percent(interval['high'])})"
