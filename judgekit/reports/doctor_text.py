"""What `judgekit doctor` found, as text: one sentence, a table of models, and what is missing."""

from collections.abc import Mapping
from typing import Any

from judgekit.reports.safe_text import printable, printable_line
from judgekit.reports.tables import aligned

_DIGITS = 12
"""Of a hash, in a table."""


def finding(found: Mapping[str, Any]) -> str:
    """The one sentence that says how it stands.

    Args:
        found: what the workflow found, without the sentence.
    """
    problems, notes = found["problems"], found["notes"]
    if problems:
        more = f", and {len(problems) - 1} more" if len(problems) > 1 else ""
        return printable_line(f"Not ready: {problems[0]['where']}: {problems[0]['message']}{more}.".replace("..", "."))
    asked = [model["asked"] for model in found["models"].values() if model and model["asked"]]
    n_same = sum(item["same_bytes"] for item in asked)
    if not found["models"]:
        models = "the config names no model"
    elif not asked:
        models = "no model has to be asked over a network" if _all_embedded(found) else "every model is reached"
    else:
        n = len(asked)
        every = "1 model" if n == 1 else f"{n} models"
        says = "says the same bytes five times" if n == 1 else "say the same bytes five times each"
        models = f"{every} reached, and {says}" if n_same == n else f"{every} reached, {n_same} of {n} {says}"
    return f"Ready: {models}{f'; see {len(notes)} notes' if len(notes) > 1 else '; see 1 note' if notes else ''}."


def _all_embedded(found: Mapping[str, Any]) -> bool:
    return all(model and model.get("embedded") for model in found["models"].values())


def doctor_text(found: Mapping[str, Any]) -> str:
    """All of it; foreign text cannot act on a terminal."""
    lines = [found["finding"]]
    if found["models"]:
        header = ("model", "reached", "served as", "fingerprint", "build", "context", "takes", "asked five times")
        rows = [tuple(map(printable_line, _row(name, model))) for name, model in found["models"].items()]
        lines += ["", *aligned([header, *rows])]
    for title, entries in (
        ("Problems", [f"{item['where']}: {item['message']}" for item in found["problems"]]),
        ("Apply to no case", [f"{item['kind']} {item['name']} needs {item['text']}" for item in found["lacks"]]),
        ("Notes", found["notes"]),
    ):
        if entries:
            lines += ["", f"{title}:", *(f"  {printable_line(entry)}" for entry in entries)]
    return printable("\n".join([*lines, "", _calls(found)]))


def _row(name: str, model: Mapping[str, Any] | None) -> tuple[str, ...]:
    if model is None:
        return name, "no", "", "", "", "", "", ""
    if model.get("embedded"):
        return name, "embedded", model["model"], "", "", "", "", "always the same bytes"
    build = model["build_hash"] or ""
    return (
        name,
        "yes" if model["reached"] else "no",
        ", ".join(model["served_models"]) or "-",
        ", ".join(model["fingerprints"]) or "-",
        build[: build.find(":") + 1 + _DIGITS] or "-",
        str(model["context_tokens"] or "not told"),
        _takes(model["capabilities"]),
        _same(model["asked"]),
    )


def _takes(capabilities: Mapping[str, Any] | None) -> str:
    if capabilities is None:
        return "-"
    if not capabilities["samples"]:
        return "typed questions"
    named = {"temperature": "temperature 0", "seed": "seed", "system_role": "system message"}
    return ", ".join([capabilities["response_format"], *(text for key, text in named.items() if capabilities[key])])


def _same(asked: Mapping[str, Any] | None) -> str:
    if asked is None:
        return "not asked"
    return "same bytes" if asked["same_bytes"] else f"{asked['n_different']} different replies"


def _calls(found: Mapping[str, Any]) -> str:
    reached = [model for model in found["models"].values() if model and model["reached"] and not model["embedded"]]
    n_calls = found["n_calls"]
    if not reached:
        return "no model was asked a question"
    cost = "cost not known" if found["usd"] is None else f"{found['usd']:.4f} USD"
    return f"{n_calls} calls, {cost}; and for each model one small call or a few that find out what it takes"
