"""Happens before: bounds for what carries no stamp, from where ranks meet.

Within a stream lines follow each other. Between streams, whoever comes to a meeting (timeline/sql/meetings.sql) does so
before anybody leaves it, and a process says all before it ends. These are bounds on times, so they are carried through
streams and meetings until nothing changes; file order between streams is never one (stdout is buffered, stderr is not).
"""

from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.store import schema
from replay.timeline.statements import Runner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDS = 200
"""Bounds are carried at most so often; those that are reached by then hold, others would only be narrower."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Moments of streams, sorted by stream and place in it; times in seconds, infinite where nothing is known."""

    stream: Ints
    meeting: Ints
    """Where the ranks met, -1 where they did not."""
    is_leave: NDArray[np.bool_]
    t_lo: Floats
    t_hi: Floats


def narrow(moments: Moments) -> tuple[Floats, Floats]:
    """Return the narrowest bounds that follow from streams and meetings; where bounds contradict, the given ones."""
    low, high = moments.t_lo.copy(), moments.t_hi.copy()
    if not len(low):
        return low, high
    number = int(moments.meeting.max(initial=-1)) + 1
    comes, leaves = ((moments.meeting >= 0) & (moments.is_leave == which) for which in (False, True))
    come_to, leave_from = moments.meeting[comes], moments.meeting[leaves]
    for _ in range(_ROUNDS):
        before = low.copy(), high.copy()
        last_come, first_gone = np.full(number, -np.inf), np.full(number, np.inf)
        np.maximum.at(last_come, come_to, low[comes])
        np.minimum.at(first_gone, leave_from, high[leaves])
        low[leaves] = np.maximum(low[leaves], last_come[leave_from])
        high[comes] = np.minimum(high[comes], first_gone[come_to])
        low, high = _running(low, moments.stream), -_running(-high[::-1], -moments.stream[::-1])[::-1]
        if np.array_equal(low, before[0]) and np.array_equal(high, before[1]):
            break
    wrong = low > high
    low[wrong], high[wrong] = moments.t_lo[wrong], moments.t_hi[wrong]
    return low, high


def _running(values: Floats, stream: Ints) -> Floats:
    """The largest value so far within each stream; streams are sorted."""
    # Ranks of values are small integers, so a stream's can be lifted over those of all streams before it.
    levels, place = np.unique(values, return_inverse=True)
    index = np.cumsum(np.append(False, stream[1:] != stream[:-1]))
    lifted = np.maximum.accumulate(place + index * len(levels))
    return np.asarray(levels[lifted - index * len(levels)])


def fill(con: DuckDBPyConnection, runner: Runner) -> None:
    """Narrow t_lo and t_hi of lines and events without a stamp. Needs the meetings and `clocks`."""
    runner.run("lives")
    open_ = con.execute("""
        SELECT run_id FROM _meetings
        WHERE (enter_line IS NOT NULL AND enter_lo IS DISTINCT FROM enter_hi)
            OR (leave_line IS NOT NULL AND leave_lo IS DISTINCT FROM leave_hi) OR coalesce(enter_lo, leave_lo) IS NULL
        UNION
        SELECT b.run_id FROM _bounds_of AS b JOIN lines AS l USING (run_id, rank) WHERE l.t_lo IS NULL OR l.t_hi IS NULL
        ORDER BY ALL
    """).fetchall()
    for (run,) in open_:
        _fill_run(con, runner, run)


def _fill_run(con: DuckDBPyConnection, runner: Runner, run: int) -> None:
    runner.run("moments", {"run": run})
    rows = con.execute("SELECT stream, meeting, is_leave, t_lo, t_hi FROM _moments").fetchnumpy()
    moments = Moments(*(np.asarray(rows[name]) for name in ("stream", "meeting", "is_leave", "t_lo", "t_hi")))
    low, high = narrow(moments)
    if np.array_equal(low, moments.t_lo) and np.array_equal(high, moments.t_hi):
        return
    _narrowed = {"nth": np.arange(len(low)), "low": low, "high": high}
    con.execute("""
        CREATE OR REPLACE TEMP TABLE _narrow AS
        SELECT m.file_id, m.rank, m.line_no, n.low - m.slack AS low, n.high + m.slack AS high
        FROM (SELECT *, row_number() OVER () - 1 AS nth FROM _moments) AS m JOIN _narrowed AS n USING (nth)
    """)
    _write_back(con, run)


def _write_back(con: DuckDBPyConnection, run: int) -> None:
    """Narrow lines, then the rows of events on them; what nothing bounds stays unknown."""
    con.execute(
        """
        CREATE OR REPLACE TEMP TABLE _bounded AS
        SELECT file_id, line_no, rank, IF(isfinite(lo), lo, NULL) AS t_lo, IF(isfinite(hi), hi, NULL) AS t_hi
        FROM (
            SELECT l.file_id, l.line_no, l.rank, coalesce(greatest(l.t_lo, b.low), '-infinity') AS lo,
                coalesce(least(l.t_hi, a.high), 'infinity') AS hi
            FROM lines AS l
            ASOF LEFT JOIN _narrow AS b ON b.file_id = l.file_id AND b.rank = l.rank AND l.line_no >= b.line_no
            ASOF LEFT JOIN _narrow AS a ON a.file_id = l.file_id AND a.rank = l.rank AND l.line_no <= a.line_no
            WHERE l.run_id = ? AND (l.t_lo IS DISTINCT FROM l.t_hi OR l.t_lo IS NULL)
        ) WHERE lo <= hi
        """,
        [run],
    )
    for table in schema.tables().values():
        if table.has_common or table.name == "lines":
            con.execute(
                f"""
                UPDATE {table.name} AS x SET t_lo = greatest(x.t_lo, b.t_lo), t_hi = least(x.t_hi, b.t_hi)
                FROM _bounded AS b WHERE b.file_id = x.file_id AND b.line_no = x.line_no AND b.rank = x.rank
                    AND x.run_id = ? AND (x.t_lo IS DISTINCT FROM x.t_hi OR x.t_lo IS NULL)
                    AND coalesce(greatest(x.t_lo, b.t_lo) <= least(x.t_hi, b.t_hi), TRUE)
                """,
                [run],
            )
    con.execute("DROP TABLE _bounded")
