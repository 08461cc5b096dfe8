"""Serving pages on this machine until Ctrl-C."""

from http.server import ThreadingHTTPServer

import typer

from judgekit.cli.commands import say


def serve(server: ThreadingHTTPServer, page: str, *, browser: bool) -> None:
    """Say where the page is, open it if wanted, and answer until Ctrl-C.

    Args:
        server: ready to serve.
        page: path and query of the page.
        browser: start one.
    """
    import webbrowser

    address = f"http://127.0.0.1:{server.server_address[1]}{page}"
    try:
        typer.echo(address)
        say("press Ctrl-C to stop")
        if browser:
            webbrowser.open(address)
        server.serve_forever(poll_interval=0.2)
    except KeyboardInterrupt:
        say("stopped")
