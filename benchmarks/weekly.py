"""Half-years of the plain weekly run, end to end: `judgekit run` at a scripted server, with a clock of its own.

    python -m benchmarks.weekly [--seeds 20] [--cases 300] [--json FILE]

Each seed is a results folder of its own: one run a week, whose verdicts come from the cache from week 2 on, with a
second opinion and the judge asked again about 20 older verdicts; then what `judgekit drift` says.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from judgekit.analysis.drift_states import DRIFTED, DriftReport
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.testing import FaultServer, Reply, Request, plausible_verdict, verdict
from judgekit.workflows.drift import DriftQuery, drift_reports
from judgekit.workflows.job import start
from judgekit.workflows.models import Options
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.setup import set_up

START = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)
NOISE = 0.05


@dataclass
class ChangingJudge:
    """A judge that says 5 or 1, and flips some of its verdicts by week; the second model flips a few, always."""

    flips: Callable[[int], float]
    rng: random.Random
    week: int = 0

    def __call__(self, request: Request) -> Reply:
        """A reply to one request."""
        if '"ready"' in request.text:
            return plausible_verdict(request)
        rate = 0.08 if str(request.body["model"]).startswith("other") else self.flips(self.week)
        if self.week and self.rng.random() < rate:
            return verdict(1, unsupported=["x"])
        return verdict(5, supported=["x"])


def write_suite(folder: Path, base_url: str, n_cases: int) -> Path:
    """A config with its cases and outputs."""
    ids = [f"c{number}" for number in range(n_cases)]
    cases = [{"id": case_id, "question": f"How hot is kiln {case_id}?"} for case_id in ids]
    outputs: list[dict[str, Any]] = []
    for case_id in ids:
        text = f"Kiln {case_id} is fired at 1240 degrees."
        outputs.append({"case_id": case_id, "answer": text, "retrieved": [{"chunk_id": "k", "text": text}]})
    for name, rows in (("cases", cases), ("outputs", outputs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    at = {"base_url": base_url, "max_concurrency": 8}
    config = {
        "name": "weekly",
        "cases": "cases.jsonl",
        "system": {"name": "recorded", "path": "outputs.jsonl"},
        "models": {"m": {**at, "model": "m-2025-01-01"}, "other": {**at, "model": "other-2025-01-01"}},
        "judges": [{"name": "groundedness", "model": "m"}],
        "spot_check": {"n": 20, "model": "other"},
        "report": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder / "config.json"


def half_year(seed: int, n_weeks: int, n_cases: int, flips: Callable[[int], float]) -> DriftReport:
    """The weekly runs of one seed, and the report after the last."""
    judge = ChangingJudge(flips, random.Random(seed))  # a simulation
    with tempfile.TemporaryDirectory() as place, FaultServer(judge) as server:
        path = write_suite(Path(place), server.base_url, n_cases)
        for week in range(n_weeks):
            judge.week = week
            options = Options(
                results_dir=Path(place) / "results",
                run_id=f"week-{week + 1:02}",
                now=lambda: START + timedelta(weeks=judge.week),
            )
            job = start(set_up(path, options), options)
            run_local(partial(run_workflow, job, Observer()))
        [report] = drift_reports(DriftQuery(), options)
        return report


SCENARIOS: dict[str, tuple[int, Callable[[int], float], str]] = {
    "quiet": (26, lambda _: NOISE, "any alarm in 26 weeks with 5% noise (wanted <= 0.05)"),
    "step": (16, lambda week: 0.20 if week >= 8 else NOISE, "20% flips from week 9, found within 8 runs (>= 0.90)"),
    "growth": (20, lambda week: 0.015 * (week + 1), "flips grow 1.5 points a week, found by week 20 (>= 0.80)"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of seeds of each scenario."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--only", choices=sorted(SCENARIOS))
    parser.add_argument("--json", type=Path, help="also write the shares here")
    options = parser.parse_args(arguments)
    shares = {}
    for name, (n_weeks, flips, what) in SCENARIOS.items():
        if options.only not in (None, name):
            continue
        began = time.monotonic()
        reports = [half_year(seed, n_weeks, options.cases, flips) for seed in range(options.seeds)]
        if name == "quiet":
            found = sum(any(row["state"] in DRIFTED for row in report.timeline) for report in reports)
        else:
            found = sum(report.state == "judge" for report in reports)
        shares[name] = found / options.seeds
        seconds = time.monotonic() - began
        print(f"{name}: {found} of {options.seeds} seeds ({shares[name]:.3f}); {what}; {seconds:.0f} s", flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(shares, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
