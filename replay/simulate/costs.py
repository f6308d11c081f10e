"""What each finding cost: the run is replayed without it, and the answer goes into the findings.

Rules say what to take out to undo what they found (`without`); how long the run would then have taken is not theirs to
know, since others may have waited anyway.
"""

from collections.abc import Sequence

from duckdb import DuckDBPyConnection

from replay.simulate import cuts
from replay.simulate.cuts import Cut
from replay.simulate.simulation import Simulation, prepare

_MOST = 64
"""Findings of a run that are looked at, roots first: thousands of ranks may each have one."""
_ERROR = 0.1
"""A replay that is further off than this share of the run says nothing about a part of it."""


def fill(con: DuckDBPyConnection) -> None:
    """Fill `cost_s`, `own_s` and `lost_s` of the findings whose rule says what undoes them, where the logs carry it."""
    rows = con.execute(
        """
        SELECT run_id, finding_id, ranks, without FROM findings WHERE without IS NOT NULL
        ORDER BY run_id, is_root DESC, try_cast(finding_id[2:] AS INTEGER), finding_id
        """
    ).fetchall()
    by_run: dict[int, list[tuple[str, tuple[int, ...], str]]] = {}
    for run_id, finding, ranks, without in rows:
        by_run.setdefault(run_id, []).append((finding, tuple(ranks or ()), without))
    for run_id, findings in by_run.items():
        simulation = prepare(con, run_id)
        if not isinstance(simulation, str) and simulation.error <= _ERROR:
            _fill_run(con, simulation, findings[:_MOST])


def _fill_run(
    con: DuckDBPyConnection, simulation: Simulation, findings: Sequence[tuple[str, tuple[int, ...], str]]
) -> None:
    for finding, ranks, without in findings:
        taken = _taken(simulation, ranks, without)
        cause = simulation.cause(without, taken) if taken else None
        if cause is not None and cause.own_s > 0:
            con.execute(
                "UPDATE findings SET cost_s = ?, own_s = ?, lost_s = ? WHERE finding_id = ?",
                [max(cause.saved_s, 0.0), cause.own_s, max(cause.lost_s, 0.0), finding],
            )


def _taken(simulation: Simulation, ranks: tuple[int, ...], without: str) -> list[Cut]:
    if without == "slow":
        return cuts.as_median(simulation.history, ranks)
    kinds = ("compiles", "recompiles") if without == "compiles" else (without,)
    return [cut for kind in kinds for cut in cuts.without(simulation.work, kind, ranks)]
