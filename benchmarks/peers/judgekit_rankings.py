"""judgekit from a form of input to eleven figures; run by `benchmarks.metrics` in its own environment.

From memory, the eleven columns of single cases are part of what is timed, as in the reply of pytrec_eval.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

FILES = {
    "trec": ("qrels.trec", "run.trec"),
    "jsonl": ("cases.jsonl", "outputs.jsonl"),
    "jsonl-ids": ("cases.jsonl", "ids.jsonl"),
}
NAMES = {
    **{f"hit@{k}": f"recall_any@{k}" for k in (1, 3, 5, 10)},
    **{f"recall@{k}": f"recall_doc@{k}" for k in (1, 3, 5, 10)},
    "mrr@10": "mrr@10",
    "precision@10": "precision@10",
    "ndcg@10": "ndcg@10",
}


def from_memory(form: str, data: Path) -> tuple[float, dict[str, float]]:
    """CPU seconds of the call, and the figures."""
    from reading import dicts, gold  # type: ignore[import-not-found]

    from judgekit import score_rankings

    score_rankings({"q": ["d"]}, {"q": ["d"]})  # imports are no part of the call
    relevant, rankings = {query: set(found) for query, found in gold(data).items()}, dicts(data)
    given: Any = rankings if form == "dicts" else {query: list(found) for query, found in rankings.items()}
    started = time.process_time()
    columns = score_rankings(relevant, given, mrr_ks=(10,)).columns
    values = {name: columns.values(mine) for name, mine in NAMES.items()}
    return time.process_time() - started, {name: sum(found) / len(found) for name, found in values.items()}


def from_files(form: str, data: Path) -> dict[str, float]:
    """The figures; all of the process is timed."""
    from judgekit import score_files

    estimates = score_files(*[data / name for name in FILES[form]], mrr_ks=(10,)).estimates
    values = {name: estimates[mine].value for name, mine in NAMES.items()}
    return {name: value for name, value in values.items() if value is not None}


def main() -> None:
    form, data = sys.argv[1], Path(sys.argv[2])
    cpu, figures = (0.0, from_files(form, data)) if form in FILES else from_memory(form, data)
    print(json.dumps({"cpu_seconds": cpu, "figures": figures}))


if __name__ == "__main__":
    main()
