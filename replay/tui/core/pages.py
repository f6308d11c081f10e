"""The words of events, fetched a page at a time and kept while they are likely to be looked at again."""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from replay.report.wording import duration, visible
from replay.tui.core.track import Track

PAGE = 256
"""Events of a page."""
_KEPT = 64
"""Pages that are kept: 16,384 events, a few MiB."""
_TOLD_FROM_S = 0.1
"""A moment that is known as closely as this is told as one."""


@dataclass(frozen=True, slots=True)
class Words:
    """What the database knows of one event beyond its columns in the track; `summary` is safe to show."""

    summary: str
    ref_table: str
    host: str | None
    t_lo: float | None
    t_hi: float | None
    complete: bool
    file_id: int | None
    path: str | None
    line_no: int | None

    @property
    def is_exact(self) -> bool:
        """True where the line has a stamp of its own."""
        return self.t_lo is not None and self.t_lo == self.t_hi

    @property
    def leeway(self) -> str:
        """How far the event may lie from the moment at which it stands, in words; empty where that is no matter."""
        if self.t_lo is None:
            return "" if self.t_hi is None else "then or before"
        if self.t_hi is None:
            return "then or later"
        room = self.t_hi - self.t_lo
        return f"up to {duration(room)} later" if room >= _TOLD_FROM_S else ""


class Pages:
    """Words by position. What is not there is missing until `put` brings it: nothing here waits for the database."""

    def __init__(self, track: Track) -> None:
        self._track = track
        self._pages: OrderedDict[int, list[Words]] = OrderedDict()

    def get(self, position: int) -> Words | None:
        """Return the words of an event if they are there."""
        page = self._pages.get(position // PAGE)
        if page is None:
            return None
        self._pages.move_to_end(position // PAGE)
        return page[position % PAGE] if position % PAGE < len(page) else None

    def missing(self, positions: Iterable[int]) -> list[int]:
        """Return the pages that these positions need and that are not there."""
        return sorted({p // PAGE for p in positions} - self._pages.keys())

    def put(self, page: int, words: list[Words]) -> None:
        """Keep a page."""
        self._pages[page] = words
        while len(self._pages) > _KEPT:
            self._pages.popitem(last=False)

    def seqs(self, page: int) -> list[int]:
        """Return events.seq of a page."""
        return [int(s) for s in self._track.seq[page * PAGE : (page + 1) * PAGE]]


def fetch(con: DuckDBPyConnection, seqs: list[int]) -> list[Words]:
    """Read the words of events, in the order of their numbers."""
    if not seqs:
        return []
    rows = con.execute(
        """
        SELECT coalesce(e.summary, ''), coalesce(e.ref_table, ''), e.host, e.t_lo, e.t_hi, coalesce(e.complete, TRUE),
            e.file_id, f.path, e.line_no
        FROM (FROM events WHERE seq BETWEEN $lo AND $hi) AS e LEFT JOIN files AS f USING (file_id)
        WHERE e.seq IN (SELECT unnest($seqs::BIGINT[])) ORDER BY e.seq
        """,
        {"lo": min(seqs), "hi": max(seqs), "seqs": seqs},
    ).fetchall()
    return [Words(visible(summary), *rest) for summary, *rest in rows]
