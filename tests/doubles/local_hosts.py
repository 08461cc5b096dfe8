"""Four servers of your own machine, from their source and documentation."""

from typing import Any

from judgekit.testing import Reply, Request, chat_reply, error_reply
from tests.doubles.hosts import (
    TOO_LONG,
    Fault,
    Host,
    always,
    completion,
    dressed,
    once,
    refuses,
    refuses_system,
    serves,
    verdict_of,
)

_QWEN = "Qwen/Qwen2.5-7B-Instruct"
_TEMPLATE = "System role not supported"
_ROLES = "Only user, assistant and tool roles are supported, got system."


def _card(model: str, **fields: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": model, "object": "model", **fields}]}


def _object_error(status: int, message: str, kind: str) -> Reply:
    """As SGLang and older vLLM say it."""
    return Reply(status, {"object": "error", "message": message, "type": kind, "param": None, "code": status})


def _vllm_error(status: int, message: str, kind: str) -> Reply:
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})


VLLM = Host(
    path="/v1/chat/completions",
    key_header="",
    rules=(
        serves(
            _QWEN,
            "google/gemma-2-9b-it",
            reply=lambda model: _vllm_error(404, f"The model `{model}` does not exist.", "NotFoundError"),
        ),
        refuses_system("google/gemma-2-9b-it", _vllm_error(400, _TEMPLATE, "BadRequestError")),
    ),
    reply=lambda request: chat_reply(verdict_of(request), fingerprint=None),
    pages={"/v1/models": _card(_QWEN, owned_by="vllm", root=_QWEN, max_model_len=32768)},
    faults={
        "NotFoundError": Fault(model={"model": "Qwen/Qwen2.5-72B-Instruct"}, says="no such model or address"),
        "maximum context length": Fault(always(_vllm_error(400, TOO_LONG, "BadRequestError"))),
        "System role not supported": Fault(
            model={"model": "google/gemma-2-9b-it"}, capabilities={"system_role": False}
        ),
        "extra_body": Fault(model={"extra_body": {"no_such_field": 1}}),
        "Unauthorized": Fault(
            always(Reply(401, {"error": "Unauthorized"})), from_the_start=True, says="the key is missing or wrong"
        ),
    },
)
SGLANG = Host(
    path="/v1/chat/completions",
    key_header="",
    reply=lambda request: chat_reply(verdict_of(request), fingerprint=None),
    pages={"/v1/models": _card(_QWEN, owned_by="sglang", root=_QWEN, max_model_len=32768)},
    faults={
        "model": Fault(model={"model": "another-model"}),
        "build_hash": Fault(model={"pin": {"build_hash": "sha256:of-another-model"}}, says="the server reports build"),
        "longer than": Fault(
            always(
                _object_error(
                    400,
                    "The input (85050 tokens) is longer than the model's context length (32768 tokens).",
                    "BadRequestError",
                )
            )
        ),
        "System role not supported": Fault(model={"model": "gemma"}, capabilities={"system_role": False}),
    },
    rules=(refuses_system("gemma", _object_error(400, _TEMPLATE, "BadRequestError")),),
)
_PROPS = {
    "build_info": "b8931-9725a313b",
    "model_path": "/models/qwen2.5-7b-instruct-q4_k_m.gguf",
    "chat_template": "{{ messages }}",
}
LLAMA_CPP = Host(
    path="/v1/chat/completions",
    key_header="",
    rules=(refuses_system("ministral", error_reply(500, f"Error: Jinja Exception: {_ROLES}")),),
    reply=lambda request: chat_reply(verdict_of(request), model="qwen2.5-7b", fingerprint="b8931-9725a313b"),
    pages={"/v1/models": _card("qwen2.5-7b", owned_by="llamacpp", meta={"n_ctx_train": 32768}), "/props": _PROPS},
    faults={
        "model": Fault(model={"model": "another-model"}),
        "served_model": Fault(
            model={"model": "another-model", "pin": {"served_model": "another-model"}},
            says="the reply comes from qwen2.5-7b, expected another-model",
        ),
        "build_hash": Fault(model={"pin": {"build_hash": "sha256:of-another-model"}}, says="the server reports build"),
        "exceed_context_size_error": Fault(
            always(
                error_reply(
                    400,
                    "request (13392 tokens) exceeds the available context size (8192 tokens), try increasing it",
                    type="exceed_context_size_error",
                )
            )
        ),
        "Loading model": Fault(once(error_reply(503, "Loading model", type="unavailable_error")), n_requests=2),
        "got system": Fault(model={"model": "ministral"}, capabilities={"system_role": False}),
    },
)


def _cut_prompt(request: Request, verdict: str) -> Reply:
    """What is over the context was dropped without a word."""
    n_tokens = min(4096, len(request.text) // 16)
    return chat_reply(verdict, fingerprint="fp_ollama", usage={"prompt_tokens": n_tokens, "completion_tokens": 40})


_THOUGHT = {"role": "assistant", "content": "", "reasoning": "The answer says so."}
OLLAMA = Host(
    path="/v1/chat/completions",
    key_header="",
    rules=(
        serves(
            "llama3.1:8b",
            reply=lambda model: error_reply(404, f"model '{model}' not found", type="not_found_error"),
        ),
        refuses("max_completion_tokens", error_reply(400, "the limit would be ignored")),
    ),
    reply=lambda request: chat_reply(verdict_of(request), fingerprint="fp_ollama"),
    pages={
        "/v1/models": _card("llama3.1:8b", owned_by="library"),
        "/api/tags": {"models": [{"name": "llama3.1:8b", "model": "llama3.1:8b", "digest": "46e0c10c039e"}]},
    },
    faults={
        "not_found_error": Fault(model={"model": "llama3.1:70b"}, says="no such model or address"),
        "prompt_tokens": Fault(dressed(_cut_prompt)),
        "max_prompt_bytes": Fault(model={"max_prompt_bytes": 200}),
        "num_ctx": Fault(model={"extra_body": {"options": {"num_ctx": 16384}}}),
        "reasoning": Fault(dressed(lambda request, _: Reply(body=completion(request, _THOUGHT, "stop"))), n_requests=2),
    },
)
