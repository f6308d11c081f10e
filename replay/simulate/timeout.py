"""What a limit on waiting would have done: when it would have ended the run, and who would have given up."""

from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection

from replay.simulate.history import History
from replay.simulate.model import Limit
from replay.simulate.recurrence import Course

_NAMED = 8


@dataclass(frozen=True, slots=True)
class Stop:
    """The moment [s since the history's origin] from which the run is over, in words, and what is not known."""

    at: float | None = None
    words: str | None = None
    limits: tuple[Limit, ...] = ()


def stop(con: DuckDBPyConnection, told: History, course: Course, seconds: float) -> Stop:
    """Return what a limit of so many seconds on waiting in an operation does to a course of the run."""
    waited = _over(told, course, seconds)
    hung = con.execute(
        """
        SELECT min(since), min(t), list(DISTINCT rank ORDER BY rank), max(op) FROM absentees
        WHERE run_id = ? AND since IS NOT NULL AND t IS NOT NULL
        """,
        [told.run_id],
    ).fetchone()
    if hung is None or hung[0] is None:
        return waited
    since, gave_up, late, op = hung
    known = float(gave_up - since)
    if seconds > known:
        limit = Limit(f"whether {_ranks(late)} would have come after {known:.0f} s: that is where the log ends")
        return Stop(waited.at, waited.words, (limit,))
    at = since - told.origin + seconds
    if waited.at is not None and waited.at < at:
        return waited
    aftermath = max(float(told.end.max()) - (gave_up - told.origin), 0.0)
    words = (
        f"the wait for {_ranks(late)} in {op or 'an operation'} would end after {seconds:g} s instead of {known:.0f} s"
    )
    return Stop(at + aftermath, words)


def _over(told: History, course: Course, seconds: float) -> Stop:
    met = (told.what < told.operations) & told.waits
    over = np.flatnonzero(np.where(met, course.start - course.enter, 0.0) > seconds)
    if not len(over):
        return Stop()
    first = over[np.argmin(course.enter[over])]
    at = float(course.enter[first]) + seconds
    late = np.flatnonzero((told.what == told.what[first]) & (course.enter > at))
    ranks = [int(told.ranks[told.who[member]]) for member in late]
    began = at - float(told.begin.min())
    return Stop(
        at,
        f"rank {int(told.ranks[told.who[first]])} would give up waiting for {_ranks(ranks)} {began:.1f} s into the run",
    )


def _ranks(ranks: list[int]) -> str:
    shown = ", ".join(str(r) for r in sorted(ranks)[:_NAMED])
    more = f" and {len(ranks) - _NAMED} more" if len(ranks) > _NAMED else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
