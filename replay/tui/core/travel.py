"""Going to places that only the database knows: a line, a step, the place where ranks part, another run."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from replay.errors import UsageError
from replay.tui.core import goal, places
from replay.tui.core.story import Ref
from replay.tui.core.walk import Place

if TYPE_CHECKING:
    from replay.tui.core.session import Session


class Travel:
    """Moves the cursor of a session to what the database says of a place."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._is_untimed = False
        """Whether the line that was gone to is told without a time: then its event's time is taken."""

    def to_ref(self, ref: Ref) -> None:
        """Go to a line of evidence."""
        self.go_to(ref.run_id, ref.file_id, ref.line_no, ref.rank, ref.t)

    def go(self, text: str) -> None:
        """Go where a text says."""
        try:
            where = goal.parse(text, self._session.book.first, self._session.book.last)
        except UsageError as error:
            self._session.say(str(error), is_error=True)
            return
        number = int(where.number)
        if where.what is goal.What.TIME:
            self._session.to_time(where.number)
        elif where.what is goal.What.RANK:
            self._session.to_rank(number)
        elif where.what is goal.What.STEP:
            self._session.move(lambda: self._session.walk.to_step(number), f"no step {number} was reported")
        elif where.what is goal.What.FINDING:
            self._session.tour.to(where.name)
        elif where.what is goal.What.LINE:
            self._session.desk.ask(
                "place", lambda con: places.of_path(con, where.name, number), self._arrive, self._session.fail
            )
        else:
            self.first_difference()

    def first_difference(self) -> None:
        """Go to the first place where ranks (or runs) part."""
        run_id = self._session.book.run_id
        self._session.desk.ask(
            "place", lambda con: places.first_difference(con, run_id), self._arrive, self._session.fail
        )

    def to_line(self, file_id: int, line_no: int | None) -> None:
        """Go to a line of a file."""
        self._session.desk.ask(
            "place", lambda con: places.of_line(con, file_id, line_no), self._arrive, self._session.fail
        )

    def _arrive(self, found: tuple[Ref | None, str]) -> None:
        ref, said = found
        if ref is not None:
            self.to_ref(ref)
        self._session.say(said)

    def go_to(self, run_id: int, file_id: int | None, line_no: int | None, rank: int | None, t: float | None) -> None:
        """Go to a line; which event it is, only the database knows."""
        self._session.in_run(run_id, lambda: self._stand(run_id, file_id, line_no, rank, t))

    def _stand(self, run_id: int, file_id: int | None, line_no: int | None, rank: int | None, t: float | None) -> None:
        self._session.tour.forget()
        self._is_untimed = t is None
        moment = (
            self._session.walk.place.t if t is None else min(max(t, self._session.book.first), self._session.book.last)
        )
        looked_at = self._session.walk.place.rank if rank is None else rank
        here = self._session.book.track.at(moment, rank)
        self._session.walk.to_place(Place(moment, here, looked_at, file_id, line_no))
        self._session.look()
        self._session.desk.ask(
            "event", lambda con: places.events_at(con, run_id, file_id, line_no), self._is_event, self._session.fail
        )

    def _is_event(self, found: tuple[int | None, int | None, list[int]]) -> None:
        """The line that was gone to is that of these events: stand on one that was then."""
        file_id, line_no, seqs = found
        place = self._session.walk.place
        if (place.file_id, place.line_no) != (file_id, line_no) or not seqs:
            return
        positions = np.searchsorted(self._session.book.track.seq, seqs)
        position = int(positions[0])
        if position >= len(self._session.book.track):
            return
        t = float(self._session.book.track.t[position])
        if self._is_untimed or abs(t - place.t) < 1e-3:
            self._session.walk.to_event(position, remember=False)
            self._session.walk.place = replace(self._session.walk.place, file_id=file_id, line_no=line_no)
            self._session.changed()

    def next_run(self, direction: int) -> None:
        """Next or last run."""
        ids = [h.run_id for h in self._session.heads]
        n = ids.index(self._session.book.run_id) + direction if self._session.book.run_id in ids else -1
        if len(ids) < 2 or not 0 <= n < len(ids):
            self._session.say("no run there" if len(ids) > 1 else "there is one run")
            return

        def arrived() -> None:
            self._session.look()
            self._session.say(f"run {ids[n]}: {self._session.heads[n].outcome}")

        self._session.in_run(ids[n], arrived)
