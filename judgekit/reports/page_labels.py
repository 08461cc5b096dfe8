"""A judge against people, as report.html shows it: how it errs, and what the labels make of the run."""

from collections.abc import Mapping
from typing import Any

from judgekit.reports.calibration import CORRECTED_HEADER, corrected_rows, levels_of, second_opinion_lines
from judgekit.reports.figures import number
from judgekit.reports.page_rows import agreement_rows, interval_row, share_row

Part = Mapping[str, Any]

SHADES = 8
"""Shades of the table of scores."""

_CLASS = (("cohen_kappa", "kappa"), ("gwet_ac2", "AC2"), ("krippendorff_alpha", "alpha"))
_SCORE = (("quadratic_weighted_kappa", "weighted kappa"), ("gwet_ac2", "AC2"), ("krippendorff_alpha", "alpha"))


def label_parts(report: Part) -> dict[str, Any]:
    """The parts `anchors`, `corrected` and `comparator_value` of a judge; each None where it is missing."""
    comparator = report.get("comparator_value")
    anchors = report.get("anchors") or {}
    # Anchors of another maker may be in another form, which is not for this section.
    known = "class_agreement" in anchors
    return {
        "anchors": _anchors(anchors) if known else None,
        "corrected": _corrected(report),
        "comparator": _comparator(comparator, anchors.get("baseline") if known else None),
    }


_PASS_WORDS = ("passes of what people pass", "fails of what people fail", "same class")
_YES_NO_WORDS = ("yes where people say yes", "no where people say no", "same answer")


def _anchors(anchors: Part) -> dict[str, Any]:
    humans = anchors["humans"]
    is_yes_no = anchors["pass_score"] is None
    right, wrong, same = _YES_NO_WORDS if is_yes_no else _PASS_WORDS
    shares = [
        share_row(f"{right} (sensitivity)", anchors["sensitivity"]),
        share_row(f"{wrong} (specificity)", anchors["specificity"]),
        share_row(f"{same} as people", anchors["class_agreement"]),
        share_row("people with each other (human ceiling)", humans["ceiling"]),
    ]
    labels = anchors["labels"]
    return {
        "n": anchors["n"],
        "annotators": ", ".join(f"{who} ({n})" for who, n in labels["annotators"].items()),
        "part_reason": labels["part_reason"],
        "path": labels["path"],
        "sha256": str(labels["sha256"])[:12],
        "clusters": f"{anchors['n_clusters']} clusters of {anchors['cluster_by']}" if anchors["cluster_by"] else "",
        "pass_score": anchors["pass_score"],
        "shares": [row for row in shares if row is not None],
        "ceiling_note": None if humans["ceiling"] else f"human ceiling not known: {humans.get('undefined_reason', '')}",
        "biases": [row for row in (_bias(anchors, key, what) for key, what in _BIASES) if row is not None],
        "agreement": [
            {"kind": kind, "n": found["n"], **agreement_rows(found, figures)}
            for kind, figures in (("score", _SCORE), ("class", _CLASS))
            if (found := anchors["agreement"][kind])["n"]
        ],
        "confusion": _confusion(anchors["confusion"], is_yes_no=is_yes_no),
        "thresholds": [_threshold(row, anchors["pass_score"]) for row in anchors["thresholds"]],
        "notes": anchors["notes"],
    }


_BIASES = (("bias", "points"), ("pass_bias", "pass rate"))


def _bias(anchors: Part, key: str, what: str) -> dict[str, Any] | None:
    """Judge less people; nobody is called too strict or too mild where the labels are too few."""
    found = anchors[key]
    if found["value"] is None:
        return None
    ends = [abs(end) for end in (found["value"], found["low"], found["high"]) if end is not None]
    row = interval_row(what, found, max([1.0, *ends]))
    error = found["standard_error"]
    return {
        **row,
        "error": "" if error is None else number(error),
        "said": found["direction"] or found["direction_reason"],
    }


def _confusion(found: Part | None, *, is_yes_no: bool) -> dict[str, Any] | None:
    """Scores of people and of the judge, a darker cell for more cases."""
    if found is None:
        return None
    most = max((count for row in found["rows"] for count in row), default=0)
    return {
        "of": levels_of(found, is_yes_no=is_yes_no),
        "levels": found["levels"],
        "rows": [
            (
                level,
                [
                    {"n": count, "level": min(SHADES - 1, count * SHADES // most) if count else None, "same": x == y}
                    for x, count in enumerate(row)
                ],
            )
            for y, (level, row) in enumerate(zip(found["levels"], found["rows"], strict=True))
        ],
    }


def _threshold(row: Part, pass_score: int | None) -> dict[str, Any]:
    return {
        "threshold": row["threshold"],
        "is_used": row["threshold"] == pass_score,
        "values": [
            *(number(row[name]["value"]) for name in ("sensitivity", "specificity", "agreement")),
            number(row["cohen_kappa"]),
        ],
    }


def _corrected(report: Part) -> dict[str, Any] | None:
    rows = list(corrected_rows(report))
    return {"header": CORRECTED_HEADER[1:], "rows": rows} if rows else None


def _comparator(found: Part | None, baseline: Part | None) -> dict[str, Any] | None:
    """What a flag of the spot check is worth, and whether the second opinion is right more often."""
    rows = []
    if found and found["n"]:
        shares = (("wrong if flagged", "wrong_given_flag"), ("wrong if not flagged", "wrong_given_agreement"))
        rows = [row for row in (share_row(label, found[key]) for label, key in shares) if row is not None]
    lines = list(second_opinion_lines(baseline, found))
    return {"rows": rows, "lines": lines} if rows or lines else None
