"""An OpenAI-compatible server for tests: scripted replies, and every fault a judge's client must survive.

from judgekit.testing import FaultServer, rate_limited, verdict

with FaultServer([rate_limited(retry_after_seconds=1), verdict(4)]) as server:
    ...  # point a client at server.base_url
    assert server.log.totals.n_requests == 2
"""

from judgekit.testing.batch_service import BatchFaults, BatchService
from judgekit.testing.chances import decisions, plausible_chances, with_chances
from judgekit.testing.exchange import Fault, Reply, Request, Responder
from judgekit.testing.executor_contract import check_executor
from judgekit.testing.fault_server import FaultServer, ServerInfo
from judgekit.testing.log import LoggedRequest, RequestLog, Totals
from judgekit.testing.replies import (
    chat_reply,
    close_after_bytes,
    empty_reply,
    error_in_200,
    error_reply,
    filtered_reply,
    hang,
    headers_then_trickle,
    html_page,
    overloaded,
    rate_limited,
    raw_bytes,
    refused_reply,
    reset,
    server_error,
    tool_call,
    truncated_reply,
    verdict,
    verdict_body,
)
from judgekit.testing.scripts import (
    Script,
    as_responder,
    per_case,
    plausible_body,
    plausible_verdict,
    sequence,
    with_latency,
)

__all__ = [
    "BatchFaults",
    "BatchService",
    "Fault",
    "FaultServer",
    "LoggedRequest",
    "Reply",
    "Request",
    "RequestLog",
    "Responder",
    "Script",
    "ServerInfo",
    "Totals",
    "as_responder",
    "chat_reply",
    "check_executor",
    "close_after_bytes",
    "decisions",
    "empty_reply",
    "error_in_200",
    "error_reply",
    "filtered_reply",
    "hang",
    "headers_then_trickle",
    "html_page",
    "overloaded",
    "per_case",
    "plausible_body",
    "plausible_chances",
    "plausible_verdict",
    "rate_limited",
    "raw_bytes",
    "refused_reply",
    "reset",
    "sequence",
    "server_error",
    "tool_call",
    "truncated_reply",
    "verdict",
    "verdict_body",
    "with_chances",
    "with_latency",
]
