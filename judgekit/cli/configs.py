"""Commands around configs: init, validate, schema, pin."""

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.outcome import print_json, reported, say

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    examples = (
        "\b\nExamples:\n  judgekit init my-suite && judgekit run my-suite/config.json\n"
        "  judgekit init my-suite --from answers.csv && judgekit run my-suite/config.json"
    )
    app.command("init", epilog=examples)(init_command)
    app.command("validate", epilog="\b\nExample:\n  judgekit validate config.json")(validate_command)
    app.command("schema", epilog="\b\nExample:\n  judgekit schema > config.schema.json")(schema_command)
    app.command("pin", epilog="\b\nExample:\n  judgekit pin config.json")(pin_command)


def init_command(
    folder: Annotated[Path, typer.Argument(help="Folder to write to.")] = Path("judgekit-suite"),
    format_: Annotated[str, typer.Option("--format", help="json, yaml or toml.")] = "json",
    from_: Annotated[
        Path | None,
        typer.Option("--from", help="Look at this data file, say what each column is taken for, and use it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a config that exists; data files stay.")] = False,
    debug: Debug = False,
) -> None:
    """Write a commented config, ready to run: with a few example cases and outputs, or for your own data file."""
    from judgekit.reports.run_text import columns_text
    from judgekit.storage.first_look import look_at
    from judgekit.storage.starter import write_config_for, write_starter

    with reported(debug=debug):
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


def validate_command(
    config: Annotated[str, typer.Argument(help="Config file, or `quickstart`.")],
    debug: Debug = False,
) -> None:
    """Check config, cases, outputs, prompts and pins without a call."""
    from judgekit.executors.local import run_local
    from judgekit.workflows.dry_run import dry_run
    from judgekit.workflows.models import Options
    from judgekit.workflows.selectors import config_path_of
    from judgekit.workflows.setup import set_up

    with reported(debug=debug):
        options = Options(use_cache=False)
        setup = set_up(config_path_of(config), options)
        found = run_local(lambda: dry_run(setup, options))
        for code, message in found["warnings"]:
            say(f"warning: {message} [{code}]")
        judged = ", ".join(f"{name} {record['n_inputs']}" for name, record in found["judges"].items()) or "none"
        typer.echo(
            f"{config}: ok; {len(setup.cases)} cases, {len(setup.metrics)} metric families, judge inputs: {judged}"
        )


def schema_command() -> None:
    """Print the JSON Schema of configs; name it in `$schema` and editors complete keys."""
    from judgekit.storage.starter import config_schema

    typer.echo(config_schema(), nl=False)


def pin_command(
    config: Annotated[str, typer.Argument(help="Config file.")],
    model: Annotated[str | None, typer.Option("--model", help="Ask for this model only (key in `models`).")] = None,
    debug: Debug = False,
) -> None:
    """Ask the servers what they have loaded and print what to put under `pin`."""
    from judgekit.executors.local import run_local
    from judgekit.workflows.pin import find_pins
    from judgekit.workflows.selectors import config_path_of

    with reported(debug=debug):
        pins = run_local(lambda: find_pins(config_path_of(config), model))
        print_json(pins, indent=2)
