"""What merging character spans costs: CPU time a span, over many documents.

Chunks of 200 to 1200 characters anywhere in their documents, document by document, unsorted and sorted; chunks that
are all kept; and chunks of all documents mixed, where most of the time goes into waiting for memory. Each row is the
median of five runs. Ends with 1 where merging document by document takes more than 0.5 us a span.

    python benchmarks/spans.py [--spans 1000000] [--documents 10000]
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from statistics import median

from judgekit.metrics.spans import CharacterSpan, calculate_overlap, merge_overlapping_spans

N_TIMED_RUNS = 5
LIMIT_MICROSECONDS = 0.5


def overlapping(n_spans: int, n_documents: int, rng: random.Random, *, in_order: bool) -> list[CharacterSpan]:
    """Chunks of 200 to 1200 characters, anywhere in documents of 100,000; documents one after another."""
    spans = []
    for number in range(n_documents):
        starts = [rng.randrange(100_000) for _ in range(n_spans // n_documents)]
        for start in sorted(starts) if in_order else starts:
            spans.append(CharacterSpan(f"doc-{number:05}", start, start + rng.randint(200, 1200)))
    return spans


def apart(n_spans: int, n_documents: int) -> list[CharacterSpan]:
    """Chunks of 800 characters with gaps between them."""
    n = n_spans // n_documents
    return [
        CharacterSpan(f"doc-{number:05}", 1000 * i, 1000 * i + 800) for number in range(n_documents) for i in range(n)
    ]


def microseconds(work: Callable[[], object], n: int) -> float:
    runs = []
    for _ in range(N_TIMED_RUNS):
        begin = time.process_time()
        work()
        runs.append(time.process_time() - begin)
    return median(runs) / n * 1e6


def report(name: str, spans: Sequence[CharacterSpan]) -> float:
    cost = microseconds(lambda: merge_overlapping_spans(spans), len(spans))
    n_merged = len(merge_overlapping_spans(spans))
    print(f"merge {name:32} {len(spans):9,} -> {n_merged:9,}   {cost:6.3f} us a span")
    return cost


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time of merging character spans.")
    parser.add_argument("--spans", type=int, default=1_000_000)
    parser.add_argument("--documents", type=int, default=10_000)
    options = parser.parse_args()
    rng = random.Random(0)
    size = (options.spans, options.documents)
    costs = [
        report("unsorted", overlapping(*size, rng, in_order=False)),
        report("sorted", overlapping(*size, rng, in_order=True)),
        report("sorted, nothing to merge", apart(*size)),
    ]
    rows = overlapping(*size, rng, in_order=False)
    rng.shuffle(rows)
    mixed = [CharacterSpan(doc_id, start + 0, end + 0) for doc_id, start, end in rows]  # new, side by side in memory
    del rows
    report("unsorted, documents mixed", mixed)
    half = len(mixed) // 2
    cost = microseconds(lambda: calculate_overlap(mixed[:half], mixed[half:]), len(mixed))
    print(f"overlap of two halves, documents mixed                              {cost:6.3f} us a span")
    if max(costs) > LIMIT_MICROSECONDS:
        raise SystemExit(f"merging takes more than {LIMIT_MICROSECONDS} us a span")


if __name__ == "__main__":
    main()
