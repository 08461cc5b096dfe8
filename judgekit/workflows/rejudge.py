"""Judging the stored inputs of a run again: what is taken over from it before the first call.

Everything else is as in `run`. The system under test is not asked, and no judge input is built anew: what is
judged is what was judged then.
"""

from collections.abc import Iterable, Iterator, Mapping

from judgekit.analysis.verdict_pairs import Pair, verdict_changes
from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey, last_judgments
from judgekit.core.runs import JUDGMENTS
from judgekit.core.scores import Failed
from judgekit.storage.run_folder import RunFolder
from judgekit.workflows.case_scores import Faults, Unjudged
from judgekit.workflows.case_scores import judge_inputs as built_inputs
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import opinion, pass_score_of
from judgekit.workflows.rejudge_history import asked_anew


def stored_inputs(
    job: RunJob, parent: RunFolder, pairs: Iterable[tuple[Case, SystemOutput]], unjudged: Unjudged
) -> Iterator[JudgeInput]:
    """The judge inputs of the parent; why the other cases have none goes to `unjudged`.

    The reason is found as it was then, from the case and its output. A case that would have an input today but had
    none then is not judged, which its scores say; nor is an input that an earlier version stored and that is not asked
    about today.
    """
    judges = {judge.name: judge for judge in job.judge_components}
    stored = (item for item in parent.judge_inputs() if item.judge in judges)
    there = {(item.judge, item.case_id) for item in stored}
    for item in built_inputs(job.judge_components, pairs, unjudged, Faults([])):
        if (item.judge, item.case_id) not in there:
            unjudged[item.judge][item.case_id] = Failed("not judged", by_judge=True)
    for item in parent.judge_inputs():
        if item.judge not in judges:
            continue
        reason = judges[item.judge].not_asked(item)
        if reason is None:
            unjudged[item.judge].pop(item.case_id, None)
            yield item
        else:
            unjudged[item.judge][item.case_id] = reason


def copy_judgments(job: RunJob, parent: RunFolder) -> None:
    """Take over the judgments of judges that are not asked again, and second opinions that still hold.

    They come before the first call, in one step, so that a run that is killed has all of them or none.
    """
    if not job.store.has(JUDGMENTS):
        job.store.write_lines(JUDGMENTS, (_copied(item, parent) for item in parent.judgments() if _is_kept(job, item)))


def _is_kept(job: RunJob, judgment: Judgment) -> bool:
    if judgment.role != "spot_check":
        return judgment.judge in job.kept
    check = JudgmentKey.of(judgment).check
    return any(record.judge == judgment.judge and record.check == check for record in job.carried)


def _copied(judgment: Judgment, parent: RunFolder) -> bytes:
    """What was spent on it was spent there."""
    here = {"copied_from": judgment.copied_from or parent.path.name, "n_requests": 0, "latency_seconds": None}
    spent = {"usage": None, "cost_usd": None, "from_cache": False}
    return judgment.model_copy(update={**here, **spent}).model_dump_json().encode()


def rejudged(job: RunJob, judgments: dict[JudgmentKey, Judgment]) -> dict[str, object] | None:
    """How the verdicts differ from those of the parent; None where the run is no rejudge."""
    if job.parent is None:
        return None
    before = last_judgments(job.parent.judgments())
    judges = [plan.judge for plan in job.judges if plan.judge.name not in job.kept]
    pairs = {judge.name: _pairs(judge.name, before, judgments) for judge in judges}
    found = verdict_changes(pairs, {judge.name: pass_score_of(judge) for judge in judges}, job.config.resampling_seed)
    asked = {judge.name: len(asked_anew(judge.name, before, judgments)) for judge in judges}
    for name, report in found["by_judge"].items():
        report["n_asked"] = asked[name]
    return {"parent": job.manifest.parent, "n_asked": sum(asked.values()), **found}


def _pairs(judge: str, before: dict[JudgmentKey, Judgment], now: dict[JudgmentKey, Judgment]) -> list[Pair]:
    """Every case that both runs put before the judge."""
    keys = [key for key in before if key.role == "primary" and key.judge == judge and key in now]
    return [Pair(key.case_id, opinion(before[key]), opinion(now[key])) for key in keys]


def other_builds(job: RunJob, now: Mapping[JudgmentKey, Judgment]) -> list[tuple[str, str]]:
    """A warning for each model whose server has another build loaded than gave the verdicts of the parent."""
    if job.parent is None:
        return []
    found: dict[str, tuple[set[str], set[str]]] = {}
    for key, old in last_judgments(job.parent.judgments()).items():
        new = now.get(key)
        if new is None or new.copied_from is not None or (old.model_id, old.model) != (new.model_id, new.model):
            continue
        if old.build is not None and new.build is not None and old.build != new.build:
            before, after = found.setdefault(new.model_id, (set(), set()))
            before.add(old.build)
            after.add(new.build)
    return [
        (
            "rejudged_by_another_build",
            f"model {name}: the server has build {', '.join(sorted(after))} loaded, the verdicts of "
            f"{job.manifest.parent} are of build {', '.join(sorted(before))}, so another model was asked",
        )
        for name, (before, after) in found.items()
    ]
