"""Replays a run, changes it, replays it again: what it would have been, and where that cannot be said."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from duckdb import DuckDBPyConnection

from replay.errors import UsageError
from replay.simulate import cuts
from replay.simulate.cuts import Cut
from replay.simulate.model import KINDS, Change, Limit, Outcome, RankOutcome
from replay.simulate.phases import Phases, phases
from replay.simulate.recurrence import Course
from replay.simulate.simulation import Simulation, prepare
from replay.simulate.timeout import Stop, stop


def run(con: DuckDBPyConnection, change: Change, run_id: int | None = None) -> Outcome:
    """Return what a run (the last one if none is named) would have been with a change.

    An empty change answers what each known cause cost. Where the logs do not carry it, `cannot` says why.
    Raises UsageError for a rank that the run does not have.
    """
    return WhatIf(con, run_id).changed(change).outcome


@dataclass(frozen=True, slots=True)
class Changed:
    """An outcome, and the course of the run that it comes from; None where nothing can be said."""

    outcome: Outcome
    course: Course | None


class WhatIf:
    """One run (the last one if none is named), read once and changed as often as one likes.

    The connection is used as long as this is.
    """

    def __init__(self, con: DuckDBPyConnection, run_id: int | None = None) -> None:
        if run_id is None:
            row = con.execute("SELECT max(run_id) FROM runs").fetchone()
            run_id = int(row[0]) if row and row[0] is not None else 0
        self._con, self._run_id = con, run_id
        self._ranks = {r for (r,) in con.execute("SELECT rank FROM ranks WHERE run_id = ?", [run_id]).fetchall()}
        self._told = prepare(con, run_id)

    def changed(self, change: Change) -> Changed:
        """Return what the run would have been. Raises UsageError for a rank that it does not have."""
        asked = {r for w in change.without for r in w.ranks} | set(change.as_median)
        if unknown := sorted(asked - self._ranks):
            raise UsageError(f"rank {unknown[0]}: the run has no such rank")
        if isinstance(self._told, str):
            return Changed(Outcome(self._run_id, change, None, 0, cannot=self._told), None)
        taken, limits = _taken(self._con, self._told, change)
        course = self._told.changed(taken) if taken else self._told.unchanged
        return Changed(_outcome(self._con, self._told, change, taken, course=course, limits=limits), course)

    def phases(self, ranks: Sequence[int], course: Course | None = None) -> Phases | None:
        """Return what some ranks do in a course of the run, or did in the run as it was."""
        if isinstance(self._told, str):
            return None
        return phases(self._told.history, course or self._told.unchanged, ranks)


def _taken(con: DuckDBPyConnection, simulation: Simulation, change: Change) -> tuple[list[Cut], list[Limit]]:
    """The seconds that a change takes out, and what is not known of them."""
    taken: list[Cut] = []
    limits: list[Limit] = []
    for item in change.without:
        kinds = ("compiles", "recompiles") if item.what == "compiles" else (item.what,)
        found = [cut for kind in kinds for cut in cuts.without(simulation.work, kind, item.ranks)]
        taken += found
        if not found:
            limits.append(Limit(f"no {KINDS[item.what]} in the logs" + (" of those ranks" if item.ranks else "")))
        limits += _unended(simulation, kinds)
    median = cuts.as_median(simulation.history, change.as_median)
    taken += median
    alone = set(change.as_median) - {int(simulation.history.ranks[cut.rank]) for cut in median}
    if alone:
        limits.append(Limit(f"rank {min(alone)} shares no operation with others whose times are known"))
    if change.warm_cache:
        found, whole = cuts.warm(simulation.work, _hits(con, simulation))
        taken += found
        if whole:
            limits.append(
                Limit(
                    f"no rank found all in the cache: all compiling is cut on {whole} ranks, the most that it can save",
                    enable='TORCH_LOGS="+torch._inductor.codecache"',
                )
            )
    if change.guard_collectives:
        taken += cuts.all_at_once(simulation.work)
        limits.append(Limit("what agreeing costs at each call of compiled code is not in it"))
    return taken, limits


def _unended(simulation: Simulation, kinds: Sequence[str]) -> list[Limit]:
    spans = [simulation.work.kinds[kind] for kind in kinds if kind.endswith("compiles")]
    unended = sum(int(s.is_open.sum()) for s in spans)
    if not unended:
        return []
    text = f"compiles whose end is not told: {unended}; what their step took beyond the usual counts as theirs"
    return [Limit(text, enable="TORCH_TRACE, or TORCH_LOGS=+dynamo")]


def _hits(con: DuckDBPyConnection, simulation: Simulation) -> dict[int, float]:
    """Seconds of compiling of ranks that hit the cache and never missed it."""
    rows = con.execute(
        """
        SELECT rank FROM cache_events
        WHERE run_id = ? AND rank IS NOT NULL AND event IN ('hit', 'miss', 'bypass')
        GROUP BY rank HAVING bool_and(event = 'hit') ORDER BY ALL
        """,
        [simulation.history.run_id],
    ).fetchall()
    total = {rank: 0.0 for (rank,) in rows if rank in simulation.history.ranks}
    for kind in ("compiles", "recompiles"):
        for cut in cuts.without(simulation.work, kind, tuple(total)) if total else []:
            total[int(simulation.history.ranks[cut.rank])] += float(cut.seconds.sum())
    return total


def _outcome(
    con: DuckDBPyConnection,
    simulation: Simulation,
    change: Change,
    taken: Sequence[Cut],
    *,
    course: Course,
    limits: Sequence[Limit],
) -> Outcome:
    told = simulation.history
    begin, end = float(told.begin.min()), told.end
    replayed, changed = simulation.ends(simulation.unchanged), simulation.ends(course)
    over = Stop() if change.timeout_s is None else stop(con, told, course, change.timeout_s)
    if over.at is not None:
        changed = np.minimum(changed, over.at)
    own = np.zeros(len(told.ranks))
    for cut in taken:
        own[cut.rank] += cut.seconds.sum()
    off = np.abs(simulation.unchanged.enter - told.enter)[told.what < told.operations]
    columns = (
        end - told.begin, replayed - told.begin, changed - told.begin, own,
        simulation.waited(simulation.unchanged), simulation.waited(course),
    )  # fmt: skip
    knots = Limit(f"{simulation.knots} operations that wait for each other: each is let go with the ranks that came")
    return Outcome(
        run_id=told.run_id,
        change=change,
        basis=told.basis,
        operations=told.operations,
        logged_s=float(end.max()) - begin,
        replayed_s=float(replayed.max()) - begin,
        changed_s=float(changed.max()) - begin,
        rank_error=float((np.abs(replayed - end) / np.maximum(end - told.begin, 1e-9)).max()),
        operation_error_s=float(np.median(off)) if len(off) else 0.0,
        ranks=tuple(
            RankOutcome(int(rank), *map(float, values)) for rank, *values in zip(told.ranks, *columns, strict=True)
        ),
        causes=simulation.causes(simulation.all_known() if change.is_empty else taken),
        ends=over.words,
        limits=(*told.limits, *([knots] if simulation.knots else []), *limits, *over.limits),
    )
