"""Where output goes and how it may look: width, colour, and a reader that closes the pipe early."""

import os
import shutil
import sys
from enum import StrEnum
from typing import TextIO

import typer

NARROWEST, WIDEST = 60, 160


class Color(StrEnum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def colored(wanted: Color, stream: TextIO) -> bool:
    """Tell whether to colour: as wanted, else NO_COLOR, else FORCE_COLOR, else whether a terminal is there."""
    if wanted is not Color.AUTO:
        return wanted is Color.ALWAYS
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def width(wanted: int | None) -> int:
    """Return the columns to fill: as wanted, else the terminal's (or COLUMNS) within reason."""
    if wanted is not None:
        return max(wanted, NARROWEST)
    return min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)


def write(text: str) -> None:
    """Write data to stdout. A reader that has seen enough (`| head`) ends the command without a complaint."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None


def table(rows: list[list[str]], right: frozenset[int] = frozenset(), widest: int | None = None) -> str:
    """Return rows as aligned columns, the first row as their head; columns in `right` are aligned there.

    With `widest`, cells are cut to that many characters.
    """
    cut = [[c if widest is None or len(c) <= widest else c[: widest - 1] + "…" for c in row] for row in rows]
    widths = [max(len(row[n]) for row in cut) for n in range(len(cut[0]))]
    lines = []
    for row in cut:
        cells = (c.rjust(w) if n in right else c.ljust(w) for n, (c, w) in enumerate(zip(row, widths, strict=True)))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"
