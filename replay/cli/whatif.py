"""`replay what-if`: what the run would have been without something."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from replay.cli import screen
from replay.cli.screen import Color
from replay.cli.source import Source, reads_logs
from replay.errors import CannotTell


class OutcomeFormat(StrEnum):
    """How the outcome is written."""

    TEXT = "text"
    JSON = "json"


@reads_logs
def what_if(
    source: Source,
    *,
    without: Annotated[
        list[str] | None,
        typer.Option(
            "--without",
            metavar="WHAT[@RANKS]",
            help="Take something out: recompiles, compiles, saves, loads or evals, on these ranks (3 or 0-6,8) or all; "
            "may be given again.",
        ),
    ] = None,
    rank_as_median: Annotated[
        str | None,
        typer.Option("--rank-as-median", metavar="RANKS", help="Let these ranks be as fast as the others."),
    ] = None,
    warm_cache: Annotated[bool, typer.Option("--warm-cache", help="Let the compile cache hold everything.")] = False,
    guard_collectives: Annotated[
        bool, typer.Option("--guard-collectives", help="Let all ranks recompile when one does, at the same moment.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option("--timeout", metavar="SECONDS", min=0, help="End the run when a rank waits so long."),
    ] = None,
    run_id: Annotated[
        int | None, typer.Option("--run", metavar="N", min=1, help="Which run of the logs (default: the last one).")
    ] = None,
    output: Annotated[OutcomeFormat, typer.Option("--format", "-f", help="How to write the outcome.")] = (
        OutcomeFormat.TEXT
    ),
    width: Annotated[
        int | None, typer.Option("--width", metavar="COLUMNS", help="Columns of text (default: the terminal's).")
    ] = None,
    color: Annotated[
        Color, typer.Option("--color", help="When to colour; NO_COLOR and FORCE_COLOR count as well.")
    ] = Color.AUTO,
) -> None:
    """Say how long the run would have taken with a change; without one, what each known cause cost it."""
    from replay import simulate
    from replay.report import whatif
    from replay.report.text import Style
    from replay.simulate.model import parse_ranks

    change = simulate.Change(
        without=tuple(simulate.Without.parse(text) for text in without or ()),
        as_median=parse_ranks(rank_as_median) if rank_as_median else (),
        warm_cache=warm_cache,
        guard_collectives=guard_collectives,
        timeout_s=timeout,
    )
    with source.open() as run:
        outcome = simulate.run(run.con, change, run_id)
    if output is OutcomeFormat.JSON:
        screen.write(whatif.as_json(outcome))
    elif outcome.cannot is None:
        screen.write(whatif.as_text(outcome, Style(screen.width(width), screen.colored(color, sys.stdout))))
    if outcome.cannot is not None:
        raise CannotTell(f"{source.name}: cannot say, because {outcome.cannot}")
