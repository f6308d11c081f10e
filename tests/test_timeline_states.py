"""What each rank was doing: spans that cover, never overlap and never wait for themselves."""

from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_timeline_cases import CASES, ask
from test_timeline_derive import Ranks

from replay.timeline.states import Spans, next_change, overlay, state_at, state_of_event

RAGGED = CASES / "ragged-one-rank"


# ---- laying spans over each other


def naive(spans, first, last, moment):
    """Index of the span that holds at a moment, by the definition."""
    inside = [(level, lo, n) for n, (_, level, lo, hi) in enumerate(spans) if lo <= moment < hi]
    top = max((level for level, _, _ in inside), default=None)
    best = [(lo, -spans[n][3], n) for level, lo, n in inside if level == top]
    return max(best)[2] if best else -1


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 40), st.integers(1, 12)),
        max_size=24,
        unique=True,
    )
)
def test_the_highest_and_then_the_latest_holds(drawn):
    spans = sorted(
        ((who, level, float(lo), float(min(lo + length, 50))) for who, level, lo, length in drawn),
        key=lambda s: (s[0], s[2], -s[3]),
    )
    who, level, lo, hi = ([s[k] for s in spans] for k in range(4))
    first, last = np.zeros(3), np.full(3, 50.0)
    painted = overlay(
        Spans(np.array(who, np.int64), np.array(level, np.int64), np.array(lo, float), np.array(hi, float)), first, last
    )
    for rank in range(3):
        mine = np.flatnonzero(painted.who == rank)
        assert painted.t_lo[mine[0]] == 0
        assert painted.t_hi[mine[-1]] == 50
        assert (painted.t_lo[mine[1:]] == painted.t_hi[mine[:-1]]).all()
        assert (painted.t_lo[mine] < painted.t_hi[mine]).all()
        for n in mine:
            for moment in np.arange(painted.t_lo[n], painted.t_hi[n]) + 0.5:
                own = [(w, *rest) if w == rank else (w, -1, 99.0, 98.0) for w, *rest in spans]
                found, wanted = painted.which[n], naive(own, 0, 50, moment)
                assert found == wanted or spans[found][1:] == spans[wanted][1:]


def test_somebody_of_whom_one_moment_is_known_has_one_moment():
    none = np.array([], np.int64)
    painted = overlay(Spans(none, none, np.array([]), np.array([])), np.array([5.0, 1.0]), np.array([5.0, 9.0]))
    assert list(painted.who) == [0, 1]
    assert list(painted.t_hi - painted.t_lo) == [0, 8]


# ---- from events


def check(con):
    """What holds of every run: spans follow each other from the rank's first word to the end of the run."""
    gaps = con.execute("""
        SELECT 1 FROM states
        QUALIFY lag(t_hi) OVER (PARTITION BY run_id, rank ORDER BY t_lo) <> t_lo
    """).fetchall()
    ends = con.execute("""
        SELECT k.run_id, k.rank, coalesce(k.first_t, r.t_first) AS first, r.t_last
        FROM ranks AS k JOIN runs AS r USING (run_id) LEFT JOIN states AS s USING (run_id, rank)
        WHERE r.t_first IS NOT NULL GROUP BY ALL
        HAVING min(s.t_lo) IS DISTINCT FROM first OR max(s.t_hi) IS DISTINCT FROM r.t_last
    """).fetchall()
    own = con.execute("SELECT count(*) FROM states WHERE list_contains(late, rank)").fetchone()
    assert (gaps, ends, own) == ([], [], (0,))


EVENT = st.sampled_from(
    ["step", "enter", "leave", "compile", "save", "saved", "fail", "timeout", "exit", "plain", "eval"]
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), EVENT, st.integers(0, 30)), max_size=40), st.integers(0, 5))
def test_whatever_was_logged_the_spans_cover_and_never_overlap(events, length):
    run = Ranks(3)
    at = dict.fromkeys(range(3), 0.0)
    steps = dict.fromkeys(range(3), 0)
    for rank, kind, pause in events:
        at[rank] += pause / 4
        t = 1000.0 + at[rank]
        if kind == "step":
            run.step(rank, steps[rank], t, fwd_ms=50.0 * pause, bwd_ms=1000.0 * length)
            steps[rank] += 1
        elif kind in ("enter", "leave"):
            ends = {"exit_lo": t + length, "exit_hi": t + length} if kind == "leave" else {}
            state = "completed" if kind == "leave" else "issued"
            run.add(
                "collectives",
                rank,
                t,
                source="app",
                comm="w",
                op="allreduce",
                comm_rank=rank,
                nranks=3,
                state=state,
                **ends,
            )
        elif kind == "compile":
            run.add(
                "compiles",
                rank,
                t,
                compile_id=f"{pause}/0",
                end_lo=t + length,
                end_hi=t + length,
                duration_s=float(length),
                is_recompile=True,
                fn="f",
            )
        elif kind in ("save", "saved", "eval"):
            run.add(
                "activities",
                rank,
                t,
                kind="eval" if kind == "eval" else "save",
                phase="end" if kind == "saved" else "begin",
            )
        elif kind == "fail":
            run.add("exceptions", rank, t, type="ValueError", is_uncaught=True)
        elif kind == "timeout":
            run.add(
                "timeouts",
                rank,
                t,
                kind="watchdog",
                op="allreduce",
                logged_seq=1,
                ran_ms=1000 * length,
                last_enqueued=1,
            )
        elif kind == "exit":
            run.add("exits", rank, t, of_rank=rank, code=1, reporter="torchrun")
        else:
            run.line(rank, t)
    run.derive()
    check(run.con)


def test_a_rank_that_arrives_early_waits_for_the_one_that_comes_late():
    run = Ranks(3)
    for rank, t in ((0, 10.0), (1, 10.5), (2, 14.0)):
        run.line(rank, 9.0)
        run.add(
            "collectives",
            rank,
            t,
            source="app",
            comm="w",
            op="allreduce",
            comm_rank=rank,
            nranks=3,
            state="completed",
            exit_lo=14.25,
            exit_hi=14.25,
        )
        run.line(rank, 15.0)
    run.derive()
    check(run.con)
    at = {s.rank: s for s in state_at(run.con, 12.0)}
    assert {rank: (s.state, s.late) for rank, s in at.items()} == {
        0: ("waiting", (2,)),
        1: ("waiting", (2,)),
        2: ("starting", ()),
    }
    assert (at[0].op, at[0].nth, at[0].t_lo, at[0].t_hi) == ("allreduce", 0, 10.0, 14.0)
    assert next_change(run.con, 12.0, 1) == 14.0
    assert next_change(run.con, 12.0, 1, backwards=True) == 10.5
    assert [s.state for s in state_at(run.con, 99.0)] == ["running"] * 3


def test_who_gave_up_without_a_stamp_waited_since_its_last_word():
    run = Ranks(2)
    for rank in range(2):
        run.line(rank, 10.0)
        run.line(rank, 20.0)
    run.add("timeouts", 1, None, kind="gloo", ran_ms=6000)
    run.add("exceptions", 1, None, type="RuntimeError", is_uncaught=True)
    run.line(0, 21.0)
    run.derive()
    at = run.ask("SELECT state, t_lo, t_hi FROM states WHERE rank = 1 AND t_lo >= 20 ORDER BY t_lo")
    assert at[0] == ("waiting", 20.0, 26.0)
    assert run.ask("SELECT max(t_hi) FROM states") == [(26.0,)]


def test_the_moment_of_an_event():
    run = Ranks(1)
    run.line(0, 1.0)
    run.add("compiles", 0, 2.0, compile_id="0/0", end_lo=5.0, end_hi=5.0, duration_s=3.0, fn="f")
    run.line(0, 9.0)
    run.derive()
    (seq,) = run.con.execute("SELECT seq FROM events WHERE kind = 'compile'").fetchone()
    assert [s.state for s in state_of_event(run.con, seq)] == ["compiling"]
    assert state_of_event(run.con, 10**9) == []


def test_a_run_without_stamps_has_no_states():
    run = Ranks(2)
    run.step(0, 1)
    run.step(1, 1)
    run.derive()
    assert run.ask("SELECT count(*) FROM states") == [(0,)]
    assert state_at(run.con, 1.0) == []


# ---- labelled runs


@pytest.mark.skipif(not RAGGED.is_dir(), reason="the labelled runs are not here")
def test_one_rank_compiles_and_the_others_wait_for_it():
    (seconds,) = ask(
        "ragged-one-rank",
        """
        SELECT rank, state, step, late, round(sum(t_hi - t_lo), 1)
        FROM states WHERE step IN (4, 8) AND state IN ('waiting', 'compiling')
        GROUP BY ALL ORDER BY step, rank""",
    )
    assert seconds == [
        (0, "waiting", 4, [2], 3.1),
        (1, "waiting", 4, [2], 3.1),
        (2, "compiling", 4, None, 3.1),
        (3, "waiting", 4, [2], 3.1),
        (0, "waiting", 8, [2], 2.2),
        (1, "waiting", 8, [2], 2.2),
        (2, "compiling", 8, None, 2.2),
        (3, "waiting", 8, [2], 2.2),
    ]


@pytest.mark.skipif(not RAGGED.is_dir(), reason="the labelled runs are not here")
@pytest.mark.parametrize(
    ("case", "rank", "state"),
    [
        ("ckpt_stall_rank1", 1, "saving"),
        ("ckpt_stall_rank1", 0, "waiting"),
        ("groups_crossed", 0, "waiting"),
        ("groups_crossed", 1, "waiting"),
    ],
)
def test_what_ranks_of_hung_runs_did_longest(case, rank, state):
    (longest,) = ask(
        case, f"SELECT arg_max(state, t_hi - t_lo) FROM states WHERE rank = {rank} AND state <> 'starting'"
    )
    assert longest == [(state,)]


def test_a_finished_database_is_enough(tmp_path: Path):
    run = Ranks(1)
    run.line(0, 1.0)
    run.step(0, 1, 2.0)
    run.derive()
    run.con.execute(f"ATTACH '{tmp_path / 'x.duckdb'}' AS x")
    run.con.execute("COPY FROM DATABASE memory TO x")
    run.con.execute("DETACH x")
    with duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True) as con:
        assert [s.rank for s in state_at(con, 1.5)] == [0]
