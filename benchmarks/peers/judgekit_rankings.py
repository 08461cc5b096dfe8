"""judgekit from a form of input to eleven figures, and the columns of single cases; run by `benchmarks.metrics`."""

import json
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    form, data = sys.argv[1], Path(sys.argv[2])
    cpu = 0.0
    if form in ("lists", "dicts"):
        from reading import dicts, gold  # type: ignore[import-not-found]

        from judgekit import score_rankings

        score_rankings({"q": ["d"]}, {"q": ["d"]})  # imports are no part of the call
        relevant, rankings = {query: set(found) for query, found in gold(data).items()}, dicts(data)
        given: Any = rankings if form == "dicts" else {query: list(found) for query, found in rankings.items()}
        started = time.process_time()
        scores = score_rankings(relevant, given)
        columns = {column.name: scores.columns.values(column.name) for column in scores.columns.columns()}
        cpu = time.process_time() - started
        figures = {name: sum(column) / len(column) for name, column in columns.items() if column}
    else:
        from judgekit import score_files

        names = {
            "trec": ("qrels.trec", "run.trec"),
            "jsonl": ("cases.jsonl", "outputs.jsonl"),
            "jsonl-ids": ("cases.jsonl", "ids.jsonl"),
        }[form]
        scores = score_files(data / names[0], data / names[1], mrr_ks=(10,))
        figures = {name: figure.value for name, figure in scores.estimates.items() if figure.value is not None}
    own = {f"hit@{k}": f"recall_any@{k}" for k in (1, 3, 5, 10)} | {
        f"recall@{k}": f"recall_doc@{k}" for k in (1, 3, 5, 10)
    }
    own |= {"mrr@10": "mrr@10" if "mrr@10" in figures else "mrr_chunk", "precision@10": "precision@10"}
    own |= {"ndcg@10": "ndcg@10"}
    print(json.dumps({"cpu_seconds": cpu, "figures": {name: figures[mine] for name, mine in own.items()}}))


if __name__ == "__main__":
    main()
