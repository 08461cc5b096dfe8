"""One point of the history of a judge: how far it agreed with stored verdicts."""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

from judgekit.core.judgments import JudgeInput
from judgekit.core.runs import Manifest
from judgekit.core.scores import Frozen
from judgekit.core.streams import IdList
from judgekit.core.text import canonical_sha256

PointKind = Literal["rejudge", "noise_floor", "spot_check", "run", "acceptance"]

KIND_WORDS: Mapping[str, str] = {
    "rejudge": "the same judge asked again later",
    "noise_floor": "the same judge asked again within a day",
    "spot_check": "second opinion",
    "run": "verdicts of a run",
    "acceptance": "accepted",
}
"""What a point shows, for readers."""


class HistoryPoint(Frozen):
    """How far a judge agreed with stored verdicts on the same judge inputs, and all that could explain it.

    A line of drift_checks.jsonl in the folder of the run whose verdicts were checked.
    """

    run_id: str
    """The run whose stored verdicts were checked."""
    judge: str
    prompt_version: str
    """Wording of the stored verdicts; a history belongs to one judge, wording and data set."""
    dataset_sha256: str
    kind: PointKind
    """`rejudge`: the same judge asked again later. `noise_floor`: the same judge asked again at once, so that it
    differs by noise only. `spot_check`: another wording or another model asked. `run`: the verdicts of a run that
    nobody was asked about. `acceptance`: a user took what the judge is now for normal; nothing before it counts."""
    comparator: str
    """Who was asked now, such as `judge-2025-01-01 with v1`; points of one kind and comparator can be compared."""
    created_at: str
    """UTC, ISO 8601."""
    n_asked: int
    """Stored inputs that were asked again."""
    n_pairs: int
    """Of these, those with two verdicts."""
    n_disagree: int
    """Pairs that contradict each other, 0 to `n_pairs`."""
    n_failed: int
    """Of `n_asked`, those without two verdicts."""
    prompt_sha256: str
    parser_version: str
    served_models: tuple[str, ...] = ()
    """What the servers say they used, sorted; empty if they do not say."""
    fingerprints: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    """Who served the replies behind a gateway, sorted; empty if nothing says it."""
    builds: tuple[str, ...] = ()
    """Builds of the model that was asked now, sorted; empty if its server reports none."""
    verdict_builds: tuple[str, ...] = ()
    """Builds that gave the stored verdicts."""
    answers_sha256: str | None = None
    """Over all inputs of the judge in the run: another one means that the answers of the system changed. See
    `answers_sha256`."""
    score_mean: float | None = None
    """Mean of all stored verdicts of the judge in the run: where the system stands."""
    score_sd: float | None = None
    n_scores: int = 0
    shift_mean: float | None = None
    """Mean of verdict now less stored verdict over the pairs: how far the judge moved."""
    shift_sd: float | None = None
    chance_shift_mean: float | None = None
    """The same of the figure by token probabilities, as a share of the scale; None without any."""
    chance_shift_sd: float | None = None
    n_chances: int = 0
    """Pairs with probabilities on both sides."""
    verdict_model: str | None = None
    """Model that gave the stored verdicts; None if that is not known."""
    accepted_rate: float | None = None
    """Of an acceptance: the rate of flips that the user takes for usual from then on."""
    reason: str | None = None
    """Of an acceptance: why."""

    @property
    def check_id(self) -> str:
        """The same for the same point, so that writing it twice counts once."""
        parts = [self.run_id, self.judge, self.prompt_version, self.kind, self.comparator, self.created_at]
        return hashlib.sha256("\n".join(parts).encode("utf-8", "replace")).hexdigest()[:24]


def answers_sha256(inputs: Iterable[JudgeInput]) -> str:
    """What a judge was asked about, as one hash: over case id and variables, in the order of the ids.

    Args:
        inputs: all inputs of one judge in a run; a sample would give another hash for the same answers.
    """
    ids, hashes, in_order, last = IdList(), bytearray(), True, ""
    for item in inputs:  # a run may have millions, and most files have their cases in order
        ids.append(item.case_id)
        hashes += bytes.fromhex(item.sha256)
        in_order, last = in_order and last < item.case_id, item.case_id

    def of(place: int) -> tuple[str, str]:
        return ids[place], hashes[32 * place : 32 * (place + 1)].hex()

    digest = hashlib.sha256()
    for case_id, sha256 in map(of, range(len(ids)) if in_order else sorted(range(len(ids)), key=of)):
        digest.update(f"{len(case_id)} {case_id} {sha256}\n".encode("utf-8", "replace"))
    return digest.hexdigest()


def dataset_sha256(cases_sha256: str, manifest: Manifest) -> str:
    """The data set of a run; a part of the file is another one than the whole."""
    part = [str(manifest.limit), str(manifest.shard)]
    if manifest.sample is not None:
        part += [f"sample {manifest.sample}", f"seed {manifest.sample_seed}"]
    if manifest.case_ids is not None:
        part.append(canonical_sha256(sorted(manifest.case_ids)))
    if part == ["None", "None"]:
        return cases_sha256
    return hashlib.sha256(" ".join([cases_sha256, *part]).encode()).hexdigest()
