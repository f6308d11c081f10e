"""One person looking at one run: cursor, panels' contents and commands, without a screen.

Every command moves the cursor at once, from what is in memory; what only the database knows (words, raw lines,
details) is
asked for at the desk and put in when it comes. `changed` is called whenever there is something new to draw.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.report.wording import ranks_phrase, visible
from replay.tui.core import book, chain, focus, goal, lanes, pages, places, story, wanted
from replay.tui.core.book import Book, Opened
from replay.tui.core.chain import Hop, Spot
from replay.tui.core.desk import Deliver, Desk
from replay.tui.core.focus import Focus
from replay.tui.core.lanes import Grouping, Lane
from replay.tui.core.pages import Pages, Words
from replay.tui.core.pictures import Pictures
from replay.tui.core.story import Ref, Story
from replay.tui.core.track import COLLECTIVE, RECOMPILE
from replay.tui.core.walk import Place, Walk

if TYPE_CHECKING:
    from replay.run import Run

MOST_LANES = 24
"""From more ranks than this on they are shown in groups, until somebody wants otherwise."""
_USUAL = frozenset({"running", "gone", "unknown"})
"""States that say nothing of how long something took that a finding is about."""


class Session:
    """What the screens show of a run. All methods but `wait` return at once."""

    def __init__(self, run: "Run", opened: Opened, deliver: Deliver, changed: Callable[[], None]) -> None:
        self.run = run
        self._changed = changed
        self.desk = Desk(run.cursor(), deliver)
        """Asked for what belongs to the place: soon answered."""
        self.slow = Desk(run.cursor(), deliver)
        """Asked for what may take long: a filter, a query, a simulation."""
        self.heads = opened.heads
        self._books: dict[int, tuple[Book, Walk, Pages, Pictures]] = {}
        self.book: Book
        self.walk: Walk
        self.pages: Pages
        self.pictures: Pictures
        self.story: Story | None = None
        self.focus = Focus()
        self.message = ""
        self.is_error = False
        self.filter = ""
        self.grouping = Grouping.ALIKE if len(opened.book.ranks) > MOST_LANES else Grouping.RANKS
        self.unfolded: frozenset[str] = frozenset()
        self.lanes: list[Lane] = []
        self.finding: str | None = None
        """Finding that was gone to last."""
        self.is_playing = False
        self._been: list[tuple[int | None, int | None]] = []
        self._pending = ""
        self._is_untimed = False
        """Whether the line that was gone to is told without a time: then its event's time is taken."""
        self._take(opened.book)

    # Opening

    def open(self, at: str | None = None) -> None:
        """Ask for the findings and go where to begin, in the words of a goal; without any to the first root cause."""
        self._pending = at or "F1"
        self.desk.ask("story", story.load, self._tell, self._fail)
        self._look()

    def _take(self, made: Book) -> None:
        """Show a run that was read."""
        self._books.setdefault(made.run_id, (made, Walk(made), Pages(made.track), Pictures(made)))
        self.book, self.walk, self.pages, self.pictures = self._books[made.run_id]
        self.regroup()

    def _in_run(self, run_id: int, then: Callable[[], None]) -> None:
        """Do something in a run: at once in one that was read, else when it is."""

        def take(made: Book) -> None:
            self.filter = ""
            self._take(made)
            then()

        if run_id == self.book.run_id:
            then()
        elif run_id in self._books:
            take(self._books[run_id][0])
        else:
            self._say(f"reading run {run_id} …")
            self.desk.ask("run", lambda con: book.load(con, run_id), take, self._fail)

    def _tell(self, told: Story) -> None:
        self.story = told
        where, self._pending = self._pending, ""
        if where == "F1" and not told.report.roots:
            where = ""
        if where:
            self.go(where)
        self._changed()

    @property
    def is_busy(self) -> bool:
        """True while a question is open."""
        return self.desk.is_busy or self.slow.is_busy

    def wait(self) -> None:
        """Wait until no question is open (for tests and measurements)."""
        self.desk.wait()
        self.slow.wait()

    def close(self) -> None:
        """End the desks' threads; the run stays open."""
        self.desk.close()
        self.slow.close()

    # Commands: the cursor

    def event(self, direction: int, count: int = 1) -> None:
        """Next or last event."""
        self._move(lambda: self.walk.event(direction, count=count), "no event there")

    def edge(self, direction: int) -> None:
        """First or last event."""
        self._move(lambda: self.walk.edge(direction))

    def collective(self, direction: int) -> None:
        """Next or last collective."""
        self._move(lambda: self.walk.event(direction, COLLECTIVE), "no collective there that was logged")

    def recompile(self, direction: int) -> None:
        """Next or last recompile."""
        self._move(lambda: self.walk.event(direction, RECOMPILE), "no recompile there")

    def step(self, direction: int) -> None:
        """Next or last step."""
        self._move(lambda: self.walk.step(direction), "no step there")

    def to_rank(self, rank: int) -> None:
        """Look at another rank at the same moment."""
        if rank not in self.book.ranks:
            self._say(f"no rank {rank}; there are {ranks_phrase(self.book.ranks)}", is_error=True)
            return
        self._move(lambda: self.walk.to_rank(rank))

    def to_time(self, t: float, rank: int | None = None) -> None:
        """Go to a moment."""
        self._move(lambda: self.walk.to_time(t, rank))

    def to_event(self, position: int) -> None:
        """Go to an event."""
        self._move(lambda: self.walk.to_event(position))

    def back(self) -> None:
        """Where the cursor was before."""
        self._move(self.walk.back, "this is where you began")

    def forth(self) -> None:
        """Forth again."""
        self._move(self.walk.forth, "this is as far as you went")

    def _move(self, how: Callable[[], bool | None], otherwise: str = "") -> None:
        self._been.clear()
        self._say(otherwise if how() is False else "")
        self._look()

    # Commands: findings

    def next_finding(self, direction: int) -> None:
        """Next or last finding: roots first."""
        if self.story is None:
            self._say("the findings are being read")
            return
        order = self.story.order()
        if not order:
            self._say("there are no findings")
            return
        if self.finding in order:
            n = order.index(self.finding) + direction
            if not 0 <= n < len(order):
                self._say(f"{self.finding} is the {'last' if direction > 0 else 'first'} of {len(order)} findings")
                return
        else:
            n = 0 if direction > 0 else len(order) - 1
        self.to_finding(order[n])

    def to_finding(self, finding_id: str) -> None:
        """Go to a finding: to who waited because of it, where somebody did; else to its first line."""
        told = self.story.finding(finding_id) if self.story else None
        if told is None or self.story is None:
            known = ", ".join(f.id for f in self.story.report.findings) if self.story else ""
            self._say(f"no finding {finding_id}" + (f"; there are {known}" if known else ""), is_error=True)
            return
        self.finding = finding_id
        refs = [r for r in self.story.refs.get(finding_id, ()) if r.file_id is not None]
        if not refs:
            self._say(told.summary)
            return
        first = next((r for r in refs if r.rank in told.waiting and r.rank not in told.ranks), refs[0])
        self.to_ref(first)
        self._zoom_to(first, told.ranks)
        self._say(f"{finding_id}  {told.summary}")

    def to_ref(self, ref: Ref) -> None:
        """Go to a line of evidence."""
        self._go(ref.run_id, ref.file_id, ref.line_no, ref.rank, ref.t)

    def _zoom_to(self, ref: Ref, at_fault: tuple[int, ...]) -> None:
        """Show what went on at a finding: the cursor in the middle of the wait, the wait in the middle of the
        picture.
        """
        if ref.t is None or ref.run_id != self.book.run_id:
            return
        spans = self.book.spans
        lo = hi = ref.t
        if ref.rank is not None:
            wait = spans.wait_for(ref.rank, at_fault, ref.t)
            doing = wait or spans.at(ref.t, ref.rank)
            if doing is not None and doing.state not in _USUAL:
                lo, hi = doing.t_lo, doing.t_hi
            if wait is not None:
                self.walk.place = replace(self.walk.place, t=(lo + hi) / 2)
        for rank in at_fault[:8]:
            doing = spans.at(self.walk.place.t, rank)
            if doing is not None and doing.state not in _USUAL:
                lo, hi = min(lo, doing.t_lo), max(hi, doing.t_hi)
        self.walk.show(lo, hi)
        self.walk.window = self.walk.window.holding(self.walk.place.t)

    # Commands: the causal chain

    def follow(self) -> None:
        """Follow the chain by one link, from effect to cause."""
        place, words = self.walk.place, self._words()
        file_id, line_no = place.file_id, place.line_no
        if file_id is None and words is not None:
            file_id, line_no = words.file_id, words.line_no
        doing = self.book.spans.at(place.t, place.rank) if place.rank is not None else None
        late = doing.late if doing is not None and doing.state == "waiting" else ()
        spot = Spot(self.book.run_id, place.t, place.rank, file_id, line_no, late)
        if not self._been:
            self._been.append((file_id, line_no))
        been = frozenset(self._been)
        self.desk.ask("chain", lambda con: chain.follow(con, spot, been), self._followed, self._fail)

    def _followed(self, hop: Hop) -> None:
        if not hop.is_end:
            been = [*self._been, (hop.file_id, hop.line_no)]
            self._go(self.book.run_id, hop.file_id, hop.line_no, hop.rank, hop.t)
            self._been = been
        self._say(hop.said)

    # Commands: where to

    def go(self, text: str) -> None:
        """Go where a text says."""
        try:
            where = goal.parse(text, self.book.first, self.book.last)
        except UsageError as error:
            self._say(str(error), is_error=True)
            return
        number = int(where.number)
        if where.what is goal.What.TIME:
            self.to_time(where.number)
        elif where.what is goal.What.RANK:
            self.to_rank(number)
        elif where.what is goal.What.STEP:
            self._move(lambda: self.walk.to_step(number), f"no step {number} was reported")
        elif where.what is goal.What.FINDING:
            self.to_finding(where.name)
        elif where.what is goal.What.LINE:
            self.desk.ask("place", lambda con: places.of_path(con, where.name, number), self._arrive, self._fail)
        else:
            self.first_difference()

    def first_difference(self) -> None:
        """Go to the first place where ranks (or runs) part."""
        run_id = self.book.run_id
        self.desk.ask("place", lambda con: places.first_difference(con, run_id), self._arrive, self._fail)

    def to_line(self, file_id: int, line_no: int | None) -> None:
        """Go to a line of a file."""
        self.desk.ask("place", lambda con: places.of_line(con, file_id, line_no), self._arrive, self._fail)

    def _arrive(self, found: tuple[Ref, str]) -> None:
        ref, said = found
        self.to_ref(ref)
        self._say(said)

    def _go(self, run_id: int, file_id: int | None, line_no: int | None, rank: int | None, t: float | None) -> None:
        """Go to a line; which event it is, only the database knows."""
        self._in_run(run_id, lambda: self._stand(run_id, file_id, line_no, rank, t))

    def _stand(self, run_id: int, file_id: int | None, line_no: int | None, rank: int | None, t: float | None) -> None:
        self._been.clear()
        self._is_untimed = t is None
        moment = self.walk.place.t if t is None else min(max(t, self.book.first), self.book.last)
        looked_at = self.walk.place.rank if rank is None else rank
        here = self.book.track.at(moment, rank)
        self.walk.to_place(Place(moment, here, looked_at, file_id, line_no))
        self._look()
        self.desk.ask("event", lambda con: places.events_at(con, run_id, file_id, line_no), self._is_event, self._fail)

    def _is_event(self, found: tuple[int | None, int | None, list[int]]) -> None:
        """The line that was gone to is that of these events: stand on one that was then."""
        file_id, line_no, seqs = found
        place = self.walk.place
        if (place.file_id, place.line_no) != (file_id, line_no) or not seqs:
            return
        positions = np.searchsorted(self.book.track.seq, seqs)
        position = int(positions[0])
        if position >= len(self.book.track):
            return
        t = float(self.book.track.t[position])
        if self._is_untimed or abs(t - place.t) < 1e-3:
            self.walk.to_event(position, remember=False)
            self.walk.place = replace(self.walk.place, file_id=file_id, line_no=line_no)
            self._changed()

    def next_run(self, direction: int) -> None:
        """Next or last run."""
        ids = [h.run_id for h in self.heads]
        n = ids.index(self.book.run_id) + direction if self.book.run_id in ids else -1
        if len(ids) < 2 or not 0 <= n < len(ids):
            self._say("no run there" if len(ids) > 1 else "there is one run")
            return

        def arrived() -> None:
            self._look()
            self._say(f"run {ids[n]}: {self.heads[n].outcome}")

        self._in_run(ids[n], arrived)

    # Commands: view

    def toggle_rank(self) -> None:
        """Step over events of this rank only, or of any."""
        self.walk.only_rank = not self.walk.only_rank
        self.walk.settle()
        self._look()
        self._say(f"only {ranks_phrase([self.walk.rank])}" if self.walk.rank is not None else "events of any rank")

    def group(self) -> None:
        """Take the next way of making lanes."""
        ways = list(Grouping)
        self.grouping = ways[(ways.index(self.grouping) + 1) % len(ways)]
        self.regroup()
        said = {Grouping.RANKS: "a lane for each rank", Grouping.ALIKE: "ranks that did alike", Grouping.NODES: "nodes"}
        self._say(f"lanes: {said[self.grouping]}")

    def unfold(self, lane: Lane) -> None:
        """Unfold a group of lanes, or fold it."""
        if lane.key is None:
            return
        self.unfolded ^= {lane.key}
        self.regroup()
        self._changed()

    def regroup(self) -> None:
        """Make the lanes anew."""
        b = self.book
        self.lanes = lanes.lanes(self.grouping, b.ranks, b.spans, b.hosts, at_fault=b.at_fault, unfolded=self.unfolded)

    def lane(self) -> int:
        """Return the lane of the rank looked at: its own, else the group that holds it."""
        rank, found = self.walk.place.rank, 0
        for n, lane in enumerate(self.lanes):
            if rank in lane.ranks:
                found = n
                if len(lane.ranks) == 1:
                    break
        return found

    def move_lane(self, direction: int) -> None:
        """Look at the next lane's rank."""
        n = self.lane() + direction
        if 0 <= n < len(self.lanes):
            lane = self.lanes[n]
            # The first member stands for a folded group; of an unfolded one the row above its members is passed over.
            if lane.is_open and direction < 0 and n > 0:
                lane = self.lanes[n - 1]
            self.to_rank(lane.ranks[0])

    def set_filter(self, text: str) -> None:
        """Let only events count that a filter wants; an empty text takes it away."""
        try:
            what = wanted.parse(text)
        except UsageError as error:
            self._say(str(error), is_error=True)
            return
        track, run_id = self.book.track, self.book.run_id

        def apply(found: Any) -> None:
            if track is not self.book.track:
                return
            track.set_filter(found)
            self.filter = text.strip() if found is not None else ""
            self.walk.settle()
            count = len(track.positions())
            self._look()
            self._say(f"{count:,} of {len(track):,} events" if found is not None else "all events", is_error=count == 0)

        self.slow.ask("filter", lambda con: wanted.marks(con, track, run_id, what), apply, self._fail)

    def zoom(self, factor: float) -> None:
        """Show more or less of the run."""
        self.walk.zoom(factor)
        self._changed()

    def pan(self, shares: float) -> None:
        """Show what is before or behind, leaving the cursor where it is."""
        self.walk.window = self.walk.window.moved(shares)
        self._changed()

    def whole(self) -> None:
        """Show the whole run."""
        self.walk.whole()
        self._changed()

    def play(self) -> None:
        """Play or pause."""
        self.is_playing = not self.is_playing
        self._changed()

    def tick(self, seconds: float) -> None:
        """Let so many seconds of play pass."""
        if self.is_playing:
            self.is_playing = self.walk.play(seconds)
            self._look()

    # What belongs to the place

    def need(self, positions: list[int]) -> None:
        """Ask for the words of events that are to be shown."""
        track, store = self.book.track, self.pages
        missing = store.missing(p for p in positions if 0 <= p < len(track))
        for page in missing[:2]:
            seqs = store.seqs(page)

            def put(found: list[Words], page: int = page) -> None:
                store.put(page, found)
                if self.focus.detail is None:
                    self._look()
                self._changed()

            self.desk.ask(f"page {page % 2}", _fetcher(seqs), put, self._fail)

    def _words(self) -> Words | None:
        event = self.walk.place.event
        return None if event is None else self.pages.get(event)

    def _look(self) -> None:
        """Ask for what the panels show of the place."""
        place, run_id = self.walk.place, self.book.run_id
        kind = "" if place.event is None else self.book.track.kind_of(place.event)
        words = self._words()
        if place.event is not None:
            self.need([place.event])
        if place.file_id is not None:
            file_id, line_no = place.file_id, place.line_no
            self._ask_focus(lambda con: focus.of_line(con, run_id, file_id, line_no))
        elif words is not None:
            self._ask_focus(lambda con: focus.of_words(con, run_id, words, kind))
        elif place.event is not None:
            seq = int(self.book.track.seq[place.event])
            self._ask_focus(lambda con: focus.of_event(con, run_id, seq, kind))
        else:
            self.focus = Focus()
        self._changed()

    def _ask_focus(self, question: Callable[[DuckDBPyConnection], Focus]) -> None:
        self.desk.ask("focus", question, self._show, self._fail)

    def _show(self, found: Focus) -> None:
        self.focus = found
        self._changed()

    def _say(self, text: str, *, is_error: bool = False) -> None:
        self.message, self.is_error = visible(text), is_error
        self._changed()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Show a message."""
        self._say(text, is_error=is_error)

    def _fail(self, error: Exception) -> None:
        self._say(" ".join(str(error).split()) or type(error).__name__, is_error=True)


def _fetcher(seqs: list[int]) -> Callable[[DuckDBPyConnection], list[Words]]:
    return lambda con: pages.fetch(con, seqs)
