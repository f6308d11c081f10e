"""The events around the cursor, over all ranks or one."""

from collections.abc import Sequence

from replay.tui.core.session import Session
from replay.tui.core.track import SEVERITIES
from replay.tui.core.window import clock
from replay.tui.palette import SEVERE
from replay.tui.panel import Panel, Row, cut, padded

_KIND = 14


class EventsPanel(Panel):
    """A list without an end: only the rows on the screen are ever made."""

    NAME = "events"
    NUMBER = 2

    def __init__(self) -> None:
        super().__init__()
        self._shown: list[int] = []

    def title(self) -> tuple[str, str]:
        """Whose events, and where in them."""
        session = self.session
        assert session is not None, "titles are asked for when there is something to look at"
        walk, track = session.walk, session.book.track
        found = track.positions(walk.rank)
        at = min(track.index(walk.place.event or 0, walk.rank) + 1, len(found))
        whose = f"events of rank {walk.rank}" if walk.rank is not None else "events"
        if session.filter:
            whose += f"  /{session.filter}"
        return whose, f"{at:,} of {len(found):,}" + (f" ({len(track):,} in all)" if session.filter else "")

    def rows(self, width: int, height: int) -> Sequence[Row]:
        """The event at the cursor, in the middle, and its neighbours."""
        session = self.session
        assert session is not None, "rows are asked for when there is something to look at"
        track, walk = session.book.track, session.walk
        found = track.positions(walk.rank)
        if not len(found):
            nothing = "no event passes the filter (esc takes it away)" if session.filter else "no events in these logs"
            return [[(f"  {nothing}", self.palette.dim)]]
        here = walk.place.event if walk.place.event is not None else 0
        at = track.index(here, walk.rank)
        first = min(max(at - height // 2, 0), max(len(found) - height, 0))
        self._shown = [int(p) for p in found[first : first + height]]
        # What comes next when a key is held down is fetched before it is asked for.
        session.need([*self._shown, *found[first + height : first + 3 * height : height].tolist()])
        return [self._row(session, position, position == here, width) for position in self._shown]

    def _row(self, session: Session, position: int, is_here: bool, width: int) -> Row:
        p, track = self.palette, session.book.track
        severity, rank = SEVERITIES[int(track.severity[position])], track.rank_of(position)
        words = session.pages.get(position)
        short = width < 60
        when = clock(float(track.t[position])) if track.is_timed else f"{position + 1:>12,}"
        about = "~" if words is not None and track.is_timed and not words.is_exact else " "
        style = p.error if severity == "error" else p.warning if severity == "warning" else p.text
        if severity == "debug":
            style = p.dim
        row: Row = [
            ("▶" if is_here else " ", p.mark),
            (about + (when[3:] if short else when), p.dim),
            (f" {'' if rank is None else rank:>4} ", p.strong if rank == session.walk.place.rank else p.dim),
            (SEVERE.get(severity, " "), style),
            (" " + padded(track.kind_of(position), 9 if short else _KIND) + " ", style),
        ]
        used = sum(len(text) for text, _ in row)
        said = "…" if words is None else words.summary
        if words is not None and words.leeway and severity in {"warning", "error"}:
            said = f"{words.leeway}: {said}"
        said = cut(said, width - used)
        row.append((said, style))
        if is_here:
            row = [(text, look + p.cursor) for text, look in row]
            row.append((" " * max(width - used - len(said), 0), p.cursor))
        return row

    def move(self, direction: int) -> None:
        """Next or last event."""
        if self.session:
            self.session.event(direction)

    def page(self, direction: int) -> None:
        """A page of events at once."""
        if self.session:
            self.session.event(direction, count=max(self.size.height - 2, 1))

    def enter(self) -> None:
        """Follow the chain from here."""
        if self.session:
            self.session.tour.follow()

    def click(self, row: int, cell: int) -> None:
        """Go to an event."""
        if self.session and row < len(self._shown):
            self.session.to_event(self._shown[row])
