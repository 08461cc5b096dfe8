"""ir-measures from a form of input to eleven figures; run by `benchmarks.metrics` in its own environment."""

import json
import sys
import time
from pathlib import Path

import ir_measures  # type: ignore[import-not-found,unused-ignore]
from reading import dicts, gold  # type: ignore[import-not-found]

NAMES = {
    **{f"hit@{k}": f"Success@{k}" for k in (1, 3, 5, 10)},
    **{f"recall@{k}": f"R@{k}" for k in (1, 3, 5, 10)},
    "mrr@10": "RR@10",
    "precision@10": "P@10",
    "ndcg@10": "nDCG@10",
}


def main() -> None:
    form, data = sys.argv[1], Path(sys.argv[2])
    measures = [ir_measures.parse_measure(name) for name in NAMES.values()]
    if form == "trec":
        started = time.process_time()
        qrels = ir_measures.read_trec_qrels(str(data / "qrels.trec"))
        run = ir_measures.read_trec_run(str(data / "run.trec"))
    else:
        qrels = {query: dict.fromkeys(found, 1) for query, found in gold(data).items()}
        run = dicts(data)
        started = time.process_time()
    found = ir_measures.calc_aggregate(measures, qrels, run)
    cpu = time.process_time() - started
    figures = {name: float(found[measure]) for name, measure in zip(NAMES, measures, strict=True)}
    print(json.dumps({"cpu_seconds": cpu, "figures": figures}))


if __name__ == "__main__":
    main()
