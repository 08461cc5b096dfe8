"""Commands to begin with: quickstart, init, validate, schema, pin, doctor, convert."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from judgekit.cli.commands import START, Shared, app, command, print_json, say, say_notices
from judgekit.cli.judge import run_command
from judgekit.cli.score_commands import field_mapping

INIT_EPILOG = """\b
Examples:
  judgekit init my-suite && judgekit run my-suite/config.json
  judgekit init my-suite --from answers.csv && judgekit run my-suite/config.json
"""

CONVERT_EPILOG = """\b
Example:
  judgekit convert squad.json cases.jsonl
  judgekit convert results.run outputs.jsonl --kind outputs --ties trec_eval
"""


class KindChoice(StrEnum):
    """What `convert` writes."""

    CASES = "cases"
    OUTPUTS = "outputs"
    BOTH = "both"


@command(
    app, "quickstart", panel=START, json=True, quiet=True, stats=True, epilog="The same as `judgekit run quickstart`."
)
def quickstart_command(shared: Shared) -> None:
    """Run the shipped example: offline, no key, a few seconds."""
    run_command(shared, "quickstart")


@command(app, "init", panel=START, results_dir=False, epilog=INIT_EPILOG)
def init_command(
    _: Shared,
    folder: Annotated[Path, Argument(help="Folder to write to.")] = Path("judgekit-suite"),
    format_: Annotated[str, Option("--format", help="json, yaml or toml.")] = "json",
    from_: Annotated[
        Path | None, Option("--from", help="Look at this data file, say what each column is taken for, and use it.")
    ] = None,
    force: Annotated[bool, Option("--force", help="Replace a config that exists; data files stay.")] = False,
) -> None:
    """Write a commented config, ready to run.

    It comes with a few example cases and outputs, or is for your own data file.
    """
    from judgekit.reports.run_text import columns_text
    from judgekit.storage.first_look import look_at
    from judgekit.storage.starter import write_config_for, write_starter

    if from_ is None:
        written = write_starter(folder, format_, replace=force)
    else:
        look = look_at(from_)
        columns = [(column.name, column.taken_for, column.example) for column in look.columns]
        typer.echo(columns_text(f"{from_}: {look.form}, first {look.n_rows} rows", columns, look.notes))
        written = write_config_for(look, folder, format_, replace=force)
    for path in written:
        say(f"wrote {path}")
    suffix = {"yaml": "yaml", "toml": "toml"}.get(format_, "json")
    typer.echo(f"next: judgekit run {folder / f'config.{suffix}'}")


@command(app, "validate", panel=START, results_dir=False, epilog="\b\nExample:\n  judgekit validate config.json")
def validate_command(shared: Shared, config: Annotated[str, Argument(help="Config file, or `quickstart`.")]) -> None:
    """Check config, cases, outputs, prompts and pins without a call."""
    from judgekit.executors.event_loop import run_local
    from judgekit.workflows.dry_run import dry_run
    from judgekit.workflows.selectors import config_path_of
    from judgekit.workflows.setup import set_up

    options = shared.options(use_cache=False)
    setup = set_up(config_path_of(config), options)
    found = run_local(lambda: dry_run(setup, options))
    say_notices(found["warnings"])
    judged = ", ".join(f"{name} {record['n_inputs']}" for name, record in found["judges"].items()) or "none"
    typer.echo(f"{config}: ok; {len(setup.cases)} cases, {len(setup.metrics)} metric families, judge inputs: {judged}")


@command(app, "schema", panel=START, results_dir=False, epilog="\b\nExample:\n  judgekit schema > config.schema.json")
def schema_command(_: Shared) -> None:
    """Print the JSON Schema of configs. Name it in `$schema` and editors complete keys."""
    from judgekit.storage.starter import config_schema

    typer.echo(config_schema(), nl=False)


@command(app, "pin", panel=START, results_dir=False, epilog="\b\nExample:\n  judgekit pin config.json")
def pin_command(
    _: Shared,
    config: Annotated[str, Argument(help="Config file.")],
    model: Annotated[str | None, Option("--model", help="Ask for this model only (key in `models`).")] = None,
) -> None:
    """Ask the servers what they have loaded, to put under `pin`."""
    from judgekit.executors.event_loop import run_local
    from judgekit.workflows.pin import find_pins
    from judgekit.workflows.selectors import config_path_of

    pins = run_local(lambda: find_pins(config_path_of(config), model))
    print_json(pins, indent=2)


DOCTOR_EPILOG = """\b
Examples:
  judgekit doctor config.json
  judgekit doctor config.json --json | jq .models.judge.asked.same_bytes

\b
Each model over a network is asked eight short questions, beside what it takes to find out what it is; the budget of
the config holds. Exit codes: 0 ready, 2 something to correct, 3 a model cannot be reached or refuses.
"""


@command(app, "doctor", panel=START, results_dir=False, json=True, epilog=DOCTOR_EPILOG)
def doctor_command(shared: Shared, config: Annotated[str, Argument(help="Config file, or `quickstart`.")]) -> None:
    """Ask each model what it is, and the same question five times.

    Says too which metrics and judges lack a field.
    """
    from judgekit.executors.event_loop import run_local
    from judgekit.reports.doctor_text import doctor_text
    from judgekit.workflows.doctor import examine
    from judgekit.workflows.selectors import config_path_of

    options = shared.options(use_cache=False)
    found = run_local(lambda: examine(config_path_of(config), options))
    shared.show(found, lambda: doctor_text(found))
    if found["exit_code"]:
        raise typer.Exit(found["exit_code"])


@command(app, "convert", panel=START, results_dir=False, epilog=CONVERT_EPILOG)
def convert_command(
    _: Shared,
    source: Annotated[Path, Argument(help="File or folder to read.", show_default=False)],
    target: Annotated[Path, Argument(help="File to write: .jsonl, .json or .csv; a folder for both kinds.")],
    format_: Annotated[str | None, Option("--format", help="Format of the source; left out: found out.")] = None,
    kind: Annotated[KindChoice, Option("--kind", help="What is written.")] = KindChoice.CASES,
    field: Annotated[
        list[str] | None, Option("--field", help="OURS=THEIRS, as in `fields` of a config; may be repeated.")
    ] = None,
    part: Annotated[str | None, Option("--part", help="Split or system of a source that holds several.")] = None,
    ties: Annotated[str | None, Option("--ties", help="given or trec_eval, for TREC runs.")] = None,
    list_separator: Annotated[str | None, Option("--list-separator", help="Between items of a CSV cell.")] = None,
    separator: Annotated[
        str | None, Option("--separator", help="Between cells of a CSV file; left out: found by the header.")
    ] = None,
    records: Annotated[
        str | None, Option("--records", help="What holds the records of a JSON or YAML document.")
    ] = None,
    encoding: Annotated[str | None, Option("--encoding", help="Left out: UTF-8.")] = None,
    force: Annotated[bool, Option("--force", help="Replace files that exist.")] = False,
) -> None:
    """Convert cases or outputs of any known format.

    They are written as JSONL, JSON or CSV with judgekit's field names.
    """
    from pydantic import ValidationError

    from judgekit.core.data_files import DataFile
    from judgekit.core.errors import ConfigError, first_problem
    from judgekit.storage.converting import convert
    from judgekit.storage.remote_files import local_data

    options = {"format": format_, "part": part, "ties": ties, "encoding": encoding, "separator": separator}
    mapping = field_mapping(field or [])
    try:
        file = DataFile(path=str(source), fields=mapping, list_separator=list_separator, records=records)
        file = DataFile.model_validate({**file.model_dump(), **options})
    except ValidationError as error:
        option, _colon, problem = first_problem(error).removeprefix("$.").partition(":")
        raise ConfigError(f"--{option.replace('_', '-')}:{problem}") from None
    notices: list[tuple[str, str]] = []
    written = convert(file, local_data(Path(), str(source)), target, kind.value, notices, replace=force)
    say_notices(dict.fromkeys(notices))
    for one in written:
        typer.echo(f"{one.path}: {one.n_records} {one.kind}")
        if one.n_formula_cells:
            say(
                f"note: {one.n_formula_cells} cells begin with =, +, -, @ or a tab and are kept as they are; "
                "a spreadsheet program may run them as formulas, so import columns as text"
            )
