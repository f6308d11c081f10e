"""YAML files that know where each of their values stands, so that an error can say file, line and column.

PyYAML's C loader composes the nodes; values are built from them here, with YAML 1.2's idea of a boolean (`no` and `on`
are words), and a key that is written twice is an error.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from replay.errors import ReplayError

Place = Sequence[int | str]
"""The way to a value: keys and positions from the top of the file."""

Model = TypeVar("Model", bound=BaseModel)


class RuleError(ReplayError):
    """A rule, taxonomy or knowledge file is wrong; the text begins with file:line:column."""


class _Loader(yaml.CSafeLoader):
    """The C loader with few implicit types."""


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), list("tf"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:null|~|)\Z"), ["n", "~", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"[-+]?[0-9]+\Z"), list("-+0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z|[-+]?[0-9]+[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)

_BUILD: dict[str, Callable[[str], Any]] = {
    "bool": lambda text: text == "true",
    "null": lambda _: None,
    "int": int,
    "float": float,
}


@dataclass(frozen=True, slots=True)
class YamlFile:
    """One file: its value, and the nodes that say where its parts stand."""

    path: Path
    value: Any
    node: yaml.Node | None

    @classmethod
    def read(cls, path: Path) -> "YamlFile":
        """Read the file.

        Raises RuleError if it is not YAML, or has a key twice.
        """
        try:
            node = yaml.compose(path.read_text(encoding="utf8"), _Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            raise RuleError(f"{path}{where}: {error.problem or error.context}") from None
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise RuleError(f"{path}: {error}") from None
        return cls(path, _value(path, node) if node else None, node)

    def items(self) -> list[Any]:
        """Return the value, which must be a list.

        Raises RuleError if it is not.
        """
        if not isinstance(self.value, list):
            raise self.error((), "a list is expected here")
        return self.value

    def model(self, model: type[Model], value: object, place: Place = ()) -> Model:
        """Return the value as a checked model.

        Raises RuleError, at the place of the first fault, if it is none.
        """
        try:
            return model.model_validate(value)
        except ValidationError as error:
            fault = max(error.errors(), key=lambda e: (e["type"] == "extra_forbidden", len(e["loc"])))
            message = _message(fault["type"], fault["loc"], fault["msg"])
            raise self.error((*place, *fault["loc"]), message, at_key=fault["type"] == "extra_forbidden") from None

    def error(self, place: Place, message: str, offset: int = 0, *, at_key: bool = False) -> RuleError:
        """Return the error at the value that `place` leads to (or at its key), `offset` characters into its text."""
        line, column = self.position(place, offset, at_key=at_key)
        return RuleError(f"{self.path}:{line}:{column}: {message}")

    def position(self, place: Place, offset: int = 0, *, at_key: bool = False) -> tuple[int, int]:
        """Return line and column, from 1, of the nearest value on the way that `place` describes.

        What pydantic adds to a place (names of variants) leads nowhere and is passed over.
        """
        if self.node is None:
            return 1, 1
        node = key = self.node
        for part in place:
            key, node = _child(node, part) or (key, node)
        node = key if at_key else node
        mark = node.start_mark
        line, column = mark.line + 1, mark.column + 1
        if offset and isinstance(node, yaml.ScalarNode) and node.end_mark.line == mark.line:
            column += offset + (node.style in ("'", '"'))
        return line, column


def _child(node: yaml.Node, part: int | str) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the nodes of a key (or list item) and of its value, None where there is no such part."""
    if isinstance(node, yaml.MappingNode):
        return next(((key, value) for key, value in node.value if key.value == str(part)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _value(path: Path, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = key_node.value
            if key in found:
                mark = key_node.start_mark
                raise RuleError(f"{path}:{mark.line + 1}:{mark.column + 1}: {key} is given twice")
            found[key] = _value(path, value_node)
        return found
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, item) for item in node.value]
    build = _BUILD.get(node.tag.rpartition(":")[2])
    return build(node.value) if build else node.value


def _message(kind: str, place: Place, message: str) -> str:
    name = place[-1] if place else ""
    if kind == "extra_forbidden":
        return f"unknown field {name}"
    if kind == "missing":
        return f"field {name} is missing"
    message = message.removeprefix("Value error, ")
    return f"{name}: {message[0].lower()}{message[1:]}" if isinstance(name, str) and name else message
