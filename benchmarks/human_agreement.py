"""How far a whole run agrees with people: real files, mapped by a config, judged by `judgekit run`.

For each human-labelled set it writes a config (with the field mapping that the file needs), runs it into a
temporary folder, and compares the scores in scores.jsonl with the labels in the file: area under the ROC curve of
the 0-5 score, raw agreement and Cohen's kappa of "pass" (4 or 5). The sets are no part of this repository.

    python -m benchmarks.human_agreement [--data ../shared/data] [--keep FOLDER] [--model MODEL.json]

`--model` takes a file with one entry of `models` and asks that model instead of the embedded judge.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import judgekit
from benchmarks.lexical import DEFAULT_DATA, auc, kappa


@dataclass(frozen=True)
class LabelledSet:
    """A file, the judge that it has labels for, and how its fields are called."""

    file: str
    judge: str
    label: Callable[[dict[str, Any]], bool]
    case_fields: dict[str, str]
    output_fields: dict[str, str]


SETS = (
    LabelledSet(
        "groundedness_wice.jsonl",
        "groundedness",
        lambda row: row["human_label"] == "supported",
        {"metadata.human_label": "human_label"},
        {"answer": "answer", "retrieved": "context"},
    ),
    LabelledSet(
        "groundedness_begin_wow.jsonl",
        "groundedness",
        lambda row: row["human_label"] == "Fully attributable",
        {"metadata.human_label": "human_label"},
        {"answer": "answer", "retrieved": "context"},
    ),
    LabelledSet(
        "grounded_pairs_own40.jsonl",
        "groundedness",
        lambda row: row["label"] == 1,
        {"metadata.label": "label"},
        {"answer": "answer", "retrieved": "source"},
    ),
    LabelledSet(
        "correctness_openqa_nq301.jsonl",
        "correctness",
        lambda row: bool(row["human_label"]),
        {"reference_answers": "gold_answers", "metadata.human_label": "human_label"},
        {"answer": "answer", "retrieved": "context"},
    ),
)


def config_for(labelled: LabelledSet, path: Path, model: dict[str, Any]) -> dict[str, Any]:
    """A run config for one file, which holds cases and outputs both."""
    return {
        "name": path.stem.replace("_", "-"),
        "cases": {"path": str(path), "fields": labelled.case_fields},
        "system": {"name": "recorded", "path": str(path), "fields": labelled.output_fields},
        "metrics": ["operations"],
        "models": {"judge": model},
        "judges": [{"name": labelled.judge, "prompt_version": "v1", "model": "judge", "args": {"top_k": 1000}}],
        "slices": [],
    }


def measure(labelled: LabelledSet, path: Path, folder: Path, model: dict[str, Any]) -> str:
    """Run one set; a line of the table."""
    config = folder / f"{path.stem}.json"
    config.write_text(json.dumps(config_for(labelled, path, model)), encoding="utf-8")
    started = time.process_time()
    summary = judgekit.run(config, results_dir=folder / "results")
    seconds = time.process_time() - started
    labels = {}
    with path.open(encoding="utf-8") as stream:
        for line in stream:
            row = json.loads(line)
            labels[row["id"]] = labelled.label(row)
    pairs = []
    with (folder / "results" / summary.run_id / "scores.jsonl").open(encoding="utf-8") as stream:
        for line in stream:
            score = json.loads(line)
            if score["name"] == labelled.judge and score["value"] is not None:
                pairs.append((score["value"], labels[score["case_id"]]))
    passed = [value >= 4 for value, _ in pairs]
    truth = [good for _, good in pairs]
    agreement, chance_corrected = kappa(passed, truth)
    area = auc([value for value, _ in pairs], truth)
    return (
        f"{path.stem:28} {labelled.judge:13} {len(pairs):5} of {len(labels):<5} {area:6.3f} {agreement:9.3f} "
        f"{chance_corrected:7.3f} {seconds:7.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--keep", type=Path, help="keep configs and runs in this folder")
    parser.add_argument("--model", type=Path, help="JSON file with one entry of `models`")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print(f"skipped: no data at {arguments.data}")
        return
    model = {"provider": "lexical", "model": "overlap-2"}
    if arguments.model is not None:
        model = json.loads(arguments.model.read_text(encoding="utf-8"))
    print(f"{'set':28} {'judge':13} {'judged':>14} {'AUC':>6} {'agreement':>9} {'kappa':>7} {'CPU':>9}")
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for labelled in SETS:
            path = arguments.data / labelled.file
            print(measure(labelled, path, folder, model) if path.exists() else f"{path.stem}: skipped, no such file")


if __name__ == "__main__":
    main()
