"""What tables tell of ranks that come to operations and leave them: the sources that a history can be made of.

Collectives whose arrivals carry stamps are best, then steps of which the waiting is told, then operations that were
only told to be enqueued, then steps of which only the ends are told.
"""

from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.simulate import doings
from replay.simulate.medians import medians
from replay.simulate.model import Limit

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_LEAST_SHARE = 0.5
"""Of the steps of a run that must tell of waiting; of ranks and span that a source must cover to be taken at once."""
_LONG = 1.5
"""Times its usual length from which a step was held up."""


@dataclass(frozen=True, slots=True)
class Told:
    """Arrivals as tables tell them; NaN where they do not."""

    basis: str
    rank: Ints
    what: Ints
    kind: Ints
    enter: Floats
    leave: Floats
    limits: tuple[Limit, ...] = ()

    def share(self, ranks: int, span: float) -> float:
        """How much of the ranks and of the span it covers."""
        times = np.concatenate([self.enter, self.leave])
        times = times[~np.isnan(times)]
        if not len(times):
            return 0.0
        return min(len(np.unique(self.rank)) / max(ranks, 1), (times.max() - times.min()) / span if span > 0 else 0.0)


def best(con: DuckDBPyConnection, run_id: int, ranks: int, span: float) -> Told | None:
    """Return what tells most of a run of so many ranks and seconds; None where nothing does."""
    told, most = None, 0.0
    for candidate in (_operations, _steps, _enqueued, _step_times):
        found = candidate(con, run_id)
        share = found.share(ranks, span) if found else 0.0
        if share > most:
            told, most = found, share
        if most >= _LEAST_SHARE:
            break
    return told


def _operations(con: DuckDBPyConnection, run_id: int) -> Told | None:
    """Operations of which both ends are told: by the application, or by the flight recorder."""
    return _arrivals(con, run_id, ("app", "flight-recorder"), "operations")


def _enqueued(con: DuckDBPyConnection, run_id: int) -> Told | None:
    """Operations that NCCL told to be enqueued: nothing tells when they ended."""
    return _arrivals(con, run_id, ("nccl-coll", "nccl-call"), "enqueued operations")


def _arrivals(con: DuckDBPyConnection, run_id: int, sources: tuple[str, ...], basis: str) -> Told | None:
    source = con.execute(
        "SELECT source FROM arrivals WHERE run_id = ? AND list_contains(?, source) GROUP BY ALL"
        " ORDER BY count(*) DESC, source LIMIT 1",
        [run_id, list(sources)],
    ).fetchone()
    if source is None:
        return None
    rows = con.execute(
        """
        WITH comms AS (
            SELECT comm_id, row_number() OVER (ORDER BY comm_id) - 1 AS comm
            FROM (SELECT DISTINCT comm_id FROM matched WHERE run_id = $run AND source = $source)
        ), shapes AS (
            SELECT comm_id, nth, dense_rank() OVER (ORDER BY comm_id, majority) AS shape
            FROM matched WHERE run_id = $run AND source = $source
        )
        SELECT a.rank, c.comm, a.nth, s.shape, a.t, a.t_exit
        FROM arrivals AS a JOIN comms AS c USING (comm_id) JOIN shapes AS s USING (comm_id, nth)
        WHERE a.run_id = $run AND a.source = $source
        ORDER BY a.rank, a.t, a.file_id, a.line_no
        """,
        {"run": run_id, "source": source[0]},
    ).fetchnumpy()
    rank = _ints(rows["rank"])
    is_first, shape = heads(rank), _ints(rows["shape"])
    width = int(shape.max()) + 1
    # the work before an operation is known by what came before it
    kind = np.where(is_first, -1, np.roll(shape, 1) * width + shape)
    nth = _ints(rows["nth"])
    number = _ints(rows["comm"]) * (int(nth.max()) + 1) + nth
    _, what = np.unique(number, return_inverse=True)
    return Told(basis, rank, _ints(what), kind, _floats(rows["t"]), _floats(rows["t_exit"]))


def _steps(con: DuckDBPyConnection, run_id: int) -> Told | None:
    """Steps of the trainer: a rank leaves one with its line, and came so much earlier as it waited."""
    rank, what, leave, wait = _step_lines(con, run_id)
    if not len(rank) or np.mean(~np.isnan(wait)) < _LEAST_SHARE:
        return None
    enter = _met(what, leave - np.nan_to_num(wait), leave)
    return Told("steps", rank, what, np.where(heads(rank), -1, 0), enter, leave)


def _step_times(con: DuckDBPyConnection, run_id: int) -> Told | None:
    """Steps of which only the ends are told; ranks that tell none are given those of the others."""
    rank, what, leave, _ = _step_lines(con, run_id)
    if not len(rank):
        return None
    rows = con.execute("SELECT rank FROM ranks WHERE run_id = ? AND heard ORDER BY ALL", [run_id]).fetchall()
    silent = sorted({r for (r,) in rows} - set(rank.tolist()))
    number = int(what.max()) + 1
    usual = medians(leave, what, number)
    rank = np.concatenate([rank, np.repeat(_ints(silent), number)])
    what = np.concatenate([what, np.tile(np.arange(number), len(silent))])
    leave = np.concatenate([leave, np.tile(usual, len(silent))])
    order = np.lexsort((leave, rank))
    rank, what, leave = rank[order], what[order], leave[order]
    limits = [
        Limit(
            "no line tells how long a rank waited in a step: who was not heard to do anything else in a long step is"
            " taken to have needed its usual time",
            enable="a time for forward and one for backward on each rank's step line",
        )
    ]
    if silent:
        limits.append(Limit("ranks that tell no steps: those of the others stand for theirs", len(silent) / len(rows)))
    enter = _guessed(con, run_id, rank, what, leave)
    return Told("step-times", rank, what, np.where(heads(rank), -1, 0), enter, leave, tuple(limits))


def _step_lines(con: DuckDBPyConnection, run_id: int) -> tuple[Ints, Ints, Floats, Floats]:
    rows = con.execute(
        """
        SELECT rank, dense_rank() OVER (ORDER BY coalesce(epoch, 0), step) - 1 AS what, t_hi, wait_s, duration_s
        FROM steps WHERE run_id = ? AND rank IS NOT NULL AND t_hi IS NOT NULL ORDER BY rank, t_hi, file_id, line_no
        """,
        [run_id],
    ).fetchnumpy()
    rank, leave = _ints(rows["rank"]), _floats(rows["t_hi"])
    if len(rank) and (leave == np.floor(leave)).all():
        leave = _within_seconds(rank, leave, np.nan_to_num(_floats(rows["duration_s"])))
    return rank, _ints(rows["what"]), leave, _floats(rows["wait_s"])


def _within_seconds(rank: Ints, stamp: Floats, lasted: Floats) -> Floats:
    """Moments whose whole seconds are told: a step ends as long after the one before as it lasted, or later."""
    found = np.empty_like(stamp)
    first = np.flatnonzero(heads(rank))
    for low, high in zip(first, np.append(first[1:], len(rank)), strict=True):
        passed = np.cumsum(lasted[low:high])
        least = np.maximum.accumulate(stamp[low:high] - passed)
        most = np.minimum.accumulate((stamp[low:high] + 1 - passed)[::-1])[::-1]
        found[low:high] = passed + np.maximum(least, np.minimum(least[-1], most))
    return found


def _met(what: Ints, enter: Floats, leave: Floats) -> Floats:
    """Moments of coming that keep to it that nobody leaves before the last has come."""
    first_gone = np.full(int(what.max()) + 1, np.inf)
    np.minimum.at(first_gone, what, leave)
    return np.asarray(np.minimum(enter, first_gone[what]))


def _guessed(con: DuckDBPyConnection, run_id: int, rank: Ints, what: Ints, leave: Floats) -> Floats:
    """Moments of coming where waiting is not told: who was not heard to be held up takes its usual time for a step."""
    is_first = heads(rank)
    earlier = np.where(is_first, np.nan, np.roll(leave, 1))
    lasted = leave - earlier
    index = np.cumsum(is_first) - 1
    usual = medians(lasted[~is_first], index[~is_first], int(index[-1]) + 1)[index]
    held = np.zeros(len(rank), np.bool_)
    names = np.unique(rank)
    begun = np.where(is_first, leave, earlier)
    for all_spans in doings.read(con, run_id).values():
        spans = all_spans.of(names)
        who = np.searchsorted(names, spans.rank)
        held[doings.place(spans, who, who=index, before=begun, gone=leave).arrival] = True
    some_held = np.zeros(int(what.max()) + 1, np.bool_)
    some_held[what[held]] = True
    waited = some_held[what] & ~held & (lasted > _LONG * usual)
    return _met(what, np.where(waited, earlier + usual, leave), leave)


def heads(who: Ints) -> Flags:
    """Return which arrivals are the first of their rank."""
    return np.append(True, who[1:] != who[:-1]) if len(who) else np.zeros(0, np.bool_)


def tails(who: Ints) -> Flags:
    """Return which arrivals are the last of their rank."""
    return np.append(who[1:] != who[:-1], True) if len(who) else np.zeros(0, np.bool_)


def _floats(values: object) -> Floats:
    if isinstance(values, np.ma.MaskedArray):
        return np.asarray(values.filled(np.nan), np.float64)
    return np.asarray(values, np.float64)


def _ints(values: object) -> Ints:
    return np.asarray(values, np.int64)
