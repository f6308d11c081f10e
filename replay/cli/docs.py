"""docs/cli.md out of the commands themselves: `python -m replay.cli.docs` writes it, a test says when it is stale."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import get_args

import typer
from typer.models import ArgumentInfo, OptionInfo

from replay.cli.main import app

_HEAD = """# The commands

Made from the commands themselves by `python -m replay.cli.docs`; do not edit.

Data goes to stdout, everything else to stderr. Exit codes: 0 it ran; 1 the answer is bad (`diagnose --exit-code` with
a root cause, `rules check` with faults, `explain` of what is not known, a `check` that fails); 2 the command line or
an input is wrong, one line on stderr names it; 3 the logs cannot tell; 130 interrupted. Colour only on a terminal;
NO_COLOR and FORCE_COLOR are honoured. REPLAY_CACHE_DIR names the folder of the databases, REPLAY_DEBUG=1 shows where
an unexpected error came from.
"""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument or option: how it is written and what it means."""

    written: str
    meaning: str
    is_argument: bool


@dataclass(frozen=True, slots=True)
class Command:
    """One command: its full name, what it does, and its parameters."""

    name: str
    doc: str
    parameters: tuple[Parameter, ...]


def render() -> str:
    """Return the Markdown text that describes every command, argument and option."""
    parts = [_HEAD]
    for command in commands():
        arguments = [p.written for p in command.parameters if p.is_argument]
        parts.append(f"## {command.name}\n\n{command.doc}\n")
        parts.append(f"    {' '.join([command.name, *arguments, '[OPTIONS]'])}\n")
        if command.parameters:
            rows = [f"| `{p.written}` | {p.meaning} |" for p in command.parameters]
            parts.append("\n".join(["| parameter | meaning |", "|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def commands() -> Iterator[Command]:
    """Give every command of the tool."""
    yield from _commands("replay", app)


def _commands(prefix: str, group: typer.Typer) -> Iterator[Command]:
    for info in group.registered_commands:
        if info.callback is not None:
            name = info.name or info.callback.__name__.replace("_", "-")
            signature = inspect.signature(info.callback, eval_str=True)
            parameters = tuple(_parameter(p) for p in signature.parameters.values())
            yield Command(f"{prefix} {name}", _text(info.callback.__doc__), parameters)
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from _commands(f"{prefix} {inner.name}", inner.typer_instance)


def _parameter(parameter: inspect.Parameter) -> Parameter:
    """Raises ValueError for a parameter without an annotation that tells its meaning."""
    kind, *facts = get_args(parameter.annotation)
    for fact in facts:
        if isinstance(fact, ArgumentInfo):
            shown = fact.metavar or parameter.name.upper()
            optional = parameter.default is not parameter.empty and not shown.startswith("[")
            return Parameter(f"[{shown}]" if optional else shown, _meaning(fact, kind, parameter), is_argument=True)
        if isinstance(fact, OptionInfo):
            names = [n for n in (fact.default, *(fact.param_decls or ())) if isinstance(n, str)]
            shown = f" {fact.metavar}" if fact.metavar else ""
            return Parameter(", ".join(names) + shown, _meaning(fact, kind, parameter), is_argument=False)
    raise ValueError(f"the parameter {parameter.name} says nothing about itself")


def _meaning(fact: ArgumentInfo | OptionInfo, kind: object, parameter: inspect.Parameter) -> str:
    if not fact.help:
        raise ValueError(f"the parameter {parameter.name} has no help")
    words = _text(fact.help)
    if isinstance(kind, type) and issubclass(kind, Enum):
        words += f" One of {', '.join(str(c.value) for c in kind)}."
    if parameter.default not in (None, False, parameter.empty):
        words += f" Default: {getattr(parameter.default, 'value', parameter.default)}."
    return words


def _text(help_text: str | None) -> str:
    return " ".join((help_text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    place = Path(__file__).parent.parent.parent / "docs" / "cli.md"
    place.write_text(render())
