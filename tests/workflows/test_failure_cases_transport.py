"""Failure cases of kind B, what happens on the way to the judge: each id once, through a whole run against a server."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from judgekit.core.config import ModelConfig
from judgekit.core.errors import ConfigError, ProviderError
from judgekit.testing import (
    FaultServer,
    Reply,
    close_after_bytes,
    error_reply,
    hang,
    headers_then_trickle,
    html_page,
    overloaded,
    rate_limited,
    reset,
    server_error,
    verdict,
    with_latency,
)
from tests.builders import output, write_suite
from tests.doubles.changes import fingerprint_change
from tests.doubles.strict import requires
from tests.workflows.engine import Ran, after_capabilities, again, carried_out, good, resumed

pytestmark = pytest.mark.usefixtures("quick_waits")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def one_case(folder: Path, *replies: Any, **model: Any) -> Ran:
    """A run of one case whose requests get these replies in turn."""
    return carried_out(folder, after_capabilities(*replies), n_cases=1, model=model)


def everything_in(folder: Path) -> bytes:
    """All bytes of all files of all runs, the cache included."""
    return b"\n".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize(
    ("refusal", "low", "high"),
    [
        pytest.param(lambda: rate_limited(retry_after_seconds=3), 3.0, 3.4, id="B01"),
        pytest.param(lambda: rate_limited(retry_after_ms=2500), 2.5, 2.9, id="B01-milliseconds"),
        pytest.param(lambda: rate_limited(retry_after_date_seconds=8), 4.0, 9.9, id="B01-date"),
        pytest.param(lambda: error_reply(503, "busy", headers={"retry-after": "7"}), 7.0, 7.8, id="B01-503"),
    ],
)
def test_the_wait_that_a_server_asks_for_is_kept(
    tmp_path: Path, asked_waits: list[float], refusal: Any, low: float, high: float
) -> None:
    ran = one_case(tmp_path, refusal(), good())
    (wait,) = asked_waits
    assert low <= wait <= high
    assert ran.only["n_requests"] == 2
    assert ran.only["verdict"]["score"] == 4


@pytest.mark.parametrize(
    "headers", [{}, {"retry-after": "0"}, {"retry-after": "soon"}, {"retry-after": "nan"}, {"retry-after": "-5"}]
)
def test_b01_without_a_usable_wait_the_waits_double(
    tmp_path: Path, asked_waits: list[float], headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("judgekit.providers.retrying.FIRST_WAIT_SECONDS", 1.0)
    refusal = error_reply(429, "slow down", headers=headers)
    one_case(tmp_path, refusal, refusal, refusal, good())
    # Half to all of 1, 2 and 4 seconds.
    assert [0.5 * 2**n <= wait <= 2**n for n, wait in enumerate(asked_waits)] == [True] * 3


def test_b01_a_rate_limited_capability_call_waits_too(tmp_path: Path, asked_waits: list[float]) -> None:
    replies = iter([rate_limited(retry_after_seconds=3), server_error(502)])
    ran = carried_out(tmp_path, lambda request: next(replies, good()), n_cases=2)
    assert len(ran.judgments) == 2
    assert asked_waits[0] >= 3


def test_b05_a_used_up_quota_stops_the_run_after_one_request_and_keeps_what_there_is(tmp_path: Path) -> None:
    message = "You exceeded your current quota"
    quota = rate_limited(code="insufficient_quota", message=message)
    with FaultServer(after_capabilities(good(), quota)) as server:
        ran = again(write_suite(tmp_path, server.base_url, model={"max_concurrency": 1}), server)
        assert isinstance(ran.error, ProviderError)
        assert message in str(ran.error)
        assert len(ran.asked) == 2
        assert len(ran.judgments) == 1
        assert ran.manifest["status"] == "interrupted"
        server.play(good())
        assert len(resumed(ran).judgments) == 6


def test_b05_a_rate_limit_that_mentions_billing_is_still_a_rate_limit(tmp_path: Path) -> None:
    text = "Rate limit reached. Add a payment method at https://platform.example/account/billing to raise it."
    ran = one_case(tmp_path, rate_limited(message=text), good())
    assert ran.only["n_requests"] == 2


@pytest.mark.parametrize("status", [429, 503])
def test_b06_a_wait_of_hours_is_not_waited_for(tmp_path: Path, asked_waits: list[float], status: int) -> None:
    refusal = error_reply(status, "Monthly usage limit reached", headers={"retry-after": "10800"})
    ran = one_case(tmp_path, refusal)
    assert isinstance(ran.error, ProviderError)
    assert "the server asks to wait 3 h" in str(ran.error)
    assert len(ran.asked) == 1
    assert asked_waits == []


def test_b08_when_attempts_are_used_up_the_last_refusal_is_kept(tmp_path: Path) -> None:
    refusal = error_reply(429, "TPM limit 30000", headers={"x-request-id": "req_7"})
    ran = one_case(tmp_path, refusal, max_attempts=4)
    assert ran.only["failure"] == {"kind": "rate_limited", "message": "HTTP 429: TPM limit 30000 (request req_7)"}
    assert ran.only["n_requests"] == len(ran.asked) == 4


def test_b10_pages_of_a_gateway_are_asked_again_and_at_last_quoted(tmp_path: Path) -> None:
    ran = one_case(tmp_path / "mended", html_page(502), html_page(200, "<html>login</html>"), good())
    assert ran.only["n_requests"] == 3
    assert ran.only["verdict"]["score"] == 4

    failed = one_case(tmp_path / "lost", html_page(200, "<html>login</html>" + "x" * 1000), max_attempts=2)
    message = failed.only["failure"]["message"]
    assert failed.only["failure"]["kind"] == "server_error"
    assert "HTTP 200 with text/html" in message
    assert "<html>login</html>" in message
    assert len(message) < 300


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([close_after_bytes(40)], id="B11"),
        pytest.param([close_after_bytes(0)], id="B11-no-byte"),
        pytest.param([reset(), reset()], id="B12"),
        pytest.param(
            [overloaded(), server_error(500), error_reply(408, "late"), error_reply(409, "busy")], id="B12-5xx"
        ),
    ],
)
def test_a_broken_exchange_is_repeated_and_leaves_one_verdict(tmp_path: Path, faults: list[Reply]) -> None:
    ran = one_case(tmp_path, *faults, good())
    assert ran.only["n_requests"] == len(ran.asked) == len(faults) + 1
    assert ran.only["verdict"]["score"] == 4


def test_b12_an_unknown_host_is_reported_once_and_not_for_every_case(tmp_path: Path) -> None:
    config = write_suite(tmp_path, "http://no-such-host.invalid/v1", n_cases=50)
    started = time.monotonic()
    with FaultServer() as unused:
        ran = again(config, unused)
    assert isinstance(ran.error, ProviderError)
    assert "cannot reach http://no-such-host.invalid/v1" in str(ran.error)
    assert ran.judgments == {}
    assert time.monotonic() - started < 5


def test_b13_no_time_limit_means_the_usual_one(tmp_path: Path) -> None:
    assert ModelConfig(model="m", timeout_seconds=None).timeout_seconds == 120
    ran = one_case(tmp_path, hang(), max_attempts=2, timeout_seconds=0.2)
    assert ran.only["failure"] == {"kind": "timeout", "message": "no reply within 0.2 s"}
    assert ran.only["n_requests"] == 2


def test_b14_a_trickling_body_does_not_put_off_the_deadline(tmp_path: Path) -> None:
    started = time.monotonic()
    ran = one_case(tmp_path, headers_then_trickle(0.05), good(), timeout_seconds=0.4)
    assert time.monotonic() - started < 5  # the whole body would take half a minute
    assert ran.only["n_requests"] == 2
    assert ran.only["verdict"]["score"] == 4


@pytest.mark.slow
def test_b15_waiting_for_a_slot_is_not_on_the_clock(tmp_path: Path) -> None:
    script = with_latency(0.2, then=good())
    ran = carried_out(tmp_path, script, n_cases=10, model={"max_concurrency": 1, "timeout_seconds": 1})
    assert [item["n_requests"] for item in ran.judgments.values()] == [1] * 10
    assert ran.manifest["wall_seconds"] > 2


def test_b16_a_wrong_key_is_one_request_for_500_cases_and_is_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "wrong-key-of-a-user-1234")
    refusal = error_reply(401, "Incorrect API key provided: wrong-ke**********1234.", code="invalid_api_key")
    ran = carried_out(tmp_path, refusal, n_cases=500, model={"api_key_env": "MY_KEY"})
    assert isinstance(ran.error, ProviderError)
    assert ran.server.log.totals.n_requests == 1
    assert "the key is missing or wrong" in str(ran.error)
    assert "wrong-ke" not in str(ran.error)
    assert b"wrong-ke" not in everything_in(tmp_path)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(lambda key: error_reply(400, f"bad header Bearer {key}"), id="B16-error"),
        pytest.param(lambda key: html_page(502, "x" * 180 + key), id="B16-page-cut-inside-the-key"),
        pytest.param(lambda key: Reply(200, {"echo": {"authorization": key}}), id="B16-no-completion"),
        pytest.param(lambda key: verdict(4, supported=[], reasoning=f"I was called with {key}"), id="B16-verdict"),
        pytest.param(lambda key: good(fingerprint=key), id="B16-fingerprint"),
    ],
)
def test_a_key_that_a_server_sends_back_is_written_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Any
) -> None:
    key = "f00d-cafe-of-some-service-0123456789"
    monkeypatch.setenv("MY_KEY", f" {key}\n")
    ran = one_case(tmp_path, reply(key), api_key_env="MY_KEY", max_attempts=2)
    assert len(ran.judgments) == 1
    written = everything_in(tmp_path / "results")
    assert key.encode() not in written
    assert b"f00d-cafe" not in written
    assert "f00d-cafe" not in str(ran.error)


@pytest.mark.parametrize("key", ["sk-ab\nsk-cd", "sk-abcd\x00", "sk-schlüssel"])
def test_b16_a_key_that_no_header_can_carry_is_found_before_any_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, "MY_KEY": key})
    config = write_suite(tmp_path, "http://127.0.0.1:9/v1", model={"api_key_env": "MY_KEY"})
    with FaultServer() as server:
        ran = again(config, server)
    assert isinstance(ran.error, ConfigError)
    assert "MY_KEY holds characters that no key has" in str(ran.error)
    assert key not in str(ran.error)


def test_b17_a_prompt_that_is_too_long_is_one_request_and_a_failure_of_its_case(tmp_path: Path) -> None:
    rows = [output(f"c{number}") for number in range(5)] + [output("c5", answer="long " * 20_000)]
    ran = carried_out(tmp_path, requires(max_prompt_tokens=8192), output_rows=rows)
    failure = ran.judgments["c5"]["failure"]
    assert (failure["kind"], ran.judgments["c5"]["n_requests"]) == ("context_length", 1)
    assert "maximum context length is 8192" in failure["message"]
    assert ran.metrics["judges"]["groundedness"]["n_judged"] == 5
    longest = max(ran.asked, key=lambda body: len(body["messages"][1]["content"]))
    assert "long " * 20_000 in longest["messages"][1]["content"]  # what is judged is never cut


@pytest.mark.parametrize(
    ("refusal", "kind"),
    [
        pytest.param(
            server_error(500, "OpenAIException - Requested token count exceeds the model's maximum context length."),
            "context_length",
            id="B18",
        ),
        pytest.param(error_reply(413, "Payload Too Large"), "context_length", id="B17-413"),
        pytest.param(error_reply(400, "triggered the content management policy"), "filtered", id="B17-filter"),
        pytest.param(error_reply(403, "Your input was flagged by moderation"), "filtered", id="B17-moderation"),
        pytest.param(error_reply(400, "malformed"), "bad_request", id="B17-400"),
        pytest.param(error_reply(501, "not here"), "server_error", id="B17-501"),
    ],
)
def test_a_refusal_of_one_case_is_one_request_and_the_others_go_on(tmp_path: Path, refusal: Reply, kind: str) -> None:
    def answer(request: Any) -> Reply:
        return refusal if "kiln c3 " in request.text.lower() else good()

    ran = carried_out(tmp_path, answer)
    assert ran.summary is not None
    assert ran.judgments["c3"]["failure"]["kind"] == kind
    assert [item["n_requests"] for item in ran.judgments.values()] == [1] * 6
    assert ran.manifest["models"]["m"]["n_rate_limit_cuts"] == 0


@pytest.mark.parametrize(
    ("error", "stops", "kind"),
    [
        ({"message": "upstream", "code": 502}, False, "server_error"),
        ({"message": "upstream", "code": "502"}, False, "server_error"),
        ({"message": "no luck"}, False, "server_error"),
        ({"message": "slow down", "code": "rate_limit_exceeded"}, False, "rate_limited"),
        ({"message": "maximum context length is 10", "code": "x"}, False, "context_length"),
        ({"message": "You exceeded your current quota", "code": "insufficient_quota"}, True, "quota used up"),
        ({"message": "bad key", "code": "invalid_api_key"}, True, "key is missing or wrong"),
    ],
)
@pytest.mark.parametrize("place", ["alone", "beside a verdict", "in the choice", "as an object"])
def test_b10_an_error_that_comes_with_status_200_is_an_error(
    tmp_path: Path, error: dict[str, Any], stops: bool, kind: str, place: str
) -> None:
    sound = {
        "message": {"role": "assistant", "content": '{"score": 5, "supported_claims": [], "unsupported_claims": []}'}
    }
    bodies: dict[str, dict[str, Any]] = {
        "alone": {"error": error},
        "beside a verdict": {"error": error, "choices": [sound]},
        "in the choice": {"choices": [{**sound, "error": error}]},
        "as an object": {"object": "error", **error},
    }
    ran = one_case(tmp_path, Reply(200, bodies[place]), max_attempts=2)
    if stops:
        assert isinstance(ran.error, ProviderError)
        assert kind in str(ran.error)
        assert len(ran.asked) == 1
    else:
        assert ran.only["failure"]["kind"] == kind
        assert ran.only["n_requests"] == (1 if kind == "context_length" else 2)
        assert ran.only["verdict"] is None


def test_b10_a_body_of_the_wrong_shape_never_damages_the_record(tmp_path: Path) -> None:
    odd = Reply(
        200,
        {
            "model": 5,
            "system_fingerprint": {"a": 1},
            "choices": [{"finish_reason": 3, "message": {"content": [{"text": "no"}], "refusal": None}}],
            "usage": {"prompt_tokens": True, "completion_tokens": 10**40},
        },
    )
    ran = carried_out(tmp_path, after_capabilities(odd, good()), n_cases=3, model={"max_concurrency": 1, "pin": FLAG})
    assert ran.summary is not None
    assert ran.summary.judges["groundedness"]["n_judged"] == 3


FLAG = {"on_mismatch": "flag"}


@pytest.mark.parametrize(
    ("prompt_tokens", "is_used"), [(4096, False), (1, False), (60_000, True), (15_500, True), (0, True), (None, True)]
)
def test_b19_a_prompt_that_the_server_cut_gives_no_score(
    tmp_path: Path, prompt_tokens: int | None, is_used: bool
) -> None:
    # 0 and no count at all say nothing; about 120,000 characters are at least 15,000 tokens.
    usage = {} if prompt_tokens is None else {"prompt_tokens": prompt_tokens}
    rows = [output("c0", retrieved=[{"text": "evidence " * 13_300}])]
    ran = carried_out(tmp_path, after_capabilities(good(1, usage=usage)), n_cases=1, output_rows=rows)
    assert (ran.only["verdict"] is not None) is is_used
    if not is_used:
        assert ran.only["failure"]["kind"] == "prompt_truncated"
        assert ran.only["flags"] == ["prompt_truncated_by_server"]
        assert ran.only["n_requests"] == 1
        assert ran.metrics["overall"]["groundedness"]["value"] is None


def test_b19_equal_questions_that_share_a_call_share_its_failure(tmp_path: Path) -> None:
    rows = [output(f"c{number}", answer="Same.", retrieved=[{"text": "evidence " * 4000}]) for number in range(6)]
    ran = carried_out(tmp_path, after_capabilities(good(5, usage={"prompt_tokens": 100})), output_rows=rows)
    assert {item["failure"]["kind"] for item in ran.judgments.values()} == {"prompt_truncated"}
    assert len(ran.asked) == 1


def test_b22_fingerprints_are_kept_by_judgment_counted_and_warned_of(tmp_path: Path) -> None:
    script = fingerprint_change("fp_a", "fp_b", 3, then=good())  # the capability call is the first of the three
    ran = carried_out(tmp_path, script, n_cases=3, model={"max_concurrency": 1})
    assert [item["fingerprint"] for item in ran.judgments.values()] == ["fp_a", "fp_a", "fp_b"]
    assert ran.manifest["models"]["m"]["fingerprints"] == {"fp_a": 2, "fp_b": 1}
    assert "fp_a (2), fp_b (1)" in ran.warnings["fingerprint_changed"]
    assert not any("fp_" in str(item["key_parts"]) for item in ran.judgments.values())


def test_b24_a_server_that_faults_at_everything_is_asked_a_bounded_number_of_times(tmp_path: Path) -> None:
    refusal = error_reply(500, "Expecting property name enclosed in double quotes", code="internal")
    at_once = carried_out(tmp_path / "at-once", refusal, n_cases=100, model={"max_attempts": 4})
    assert isinstance(at_once.error, ProviderError)
    assert at_once.server.log.totals.n_requests <= 8

    later = carried_out(tmp_path / "later", after_capabilities(refusal), n_cases=100, model={"max_attempts": 4})
    assert isinstance(later.error, ProviderError)
    assert "the first 20 calls all failed alike" in str(later.error)
    assert {item["n_requests"] for item in later.judgments.values()} == {4}
    assert 20 <= len(later.judgments) <= 24  # the rest was in flight


@pytest.mark.slow
def test_b24_a_server_that_dies_under_way_stops_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    replies = [good()] * 30
    with FaultServer(after_capabilities(*replies, reset())) as server:
        config = write_suite(tmp_path, server.base_url, n_cases=200, model={"max_attempts": 2})
        ran = again(config, server)
        assert isinstance(ran.error, ProviderError)
        assert "20 calls all failed alike" in str(ran.error)
        assert len(ran.judgments) <= 30 + 24
        assert ran.manifest["status"] == "interrupted"
        server.play(good())
        whole = resumed(ran)
    assert whole.summary is not None
    assert whole.summary.judges["groundedness"]["n_judged"] == 200
