"""The plain weekly way: a run with a spot check each week, answered from the cache, and what `drift` says then."""

import json
import os
import random
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judgekit.analysis.drift_points import AskedAgain, SampleCounts, history_point, pair_row
from judgekit.analysis.drift_states import DRIFTED, DriftReport, drift_report
from judgekit.core.cache_keys import REPLY_PREFIX
from judgekit.core.history_points import HistoryPoint, PointKind
from judgekit.core.judgments import Verdict
from judgekit.core.runs import RunSummary
from judgekit.core.verdict_kinds import Scale
from judgekit.engine.passes import Observer
from judgekit.executors.event_loop import run_local
from judgekit.reports.run_text import dry_run_text
from judgekit.storage.cache_entries import open_reader
from judgekit.storage.cache_transfer import export_entries, import_entries
from judgekit.storage.reply_cache import DiskReplyCache, checksum_of
from judgekit.testing import FaultServer, Reply, Request, plausible_verdict, verdict
from judgekit.workflows.drift import DriftQuery, accept_drift, drift_reports
from judgekit.workflows.dry_run import dry_run
from judgekit.workflows.job import start
from judgekit.workflows.judge_reliability import drawn
from judgekit.workflows.models import Options
from judgekit.workflows.resuming import resume_job
from judgekit.workflows.run import run as run_workflow
from judgekit.workflows.setup import set_up
from tests.builders import read_json, read_lines, write_suite
from tests.workflows.stored_suites import check, models

START = datetime(2026, 1, 5, 6, 0, tzinfo=UTC)
N_SEEDS = 200
N_CASES = 300
WEEKLY = 20
CHANGE = 8
"""Position of week 9."""

# the default routine, simulated: 300 cached cases, a second opinion and the judge again on fresh samples of 20


def week_points(rng: random.Random, week: int, flips: float) -> list[HistoryPoint]:
    """What a weekly run adds to the history: from week 2 on the verdicts of week 1 are older than a day."""
    at = START + timedelta(weeks=week)
    verdicts = HistoryPoint(
        run_id=f"week-{week + 1:02}", judge="groundedness", prompt_version="v1", dataset_sha256="d", kind="run",
        comparator="", created_at=at.isoformat(), n_asked=0, n_pairs=0, n_disagree=0, n_failed=0, prompt_sha256="p",
        parser_version="1", answers_sha256="a", score_mean=5.0, score_sd=0.0, n_scores=N_CASES, verdict_model="m",
    )  # fmt: skip
    ids = [f"c{number}" for number in range(N_CASES)]
    kinds: tuple[tuple[PointKind, str, float], ...] = (
        ("spot_check", "m with v2", 0.08),
        ("rejudge", "m with v1", flips),
    )
    points = []
    for kind, comparator, rate in kinds[: 1 if week == 0 else 2]:
        sample = drawn(ids, WEEKLY, random.Random(rng.getrandbits(32)), adaptive=False)
        stored = {case_id: Verdict(score=5) for case_id in sample}
        now = {case_id: Verdict(score=1 if rng.random() < rate else 5) for case_id in sample}
        rows = [pair_row(stored[case_id], now[case_id], Scale(pass_score=4)) for case_id in sample]
        points.append(history_point(verdicts, AskedAgain(kind, comparator, at.isoformat()), SampleCounts(rows)))
    return points


def half_years(n_weeks: int, flips: Callable[[int], float]) -> list[DriftReport]:
    """One report for each seed."""
    found = []
    for seed in range(N_SEEDS):
        rng = random.Random(seed)
        found.append(drift_report([item for week in range(n_weeks) for item in week_points(rng, week, flips(week))]))
    return found


def share(reports: list[DriftReport], holds: Callable[[DriftReport], bool]) -> float:
    return sum(map(holds, reports)) / len(reports)


@pytest.mark.slow
def test_26_quiet_weeks_with_5_percent_noise_raise_an_alarm_in_at_most_5_percent_of_seeds() -> None:
    reports = half_years(26, lambda _: 0.05)
    assert share(reports, lambda report: any(row["state"] in DRIFTED for row in report.timeline)) <= 0.05
    assert share(reports, lambda report: report.state == "none") >= 0.95
    # before the second week nothing older than a day was there to be asked about
    assert {report.timeline[0]["state"] for report in reports} == {"insufficient"}


@pytest.mark.slow
def test_20_percent_flips_from_week_9_are_found_within_8_points_in_at_least_90_percent_of_seeds() -> None:
    reports = half_years(CHANGE + 8, lambda week: 0.20 if week >= CHANGE else 0.05)
    assert share(reports, lambda report: report.state == "judge") >= 0.90


@pytest.mark.slow
def test_flips_that_grow_by_one_and_a_half_points_a_week_are_found_by_week_20_in_at_least_80_percent_of_seeds() -> None:
    reports = half_years(20, lambda week: 0.015 * (week + 1))
    assert share(reports, lambda report: report.state == "judge") >= 0.80


# end to end, with a clock of its own


@dataclass
class Weekly:
    """A judge at a server that changes from week to week, and the weekly runs of it."""

    folder: Path
    server: FaultServer
    flips: Callable[[int], float]
    """By week, how many of its verdicts are not those of week 1."""
    week: int = 0
    questions: list[str] = field(default_factory=list)
    """The model of each question so far."""

    def config(self, n_cases: int = 60, **changes: Any) -> Path:
        document = {
            "models": {
                name: {**model, "pin": {"build_hash": None}}
                for name, model in models(self.server, "m", "other").items()
            },
            "spot_check": {"n": WEEKLY, "model": "other"},
            **changes,
        }
        return write_suite(self.folder, self.server.base_url, n_cases=n_cases, **document)

    def options(self, week: int, **fields: Any) -> Options:
        self.week = week
        at = START + timedelta(weeks=week)
        values = {"results_dir": self.folder / "results", "run_id": f"week-{week + 1:02}", "now": lambda: at, **fields}
        return Options(**values)

    def run(self, week: int, path: Path, **fields: Any) -> RunSummary:
        job = start(set_up(path, self.options(week, **fields)), self.options(week, **fields))
        return run_local(lambda: run_workflow(job, Observer()))

    def dry_run(self, week: int, path: Path) -> dict[str, Any]:
        options = self.options(week)
        return run_local(lambda: dry_run(set_up(path, options), options))

    def drift(self, **query: Any) -> DriftReport:
        [report] = drift_reports(DriftQuery(**query), self.options(self.week))
        return report

    def asked(self, model: str = "m-") -> int:
        """Calls to a model for verdicts so far."""
        return sum(name.startswith(model) for name in self.questions)

    def folder_of(self, week: int) -> Path:
        return self.folder / "results" / f"week-{week + 1:02}"


def is_question(request: Request) -> bool:
    return '"ready"' not in request.text


@pytest.fixture
def weekly(tmp_path: Path) -> Any:
    """A judge that says 5 of every case in week 1; by default it stays so."""
    state = Weekly(tmp_path, None, lambda _: 0.0)  # type: ignore[arg-type]  # the server needs its judge first
    rng = random.Random(1)

    def judge(request: Request) -> Reply:
        if not is_question(request):
            return plausible_verdict(request)
        state.questions.append(str(request.body["model"]))
        if state.questions[-1].startswith("m-") and rng.random() < state.flips(state.week):
            return verdict(1, unsupported=["x"])
        return verdict(5, supported=["x"])

    with FaultServer(judge) as server:
        state.server = server
        yield state


@pytest.mark.slow
def test_a_weekly_run_that_answers_from_the_cache_finds_the_drift_by_default(weekly: Weekly) -> None:
    path = weekly.config()
    weekly.flips = lambda week: 0.35 if week >= 4 else 0.0
    states = []
    for week in range(8):
        n_before = weekly.asked()
        weekly.run(week, path)
        # 60 verdicts in the first week, afterwards only the repeats of 20
        assert weekly.asked() - n_before == (60 if week == 0 else WEEKLY)
        states.append(weekly.drift().state)
    assert states[:4] == ["insufficient", "none", "none", "none"]
    assert "judge" in states[4:]
    report = weekly.drift()
    assert report.since is not None
    assert report.since.run_id == "week-05"
    assert re.match(
        r"the same judge asked again later, m-2025-01-01 with v1: \d+ of 80 contradict the stored verdict \(\d+%\) "
        r"since run week-05, 0 of 60 \(0%\) before, more than the usual 5\.0% ",
        next(line for line in report.why if "the same judge" in line),
    )
    # each week draws cases of its own, and says with which seed
    samples = [
        next(item for item in read_json(weekly.folder_of(week) / "checks.json")["checks"] if item["check"] == "again")
        for week in range(1, 8)
    ]
    assert len({tuple(item["case_ids"]) for item in samples}) == len({item["seed"] for item in samples}) == 7


def test_a_judgment_from_the_cache_keeps_the_time_of_its_reply(weekly: Weekly) -> None:
    path = weekly.config(n_cases=4)
    weekly.run(0, path)
    weekly.run(3, path)
    times = [
        {
            item["case_id"]: item["created_at"]
            for item in read_lines(weekly.folder_of(week) / "judgments.jsonl")
            if item["role"] == "primary"
        }
        for week in (0, 3)
    ]
    assert set(times[0].values()) == {START.isoformat(timespec="milliseconds")}
    assert times[0] == times[1]


def test_repeats_of_older_verdicts_are_no_noise_floor_and_those_of_today_are(weekly: Weekly) -> None:
    # 4 of 8 verdicts are three weeks old, the others are of today: asked again, the first may have drifted
    repeat = {"n": 8, "repeat": True}
    weekly.run(0, weekly.config(n_cases=4, spot_check=repeat))
    weekly.run(3, weekly.config(n_cases=8, spot_check=repeat))
    database = [json.loads(row) for row in _points(weekly)]
    found = sorted((row["run_id"], row["kind"], row["n_pairs"]) for row in database)
    assert found == [("week-01", "noise_floor", 4), ("week-04", "noise_floor", 4), ("week-04", "rejudge", 4)]
    report = read_json(weekly.folder_of(3) / "metrics.json")["judge_reliability"]["by_judge"]["groundedness"]
    assert (report["noise_floor"]["n"], report["asked_later"]["n"]) == (4, 4)


def _points(weekly: Weekly) -> list[str]:
    from judgekit.storage.database import Database

    return [item.model_dump_json() for item in Database(weekly.folder / "results").points()]


@pytest.mark.slow
def test_verdicts_asked_anew_each_week_show_a_judge_whose_mean_falls_on_the_same_answers(weekly: Weekly) -> None:
    # 35% of 5 become 1: the mean falls from 5.0 to about 3.6, and nothing is asked again about older verdicts
    weekly.flips = lambda week: 0.35 if week >= 2 else 0.0
    path = weekly.config()
    states = []
    for week in range(3):
        weekly.run(week, path, use_cache=False)
        states.append(weekly.drift().state)
    assert states == ["insufficient", "insufficient", "judge"]
    assert any(
        line.startswith("the same answers score differently: mean 5.000 in run week-01") for line in weekly.drift().why
    )


@pytest.mark.slow
def test_without_any_spot_check_the_state_is_not_asked_and_a_fallen_mean_is_still_found(weekly: Weekly) -> None:
    path = weekly.config(spot_check=None)
    document = read_json(path)
    del document["spot_check"]
    path.write_text(json.dumps(document), encoding="utf-8")
    for week in range(3):
        weekly.run(week, path)
    report = weekly.drift()
    assert report.state == "not asked"
    assert report.why == (
        "no verdict was checked in 3 runs, so nothing is known about drift; a `spot_check` in the config checks some",
    )
    weekly.flips = lambda _: 0.5
    weekly.run(3, path, use_cache=False)
    assert weekly.drift().state == "judge"


def test_a_run_that_asked_nobody_says_so(weekly: Weekly) -> None:
    path = weekly.config(n_cases=30, spot_check={"n": 3, "model": "other", "repeat_n": 0})
    assert not [item for item in weekly.run(0, path).warnings if item.code.endswith("_from_cache")]
    summary = weekly.run(3, path)
    text = (
        "judge groundedness was not asked: all 30 verdicts from the cache, newest 21 days old: nothing is known about "
        "today's judge"
    )
    assert [item.message for item in summary.warnings if item.code == "all_from_cache"] == [text]
    assert text in (weekly.folder_of(3) / "summary.md").read_text(encoding="utf-8").replace("\\", "")
    page = (weekly.folder_of(3) / "report.html").read_text(encoding="utf-8")
    assert "all 30 verdicts from the cache, newest 21 days old" in page


def test_a_run_that_asked_a_few_times_says_so_and_one_that_asked_enough_does_not(weekly: Weekly) -> None:
    weekly.run(0, weekly.config(n_cases=30))
    few = weekly.run(3, weekly.config(n_cases=30, spot_check={"n": 3, "model": "other", "repeat_n": 5}))
    [warning] = [item for item in few.warnings if item.code.endswith("_from_cache")]
    assert warning.code == "mostly_from_cache"
    assert warning.message == (
        "judge groundedness: 30 of 30 verdicts from the cache, newest 21 days old, and it was asked 5 times: "
        "little is known about today's judge"
    )
    enough = weekly.run(4, weekly.config(n_cases=30))
    assert [item.code for item in enough.warnings if item.code.endswith("_from_cache")] == []


def test_the_repeats_are_counted_in_the_dry_run(weekly: Weekly) -> None:
    path = weekly.config(n_cases=30)
    weekly.run(0, path)
    # which verdicts are cached cannot be told without asking the server what it has loaded, so this is the most
    unpinned = weekly.dry_run(3, path)["repeats"]["groundedness"]
    assert (unpinned["n_calls"], unpinned["n_cached"]) == (20, None)
    off = weekly.config(n_cases=30, spot_check={"n": 5, "model": "other", "repeat_n": 0})
    assert weekly.dry_run(3, off)["repeats"] == {}


def test_the_dry_run_of_a_pinned_judge_counts_what_the_run_asks(weekly: Weekly) -> None:
    weekly.run(0, weekly.config(n_cases=30))
    build = read_json(weekly.folder_of(0) / "manifest.json")["models"]["m"]
    pinned = {
        name: {**model, "pin": {"build_hash": build["build_hash"]}}
        for name, model in models(weekly.server, "m", "other").items()
    }
    path = weekly.config(n_cases=30, models=pinned)
    today = weekly.dry_run(0, path)
    assert today["repeats"]["groundedness"]["n_calls"] == 0
    dry_run = weekly.dry_run(3, path)
    assert (dry_run["judges"]["groundedness"]["n_cached"], dry_run["repeats"]["groundedness"]["n_calls"]) == (30, 20)
    assert "  judge groundedness asked again: 30 verdicts older than a day, 20 calls to m\n" in dry_run_text(dry_run)
    n_before = len(weekly.questions)
    weekly.run(3, path)
    assert len(weekly.questions) - n_before == dry_run["n_calls"] == 40


def test_a_repeat_that_was_stopped_asks_the_same_cases_and_nothing_twice(weekly: Weekly) -> None:
    path = weekly.config(n_cases=30)
    weekly.run(0, path)
    document = read_json(path)
    path.write_text(json.dumps({**document, "budget": {"max_calls": 27}}), encoding="utf-8")
    n_before = weekly.asked() + weekly.asked("other")
    with pytest.raises(Exception, match="max_calls"):
        weekly.run(3, path)
    record = _again(weekly, 3)
    assert record["complete"] is False
    path.write_text(json.dumps(document), encoding="utf-8")
    options = weekly.options(4, run_id=None)
    job = resume_job(str(weekly.folder_of(3)), path, options)
    run_local(lambda: run_workflow(job, Observer()))
    after = _again(weekly, 3)
    assert (after["case_ids"], after["seed"], after["complete"]) == (record["case_ids"], record["seed"], True)
    lines = [item for item in read_lines(weekly.folder_of(3) / "judgments.jsonl") if item.get("check") == "again"]
    assert sorted(item["case_id"] for item in lines) == sorted(after["case_ids"])
    # 20 second opinions and 20 repeats in all
    assert weekly.asked() + weekly.asked("other") - n_before == 40


def _again(weekly: Weekly, week: int) -> Any:
    records = read_json(weekly.folder_of(week) / "checks.json")["checks"]
    return next(item for item in records if item["check"] == "again")


def test_a_seed_in_the_config_fixes_the_second_opinions_and_still_asks_again_about_other_cases(weekly: Weekly) -> None:
    path = weekly.config(seed=5)
    for week in range(3):
        weekly.run(week, path)
    records = [read_json(weekly.folder_of(week) / "checks.json")["checks"] for week in (1, 2)]
    own, again = ([item for record in records for item in record if item["check"] == name] for name in ("run", "again"))
    assert [item["seed"] for item in own] == [5, 5]
    assert own[0]["case_ids"] == own[1]["case_ids"]
    assert again[0]["case_ids"] != again[1]["case_ids"]


@pytest.mark.slow
def test_an_accepted_judge_begins_a_new_history_that_survives_a_reindex(weekly: Weekly) -> None:
    from judgekit.storage.database import Database
    from judgekit.storage.run_index import reindex

    weekly.flips = lambda week: 0.8 if week >= 2 else 0.0
    path = weekly.config()
    for week in range(3):
        weekly.run(week, path)
    assert weekly.drift().state == "judge"
    later = replace(weekly.options(3), now=lambda: START + timedelta(weeks=2, days=1))
    [line] = accept_drift(DriftQuery(), later, usual=0.9, reason="a new snapshot")
    assert line.startswith("accepted: groundedness v1 as it is now")
    (weekly.folder / "results" / "judgekit.db").unlink()
    reindex(weekly.folder / "results", Database(weekly.folder / "results"))
    report = weekly.drift()
    assert (report.state, report.accepted and report.accepted["reason"]) == ("not asked", "a new snapshot")
    assert [row["state"] for row in report.timeline if row["kind"] == "rejudge"] == ["none", "judge"]
    weekly.run(3, path)
    assert weekly.drift().state == "none"  # 0.8 is not more than the 0.9 that is usual


def test_twenty_of_twenty_self_flips_beside_an_earlier_spot_check_are_an_alarm(weekly: Weekly) -> None:
    from judgekit.reports.spot_check_report import reliability_lines

    path = weekly.config(n_cases=20, spot_check={"n": 20, "model": "other", "repeat_n": 0})
    weekly.run(0, path)
    weekly.flips = lambda _: 1.0
    summary = check(weekly.folder_of(0), against="repeat")
    report = (summary.judge_reliability or {})["by_judge"]["groundedness"]
    assert (report["n_disagree"], report["against"]["kind"]) == (0, "model")
    [again] = report["other_checks"]
    assert (again["n_disagree"], again["alarm"]["status"]) == (20, "alarm")
    text = "\n".join(reliability_lines(summary.judge_reliability, {"groundedness": again["check"]}))
    assert "disagree: 20 (1.00)" in text
    assert "status: alarm" in text
    assert "disagree: 0" not in text
    [warning] = [item for item in summary.warnings if item.code == "judge_unstable"]
    assert "disagree with the judge itself, asked again" in warning.message


def test_replies_that_an_older_judgekit_cached_are_as_old_as_their_entries(weekly: Weekly) -> None:
    path = weekly.config(n_cases=4)
    weekly.run(0, path)
    cache = DiskReplyCache(weekly.folder / "results" / ".cache")
    for key in [key for key in cache.keys() if key.startswith(REPLY_PREFIX)]:  # noqa: SIM118  # no mapping
        reply = json.loads(cache.get(key) or "")
        del reply["replied_at"]
        cache.put_many([(key, json.dumps(reply))])
    cache.close()
    stored_at = datetime(2025, 12, 1, tzinfo=UTC)
    with sqlite3.connect(weekly.folder / "results" / ".cache" / "cache.db") as connection:
        connection.execute("UPDATE Cache SET store_time = ?", (stored_at.timestamp(),))
    connection.close()
    weekly.run(1, path)
    lines = read_lines(weekly.folder_of(1) / "judgments.jsonl")
    times = {item["created_at"] for item in lines if item["role"] == "primary"}
    assert times == {"2025-12-01T00:00:00.000+00:00"}
    # exported and imported elsewhere, they keep it
    reader = open_reader(weekly.folder / "results" / ".cache")
    assert reader is not None
    with reader:
        export_entries(reader, weekly.folder / "replies.jsonl")
    import_entries(weekly.folder / "other" / ".cache", weekly.folder / "replies.jsonl")
    n_before = len(weekly.questions)
    weekly.run(2, path, results_dir=weekly.folder / "other")
    lines = read_lines(weekly.folder / "other" / "week-03" / "judgments.jsonl")
    assert {item["created_at"] for item in lines if item["role"] == "primary"} == times
    # 4 second opinions and 4 repeats: no verdict was asked for again
    assert len(weekly.questions) - n_before == 8


def test_a_reply_of_an_older_export_is_as_old_as_the_file(tmp_path: Path) -> None:
    key = REPLY_PREFIX + "0" * 64
    fields = {"text": "x", "finish_reason": None, "refusal": None, "usage": None, "served_model": None}
    reply = json.dumps({**fields, "fingerprint": None, "source": "content"})
    line = {"key": key, "reply": reply, "checksum": checksum_of(key, reply)}
    path = tmp_path / "replies.jsonl"
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    os.utime(path, (START.timestamp(), START.timestamp()))
    import_entries(tmp_path / ".cache", path)
    cache = DiskReplyCache(tmp_path / ".cache")
    assert json.loads(cache.get(key) or "")["replied_at"] == START.isoformat(timespec="milliseconds")
    cache.close()


@pytest.mark.parametrize(("wanted", "n"), [("5%", 3), ("5.5%", 4), ("0.1%", 1), ("100%", 60), (7, 7)])
def test_a_sample_may_be_a_share_of_the_verdicts_rounded_up(weekly: Weekly, wanted: int | str, n: int) -> None:
    # 5% of 60 is 3, 5.5% is 3.3
    path = weekly.config(spot_check={"n": wanted, "model": "other"})
    assert weekly.dry_run(0, path)["spot_checks"]["groundedness"]["n_calls"] == n
    reliability = weekly.run(0, path).judge_reliability or {}
    report = reliability["by_judge"]["groundedness"]
    assert (reliability["spot_check_n"], report["spot_check_n"], report["spot_check"]["n_asked"]) == (n, n, n)


def test_the_same_seed_as_before_is_not_drawn_again_for_a_later_spot_check_of_a_run(weekly: Weekly) -> None:
    weekly.run(0, weekly.config(seed=3, spot_check={"n": 5, "model": "other"}))
    for wanted in ({"against": "repeat"}, {"against": "repeat"}, {"against": "repeat", "seed": 3}):
        check(weekly.folder_of(0), n=5, **wanted)
    seeds = [item["seed"] for item in read_json(weekly.folder_of(0) / "checks.json")["checks"]]
    assert (seeds[0], seeds[1], seeds[3]) == (3, 3, 3)
    assert seeds[2] != 3


def test_a_judge_that_is_a_panel_or_embedded_is_not_asked_again(weekly: Weekly, tmp_path: Path) -> None:
    panel = {"name": "groundedness", "panel": {"models": ["m", "n"]}}
    path = weekly.config(
        n_cases=4,
        judges=[panel],
        models=models(weekly.server, "m", "n", "other"),
        spot_check={"n": 2, "model": "other"},
    )
    embedded = write_suite(
        tmp_path / "embedded",
        models={name: {"provider": "lexical", "model": f"overlap-{name}"} for name in ("2", "strict-2")},
        judges=[{"name": "groundedness", "model": "2"}],
        spot_check={"n": 2, "model": "strict-2"},
    )
    for config in (path, embedded):
        assert set_up(config, weekly.options(0)).repeats == []
