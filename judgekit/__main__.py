"""The command line's front door: answers `--version` at once and imports the rest only when needed."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        from judgekit import __version__

        sys.stdout.write(f"judgekit {__version__}\n")
        return
    try:
        from judgekit.cli.app import run_app

        run_app()
    except KeyboardInterrupt:
        sys.exit(130)  # pressed while modules were loaded: there is nothing to say yet


if __name__ == "__main__":
    main()
