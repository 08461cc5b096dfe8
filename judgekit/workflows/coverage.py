"""Whether a run's judges gave a verdict on as many cases as those of the run before it."""

from collections.abc import Iterator

from judgekit.core.runs import Notice, RunSummary
from judgekit.storage.run_index import FolderIndex
from judgekit.workflows.closing import INDEX_SECONDS
from judgekit.workflows.job import RunJob

MOST_MOVED = 0.02
"""Share of the cases by which the coverage of a judge may differ from the baseline's without a warning."""


def coverage_notices(job: RunJob, summary: RunSummary) -> Iterator[Notice]:
    """A warning for each judge whose verdicts cover another share of the cases than the baseline's.

    A judge that does not apply to the bad cases of a system any more has a higher mean, though nothing is better. The
    baseline is the newest complete run with the tag `baseline`, else the newest complete one, of the same suite and
    data set. A rejudge has none: it judges the answers of its parent.
    """
    if job.parent is not None or not job.judges:
        return
    before = FolderIndex(INDEX_SECONDS).judged_before(job.store.path, job.manifest, job.cases_record["sha256"])
    n_cases = len(job.cases)
    if before is None or not n_cases:
        return
    for name, record in summary.judges.items():
        then, now = before.n_judged.get(name), int(record["n_judged"])
        if then is not None and abs(now - then) > MOST_MOVED * n_cases:
            text = (
                f"judge {name} has a verdict on {now} of {n_cases} cases, and on {then} in {before.run_id}, the "
                "baseline; their means are over other cases"
            )
            yield Notice(code="coverage_differs", message=text)
