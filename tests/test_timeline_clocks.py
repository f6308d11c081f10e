"""Clocks of hosts: offset and drift within the stated bound."""

import numpy as np
import pytest
from made_tables import START, Delay, Made

from replay.timeline import clocks, order
from replay.timeline.derive import derive
from replay.timeline.statements import Runner


def filled(made):
    con = made.write()
    con.execute("UPDATE runs SET t_first = ?", [START])
    runner = Runner(con)
    runner.run("operations")
    clocks.fill(con, runner)
    order.fill(con, runner)
    return con


def errors(made, con):
    """For each host: how far the stated clock is from the true one at worst, and the stated bound."""
    t = np.linspace(0, float(made.leave.max()), 50)
    told = con.execute("SELECT offset_s, drift_ppm, bound_s FROM clocks ORDER BY host").fetchall()
    return [
        (float(np.abs(ahead + (drift or 0) * 1e-6 * t - made.ahead(t[:, None])[:, n]).max()), bound)
        for n, (ahead, drift, bound) in enumerate(told)
    ]


def test_offsets_and_drifts_of_a_hundred_runs_lie_within_the_bound():
    bounds = []
    for seed in range(100):
        made = Made(ranks=8, ops=120, hosts=4, seed=seed, work_s=2.0, most_offset=5.0, most_drift=50e-6)
        con = filled(made)
        found = errors(made, con)
        assert len(found) == 4
        assert all(error <= bound for error, bound in found), (seed, found)
        bounds += [bound for _, bound in found[1:]]
        con.close()
    assert np.median(bounds) < 0.1, "a bound that says little"


def test_bounds_of_a_rank_without_stamps_hold_the_truth():
    made = Made(ranks=4, ops=20, seed=1, unstamped=(2,))
    con = filled(made)
    rows = con.execute("SELECT line_no, t_lo, t_hi FROM collectives WHERE rank = 2 ORDER BY line_no").fetchall()
    inner = [(line // 2 - 1, lo, hi) for line, lo, hi in rows if lo is not None]
    assert len(inner) >= 18
    assert all(lo - 0.001 <= START + made.enter[nth, 2] <= hi + 0.001 for nth, lo, hi in inner)


# ---- stalls by operations


def stalls_of(run):
    con = run.write()
    derive(con)
    return con.execute("SELECT late_rank, round(wait_s), len(waiting), late_file FROM stalls ORDER BY t_lo").fetchall()


@pytest.mark.parametrize("source", ["app", "nccl-coll"])
def test_a_rank_that_came_late_to_an_operation_is_a_stall(source):
    run = Made(ranks=4, ops=20, seed=5, delays=(Delay(2, 9, 5.0),), source=source, has_leave=source == "app")
    assert stalls_of(run) == [(2, 5.0, 3, 3)]


@pytest.mark.parametrize(("bound", "expected"), [(1.0, 1), (2.0, 0)])
def test_what_clocks_may_be_apart_is_no_stall(bound, expected):
    con = Made(ranks=4, ops=20, seed=5, delays=(Delay(2, 9, 5.0),)).write()
    con.execute("INSERT INTO clocks (run_id, host, bound_s) VALUES (1, 'node0001', ?)", [bound])
    runner = Runner(con)
    for name in ("operations", "steps", "matched", "stalls"):
        runner.run(name)
    assert con.execute("SELECT count(*) FROM stalls").fetchall() == [(expected,)]
