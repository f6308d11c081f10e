"""How the clocks of hosts stand to each other, told by operations in which ranks meet.

Nobody leaves a collective before the last has come. So a stamp of coming on one host and one of leaving on another
bound the difference of their clocks, and many of them leave a narrow band of straight lines (offset and drift).
Bounds, not means: networks are not symmetric, and a mean of late stamps is late.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.store import schema
from replay.timeline.statements import Runner

Floats = NDArray[np.float64]

MOST_DRIFT = 500e-6
"""No clock of a computer is further off: quartz is specified to some 100 ppm, and time servers slew by 500."""
_FAR = 10 * 366 * 86400.0
_LEAST = 0.001
"""Seconds by which a clock must be off before times are corrected: logs seldom tell less than a millisecond."""
_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Line:
    """Clock reading minus true time, as a line over the clock's own reading, and how far the truth may be from it."""

    origin: float
    """Reading at which `offset` holds [s]."""
    offset: float
    """Seconds ahead."""
    slope: float
    """Seconds that it gains per second of its own."""
    bound: float
    """The truth lies within so many seconds of the line, over the range that the line was made for."""

    def at(self, reading: Floats) -> Floats:
        """Seconds ahead at these readings of the clock."""
        return self.offset + self.slope * (reading - self.origin)


def fit(reading: Floats, low: Floats, reading_up: Floats, high: Floats, span: tuple[float, float]) -> Line | None:
    """Return the line in the middle of all that keep the bounds, None where none does or nothing bounds it.

    At `reading` [s of the clock] it is at least `low` ahead, at `reading_up` at most `high`; it must hold over `span`.
    """
    start, end = span
    length = max(end - start, 1e-9)
    steep = MOST_DRIFT * length
    # A line is its two values at the ends of the span; what it may be is a polygon there, cut by each bound.
    inner = _FAR - steep
    corners = [[-_FAR, -_FAR], [-inner, -_FAR], [_FAR, inner], [_FAR, _FAR], [inner, _FAR], [-_FAR, -inner]]
    polygon = np.array(corners)
    lower, upper = (reading - start) / length, (reading_up - start) / length
    normals = np.concatenate([np.stack([1 - lower, lower], 1), np.stack([upper - 1, -upper], 1)])
    least = np.concatenate([low, -high])
    if not len(low) or not len(high):
        return None
    for _ in range(_ROUNDS):
        short = least[:, None] - normals @ polygon.T
        worst = int(np.argmax(short.max(1)))
        if short[worst].max() <= 1e-7:
            break
        polygon = _cut(polygon, normals[worst], least[worst])
        if not len(polygon):
            return None
    (u_low, v_low), (u_high, v_high) = polygon.min(0), polygon.max(0)
    u, v = (u_low + u_high) / 2, (v_low + v_high) / 2
    bound = max(u_high - u_low, v_high - v_low) / 2
    return None if bound > _FAR / 2 else Line(start, float(u), float((v - u) / length), float(bound) + 1e-6)


def _cut(polygon: Floats, normal: Floats, least: float) -> Floats:
    """The part of a convex polygon where normal * x >= least."""
    height = polygon @ normal - least
    after, height_after = np.roll(polygon, -1, 0), np.roll(height, -1)
    kept = []
    for corner, over, other, other_over in zip(polygon, height, after, height_after, strict=True):
        if over >= 0:
            kept.append(corner)
        if (over >= 0) != (other_over >= 0):
            kept.append(corner + (other - corner) * (over / (over - other_over)))
    return np.array(kept)


def align(enter: Floats, leave: Floats, spans: list[tuple[float, float]]) -> list[Line | None]:
    """Return how each host's clock stands to that of host 0; None where nothing bounds it or bounds contradict.

    `enter[meeting, host]` is the last stamp of coming [s], `leave` the first of leaving, NaN where none is. A host
    that never met host 0 is told by those that did, with their bounds added.
    """
    hosts = enter.shape[1]
    known: list[Line | None] = [Line(0.0, 0.0, 0.0, 0.0), *([None] * (hosts - 1))]
    come, gone = enter[:, 0], leave[:, 0]
    asked = list(range(1, hosts))
    while True:
        found = []
        for host in asked:
            low = ~np.isnan(enter[:, host]) & ~np.isnan(gone)
            high = ~np.isnan(leave[:, host]) & ~np.isnan(come)
            x, y = enter[low, host], leave[high, host]
            if (line := fit(x, x - gone[low], y, y - come[high], spans[host])) is not None:
                known[host] = line
                found.append(host)
        if not found:
            return known
        asked = [host for host in asked if host not in found]
        if not asked:
            return known
        true_come, true_gone = [come], [gone]
        for host in found:
            line = known[host]
            assert line is not None
            true_come.append(enter[:, host] - line.at(enter[:, host]) - line.bound)
            true_gone.append(leave[:, host] - line.at(leave[:, host]) + line.bound)
        come, gone = np.fmax.reduce(true_come), np.fmin.reduce(true_gone)


def fill(con: DuckDBPyConnection, runner: Runner) -> None:
    """Fill `clocks`, and set all times of hosts that are off by more than the bound to those of the reference host.

    Needs the operations side by side (sql/operations.sql), before anything is made of their times.
    """
    runner.run("meetings")
    several = con.execute("SELECT run_id FROM _homes_of GROUP BY run_id HAVING count(DISTINCT host) > 1 ORDER BY ALL")
    for (run,) in several.fetchall():
        _fill_run(con, run)


def _fill_run(con: DuckDBPyConnection, run: int) -> None:
    extents = con.execute(
        """
        SELECT h.host, min(l.t_lo), max(l.t_hi), min(h.rank) AS rank,
            -- how finely its stamps are told: what was cut off them is not known
            CASE WHEN bool_and(l.t_lo = floor(l.t_lo)) THEN 1.0
                WHEN bool_and(abs(l.t_lo * 1e3 - round(l.t_lo * 1e3)) < 2e-3) THEN 1e-3 ELSE 1e-6 END
        FROM lines AS l JOIN _homes_of AS h ON h.run_id = l.run_id AND h.rank = l.rank
        WHERE l.run_id = ? AND l.t_lo = l.t_hi GROUP BY h.host ORDER BY rank
        """,
        [run],
    ).fetchall()
    if len(extents) < 2:
        return
    hosts = [e[0] for e in extents]
    columns = {host: n for n, host in enumerate(hosts)}
    rows = con.execute(
        """
        SELECT dense_rank() OVER (ORDER BY m.place, m.nth) - 1 AS meeting, h.host,
            max(IF(m.enter_lo = m.enter_hi, m.enter_lo, NULL)), min(IF(m.leave_lo = m.leave_hi, m.leave_hi, NULL))
        FROM _meetings AS m JOIN _homes_of AS h USING (run_id, rank) WHERE m.run_id = ? GROUP BY m.place, m.nth, h.host
        """,
        [run],
    ).fetchall()
    if not rows:
        return
    enter, leave = _grid(rows, columns)
    fine = np.array([e[4] for e in extents])
    lines = align(enter, leave + fine, [(e[1], e[2]) for e in extents])
    points = np.sum(~np.isnan(enter) & ~np.isnan(leave), 0)
    firsts = [(np.array(e[1]), line) for e, line in zip(extents, lines, strict=True)]
    begin = min(float(t - line.at(t)) for t, line in firsts if line)
    off: dict[str, Line] = {}
    for host, line, count, (_, first, last, _, _) in zip(hosts, lines, points, extents, strict=True):
        if line is None:
            continue
        drift = line.slope / (1 - line.slope)  # per second of true time
        ahead = line.offset + drift * (begin - line.origin + line.offset)
        told = drift * 1e6 if count > 1 else None
        con.execute(
            """
            INSERT INTO clocks (run_id, host, ref_host, offset_s, drift_ppm, bound_s, points)
            VALUES (?, ?, ?, ?, ?, ?, ?)
            """,
            [run, host, hosts[0], ahead, told, line.bound, int(count)],
        )
        if np.abs(line.at(np.array([first, last]))).max() > max(line.bound, _LEAST):
            off[host] = line
    if off:
        _correct(con, run, off)


def _grid(rows: list[tuple[Any, ...]], columns: dict[str, int]) -> tuple[Floats, Floats]:
    """Times of coming and of leaving by meeting and host."""
    shape = (max(r[0] for r in rows) + 1, len(columns))
    enter, leave = np.full(shape, np.nan), np.full(shape, np.nan)
    for meeting, host, come, gone in rows:
        if host in columns:
            enter[meeting, columns[host]] = np.nan if come is None else come
            leave[meeting, columns[host]] = np.nan if gone is None else gone
    return enter, leave


_TIMES = ("t_lo", "t_hi", "end_lo", "end_hi", "exit_lo", "exit_hi", "t_exit")


def _correct(con: DuckDBPyConnection, run: int, off: dict[str, Line]) -> None:
    """Bring all times that these hosts wrote to the reference's clock."""
    _off = {
        "host": np.array(list(off), object),
        "ahead": np.array([line.offset for line in off.values()]),
        "slope": np.array([line.slope for line in off.values()]),
        "origin": np.array([line.origin for line in off.values()]),
    }
    con.execute("CREATE OR REPLACE TEMP TABLE _by_host AS FROM _off")
    con.execute(
        """
        CREATE OR REPLACE TEMP TABLE _by_rank AS
        SELECT h.rank, b.* FROM _homes_of AS h JOIN _by_host AS b USING (host) WHERE h.run_id = ?
        """,
        [run],
    )
    for table in schema.tables().values():
        names = [c.name for c in table.columns if c.name in _TIMES]
        if names and table.has_common:
            _shift(con, run, table.name, names, "host")
    _shift(con, run, "lines", ["t_lo", "t_hi"], "rank")
    _shift(con, run, "_aligned", ["t", "t_exit"], "rank")
    con.execute("DROP TABLE _by_host; DROP TABLE _by_rank")


def _shift(con: DuckDBPyConnection, run: int, table: str, names: list[str], key: str) -> None:
    changes = ", ".join(f"{name} = {name} - (b.ahead + b.slope * ({name} - b.origin))" for name in names)
    whose = f"{table}.run_id = ? AND {table}.{key} = b.{key}"
    con.execute(f"UPDATE {table} SET {changes} FROM _by_{key} AS b WHERE {whose}", [run])
