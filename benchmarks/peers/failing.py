"""One tool's judge of docs/peers.md over a few answers; prints what became of each, and what the summary says.

Run by the tool's own interpreter, in a folder that holds the block of the page as `judge.py`.
"""

import contextlib
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

QUESTION = "Where is my order?"


def deepeval(answers: Sequence[str], lenient: bool) -> dict[str, Any]:
    """`evaluate()`, with errors raised as by default, or counted."""
    from deepeval import evaluate  # type: ignore[import-not-found]
    from deepeval.evaluate import ErrorConfig  # type: ignore[import-not-found]
    from deepeval.test_case import LLMTestCase  # type: ignore[import-not-found]
    from judge import tone  # type: ignore[import-not-found]

    cases = [LLMTestCase(name=answer, input=QUESTION, actual_output=answer) for answer in answers]
    result = evaluate(cases, [tone], error_config=ErrorConfig(ignore_errors=lenient))
    found = {case.name: case.metrics_data[0] for case in result.test_results}
    return {
        "cases": [[found[answer].score, found[answer].success, found[answer].error] for answer in answers],
        "summary": f"pass rate {sum(case.success for case in result.test_results) / len(answers):.2f}",
    }


def mlflow(answers: Sequence[str], lenient: bool) -> dict[str, Any]:  # noqa: ARG001 - one way only
    """`mlflow.genai.evaluate`."""
    import mlflow  # type: ignore[import-not-found]
    from judge import tone

    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    data = [{"inputs": {"question": QUESTION}, "outputs": answer} for answer in answers]
    result = mlflow.genai.evaluate(data=data, scorers=[tone])
    found = {}
    for row in result.result_df.to_dict("records"):
        [feedback] = [item["feedback"] for item in row["assessments"]]
        found[str(row["response"])] = [feedback.get("value"), None, (feedback.get("error") or {}).get("error_message")]
    return {
        "cases": [next(value for text, value in found.items() if answer in text) for answer in answers],
        "summary": str({name: float(value) for name, value in result.metrics.items()}),
    }


def inspect(answers: Sequence[str], lenient: bool) -> dict[str, Any]:
    """`eval()` of recorded answers; lenient: two retries, and a failed sample does not fail the whole."""
    from inspect_ai import Task, eval  # type: ignore[import-not-found]
    from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
    from inspect_ai.model import ModelOutput  # type: ignore[import-not-found]
    from inspect_ai.solver import solver  # type: ignore[import-not-found]
    from judge import tone

    @solver  # type: ignore[untyped-decorator]
    def recorded() -> Any:
        async def solve(state: Any, generate: Any) -> Any:  # noqa: ARG001 - the port's signature
            state.output = ModelOutput.from_content("recorded", state.metadata["answer"])
            return state

        return solve

    samples = [Sample(input=QUESTION, target="polite", metadata={"answer": answer}) for answer in answers]
    task = Task(dataset=samples, solver=recorded(), scorer=tone)
    kept = {"fail_on_error": False} if lenient else {}
    [log] = eval(task, model="mockllm/model", display="none", max_retries=2, timeout=40, **kept)
    cases = []
    for sample in log.samples or []:
        score = next(iter((sample.scores or {}).values()), None)
        error = sample.error.message if sample.error else score.reason if score else None
        cases.append([str(score.value) if score else None, None, error])
    scored = log.results.scores[0] if log.results else None
    figure = f"accuracy {scored.metrics['accuracy'].value}, unscored {scored.unscored_samples}" if scored else "none"
    return {"cases": cases, "summary": f"{log.status}: {figure}"}


TOOLS: dict[str, Callable[[Sequence[str], bool], dict[str, Any]]] = {
    "deepeval": deepeval,
    "mlflow": mlflow,
    "inspect": inspect,
}

if __name__ == "__main__":
    sys.path.insert(0, ".")
    tool, how, *given = sys.argv[1:]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            outcome = TOOLS[tool](given, how == "lenient")
        except Exception as error:  # noqa: BLE001  # what it does with a failure is what is asked
            outcome = {"cases": [], "summary": f"raised {type(error).__name__}: {str(error)[:120]}"}
    print(json.dumps(outcome))
