"""Failure cases of tokens, money and who served a reply: what a server counts, leaves out, or does not tell."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from judgekit.analysis.run_deltas import whole_run_figures
from judgekit.core.errors import ConfigError, Interrupted, ProviderError
from judgekit.providers.accounting import read_cost, read_upstream, read_usage
from judgekit.testing import FaultServer, Reply, sequence, with_latency
from tests.builders import read_json, read_lines, write_suite
from tests.cli.fork_server import judgekit as command
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, good, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")

THINKING = {
    "prompt_tokens": 1000,
    "completion_tokens": 500,
    "total_tokens": 6500,
    "completion_tokens_details": {"reasoning_tokens": 5000},
}


def asked(ran: Ran) -> int:
    """Requests about cases that reached the server."""
    return len(ran.asked)


def with_upstream(name: Any, **headers: str) -> Reply:
    """A verdict that a gateway had another server give."""
    reply = good()
    assert isinstance(reply.body, dict)
    body = {**reply.body, "provider": name} if name is not None else reply.body
    return Reply(body=body, fill=True, headers=headers)


# Tokens of thinking outside of the completion.


@pytest.mark.parametrize("concurrency", [1, 4, 16, 64])
def test_t2_01_thinking_that_only_the_total_shows_counts_in_tokens_cost_and_budget(
    tmp_path: Path, concurrency: int
) -> None:
    prices = {"input": 1, "output": 2}
    ran = carried_out(
        tmp_path,
        after_capabilities(good(usage=THINKING)),
        n_cases=40,
        model={"max_concurrency": concurrency, "prices": prices},
        budget={"max_tokens": 30_000},
    )
    # 1,000 + 5,500 tokens a call: 4 x 6,500 = 26,000, and the 4,000 that are left hold no fifth.
    assert isinstance(ran.error, Interrupted)
    assert asked(ran) == len(ran.judgments) == 4
    usage = next(iter(ran.judgments.values()))["usage"]
    assert (usage["completion_tokens"], usage["reasoning_tokens"], usage["total_tokens"]) == (5500, 5000, 6500)
    cost = ran.metrics["cost"]
    assert (cost["prompt_tokens"], cost["completion_tokens"], cost["reasoning_tokens"]) == (4000, 22_000, 20_000)
    # 4 x (1,000 x 1 + 5,500 x 2) / 1,000,000
    assert cost["usd"] == pytest.approx(0.048)
    assert cost["usd_by_source"] == {"config": pytest.approx(0.048)}


@pytest.mark.parametrize(
    ("usage", "prompt", "completion"),
    [
        pytest.param({"prompt_tokens": 10, "completion_tokens": 5}, 10, 5, id="T2-01-plain"),
        pytest.param({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, 10, 5, id="T2-01-total-agrees"),
        pytest.param({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 9}, 10, 5, id="T2-01-total-too-low"),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 7}},
            10,
            9,
            id="T2-01-thinking-inside-without-total",
        ),
        pytest.param(
            {"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 70}},
            10,
            75,
            id="T2-01-thinking-outside-without-total",
        ),
        pytest.param(
            {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7},
            107,
            5,
            id="T2-01-anthropic",
        ),
        pytest.param({"prompt_tokens": "10", "completion_tokens": 5.0}, 10, 5, id="T2-01-texts-and-floats"),
        pytest.param({"prompt_tokens": 10, "total_tokens": 25}, 10, 15, id="T2-01-completion-left-out"),
        pytest.param({"completion_tokens": 5, "total_tokens": 25}, 20, 5, id="T2-01-prompt-left-out"),
        pytest.param({"total_tokens": 25}, None, None, id="T2-01-total-only"),
        pytest.param({"prompt_tokens": -10, "completion_tokens": 5}, None, 5, id="T2-01-negative"),
        pytest.param({"prompt_tokens": 10, "completion_tokens": 10**15}, 10, None, id="T2-01-absurd"),
        pytest.param({"prompt_tokens": True, "completion_tokens": math.nan}, None, "none", id="T2-01-no-numbers"),
        pytest.param({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None, "none", id="T2-01-zeros"),
        pytest.param({}, None, "none", id="T2-01-empty"),
    ],
)
def test_t2_01_dialects_of_usage(usage: dict[str, Any], prompt: int | None, completion: int | str | None) -> None:
    found = read_usage({"usage": usage}, has_text=True)
    if completion == "none":
        assert found is None
        return
    assert found is not None
    assert (found.prompt_tokens, found.completion_tokens) == (prompt, completion)


def test_t2_01_what_gemini_itself_writes_is_read() -> None:
    counts = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 300, "totalTokenCount": 420}
    found = read_usage({"usageMetadata": counts}, has_text=True)
    assert found is not None
    assert (found.prompt_tokens, found.completion_tokens, found.reasoning_tokens) == (100, 320, 300)


# A server that counts nothing.


@pytest.mark.parametrize("concurrency", [1, 16])
def test_t2_02_calls_without_usage_count_with_what_was_set_aside(tmp_path: Path, concurrency: int) -> None:
    with FaultServer(after_capabilities(good(usage={}))) as server:
        config = write_suite(
            tmp_path,
            server.base_url,
            n_cases=40,
            model={"max_concurrency": concurrency},
            budget={"max_tokens": 10_000},
        )
        ran = again(config, server)
        # About 1,500 are set aside for each call: its prompt, and 1,024 for the reply.
        assert isinstance(ran.error, Interrupted)
        size = read_lines(ran.folder / "judgments.jsonl")[0]["unmetered"]["tokens"]
        n = 10_000 // size
        assert 5 <= n <= 7
        assert asked(ran) == n
        # Resumed with the same budget, it remembers what it spent.
        assert isinstance(resumed(ran).error, Interrupted)
        assert asked(ran) == n
        config.write_text(json.dumps({**read_json(config), "budget": {}}))
        assert resumed(ran).error is None
    cost = ran.metrics["cost"]
    assert (cost["n_without_usage"], cost["prompt_tokens"], cost["completion_tokens"]) == (40, None, None)
    assert "tokens of 40 calls not known" in (ran.folder / "summary.md").read_text()
    report = (ran.folder / "report.html").read_text()
    assert "tokens of 40 calls not known" in report
    for text in (report, (ran.folder / "summary.md").read_text()):
        assert "0 prompt" not in text
    assert "40 calls" in ran.warnings["tokens_not_known"]


def test_t2_02_some_calls_without_usage_are_named_beside_the_tokens_of_the_others(tmp_path: Path) -> None:
    counted = good(usage={"prompt_tokens": 100, "completion_tokens": 10})
    ran = carried_out(
        tmp_path,
        after_capabilities(counted, counted, good(usage={}), counted),
        n_cases=4,
        model={"max_concurrency": 1, "prices": {"input": 1, "output": 1}},
    )
    cost = ran.metrics["cost"]
    assert (cost["n_without_usage"], cost["prompt_tokens"], cost["n_without_cost"]) == (1, 300, 1)
    # The sum of what is known is not the cost of the run.
    assert (cost["usd"], cost["usd_of_priced_models"]) == (None, pytest.approx(0.0003, abs=1e-4))
    line = "300 prompt and 30 completion tokens and tokens of 1 call not known"
    assert line in (ran.folder / "summary.md").read_text()


@pytest.mark.parametrize(
    ("n_unknown", "there"),
    [
        pytest.param(0, {"cost.prompt_tokens", "cost.usd"}, id="T2-02-all-counted"),
        pytest.param(2, {"cost.usd"}, id="T2-02-not-all-counted"),
    ],
)
def test_t2_02_tokens_of_a_part_of_the_calls_are_not_compared(n_unknown: int, there: set[str]) -> None:
    cost = {"prompt_tokens": 300, "usd": 0.1, "n_without_usage": n_unknown}
    figures = whole_run_figures({"cost": cost})
    assert {name for name, value in figures.items() if value is not None} == there


def test_t2_02_a_call_that_timed_out_counts_with_what_was_set_aside(tmp_path: Path) -> None:
    ran = carried_out(
        tmp_path,
        after_capabilities(with_latency(5, then=good())),
        n_cases=20,
        model={"max_concurrency": 4, "timeout_seconds": 0.05, "max_attempts": 1},
        budget={"max_tokens": 4_000},
    )
    assert isinstance(ran.error, Interrupted)
    assert asked(ran) == 2
    assert ran.metrics["cost"]["n_without_usage"] == 2


# A budget with calls in flight.


@pytest.mark.slow
@pytest.mark.parametrize("concurrency", [1, 4, 16, 64])
@pytest.mark.parametrize(
    ("budget", "n_calls", "spent"),
    [
        # A call takes 640 tokens and up to about 1,650 are set aside: 13 x 640 + 1,650 < 10,000 < 14 x 640 + 1,650.
        pytest.param({"max_tokens": 10_000}, 14, "8960 spent", id="T2-03-tokens"),
        # The same in money: 640 tokens at 1 USD a million.
        pytest.param({"max_usd": 0.01}, 14, "0.0090 spent", id="T2-03-usd"),
        pytest.param({"max_calls": 14}, 14, "14 made", id="T2-03-calls"),
    ],
)
def test_t2_03_a_budget_lets_as_many_calls_go_whatever_the_concurrency(
    tmp_path: Path, concurrency: int, budget: dict[str, Any], n_calls: int, spent: str
) -> None:
    usage = {"prompt_tokens": 600, "completion_tokens": 40}
    with FaultServer(after_capabilities(with_latency(0.01, then=good(usage=usage)))) as server:
        model = {"max_concurrency": concurrency, "prices": {"input": 1, "output": 1}}
        config = write_suite(tmp_path, server.base_url, n_cases=40, model=model, budget=budget)
        ran = again(config, server)
        assert isinstance(ran.error, Interrupted)
        assert asked(ran) == n_calls
        said = str(ran.error)
        assert spent in said
        assert "nothing set aside for running calls" in said
        assert ("raise it" in said) == ("max_calls" in budget)
        # It is no less used up afterwards, and more of it resumes the run.
        assert isinstance(resumed(ran).error, Interrupted)
        assert asked(ran) == n_calls
        config.write_text(json.dumps({**read_json(config), "budget": {}}))
        assert resumed(ran).error is None
        assert asked(ran) == 40
    assert len(ran.judgments) == 40


@pytest.mark.parametrize("concurrency", [1, 4, 16])
def test_t2_03_retries_are_calls_and_never_exceed_the_budget(tmp_path: Path, concurrency: int) -> None:
    ran = carried_out(
        tmp_path,
        after_capabilities(Reply(status=503, body={"error": {"message": "busy"}})),
        n_cases=40,
        model={"max_concurrency": concurrency, "max_attempts": 5},
        budget={"max_calls": 7},
    )
    assert isinstance(ran.error, Interrupted)
    assert asked(ran) == 7
    assert sum(item["n_requests"] for item in ran.judgments.values()) == 7


def test_t2_03_prompts_that_the_server_counts_higher_are_set_aside_for_as_such(tmp_path: Path) -> None:
    # 4,000 tokens of a prompt that looks like some 450, as in a script that a tokenizer knows badly.
    usage = {"prompt_tokens": 4000, "completion_tokens": 40}
    ran = carried_out(
        tmp_path,
        after_capabilities(good(usage=usage)),
        n_cases=40,
        model={"max_concurrency": 16},
        budget={"max_tokens": 20_000},
    )
    # After three, 7,880 are left and 5,024 set aside for one more; after four, 3,840 hold none.
    assert isinstance(ran.error, Interrupted)
    assert asked(ran) == 4


def test_t2_03_a_first_call_that_has_no_room_is_not_sent(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, after_capabilities(good()), budget={"max_tokens": 100})
    assert isinstance(ran.error, Interrupted)
    assert "0 spent, 100 left" in str(ran.error)
    assert asked(ran) == 0


# The upstream behind a gateway.


def test_t2_04_the_upstream_is_kept_counted_and_warned_of(tmp_path: Path) -> None:
    ran = carried_out(
        tmp_path,
        after_capabilities(sequence([with_upstream("Azure")] * 30 + [with_upstream("DeepInfra")])),
        n_cases=40,
        model={"max_concurrency": 1},
    )
    counts = {"Azure": 30, "DeepInfra": 10}
    assert ran.error is None
    assert [item["upstream"] for item in ran.judgments.values()].count("Azure") == 30
    assert ran.manifest["models"]["m"]["upstreams"] == counts
    assert ran.metrics["judges"]["groundedness"]["upstreams"] == counts
    assert "Azure (30), DeepInfra (10)" in ran.warnings["upstream_changed"]
    assert "DeepInfra (10)" in (ran.folder / "report.html").read_text()


@pytest.mark.parametrize("on_mismatch", ["stop", "flag"])
def test_t2_04_a_pin_can_name_the_upstream(tmp_path: Path, on_mismatch: str) -> None:
    pin = {"upstream": "Azure", "on_mismatch": on_mismatch}
    replies = after_capabilities(with_upstream("Azure"), with_upstream("Azure"), with_upstream("DeepInfra"))
    ran = carried_out(tmp_path, replies, n_cases=4, model={"max_concurrency": 1, "pin": pin})
    if on_mismatch == "stop":
        assert isinstance(ran.error, ProviderError)
        assert "served by DeepInfra, pinned is Azure" in str(ran.error)
        assert len(ran.judgments) == 2
    else:
        assert ran.error is None
        assert ran.metrics["judges"]["groundedness"]["flags"] == {"pin_mismatch": 2}


def test_t2_04_a_field_of_the_request_can_ask_for_an_upstream(tmp_path: Path) -> None:
    wanted = {"provider": {"only": ["Azure"], "allow_fallbacks": False}}
    model = {"extra_body": wanted, "pin": {"upstream": "Azure"}}
    ran = carried_out(tmp_path, after_capabilities(with_upstream("Azure")), n_cases=2, model=model)
    assert ran.error is None
    assert [body["provider"] for body in ran.asked] == [wanted["provider"]] * 2
    assert ran.manifest["models"]["m"]["upstreams"] == {"Azure": 2}


@pytest.mark.slow
def test_t2_04_a_pin_is_no_excuse_to_take_cached_replies_of_another_upstream(tmp_path: Path) -> None:
    with FaultServer(after_capabilities(*[with_upstream("DeepInfra")] * 3, with_upstream("Azure"))) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=3, model={"max_concurrency": 1})
        assert again(config, server).error is None
        write_suite(tmp_path, server.base_url, n_cases=3, model={"max_concurrency": 1, "pin": {"upstream": "Azure"}})
        why = command("cache", "why", "r", "c0", "--ask-server", cwd=tmp_path)
        assert "would be asked: the cached reply comes from another model or upstream" in why.stdout, why.stderr
        pinned = again(config, server, run_id="pinned")
        assert pinned.error is None
        assert pinned.metrics["cost"]["n_from_cache"] == 0
        assert [item["upstream"] for item in pinned.judgments.values()] == ["Azure"] * 3
        assert again(config, server, run_id="cached").metrics["cost"]["n_from_cache"] == 3


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        pytest.param({"provider": "Azure"}, {}, "Azure", id="T2-04-openrouter"),
        pytest.param({"provider": {"name": "Azure", "region": "eu"}}, {}, "Azure", id="T2-04-object"),
        pytest.param({"extra_fields": {"provider": "bedrock"}}, {}, "bedrock", id="T2-04-bifrost"),
        pytest.param({}, {"x-inference-provider": "together"}, "together", id="T2-04-hugging-face"),
        pytest.param({}, {"x-upstream": "blue"}, "blue", id="T2-04-own-header"),
        pytest.param(
            {},
            {"x-litellm-model-api-base": "https://user:secret@api.example/v1?key=secret"},
            "https://api.example/v1",
            id="T2-04-litellm-without-its-key",
        ),
        pytest.param({"provider": "Azure"}, {"x-upstream": "blue"}, "Azure", id="T2-04-body-first"),
        pytest.param({"provider": ""}, {}, None, id="T2-04-empty"),
        pytest.param({"provider": None}, {}, None, id="T2-04-null"),
        pytest.param({"provider": ["a", "b"]}, {}, '["a", "b"]', id="T2-04-list"),
        pytest.param({"provider": "http://[::1"}, {}, None, id="T2-04-no-address"),
        pytest.param({"provider": "x" * 1000}, {}, "x" * 200, id="T2-04-endless"),
    ],
)
def test_t2_04_where_a_reply_names_its_upstream(
    body: dict[str, Any], headers: dict[str, str], expected: str | None
) -> None:
    assert read_upstream(body, headers) == expected


# Prices.


def test_t2_13_the_refusal_of_a_budget_in_money_names_the_key_for_prices(tmp_path: Path) -> None:
    ran = carried_out(tmp_path, good(), budget={"max_usd": 1})
    assert isinstance(ran.error, ConfigError)
    assert 'set models.m.prices, such as {"input": 0.5, "output": 2}' in str(ran.error)
    assert not ran.folder.exists()


def test_t2_13_a_cost_that_the_reply_carries_is_kept(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "cost": 0.0123}
    ran = carried_out(tmp_path, after_capabilities(good(usage=usage)), n_cases=10)
    assert {(item["cost_usd"], item["cost_source"]) for item in ran.judgments.values()} == {(0.0123, "reply")}
    cost = ran.metrics["cost"]
    assert (cost["usd"], cost["usd_by_source"]) == (pytest.approx(0.123), {"reply": pytest.approx(0.123)})
    assert "0.1230 USD (as the replies say)" in (ran.folder / "summary.md").read_text()
    assert "unknown_price" not in ran.warnings


def test_t2_13_prices_of_the_config_tell_cached_tokens_apart_and_hold_a_budget(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    prices = {"input": 10, "output": 50, "cached": 1}
    model = {"max_concurrency": 4, "prices": prices}
    ran = carried_out(
        tmp_path, after_capabilities(good(usage=usage)), n_cases=40, model=model, budget={"max_usd": 0.15}
    )
    # 200 x 10 + 800 x 1 + 100 x 50 = 7,800 a million: 0.0078 a call. Up to 1,000 x 10 + 1,024 x 50 = 0.0612 are set
    # aside for one, so that calls go as long as 0.0888 or less are spent: 12 of them.
    assert isinstance(ran.error, Interrupted)
    assert [item["cost_usd"] for item in ran.judgments.values()] == [pytest.approx(0.0078)] * 12
    assert asked(ran) == 12
    assert "by the prices of the config" in (ran.folder / "summary.md").read_text()


@pytest.mark.slow
def test_t2_13_an_estimate_says_where_its_prices_are_from(tmp_path: Path) -> None:
    with FaultServer(good()) as server:
        write_suite(tmp_path, server.base_url, model={"prices": {"input": 1, "output": 1}})
        assert "USD (by the prices of the config)" in command("run", "config.json", "--dry-run", cwd=tmp_path).stdout
    model = {"base_url": "https://api.openai.com/v1", "model": "gpt-4o-2024-08-06"}
    write_suite(tmp_path, "http://x", model=model)
    listed = command("run", "config.json", "--dry-run", cwd=tmp_path).stdout
    assert re.search(r"USD \(by genai-prices \S+, newest price change \d{4}-\d\d-\d\d\)", listed)


def test_t2_13_prices_of_0_are_free_even_where_nothing_is_counted(tmp_path: Path) -> None:
    model = {"prices": {"input": 0, "output": 0, "cached": 0}}
    ran = carried_out(tmp_path, after_capabilities(good(usage={})), n_cases=4, model=model, budget={"max_usd": 0.01})
    assert ran.error is None
    cost = ran.metrics["cost"]
    assert (cost["usd"], cost["n_without_usage"], cost["n_without_cost"]) == (0.0, 4, 0)


@pytest.mark.parametrize(
    ("usage", "headers", "expected"),
    [
        pytest.param({"cost": 0.5}, {}, 0.5, id="T2-13-openrouter"),
        pytest.param({"cost": "0.5"}, {}, 0.5, id="T2-13-text"),
        pytest.param({"cost": 0}, {}, 0.0, id="T2-13-free"),
        pytest.param({"cost": {"total_cost": 0.5}}, {}, 0.5, id="T2-13-perplexity"),
        pytest.param({"estimated_cost": 0.5}, {}, 0.5, id="T2-13-deepinfra"),
        pytest.param({}, {"x-litellm-response-cost": "0.5"}, 0.5, id="T2-13-litellm"),
        pytest.param(
            {"cost": 0.1, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.4}},
            {},
            0.5,
            id="T2-13-own-key",
        ),
        pytest.param({"cost": 0.1, "is_byok": True}, {}, None, id="T2-13-own-key-without-details"),
        pytest.param({"cost": -1}, {}, None, id="T2-13-negative"),
        pytest.param({"cost": "nan"}, {}, None, id="T2-13-nan"),
        pytest.param({"cost": True}, {}, None, id="T2-13-bool"),
        pytest.param({"cost": "1e999"}, {}, None, id="T2-13-infinite"),
        pytest.param({"cost": None}, {}, None, id="T2-13-null"),
    ],
)
def test_t2_13_where_a_reply_names_its_cost(
    usage: dict[str, Any], headers: dict[str, str], expected: float | None
) -> None:
    assert read_cost({"usage": usage}, headers) == expected


@pytest.mark.parametrize("prices", [{"input": -1, "output": 1}, {"input": 1}, {"input": 1, "output": float("inf")}])
def test_t2_13_prices_that_cannot_be_are_refused(tmp_path: Path, prices: dict[str, float]) -> None:
    ran = carried_out(tmp_path, good(), model={"prices": prices})
    assert isinstance(ran.error, ConfigError)
    assert "models.m.prices" in str(ran.error)
