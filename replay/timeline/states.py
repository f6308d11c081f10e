"""What each rank was doing: overlapping spans of what is known become one state at every moment.

SQL (sql/states.sql) says what was going on; here it is laid over each other in one pass over all ranks at once, so that
10,000 ranks cost no loop. `state_at` answers for a moment, in whichever direction somebody steps.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.timeline.statements import Runner

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MICRO = 1e6


@dataclass(frozen=True, slots=True)
class State:
    """What a rank was doing in a span of time; the fields are those of the table `states`."""

    rank: int
    state: str
    t_lo: float
    t_hi: float
    step: int | None
    comm_id: str | None
    op: str | None
    nth: int | None
    late: tuple[int, ...]
    summary: str
    file_id: int | None
    line_no: int | None


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans that may overlap, sorted by `who` (an index), then `t_lo` [s]."""

    who: Ints
    level: Ints
    t_lo: Floats
    t_hi: Floats


def fill(con: DuckDBPyConnection, runner: Runner) -> None:
    """Fill `states`. Needs all other derived tables but `events`, and the aligned operations that matching left."""
    runner.run("states")
    ends = con.execute("SELECT t_first, t_last FROM _extents ORDER BY run_id, rank").fetchnumpy()
    if not len(ends["t_first"]):
        return
    con.execute("""
        CREATE OR REPLACE TEMP TABLE _ordinals AS
        SELECT *, row_number() OVER (ORDER BY run_id, rank) - 1 AS ordinal FROM _extents
    """)
    rows = con.execute("""
        SELECT d.rowid AS row_no, e.ordinal, d.level,
            greatest(d.t_lo, e.t_first) AS t_lo, least(d.t_hi, e.t_last) AS t_hi
        FROM _doings AS d JOIN _ordinals AS e USING (run_id, rank)
        WHERE d.t_lo IS NOT NULL AND d.t_hi IS NOT NULL AND greatest(d.t_lo, e.t_first) < least(d.t_hi, e.t_last)
        ORDER BY e.ordinal, d.t_lo, d.t_hi DESC, d.rowid
    """).fetchnumpy()
    spans = Spans(_ints(rows["ordinal"]), _ints(rows["level"]), _floats(rows["t_lo"]), _floats(rows["t_hi"]))
    painted = overlay(spans, _floats(ends["t_first"]), _floats(ends["t_last"]))
    numbers = np.append(_ints(rows["row_no"]), -1)
    _painted = {
        "ordinal": painted.who,
        "row_no": numbers[painted.which],
        "t_lo": painted.t_lo,
        "t_hi": painted.t_hi,
    }
    con.execute("""
        INSERT INTO states (run_id, rank, state, t_lo, t_hi, step, comm_id, op, nth, late, summary, file_id, line_no)
        SELECT e.run_id, e.rank, coalesce(d.state, 'unknown'), p.t_lo, p.t_hi,
            coalesce(d.step, IF(p.t_lo < s.t_hi, s.step, NULL)), d.comm_id, d.op, d.nth, d.late,
            coalesce(d.summary, 'not told'), coalesce(d.file_id, e.first_file), coalesce(d.line_no, e.first_line)
        FROM _painted AS p
        JOIN _ordinals AS e USING (ordinal)
        LEFT JOIN _doings AS d ON d.rowid = p.row_no
        ASOF LEFT JOIN (SELECT run_id, rank, t_lo, t_hi, step FROM _doings WHERE level = 1 AND step IS NOT NULL) AS s
            ON s.run_id = e.run_id AND s.rank = e.rank AND p.t_lo >= s.t_lo
        ORDER BY e.run_id, e.rank, p.t_lo
    """)
    con.execute("DROP TABLE _ordinals")


@dataclass(frozen=True, slots=True)
class Painted:
    """Spans that follow each other: of whom (index), which of the given spans holds (-1: none), from when to when."""

    who: Ints
    which: Ints
    t_lo: Floats
    t_hi: Floats


def overlay(spans: Spans, first: Floats, last: Floats) -> Painted:
    """Lay spans over each other: the higher level holds, of one level the one that began later.

    Spans lie within `first[who]..last[who]` [s]. The result covers that whole range of everybody, without overlap;
    times closer than a microsecond are one.
    """
    origin = float(first.min())
    width = int((float(last.max()) - origin) * _MICRO) + 2

    def key(index: Ints, t: Floats) -> Ints:
        return index * width + np.rint((t - origin) * _MICRO).astype(np.int64)

    everybody = np.arange(len(first), dtype=np.int64)
    lo, hi = key(spans.who, spans.t_lo), key(spans.who, spans.t_hi)
    cuts = np.concatenate([lo, hi, key(everybody, first), key(everybody, last)])
    times = np.concatenate([spans.t_lo, spans.t_hi, first, last])
    cuts, places = np.unique(cuts, return_index=True)
    times = times[places]
    holds = np.full(len(cuts), -1, np.int64)
    for value in np.unique(spans.level):
        of_level = np.flatnonzero(spans.level == value)
        found = _holding(lo[of_level], hi[of_level], cuts)
        holds = np.where(found >= 0, of_level[found], holds)
    owner = cuts // width
    ends = np.append(owner[1:] != owner[:-1], True)
    alone = ends & np.append(True, owner[1:] != owner[:-1])  # a range without length is one moment
    begins = np.append(True, (holds[1:] != holds[:-1]) | (owner[1:] != owner[:-1])) & (~ends | alone)
    at = np.flatnonzero(begins)
    stop = np.empty(len(at), np.int64)
    final = np.flatnonzero(ends)
    stop[:] = np.minimum(np.append(at[1:], len(cuts)), final[owner[at]])
    return Painted(owner[at], holds[at], times[at], times[stop])


def _holding(lo: Ints, hi: Ints, cuts: Ints) -> Ints:
    """Return for each moment of `cuts` (sorted) the span that holds it and began last, -1 for none; `lo` is sorted."""
    outer = np.arange(-1, len(lo) - 1, dtype=np.int64)
    outer[1:][np.maximum.accumulate(hi)[:-1] <= hi[1:]] = -1  # nothing before ends later
    open_ = np.flatnonzero(outer >= 0)
    while len(open_ := open_[hi[outer[open_]] <= hi[open_]]):  # the nearest before that ends later: skip what does not
        outer[open_] = outer[outer[open_]]
    found = np.searchsorted(lo, cuts, side="right") - 1
    ended = np.flatnonzero(found >= 0)
    while len(ended := ended[hi[found[ended]] <= cuts[ended]]):
        found[ended] = outer[found[ended]]
        ended = ended[found[ended] >= 0]
    return found


def state_at(con: DuckDBPyConnection, t: float, run_id: int | None = None) -> list[State]:
    """Return what each rank was doing at the moment `t` [s since 1970], by rank; the last run's if none is named.

    Before a rank was heard it has no state; behind the end of the run everybody keeps the last one.
    """
    run = con.execute(
        "SELECT run_id, t_last FROM runs WHERE run_id = coalesce(?, (SELECT max(run_id) FROM runs))", [run_id]
    ).fetchone()
    if run is None or run[1] is None:
        return []
    t = min(t, math.nextafter(run[1], -math.inf))
    return _states(con, "run_id = ? AND t_lo <= ? AND (? < t_hi OR t_lo = t_hi)", [run[0], t, t])


def state_of_event(con: DuckDBPyConnection, seq: int) -> list[State]:
    """Return what each rank was doing at the event `seq` (events.seq); [] where there is no such event or no stamp."""
    event = con.execute("SELECT run_id, t_lo FROM events WHERE seq = ?", [seq]).fetchone()
    return [] if event is None or event[1] is None else state_at(con, event[1], event[0])


def next_change(con: DuckDBPyConnection, t: float, run_id: int, *, backwards: bool = False) -> float | None:
    """Return the moment nearest to `t` at which a rank's state changes, later or earlier; None where there is none."""
    query = (
        "SELECT max(t_lo) FROM states WHERE run_id = ? AND t_lo < ?"
        if backwards
        else "SELECT min(t_lo) FROM states WHERE run_id = ? AND t_lo > ?"
    )
    row = con.execute(query, [run_id, t]).fetchone()
    return None if row is None else row[0]


def _states(con: DuckDBPyConnection, where: str, parameters: list[Any]) -> list[State]:
    names = [field.name for field in fields(State)]
    query = f"SELECT {', '.join(names)} FROM states WHERE {where} ORDER BY rank"
    rows = (dict(zip(names, row, strict=True)) for row in con.execute(query, parameters).fetchall())
    return [State(**(row | {"late": tuple(row["late"] or ())})) for row in rows]


def _floats(values: Any) -> Floats:
    return np.asarray(values, np.float64)


def _ints(values: Any) -> Ints:
    return np.asarray(values, np.int64)
