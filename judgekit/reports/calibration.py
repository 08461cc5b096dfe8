"""A judge against human labels as text: a section of summary.md, and what `judgekit calibrate` prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.reports.figures import number, p_value, printable_line
from judgekit.reports.tables import cell, table

Part = Mapping[str, Any]

CORRECTED_HEADER = ("judge", "figure", "judge says", "as people would say", "95% interval", "labels", "how")


def calibration_section(reliability: Part | None) -> list[str]:
    """The section of summary.md; nothing where no judge was held against labels."""
    found = _calibrated(reliability)
    if not found:
        return []
    parts = ["", "## Human labels", ""]
    parts += [f"* {cell(f'{name}: {line}')}" for name, report in found.items() for line in _lines(report)]
    rows = [[cell(text) for text in (name, *row)] for name, report in found.items() for row in corrected_rows(report)]
    if rows:
        parts += ["", *table(CORRECTED_HEADER, rows)]
    for name, report in found.items():
        confusion = report["anchors"]["confusion"]
        if confusion is not None:
            levels = levels_of(confusion, is_yes_no=report["anchors"]["pass_score"] is None)
            parts += ["", f"{cell(name)}, {levels}: people in rows, judge in columns.", ""]
            header = ["", *[str(level) for level in confusion["levels"]]]
            body = [
                [f"**{level}**", *map(str, row)]
                for level, row in zip(confusion["levels"], confusion["rows"], strict=True)
            ]
            parts += table(header, body)
    return parts


def calibration_lines(judges: Mapping[str, Part]) -> list[str]:
    """The same for a terminal, with the table of thresholds."""
    lines: list[str] = []
    for name, report in judges.items():
        anchors = report["anchors"]
        lines.append(
            f"{name} against {', '.join(f'{who} ({n})' for who, n in anchors['labels']['annotators'].items())}"
        )
        lines += [f"  {line}" for line in _lines(report)]
        for row in corrected_rows(report):
            figure, says, people, between, n_labels, how = row
            lines.append(f"  {figure}: judge {says}, as people would say {people} ({between}); {n_labels}; {how}")
        lines += [f"  {line}" for line in _confusion(anchors["confusion"], is_yes_no=anchors["pass_score"] is None)]
        lines += [f"  {line}" for line in _thresholds(anchors["thresholds"])]
        lines += [f"  note: {note}" for note in anchors["notes"]]
        lines.append("")
    return [printable_line(line) for line in lines]


def _calibrated(reliability: Part | None) -> dict[str, Part]:
    """Judges with figures of this command; what something else put there is not for this section."""
    by_judge = (reliability or {}).get("by_judge") or {}
    return {name: report for name, report in by_judge.items() if "class_agreement" in (report.get("anchors") or {})}


def _lines(report: Part) -> Iterator[str]:
    anchors = report["anchors"]
    is_yes_no = anchors["pass_score"] is None
    clusters = f" in {anchors['n_clusters']} clusters ({anchors['cluster_by']})" if anchors["cluster_by"] else ""
    yield f"{anchors['n']} labelled verdicts{clusters}; {anchors['labels']['part_reason']}"
    if anchors["class_agreement"]["n"]:
        right, wrong, same = (_share(anchors[key]) for key in ("sensitivity", "specificity", "class_agreement"))
        if is_yes_no:
            yield f"says yes in {right} where people do, no in {wrong} where they do; same answer in {same}"
        else:
            yield f"passes {right} of what people pass, fails {wrong} of what they fail; same class in {same}"
    rate = "of the share of yes" if is_yes_no else "of the pass rate"
    for key, what in (("bias", "points"), ("pass_bias", rate)):
        bias = anchors[key]
        if bias["value"] is not None:
            error = "" if bias["standard_error"] is None else f", standard error {bias['standard_error']:.3f}"
            said = bias["direction"] or bias["direction_reason"]
            yield f"judge minus people: {bias['value']:+.3f} {what}{_ends(bias)}{error}; {said}"
    yield from _agreement(anchors["agreement"])
    yield from _humans(anchors["humans"])
    yield from second_opinion_lines(anchors.get("baseline"), report.get("comparator_value"))


def _agreement(agreement: Part) -> Iterator[str]:
    for kind, kappa, words in (
        ("score", "quadratic_weighted_kappa", "weighted kappa"),
        ("class", "cohen_kappa", "kappa"),
    ):
        found = agreement[kind]
        if not found["n"]:
            continue
        figures = ((kappa, words), ("gwet_ac2", "AC2"), ("krippendorff_alpha", "alpha"))
        texts = [f"{label} {number(found[key]['value'], 2)}{_ends(found[key], 2)}" for key, label in figures]
        why = found.get("undefined_reason")
        few = f", indicative: fewer than 50 ({found['n']})" if found["indicative"] else ""
        yield f"{kind} agreement: {', '.join(texts)}{f'; {why}' if why else few}"


def _humans(humans: Part) -> Iterator[str]:
    ceiling = humans["ceiling"]
    if ceiling is None:
        why = humans.get("undefined_reason", "the judge has no pass class")
        yield f"human ceiling: not known, {why}"
        return
    alpha = humans["classes"]["krippendorff_alpha"]
    yield (
        f"human ceiling: an annotator agrees with the others in {number(ceiling['value'])}{_ends(ceiling)} of "
        f"{ceiling['n']} cases; alpha among people {number(alpha['value'], 2)}{_ends(alpha, 2)}"
    )


def second_opinion_lines(baseline: Part | None, comparator: Part | None) -> Iterator[str]:
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


def corrected_rows(report: Part) -> Iterator[tuple[str, ...]]:
    """What people would say of the run, a row a figure, in the order of `CORRECTED_HEADER` without the judge."""
    for name, found in (report.get("corrected") or {}).items():
        between = "n/a" if found["low"] is None else f"{found['low']:.3f} to {found['high']:.3f}"
        n_labels = f"{found['n_human']} labels"
        if found["n_effective"] is not None:
            n_labels += f", worth {found['n_effective']:.0f}"
        how = found["rule"] if found["reason"] is None else found["reason"]
        if found["lambda"] is not None:
            how += f", lambda {found['lambda']:.2f}"
        how += ", mean of this run" if found["target"] == "run" else ", mean of cases like these"
        how += _needed(found)
        yield name, number(found["judge_mean"]), number(found["estimate"]), between, n_labels, how


def _needed(found: Part) -> str:
    """How many labels the wanted width takes, where that was asked."""
    needed = found["labels_for_width"]
    if needed is None:
        return ""
    if needed["n"] is None:
        return f"; width {needed['width']:g}: {needed['reason']}"
    if needed["n"] <= found["n_human"]:
        return f"; width {needed['width']:g} is reached"
    return f"; width {needed['width']:g} takes {needed['n']} labels in all"


def levels_of(confusion: Part, *, is_yes_no: bool) -> str:
    """What the levels of a table of counts are."""
    return "no (0) and yes (1)" if is_yes_no else str(confusion["of"])


def _confusion(confusion: Part | None, *, is_yes_no: bool) -> Iterator[str]:
    if confusion is None:
        return
    yield f"{levels_of(confusion, is_yes_no=is_yes_no)}, people in rows, judge in columns:"
    yield "      " + "".join(f"{level:>6}" for level in confusion["levels"])
    for level, row in zip(confusion["levels"], confusion["rows"], strict=True):
        yield f"{level:>6}" + "".join(f"{count:>6}" for count in row)


def _thresholds(thresholds: list[Part]) -> Iterator[str]:
    if not thresholds:
        return
    yield "pass from   sensitivity   specificity     agreement         kappa"
    for row in thresholds:
        values = [row[name]["value"] for name in ("sensitivity", "specificity", "agreement")]
        yield f"{row['threshold']:>9}" + "".join(f"{number(value):>14}" for value in [*values, row["cohen_kappa"]])


def _share(found: Part) -> str:
    if found["value"] is None:
        return "n/a (0 cases)"
    return f"{found['value']:.3f}{_ends(found)} of {found['n']}"


def _ends(found: Part, digits: int = 3) -> str:
    if found["low"] is None or found["high"] is None:
        return ""
    return f" ({found['low']:.{digits}f} to {found['high']:.{digits}f})"
