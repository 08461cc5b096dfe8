"""The command line's front door: answers `--version` at once and imports the rest only when needed."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from judgekit import __version__

        sys.stdout.write(f"judgekit {__version__}\n")
        return
    from judgekit.cli.app import run_app

    run_app()


if __name__ == "__main__":
    main()
