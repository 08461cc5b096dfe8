"""Rankings as Python objects, for drivers that are measured from memory; imported by path, in any environment."""

from pathlib import Path


def gold(data: Path) -> dict[str, list[str]]:
    """Relevant documents by query."""
    found: dict[str, list[str]] = {}
    with (data / "qrels.trec").open(encoding="utf-8") as stream:
        for line in stream:
            query, _, document, _ = line.split()
            found.setdefault(query, []).append(document)
    return found


def dicts(data: Path) -> dict[str, dict[str, float]]:
    """Score by document, by query."""
    found: dict[str, dict[str, float]] = {}
    with (data / "run.trec").open(encoding="utf-8") as stream:
        for line in stream:
            query, _, document, _, score, _ = line.split()
            found.setdefault(query, {})[document] = float(score)
    return found
