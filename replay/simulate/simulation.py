"""A history that can be replayed as often as one likes: as it was, or with seconds taken out of own times."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.simulate import cuts, doings
from replay.simulate.cuts import Cut, Work
from replay.simulate.history import History, read
from replay.simulate.medians import medians
from replay.simulate.model import Cause
from replay.simulate.recurrence import Course, Schedule, replay, schedule

Floats = NDArray[np.float64]

_ALONE = 12
"""From so many ranks on that share a kind of cause only what they cost together is computed."""
_WORTH = 0.05
"""Share of what all ranks together cost from which one of them is shown alone."""
_SLOWEST, _SLOW, _SLOW_SHARE = 3, 0.05, 0.01
"""How many ranks that are slower than the others are shown, and from how many seconds or what share of the run on."""


def prepare(con: DuckDBPyConnection, run_id: int) -> "Simulation | str":
    """Return a run that can be replayed, or why it cannot be."""
    told = read(con, run_id)
    if isinstance(told, str):
        return told
    plan = schedule(told.who, told.what, told.enter)
    if plan is None:
        return (
            "operations of different ranks wait for each other in circles: they were not logged in the order in which"
            " they took place, or do not belong together"
        )
    return Simulation(con, told, plan)


class Simulation:
    """One run: `history` as logged, `unchanged` as the recurrence makes it."""

    def __init__(self, con: DuckDBPyConnection, history: History, plan: Schedule) -> None:
        self._con = con
        self.history = history
        self._own, self._after = history.own, history.after
        self._plan = plan
        self.knots = plan.knots
        self.unchanged = self._replayed(self._own)
        self._work: Work | None = None

    @property
    def work(self) -> Work:
        """The own times taken apart."""
        if self._work is None:
            self._work = cuts.take_apart(self.history, doings.read(self._con, self.history.run_id))
        return self._work

    def _replayed(self, own: Floats) -> Course:
        told = self.history
        return replay(
            self._plan, own, who=told.who, what=told.what, after=self._after, waits=told.waits, begin=told.begin
        )

    def changed(self, taken: Iterable[Cut]) -> Course:
        """Return the course of the run without what is cut."""
        own = self._own.copy()
        for cut in taken:
            np.subtract.at(own, cut.arrival, cut.seconds)
        return self._replayed(np.maximum(own, 0.0))

    def ends(self, course: Course) -> Floats:
        """Return the last moment of each rank [s since the history's origin]."""
        return np.asarray(course.leave[np.append(self.history.who[1:] != self.history.who[:-1], True)])

    @property
    def error(self) -> float:
        """Error of the run's span in the replay of the unchanged run, as a share of the logged span."""
        begin = float(self.history.begin.min())
        logged = float(self.history.end.max()) - begin
        return abs(float(self.ends(self.unchanged).max()) - begin - logged) / logged if logged else 0.0

    def waited(self, course: Course) -> Floats:
        """Return the seconds that each rank waited for others."""
        told = self.history
        waits = np.where(told.waits, course.start - course.enter, 0.0)
        return np.asarray(np.bincount(told.who, waits, len(told.ranks)), np.float64)

    def cause(self, what: str, taken: Sequence[Cut]) -> Cause:
        """Return what these cuts together would save."""
        ends = self.ends(self.unchanged)
        course = self.ends(self.changed(taken))
        first = next((c for c in taken if c.file_id is not None), None)
        path = None
        if first is not None:
            row = self._con.execute("SELECT path FROM files WHERE file_id = ?", [first.file_id]).fetchone()
            path = row[0] if row else None
        return Cause(
            what=what,
            ranks=tuple(sorted(int(self.history.ranks[c.rank]) for c in taken)),
            times=sum(c.times for c in taken),
            own_s=float(sum(c.seconds.sum() for c in taken)),
            saved_s=float(ends.max() - course.max()),
            lost_s=float((ends - course).sum()),
            path=path,
            line=first.line_no if first else None,
        )

    def causes(self, taken: Sequence[Cut]) -> tuple[Cause, ...]:
        """Return what each kind of cut would save, and where few ranks share it, each of them alone; dearest first."""
        by_kind: dict[str, list[Cut]] = {}
        for cut in taken:
            by_kind.setdefault(cut.what, []).append(cut)
        found: list[Cause] = []
        for what, members in by_kind.items():
            whole = self.cause(what, members)
            found.append(whole)
            if 1 < len(members) <= _ALONE and what != "guard-collectives":
                alone = [self.cause(what, [cut]) for cut in members]
                found += [c for c in alone if c.saved_s > _WORTH * max(whole.saved_s, 0.0)]
        return tuple(sorted(found, key=lambda c: (-c.saved_s, -len(c.ranks), c.what, c.ranks)))

    def all_known(self) -> list[Cut]:
        """Return everything that is known to have taken time: what was heard, and ranks slower than the others."""
        heard = [cut for kind in self.work.kinds for cut in cuts.without(self.work, kind, ())]
        return [*heard, *self._slow(heard)]

    def _slow(self, heard: Sequence[Cut]) -> list[Cut]:
        """Ranks that need more time than the others beyond what is heard of them; the slowest."""
        history = self.history
        known = np.zeros(len(history.who))
        for cut in heard:
            np.add.at(known, cut.arrival, cut.seconds)
        own = self._own - known
        met = (history.what < history.operations) & (history.kind >= 0)
        usual = medians(own[met], history.what[met], history.operations)
        beyond = np.zeros(len(own))
        beyond[met] = own[met] - usual[history.what[met]]
        total = np.bincount(history.who, beyond, len(history.ranks))
        least = max(_SLOW, _SLOW_SHARE * float(history.end.max() - history.begin.min()))
        found: list[Cut] = []
        for index in np.argsort(-total, kind="stable")[:_SLOWEST].tolist():
            rank = int(history.ranks[index])
            beside = cuts.as_median(history, (rank,)) if total[index] > least else []
            found += [replace(cut, seconds=cut.seconds - known[cut.arrival]) for cut in beside]
        return found
