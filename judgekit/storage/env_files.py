"""The `.env` beside a config: variables for keys, read each time and stored nowhere."""

from io import StringIO
from pathlib import Path

from judgekit.core.errors import ConfigError

NAME = ".env"


def read_env(folder: Path) -> dict[str, str]:
    """The variables of the `.env` in a folder; none if there is no such file.

    Lines are as python-dotenv reads them: `NAME=value`, `export NAME="value"`, comments after `#`, `${OTHER}`.

    Raises:
        ConfigError: it cannot be read; a line that cannot be is named by its number, and its text never shown.
    """
    path = folder / NAME
    if not path.is_file():  # a virtual environment may have this name
        return {}
    from dotenv.main import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8; save it as UTF-8") from None
    for binding in parse_stream(StringIO(text)):
        if binding.error or (binding.key is not None and binding.value is None):
            raise ConfigError(f"{path}:{binding.original.line}: expected NAME=value")
    return {name: value for name, value in dotenv_values(stream=StringIO(text)).items() if value is not None}
