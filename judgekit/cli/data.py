"""Commands around data files: convert."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.outcome import reported, say


class KindChoice(StrEnum):
    """What is written."""

    CASES = "cases"
    OUTPUTS = "outputs"
    BOTH = "both"


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(
        "convert",
        epilog="\b\nExample:\n  judgekit convert squad.json cases.jsonl\n"
        "  judgekit convert results.run outputs.jsonl --kind outputs --ties trec_eval",
    )(convert_command)


def convert_command(
    source: Annotated[Path, typer.Argument(help="File or folder to read.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="File to write: .jsonl, .json or .csv; a folder for both kinds.")],
    format_: Annotated[str | None, typer.Option("--format", help="Format of the source; left out: found out.")] = None,
    kind: Annotated[KindChoice, typer.Option("--kind", help="What is written.")] = KindChoice.CASES,
    field: Annotated[
        list[str] | None, typer.Option("--field", help="OURS=THEIRS, as in `fields` of a config; may be repeated.")
    ] = None,
    part: Annotated[str | None, typer.Option("--part", help="Split or system of a source that holds several.")] = None,
    ties: Annotated[str | None, typer.Option("--ties", help="given or trec_eval, for TREC runs.")] = None,
    list_separator: Annotated[str | None, typer.Option("--list-separator", help="Between items of a CSV cell.")] = None,
    separator: Annotated[
        str | None, typer.Option("--separator", help="Between cells of a CSV file; left out: found by the header.")
    ] = None,
    records: Annotated[
        str | None, typer.Option("--records", help="What holds the records of a JSON or YAML document.")
    ] = None,
    encoding: Annotated[str | None, typer.Option("--encoding", help="Left out: UTF-8.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that exist.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Write cases or outputs of any known format as JSONL, JSON or CSV with judgekit's field names."""
    from pydantic import ValidationError

    from judgekit.core.data_files import DataFile
    from judgekit.core.errors import ConfigError, first_problem
    from judgekit.storage.converting import convert

    with reported(debug=debug):
        options = {"format": format_, "part": part, "ties": ties, "encoding": encoding, "separator": separator}
        mapping = field_mapping(field or [])
        try:
            file = DataFile(path=str(source), fields=mapping, list_separator=list_separator, records=records)
            file = DataFile.model_validate({**file.model_dump(), **options})
        except ValidationError as error:
            option, _, problem = first_problem(error).removeprefix("$.").partition(":")
            raise ConfigError(f"--{option.replace('_', '-')}:{problem}") from None
        notices: list[tuple[str, str]] = []
        written = convert(file, source, target, kind.value, notices, replace=force)
        for code, message in dict.fromkeys(notices):
            say(f"warning: {message} [{code}]")
        for one in written:
            typer.echo(f"{one.path}: {one.n_records} {one.kind}")
            if one.n_formula_cells:
                say(
                    f"note: {one.n_formula_cells} cells begin with =, +, -, @ or a tab and are kept as they are; "
                    "a spreadsheet program may run them as formulas, so import columns as text"
                )


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
