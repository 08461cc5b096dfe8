"""The test server with a reply that suits every peer: `python -m benchmarks.peers.server`, in judgekit's environment.

Zero latency. What a peer expects is read off its request: the arguments of a tool (pydantic-evals), a schema in
`response_format`, feedback (Ragas), a grade in a line (Inspect), or else an object with reason and score (DeepEval).
Every reply holds the same reason, so that no peer has less to parse than another.
"""

import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any

from judgekit.testing import FaultServer, Reply, Request, chat_reply, tool_call

REASON = (
    "The answer says that the batch came out red; the passages speak of copper and of firing, statement by statement."
)


def peer_reply(request: Request) -> Reply:
    """A good verdict in the form that the request asks for."""
    tools = request.get("tools")
    if tools:
        function = tools[0]["function"]
        arguments = json.dumps(filled(function["parameters"], function["parameters"]))
        call = tool_call(arguments, name=function["name"], call_id=f"call_{request.index}")
        return chat_reply(None, tool_calls=[call], finish_reason="tool_calls")
    if request.reply_schema is not None:
        return chat_reply(json.dumps(filled(request.reply_schema, request.reply_schema)))
    if '"feedback"' in request.text:
        return chat_reply(json.dumps({"feedback": REASON, "score": 5}))
    if "GRADE:" in request.text:
        return chat_reply(f"{REASON}\n\nGRADE: C")
    return chat_reply(json.dumps({"reason": REASON, "score": 8}))


def filled(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """A value of a schema: first choices, middling numbers, and the reason for a text."""
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {key: filled(value, root) for key, value in schema.get("properties", {}).items()}
        case "array":
            return []
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 0) + 1
        case _:
            return REASON


def main() -> None:
    """Serves until standard input closes: its address first, then the totals so far for every line it is sent."""
    with FaultServer(peer_reply, keep_bodies=False) as server:
        print(server.base_url, flush=True)
        for _ in sys.stdin:
            print(json.dumps(dataclasses.asdict(server.log.totals)), flush=True)


if __name__ == "__main__":
    main()
