"""`replay ls` and `replay log`: what was handed over, and all of it as one log."""

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from replay.cli import screen
from replay.cli.screen import Color
from replay.cli.source import Source, reads_logs

if TYPE_CHECKING:
    from replay.report.inventory import InventoryView
    from replay.report.log import LogLine

_FILES_SHOWN = 200
_LINES_AT_ONCE = 500


class ListFormat(StrEnum):
    """How a listing is written."""

    TEXT = "text"
    JSON = "json"


class LogFormat(StrEnum):
    """How log lines are written."""

    TEXT = "text"
    JSONL = "jsonl"


@reads_logs
def ls(
    source: Source,
    *,
    output: Annotated[ListFormat, typer.Option("--format", "-f", help="How to write the listing.")] = ListFormat.TEXT,
) -> None:
    """List what was handed over: files, ranks, hosts, launchers; and what is missing."""
    with source.open() as run:
        inventory = run.inventory()
    if output is ListFormat.JSON:
        screen.write(json.dumps(asdict(inventory), indent=1, ensure_ascii=sys.stdout.isatty()) + "\n")
    else:
        screen.write(_inventory_text(inventory))


def _inventory_text(inventory: "InventoryView") -> str:
    from replay.report.wording import count, ranks_text, size, visible

    rows = [["file", "kind", "ranks", "host", "launcher", "size", "lines", "ours", "unread"]]
    for file in inventory.files[:_FILES_SHOWN]:
        hosts = file.hosts[0] if len(file.hosts) == 1 else count(len(file.hosts), "host") if file.hosts else ""
        kind = f"copy of {file.duplicate_of}" if file.duplicate_of else file.kind
        kind += "" if file.encoding in {"plain", ""} else f" {file.encoding}"
        cells = [file.path, kind, ranks_text(file.ranks), hosts, file.wrapper, size(file.size), f"{file.lines:,}"]
        cells += [f"{file.parsed + file.continuation:,}", f"{file.malformed:,}"]
        rows.append([visible(c) for c in cells])
    text = screen.table(rows, frozenset({5, 6, 7, 8}))
    if len(inventory.files) > _FILES_SHOWN:
        text += f"and {len(inventory.files) - _FILES_SHOWN:,} more files (--format json lists all)\n"
    world = f"{count(len(inventory.ranks), 'rank')} heard"
    if inventory.ranks:
        world += f" ({ranks_text(inventory.ranks)})"
    if inventory.ranks_expected:
        world += f" of {inventory.ranks_expected}"
    if inventory.hosts:
        world += f" on {count(len(inventory.hosts), 'host')}"
    text += f"\n{world}\n"
    text += "".join(f"missing: {visible(line)}\n" for line in inventory.missing)
    text += "".join(f"odd: {visible(line)}\n" for line in inventory.problems)
    if inventory.unseen:
        unseen = [["not logged", "ranks", "what switches it on"]]
        unseen += [[u.what, u.ranks or "not known", u.enable] for u in inventory.unseen]
        text += "\n" + screen.table(unseen)
    return text


@reads_logs
def log(
    source: Source,
    *,
    rank: Annotated[str | None, typer.Option("--rank", "-r", metavar="RANKS", help="Only these ranks: 0-6,8.")] = None,
    grep: Annotated[
        str | None, typer.Option("--grep", "-g", metavar="REGEX", help="Only lines that the pattern (RE2) finds.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", "-k", metavar="FORM", help="Only lines of this form; * stands for anything.")
    ] = None,
    line_class: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS", help="Only parsed, continuation, plain or malformed lines."),
    ] = None,
    around: Annotated[
        str | None, typer.Option("--around", metavar="FINDING", help="Only lines near the evidence of a finding: F1.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", "-n", metavar="N", min=1, help="At most N lines.")] = None,
    output: Annotated[LogFormat, typer.Option("--format", "-f", help="How to write the lines.")] = LogFormat.TEXT,
    color: Annotated[Color, typer.Option("--color", help="When to colour.")] = Color.AUTO,
) -> None:
    """Show the lines of all ranks as one log, in order of time where times are known."""
    from replay.report.log import LogFilter, parse_ranks

    ranks = None if rank is None else parse_ranks(rank)
    with source.open() as run:
        waiting: list[str] = []
        painted = screen.colored(color, sys.stdout)
        for line in run.log(LogFilter(ranks, grep, kind, line_class, around, limit)):
            waiting.append(_json_line(line) if output is LogFormat.JSONL else _text_line(line, painted=painted))
            if len(waiting) >= _LINES_AT_ONCE:
                screen.write("".join(waiting))
                waiting.clear()
        screen.write("".join(waiting))


def _json_line(line: "LogLine") -> str:
    return json.dumps(asdict(line), ensure_ascii=sys.stdout.isatty()) + "\n"


def _text_line(line: "LogLine", *, painted: bool) -> str:
    """`23:51:45.270  rank 3  text`; the hour is that of the log's own clock."""
    from replay.report.text import Style
    from replay.report.wording import visible

    style = Style(color=painted)
    clock = "" if line.t is None else datetime.fromtimestamp(line.t, UTC).strftime("%H:%M:%S.%f")[:-3]
    who = "" if line.rank is None else str(line.rank)
    how = {"malformed": "red", "plain": "dim"}.get(line.line_class)
    text = style.paint(visible(line.text), how) if how else visible(line.text)
    return f"{style.paint(f'{clock:<12}', 'dim')} {style.paint(f'{who:>4}', 'cyan')}  {text}".rstrip() + "\n"
