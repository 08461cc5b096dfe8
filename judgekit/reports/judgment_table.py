"""Judgments as one table: a row for each call of a judge that gave a verdict or failed."""

from judgekit.core.judgments import Judgment

COLUMNS: dict[str, type] = {
    **dict.fromkeys(("case_id", "judge", "role", "check", "prompt_version", "model", "served_model"), str),
    "rating": float,
    **dict.fromkeys(("label", "reasoning", "failure", "failure_message", "parse_path", "raw_reply"), str),
    **dict.fromkeys(("n_requests", "prompt_tokens", "completion_tokens", "cost_usd", "latency_seconds"), float),
    **dict.fromkeys(("cached_or_copied", "created_at", "input_sha256", "prompt_sha256"), str),
}
"""Columns in their order with the type of their cells; `rating` is the score, 1 or 0 for yes or no, or the share of
criteria met."""


def judgment_row(judgment: Judgment) -> list[str | float | None]:
    """The cells of one judgment; None if there is nothing to say."""
    verdict, failure, usage = judgment.verdict, judgment.failure, judgment.usage
    reused = "cache" if judgment.from_cache else judgment.copied_from
    cells: dict[str, str | float | None] = {
        **{name: getattr(judgment, name) for name in COLUMNS if name in Judgment.model_fields},
        "rating": None if verdict is None else verdict.rating,
        "label": None if verdict is None else verdict.label,
        "reasoning": None if verdict is None else verdict.reasoning,
        "failure": None if failure is None else failure.kind,
        "failure_message": None if failure is None else failure.message,
        "prompt_tokens": None if usage is None else usage.prompt_tokens,
        "completion_tokens": None if usage is None else usage.completion_tokens,
        "cached_or_copied": reused,
    }
    return [cells[name] for name in COLUMNS]
