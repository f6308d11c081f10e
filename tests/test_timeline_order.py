"""Order across ranks: what is inferred of moments without a stamp never contradicts the truth."""

from dataclasses import dataclass

import numpy as np
import pytest
from factory import insert, make_db

from replay.run import open_run
from replay.timeline import order
from replay.timeline.order import Moments, narrow
from replay.timeline.statements import Runner

# ---- drawn histories


@dataclass(frozen=True)
class Drawn:
    """Moments with their true times; `t_lo` and `t_hi` are what stamps tell of them, clocks and all."""

    moments: Moments
    true: np.ndarray


def draw(seed):
    """Ranks on hosts with clocks of known bounds work, meet and end. Some write stamps, some now and then, some never.

    Meetings are collectives of some ranks (barriers of a store are alike) and messages, where one comes and one leaves.
    """
    rng = np.random.default_rng(seed)
    ranks, host_of = int(rng.integers(2, 9)), rng.integers(0, 3, 9)
    slack, off = rng.uniform(0, 0.3, 3), rng.uniform(-1, 1, 3)
    stamped = rng.choice([0.0, 0.3, 1.0], ranks)
    free = rng.uniform(0, 1, ranks)
    rows = [
        (rank, -1, False, free[rank], rng.random() < 0.5) for rank in range(ranks)
    ]  # starts, as an agent tells them
    for meeting in range(int(rng.integers(1, 25))):
        members = rng.permutation(ranks)[: rng.integers(2, ranks + 1)]
        come = free[members] + rng.exponential(1.0, len(members))
        if rng.random() < 0.4:
            sender, receiver = members[:2]
            free[sender], free[receiver] = come[0], max(come[0], come[1]) + rng.exponential(0.01)
            rows += [(sender, meeting, False, come[0], None), (receiver, meeting, True, free[receiver], None)]
            continue
        leave = come.max() + rng.exponential(0.01, len(members))
        rows += [(r, meeting, False, t, None) for r, t in zip(members, come, strict=True)]
        rows += [(r, meeting, True, t, None) for r, t in zip(members, leave, strict=True)]
        free[members] = leave
    free += rng.exponential(1.0, ranks)
    rows += [(rank, -1, True, free[rank], rng.random() < 0.5) for rank in range(ranks)]
    rows.sort(key=lambda row: (row[0], row[3]))
    stream, meeting, is_leave, true, sure = (np.array(column) for column in zip(*rows, strict=True))
    told = np.array([rng.random() < stamped[r] if s is None else s for r, s in zip(stream, sure, strict=True)])
    reading = true + (off * slack)[host_of[stream]]
    wide = slack[host_of[stream]]
    starts, ends = (meeting < 0) & ~is_leave, (meeting < 0) & is_leave
    low = np.where(told & ~ends, reading - wide, -np.inf)
    high = np.where(told & ~starts, reading + wide, np.inf)
    return Drawn(Moments(stream, meeting, is_leave.astype(bool), low, high), true)


@pytest.mark.parametrize("seed", range(100))
def test_bounds_hold_the_truth_and_no_order_contradicts_it(seed):
    drawn = draw(seed)
    low, high = narrow(drawn.moments)
    assert (low <= drawn.true + 1e-9).all()
    assert (drawn.true <= high + 1e-9).all()
    first, second = np.nonzero(high[:, None] < low[None, :])  # what is said to be before what
    assert (drawn.true[first] < drawn.true[second]).all()


def test_the_bounds_say_something():
    known = [np.isfinite(bound).mean() for seed in range(100) for bound in narrow(draw(seed).moments)]
    told = [np.isfinite(b).mean() for seed in range(100) for b in (draw(seed).moments.t_lo, draw(seed).moments.t_hi)]
    assert np.mean(known) > np.mean(told) + 0.2


# ---- events


def test_a_traceback_behind_the_last_stamp_comes_at_its_earliest_time(tmp_path):
    """Nothing tells how long behind: stderr is not buffered, but a stamp of stdout says nothing of it."""
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "rank_0.log").write_text(
        "2026-03-01 10:00:00,000 rank 0 step 1 loss 2.0\nTraceback (most recent call last):\n"
        '  File "/app/train.py", line 7, in <module>\n    work()\nValueError: no\n'
    )
    (logs / "rank_1.log").write_text(
        "".join(f"2026-03-01 10:00:0{n},500 rank 1 step {n} loss 2.0\n" for n in (0, 1, 2))
    )
    with open_run([str(logs)], db=tmp_path / "x.duckdb") as run:
        rows = run.sql("SELECT kind, rank, t_hi IS NULL FROM events ORDER BY seq").rows
    assert rows == [("step", 0, False), ("exception", 0, True), *[("step", 1, False)] * 3]


# ---- meetings of every kind, in tables: rank 0 writes stamps, rank 1 none


def ordered(rows, lines):
    """The bounds of lines of rank 1 by their number, as `fill` leaves them."""
    con = make_db()
    insert(con, "runs", run_id=1, key="", name="", attempt=0)
    for rank in (0, 1):
        insert(con, "files", file_id=rank + 1, path=f"rank{rank}.log", kind="text")
        insert(con, "writers", writer_id=rank + 1, file_id=rank + 1, run_id=1, rank=rank)
    for table, rank, line, t, values in rows:
        place = (
            {"file_id": rank + 1, "writer_id": rank + 1, "line_no": line}
            if rank is not None
            else {"file_id": 9, "line_no": line}
        )
        insert(con, table, run_id=1, rank=rank, t_lo=t, t_hi=t, **place, **values)
        lines = [*lines, (rank, line, t)] if rank is not None else lines
    for rank, line, t in lines:
        insert(con, "lines", run_id=1, rank=rank, writer_id=rank + 1, file_id=rank + 1, line_no=line, t_lo=t, t_hi=t)
    runner = Runner(con)
    for name in ("operations", "meetings"):
        runner.run(name)
    order.fill(con, runner)
    return {
        line: (lo, hi)
        for line, lo, hi in con.execute("SELECT line_no, t_lo, t_hi FROM lines WHERE rank = 1").fetchall()
    }


def call(op, comm_rank, peer=None, exit_t=None):
    return {
        "source": "app", "comm": "w", "comm_id": "w", "op": op, "comm_rank": comm_rank, "nranks": 2, "count": 4,
        "peer": peer, "dtype": "float32", "complete": True, "exit_lo": exit_t, "exit_hi": exit_t, "state": "completed",
    }  # fmt: skip


def test_a_collective():
    found = ordered(
        [
            ("collectives", 0, 1, 10.0, call("allreduce", 0, exit_t=12.0)),
            ("collectives", 1, 1, None, call("allreduce", 1)),
        ],
        [(1, 2, None)],
    )
    assert found == {1: (None, 12.0), 2: (10.0, None)}


def test_what_was_received_had_been_sent():
    sent = ordered(
        [("collectives", 0, 1, 10.0, call("send", 0, 1)), ("collectives", 1, 1, None, call("recv", 1, 0))],
        [(1, 2, None)],
    )
    received = ordered(
        [("collectives", 0, 1, 9.0, call("recv", 0, 1, exit_t=12.0)), ("collectives", 1, 2, None, call("send", 1, 0))],
        [(1, 1, None)],
    )
    assert sent == {1: (None, None), 2: (10.0, None)}
    assert received == {1: (None, 12.0), 2: (None, 12.0)}


@pytest.mark.parametrize("what", [None, "store_based_barrier_key:2"])
def test_a_barrier_of_the_application_or_the_store(what):
    def barrier(phase):
        return {"kind": "barrier", "phase": phase, "what": what}

    found = ordered(
        [
            ("activities", 0, 1, 10.0, barrier("begin")),
            ("activities", 0, 2, 12.0, barrier("end")),
            ("activities", 1, 1, None, barrier("begin")),
            ("activities", 1, 2, None, barrier("end")),
        ],
        [],
    )
    assert found == {1: (None, 12.0), 2: (10.0, None)}


def test_a_communicator_that_is_complete_was_started_by_all():
    def comm(event, rank):
        return {"event": event, "comm_id": "0x1", "comm_rank": rank, "nranks": 2}

    found = ordered(
        [
            ("comms", 0, 1, 10.0, comm("start", 0)),
            ("comms", 0, 2, 12.0, comm("complete", 0)),
            ("comms", 1, 1, None, comm("start", 1)),
            ("comms", 1, 2, None, comm("complete", 1)),
        ],
        [],
    )
    assert found == {1: (None, 12.0), 2: (10.0, None)}


def test_a_process_speaks_between_its_start_and_its_end():
    agent = ("env", None, 1, 5.0, {"name": "global_ranks", "value": "[0, 1]", "origin": "launcher"})
    exit_ = (
        "exits",
        None,
        2,
        30.0,
        {"of_rank": 1, "code": -9, "signal": "SIGKILL", "reporter": "torchrun", "t_exit": 20.0},
    )
    assert ordered([agent, exit_], [(1, 1, None), (1, 2, 7.0), (1, 3, None)]) == {
        1: (5.0, 21.0),
        2: (7.0, 7.0),
        3: (5.0, 21.0),
    }
