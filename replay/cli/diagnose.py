"""`replay diagnose` and `replay demo`: the report."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from replay.cli import screen
from replay.cli.screen import Color
from replay.cli.source import Source, reads_logs
from replay.errors import InputError

_MALFORMED_SHOWN = 3


class ReportFormat(StrEnum):
    """How a report is written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


FormatOption = Annotated[ReportFormat, typer.Option("--format", "-f", help="How to write the report.")]
WidthOption = Annotated[
    int | None, typer.Option("--width", metavar="COLUMNS", help="Columns of text (default: the terminal's).")
]
ColorOption = Annotated[Color, typer.Option("--color", help="When to colour; NO_COLOR and FORCE_COLOR count as well.")]


@reads_logs
def diagnose(
    source: Source,
    *,
    output: FormatOption = ReportFormat.TEXT,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 if there is a root cause, 3 if the logs cannot tell.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Lines that look like PyTorch's or NCCL's and cannot be read are an error.")
    ] = False,
    width: WidthOption = None,
    color: ColorOption = Color.AUTO,
) -> None:
    """Say what happened first, on which rank, why, what it cost and what to do, with the lines that prove it."""
    with source.open() as run:
        if strict:
            _refuse_malformed(run.sql(
                "SELECT f.path, l.line_no FROM lines AS l JOIN files AS f USING (file_id) WHERE l.class = 'malformed' "
                "ORDER BY l.file_id, l.line_no"
            ).rows)  # fmt: skip
        report = run.report()
    from replay.report import json, markdown, text
    from replay.repro.checked import notes

    if output is ReportFormat.JSON:
        screen.write(json.render(report))
    elif output is ReportFormat.MARKDOWN:
        screen.write(markdown.render(report, notes(report)))
    else:
        style = text.Style(screen.width(width), screen.colored(color, sys.stdout))
        screen.write(text.render(report, style, source.again, notes(report)))
    if report.is_foreign:
        raise InputError(f"{source.name}: nothing in there was written by PyTorch, NCCL or a launcher")
    if exit_code and report.verdict != "healthy":
        raise typer.Exit(3 if report.verdict == "insufficient" else 1)


def _refuse_malformed(places: list[tuple[str, int]]) -> None:
    if places:
        named = ", ".join(f"{path}:{line}" for path, line in places[:_MALFORMED_SHOWN])
        more = f" and {len(places) - _MALFORMED_SHOWN} more" if len(places) > _MALFORMED_SHOWN else ""
        raise InputError(f"lines that cannot be read: {named}{more}")


def demo(
    name: Annotated[str, typer.Argument(help="Which of the runs that come with this tool.")] = "recompile-one-rank",
    output: FormatOption = ReportFormat.TEXT,
    width: WidthOption = None,
    color: ColorOption = Color.AUTO,
) -> None:
    """Diagnose a run that comes with this tool: four ranks, one of which recompiled while the others waited."""
    from replay.resources import folder

    corpora = folder("corpora")
    logs = corpora / name / "logs"
    if not logs.is_dir():
        known = ", ".join(sorted(p.parent.name for p in corpora.glob("*/logs")))
        raise InputError(f"{name}: no such run; there are {known}")
    diagnose(logs=[str(logs)], output=output, exit_code=False, strict=False, width=width, color=color, db=None,
             rules=None, rank_from=None, world_size=None, year=None, tz=None)  # fmt: skip
