"""What a rejudge takes from the run that it judges again: answers, judge inputs, and judgments that still count."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from judgekit.core.cases import Case, SystemOutput
from judgekit.core.judgments import JudgeInput, Judgment, JudgmentKey
from judgekit.core.runs import JUDGMENTS, OUTPUTS
from judgekit.core.scores import Failed
from judgekit.core.spot_checks import SpotCheckRecord
from judgekit.core.streams import IdOrder, Streamed
from judgekit.engine.requests import JudgePlan
from judgekit.storage.judgment_lines import line_of
from judgekit.storage.recorded_outputs import RecordedOutputs
from judgekit.storage.run_folder import RunFolder
from judgekit.storage.stored_cases import StoredInputs
from judgekit.workflows.case_scores import Unjudged, judge_inputs
from judgekit.workflows.job import RunJob
from judgekit.workflows.judge_reliability import spot_check_kind


def answers_of(parent: RunFolder) -> tuple[Streamed[Case], RecordedOutputs]:
    """The cases of a stored run with their outputs, which are read as they are asked for."""

    def read(tell: Callable[[str], object], _: bool) -> Iterator[SystemOutput]:
        for output in parent.outputs():
            tell(output.case_id)
            yield output

    order = IdOrder(case.id for case in parent.cases())
    return Streamed(parent.cases, order.n), RecordedOutputs(parent.path / OUTPUTS, read, order)


def carried_checks(parent: RunFolder, plans: Sequence[JudgePlan], changed: Container[str]) -> list[SpotCheckRecord]:
    """Second opinions on the same inputs, unless they are those of what judges now."""
    kept = []
    for record in parent.spot_checks():
        own = [plan for plan in plans if plan.judge.name == record.judge]
        if not own or not record.complete:
            continue
        if record.judge in changed:
            models = {(plan.runtime.model_id, plan.runtime.config.model) for plan in own}
            other_model = (record.model_id, record.model) not in models
            kind = spot_check_kind(other_model=other_model, other_prompt=record.prompt_sha256 != own[0].prompt.sha256)
            if "repeat" in (kind, record.kind):
                continue
            record = record.model_copy(update={"kind": kind})  # noqa: PLW2901
        kept.append(record)
    return kept


def stored_inputs(
    job: RunJob, parent: RunFolder, pairs: Iterable[tuple[Case, SystemOutput]], unjudged: Unjudged
) -> Iterator[JudgeInput]:
    """The judge inputs of the parent; why the other cases have none goes to `unjudged`.

    The reason is found as it was then, from the case and its output. A case that would have an input today but had
    none then is not judged, which its scores say; nor is an input that an earlier version stored and that is not asked
    about today.
    """
    reasons = {judge.name: unjudged.setdefault(judge.name, {}) for judge in job.judge_components}
    with StoredInputs(parent) as stored:
        for case, output in pairs:
            there = stored.of_case(case.id)
            for judge in job.judge_components:
                item = there.get(judge.name)
                if item is None:
                    if any(judge_inputs([judge], [(case, output)], unjudged, [])):
                        reasons[judge.name][case.id] = Failed("not judged", by_judge=True)
                elif (reason := judge.not_asked(item)) is None:
                    yield item
                else:
                    reasons[judge.name][case.id] = reason


def copy_judgments(job: RunJob, parent: RunFolder) -> None:
    """Take over, in one step, judgments of judges that are not asked again, and second opinions that still hold."""
    if not job.folder.has(JUDGMENTS):
        job.folder.write_lines(JUDGMENTS, (_copied(item, parent) for item in parent.judgments() if _is_kept(job, item)))


def _is_kept(job: RunJob, judgment: Judgment) -> bool:
    if judgment.role != "spot_check":
        return judgment.judge in job.kept
    check = JudgmentKey.of(judgment).check
    return any(record.judge == judgment.judge and record.check == check for record in job.carried)


def _copied(judgment: Judgment, parent: RunFolder) -> bytes:
    """What was spent on it was spent there."""
    here = {"copied_from": judgment.copied_from or parent.path.name, "n_requests": 0, "latency_seconds": None}
    spent = {"usage": None, "cost_usd": None, "from_cache": False}
    return line_of(judgment.model_copy(update={**here, **spent}))
