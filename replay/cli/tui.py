"""`replay tui`: step through the run on the screen."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from replay.cli.source import Source, reads_logs
from replay.errors import InputError, UsageError


class Theme(StrEnum):
    """What the terminal's background is like."""

    AUTO = "auto"
    DARK = "dark"
    LIGHT = "light"


@reads_logs
def tui(
    source: Source,
    *,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="PLACE", help="Where to begin: F1, step 4, rank 3, 23:51:45, 50%, file:line."),
    ] = None,
    theme: Annotated[Theme, typer.Option("--theme", help="Colours for a dark or a light terminal.")] = Theme.AUTO,
) -> None:
    """Step through the run on the screen, forwards and backwards, every rank."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("tui needs a terminal; replay diagnose, log and sql write to pipes and files")
    from replay.run import open_run
    from replay.tui.app import ReplayApp

    app = ReplayApp(
        lambda progress: open_run(source.logs, hints=source.hints, db=source.db, rules=source.rules, progress=progress),
        source.logs,
        at,
        None if theme is Theme.AUTO else f"replay-{theme.value}",
    )
    app.run()
    if app.failed:
        raise InputError(app.failed)
