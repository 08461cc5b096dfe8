"""What the reliability figures are worth on recorded verdicts of real judges.

    python -m benchmarks.reliability [--data ../shared/data] [--only NAME] [--json FILE]

Each figure is a function from the data folder to a `Figure`; one whose data are not there is skipped with the reason.
The sets are no part of this repository.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks import calibration
from benchmarks.lexical import DEFAULT_DATA
from benchmarks.recorded import Figure, Skipped, rows_of
from judgekit.analysis.drift_states import DRIFTED, DriftReport, drift_report
from judgekit.core.history_points import HistoryPoint
from judgekit.workflows.judge_reliability import drawn

SEEDS = 200
WEEKLY = 20
"""Verdicts that are checked each week."""


def weekly_point(week: int, n_disagree: int, n: int = WEEKLY) -> HistoryPoint:
    """One weekly point of a judge by itself; nothing else changes."""
    return HistoryPoint(
        run_id=f"week-{week + 1:02}",
        judge="judge",
        prompt_version="v1",
        dataset_sha256="data",
        kind="rejudge",
        comparator="judge with v1",
        created_at=(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(weeks=week)).isoformat(),
        n_asked=n,
        n_pairs=n,
        n_disagree=n_disagree,
        n_failed=0,
        prompt_sha256="p",
        parser_version="1",
    )


def snapshot_change(data: Path) -> Figure:
    """The real change of a judge's snapshot behind one name, found by weekly points of twenty stored verdicts.

    Verdicts of gpt-3.5-turbo-0301 are stored, those of 0613 are what it says now; wording `Vanilla`, temperature 0,
    preferences on LLMBar. Each week draws its own sample without replacement.
    """
    first, second = "gpt-3.5-turbo-0301|Vanilla", "gpt-3.5-turbo-0613|Vanilla"
    outputs = [row["judge_outputs"] for row in rows_of(data / "replay_llmbar_judges.jsonl")]
    flips = [out[first]["winner"] != out[second]["winner"] for out in outputs if first in out and second in out]
    n_weeks = 7
    found = 0
    by_week = [0] * n_weeks
    for seed in range(SEEDS):
        rng = random.Random(seed)  # a simulation
        points = [weekly_point(week, sum(rng.sample(flips, WEEKLY))) for week in range(n_weeks)]
        states = [row["state"] for row in drift_report(points).timeline]
        if "judge" in states:
            found += 1
            by_week[states.index("judge")] += 1
    share = found / SEEDS
    return Figure(
        "snapshot_change",
        f"share of {SEEDS} seeds in which {n_weeks} weekly points of {WEEKLY} find the change",
        share,
        ">= 0.90",
        share >= 0.90,
        {"n_items": len(flips), "flip_rate": round(sum(flips) / len(flips), 4), "found_in_week": by_week},
    )


def _simulated(n_weeks: int, flips: Callable[[int], float], seed: int) -> DriftReport:
    rng = random.Random(seed)  # a simulation
    counts = [sum(rng.random() < flips(week) for _ in range(WEEKLY)) for week in range(n_weeks)]
    return drift_report([weekly_point(week, n) for week, n in enumerate(counts)])


def quiet_streams(_: Path) -> Figure:
    """Alarms on a judge that has noise and does not change."""
    n_streams = 10 * SEEDS
    n_alarms = sum(_simulated(26, lambda _: 0.05, seed).state != "none" for seed in range(n_streams))
    share = n_alarms / n_streams
    return Figure(
        "quiet_streams",
        f"share of {n_streams} histories of 26 weekly points with 5% noise that raise an alarm",
        share,
        "<= 0.05",
        share <= 0.05,
        {"n_alarms": n_alarms},
    )


def scripted_flips(_: Path) -> Figure:
    """A judge that flips 30% of its verdicts from week 9 on, with 5% noise before."""
    found = sum(_simulated(12, lambda week: 0.3 if week >= 8 else 0.05, seed).state == "judge" for seed in range(SEEDS))
    share = found / SEEDS
    return Figure(
        "scripted_flips",
        f"share of {SEEDS} seeds in which 30% flips from week 9 are found within 4 points",
        share,
        ">= 0.90",
        share >= 0.90,
        {},
    )


def _routine(n_weeks: int, flips: Callable[[int], float], seed: int) -> DriftReport:
    """The default weekly routine: 300 cached verdicts, twenty second opinions and twenty repeats on fresh samples."""
    rng = random.Random(seed)  # a simulation
    ids = [str(number) for number in range(300)]
    points = []
    for week in range(n_weeks):
        for kind, rate in (("spot_check", 0.08), ("rejudge", flips(week)))[: 2 if week else 1]:
            sample = drawn(ids, WEEKLY, random.Random(rng.getrandbits(32)), adaptive=False)
            point = weekly_point(week, sum(rng.random() < rate for _ in sample))
            points.append(point.model_copy(update={"kind": kind, "comparator": f"judge, {kind}"}))
    return drift_report(points)


def quiet_routine(_: Path) -> Figure:
    """Any alarm in half a year of the default routine with 5% noise."""
    reports = [_routine(26, lambda _: 0.05, seed) for seed in range(SEEDS)]
    n_alarms = sum(any(row["state"] in DRIFTED for row in report.timeline) for report in reports)
    what = f"share of {SEEDS} half-years of the weekly routine with 5% noise that raise any alarm"
    return Figure("quiet_routine", what, n_alarms / SEEDS, "<= 0.05", n_alarms / SEEDS <= 0.05, {"n_alarms": n_alarms})


def step_in_the_routine(_: Path) -> Figure:
    """20% of verdicts flip from week 9 on."""
    reports = [_routine(16, lambda week: 0.20 if week >= 8 else 0.05, seed) for seed in range(SEEDS)]
    share = sum(report.state == "judge" for report in reports) / SEEDS
    what = f"share of {SEEDS} seeds in which 20% flips from week 9 are found within 8 weekly runs"
    return Figure("step_in_the_routine", what, share, ">= 0.90", share >= 0.90, {})


def growth_in_the_routine(_: Path) -> Figure:
    """Flips that grow by 1.5 points a week from week 1 on."""
    reports = [_routine(20, lambda week: 0.015 * (week + 1), seed) for seed in range(SEEDS)]
    share = sum(report.state == "judge" for report in reports) / SEEDS
    what = f"share of {SEEDS} seeds in which flips that grow by 1.5 points a week are found by week 20"
    return Figure("growth_in_the_routine", what, share, ">= 0.80", share >= 0.80, {})


FIGURES: Sequence[Callable[[Path], Figure]] = (
    snapshot_change,
    quiet_streams,
    scripted_flips,
    quiet_routine,
    step_in_the_routine,
    growth_in_the_routine,
    *calibration.FIGURES,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print every figure; exit code 1 where one does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="folder with the sets")
    parser.add_argument("--only", help="one figure, by the name of its function")
    parser.add_argument("--json", type=Path, help="also write them here")
    options = parser.parse_args(arguments)
    found = []
    for function in FIGURES:
        if options.only not in (None, function.__name__):
            continue
        try:
            figure = function(options.data)
        except Skipped as reason:
            print(f"{function.__name__}: skipped, {reason}")
            continue
        found.append(figure)
        verdict = "holds" if figure.holds else "DOES NOT HOLD"
        print(f"{figure.name}: {figure.value:.4g} (wanted {figure.wanted}: {verdict}); {figure.what}; {figure.details}")
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(figure) for figure in found], indent=1, sort_keys=True) + "\n")
    return int(not all(figure.holds for figure in found))


if __name__ == "__main__":
    sys.exit(main())
