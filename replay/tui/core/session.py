"""One person looking at one run: cursor, panels' contents and commands, without a screen.

Every command moves the cursor at once, from what is in memory; what only the database knows (words, raw lines,
details) is asked for at the desk and put in when it comes. Places of the database are `travel`, findings and their
causes `tour`, lanes `view`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.report.wording import ranks_phrase, visible
from replay.tui.core import book, focus, pages, story, wanted
from replay.tui.core.book import Book, Opened
from replay.tui.core.desk import Deliver, Desk
from replay.tui.core.focus import Focus
from replay.tui.core.lanes import Lane
from replay.tui.core.pages import Pages, Words
from replay.tui.core.pictures import Pictures
from replay.tui.core.story import Story
from replay.tui.core.tour import Tour
from replay.tui.core.track import COLLECTIVE, RECOMPILE
from replay.tui.core.travel import Travel
from replay.tui.core.view import View
from replay.tui.core.walk import Walk
from replay.tui.core.window import Window

if TYPE_CHECKING:
    from replay.run import Run


class Session:
    """What the screens show of a run. All methods but `wait` return at once."""

    def __init__(self, run: "Run", opened: Opened, deliver: Deliver, changed: Callable[[], None]) -> None:
        self.run = run
        self.changed = changed
        """Called whenever there is something new to draw."""
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
        self.is_playing = False
        self._pending = ""
        self.view = View(len(opened.book.ranks))
        self.travel = Travel(self)
        self.tour = Tour(self)
        self._take(opened.book)

    # Opening

    def open(self, at: str | None = None) -> None:
        """Ask for the findings and go where to begin, in the words of a goal; without any to the first root cause."""
        self._pending = at or "F1"
        self.desk.ask("story", story.load, self._tell, self.fail)
        self.look()

    def _take(self, made: Book) -> None:
        """Show a run that was read."""
        self._books.setdefault(made.run_id, (made, Walk(made), Pages(made.track), Pictures(made)))
        self.book, self.walk, self.pages, self.pictures = self._books[made.run_id]
        self.view.take(made)

    def in_run(self, run_id: int, then: Callable[[], None]) -> None:
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
            self.say(f"reading run {run_id} …")
            self.desk.ask("run", lambda con: book.load(con, run_id), take, self.fail)

    def _tell(self, told: Story) -> None:
        self.story = told
        where, self._pending = self._pending, ""
        if where == "F1" and not told.report.roots:
            where = ""
        if where:
            self.travel.go(where)
        self.changed()

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
        self.move(lambda: self.walk.event(direction, count=count), "no event there")

    def edge(self, direction: int) -> None:
        """First or last event."""
        self.move(lambda: self.walk.edge(direction), "no event there")

    def collective(self, direction: int) -> None:
        """Next or last collective."""
        self.move(lambda: self.walk.event(direction, COLLECTIVE), "no collective there that was logged")

    def recompile(self, direction: int) -> None:
        """Next or last recompile."""
        self.move(lambda: self.walk.event(direction, RECOMPILE), "no recompile there")

    def step(self, direction: int) -> None:
        """Next or last step."""
        self.move(lambda: self.walk.step(direction), "no step there")

    def to_rank(self, rank: int) -> None:
        """Look at another rank at the same moment."""
        if rank not in self.book.ranks:
            self.say(f"no rank {rank}; there are {ranks_phrase(self.book.ranks)}", is_error=True)
            return
        self.move(lambda: self.walk.to_rank(rank))

    def to_time(self, t: float, rank: int | None = None) -> None:
        """Go to a moment."""
        self.move(lambda: self.walk.to_time(t, rank))

    def to_event(self, position: int) -> None:
        """Go to an event."""
        self.move(lambda: self.walk.to_event(position))

    def back(self) -> None:
        """Where the cursor was before."""
        self.move(self.walk.back, "this is where you began")

    def forth(self) -> None:
        """Forth again."""
        self.move(self.walk.forth, "this is as far as you went")

    def move(self, how: Callable[[], bool | None], otherwise: str = "") -> None:
        """Move the cursor by `how`; where it finds nothing, say `otherwise`."""
        self.tour.forget()
        self.say(otherwise if how() is False else "")
        self.look()

    # Commands: view

    def toggle_rank(self) -> None:
        """Step over events of this rank only, or of any."""
        self.walk.only_rank = not self.walk.only_rank
        self.walk.settle()
        self.look()
        self.say(f"only {ranks_phrase([self.walk.rank])}" if self.walk.rank is not None else "events of any rank")

    def group(self) -> None:
        """Take the next way of making lanes."""
        self.say(self.view.group())

    def unfold(self, lane: Lane) -> None:
        """Unfold a group of lanes, or fold it."""
        self.view.unfold(lane)
        self.changed()

    def move_lane(self, direction: int) -> None:
        """Look at the next lane's rank."""
        rank = self.view.beside(self.walk.place.rank, direction)
        if rank is not None:
            self.to_rank(rank)

    def set_filter(self, text: str) -> None:
        """Let only events count that a filter wants; an empty text takes it away."""
        try:
            what = wanted.parse(text)
        except UsageError as error:
            self.say(str(error), is_error=True)
            return
        track, run_id = self.book.track, self.book.run_id

        def apply(found: Any) -> None:
            if track is not self.book.track:
                return
            track.set_filter(found)
            self.filter = text.strip() if found is not None else ""
            self.walk.settle()
            count = len(track.positions())
            self.look()
            left = "" if count else " (esc takes the filter away)"
            self.say(f"{count:,} of {len(track):,} events{left}" if found is not None else "all events")

        self.slow.ask("filter", lambda con: wanted.marks(con, track, run_id, what), apply, self.fail)

    def zoom(self, factor: float) -> None:
        """Show more or less of the run."""
        nothing = "this is the whole run" if factor > 1 else "this is as close as times are known"
        self._show_span(self.walk.window.zoomed(factor, self.walk.place.t), nothing)

    def pan(self, shares: float) -> None:
        """Show what is before or behind, leaving the cursor where it is."""
        nothing = "the run begins here" if shares < 0 else "the run ends here"
        self._show_span(self.walk.window.moved(shares), nothing)

    def whole(self) -> None:
        """Show the whole run."""
        self._show_span(self.book.window(), "this is the whole run")

    def _show_span(self, window: Window, otherwise: str) -> None:
        """Show a span of time; where that is the one that is shown, say `otherwise`."""
        self.say(otherwise if window.is_as(self.walk.window) else "")
        self.walk.window = window

    def play(self) -> None:
        """Play or pause."""
        self.is_playing = not self.is_playing
        self.changed()

    def tick(self, seconds: float) -> None:
        """Let so many seconds of play pass."""
        if self.is_playing:
            self.is_playing = self.walk.play(seconds)
            if not self.is_playing:
                self.say("the run ends here" if self.walk.speed > 0 else "the run begins here")
            self.look()

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
                    self.look()
                self.changed()

            self.desk.ask(f"page {page % 2}", _fetcher(seqs), put, self.fail)

    def words(self) -> Words | None:
        """Return the words of the event at the cursor, if they have come."""
        event = self.walk.place.event
        return None if event is None else self.pages.get(event)

    def look(self) -> None:
        """Ask for what the panels show of the place."""
        place, run_id = self.walk.place, self.book.run_id
        kind = "" if place.event is None else self.book.track.kind_of(place.event)
        words = self.words()
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
        self.changed()

    def _ask_focus(self, question: Callable[[DuckDBPyConnection], Focus]) -> None:
        self.desk.ask("focus", question, self._show, self.fail)

    def _show(self, found: Focus) -> None:
        self.focus = found
        self.changed()

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Show a message."""
        self.message, self.is_error = visible(text), is_error
        self.changed()

    def fail(self, error: Exception) -> None:
        """Say why a question has no answer."""
        self.say(" ".join(str(error).split()) or type(error).__name__, is_error=True)


def _fetcher(seqs: list[int]) -> Callable[[DuckDBPyConnection], list[Words]]:
    return lambda con: pages.fetch(con, seqs)
