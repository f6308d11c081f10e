"""What is shown of the place looked at: its raw lines and what is known of its event. Asked at the desk."""

from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from replay.tui.core import detail, pages, source
from replay.tui.core.detail import Detail
from replay.tui.core.pages import Words
from replay.tui.core.source import SourceView

_AROUND = 40
"""Lines before and behind the line looked at that are fetched: a tall screen shows no more."""


@dataclass(frozen=True, slots=True)
class Focus:
    """Raw lines and details of a place."""

    source: SourceView | None = None
    detail: Detail | None = None


def of_words(con: DuckDBPyConnection, run_id: int, words: Words, kind: str) -> Focus:
    """Return what is shown of an event whose words are known."""
    known = detail.view(con, words.ref_table, kind, (words.file_id, words.line_no), run_id)
    if words.file_id is None:
        return Focus(None, known)
    return Focus(source.view(con, words.file_id, words.line_no, _AROUND, known.values), known)


def of_event(con: DuckDBPyConnection, run_id: int, seq: int, kind: str) -> Focus:
    """Return what is shown of an event by its number."""
    found = pages.fetch(con, [seq])
    return of_words(con, run_id, found[0], kind) if found else Focus()


def of_line(con: DuckDBPyConnection, run_id: int, file_id: int, line_no: int | None) -> Focus:
    """Return what is shown of a line: the worst of its events."""
    row = con.execute(
        """
        SELECT ref_table, kind FROM events WHERE run_id = ? AND file_id = ? AND line_no IS NOT DISTINCT FROM ?
        ORDER BY list_position(['error', 'warning', 'info', 'debug'], severity), seq LIMIT 1
        """,
        [run_id, file_id, line_no],
    ).fetchone()
    known = detail.view(con, row[0], row[1], (file_id, line_no), run_id) if row else None
    return Focus(source.view(con, file_id, line_no, _AROUND, known.values if known else ()), known)
