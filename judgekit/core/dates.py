"""Dates as texts: one reading for the dates of notes and of extracted fields."""

from datetime import UTC, datetime


def instant_of(text: str) -> datetime:
    """The instant that an ISO 8601 date or date-time names. A date is its midnight, no zone counts as UTC.

    Raises:
        ValueError: it is neither.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(
            f"expected an ISO 8601 date such as 2025-03-09, or a date with a time, found {text[:40]!r}"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
