"""pytrec_eval from a form of input to eleven figures; run by `benchmarks.metrics` in its own environment."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytrec_eval  # type: ignore[import-not-found,unused-ignore]
from reading import dicts, gold  # type: ignore[import-not-found]

MEASURES = {"success.1,3,5,10", "recall.1,3,5,10", "recip_rank_cut.10", "P.10", "ndcg_cut.10"}


def main() -> None:
    form, data = sys.argv[1], Path(sys.argv[2])
    if form == "trec":
        started = time.process_time()
        with (data / "qrels.trec").open(encoding="utf-8") as stream:
            judged: Any = pytrec_eval.parse_qrel(stream)
        with (data / "run.trec").open(encoding="utf-8") as stream:
            run = pytrec_eval.parse_run(stream)
    else:
        judged = {query: dict.fromkeys(found, 1) for query, found in gold(data).items()}
        run = dicts(data)
        started = time.process_time()
    # It has no MRR@10 of its own; the reciprocal rank of the whole list is cut.
    measures = (MEASURES - {"recip_rank_cut.10"}) | {"recip_rank"}
    found = list(pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(run).values())
    cpu = time.process_time() - started

    def mean(name: str) -> float:
        return float(sum(scores[name] for scores in found) / len(found))

    figures = {f"hit@{k}": mean(f"success_{k}") for k in (1, 3, 5, 10)}
    figures |= {f"recall@{k}": mean(f"recall_{k}") for k in (1, 3, 5, 10)}
    ranks = [scores["recip_rank"] for scores in found]
    figures["mrr@10"] = sum(value for value in ranks if value > 1 / 10.5) / len(ranks)
    figures |= {"precision@10": mean("P_10"), "ndcg@10": mean("ndcg_cut_10")}
    print(json.dumps({"cpu_seconds": cpu, "figures": figures}))


if __name__ == "__main__":
    main()
