"""Which questions of a run have no answer that counts: never asked, or asked in vain."""

from collections.abc import Iterator

from judgekit.core.config import RunConfig
from judgekit.core.judgments import TRANSPORT_KINDS, Judgment, JudgmentKey, last_judgments
from judgekit.core.runs import Manifest
from judgekit.core.spot_checks import RUN_CHECKS
from judgekit.storage.run_folder import RunFolder


def is_unanswered(judgment: Judgment | None) -> bool:
    """Whether a question is to be asked: it has no judgment, or one that failed for a reason not its own."""
    return judgment is None or (judgment.failure is not None and judgment.failure.kind in TRANSPORT_KINDS)


def unanswered(store: RunFolder, config: RunConfig, manifest: Manifest) -> frozenset[tuple[str, str]]:
    """(judge, case id) of the questions of a run that a resume asks, those of its own spot check too.

    Judgments that a rejudge copied from its parent are none of its questions.

    Raises:
        StorageError: a line of the run folder is damaged.
    """
    done = last_judgments(store.judgments())
    return frozenset(
        (key.judge, key.case_id) for key in _questions(store, config, manifest) if is_unanswered(done.get(key))
    )


def _questions(store: RunFolder, config: RunConfig, manifest: Manifest) -> Iterator[JudgmentKey]:
    asked = {judge.name: judge for judge in config.judges}
    if manifest.kind == "rejudge":
        asked = {name: judge for name, judge in asked.items() if name in manifest.rejudged}
    for item in store.judge_inputs():
        if item.judge not in asked:
            continue
        yield JudgmentKey("primary", item.judge, item.case_id)
        if asked[item.judge].panel is not None:
            for model in asked[item.judge].asked:
                yield JudgmentKey("member", item.judge, item.case_id, None, model)
    if manifest.kind == "rejudge":
        return
    for record in store.checks():
        if record.check in RUN_CHECKS:
            for case_id in record.case_ids:
                yield JudgmentKey("spot_check", record.judge, case_id, record.check)
