"""What is loaded of a run before it is shown: its events and spans as columns, its ranks, steps and joints."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.tui.core import spans, track
from replay.tui.core.spans import Spans
from replay.tui.core.track import Track
from replay.tui.core.window import Window, whole


@dataclass(frozen=True, slots=True)
class RunHead:
    """One run in the list of runs; `ranks` were heard."""

    run_id: int
    name: str
    outcome: str
    ranks: int


@dataclass(frozen=True, slots=True)
class Joints:
    """Moments at which ranks met: the last arrival at each matched operation [s since 1970]; `is_odd`: not all came
    alike.
    """

    t: NDArray[np.float64]
    is_odd: NDArray[np.bool_]


@dataclass(slots=True)
class Book:
    """One run, ready to be stepped through. Times are in s since 1970."""

    run_id: int
    track: Track
    spans: Spans
    ranks: tuple[int, ...]
    hosts: Mapping[int, str]
    steps: tuple[int, ...]
    step_ends: tuple[float, ...]
    joints: Joints
    first: float
    last: float
    last_step: int | None
    at_fault: frozenset[int] = field(default_factory=frozenset)

    def window(self) -> Window:
        """Return the window of the whole run."""
        return whole(self.first, self.last)

    def step_at(self, t: float) -> int | None:
        """Return the step that was running at a time, None where no step is told."""
        if not self.steps:
            return None
        n = bisect_left(self.step_ends, t)
        return self.steps[min(n, len(self.steps) - 1)]


@dataclass(frozen=True, slots=True)
class Opened:
    """What the first screen needs: all runs, and the first of them."""

    heads: tuple[RunHead, ...]
    book: Book


def open_first(con: DuckDBPyConnection) -> Opened:
    """Read what the first screen needs."""
    found = heads(con)
    return Opened(found, load(con, found[0].run_id if found else 1))


def heads(con: DuckDBPyConnection) -> tuple[RunHead, ...]:
    """Return the runs of a database."""
    rows = con.execute(
        """
        SELECT run_id, coalesce(name, key, ''), coalesce(outcome, 'unknown'), coalesce(ranks_seen, 0)
        FROM runs ORDER BY run_id
        """
    ).fetchall()
    return tuple(RunHead(*row) for row in rows)


def load(con: DuckDBPyConnection, run_id: int) -> Book:
    """Read what stepping through a run needs."""
    hosts = dict(
        con.execute("SELECT rank, coalesce(host, '') FROM ranks WHERE run_id = ? ORDER BY rank", [run_id]).fetchall()
    )
    events, doing = track.load(con, run_id), spans.load(con, run_id)
    ranks = sorted({*hosts, *(int(r) for r in doing.ranks), *(int(r) for r in np.unique(events.rank) if r >= 0)})
    steps = con.execute(
        """
        SELECT step, max(t_hi) AS t_end FROM steps WHERE run_id = ? AND t_hi IS NOT NULL
        GROUP BY epoch, step ORDER BY t_end, epoch, step
        """,
        [run_id],
    ).fetchall()
    met = con.execute(
        """
        SELECT last_enter, coalesce(len(odd) > 0 OR len(missing) > 0, FALSE) FROM matched
        WHERE run_id = ? AND last_enter IS NOT NULL ORDER BY last_enter
        """,
        [run_id],
    ).fetchall()
    first, last = _extent(con, run_id, events, doing)
    numbers = [s for s, _ in steps if s is not None]
    return Book(
        run_id=run_id,
        track=events,
        spans=doing,
        ranks=tuple(ranks),
        hosts=hosts,
        steps=tuple(s for s, _ in steps),
        step_ends=tuple(t for _, t in steps),
        joints=Joints(np.array([t for t, _ in met], dtype=np.float64), np.array([o for _, o in met], dtype=np.bool_)),
        first=first,
        last=last,
        last_step=max(numbers) if numbers else None,
        at_fault=frozenset(
            r
            for (r,) in con.execute(
                """
                SELECT DISTINCT unnest(ranks) FROM findings
                WHERE run_id = ? AND is_root AND kind IN ('cause', 'symptom')
                """,
                [run_id],
            ).fetchall()
        ),
    )


def _extent(con: DuckDBPyConnection, run_id: int, events: Track, doing: Spans) -> tuple[float, float]:
    """First and last moment of a run: of its lines and of what its ranks are known to have done."""
    if not events.is_timed:
        return 0.0, float(max(len(events) - 1, 0))
    row = con.execute("SELECT t_first, t_last FROM runs WHERE run_id = ?", [run_id]).fetchone() or (None, None)
    times = [t for t in row if t is not None]
    times += [float(events.t[0]), float(events.t[-1])] if len(events) else []
    times += [float(doing.t_lo.min()), float(doing.t_hi.max())] if len(doing) else []
    return (min(times), max(times)) if times else (0.0, 0.0)
