"""The logged run as arrivals of ranks at operations: what the recurrence is fed with.

Operations are collectives whose arrivals carry stamps, or, where logs tell none, the steps of the trainer: all ranks
meet once in each, since its gradients are reduced over all. Either way a row has a moment of coming and one of leaving,
and what lies between leaving one and coming to the next is a rank's own time.
"""

from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from replay.simulate.model import Limit
from replay.simulate.told import Told, best, heads, tails

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

_STAMP = 0.001
"""Seconds that stamps are told to, as a rule."""


@dataclass(frozen=True, slots=True)
class History:
    """Arrivals sorted by rank, then time [s since `origin`]; the last one of each rank is its end, no operation."""

    run_id: int
    basis: str
    origin: float
    ranks: Ints
    """Global rank by index."""
    begin: Floats
    """First moment of each rank."""
    who: Ints
    what: Ints
    """Operation, or the end of a rank: an index."""
    kind: Ints
    """Arrivals of one kind are preceded by the same work, as a rule."""
    enter: Floats
    waits: Flags
    """The rank did not go on before the last had come."""
    operations: int
    """How many operations there are; ends of ranks follow them as further indices."""
    lasts: Floats
    """How long each operation takes once the last has come: until the first of those that waited left."""
    limits: tuple[Limit, ...]

    @property
    def start(self) -> Floats:
        """When the last of each arrival's operation came."""
        return last_of(self.what, self.enter)

    @property
    def after(self) -> Floats:
        """How long after the last one each leaves [s]; after itself where it does not wait."""
        return np.where(self.waits, self.lasts[self.what], 0.0)

    @property
    def gone(self) -> Floats:
        """When each arrival's rank was free again; what it does from then on is its own time."""
        return np.where(self.waits, self.start, self.enter) + self.after

    @property
    def before(self) -> Floats:
        """When each arrival's rank was free from the one before, or began."""
        return np.where(heads(self.who), self.begin[self.who], np.roll(self.gone, 1))

    @property
    def own(self) -> Floats:
        """Own time before each arrival [s]."""
        return np.maximum(self.enter - self.before, 0.0)

    @property
    def end(self) -> Floats:
        """Last moment of each rank."""
        return self.enter[tails(self.who)]


def read(con: DuckDBPyConnection, run_id: int) -> History | str:
    """Return the run as arrivals, or why it cannot be told and what would tell it."""
    row = con.execute("SELECT t_first, t_last, ranks_seen FROM runs WHERE run_id = ?", [run_id]).fetchone()
    if row is None:
        return "no run was found in these logs"
    if row[0] is None:
        return "no line carries a stamp; switch on stamps in the trainer's or the launcher's output"
    told = best(con, run_id, int(row[2] or 0), float(row[1] - row[0]))
    if told is None:
        return (
            "neither steps nor operations with stamps were logged; switch on a line with a stamp for each step and"
            " rank, or NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL with stamps from the launcher"
        )
    return _history(con, run_id, told)


def last_of(what: Ints, enter: Floats) -> Floats:
    """Return for each arrival when the last of its operation came."""
    last = np.full(int(what.max(initial=-1)) + 1, -np.inf)
    np.maximum.at(last, what, enter)
    return np.asarray(last[what])


def _history(con: DuckDBPyConnection, run_id: int, told: Told) -> History:
    ranks, index = np.unique(told.rank, return_inverse=True)
    who = np.asarray(index, np.int64)
    origin = float(np.nanmin(np.fmin(told.enter, told.leave)))
    spans = con.execute(
        "SELECT rank, first_t, last_t FROM ranks WHERE run_id = ? AND first_t IS NOT NULL", [run_id]
    ).fetchall()
    known = {rank: (low, high) for rank, low, high in spans}
    last = tails(who)
    begin, end = told.enter[heads(who)].copy(), np.fmax(told.enter, told.leave)[last]
    for n, rank in enumerate(ranks.tolist()):
        low, high = known.get(rank, (begin[n], end[n]))
        begin[n], end[n] = min(begin[n], low), max(end[n], high)
    origin = min(origin, float(begin.min()))
    number = int(told.what.max()) + 1
    at = np.flatnonzero(last) + 1
    who = np.insert(who, at, np.arange(len(ranks)))
    what = np.insert(told.what, at, number + np.arange(len(ranks)))
    kind = np.insert(told.kind, at, -2)
    enter = np.insert(told.enter, at, end) - origin
    leave = np.insert(told.leave, at, end) - origin
    slack, clocks = _clocks(con, run_id)
    enter, waits, lasts = _settled(who, what, enter, leave, slack)
    limits = [*told.limits, *clocks]
    if ahead := float(np.mean(~waits[~tails(who)])):
        limits.append(
            Limit(
                "operations that ran beside the rank's own work: the rank went on before the last had come, so there it"
                " is taken not to wait",
                ahead,
            )
        )
    return History(
        run_id=run_id,
        basis=told.basis,
        origin=origin,
        ranks=np.asarray(ranks, np.int64),
        begin=begin - origin,
        who=who,
        what=what,
        kind=kind,
        enter=enter,
        waits=waits,
        operations=number,
        lasts=lasts,
        limits=(*limits, *_unmatched(con, run_id, told.basis, ranks)),
    )


def _settled(who: Ints, what: Ints, enter: Floats, leave: Floats, slack: float) -> tuple[Floats, Flags, Floats]:
    """Return moments of coming, where ranks waited, and how long each operation takes once the last has come."""
    enter = np.where(np.isnan(enter), leave, enter)
    following = np.where(tails(who), np.inf, np.roll(enter, -1))
    start = last_of(what, enter)
    known = ~np.isnan(leave)
    waits = (following >= start - slack) & (~known | (leave >= start - slack))
    ready = np.where(known, np.minimum(leave, following), start) - start
    lasts = np.full(int(what.max()) + 1, np.inf)
    np.minimum.at(lasts, what[waits], ready[waits])
    return enter, waits, np.maximum(np.where(np.isfinite(lasts), lasts, 0.0), 0.0)


def _clocks(con: DuckDBPyConnection, run_id: int) -> tuple[float, list[Limit]]:
    """Seconds by which times of two ranks may be apart, and what is not known of their clocks."""
    hosts = {h for (h,) in con.execute(
        "SELECT DISTINCT host FROM ranks WHERE run_id = ? AND heard AND host IS NOT NULL", [run_id]
    ).fetchall()}  # fmt: skip
    if len(hosts) < 2:
        return _STAMP, []
    bounds = dict(con.execute("SELECT host, bound_s FROM clocks WHERE run_id = ?", [run_id]).fetchall())
    unknown = len(hosts - bounds.keys())
    worst = max((b for b in bounds.values() if b is not None), default=0.0)
    limits = [
        Limit(f"the clocks of {unknown} of {len(hosts)} hosts are not known against the others'", unknown / len(hosts))
    ] if unknown else []  # fmt: skip
    if worst > _STAMP:
        limits.append(Limit(f"clocks of hosts are known to {worst:.3g} s only: shorter waits are not told apart"))
    return max(_STAMP, 2 * worst), limits


def _unmatched(con: DuckDBPyConnection, run_id: int, basis: str, ranks: Ints) -> list[Limit]:
    limits = []
    row = con.execute("SELECT count(*) FROM ranks WHERE run_id = ? AND heard", [run_id]).fetchone()
    heard = int(row[0]) if row else 0
    if heard > len(ranks):
        what = "steps" if basis.startswith("step") else "operations"
        limits.append(
            Limit(f"ranks of which no {what} with stamps are told take no part", (heard - len(ranks)) / heard)
        )
    if basis.endswith("operations"):
        limits += _apart(con, run_id)
    return limits


def _apart(con: DuckDBPyConnection, run_id: int) -> list[Limit]:
    row = con.execute(
        """
        SELECT count(*), count(*) FILTER (len(missing) > 0), count(*) FILTER (len(odd) > 0),
            (SELECT count(*) FROM collectives WHERE run_id = $run AND op IN ('send', 'recv'))
        FROM matched WHERE run_id = $run AND source <> 'check' AND op NOT IN ('send', 'recv')
        """,
        {"run": run_id},
    ).fetchone()
    if row is None or not row[0]:
        return []
    total, missing, odd, sends = row
    limits = []
    if missing:
        limits.append(
            Limit("operations to which a rank did not come: what comes behind is not modelled", missing / total)
        )
    if odd:
        limits.append(Limit("operations in which ranks did different things", odd / total))
    if sends:
        limits.append(Limit(f"{sends:,} sends and receives: they are part of a rank's own time"))
    return limits
