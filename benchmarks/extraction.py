"""Speed of field extraction against `stickler-eval`, on the same documents in an environment of its own.

300 invoices from a seed: nested objects and a list of 5 to 25 line items in another order, with fields that are wrong,
left out and invented. Both sides compare every field (texts exactly, amounts within 0.01), align the line items, and
build their report. CPU seconds of one process, least of three runs, records being built included. Where the
definitions coincide (documents with as many items on both sides), the counts of both must agree, field for field.

    python -m venv STICKLER && STICKLER/bin/pip install stickler-eval
    python benchmarks/extraction.py --stickler STICKLER/bin/python

`--profile` prints where the time goes.
"""

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

N_DOCUMENTS = 300
N_RUNS = 3
WANTED_RATIO = 20
AMOUNTS = ("quantity", "unit_price", "amount", "tax_rate")
RULES: dict[str, Any] = {
    "line_items": "aligned",
    **{f"line_items[*].{name}": {"compare": "number", "absolute": 0.01} for name in AMOUNTS},
    **{f"totals.{name}": {"compare": "number", "absolute": 0.01} for name in ("net", "tax", "gross")},
}
WORDS = ("brass", "lamp", "lens", "glass", "wick", "oil", "rope", "chain", "bell", "buoy", "anchor", "paint", "flag")

Document = dict[str, Any]


def invoice(rng: random.Random, number: int) -> Document:
    def word() -> str:
        return f"{rng.choice(WORDS)} {rng.choice(WORDS)} {rng.randint(1, 99)}"

    def party() -> Document:
        address = {"street": word(), "city": rng.choice(WORDS), "postcode": f"{rng.randint(10000, 99999)}"}
        return {"name": word(), "tax_id": f"DE{rng.randint(10**8, 10**9)}", "address": address}

    def item(place: int) -> Document:
        quantity, price = float(rng.randint(1, 40)), rng.randint(100, 90000) / 100
        return {
            "sku": f"{number:03}-{place:02}",
            "description": word(),
            "quantity": quantity,
            "unit_price": price,
            "amount": round(quantity * price, 2),
            "tax_rate": rng.choice([7.0, 19.0]),
        }

    net = rng.randint(10**4, 10**7) / 100
    return {
        "invoice_number": f"R-{number:05}",
        "issued": f"2024-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        "currency": rng.choice(["EUR", "USD", "GBP"]),
        "seller": party(),
        "buyer": party(),
        "totals": {"net": net, "tax": round(net * 0.19, 2), "gross": round(net * 1.19, 2)},
        "line_items": [item(place) for place in range(rng.randint(5, 25))],
    }


def with_errors(rng: random.Random, value: Any, key: str = "") -> Any:
    """The value as a careless system would read it; skus stay, so that every item keeps one best partner."""
    if isinstance(value, dict):
        return {name: with_errors(rng, child, name) for name, child in value.items()}
    if isinstance(value, list):
        items = [with_errors(rng, child) for child in value]
        rng.shuffle(items)
        return items
    draw = rng.random()
    if key == "sku" or draw > 0.15:
        return value + 0.005 if isinstance(value, float) and draw > 0.95 else value
    if draw < 0.05:
        return None
    return value + 3.0 if isinstance(value, float) else f"{value}?"


def documents() -> list[tuple[Document, Document]]:
    """(expected, extracted); in every third document an item is lost and two are invented."""
    rng = random.Random(7)
    pairs = []
    for number in range(N_DOCUMENTS):
        expected = invoice(rng, number)
        extracted = with_errors(rng, expected)
        expected["seller"]["tax_id"] = rng.choice([expected["seller"]["tax_id"], None])
        if number % 3 == 2:
            extracted["line_items"].pop()
            extracted["line_items"] += invoice(rng, 900 + number % 90)["line_items"][:2]
        pairs.append((expected, extracted))
    return pairs


def comparable(expected: Document, extracted: Document) -> bool:
    """stickler counts an item without a partner as one, judgekit by its fields."""
    return len(expected["line_items"]) == len(extracted["line_items"])


def cpu_seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def judgekit_side(pairs: list[tuple[Document, Document]]) -> tuple[float, list[list[int]]]:
    from judgekit.analysis.estimates import Tally
    from judgekit.core.cases import Case, SystemOutput
    from judgekit.metrics.extraction import Extraction
    from judgekit.metrics.fields import FieldComparer

    def everything() -> str:
        family = Extraction.model_validate({"fields": RULES})
        report = family.open_report()
        tally = Tally(family.columns(), family.pooled())
        for number, (expected, extracted) in enumerate(pairs):
            case = Case(id=str(number), expected_fields=expected)
            output = SystemOutput(case_id=str(number), extracted_fields=extracted)
            tally.add(report.calculate(case, output))
        return json.dumps(report.document(tally.figures("exclude")), indent=2)

    seconds = min(cpu_seconds(everything) for _ in range(N_RUNS))
    comparer = FieldComparer(RULES)
    counts = []
    for expected, extracted in pairs:
        found = comparer.compare(expected, extracted).counts
        wrong = found.wrong_value + found.format_error
        counts.append([found.true_positives, wrong, found.hallucination, found.omission])
    return seconds, counts


def stickler_side(pairs: list[tuple[Document, Document]]) -> tuple[float, list[list[int]]]:
    """Runs in stickler's own environment."""
    import stickler  # type: ignore[import-not-found,unused-ignore]
    from stickler.comparators import (  # type: ignore[import-not-found,unused-ignore]
        ExactComparator,
        NumericComparator,
    )
    from stickler.structured_object_evaluator.bulk_structured_model_evaluator import (  # type: ignore[import-not-found,unused-ignore]
        BulkStructuredModelEvaluator,
    )

    model: Any = stickler.StructuredModel

    def text() -> Any:
        return stickler.ComparableField(comparator=ExactComparator(), threshold=1.0, default=None)

    def number() -> Any:
        return stickler.ComparableField(
            comparator=NumericComparator(absolute_tolerance=0.01), threshold=1.0, default=None
        )

    def made(name: str, texts: tuple[str, ...], numbers: tuple[str, ...] = (), **parts: Any) -> Any:
        body: dict[str, Any] = {key: text() for key in texts} | {key: number() for key in numbers}
        body |= {key: stickler.ComparableField(default=None) for key in parts}
        hints = {key: str | None for key in texts} | {key: float | None for key in numbers} | parts
        return type(name, (model,), {"__annotations__": hints, "__module__": __name__, "match_threshold": 0.0, **body})

    address = made("Address", ("street", "city", "postcode"))
    party = made("Party", ("name", "tax_id"), address=address | None)
    totals = made("Totals", (), ("net", "tax", "gross"))
    item = made("Item", ("sku", "description"), AMOUNTS)
    document = made(
        "Invoice",
        ("invoice_number", "issued", "currency"),
        seller=party | None,
        buyer=party | None,
        totals=totals | None,
        line_items=list.__class_getitem__(item) | None,
    )

    def everything() -> str:
        evaluator = BulkStructuredModelEvaluator(target_schema=document)
        for name, (expected, extracted) in enumerate(pairs):
            evaluator.update(document(**expected), document(**extracted), str(name))
        found = evaluator.compute()
        assert not found.errors, found.errors[0]  # a document that failed would have cost nothing
        return json.dumps(found.__dict__, default=str)

    seconds = min(cpu_seconds(everything) for _ in range(N_RUNS))
    counts = []
    for expected, extracted in pairs:
        found = document(**expected).compare_with(document(**extracted), include_confusion_matrix=True)
        whole = found["confusion_matrix"]["aggregate"]
        counts.append([whole["tp"], whole["fd"], whole["fa"], whole["fn"]])
    return seconds, counts


def peer(python: str) -> tuple[float, list[list[int]]] | str:
    """stickler's seconds and counts, or why there are none."""
    if not Path(python).exists():
        return f"no {python}; see the head of this file"
    command = [python, __file__, "--as-stickler"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["failed"])[-1]
    seconds, counts = json.loads(done.stdout.splitlines()[-1])
    return seconds, counts


def main() -> None:
    parser = argparse.ArgumentParser(description="Field extraction, judgekit beside stickler-eval.")
    parser.add_argument("--stickler", default="stickler/bin/python", help="python that has stickler-eval")
    parser.add_argument("--as-stickler", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--profile", action="store_true", help="where judgekit's time goes")
    options = parser.parse_args()
    pairs = documents()
    if options.as_stickler:
        print(json.dumps(stickler_side(pairs)))
        return
    if options.profile:
        import cProfile

        cProfile.runctx("judgekit_side(pairs)", globals(), {"pairs": pairs}, sort="tottime")
        return
    own_seconds, own = judgekit_side(pairs)
    n_items = sum(len(expected["line_items"]) for expected, _ in pairs)
    print(f"{len(pairs)} documents, {n_items} line items")
    print(f"judgekit  {own_seconds:8.3f} s CPU")
    theirs = peer(options.stickler)
    if isinstance(theirs, str):
        print(f"stickler  skipped: {theirs}")
        return
    their_seconds, counts = theirs
    ratio = their_seconds / own_seconds
    print(f"stickler  {their_seconds:8.3f} s CPU, {ratio:.0f} times as long")
    same = [number for number, pair in enumerate(pairs) if comparable(*pair)]
    differ = [(number, own[number], counts[number]) for number in same if own[number] != counts[number]]
    print(
        f"counts of right, wrong, invented, omitted fields agree on {len(same) - len(differ)} of {len(same)} documents"
    )
    for number, mine, other in differ[:5]:
        print(f"  document {number}: judgekit {mine}, stickler {other}")
    if differ or ratio < WANTED_RATIO:
        sys.exit(1)


if __name__ == "__main__":
    main()
