"""The lines of a file around one of them, as they stand in the file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from replay.errors import ReplayError
from replay.report.wording import visible
from replay.sources.model import SourceFile
from replay.sources.read import read_line
from replay.tui.core.marks import Piece, pieces

_CUT = 400
"""Characters of a line that the database keeps."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line; `line_class` is how it was read (parsed, continuation, plain, malformed)."""

    number: int
    line_class: str
    pieces: tuple[Piece, ...]
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class SourceView:
    """Lines of a file around `focus`; `at` names the entry of a binary file, which has no lines."""

    path: str
    focus: int | None
    rank: int | None
    lines: tuple[SourceLine, ...]
    count: int
    """Lines of the whole file."""
    note: str = ""


def view(
    con: DuckDBPyConnection, file_id: int, focus: int | None, around: int, values: tuple[tuple[str, str], ...] = ()
) -> SourceView:
    """Return `around` lines before and behind a line. `values` are columns of its row, to be marked in it."""
    file = con.execute(
        "SELECT path, abspath, kind, encoding, size, digest, coalesce(lines, 0) FROM files WHERE file_id = ?", [file_id]
    ).fetchone()
    if file is None:
        return SourceView("", focus, None, (), 0, "no such file")
    path, *_, count = file
    if focus is None:
        return SourceView(visible(path), None, None, (), count, "an entry of a binary file, which has no lines")
    rows = con.execute(
        """
        SELECT line_no, class, byte_offset, coalesce(text, ''), rank FROM lines
        WHERE file_id = ? AND line_no BETWEEN ? AND ? ORDER BY line_no
        """,
        [file_id, focus - around, focus + around],
    ).fetchall()
    made, rank = [], None
    for number, line_class, offset, text, of_rank in rows:
        if number == focus:
            rank = of_rank
            raw = _whole(file_id, file, number, offset, text)
            marked = tuple(pieces(raw, values))
            made.append(SourceLine(number, line_class or "plain", marked, len(raw) == _CUT))
        else:
            made.append(SourceLine(number, line_class or "plain", (Piece(visible(text)),), len(text) >= _CUT))
    note = "" if rows else "the line is not in the database"
    return SourceView(visible(path), focus, rank, tuple(made), count, note)


def _whole(file_id: int, file: tuple[Any, ...], number: int, offset: int | None, text: str) -> str:
    """A line that the database cut, from its file if that is still the same; else what the database has."""
    path, abspath, kind, encoding, size, digest, _ = file
    if len(text) < _CUT or not abspath or kind not in {"text", "trace"}:
        return text
    try:
        if Path(abspath).stat().st_size != size:
            return text
        source = SourceFile(file_id, path, Path(abspath), kind, encoding or "plain", size, digest or "")
        whole = read_line(source, number, offset)
    except (OSError, ReplayError, ValueError):
        return text
    return whole if whole is not None and whole.startswith(text[: _CUT // 2]) else text
