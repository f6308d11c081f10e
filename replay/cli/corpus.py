"""`replay corpus`: how well the diagnosis agrees with labelled runs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen

if TYPE_CHECKING:
    from replay.corpus.score import Score

app = typer.Typer(help="Labelled runs, and how well the diagnosis agrees with them.", invoke_without_command=True)


class ScoreFormat(StrEnum):
    """How the figures are written."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


@app.callback()
def options(context: typer.Context) -> None:
    """Show the help where no command is named."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("score")
def score(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Folder of labelled runs; without any, those of the package."),
    ] = None,
    rules: Annotated[
        list[Path] | None,
        typer.Option("--rules", metavar="DIR", help="A folder of rules beside the built-in ones; may be given again."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Runs that are diagnosed at a time.")] = 1,
    output: Annotated[ScoreFormat, typer.Option("--format", "-f", help="How to write the figures.")] = ScoreFormat.TEXT,
) -> None:
    """Diagnose labelled runs (NAME/logs/ and NAME/truth.json, scenarios/*.yaml); end with 1 if one is wrong.

    A run is right if the first finding is its cause, on its ranks, with no other root beside it, and each line that
    proves it stands where it says; a healthy run, if there is no root.
    """
    from replay.corpus.collect import scored, sources
    from replay.resources import folder as packaged

    place = folder or packaged("corpora")
    scores = list(scored(sources(place), rules or (), jobs))
    if output is ScoreFormat.JSON:
        rows = [asdict(s) | {"faults": [fault.model_dump() for fault in s.faults]} for s in scores]
        screen.write(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    elif output is ScoreFormat.MARKDOWN:
        from replay.corpus.page import page

        screen.write(page(scores))
    else:
        screen.write(_text(scores))
    if not all(s.is_good for s in scores):
        raise typer.Exit(1)


def _text(scores: "Sequence[Score]") -> str:
    from replay.corpus.page import HEAD, line, rows
    from replay.corpus.score import figures

    wrong = "".join(f"{_wrong(s)}\n" for s in scores if not s.is_good)
    table = screen.table([HEAD, *rows(scores)], frozenset(range(1, len(HEAD))))
    return wrong + table + line(figures(scores)) + "\n"


def _wrong(score: "Score") -> str:
    bad = [name for name in ("top1", "clean", "proof") if not getattr(score, name)]
    unknown = " (unknown)" if score.unknown else ""
    truth = " or ".join(score.truth) or "healthy"
    return f"{score.case}: not {', '.join(bad)}{unknown}; truth {truth}; said {'; '.join(score.said)}"
