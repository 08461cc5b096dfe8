"""What report.html shows of each judge; every part may be missing, since each has its own command."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from judgekit.core.kind import said_text
from judgekit.core.runs import RunSummary
from judgekit.reports.bridge_text import HEADER as BRIDGE_HEADER
from judgekit.reports.bridge_text import bridge_notes, bridge_rows
from judgekit.reports.calibration_report import human_label_parts
from judgekit.reports.charts import ends_text
from judgekit.reports.figures import by_judge, counted_names, number, p_value, rejudged_line
from judgekit.reports.judge_questions import Wordings, question_part, rubrics_of
from judgekit.reports.preference_text import preference_of
from judgekit.reports.probe_report import probe_part
from judgekit.reports.spot_check_report import STATUS_BADGES, spot_check_parts
from judgekit.reports.timelines import DRIFT_HEADER, drift_svg, timeline_cells

Part = Mapping[str, Any]

OPENED = 3
"""Judges that are shown opened; the others by their name."""

MOST_CHANGED = 12
"""Changed verdicts of a rejudge that are listed for each judge."""

_DRIFT = {"none": "good", "insufficient": "plain", "not asked": "warn"}


def judge_blocks(
    summary: RunSummary, histories: Sequence[Part] = (), prompts: Wordings | None = None
) -> list[dict[str, Any]]:
    """One object for each judge of which something is known.

    Args:
        summary: the figures.
        histories: drift reports of judges, as documents.
        prompts: the wordings of the run.
    """
    rubrics = rubrics_of(summary, prompts or {})
    reports, rejudged = by_judge(summary.judge_reliability), by_judge(summary.rejudged)
    names = dict.fromkeys([*summary.judges, *reports, *rejudged])
    blocks: list[dict[str, Any]] = []
    for name in names:
        report = reports.get(name) or {}
        block = {
            "question": question_part(name, summary, rubrics.get(name)),
            **spot_check_parts(report),
            **human_label_parts(report),
            "probes": probe_part(report.get("probes")),
            "rejudged": _changed(rejudged.get(name), (summary.rejudged or {}).get("parent")),
            "preference": preference_of(summary, name),
            "panel": _panel(summary.judges.get(name, {}).get("panel")),
            "drift": [_history(found) for found in histories if found["judge"] == name],
        }
        if any(block.values()):
            blocks.append({"name": name, "badges": list(_badges(block)), "open": len(blocks) < OPENED, **block})
    return blocks


def rejudged_text(summary: RunSummary) -> str | None:
    """How far the verdicts moved from those of the parent, over all judges; None if there is no parent."""
    line = rejudged_line(summary)
    return line and f"{line[0].upper()}{line[1:]}."


def bridge_part(found: Part | None) -> dict[str, Any] | None:
    """The bridge to another run as a table."""
    if not found:
        return None
    return {"old": found["old"], "header": BRIDGE_HEADER, "rows": bridge_rows(found), "notes": bridge_notes(found)}


def _badges(block: Part) -> Iterator[tuple[str, str]]:
    """(kind, text) beside the name of a judge: its state in a few words."""
    if block["spot_checks"]:
        status = block["spot_checks"][0]["status"]
        yield STATUS_BADGES.get(status, "warn"), f"spot check: {status}"
    if block["human_labels"]:
        yield "plain", f"{block['human_labels']['n']} human labels"
    if block["probes"]:
        yield block["probes"]["badge"]
    if block["rejudged"]:
        yield "plain", f"{block['rejudged']['changed']} of {block['rejudged']['n']} changed"
    if block["panel"]:
        yield "plain", f"panel of {len(block['panel']['members'])}"
    for found in block["drift"]:
        if found["state"] != "insufficient":
            yield found["kind"], f"drift: {found['state']}"


def _changed(found: Part | None, parent: str | None) -> dict[str, Any] | None:
    """What a rejudge changed for one judge."""
    if not found:
        return None
    mean = found["mean_signed_difference"]
    cases = [
        {**item, "before": said_text(item["before"]), "after": said_text(item["after"])}
        for item in found["cases"][:MOST_CHANGED]
    ]
    return {
        **found,
        "parent": parent,
        "shift": None if mean is None else f"{mean:+.3f}",
        "interval": ends_text(found),
        "p": p_value(found["p"]),
        "cases": cases,
        "n_more": found["changed"] - len(cases),
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
            "failures": counted_names(found["failures"].get(name)),
        }
        for name, about in found["members"].items()
    ]
    return {
        **found,
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
    """A history: its state, why, and its points drawn and listed, the newest first."""
    since = found["since"]
    return {
        **found,
        "kind": _DRIFT.get(found["state"], "bad"),
        "title": f"{found['judge']} {found['prompt_version']}, data set {found['dataset_sha256'][:12]}",
        "since": None if since is None else since["run_id"],
        # Numbers and escaped texts only.
        "svg": Markup(drift_svg(found)),  # noqa: S704
        "header": DRIFT_HEADER,
        "rows": [timeline_cells(row) for row in reversed(found["timeline"])],
    }
