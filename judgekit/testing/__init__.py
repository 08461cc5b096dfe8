"""An OpenAI-compatible server for tests: scripted replies, and every fault a judge's client must survive.

from judgekit.testing import FaultServer, rate_limited, verdict

with FaultServer([rate_limited(retry_after_seconds=1), verdict(4)]) as server:
    ...  # point a client at server.base_url
    assert server.log.totals.n_requests == 2
"""

from judgekit.testing.exchange import Fault, Reply, Request, Responder
from judgekit.testing.fault_server import FaultServer
from judgekit.testing.faults import (
    close_after_bytes,
    empty_reply,
    error_in_200,
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
    truncated_reply,
)
from judgekit.testing.log import LoggedRequest, RequestLog, Totals
from judgekit.testing.malformed import MENDABLE, UNREADABLE, malformed_verdict
from judgekit.testing.plausible import plausible_body, plausible_verdict
from judgekit.testing.process import ServerProcess
from judgekit.testing.replies import chat_reply, error_reply, reply_from_record, tool_call, verdict, verdict_body
from judgekit.testing.responders import (
    Script,
    alias_move,
    as_responder,
    fingerprint_change,
    limited,
    per_case,
    sequence,
    with_latency,
)
from judgekit.testing.seeded import FAULTS, REPLY_MIX, RETRYABLE_MIX, SeededFaults, seeded_faults
from judgekit.testing.service import ServerInfo
from judgekit.testing.strict import requires

__all__ = [
    "FAULTS",
    "MENDABLE",
    "REPLY_MIX",
    "RETRYABLE_MIX",
    "UNREADABLE",
    "Fault",
    "FaultServer",
    "LoggedRequest",
    "Reply",
    "Request",
    "RequestLog",
    "Responder",
    "Script",
    "SeededFaults",
    "ServerInfo",
    "ServerProcess",
    "Totals",
    "alias_move",
    "as_responder",
    "chat_reply",
    "close_after_bytes",
    "empty_reply",
    "error_in_200",
    "error_reply",
    "filtered_reply",
    "fingerprint_change",
    "hang",
    "headers_then_trickle",
    "html_page",
    "limited",
    "malformed_verdict",
    "overloaded",
    "per_case",
    "plausible_body",
    "plausible_verdict",
    "rate_limited",
    "raw_bytes",
    "refused_reply",
    "reply_from_record",
    "requires",
    "reset",
    "seeded_faults",
    "sequence",
    "server_error",
    "tool_call",
    "truncated_reply",
    "verdict",
    "verdict_body",
    "with_latency",
]
