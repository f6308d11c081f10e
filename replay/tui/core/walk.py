"""The cursor: one moment in the run, where it has been, and every way to move it. Nothing here asks the database."""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

import numpy as np

from replay.tui.core.book import Book
from replay.tui.core.track import STEP
from replay.tui.core.window import Window

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 1000.0)
_KEPT_PLACES = 200


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cursor stands: a time [s since 1970], the event at it or the last before it, the rank looked at.

    `file_id` and `line_no` are set where a line was chosen that is not the event's own.
    """

    t: float
    event: int | None
    rank: int | None
    file_id: int | None = None
    line_no: int | None = None


class Walk:
    """The cursor of one run."""

    def __init__(self, book: Book) -> None:
        self.book = book
        first = book.track.at(-np.inf)
        self.place = Place(book.first, first, book.track.rank_of(first) if first is not None else None)
        if self.place.rank is None and book.ranks:
            self.place = replace(self.place, rank=book.ranks[0])
        self.window: Window = book.window()
        self.only_rank = False
        """Whether only events of the rank looked at are stepped over."""
        self.speed = 1.0
        """Seconds of the run per second of play; negative plays backwards."""
        self._back: list[Place] = []
        self._forth: list[Place] = []

    @property
    def rank(self) -> int | None:
        """The rank whose events are stepped over; None: any."""
        return self.place.rank if self.only_rank else None

    # Moving

    def event(self, direction: int, kinds: frozenset[str] | None = None, count: int = 1) -> bool:
        """Go to the next (1) or last (-1) event that counts, of some kinds; False at the end."""
        found = self._beside(direction, kinds)
        if found is None:
            return False
        for _ in range(count - 1):
            beside = self.book.track.beside(found, direction, self.rank, kinds)
            if beside is None:
                break
            found = beside
        self.to_event(found, remember=kinds is not None)
        return True

    def _beside(self, direction: int, kinds: frozenset[str] | None) -> int | None:
        """The next event from the moment of the cursor, which may be later than its event: in the middle of a wait."""
        here, track = self.place.event, self.book.track
        if here is None:
            return None
        behind = int(np.searchsorted(track.t, self.place.t, "right"))
        if self.place.t > track.t[here]:
            found = track.beside(behind - 1 if direction > 0 else behind, direction, self.rank, kinds)
            if found != here:
                return found
        return track.beside(here, direction, self.rank, kinds)

    def edge(self, direction: int) -> bool:
        """Go to the first (-1) or last (1) event that counts; False where none does."""
        found = self.book.track.positions(self.rank)
        if len(found):
            self.to_event(int(found[-1 if direction > 0 else 0]))
        return bool(len(found))

    def step(self, direction: int) -> bool:
        """Go to the end of the next or last step: of the rank looked at, or of the ranks that report it first."""
        if self.only_rank or not len(self.book.step_ends):
            return self.event(direction, STEP)
        here = self.book.step_at(self.place.t)
        events = self.book.track
        ends = self.book.step_ends
        n = bisect_right(ends, self.place.t) if direction > 0 else bisect_left(ends, self.place.t) - 1
        if not 0 <= n < len(ends) or here is None:
            return False
        self.to_time(ends[n], remember=True)
        found = events.at(self.place.t)
        if found is not None:
            rank = events.rank_of(found)
            self.place = replace(self.place, event=found, rank=self.place.rank if rank is None else rank)
        return True

    def to_event(self, position: int, *, remember: bool = True) -> None:
        """Go to an event."""
        events = self.book.track
        rank = events.rank_of(position)
        self._go(Place(float(events.t[position]), position, self.place.rank if rank is None else rank), remember)

    def to_time(self, t: float, rank: int | None = None, *, remember: bool = True) -> None:
        """Go to a moment, of a rank where one is named."""
        t = min(max(t, self.book.first), self.book.last)
        looked_at = self.place.rank if rank is None else rank
        found = self.book.track.at(t, looked_at if rank is not None or self.only_rank else None)
        self._go(Place(t, found, looked_at), remember)

    def to_rank(self, rank: int) -> None:
        """Look at another rank, at the same moment."""
        if rank != self.place.rank:
            self._go(Place(self.place.t, self.book.track.at(self.place.t, rank), rank), False)

    def to_place(self, place: Place) -> None:
        """Go to a place that somebody else found."""
        self._go(place, True)

    def to_step(self, number: int) -> bool:
        """Go to the end of a step; False where no step has this number."""
        for step, end in zip(self.book.steps, self.book.step_ends, strict=True):
            if step == number:
                self.to_time(end)
                return True
        return False

    def _go(self, place: Place, remember: bool) -> None:
        if remember and place != self.place:
            self._back.append(self.place)
            del self._back[:-_KEPT_PLACES]
            self._forth.clear()
        self.place = place
        self.window = self.window.holding(place.t)

    def back(self) -> bool:
        """Go back to where the cursor was before; False where it was nowhere else."""
        return self._return(self._back, self._forth)

    def forth(self) -> bool:
        """Go forth again; False where nothing was gone back from."""
        return self._return(self._forth, self._back)

    def _return(self, source: list[Place], target: list[Place]) -> bool:
        if not source:
            return False
        target.append(self.place)
        self.place = source.pop()
        self.window = self.window.holding(self.place.t)
        return True

    # Time

    def show(self, t_lo: float, t_hi: float) -> None:
        """Show a span of time."""
        self.window = self.window.around(t_lo, t_hi)

    def faster(self, direction: int) -> float:
        """Take the next higher (1) or lower (-1) speed and return it."""
        n = SPEEDS.index(abs(self.speed)) + direction
        self.speed = SPEEDS[min(max(n, 0), len(SPEEDS) - 1)] * (1 if self.speed > 0 else -1)
        return self.speed

    def reverse(self) -> None:
        """Play the other way round."""
        self.speed = -self.speed

    def play(self, seconds: float) -> bool:
        """Let so many seconds pass at the chosen speed; False at the end of the run."""
        t = self.place.t + seconds * self.speed
        self.to_time(t, remember=False)
        return self.book.first < t < self.book.last

    # Filter

    def settle(self) -> None:
        """After the filter changed: stand on an event that counts, if there is one."""
        found = self.book.track.at(self.place.t, self.rank)
        if found is not None:
            self.place = replace(self.place, event=found, file_id=None, line_no=None)
