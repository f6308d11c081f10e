"""Where output goes and how it may look: width, colour, and a reader that closes the pipe early."""

import codecs
import os
import shutil
import sys
from enum import StrEnum
from typing import TextIO

import typer

from replay.errors import InputError

NARROWEST, WIDEST = 60, 160
MOST_COLUMNS = 1000
"""What --width may ask for: text is padded to it."""


class Color(StrEnum):
    """When to colour."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def prepare() -> None:
    """Make the standard streams usable as they are: a closed one leads nowhere, what an encoding lacks is escaped."""
    codecs.register_error("escape", _escaped)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
        elif mode == "w":
            stream.reconfigure(errors="escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return what a character is written as that the encoding lacks: JSON's escape, good in JSON and in text."""
    import json

    assert isinstance(error, UnicodeEncodeError), "only output is escaped"
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


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
        return min(max(wanted, NARROWEST), MOST_COLUMNS)
    return min(max(shutil.get_terminal_size((80, 24)).columns, NARROWEST), WIDEST)


def write(text: str) -> None:
    """Write data to stdout. A reader that has seen enough (`| head`) ends the command without a complaint.

    Raises InputError where stdout cannot be written, as on a full disk.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit from None
    except OSError as error:
        raise InputError(f"standard output: cannot be written ({error.strerror})") from error


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
