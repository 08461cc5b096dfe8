"""The estimate of `--dry-run` as text."""

from collections.abc import Mapping
from typing import Any

from judgekit.core.runs import cases_text
from judgekit.reports.figures import printable, sources_text


def _calls(record: Mapping[str, Any]) -> str:
    if not record["n_calls"] and not record["n_cached"]:
        return "embedded, no calls"
    if record["n_cached"] is None:
        known = "; the server is not pinned, so what is cached cannot be told"
    else:
        known = f", {record['n_cached']:,} answered from the cache" if record["n_cached"] else ""
    return f"{record['n_calls']:,} calls to {record['model']}{known}"


def estimate_text(estimate: Mapping[str, Any]) -> str:
    """A few lines: cases, calls, tokens, cost, by judge."""
    lines = [f"{cases_text(estimate['cases'])}, {estimate['n_calls']:,} model calls, no call was made"]
    for kind, records in (("judge", estimate["judges"]), ("spot check of", estimate["spot_checks"])):
        for name, record in records.items():
            calls = _calls(record)
            left_out = sum(record["not_judged"].values())
            lines.append(f"  {kind} {name}: {record['n_inputs']} inputs, {left_out} cases not judged, {calls}")
    for name, record in estimate["repeats"].items():
        calls = "at most " if record["n_cached"] is None else ""
        which = f"{record['n_older']} verdicts older than a day" if not calls else "verdicts older than a day"
        lines.append(f"  judge {name} asked again: {which}, {calls}{record['n_calls']:,} calls to {record['model']}")
    lines.append(
        f"about {estimate['prompt_tokens']:,} prompt tokens, "
        f"at most {estimate['completion_tokens_at_most']:,} completion tokens"
    )
    if estimate["usd_at_most"] is None:
        models = ", ".join(estimate["unpriced_models"])
        lines.append(f"cost: null, the price of {models} is not known; models.<id>.prices sets it")
    elif estimate["price_sources"]:
        named = sources_text(estimate["price_sources"], estimate["price_list"])
        lines.append(f"cost: at most {estimate['usd_at_most']:.4f} USD{named}")
    lines += [f"warning: {message} [{code}]" for code, message in estimate["warnings"]]
    return printable("\n".join(lines))
