"""docs/models.md as its reader uses it: each block runs against its host, and each row of its tables is true."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args
from urllib.parse import urlsplit

import pytest

from judgekit.core.config import ModelConfig
from judgekit.core.judgments import FailureKind
from judgekit.core.request_fields import is_local
from judgekit.testing import FaultServer
from tests.builders import REPOSITORY, read_json, read_lines
from tests.cli.fork_server import Ended, judgekit
from tests.doubles.cloud_hosts import ANTHROPIC, AZURE, AZURE_CLASSIC, AZURE_OLD, BEDROCK, GEMINI, OPENAI, OPENROUTER
from tests.doubles.hosts import KEY, Fault, Host
from tests.doubles.local_hosts import LLAMA_CPP, OLLAMA, SGLANG, VLLM

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
HOST_OF: Final[Mapping[str, Host]] = {
    "openai": OPENAI,
    "reasoning": OPENAI,
    "azure": AZURE,
    "classic": AZURE_CLASSIC,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "bedrock": BEDROCK,
    "openrouter": OPENROUTER,
    "vllm": VLLM,
    "sglang": SGLANG,
    "llama-cpp": LLAMA_CPP,
    "ollama": OLLAMA,
}
"""The host of each block, by its name."""
OLD_ADDRESSES: Final[Mapping[str, Host]] = {"classic": AZURE_OLD}
"""Another address of the same host, which has faults of its own."""
N_CASES: Final = 2


@dataclass(frozen=True)
class Row:
    """A row of a table, and the block of the page that leads to it."""

    section: str
    name: str
    outcome: str
    block: str
    host: Host

    @property
    def fault(self) -> Fault:
        return self.host.faults[self.name]


def sections() -> dict[str, str]:
    """The text below each heading that has a block."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def blocks_of(text: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for block in re.findall(r"^```json\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        # A model file has no host; it has tests of its own.
        found |= {name: model for name, model in json.loads(block).items() if model.get("provider") != "llama_cpp"}
    return found


BLOCKS = {name: block for text in sections().values() for name, block in blocks_of(text).items()}


def rows() -> Iterator[Row]:
    for section, text in sections().items():
        hosts = [(name, HOST_OF[name]) for name in blocks_of(text)]
        hosts += [(name, OLD_ADDRESSES[name]) for name, _ in hosts if name in OLD_ADDRESSES]
        for name, outcome in re.findall(r"^\| `([^`]+)`[^|]*\| (.+) \|$", text, re.MULTILINE):
            block, host = next((item for item in hosts if name in item[1].faults), (hosts[0][0], hosts[0][1]))
            yield Row(section, name, outcome, block, host)


ROWS = list(rows())


@dataclass(frozen=True)
class Ran:
    """A run from the command line, and what the host got."""

    ended: Ended
    manifest: dict[str, Any]
    judgments: list[dict[str, Any]]
    chat: list[dict[str, Any]]
    """Bodies of the requests about cases."""

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        return [item for item in self.judgments if item["verdict"] is not None]

    @property
    def failures(self) -> set[str]:
        return {item["failure"]["kind"] for item in self.judgments if item["failure"] is not None}


def run(folder: Path, block: Mapping[str, Any], server: FaultServer, judge: Mapping[str, Any] | None = None) -> Ran:
    """Judge some cases of the shipped example with a block whose address leads to the server."""
    model, environment = redirected(block, server)
    quickstart = REPOSITORY / "configs" / "quickstart"
    config = {
        "name": "host",
        "cases": str(quickstart / "cases.jsonl"),
        "system": {"name": "recorded", "path": str(quickstart / "outputs.jsonl")},
        "metrics": [],
        "models": {"m": model},
        "judges": [{"name": "groundedness", "model": "m", **(judge or {})}],
        "report": False,
    }
    (folder / "config.json").write_text(json.dumps(config))
    arguments = ("--limit", str(N_CASES), "--run-id", "r", "--quiet")
    ended = judgekit("run", "config.json", *arguments, cwd=folder, **environment)
    kept = folder / "results" / "r"
    is_kept = (kept / "manifest.json").exists()
    bodies = [entry.body for entry in server.log.chat]
    return Ran(
        ended,
        read_json(kept / "manifest.json") if is_kept else {},
        read_lines(kept / "judgments.jsonl") if (kept / "judgments.jsonl").exists() else [],
        [body for body in bodies if '{\\"ready\\": true}' not in json.dumps(body)],
    )


def redirected(block: Mapping[str, Any], server: FaultServer) -> tuple[dict[str, Any], dict[str, str]]:
    """The block and the environment that lead to the server; it is the proxy of a host with a name."""
    model = dict(block)
    names = {model.get("api_key_env", ""), *re.findall(r"\$\{(\w+)\}", json.dumps(model))}
    environment = {name: KEY for name in names if name}
    if is_local(model.get("base_url")):
        parts = urlsplit(model["base_url"])
        model["base_url"] = f"{server.root_url}{parts.path}"
        return model, environment
    environment |= {"HTTP_PROXY": server.root_url, "http_proxy": server.root_url, "NO_PROXY": "", "no_proxy": ""}
    if "base_url" in model:
        model["base_url"] = model["base_url"].replace("https://", "http://", 1)
    else:
        environment["OPENAI_BASE_URL"] = "http://api.openai.com/v1"
    return model, environment


def test_the_page_has_the_ten_hosts_and_every_fault_of_a_double_has_its_row() -> None:
    names = ["OpenAI", "Azure", "Anthropic", "Gemini", "Bedrock", "OpenRouter", "vLLM", "SGLang", "llama.cpp", "Ollama"]
    assert list(sections()) == [*names, "A GGUF file of your own"]
    assert BLOCKS.keys() == HOST_OF.keys()
    shown = {(id(row.host), row.name) for row in ROWS}
    played = {(id(host), name) for host in (*HOST_OF.values(), *OLD_ADDRESSES.values()) for name in host.faults}
    assert shown == played


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BLOCKS))
def test_a_block_of_the_page_runs_as_it_stands_and_sends_what_the_page_says(tmp_path: Path, name: str) -> None:
    host, block = HOST_OF[name], BLOCKS[name]
    ModelConfig.model_validate(block)
    with host.server() as server:
        ran = run(tmp_path, block, server)
        seen = server.log.chat[-1]
    assert ran.ended.returncode == 0, ran.ended.stderr
    assert len(ran.verdicts) == N_CASES
    assert seen.path == host.path.partition("?")[0]
    # The key is masked in the log; the double has refused every other one, and every other query.
    assert {header for header in ("authorization", "api-key") if header in seen.headers} == {host.key_header} - {""}
    capabilities = ran.manifest["models"]["m"]["capabilities"]
    sent = {"model", "messages", "stream", "response_format", capabilities["max_tokens_name"]}
    sent |= {field for field in ("temperature", "seed") if capabilities[field]}
    sent |= {"reasoning_effort"} & block.keys() | block.get("extra_body", {}).keys()
    [body] = {json.dumps(sorted(body)) for body in ran.chat}
    assert set(json.loads(body)) == sent
    first = ran.chat[0]
    assert (first["model"], first["stream"]) == (block["model"], False)
    assert first.get("temperature", 0) == 0
    assert first["response_format"]["json_schema"]["strict"] is True
    assert first[capabilities["max_tokens_name"]] == block.get("max_output_tokens", 1024)
    assert KEY not in "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.section}-{row.name}")
def test_what_a_host_refuses_is_handled_as_its_row_says(tmp_path: Path, row: Row) -> None:
    fault = row.fault
    block = {**BLOCKS[row.block], **fault.model}
    with row.host.server(fault) as server:
        ran = run(tmp_path, block, server, fault.judge)
    exit_code = re.search(r"(?:^|; )exit code (\d)", row.outcome)
    kind = re.search(r"fails as `(\w+)`", row.outcome)
    if exit_code is not None:
        assert ran.ended.returncode == int(exit_code[1]), ran.ended.text
        [line] = [line for line in ran.ended.stderr.splitlines() if line.startswith("judgekit: error: ")]
        assert fault.says
        assert fault.says in line
        assert ran.verdicts == []
    elif kind is not None:
        assert kind[1] in get_args(FailureKind)
        assert (ran.failures, ran.verdicts) == ({kind[1]}, []), ran.ended.text
    else:
        assert ran.ended.returncode == 0, ran.ended.text
        assert len(ran.verdicts) == N_CASES
        assert {item["parse_path"] for item in ran.verdicts} == {fault.parse_path}
    if exit_code is None:
        is_sent = fault.model.get("max_prompt_bytes") is None
        assert len(ran.chat) == N_CASES * fault.n_requests * is_sent
        assert ("asked again" in row.outcome) == (fault.n_requests > 1)
    if fault.capabilities:
        found = ran.manifest["models"]["m"]["capabilities"]
        assert {name: found[name] for name in fault.capabilities} == dict(fault.capabilities)
