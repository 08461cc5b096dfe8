"""What is known of each judge, as report.html shows it; every part may be missing, since each has its own command."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from judgekit.core.runs import RunSummary
from judgekit.reports.bridge import HEADER as BRIDGE_HEADER
from judgekit.reports.bridge import bridge_notes, bridge_rows
from judgekit.reports.charts import share_bar
from judgekit.reports.drift import HEADER as DRIFT_HEADER
from judgekit.reports.drift import drift_svg, timeline_cells
from judgekit.reports.figures import number, rejudged_line
from judgekit.reports.page_labels import label_parts
from judgekit.reports.page_probes import probe_part
from judgekit.reports.page_rows import agreement_rows, between
from judgekit.reports.probes import p_text
from judgekit.reports.reliability import AGREEMENT, REPEATS, against_text, repeat_line

Part = Mapping[str, Any]

OPENED = 3
"""Judges that are shown opened; the others by their name."""

MOST_CHANGED = 12
"""Changed verdicts of a rejudge that are listed for each judge."""

_STATUS = {"alarm": "bad", "ok": "good"}
_DRIFT = {"none": "good", "insufficient": "plain", "not asked": "warn"}


def judge_blocks(summary: RunSummary, histories: Sequence[Part] = ()) -> list[dict[str, Any]]:
    """One object for each judge of which something is known, judges in the order of the run.

    Args:
        summary: the figures.
        histories: drift reports of its judges, as documents.
    """
    by_judge = (summary.judge_reliability or {}).get("by_judge") or {}
    rejudged = (summary.rejudged or {}).get("by_judge") or {}
    names = dict.fromkeys([*summary.judges, *by_judge, *rejudged])
    blocks: list[dict[str, Any]] = []
    for name in names:
        report = by_judge.get(name) or {}
        block = {
            "identity": _identity(report.get("identity")),
            "checks": [_check(check) for check in _checks(report)],
            "agreement": _agreement(report.get("agreement")),
            "floor": _floor(report),
            **label_parts(report),
            "probes": probe_part(report.get("probes")),
            "rejudged": _changed(rejudged.get(name), (summary.rejudged or {}).get("parent")),
            "panel": _panel(summary.judges.get(name, {}).get("panel")),
            "drift": [_history(found) for found in histories if found["judge"] == name],
        }
        if any(block.values()):
            blocks.append({"name": name, "badges": list(_badges(block)), "open": len(blocks) < OPENED, **block})
    return blocks


def rejudged_text(summary: RunSummary) -> str | None:
    """How far the verdicts moved from those of the parent, over all judges; None where there is no parent."""
    line = rejudged_line(summary)
    return line and f"{line[0].upper()}{line[1:]}."


def bridge_part(found: Part | None) -> dict[str, Any] | None:
    """The bridge to another run as a table."""
    if not found:
        return None
    return {"old": found["old"], "header": BRIDGE_HEADER, "rows": bridge_rows(found), "notes": bridge_notes(found)}


def _badges(block: Part) -> Iterator[tuple[str, str]]:
    """(kind, text) beside the name of a judge: where it stands, in a few words."""
    if block["checks"]:
        status = block["checks"][0]["status"]
        yield _STATUS.get(status, "warn"), f"spot check: {status}"
    if block["anchors"]:
        yield "plain", f"{block['anchors']['n']} labels"
    if block["probes"]:
        yield block["probes"]["badge"]
    if block["rejudged"]:
        yield "plain", f"{block['rejudged']['changed']} of {block['rejudged']['n']} changed"
    if block["panel"]:
        yield "plain", f"panel of {len(block['panel']['members'])}"
    for found in block["drift"]:
        if found["state"] != "insufficient":
            yield found["kind"], f"drift: {found['state']}"


def _checks(report: Part) -> list[Part]:
    """The spot check that counts and those with other comparators."""
    return [check for check in (report, *(report.get("other_checks") or ())) if "against" in check]


def _check(check: Part) -> dict[str, Any]:
    """One spot check; one of an older version has its plain figures only."""
    sample, alarm = check.get("spot_check") or {}, check.get("alarm") or check
    rate = check.get("disagreement_rate")
    here, future = sample.get("interval_this_run"), sample.get("interval_future") or check.get("interval")
    drawn = here or future or {}
    return {
        "against": against_text(check["against"]),
        "prompt_sha256": check["against"].get("prompt_sha256") or "",
        "status": alarm["status"],
        "kind": _STATUS.get(alarm["status"], "warn"),
        "rate": number(rate),
        "bar": share_bar(rate, (drawn.get("low"), drawn.get("high")), 1.0, alarm["threshold"]),
        "this_run": between(here),
        "future": between(future),
        "threshold": f"{alarm['threshold']:.2f}",
        "n_to_decide": alarm.get("n_to_decide"),
        "n": check["spot_check_n"],
        "n_population": sample.get("n_population"),
        "n_unscored": check.get("n_unscored") or 0,
        "notes": list(_check_notes(check, sample, alarm)),
    }


def _check_notes(check: Part, sample: Part, alarm: Part) -> Iterator[str]:
    parts, shift = sample.get("parts"), sample.get("shift") or {}
    if parts:
        yield (
            f"{check['n_disagree']} disagree: {parts['gap_over_one']} more than a point apart, "
            f"{parts['class_flip']} on the other side of the pass line, {parts['both']} both; "
            f"{parts['exact_match']} are equal"
        )
    if shift.get("mean") is not None:
        yield f"mean shift {shift['mean']:+.2f} (second less first), p {p_text(shift['p'])}"
    if sample.get("design"):
        yield f"{sample['design']}, seed {sample['seed']}"
    adaptive = alarm.get("adaptive")
    if adaptive is not None:
        decided = adaptive["decided"]
        yield f"drawn until decided: {f'the rate is {decided} the threshold' if decided else 'open'}"


def _identity(found: Part | None) -> list[tuple[str, str, str]]:
    """(what, judge, second opinion) of the instruments of a spot check."""
    if not found:
        return []
    pairs = [found.get(who) or {} for who in ("judge", "comparator")]

    def row(label: str, *texts: str) -> tuple[str, str, str]:
        return (label, texts[0] or "not known", texts[1] or "not known")

    upstreams = [_counted(item.get("upstreams")) for item in pairs]
    return [
        row("model asked for", *(str(item.get("model") or "") for item in pairs)),
        row("served as", *(_counted(item.get("served_models")) for item in pairs)),
        row("fingerprint", *(_counted(item.get("fingerprints")) for item in pairs)),
        *([row("upstream", *upstreams)] if any(upstreams) else []),
        row("prompt", *(_prompt(item) for item in pairs)),
        row("temperature", *(_temperature(item) for item in pairs)),
        row("parser", *(", ".join(map(str, item.get("parser_versions") or ())) for item in pairs)),
    ]


def _counted(names: Mapping[str, int] | None) -> str:
    return ", ".join(f"{name} ({n})" for name, n in (names or {}).items())


def _prompt(item: Part) -> str:
    if not item.get("prompt_version"):
        return ""
    return f"{item['prompt_version']}, sha256 {str(item.get('prompt_sha256') or '')[:12]}"


def _temperature(item: Part) -> str:
    accepted = item.get("temperature_accepted")
    if accepted is None:
        return ""
    return f"{item.get('temperature')}, {'accepted' if accepted else 'refused by the server'}"


def _agreement(found: Part | None) -> dict[str, Any] | None:
    """Chance-corrected agreement with the second opinion."""
    return None if not found else {**agreement_rows(found, AGREEMENT), "n": found["n"]}


def _floor(report: Part) -> str | None:
    """How often the judge contradicts itself."""
    found = [repeat_line(report.get(part), words) for part, words in REPEATS.items()]
    lines = [f"The same judge, {line}." for line in found if line is not None]
    return " ".join(lines) or None


def _changed(found: Part | None, parent: str | None) -> dict[str, Any] | None:
    """What a rejudge changed for one judge."""
    if not found:
        return None
    mean = found["mean_signed_difference"]
    return {
        "parent": parent,
        "n": found["n"],
        "changed": found["changed"],
        "n_disagree": found["n_disagree"],
        "n_unscored": found["n_unscored"],
        "shift": None if mean is None else f"{mean:+.3f}",
        "interval": between(found),
        "p": p_text(found["p"]),
        "cases": found["cases"][:MOST_CHANGED],
        "n_more": found["changed"] - len(found["cases"][:MOST_CHANGED]),
    }


def _panel(found: Part | None) -> dict[str, Any] | None:
    """The members of a panel, and what they are worth together."""
    if not found:
        return None
    votes = found["effective_votes"]
    members = [
        {
            "name": name,
            "model": about.get("model") or "",
            "note": about.get("note") or "",
            "mean": number(found["mean_rating"].get(name), 2),
            "failures": _counted(found["failures"].get(name)),
        }
        for name, about in found["members"].items()
    ]
    return {
        "rule": found["rule"],
        "quorum": found["quorum"],
        "members": members,
        "pairs": [
            (" and ".join(pair["members"]), number(pair["exact"]), number(pair["same_class"]), pair["n"])
            for pair in found["agreement"]
        ],
        "facts": [
            ("cases that all members judged", f"{found['n_complete']} of {found['n_cases']}"),
            ("of these unanimous", str(found["n_unanimous"])),
            ("ties", str(found["n_ties"])),
            ("below the quorum", str(found["n_below_quorum"])),
            ("effective votes", f"{votes:.1f} of {len(members)}" if votes is not None else "n/a"),
            ("mean correlation of members", number(found["mean_correlation"], 2)),
        ],
        "why": found.get("undefined_reason"),
    }


def _history(found: Part) -> dict[str, Any]:
    """A history of checks: its state, why, and the checks drawn and listed, the newest first."""
    state, since = found["state"], found["since"]
    return {
        "state": state,
        "kind": _DRIFT.get(state, "bad"),
        "title": f"{found['judge']} {found['prompt_version']}, data set {found['dataset_sha256'][:12]}",
        "since": None if since is None else since["run_id"],
        "why": list(found["why"]),
        # Numbers and escaped texts only.
        "svg": Markup(drift_svg(found)),  # noqa: S704
        "header": DRIFT_HEADER,
        "rows": [timeline_cells(row) for row in reversed(found["timeline"])],
    }
