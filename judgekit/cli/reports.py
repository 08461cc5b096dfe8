"""Commands that show stored runs: report, view."""

from pathlib import Path
from typing import Annotated

import typer

from judgekit.cli.outcome import reported, say

Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks.")]
ResultsDir = Annotated[Path | None, typer.Option("--results-dir", help="Folder of runs; default: results.")]

DEFAULT_PORT = 8321


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    app.command(
        "report",
        epilog="\b\nExamples:\n  judgekit report results/demo-20260131-142501-3f9a\n"
        "  judgekit report demo-20260131-142501-3f9a --format csv --out scores.csv",
    )(report_command)
    app.command("view", epilog="\b\nExample:\n  judgekit view")(view_command)


def report_command(
    run: Annotated[
        str, typer.Argument(help="Run id or its beginning, folder, `latest`, or `latest:TAG`.", show_default=False)
    ],
    format_: Annotated[str, typer.Option("--format", help="html, md, csv, parquet or junit.")] = "html",
    out: Annotated[Path | None, typer.Option("--out", help="File to write; default: in the run folder.")] = None,
    results_dir: ResultsDir = None,
    debug: Debug = False,
) -> None:
    """Write a report of a stored run anew: a page, a summary, scores as a table, or gates as JUnit XML."""
    from judgekit.workflows.models import Options
    from judgekit.workflows.reporting import write_report
    from judgekit.workflows.selectors import find_run

    with reported(debug=debug):
        folder = find_run(run, None, Options(results_dir=results_dir))
        typer.echo(str(write_report(folder, format_, out)))


def view_command(
    run: Annotated[str | None, typer.Argument(help="Run id or folder to open first.", show_default=False)] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes a free one.")] = DEFAULT_PORT,
    results_dir: ResultsDir = None,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not start a browser.")] = False,
    debug: Debug = False,
) -> None:
    """Show the runs of a folder in a browser, on this machine only and without changing anything."""
    import webbrowser

    from judgekit.core.errors import ConfigError
    from judgekit.storage.run_folder import RunFolder
    from judgekit.workflows.models import Options
    from judgekit.workflows.selectors import find_run
    from judgekit.workflows.viewer import open_server

    with reported(debug=debug):
        folder, page = results_dir or Path("results"), "/"
        if run is not None:
            path = RunFolder.open(find_run(run, None, Options(results_dir=results_dir))).path.resolve()
            folder, page = path.parent, f"/runs/{path.name}/"
        if not folder.is_dir():
            raise ConfigError(f"{folder}: no such folder; judgekit quickstart makes a first run, or name --results-dir")
        with open_server(folder, port) as server:
            address = f"http://127.0.0.1:{server.server_address[1]}{page}"
            try:
                typer.echo(address)
                say("press Ctrl-C to stop")
                if not no_open:
                    webbrowser.open(address)
                server.serve_forever(poll_interval=0.2)
            except KeyboardInterrupt:
                say("stopped")
