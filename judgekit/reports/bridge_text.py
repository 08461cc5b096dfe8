"""A bridge between two runs as text: a table for the terminal, or markdown."""

from collections.abc import Iterator, Mapping
from typing import Any

from judgekit.core.scores import Scale, stored_scale
from judgekit.reports.figures import compared_text, direction, signed_ends
from judgekit.reports.finding_sentences import bridge_sentences
from judgekit.reports.safe_text import printable_line
from judgekit.reports.tables import aligned, bullets, cell, table

HEADER = ("figure", "old", "new", "total", "system", "judge", "better", "cases")

Found = Mapping[str, Any]


def bridge_text(found: Found, *, stats: bool = True) -> str:
    """The bridge in sentences and aligned columns; with `stats`, what a reader must know below."""
    table_lines = aligned([HEADER, *bridge_rows(found)])
    lines = [*bridge_sentences(found), "", f"{found['old']} -> {found['new']}", "", *table_lines]
    lines += ["", *bridge_notes(found)] if stats else []
    return "\n".join(map(printable_line, lines))


def bridge_markdown(found: Found) -> str:
    """The bridge as GitHub-flavoured markdown."""
    rows = [[cell(text) for text in row] for row in bridge_rows(found)]
    title = f"# {cell(found['old'])} to {cell(found['new'])}"
    return "\n".join([title, "", *table(HEADER, rows), "", *bullets(bridge_notes(found)), ""])


def bridge_rows(found: Found) -> Iterator[tuple[str, ...]]:
    """A row a figure, in the order of `HEADER`."""
    for item in found["judges"].values():
        for name, figure in item["figures"].items():
            scale = stored_scale(figure)
            means = (compared_text(figure[key], scale) for key in ("old", "new"))
            parts = (_part(figure[key], scale) for key in ("total", "system", "judge"))
            yield (name, *means, *parts, direction(scale), str(figure["n"]))


def _part(part: Found, scale: Scale | None) -> str:
    return "0, same judge" if part.get("by_construction") and part["value"] is not None else signed_ends(part, scale)


def bridge_notes(found: Found) -> Iterator[str]:
    """How to read the table, and what it leaves out."""
    yield (
        "total = system + judge; in brackets 95% intervals of the paired differences; new minus old; pp: percentage "
        "points"
    )
    for name, item in found["judges"].items():
        if item["same_judge"]:
            yield f"{name}: the same judge in both runs, so its part is 0 by construction and nothing was asked"
        else:
            old, new = item["old"], item["new"]
            yield (
                f"{name}: {old['model']}, prompt {old['prompt_version']} ({old['prompt_sha256'][:8]}) then; "
                f"{new['model']}, prompt {new['prompt_version']} ({new['prompt_sha256'][:8]}) now"
            )
        left_out = max((figure["n_left_out"] for figure in item["figures"].values()), default=0)
        if left_out:
            yield f"{name}: {left_out} cases are left out, since the new judge gave no verdict on the old output"
        yield from (f"{name}: {note}" for note in item["notes"])
    if found["old_by_new_judge"]:
        yield f"the old outputs judged by the new judge: {found['old_by_new_judge']}"
    for key, where in (("old", found["old"]), ("new", found["new"])):
        if found[f"n_only_in_{key}"]:
            yield f"{found[f'n_only_in_{key}']} cases are in {where} only and count nowhere"
        if found[f"judges_only_in_{key}"]:
            yield f"judges in {where} only: {', '.join(found[f'judges_only_in_{key}'])}"
    if found["n_changed_cases"]:
        yield f"{found['n_changed_cases']} shared cases are not the same in both runs, which the system part carries"
