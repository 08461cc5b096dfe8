"""Servers that answer typed questions with a probability for each answer: `POST /v1/decisions`.

No text is generated. A request is the rendered prompt as the input, and one question for each value of the reply schema
that is one of a fixed few; the verdict is the likeliest of them, and the probabilities of all are kept. Two forms are
in use, and which one a server takes is found out once: that of OpenAI, which vLLM-Omni shares, and that of SGLang.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from judgekit.core.errors import ConfigError
from judgekit.core.judgments import ModelRequest, ModelResponse
from judgekit.core.protocols import Batching, CallError, Capabilities
from judgekit.core.token_runs import OptionProbabilities
from judgekit.providers.accounting import read_cost, read_upstream, read_usage
from judgekit.providers.http_errors import redact
from judgekit.providers.openai_compatible import OpenAICompatible

_PATH = "/decisions"
_OPENAI, _SGLANG = "decisions (OpenAI)", "decisions (SGLang)"
_READY = {"type": "object", "required": ["ready"], "properties": {"ready": {"type": "boolean"}}}
_MOST_SGLANG = {"scale": 10, "choice": 26}
"""Options of a question at most, since each is one token there."""


@dataclass(frozen=True, slots=True)
class Question:
    """One value of a reply that is one of a fixed few."""

    name: str
    kind: Literal["flag", "scale", "choice"]
    values: tuple[Any, ...]
    """What it can be, as JSON; of a scale from the lowest."""
    instructions: str
    part_of: str | None = None
    """Of a criterion, the key of the list that it is in."""

    @property
    def options(self) -> tuple[str, ...]:
        """The values as texts."""
        return tuple(map(option_text, self.values))


class Decisions(OpenAICompatible):
    """Typed questions over HTTP; each answer comes with the probability of every option."""

    probabilities: ClassVar[Literal["none", "tokens", "stated"]] = "stated"

    def check(self) -> None:
        """Refuse what a server that generates no text cannot take."""
        for name in ("reply_format", "reasoning_effort"):
            if getattr(self.model, name) is not None:
                raise ConfigError(f"provider decisions: {name} has no meaning where no text is generated; leave it out")

    def check_wording(self, reply_schema: Mapping[str, Any]) -> None:
        """Refuse a wording that asks for more than answers to questions."""
        list(questions_of(reply_schema))

    def batches(self) -> Batching | None:
        """None: batch endpoints take chat completions."""
        return None

    async def find_capabilities(self) -> Capabilities:
        """Which of the two forms the server takes, by one small call, or two."""
        refusals = []
        for form in (_OPENAI, _SGLANG):
            found = Capabilities(response_format=form, samples=False)
            try:
                await self.complete(self._small_request(found))
            except CallError as error:
                if error.fatal or error.kind not in ("bad_request", "server_error"):
                    raise
                refusals.append(f"{form}: {error}")
            else:
                return found
        raise CallError("bad_request", f"the server takes no form of decisions; {'; '.join(refusals)}", fatal=True)

    def _small_request(self, takes: Capabilities) -> ModelRequest:
        model = self.model
        return ModelRequest(
            provider=model.provider,
            base_url=model.public_url,
            model=model.model,
            pinned_model=model.model,
            messages=({"role": "user", "content": "Say whether you are ready."},),
            parameters=takes.parameters(model),
            reply_schema=_READY,
            prompt_sha256="capabilities",
        )

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The answers to all questions of one request, with a wall-clock limit from sending to the last byte."""
        started = time.perf_counter()
        questions = list(questions_of(request.reply_schema))
        is_sglang = request.parameters["response_format"] == _SGLANG
        body = _sglang_body(request, questions) if is_sglang else _openai_body(request, questions)
        payload, headers = await self._exchange(_PATH, body | request.parameters.get("extra_body", {}))
        try:
            answers = payload["answers"]
            usage = payload.get("usage")
            stated = _sglang_answers(answers, questions) if is_sglang else _openai_answers(answers, questions)
        except (TypeError, KeyError, ValueError, IndexError, AttributeError):
            message = f"the reply is not a decision: {redact(str(payload)[:200])}"
            raise CallError("server_error", message, retryable=True) from None
        counted = {**payload, "usage": {"output_tokens": 0, **usage}} if isinstance(usage, dict) else payload
        served = payload.get("model")
        upstream = read_upstream(payload, headers)
        return ModelResponse(
            text=None if stated is None else _reply(request.reply_schema, questions, stated),
            finish_reason="stop",
            refusal="the model declined to answer a question" if stated is None else None,
            usage=read_usage(counted, has_text=False),
            cost_usd=read_cost(payload, headers),
            served_model=served if isinstance(served, str) else None,
            upstream=None if upstream is None else self._masker.text(upstream),
            latency_seconds=time.perf_counter() - started,
            stated=stated,
        )


def option_text(value: Any) -> str:
    """A value as an option is named: `true`, `4`, `on`."""
    return value if isinstance(value, str) else json.dumps(value)


def questions_of(schema: Mapping[str, Any]) -> Iterator[Question]:
    """The questions of a reply schema: one for each value that is one of a fixed few. Free texts are left out.

    Raises:
        ConfigError: it asks for something else, such as a list of claims, which no probability can be given of.
    """
    n_questions = 0
    for name, wanted in schema.get("properties", {}).items():
        values, criteria = _values_of(wanted), list(_criteria_of(name, wanted))
        if values is None and wanted.get("type") == "string":
            continue
        if not criteria and (values is None or len(values) < 2):
            raise ConfigError(
                f"the provider decisions answers questions with a fixed set of answers, and {name!r} of the reply is "
                "not one; name another provider for this judge, or a wording that does not ask for it"
            )
        found = criteria or [_question(name, wanted, values or ())]
        n_questions += len(found)
        yield from found
    if not n_questions:
        raise ConfigError("the provider decisions needs a reply schema with a value that is one of a fixed few")


def _criteria_of(key: str, wanted: Mapping[str, Any]) -> Iterator[Question]:
    """A question for each criterion of a list, if the schema names them all; criteria of single cases are not there."""
    item = wanted.get("items", {}).get("properties", {})
    values = _values_of(item.get("met", {}))
    for criterion in item.get("id", {}).get("enum", ()) if values is not None else ():
        kind: Literal["flag", "choice"] = "flag" if len(values or ()) == 2 else "choice"
        said = f"By the instructions above, the criterion `{criterion}` is met."
        yield Question(criterion, kind, values or (), said, key)


def _question(name: str, wanted: Mapping[str, Any], values: tuple[Any, ...]) -> Question:
    kind: Literal["flag", "scale", "choice"] = "choice"
    if all(isinstance(value, bool) for value in values):
        kind = "flag"
    elif all(isinstance(value, int) for value in values):
        kind = "scale"
    usual = f"By the instructions above, `{name}` is true." if kind == "flag" else f"What is `{name}`?"
    return Question(name, kind, values, str(wanted.get("description") or usual))


def _values_of(wanted: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """What a value can be by its schema; None if that is not a fixed few."""
    if "anyOf" in wanted:
        parts = [_values_of(part) for part in wanted["anyOf"]]
        return None if None in parts else tuple(value for part in parts for value in part or ())
    if "enum" in wanted:
        return tuple(wanted["enum"])
    if wanted.get("type") == "boolean":
        return False, True
    if wanted.get("type") == "integer" and "minimum" in wanted and "maximum" in wanted:
        return tuple(range(wanted["minimum"], wanted["maximum"] + 1))
    return None


def _openai_body(request: ModelRequest, questions: Sequence[Question]) -> dict[str, Any]:
    def asked(question: Question) -> dict[str, Any]:
        common = {"name": question.name, "instructions": question.instructions}
        if question.kind == "flag":
            return {"type": "predicate", **common}
        if question.kind == "scale":
            return {"type": "score", **common, "levels": [{"label": option} for option in question.options]}
        return {"type": "choice", **common, "choices": [{"value": option} for option in question.options]}

    messages = [dict(message) for message in request.messages]
    return {"model": request.model, "input": messages, "questions": list(map(asked, questions))}


def _sglang_body(request: ModelRequest, questions: Sequence[Question]) -> dict[str, Any]:
    def asked(question: Question) -> dict[str, Any]:
        common = {"id": question.name, "question": question.instructions}
        if question.kind == "flag":
            return {"type": "yes_no", **common}
        if question.kind == "scale" and len(question.values) <= _MOST_SGLANG["scale"]:
            return {"type": "score", **common, "levels": list(question.options)}
        if len(question.values) > _MOST_SGLANG["choice"]:
            text = f"SGLang's decisions take {_MOST_SGLANG['choice']} answers at most, and {question.name!r} has more"
            raise CallError("bad_request", text, fatal=True, n_requests=0)
        return {"type": "choice", **common, "options": [{"name": option} for option in question.options]}

    text = "\n\n".join(message["content"] for message in request.messages)
    return {"model": request.model, "input": text, "questions": list(map(asked, questions))}


def _openai_answers(answers: Any, questions: Sequence[Question]) -> dict[str, OptionProbabilities] | None:
    """The probabilities by name of the question; None if the model declined one of them."""
    if len(answers) != len(questions):
        raise ValueError("an answer is missing")
    found = {}
    for answer, question in zip(answers, questions, strict=True):
        if answer["type"] == "refusal":
            return None
        if answer.get("name") not in (None, question.name):
            raise ValueError("the answers are in another order")
        if answer["type"] == "predicate":
            yes = _number(answer["probability"])
            shares = [("false", 1.0 - yes), ("true", yes)]
        else:
            key = "label" if answer["type"] == "score" else "value"
            shares = [(option_text(item[key]), _number(item["probability"])) for item in answer["probabilities"]]
        found[question.name] = OptionProbabilities(_unique(shares), 1.0)
    return found


def _sglang_answers(answers: Any, questions: Sequence[Question]) -> dict[str, OptionProbabilities]:
    """The probabilities by name of the question, with what all its options together had of the model's own."""
    found = {}
    for question in questions:
        answer = answers[question.name]
        names = {"yes": "true", "no": "false"} if answer["type"] == "yes_no" else {}
        if answer["type"] == "score":
            names = {str(number): option for number, option in enumerate(question.options)}
        shares = [(names.get(name, name), _number(share)) for name, share in answer["probabilities"].items()]
        found[question.name] = OptionProbabilities(_unique(shares), _number(answer["label_mass"]))
    return found


def _unique(shares: Sequence[tuple[str, float]]) -> dict[str, float]:
    found = dict(shares)
    if len(found) != len(shares):
        raise ValueError("an option comes twice")
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a probability is not a number")
    return float(value)


def _reply(schema: Mapping[str, Any], questions: Sequence[Question], stated: Mapping[str, OptionProbabilities]) -> str:
    """The likeliest answers as the reply that the schema asks for; of equally likely ones the first."""
    likeliest: dict[str, Any] = {}
    for question in questions:
        shares = stated[question.name].by_option
        best = max(question.options, key=lambda option: shares.get(option, 0.0))
        value = question.values[question.options.index(best)]
        if question.part_of is None:
            likeliest[question.name] = value
        else:
            entry = {"id": question.name, "evidence": "", "met": value}
            likeliest.setdefault(question.part_of, []).append(entry)
    texts = {name: "" for name in schema["properties"] if name not in likeliest}
    return json.dumps(texts | likeliest)
