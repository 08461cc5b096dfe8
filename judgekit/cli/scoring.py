"""Commands that score without a run: score."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from judgekit.cli.data import field_mapping
from judgekit.cli.outcome import print_json, reported, say

if TYPE_CHECKING:
    from judgekit.core.data_files import DataFile
    from judgekit.workflows.score import RankingScores

EPILOG = """\b
Examples:
  judgekit score --cases qrels.txt --outputs bm25.run
  judgekit score --cases qrels.txt --outputs bm25.run --ties trec_eval --ks 5,10,100
  judgekit score --cases cases.jsonl --outputs outputs.jsonl --per-case scores.csv
  judgekit score --cases cases.jsonl --outputs outputs.jsonl --json | jq .figures

\b
Exit codes: 0 done, 2 files or options to mend, 4 storage, 130 interrupted.
"""


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command("score", epilog=EPILOG)(score_command)


def score_command(
    cases: Annotated[Path, typer.Option("--cases", help="Cases, such as relevance judgements.", show_default=False)],
    outputs: Annotated[Path, typer.Option("--outputs", help="Outputs, such as a TREC run.", show_default=False)],
    ks: Annotated[str, typer.Option("--ks", help="Cut-offs, separated by commas.")] = "1,3,5,10",
    mrr_ks: Annotated[str, typer.Option("--mrr-ks", help="Cut-offs of further `mrr@k` figures.")] = "",
    ties: Annotated[str | None, typer.Option("--ties", help="given or trec_eval, for TREC runs.")] = None,
    format_: Annotated[str | None, typer.Option("--format", help="Format of the outputs; left out: found out.")] = None,
    cases_format: Annotated[str | None, typer.Option("--cases-format", help="Format of the cases.")] = None,
    field: Annotated[
        list[str] | None, typer.Option("--field", help="OURS=THEIRS in the outputs; may be repeated.")
    ] = None,
    cases_field: Annotated[list[str] | None, typer.Option("--cases-field", help="OURS=THEIRS in the cases.")] = None,
    errors: Annotated[str, typer.Option("--errors", help="Failed outputs: exclude, or as_zero.")] = "exclude",
    per_case: Annotated[
        Path | None, typer.Option("--per-case", help="Write the scores of each case: .csv, .jsonl or .parquet.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Retrieval figures of outputs against cases, at once: no config, no judge, no run folder."""
    from judgekit.core.errors import ConfigError
    from judgekit.workflows.score import score
    from judgekit.workflows.score_inputs import Cutoffs, check_target, open_score, write_columns

    with reported(debug=debug):
        if errors not in ("exclude", "as_zero"):
            raise ConfigError(f"--errors {errors!r}: expected exclude or as_zero")
        if per_case is not None:
            check_target(per_case, replace=force)
        job = open_score(
            _file(cases, cases_format, cases_field, None, "cases-"),
            _file(outputs, format_, field, ties, ""),
            Cutoffs(_numbers(ks, "--ks"), _numbers(mrr_ks, "--mrr-ks")),
            policy="as_zero" if errors == "as_zero" else "exclude",
        )
        scores = score(job)
        if per_case is not None:
            write_columns(scores.columns, per_case)
        _print(scores, as_json=as_json)


def _file(path: Path, form: str | None, fields: list[str] | None, ties: str | None, prefix: str) -> "DataFile":
    from pydantic import ValidationError

    from judgekit.core.data_files import DataFile
    from judgekit.core.errors import ConfigError, first_problem

    try:
        return DataFile.model_validate(
            {"path": str(path), "format": form, "fields": field_mapping(fields or []), "ties": ties}
        )
    except ValidationError as error:
        option, _, problem = first_problem(error).removeprefix("$.").partition(":")
        raise ConfigError(f"--{prefix}{option}:{problem}") from None


def _numbers(text: str, option: str) -> tuple[int, ...]:
    from judgekit.core.errors import ConfigError

    try:
        return tuple([int(part) for part in text.split(",")] if text.strip() else ())
    except ValueError:
        raise ConfigError(f"{option} {text!r}: expected whole numbers separated by commas, such as 1,5,10") from None


def _print(scores: "RankingScores", *, as_json: bool) -> None:

    from judgekit.analysis.stored_figures import rounded
    from judgekit.reports.run_text import score_text

    for code, message in scores.warnings:
        say(f"warning: {message} [{code}]")
    if not as_json:
        typer.echo(score_text(scores.estimates, scores.files))
        return
    figures: dict[str, Any] = {name: rounded(figure.model_dump()) for name, figure in scores.estimates.items()}
    warnings = [{"code": code, "message": message} for code, message in scores.warnings]
    document = {"figures": figures, "files": scores.files, "warnings": warnings}
    print_json(document)
