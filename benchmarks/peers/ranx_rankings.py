"""ranx from a form of input to eleven figures; run by `benchmarks.metrics` in its own environment."""

import json
import sys
import time
from pathlib import Path

from ranx import Qrels, Run, evaluate  # type: ignore[import-not-found,unused-ignore]
from reading import dicts, gold  # type: ignore[import-not-found]

NAMES = {
    **{f"hit@{k}": f"hit_rate@{k}" for k in (1, 3, 5, 10)},
    **{f"recall@{k}": f"recall@{k}" for k in (1, 3, 5, 10)},
    "mrr@10": "mrr@10",
    "precision@10": "precision@10",
    "ndcg@10": "ndcg@10",
}


def main() -> None:
    form, data = sys.argv[1], Path(sys.argv[2])
    if form == "trec":
        started = time.process_time()
        qrels = Qrels.from_file(str(data / "qrels.trec"), kind="trec")
        run = Run.from_file(str(data / "run.trec"), kind="trec")
    else:
        judged = {query: dict.fromkeys(found, 1) for query, found in gold(data).items()}
        scores = dicts(data)
        started = time.process_time()
        qrels, run = Qrels(judged), Run(scores)
    found = evaluate(qrels, run, list(NAMES.values()))
    cpu = time.process_time() - started
    print(json.dumps({"cpu_seconds": cpu, "figures": {name: float(found[theirs]) for name, theirs in NAMES.items()}}))


if __name__ == "__main__":
    main()
