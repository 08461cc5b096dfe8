"""What labels, corrected means and comparators are worth on recorded verdicts of real judges.

`python -m benchmarks.reliability` prints these figures beside those of drift.
"""

import json
import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from statistics import fmean
from typing import Any

import judgekit
from benchmarks.human_agreement import SETS, config_for
from benchmarks.recorded import Figure, rows_of
from judgekit.stats.agreement import gwet_ac2, krippendorff_alpha, quadratic_weighted_kappa
from judgekit.stats.corrected import corrected_mean
from judgekit.stats.diagnostics import lift

N_DRAWS = 1000
N_LABELS = 50
NQ301 = "correctness_openqa_nq301.jsonl"
LLMBAR = "replay_llmbar_judges.jsonl"


def ppi_coverage(data: Path) -> Figure:
    """How often the interval from 50 random labels holds the mean of the run.

    Human verdicts on the answers of five systems, beside those of a real judge. 50 answers are drawn without
    replacement and keep their label; of the others only the judge's verdict is known.
    """
    cases = [
        (float(row["human_label"]), float(row["judge_outputs"]["gpt-4"]["verdict"]))
        for row in rows_of(data / NQ301)
        if row["judge_outputs"]["gpt-4"]["verdict"] is not None
    ]
    truth = fmean(human for human, _ in cases)
    rng = random.Random(301)  # a simulation
    hits = n_corrected = 0
    widths, widths_alone = [], []
    for _ in range(N_DRAWS):
        run = rng.sample(cases, len(cases))
        human, judge = [y for y, _ in run[:N_LABELS]], [j for _, j in run]
        found = corrected_mean(human, judge[:N_LABELS], judge[N_LABELS:])
        alone = corrected_mean(human[: N_LABELS - 1], judge[: N_LABELS - 1], judge[N_LABELS - 1 :])
        if found.low is None or found.high is None or alone.low is None or alone.high is None:
            continue
        n_corrected += found.method == "ppi++"
        hits += found.low <= truth <= found.high
        widths.append(found.high - found.low)
        widths_alone.append(alone.high - alone.low)
    share = hits / N_DRAWS
    return Figure(
        "ppi_coverage",
        f"share of {N_DRAWS} draws of {N_LABELS} labels whose interval holds the mean of the run",
        share,
        "0.93 to 0.97",
        0.93 <= share <= 0.97,
        {
            "n_cases": len(cases),
            "mean": round(truth, 4),
            "n_corrected": n_corrected,
            "mean_width": round(fmean(widths), 4),
            "mean_width_of_49_labels_alone": round(fmean(widths_alone), 4),
        },
    )


def published_agreement(_: Path) -> Figure:
    """Kappa, AC2 and alpha on worked examples of their authors, against the fractions that these come to.

    Krippendorff 2011: four observers, twelve units, with gaps; AC2 of the same as the R package irrCAC prints it. Gwet
    2014: 100 pregnancies in three classes by two abstractors.
    """
    gap = None
    observers: list[list[int | None]] = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
        [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
    ]
    units = [list(unit) for unit in zip(*observers, strict=True)]
    counts = {(0, 0): 13, (1, 1): 20, (1, 2): 7, (2, 1): 4, (2, 2): 56}
    pairs = [pair for pair, count in counts.items() for _ in range(count)]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    p_a, p_e = Fraction(515, 528), Fraction(15, 16) * Fraction(1754, 2304)
    # weighted: 11 pairs one class apart; expected over all pairs: sum of squares of differences of the margins
    expected = sum(
        Fraction(m * k, 100) * (i - j) ** 2 for i, m in enumerate((13, 27, 60)) for j, k in enumerate((13, 24, 63))
    )
    wanted = {
        "weighted_kappa": (quadratic_weighted_kappa(first, second)[0], 1 - Fraction(11) / expected),
        "ac2": (gwet_ac2(units, 1, 5)[0], (p_a - p_e) / (1 - p_e)),
        "alpha_ordinal": (krippendorff_alpha(units)[0], _alpha(units)),
    }
    errors = {name: abs((found or 0.0) - float(value)) for name, (found, value) in wanted.items()}
    printed = {"ac2": 0.914, "alpha_ordinal": 0.815}
    worst = max(errors.values())
    as_printed = all(abs(float(wanted[name][1]) - value) < 0.0006 for name, value in printed.items())
    return Figure(
        "published_agreement",
        "largest error of kappa, AC2 and alpha on published worked examples",
        worst,
        "<= 1e-9, and the digits in print",
        worst <= 1e-9 and as_printed,
        {name: round(float(value), 7) for name, (_, value) in wanted.items()},
    )


def _alpha(units: Sequence[Sequence[int | None]]) -> Fraction:
    """Krippendorff's alpha pair by pair, as the paper writes it."""
    rated = [[rating for rating in unit if rating is not None] for unit in units]
    rated = [unit for unit in rated if len(unit) >= 2]
    everything = [rating for unit in rated for rating in unit]
    totals = {rating: everything.count(rating) for rating in sorted(set(everything))}
    seen = sum(Fraction(_ordinal(a, b, totals), len(unit) - 1) for unit in rated for a in unit for b in unit)
    expected = Fraction(sum(_ordinal(a, b, totals) for a in everything for b in everything), len(everything) - 1)
    return 1 - seen / expected


def _ordinal(a: int, b: int, totals: Mapping[int, int]) -> int:
    low, high = min(a, b), max(a, b)
    between = sum(count for rating, count in totals.items() if low <= rating <= high)
    return (2 * between - totals[low] - totals[high]) ** 2 if a != b else 0


RATERS = ("Rating", "Rating_NoRules", "Rating_Metrics", "Rating_Reference")


def disagreement_ranks_backwards(data: Path) -> Figure:
    """A judge that cannot tell good from bad disagrees with its own variant less than one that can.

    Pointwise ratings 0 to 9 of both answers of each pair, put on the scale 0 to 5; two verdicts disagree if they are
    more than a point apart or on both sides of 4. Accuracy: the better answer of the pair gets the higher rating, half
    for equal ones.
    """
    rows = rows_of(data / LLMBAR)
    judges: dict[str, dict[str, Any]] = {}
    for model in ("gpt-3.5-turbo-0613", "gpt-4-0613"):
        base = f"{model}|Rating"
        variants = [
            f"{model}|{name}" for name in RATERS if any(f"{model}|{name}" in row["judge_outputs"] for row in rows)
        ]
        rates = {name: _rating_disagreement(rows, base, name) for name in variants if name != base}
        judges[model] = {"accuracy": round(_pair_accuracy(rows, base), 4), "disagreement": rates}
    weak, good = judges["gpt-3.5-turbo-0613"], judges["gpt-4-0613"]
    least = min(good["disagreement"].values())
    most = max(weak["disagreement"].values())
    return Figure(
        "disagreement_ranks_backwards",
        "disagreement with its own variant: the good judge's least over the weak judge's most",
        least / most,
        "> 1, although it is the more accurate one",
        least > most and good["accuracy"] > weak["accuracy"] + 0.2,
        judges,
    )


def _ratings(row: Mapping[str, Any], judge: str) -> tuple[float, float] | None:
    output = row["judge_outputs"].get(judge)
    if output is None or output["score_1"] is None or output["score_2"] is None:
        return None
    return output["score_1"], output["score_2"]


def _pair_accuracy(rows: Sequence[Mapping[str, Any]], judge: str) -> float:
    hits = []
    for row in rows:
        found = _ratings(row, judge)
        if found is not None:
            winner = 1 if found[0] > found[1] else 2 if found[1] > found[0] else None
            hits.append(0.5 if winner is None else float(winner == row["human_label"]))
    return fmean(hits)


def _rating_disagreement(rows: Sequence[Mapping[str, Any]], first: str, second: str) -> float:
    flags = []
    for row in rows:
        a, b = _ratings(row, first), _ratings(row, second)
        if a is not None and b is not None:
            for x, y in zip(a, b, strict=True):
                j0, j1 = round(x * 5 / 9), round(y * 5 / 9)
                flags.append(abs(j0 - j1) > 1 or (j0 >= 4) != (j1 >= 4))
    return round(fmean(flags), 4)


COMPARATORS = {
    "a variant": ("gpt-4-0613|Metrics", "gpt-4-0613|Reference", "gpt-4-0613|Metrics_Reference"),
    "a weaker second model": ("gpt-3.5-turbo-0613|Vanilla",),
}


def comparator_lift(data: Path) -> Figure:
    """What a flag means, for good variants of a judge and for a weaker second model.

    Preferences of gpt-4-0613 with the wording `Vanilla`; a flag is another preference of the comparator.
    """
    rows, judge = rows_of(data / LLMBAR), "gpt-4-0613|Vanilla"
    found: dict[str, list[float]] = {}
    for kind, names in COMPARATORS.items():
        for name in names:
            both = [row for row in rows if judge in row["judge_outputs"] and name in row["judge_outputs"]]
            verdicts = [(row["judge_outputs"][judge]["winner"], row["judge_outputs"][name]["winner"]) for row in both]
            flags = [first != second for first, second in verdicts]
            wrong = [first != str(row["human_label"]) for (first, _), row in zip(verdicts, both, strict=True)]
            found.setdefault(kind, []).append(round(lift(flags, wrong).value or 0.0, 2))
    variants, weaker = found["a variant"], found["a weaker second model"]
    return Figure(
        "comparator_lift",
        "smallest lift of a good variant of the judge",
        min(variants),
        "> 3 for variants, < 1 for the weaker model",
        min(variants) > 3.0 and max(weaker) < 1.0,
        found,
    )


def calibrated_baseline(data: Path) -> Figure:
    """The embedded judge on real answers, held against two to three annotators by `judgekit calibrate`.

    Clusters are questions. The labels are of every answer, so the pass rate of the run is known, and the one that
    `calibrate` makes of 60 random labels can be held against it.
    """
    from judgekit.engine.passes import Observer
    from judgekit.workflows.calibrate import CalibrationWanted, calibrate
    from judgekit.workflows.label import LabelWanted, open_labels
    from judgekit.workflows.models import Options

    rows = rows_of(data / NQ301)
    [labelled] = [item for item in SETS if item.file == NQ301]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        config = config_for(labelled, data / NQ301, {"provider": "lexical", "model": "overlap-2"})
        config["cases"]["fields"]["metadata.cluster"] = "cluster"
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        judgekit.run(folder / "config.json", results_dir=folder / "results", run_id="nq301")
        options = Options(results_dir=folder / "results")
        lines = {row["id"]: {"case_id": row["id"], "labels": row["human_labels_by_annotator"]} for row in rows}

        def calibrated(name: str, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
            path = folder / f"{name}.jsonl"
            path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
            wanted = CalibrationWanted(labels=path, cluster_by="metadata.cluster", width=0.1)
            return calibrate("nq301", wanted, options, Observer())[1]

        sheet = open_labels("nq301", LabelWanted(n=60), options).sheet
        drawn = [{"sheet": sheet.model_dump(mode="json")}, *(lines[case_id] for case_id in sheet.case_ids)]
        some = calibrated("sixty", drawn)["judges"]["correctness"]["corrected"]["pass_rate"]
        found = calibrated("all", list(lines.values()))
    report = found["judges"]["correctness"]
    anchors = report["anchors"]
    kappa = anchors["agreement"]["class"]["cohen_kappa"]["value"]
    return Figure(
        "calibrated_baseline",
        "Cohen's kappa of pass between the embedded judge and people",
        kappa,
        "0.5 or more",
        kappa >= 0.5,
        {
            name: anchors[name]
            for name in ("n", "n_clusters", "sensitivity", "specificity", "class_agreement", "pass_bias")
        }
        | {
            "agreement": anchors["agreement"]["class"],
            "humans": anchors["humans"],
            "thresholds": [(row["threshold"], row["cohen_kappa"]) for row in anchors["thresholds"]],
            "pass_rate_of_all_labels": report["corrected"]["pass_rate"]["estimate"],
            "pass_rate_of_60_labels": some,
        },
    )


FIGURES: Sequence[Callable[[Path], Figure]] = (
    ppi_coverage,
    published_agreement,
    disagreement_ranks_backwards,
    comparator_lift,
    calibrated_baseline,
)
