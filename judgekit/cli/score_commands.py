"""Commands that calculate and ask no judge: score, rescore."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from judgekit.cli.commands import RUN, FromDir, Shared, app, command, print_json, say, say_notices

if TYPE_CHECKING:
    from judgekit.core.data_files import DataFile

SCORE_EPILOG = """\b
Examples:
  judgekit score --cases qrels.txt --outputs bm25.run
  judgekit score --cases qrels.txt --outputs bm25.run --ties trec_eval --ks 5,10,100
  judgekit score --cases cases.jsonl --outputs outputs.jsonl --per-case scores.csv
  judgekit score --cases cases.jsonl --outputs outputs.jsonl --json | jq .figures

\b
Exit codes: 0 done, 2 files or options to correct, 4 storage, 130 interrupted.
"""

RESCORE_EPILOG = """\b
Examples:
  judgekit rescore demo-20260131-142501-3f9a
  judgekit rescore latest latest:baseline
  judgekit rescore --all
"""


@command(app, "score", panel=RUN, results_dir=False, json=True, epilog=SCORE_EPILOG)
def score_command(
    shared: Shared,
    cases: Annotated[Path, Option("--cases", help="Cases, such as relevance judgements.", show_default=False)],
    outputs: Annotated[Path, Option("--outputs", help="Outputs, such as a TREC run.", show_default=False)],
    ks: Annotated[str, Option("--ks", help="Cut-offs, separated by commas.")] = "1,3,5,10",
    mrr_ks: Annotated[str, Option("--mrr-ks", help="Cut-offs of further `mrr@k` figures.")] = "",
    ties: Annotated[str | None, Option("--ties", help="given or trec_eval, for TREC runs.")] = None,
    format_: Annotated[str | None, Option("--format", help="Format of the outputs; left out: found out.")] = None,
    cases_format: Annotated[str | None, Option("--cases-format", help="Format of the cases.")] = None,
    field: Annotated[list[str] | None, Option("--field", help="OURS=THEIRS in the outputs; may be repeated.")] = None,
    cases_field: Annotated[list[str] | None, Option("--cases-field", help="OURS=THEIRS in the cases.")] = None,
    errors: Annotated[str, Option("--errors", help="Failed outputs: exclude, or as_zero.")] = "exclude",
    per_case: Annotated[
        Path | None, Option("--per-case", help="Write the scores of each case: .csv, .jsonl or .parquet.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a file that exists.")] = False,
) -> None:
    """Score ranked files at once: no config, no judge, no run. Retrieval figures of outputs against cases."""
    from judgekit.analysis.stored_figures import rounded
    from judgekit.core.errors import ConfigError
    from judgekit.reports.run_text import score_text
    from judgekit.storage.table_files import check_target, write_columns
    from judgekit.workflows.score import Cutoffs, score

    if errors not in ("exclude", "as_zero"):
        raise ConfigError(f"--errors {errors!r}: expected exclude or as_zero")
    if per_case is not None:
        check_target(per_case, replace=force)
    scores = score(
        _file(cases, cases_format, cases_field, None, "cases-"),
        _file(outputs, format_, field, ties, ""),
        Cutoffs(_numbers(ks, "--ks"), _numbers(mrr_ks, "--mrr-ks")),
        policy="as_zero" if errors == "as_zero" else "exclude",
    )
    if per_case is not None:
        write_columns(scores.columns, per_case)
    say_notices(scores.warnings)
    figures: dict[str, Any] = {name: rounded(figure.model_dump()) for name, figure in scores.estimates.items()}
    counted = {name: counts for name, counts in scores.distributions.items() if counts}
    warnings = [{"code": code, "message": message} for code, message in scores.warnings]
    shared.show(
        {"figures": figures | counted, "files": scores.files, "warnings": warnings},
        lambda: score_text({**scores.estimates, **counted}, scores.files),
    )


@command(app, "rescore", panel=RUN, json=True, epilog=RESCORE_EPILOG)
def rescore_command(
    shared: Shared,
    runs: Annotated[
        list[str] | None, Argument(help="Run ids or their beginnings, folders, `latest`, `latest:TAG`.")
    ] = None,
    all_runs: Annotated[bool, Option("--all", help="Every run of the folder of runs.")] = False,
    from_dir: FromDir = None,
) -> None:
    """Calculate the scores and figures of stored runs again. From their folders alone; stored verdicts are kept."""
    from judgekit.core.errors import ConfigError, JudgekitError
    from judgekit.reports.run_text import rescored_text
    from judgekit.workflows.rescore import rescore
    from judgekit.workflows.stored_runs import all_runs_of

    options = shared.options(from_dir=from_dir)
    if bool(runs) == all_runs:
        raise ConfigError("name runs, such as `judgekit rescore latest`, or say --all, and not both")
    results, errors = [], []
    for run in all_runs_of(options) if all_runs else runs or []:
        try:
            result = rescore(run, options)
        except JudgekitError as error:
            if not all_runs:
                raise
            errors.append(error)
            say(f"skipped: {error}")
            continue
        results.append(result)
        if not shared.as_json:
            typer.echo(rescored_text(result))
    if shared.as_json:
        print_json(results)
    if errors:
        raise typer.Exit(max(error.exit_code for error in errors))
    if any(result["fails"] for result in results):
        raise typer.Exit(1)


def field_mapping(given: list[str]) -> dict[str, str]:
    """A field mapping from its options, each `OURS=THEIRS`.

    Raises:
        ConfigError: one that is not of this form.
    """
    from judgekit.core.errors import ConfigError

    fields = {}
    for entry in given:
        ours, equals, theirs = entry.partition("=")
        if not equals or not ours or not theirs:
            raise ConfigError(f"--field {entry!r}: expected OURS=THEIRS, such as id=qid")
        fields[ours] = theirs
    return fields


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
