"""YAML 1.2 as plain values and the nodes that know their lines. ruamel.yaml is imported only here."""

from typing import Any

from judgekit.core.errors import ConfigError
from judgekit.storage.problems import Location

CONFIG_VALUES = 100_000
"""What a config may stand for at most."""
DATA_VALUES = 5_000_000
"""What a file of cases or outputs may stand for at most."""

_LETTERS_OF_A_VALUE = 1000


def parsed_yaml(text: str, where: str, most: int) -> tuple[Any, Any]:
    """The value that a text holds, and its node.

    A few lines with anchors can stand for billions of values, so they are counted before any is made.

    Args:
        text: YAML.
        where: names the file in messages.
        most: values that it may stand for.

    Raises:
        ConfigError: not YAML, or too many values.
        RecursionError: nested too deeply.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        node = YAML(pure=True).compose(text)
        if node is not None:
            _check_size(node, where, most)
        return YAML(typ="safe", pure=True).load(text), node
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{where}:{mark.line + 1}" if mark is not None else where
        raise ConfigError(f"{at}: not valid YAML: {error.problem or error.context}") from None
    except (YAMLError, ValueError) as error:
        raise ConfigError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None


def node_at(root: Any, location: Location) -> Any:
    """The node at a place, or its nearest parent that exists."""
    node = root
    for part in location:
        entries: dict[str | int, Any] = {}
        if node.id == "sequence":
            entries = dict(enumerate(node.value))
        elif node.id == "mapping":
            entries = {key.value: item for key, item in node.value if isinstance(key.value, str)}
        if part not in entries:
            break
        node = entries[part]
    return node


def line_of_node(node: Any) -> int:
    """The 1-based line on which a node starts."""
    return int(node.start_mark.line) + 1


def _check_size(root: Any, where: str, most: int) -> None:
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        key = id(node)
        if key in sizes:
            if not sizes[key]:  # still being counted
                raise ConfigError(f"{where}:{line_of_node(node)}: an anchor stands for something that holds itself")
            return sizes[key]
        sizes[key] = 0
        if node.id == "sequence":
            inner = sum(map(size, node.value))
        elif node.id == "mapping":
            inner = sum(size(name) + size(value) for name, value in node.value)
        else:
            inner = len(node.value) // _LETTERS_OF_A_VALUE
        sizes[key] = 1 + inner
        if sizes[key] > most:
            raise ConfigError(f"{where}:{line_of_node(node)}: anchors expand to more than {most} values")
        return sizes[key]

    size(root)
