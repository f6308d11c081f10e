"""`replay check`: what a run may and may not do, for CI."""

import json
import re
import sys
import textwrap
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen
from replay.cli.source import Source, reads_logs
from replay.errors import UsageError

if TYPE_CHECKING:
    from replay.report.check import Answer, Place

_NUMBER = re.compile(r"([a-z_]+)=([0-9]{1,9})")
_SAID = {"passed": "passed", "failed": "FAILED", "cannot-tell": "cannot tell"}


class CheckFormat(StrEnum):
    """How the answers are written."""

    TEXT = "text"
    JSON = "json"


@reads_logs
def check(
    source: Source,
    *,
    most: Annotated[
        list[str] | None,
        typer.Option(
            "--max",
            metavar="WHAT=N",
            help="At most so many on any rank: recompiles, graph_breaks, graphs, "
            "compiles, cache_misses, exceptions, nccl_warnings. May be given again, as all that follow.",
        ),
    ] = None,
    exactly: Annotated[
        list[str] | None, typer.Option("--expect", metavar="WHAT=N", help="Exactly so many on every rank.")
    ] = None,
    forbidden: Annotated[
        list[str] | None,
        typer.Option("--forbid", metavar="CAUSE", help="A cause that must not be found; recompile-* forbids several."),
    ] = None,
    allowed: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="FRAME", help="Code that does not count: a function, file, file:line; * is any."
        ),
    ] = None,
    logged: Annotated[
        list[str] | None,
        typer.Option(
            "--logged", metavar="WHAT", help="You know that this was switched on: recompiles, graph_breaks ..."
        ),
    ] = None,
    ended: Annotated[
        bool, typer.Option("--ended", help="You know that the run ended well: its exit code was 0.")
    ] = False,
    output: Annotated[CheckFormat, typer.Option("--format", "-f", help="How to write it.")] = CheckFormat.TEXT,
    width: Annotated[
        int | None, typer.Option("--width", metavar="COLUMNS", help="Columns of text (default: the terminal's).")
    ] = None,
) -> None:
    """Check a run, for CI: ends with 0 if all passes, 1 if anything fails, 3 if the logs cannot tell."""
    from replay.expert.load import load_rules
    from replay.report.check import Wanted
    from replay.report.check import check as answer

    wanted = Wanted(
        _numbers(most, "--max"), _numbers(exactly, "--expect"), tuple(forbidden or ()), tuple(allowed or ()),
        frozenset(logged or ()), ended,
    )  # fmt: skip
    with source.open() as run:
        answers = answer(run.con, wanted, load_rules(source.rules))
    verdicts = {a.verdict for a in answers}
    code = 1 if "failed" in verdicts else 3 if "cannot-tell" in verdicts or not answers else 0
    if output is CheckFormat.JSON:
        said = {"schema": 1, "exit_code": code, "checks": [asdict(a) for a in answers]}
        screen.write(json.dumps(said, indent=1, ensure_ascii=sys.stdout.isatty()) + "\n")
    else:
        many = len({a.run for a in answers}) > 1
        screen.write("".join(f"{line}\n" for a in answers for line in _answer(a, screen.width(width), many=many)))
    raise typer.Exit(code)


def _numbers(given: list[str] | None, option: str) -> tuple[tuple[str, int], ...]:
    found = []
    for text in given or ():
        match = _NUMBER.fullmatch(text)
        if match is None:
            raise UsageError(f"{option} {text}: say what and how many, as recompiles=0")
        found.append((match[1], int(match[2])))
    return tuple(found)


def _answer(answer: "Answer", width: int, *, many: bool) -> list[str]:
    run = f"run {answer.run}: " if many else ""
    lines = _wrapped(f"{_SAID[answer.verdict]:<12}  {run}{answer.check}: {answer.text}", width, 14)
    for place in answer.places:
        lines += _place(place, width)
    return lines + [line for way in answer.enable for line in _wrapped(f"{'':<14}to tell: {way}", width, 23)]


def _place(place: "Place", width: int) -> list[str]:
    who = "" if place.rank is None else f"rank {place.rank}: "
    where = f"{place.where}: " if place.where else ""
    lines = _wrapped(f"{'':<14}{who}{where}{place.what}", width, 16)
    return [*lines, f"{'':<16}{place.path}:{place.line}"] if place.path else lines


def _wrapped(text: str, width: int, indent: int) -> list[str]:
    from replay.report.wording import visible

    return textwrap.wrap(
        visible(text), width, subsequent_indent=" " * indent, break_on_hyphens=False, break_long_words=False
    )
