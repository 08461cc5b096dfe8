"""What a case opens to in the report: its texts, each with a cap, hits with what they match, and all judgments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from judgekit.core.cases import Case, DocumentPlace, Hit, SystemOutput
from judgekit.core.conversations import call_line, conversation_of, messages_of
from judgekit.core.errors import ConfigError
from judgekit.core.human_labels import HumanLabel
from judgekit.core.judgments import CANNOT_TELL, Judgment, Verdict
from judgekit.core.kind import said_text
from judgekit.core.prompts import PromptTemplate
from judgekit.core.runs import CaseRecord
from judgekit.core.spot_checks import RUN_SPOT_CHECK
from judgekit.reports.safe_text import inert

Text = str | list[Any]
"""A text as the page's script reads it: as it is, or `[beginning, length of the whole]` if it was cut."""

MOST_HITS = 30
MOST_ITEMS = 60
MOST_OF_A_CASE = 60_000
"""About how many characters a case takes at most."""

_LEAST = 80


_MET = {True: "met", False: "not met", None: CANNOT_TELL}


@dataclass(frozen=True, slots=True)
class Caps:
    """Characters shown of each text; the whole is in the run folder."""

    question: int = 2000
    answer: int = 8000
    reference: int = 1500
    context: int = 2500
    contexts: int = 20_000
    """Of all contexts of a case together."""
    claim: int = 600
    reasoning: int = 3000
    reply: int = 4000
    prompt: int = 6000
    item: int = 300

    def scaled(self, factor: float) -> "Caps":
        """The same with every cap multiplied, but no cap below the length of a line."""
        return replace(self, **{name: max(_LEAST, int(cap * factor)) for name, cap in asdict(self).items()})


@dataclass(frozen=True)
class CaseViewer:
    """Makes the details of cases."""

    caps: Caps
    prompts: Mapping[str, PromptTemplate]
    """Wordings by `judge/version`."""
    matched: Callable[[Case, SystemOutput], Sequence[Sequence[int]]]
    """For each hit, the gold supports that it matches."""
    slices: Callable[[Case], Mapping[str, Sequence[str]]]
    """Values of a case by slice dimension."""
    labels: Mapping[str, Sequence[HumanLabel]] = field(default_factory=dict)
    """Human labels by case id."""

    def details(self, record: CaseRecord) -> dict[str, Any]:
        """Everything about one case that its row does not show, without empty entries."""
        found = {
            "id": inert(record.case_id)[: self.caps.item],
            **self._case(record.case),
            **self._output(record.case, record.output),
            **self._conversation(record.case, record.output),
            "abstention": _abstention(record),
            "labels": self._labels(record),
            "judged": [self._judgment(record, judgment) for judgment in _that_count(record.judgments)],
        }
        return {key: value for key, value in found.items() if value or value not in (None, [], {}, "")}

    def _case(self, case: Case | None) -> dict[str, Any]:
        if case is None:
            return {}
        return {
            "question": self._cut(case.question, self.caps.question),
            "references": self._list(case.reference_answers, self.caps.reference),
            "facts": self._list(case.key_facts, self.caps.item),
            "must": self._list(case.must_contain, self.caps.item),
            "forbidden": self._list(case.forbidden, self.caps.item),
            "calls": self._list(list(map(call_line, case.expected_tool_calls or ())), self.caps.item),
            "answerable": case.answerable,
            "supports": [self._support(support) for support in case.gold_supports[:MOST_ITEMS]],
        }

    def _support(self, support: Any) -> dict[str, Any]:
        return {"place": self._place(support), "snippets": self._list(support.snippets, self.caps.item)}

    def _output(self, case: Case | None, output: SystemOutput | None) -> dict[str, Any]:
        if output is None:
            return {}
        error, other = output.error, output.other
        return {
            "other": self._cut(other.answer, self.caps.answer) if other is not None and other.answer else None,
            "answer": None if output.answer is None else self._cut(output.answer, self.caps.answer),
            "error": error and [self._line(error.kind), self._cut(error.message, self.caps.item)],
            "confidence": output.confidence,
            "hits": self._hits(case, output),
            "n_hits": len(output.retrieved),
            "citations": [self._line(item.citation) for item in (output.citations or ())[:MOST_ITEMS]],
            "cited": [self._place(place) for place in output.references[:MOST_ITEMS]],
            "seconds": {self._line(stage): round(seconds, 4) for stage, seconds in output.latency_seconds.items()},
        }

    def _conversation(self, case: Case | None, output: SystemOutput | None) -> dict[str, Any]:
        """The last messages; all of them share what contexts may take."""
        if case is None or output is None:
            return {}
        shown = conversation_of(case, output)
        hits = [message.retrieved for message in messages_of(case, output)]
        left = self.caps.contexts
        found = []
        for message in reversed(shown[-MOST_ITEMS:]):
            cap = max(_LEAST, min(self.caps.answer, left))
            left -= min(len(message["text"]), cap)
            n_hits = hits[message["number"] - 1]
            found.append(
                {**message, "text": self._cut(message["text"], cap), "n_hits": None if n_hits is None else len(n_hits)}
            )
        return {"conversation": found[::-1], "n_messages": len(shown) or None}

    def _hits(self, case: Case | None, output: SystemOutput) -> list[dict[str, Any]]:
        matched = [()] * len(output.retrieved) if case is None else self.matched(case, output)
        expected = set() if case is None else {*(case.expected_chunk_ids or ())}
        left = self.caps.contexts
        found = []
        for position, hit in enumerate(output.retrieved[:MOST_HITS]):
            cap = max(_LEAST, min(self.caps.context, left))
            text = hit.text or ""
            left -= min(len(text), cap)
            found.append(
                {
                    "rank": hit.rank or position + 1,
                    "chunk": None if hit.chunk_id is None else self._line(hit.chunk_id),
                    "place": self._place(hit) or (hit.doc_id and self._line(hit.doc_id)) or "",
                    "score": hit.score,
                    "text": None if hit.text is None else self._cut(text, cap),
                    "supports": list(matched[position]),
                    "expected": hit.chunk_id is not None and hit.chunk_id in expected,
                }
            )
        return found

    def _judgment(self, record: CaseRecord, judgment: Judgment) -> dict[str, Any]:
        verdict, failure, caps = judgment.verdict, judgment.failure, self.caps
        found: dict[str, Any] = {
            "judge": judgment.judge,
            "role": judgment.role,
            "check": (judgment.check or RUN_SPOT_CHECK) if judgment.role == "spot_check" else None,
            "again": _asks_again(judgment, record.judgments) or None,
            "member": self._line(judgment.model_id) if judgment.role == "member" else None,
            "model": self._line(judgment.served_model or judgment.model),
            "wording": f"{judgment.judge}/{judgment.prompt_version}",
            "failure": failure and [failure.kind, self._cut(failure.message, caps.reasoning)],
            "reply": None if judgment.raw_reply is None else self._cut(judgment.raw_reply, caps.reply),
            "read": judgment.parse_path,
            "finish": judgment.finish_reason,
            "flags": list(judgment.flags),
            "cached": judgment.from_cache,
            "seconds": judgment.latency_seconds,
            "usd": judgment.cost_usd,
            "tries": 1 + len(judgment.earlier_attempts),
            "prompt": self._prompt(record, judgment),
        }
        if verdict is not None:
            found |= {
                "score": verdict.score,
                "answer": verdict.answer,
                "said": self._line(said_text(verdict.said)) if verdict.score is verdict.answer is None else None,
                "criteria": [
                    [self._line(item.id), _MET[item.met], self._cut(item.evidence, caps.claim), item.weight]
                    for item in (verdict.criteria or ())[:MOST_ITEMS]
                ],
                **self._meant(judgment, verdict),
                "chances": self._line(_chances(verdict)),
                "reasoning": self._cut(verdict.reasoning, caps.reasoning),
                "supported": self._list(verdict.supported_claims or (), caps.claim),
                "unsupported": self._list(verdict.unsupported_claims or (), caps.claim),
                "quotes": [
                    [self._cut(item.claim, caps.claim), self._cut(item.quote, caps.claim), item.is_real]
                    for item in (verdict.quotes or ())[:MOST_ITEMS]
                ],
            }
        return {key: value for key, value in found.items() if value or value not in (None, [], "")}

    def _meant(self, judgment: Judgment, verdict: Verdict) -> dict[str, Any]:
        """Whether a verdict passes, and what the judge was told that its score or label means, if that is known."""
        rubric = self.prompts.get(f"{judgment.judge}/{judgment.prompt_version}")
        if rubric is None or not rubric.is_given:
            return {}
        texts: Mapping[Any, str] = rubric.levels or rubric.labels or {}
        meaning = None if verdict.said is None else texts.get(verdict.said)
        return {"passes": rubric.kind.passes(verdict), "means": meaning and self._line(meaning)}

    def _labels(self, record: CaseRecord) -> list[dict[str, Any]]:
        """Human labels of the case, and whether they are about another answer, if the label says which."""
        judged = {item.judge: item.input_sha256 for item in record.judgments}
        return [
            {
                "judge": None if label.judge is None else self._line(label.judge),
                "who": self._line(label.annotator),
                "says": self._said(label.value),
                "other": label.input_sha256 is not None
                and judged.get(label.judge or "") not in (None, label.input_sha256),
            }
            for label in self.labels.get(record.case_id, ())[:MOST_ITEMS]
        ]

    def _said(self, value: Any) -> int | str:
        """A label in words: pass or fail, a score, or what is said of each criterion."""
        if isinstance(value, dict):
            words = {True: "met", False: "not met"}
            return self._line(", ".join(f"{name} {words.get(met, met)}" for name, met in value.items()))
        if isinstance(value, bool):
            return "pass" if value else "fail"
        return value if isinstance(value, int) else self._line(str(value))

    def _prompt(self, record: CaseRecord, judgment: Judgment) -> Text | None:
        """The user text as sent; the instructions are the same for all cases and stand once in the page."""
        template = self.prompts.get(f"{judgment.judge}/{judgment.prompt_version}")
        judge_input = record.inputs.get(judgment.judge)
        if template is None or judge_input is None:
            return None
        try:
            return self._cut(template.render(judge_input.variables)[1], self.caps.prompt)
        except ConfigError:
            return None

    def _cut(self, text: str, cap: int) -> Text:
        return inert(text) if len(text) <= cap else [inert(text[:cap]), len(text)]

    def _list(self, texts: Sequence[str], cap: int) -> list[Text]:
        return [self._cut(text, cap) for text in texts[:MOST_ITEMS]]

    def _line(self, text: str) -> str:
        if len(text) <= self.caps.item and " " not in text and text.isprintable():
            return text
        flat = " ".join(inert(text[: self.caps.item * 2]).split())
        return flat if len(flat) <= self.caps.item else f"{flat[: self.caps.item]}…"

    def _place(self, place: DocumentPlace | Hit) -> str:
        if not place.rel_path and not place.heading_path:
            return ""
        headings = place.heading_path if isinstance(place.heading_path, str) else " › ".join(place.heading_path)
        return self._line(" › ".join(part for part in (place.rel_path, headings) if part))


def _abstention(record: CaseRecord) -> list[Any] | None:
    """Whether the output counts as an abstention, and what says so; of an older run, its own flag alone."""
    value, _ = record.scores.get("abstained", (None, None))
    if value is not None:
        return [bool(value), record.sources.get("abstained", "")]
    flag = None if record.output is None else record.output.abstained
    return None if flag is None else [flag, "flag"]


def _chances(verdict: Verdict) -> str:
    """How likely each option was, the likeliest first; blank if that is not known."""
    likeliest = sorted((verdict.probabilities or {}).items(), key=lambda item: -item[1])[:MOST_ITEMS]
    shown = ", ".join(f"{option} {chance:.3f}" for option, chance in likeliest)
    return f"probability: {shown}" if shown else ""


def _asks_again(judgment: Judgment, judgments: Sequence[Judgment]) -> bool:
    """Whether a second opinion is of the judge itself."""
    return judgment.role == "spot_check" and any(
        (item.role, item.judge, item.model_id, item.prompt_sha256)
        == ("primary", judgment.judge, judgment.model_id, judgment.prompt_sha256)
        for item in judgments
    )


def _that_count(judgments: Sequence[Judgment]) -> list[Judgment]:
    """Of several spot checks of a judge by the same model and wording the last one counts, as in the figures."""
    last = {
        (item.judge, item.role, item.model_id if item.role != "primary" else None, item.prompt_sha256): place
        for place, item in enumerate(judgments)
    }
    return [judgments[place] for place in sorted(last.values())]
