"""A judge against human labels: a section of summary.md, what `judgekit calibrate` prints, a part of report.html."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.scores import stored_scale
from judgekit.reports.charts import agreement_rows, bias_row, count_rows, share_row
from judgekit.reports.figures import by_judge, compared_text, number, p_value, percent
from judgekit.reports.finding_sentences import calibration_sentence, with_sentence
from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned, bullets, cell, section, table

Part = Mapping[str, Any]

_COEFFICIENTS = (
    ("quadratic_weighted_kappa", "weighted kappa"),
    ("cohen_kappa", "kappa"),
    ("gwet_ac2", "AC2"),
    ("gwet_ac1", "AC1"),
    ("krippendorff_alpha", "alpha"),
)
"""Coefficients and their labels; weighted ones are of what has an order."""

_POINTS = {"criterion": "of the share met"}
"""What a bias is counted in, by what is labelled, where it is not points."""

SHORT_HEADER = ("judge", "figure", "value", "95% interval", "cases")

PARTS_HEADER = (
    "",
    "people",
    "judge",
    "says so where people do",
    "does not where they do not",
    "right where it says so",
)

CORRECTED_HEADER = ("judge", "figure", "judge says", "as people would say", "95% interval", "labels", "how")


def calibration_section(reliability: Part | None) -> list[str]:
    """The section of summary.md; empty if no judge was compared with labels."""
    found = _calibrated(reliability)
    if not found:
        return []
    parts = section(
        "Human labels", bullets(f"{name}: {line}" for name, report in found.items() for line in _lines(report))
    )
    rows = [[cell(text) for text in (name, *row)] for name, report in found.items() for row in _corrected_rows(report)]
    if rows:
        parts += ["", *table(CORRECTED_HEADER, rows)]
    for name, report in found.items():
        if report["anchors"].get("parts"):
            parts += ["", f"{cell(name)} by {report['anchors']['unit']}:", ""]
            parts += table(PARTS_HEADER, [[*map(cell, row)] for row in _part_rows(report["anchors"])])
        confusion = report["anchors"]["confusion"]
        if confusion is not None:
            parts += ["", f"{cell(name)}, {_levels(report['anchors'])}: people in rows, judge in columns.", ""]
            levels = [cell(str(level)) for level in confusion["levels"]]
            body = [[f"**{level}**", *map(str, row)] for level, row in zip(levels, confusion["rows"], strict=True)]
            parts += table(["", *levels], body)
    return parts


def _part_rows(compared: Part) -> Iterator[tuple[str, str, str, str, str, str]]:
    """How the judge does on each label or criterion, in the order of `PARTS_HEADER`."""
    for name, found in (compared.get("parts") or {}).items():
        said, unsaid, right = (_share(found[key]) for key in ("sensitivity", "specificity", "precision"))
        yield name, str(found["n_people"]), str(found["n_judge"]), said, unsaid, right


def _is_yes_no(compared: Part) -> bool:
    """Whether the two classes are yes and no; what older versions wrote does not say so."""
    if "classes" in compared:
        return bool(compared["classes"] == ["no", "yes"])
    return compared["pass_score"] is None


def _sentences(found: Part) -> list[str]:
    return [calibration_sentence(name, report, found["run_id"]) for name, report in found["judges"].items()]


def calibration_document(found: Part) -> dict[str, Any]:
    """What `judgekit calibrate --json` prints: calibration.json of these judges, with what it says in words."""
    return with_sentence(found, *_sentences(found))


def calibration_lines(found: Part, *, stats: bool = True) -> list[str]:
    """The same for a terminal; with `stats` every statistic, the confusion and the table of thresholds."""
    judges: Mapping[str, Part] = found["judges"]
    lines = [*_sentences(found), ""]
    rows = [row for name, report in judges.items() for row in _short_rows(name, report)]
    if not stats:
        notes = [f"note: {note}" for report in judges.values() for note in report["anchors"]["notes"]]
        lines += [*(aligned([SHORT_HEADER, *rows]) if rows else []), *notes, ""]
    for name, report in judges.items() if stats else ():
        compared = report["anchors"]
        lines.append(
            f"{name} against {', '.join(f'{who} ({n})' for who, n in compared['labels']['annotators'].items())}"
        )
        lines += [f"  {line}" for line in _lines(report)]
        for row in _corrected_rows(report):
            figure, says, people, between, n_labels, how = row
            lines.append(f"  {figure}: judge {says}, as people would say {people} ({between}); {n_labels}; {how}")
        lines += [f"  {line}" for line in _part_lines(compared)]
        lines += [f"  {line}" for line in _confusion_lines(compared)]
        lines += [f"  {line}" for line in _threshold_lines(compared["thresholds"])]
        weighed = compared.get("probabilities")
        lines += [
            f"  {line}" for line in _threshold_lines(weighed["thresholds"] if weighed and weighed["n"] else [], "p")
        ]
        lines += [f"  note: {note}" for note in compared["notes"]]
        lines.append("")
    return [printable_line(line) for line in lines]


def _short_rows(name: str, report: Part) -> Iterator[tuple[str, ...]]:
    """What of the labels is read first, a row a figure."""
    compared = report["anchors"]
    shares = {"same class as people": "class_agreement"}
    if not _is_yes_no(compared):
        shares |= {"passes what people pass": "sensitivity", "fails what they fail": "specificity"}
    for what, found in ((what, compared[key]) for what, key in shares.items()):
        if found["n"]:
            ends = f"{percent(found['low'])} to {percent(found['high'])}"
            yield name, what, percent(found["value"]), ends, str(found["n"])
    for figure, says, people, between, _, _ in _corrected_rows(report):
        yield name, f"{figure} by the judge", says, "", ""
        yield name, f"{figure} as people would say", people, between, str(compared["n"])


def _calibrated(reliability: Part | None) -> dict[str, Part]:
    """Judges that `judgekit calibrate` has figures of."""
    reports = by_judge(reliability).items()
    return {name: report for name, report in reports if "class_agreement" in (report.get("anchors") or {})}


def _lines(report: Part) -> Iterator[str]:
    compared = report["anchors"]
    is_yes_no = _is_yes_no(compared)
    clusters = f" in {compared['n_clusters']} clusters ({compared['cluster_by']})" if compared["cluster_by"] else ""
    yield f"{compared['n']} labelled verdicts{clusters}; {compared['labels']['part_reason']}"
    if compared["class_agreement"]["n"]:
        right, wrong, same = (_share(compared[key]) for key in ("sensitivity", "specificity", "class_agreement"))
        if is_yes_no:
            yield f"says yes in {right} where people do, no in {wrong} where they do; same answer in {same}"
        else:
            yield f"passes {right} of what people pass, fails {wrong} of what they fail; same class in {same}"
    rate = "of the share of yes" if is_yes_no else "of the pass rate"
    for key, what in (("bias", _POINTS.get(str(compared.get("unit")), "points")), ("pass_bias", rate)):
        bias = compared[key]
        if bias["value"] is not None:
            error = "" if bias["standard_error"] is None else f", standard error {bias['standard_error']:.3f}"
            said = bias["direction"] or bias["direction_reason"]
            yield f"judge minus people: {bias['value']:+.3f} {what}{_ends(bias)}{error}; {said}"
    yield from _agreement(compared["agreement"])
    yield from _humans(compared)
    yield from _cannot_tell(compared)
    yield from _probabilities(compared.get("probabilities"))
    yield from _second_opinion(compared.get("baseline"), report.get("comparator_value"))


def _probabilities(found: Part | None) -> Iterator[str]:
    """What the probabilities of the verdicts are worth, and the threshold that would separate best."""
    if found is None:
        return
    without = f", {found['n_without']} without" if found["n_without"] else ""
    if not found["n"]:
        yield f"probability of a pass: no labelled verdict has one{without}"
        return
    if found["auc"]["value"] is not None:
        areas = [("of the written verdict", "auc_written")]
        if found["auc_expected"] != found["auc"]:
            areas = [("of the expected score", "auc_expected"), *areas]
        texts = [f"{what} {number(found[key]['value'])}{_ends(found[key])}" for what, key in areas]
        yield f"AUC of the probability of a pass {_share(found['auc'])}{without}; {'; '.join(texts)}"
    ece, why = found["ece"], found.get("undefined_reason")
    yield (
        f"Brier score {number(found['brier']['value'])}{_ends(found['brier'])}; calibration error "
        f"{number(ece['value'])}{_ends(ece)}, {number(ece['if_calibrated'])} on average if every probability were "
        f"right{f'; {why}' if why else ''}"
    )
    if found["best_threshold"] is not None:
        best = next(row for row in found["thresholds"] if row["threshold"] == found["best_threshold"])
        yield (
            f"a pass from probability {best['threshold']:.3f} separates best here: sensitivity "
            f"{number(best['sensitivity']['value'])}, specificity {number(best['specificity']['value'])}; expect less "
            "of new cases"
        )


def _agreement(agreement: Part) -> Iterator[str]:
    for kind, found in agreement.items():
        if not found["n"]:
            continue
        texts = [f"{label} {number(found[key]['value'], 2)}{_ends(found[key], 2)}" for key, label in _shown(found)]
        why = found.get("undefined_reason")
        few = f", indicative: fewer than 50 ({found['n']})" if found["indicative"] else ""
        yield f"{kind} agreement: {', '.join(texts)}{f'; {why}' if why else few}"


def _shown(found: Part) -> list[tuple[str, str]]:
    """The coefficients that an agreement has."""
    return [(key, label) for key, label in _COEFFICIENTS if key in found]


def _humans(compared: Part) -> Iterator[str]:
    ceiling, among = _ceiling(compared)
    if ceiling is None:
        why = compared["humans"].get("undefined_reason", "the judge has no pass class")
        yield f"human ceiling: not known, {why}"
        return
    alpha = among["krippendorff_alpha"]
    yield (
        f"human ceiling: an annotator agrees with the others in {number(ceiling['value'])}{_ends(ceiling)} of "
        f"{ceiling['n']} cases; alpha among people {number(alpha['value'], 2)}{_ends(alpha, 2)}"
    )


def _ceiling(compared: Part) -> tuple[Part | None, Part]:
    """How far people agree: on the label or the criterion, else on the class."""
    humans, unit = compared["humans"], compared.get("unit", "score")
    if unit == "score" or not humans.get(f"ceiling_exact_{unit}"):
        return humans["ceiling"], humans.get("classes") or {}
    return humans.get(f"ceiling_exact_{unit}"), humans.get({"label": "labels"}.get(unit, "criteria")) or {}


def _cannot_tell(compared: Part) -> Iterator[str]:
    found = compared.get("cannot_tell")
    if found is not None and (found["people"] or found["judge"]):
        yield (
            f"cannot tell: people {found['people']}, the judge {found['judge']}, both {found['both']} of {found['n']}"
        )


def _second_opinion(baseline: Part | None, comparator: Part | None) -> Iterator[str]:
    """Who of two judges is right more often, and what a flag of the spot check is worth, by the labels."""
    if baseline is not None and baseline["n"]:
        against = baseline["against"]
        where = f" in {against['run_id']}" if "run_id" in against else ""
        yield (
            f"against {against['model_id']}, prompt {against['prompt_version']}{where}: only the judge is right "
            f"{baseline['n_only_judge_right']} times, only the other {baseline['n_only_baseline_right']} times of "
            f"{baseline['n']}, exact p {p_value(baseline['p'])}; {baseline['better'] or baseline['better_reason']}"
        )
    if comparator is not None and comparator["n"]:
        why = comparator.get("undefined_reason")
        lift = comparator["lift"]
        yield (
            f"worth of a flag of the spot check ({comparator['n_flagged']} flags in {comparator['n']} labelled pairs): "
            f"wrong if flagged {_share(comparator['wrong_given_flag'])}, wrong if not "
            f"{_share(comparator['wrong_given_agreement'])}, lift {number(lift['value'], 2)}{_ends(lift, 2)}"
            + (f"; {why}" if why else "")
        )


def _corrected_rows(report: Part) -> Iterator[tuple[str, ...]]:
    """What people would say of the run, a row a figure, in the order of `CORRECTED_HEADER` without the judge."""
    for name, found in (report.get("corrected") or {}).items():
        scale = stored_scale(found)
        says, people = (compared_text(found[key], scale) for key in ("judge_mean", "estimate"))
        low, high = (compared_text(found[key], scale).partition(" of ")[0] for key in ("low", "high"))
        between = "n/a" if found["low"] is None else f"{low} to {high}"
        n_labels = f"{found['n_human']} labels"
        if found["n_effective"] is not None:
            n_labels += f", worth {found['n_effective']:.0f}"
        how = found["rule"] if found["reason"] is None else found["reason"]
        if found["lambda"] is not None:
            how += f", lambda {found['lambda']:.2f}"
        how += ", mean of this run" if found["target"] == "run" else ", mean of cases like these"
        how += _needed(found)
        yield name, says, people, between, n_labels, how


def _needed(found: Part) -> str:
    """How many labels the wanted width takes, if a width was asked for."""
    needed = found["labels_for_width"]
    if needed is None:
        return ""
    if needed["n"] is None:
        return f"; width {needed['width']:g}: {needed['reason']}"
    if needed["n"] <= found["n_human"]:
        return f"; width {needed['width']:g} is reached"
    return f"; width {needed['width']:g} takes {needed['n']} labels in all"


def _levels(compared: Part) -> str:
    """What the levels of a table of counts are."""
    return "no (0) and yes (1)" if _is_yes_no(compared) else str(compared["confusion"]["of"])


def _part_lines(compared: Part) -> Iterator[str]:
    for name, people, judge, said, unsaid, right in _part_rows(compared):
        yield (
            f"{name}: people {people}, judge {judge}; says so in {said} where people do, does not in {unsaid} where "
            f"they do not; right in {right} where it says so"
        )


def _confusion_lines(compared: Part) -> Iterator[str]:
    confusion = compared["confusion"]
    if confusion is None:
        return
    yield f"{_levels(compared)}, people in rows, judge in columns:"
    levels = [str(level) for level in confusion["levels"]]
    width = max(6, *(len(level) + 2 for level in levels))
    yield " " * width + "".join(f"{level:>{width}}" for level in levels)
    for level, row in zip(levels, confusion["rows"], strict=True):
        yield f"{level:>{width}}" + "".join(f"{count:>{width}}" for count in row)


def _threshold_lines(thresholds: list[Part], of: str = "") -> Iterator[str]:
    if thresholds:
        yield f"{f'pass from {of}'.rstrip():>11}   sensitivity   specificity     agreement         kappa"
    for row in thresholds:
        yield f"{row['threshold']:>11.4g}" + "".join(f"{value:>14}" for value in _threshold_values(row))


def _threshold_values(row: Part) -> list[str]:
    values = [row[name]["value"] for name in ("sensitivity", "specificity", "agreement")]
    return [number(value) for value in (*values, row["cohen_kappa"])]


def _share(found: Part) -> str:
    if found["value"] is None:
        return "n/a (0 cases)"
    return f"{found['value']:.3f}{_ends(found)} of {found['n']}"


def _ends(found: Part, digits: int = 3) -> str:
    if found["low"] is None or found["high"] is None:
        return ""
    return f" ({found['low']:.{digits}f} to {found['high']:.{digits}f})"


def human_label_parts(report: Part) -> dict[str, Any]:
    """The parts `human_labels`, `corrected` and `comparator_value` of a judge; each None if it is missing."""
    corrected = list(_corrected_rows(report))
    compared = report.get("anchors") or {}
    # What another tool wrote there may have another form.
    known = "class_agreement" in compared
    return {
        "human_labels": _human_labels(compared) if known else None,
        "corrected": {"header": CORRECTED_HEADER[1:], "rows": corrected} if corrected else None,
        "comparator": _comparator(report.get("comparator_value"), compared.get("baseline") if known else None),
    }


_PASS_WORDS = ("passes of what people pass", "fails of what people fail", "same class")
_YES_NO_WORDS = ("yes where people say yes", "no where people say no", "same answer")


def _human_labels(compared: Part) -> dict[str, Any]:
    ceiling, _ = _ceiling(compared)
    right, wrong, same = _YES_NO_WORDS if _is_yes_no(compared) else _PASS_WORDS
    shares = [
        share_row(f"{right} (sensitivity)", compared["sensitivity"]),
        share_row(f"{wrong} (specificity)", compared["specificity"]),
        share_row(f"{same} as people", compared["class_agreement"]),
        share_row("people with each other (human ceiling)", ceiling),
    ]
    labels, confusion = compared["labels"], compared["confusion"]
    biases = (("bias", _POINTS.get(str(compared.get("unit")), "points")), ("pass_bias", "pass rate"))
    return {
        **compared,
        "annotators": ", ".join(f"{who} ({n})" for who, n in labels["annotators"].items()),
        "part_reason": labels["part_reason"],
        "path": labels["path"],
        "sha256": str(labels["sha256"])[:12],
        "clusters": f"{compared['n_clusters']} clusters of {compared['cluster_by']}" if compared["cluster_by"] else "",
        "shares": [row for row in shares if row is not None],
        "ceiling_note": "" if ceiling else f"human ceiling not known: {compared['humans'].get('undefined_reason', '')}",
        "biases": [row for row in (bias_row(what, compared[key]) for key, what in biases) if row is not None],
        "agreement": [
            {"kind": kind, "n": found["n"], **agreement_rows(found, _shown(found))}
            for kind, found in compared["agreement"].items()
            if found["n"]
        ],
        "parts": {"header": PARTS_HEADER, "rows": list(_part_rows(compared))} if compared.get("parts") else None,
        "confusion": None if confusion is None else {"of": _levels(compared), **count_rows(confusion)},
        "cannot_tell": next(_cannot_tell(compared), None),
        "probability_lines": list(_probabilities(compared.get("probabilities"))),
        "thresholds": [
            {**row, "is_used": row["threshold"] == compared["pass_score"], "values": _threshold_values(row)}
            for row in compared["thresholds"]
        ],
    }


def _comparator(found: Part | None, baseline: Part | None) -> dict[str, Any] | None:
    """What a flag of the spot check is worth, and whether the second opinion is right more often."""
    rows = []
    if found and found["n"]:
        shares = (("wrong if flagged", "wrong_given_flag"), ("wrong if not flagged", "wrong_given_agreement"))
        rows = [row for row in (share_row(label, found[key]) for label, key in shares) if row is not None]
    lines = list(_second_opinion(baseline, found))
    return {"rows": rows, "lines": lines} if rows or lines else None
