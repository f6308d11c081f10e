"""`replay cache`: the databases of runs that were read before."""

import json
import shutil
import time
from pathlib import Path
from typing import Annotated

import typer

from replay.cli import screen
from replay.errors import InputError, UsageError

app = typer.Typer(help="The databases of runs that were read before.", invoke_without_command=True)

_Logs = Annotated[list[str] | None, typer.Argument(metavar="[LOGS]...", help="Logs, as they were named before.")]


@app.callback()
def options(context: typer.Context) -> None:
    """Show the help where no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("ls")
def list_databases() -> None:
    """List the databases: which logs each is of, how large it is, when it was made."""
    from replay.report.wording import duration, size, visible

    rows = [["database", "size", "age", "logs"]]
    for path in _databases():
        facts = path.stat()
        logs = " ".join(_logs_of(path)) or "of another version"
        rows.append([path.name, size(facts.st_size), duration(max(time.time() - facts.st_mtime, 0)), visible(logs)])
    screen.write(screen.table(rows, frozenset({1, 2})))


@app.command("path")
def show_path(logs: _Logs = None) -> None:
    """Print the folder of the databases, or with LOGS the database of those."""
    from replay.resources import cache_dir

    if not logs:
        screen.write(f"{cache_dir()}\n")
        return
    for path in _of(logs):
        screen.write(f"{path}\n")


@app.command("rm")
def remove(
    logs: _Logs = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove all, what interrupted runs left, and what was made of the grammars.")
    ] = False,
) -> None:
    """Remove the database of LOGS, or all; the logs stay as they are."""
    from replay.grammar.kept import FOLDER
    from replay.resources import cache_dir
    from replay.store.database import SCRATCH

    if bool(logs) == everything:
        raise UsageError("name the logs whose database is to go, or --all")
    for path in _databases() if everything else _of(logs or []):
        path.unlink(missing_ok=True)
        path.with_suffix(".parsed").unlink(missing_ok=True)
    if everything and cache_dir().is_dir():
        for begin in (SCRATCH, FOLDER):
            for rest in cache_dir().glob(f"{begin}*"):
                shutil.rmtree(rest, ignore_errors=True)
        (cache_dir() / "last.json").unlink(missing_ok=True)


def _databases() -> list[Path]:
    from replay.resources import cache_dir

    return sorted(cache_dir().glob("*.duckdb"))


def _logs_of(path: Path) -> list[str]:
    """The logs that a database was made from, as absolute paths; nothing where another version made it."""
    from replay.store.database import meta, open_database

    try:
        with open_database(path) as con:
            return [str(p) for p in json.loads(meta(con).get("logs", "[]"))]
    except (InputError, ValueError):
        return []


def _of(logs: list[str]) -> list[Path]:
    """The databases that were made from these logs, with whatever hints."""
    import os

    wanted = [p if p == "-" else os.path.abspath(p) for p in logs]
    found = [path for path in _databases() if _logs_of(path) == wanted]
    if not found:
        raise InputError(f"{' '.join(logs)}: not read before")
    return found
