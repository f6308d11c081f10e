"""Derived tables: matched operations, stalls, steps, divergences, outcomes, on databases made by hand."""

import statistics

import pytest
from factory import insert, make_db
from hypothesis import given, settings
from hypothesis import strategies as st

from replay.sources.model import Hints
from replay.timeline.derive import derive
from replay.timeline.identify import identify


class Ranks:
    """A run of some ranks, each with a file of its own (order shuffles the numbers of the files)."""

    def __init__(self, n, order=None, **file):
        self.con = make_db()
        self.ranks = range(n)
        self.file_of = {rank: (order or list(range(n)))[rank] + 1 for rank in self.ranks}
        self.n = dict.fromkeys(self.ranks, 0)
        for rank in self.ranks:
            f = self.file_of[rank]
            given_file = {"run_key": "", "attempt": 0, "kind": "text", "lines": 1, "mtime": 0.0} | file
            insert(self.con, "files", file_id=f, path=f"rank{rank}.log", rank=rank, **given_file)
            insert(self.con, "writers", writer_id=f, file_id=f, prefix_rank=rank)

    def line(self, rank, t=None, text="x"):
        self.n[rank] += 1
        f = self.file_of[rank]
        insert(self.con, "lines", writer_id=f, file_id=f, line_no=self.n[rank], t_lo=t, t_hi=t, text=text)
        return {"writer_id": f, "file_id": f, "line_no": self.n[rank], "t_lo": t, "t_hi": t}

    def add(self, table, rank, t=None, **columns):
        place = self.line(rank, t)
        insert(self.con, table, **(place | columns))
        return place

    def step(self, rank, step, t=None, epoch=None, total=None, **figures):
        place = self.add("step_lines", rank, t, step=step, epoch=epoch, total=total)
        for name, value in figures.items():
            text = str(value)
            number = value if isinstance(value, float | int) else None
            insert(self.con, "metrics", **place, step=step, epoch=epoch, name=name, value=number, text=text)

    def op(self, rank, op="allreduce", count=8, seq=None, **columns):
        columns = {
            "source": "nccl-coll",
            "comm": "c",
            "comm_id": "c",
            "nranks": len(self.ranks),
            "dtype": "float32",
        } | columns
        self.add("collectives", rank, op=op, count=count, logged_seq=seq, comm_rank=rank, **columns)

    def derive(self):
        identify(self.con, Hints())
        derive(self.con)
        return self

    def ask(self, query):
        return self.con.execute(query).fetchall()

    def odd(self):
        return self.ask(
            "SELECT nth, odd, missing, odd_aspect FROM matched WHERE len(odd) > 0 OR len(missing) > 0 ORDER BY nth"
        )


# ---- matched operations


def run_ops(sequences, seqs=False, order=None):
    run = Ranks(len(sequences), order)
    for rank, counts in enumerate(sequences):
        for k, count in enumerate(counts):
            run.op(rank, count=count, seq=k if seqs else None)
    return run.derive()


def test_ranks_that_agree_have_nothing_odd():
    run = run_ops([[1, 2, 3]] * 3)
    assert run.odd() == []
    assert run.ask("SELECT nth, op, ranks, is_last FROM matched ORDER BY nth") == [
        (0, "allreduce", [0, 1, 2], False),
        (1, "allreduce", [0, 1, 2], False),
        (2, "allreduce", [0, 1, 2], True),
    ]


def test_one_that_differs_is_odd_and_what_differs_is_named():
    for aspect, other in (
        ("count", {"count": 9}),
        ("dtype", {"dtype": "bfloat16"}),
        ("op", {"op": "broadcast", "root": 0}),
        ("redop", {"redop": "max"}),
    ):
        run = Ranks(3)
        for rank in run.ranks:
            run.op(rank)
            run.op(rank, **(other if rank == 1 else {}))
            run.op(rank)
        assert run.derive().odd() == [(1, [1], [], aspect)]


def test_roots_count_only_where_there_is_one():
    run = Ranks(3)
    for rank in run.ranks:
        run.op(rank, root=rank)
        run.op(rank, op="broadcast", root=2 if rank == 2 else 0)
    assert run.derive().odd() == [(1, [2], [], "root")]


def test_without_majority_rank_0_is_right():
    assert run_ops([[1, 2, 3], [1, 9, 3]]).odd() == [(1, [1], [], "count")]


def test_a_rank_that_stopped_misses_what_came_after():
    assert run_ops([[1, 2, 3], [1, 2], [1, 2, 3]]).odd() == [(2, [], [1], None)]


def test_one_operation_left_out_is_found_and_what_follows_is_not_odd():
    full = [5, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]
    assert run_ops([full, full, full[:6] + full[7:], full]).odd() == [(6, [], [2], None)]


def test_one_operation_too_many_is_found():
    full = [5, 1, 2, 3, 4, 1, 2, 3]
    assert run_ops([full, full, [*full[:4], 9, *full[4:]]]).odd()[0] == (4, [2], [], "count")


def test_a_line_that_was_lost_is_no_operation_left_out():
    full = list(range(1, 120))
    run = Ranks(3)
    for rank in run.ranks:
        for k, count in enumerate(full):
            if (rank, k) != (1, 40):
                run.op(rank, count=count, seq=k)
    assert run.derive().odd() == []


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_the_place_of_a_deletion_is_found(data):
    full = data.draw(st.lists(st.integers(1, 4), min_size=6, max_size=20))
    at = data.draw(st.integers(1, len(full) - 4))
    if full[at] == full[at + 1]:  # the first of a row of equals is as good as any
        return
    short = full[:at] + full[at + 1 :]
    rank = data.draw(st.integers(0, 3))
    found = run_ops([short if r == rank else full for r in range(4)]).odd()
    # Where the rest repeats with a period of one, there is nothing to see but the missing end
    places = [nth for nth, odd, missing, _ in found if rank in missing or rank in odd]
    first_difference = next((k for k in range(len(short)) if short[k] != full[k]), len(short))
    assert places[0] == first_difference
    assert all(set(odd) | set(missing) <= {rank} for _, odd, missing, _ in found)
    if len(full) - at - 1 >= 3 and len(set(full[at:])) > 2:
        assert len(places) <= len(full) - first_difference


@settings(max_examples=4, deadline=None)
@given(st.permutations([0, 1, 2, 3]))
def test_the_order_of_files_does_not_matter(order):
    full = [5, 1, 2, 3, 4, 1, 2, 3, 4]
    run = run_ops([full, full, full[:6] + full[7:], full], order=list(order))
    assert run.odd() == [(6, [], [2], None)]


def test_sends_are_paired_with_receives():
    run = Ranks(3)
    for _ in range(2):
        run.op(0, op="send", peer=1, root=1, comm="c0")
        run.op(1, op="recv", peer=0, root=0, comm="c1")
    run.op(0, op="send", peer=1, count=7)
    run.op(1, op="recv", peer=0, count=8)
    run.op(1, op="send", peer=2)
    run.op(2, op="recv", peer=0)
    run.derive()
    assert run.ask("SELECT op, ranks, missing, odd_aspect FROM matched WHERE odd_aspect IS NOT NULL ORDER BY ALL") == [
        ("recv", [2], [0], "peer"),
        ("send", [0, 1], [], "count"),
        ("send", [1], [2], "peer"),
    ]


def test_a_send_to_a_rank_that_was_not_heard_is_no_mismatch():
    run = Ranks(2)
    run.op(0, op="send", peer=7)
    run.op(1, op="recv", peer=0)
    run.op(0, op="send", peer=1)
    assert run.derive().odd() == []


# ---- stalls


def train(run, late=(), ms=3000.0, steps=8, late_rank=2, **more):
    """Steps of 10 ms; in the late ones one rank's forward takes longer and the others' backward waits for it."""
    t = 0.0
    for step in range(steps):
        slow = ms if step in late else 0.0
        t += (10 + slow) / 1000
        for rank in run.ranks:
            is_late = rank == late_rank
            run.step(
                rank, step, t, fwd_ms=5.0 + (slow if is_late else 0), bwd_ms=5.0 + (0 if is_late else slow), **more
            )
    return run


def stalls(run):
    return run.ask(
        "SELECT step, late_rank, waiting, round(wait_s, 2), round(lost_s, 2), late_doing FROM stalls ORDER BY step"
    )


def test_a_step_in_which_all_wait_for_one_is_a_stall():
    assert stalls(train(Ranks(4), late=[4]).derive()) == [(4, 2, [0, 1, 3], 3.0, 9.0, "forward")]


def test_a_rank_that_is_slow_in_every_step_stalls_every_step_but_the_first():
    assert [s[0] for s in stalls(train(Ranks(4), late=range(8)).derive())] == list(range(1, 8))


def test_nobody_stalls_where_all_are_alike_or_the_first_step_is_slow():
    assert stalls(train(Ranks(4)).derive()) == []
    assert stalls(train(Ranks(4), late=[0]).derive()) == []
    run = Ranks(4)
    for step in range(8):
        for rank in run.ranks:
            run.step(rank, step, float(step), fwd_ms=500.0, bwd_ms=500.0)
    assert stalls(run.derive()) == []


def test_what_the_late_rank_did_is_told():
    run = train(Ranks(4), late=[4])
    run.add("compiles", 2, 0.06, end_hi=2.9, duration_s=2.84, is_recompile=True, compile_id="0/1")
    assert [s[-1] for s in stalls(run.derive())] == ["compiling"]
    run = train(Ranks(4), late=[4])
    run.add("activities", 2, 0.06, kind="eval", phase="begin")
    assert [s[-1] for s in stalls(run.derive())] == ["eval"]
    run = Ranks(3)
    for step in range(6):
        for rank in run.ranks:
            run.step(
                rank, step, float(step), data_ms=600.0 if rank == 1 else 1.0, fwdbwd_ms=5.0 if rank == 1 else 604.0
            )
    assert {(s[1], s[-1]) for s in stalls(run.derive())} == {(1, "data")}


def test_work_outside_of_the_figures_is_that_of_the_late_rank():
    """Rank 0 evaluates between two steps; its tensor-parallel peer waits for it in forward, the others in backward."""
    run = Ranks(4)
    for step, late in enumerate((0, 0, 6, 0)):
        for rank in run.ranks:
            if rank == 0 and late:
                run.add("activities", 0, 10.0 + step, kind="eval", phase="begin")
            forward, backward = (0.1 + late * (rank == 1)), (0.2 + late * (rank > 1))
            run.step(rank, step, 10.0 + step + (6 if step > 1 else 0), fwd_s=forward, bwd_s=backward)
    assert run.derive().ask("SELECT step, late_rank, waiting, late_doing FROM stalls") == [(2, 0, [2, 3], "eval")]


def test_own_work_in_the_collective_part_is_no_waiting():
    run = Ranks(3)
    for step in range(6):
        for rank in run.ranks:
            slow = step == 3
            run.step(
                rank,
                step,
                float(step),
                fwd_ms=1700.0 if slow and rank == 2 else 5.0,
                bwd_ms=(1300.0 if rank == 2 else 3000.0) if slow else 5.0,
            )
    assert stalls(run.derive()) == [(3, 2, [0, 1], 3.0, 5.99, "forward")]


def test_a_recompile_explains_a_step_that_only_stamps_tell():
    run = Ranks(3)
    t = 0.0
    for step in range(8):
        t += 2.0 if step == 5 else 0.1
        for rank in run.ranks:
            run.step(rank, step, t, loss=1.0)
    run.add("compiles", 1, 0.52, end_hi=2.3, duration_s=1.8, is_recompile=True, compile_id="0/1")
    assert stalls(run.derive()) == [(5, 1, [0, 2], 1.8, 3.6, "compiling")]


def test_a_recompile_on_all_ranks_is_no_stall():
    run = Ranks(3)
    t = 0.0
    for step in range(8):
        t += 2.0 if step == 5 else 0.1
        for rank in run.ranks:
            run.step(rank, step, t, loss=1.0)
    for rank in run.ranks:
        run.add("compiles", rank, 0.52, end_hi=2.3, duration_s=1.8, is_recompile=True, compile_id="0/1")
    assert stalls(run.derive()) == []


# ---- steps, statistics, divergences


def test_waiting_and_own_time_of_a_step():
    run = train(Ranks(4), late=[4]).derive()
    assert run.ask("SELECT rank, own_s, wait_s, round(duration_s, 3) FROM steps WHERE step = 4 ORDER BY rank") == [
        (0, 0.01, 3.0, 3.01),
        (1, 0.01, 3.0, 3.01),
        (2, 3.01, 0.0, 3.01),
        (3, 0.01, 3.0, 3.01),
    ]


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(1, 1000, width=16), min_size=2, max_size=6))
def test_the_median_of_the_peers_leaves_the_rank_itself_out(values):
    run = Ranks(len(values))
    for rank, value in enumerate(values):
        for step in range(3):
            run.step(rank, step, x_ms=float(value))
    found = dict(run.derive().ask("SELECT rank, peers_median FROM rank_stats WHERE name = 'x_ms'"))
    for rank in run.ranks:
        assert found[rank] == pytest.approx(statistics.median(values[:rank] + values[rank + 1 :]))


def test_parameters_that_differ_by_rank_part_at_their_first_step():
    run = Ranks(3)
    for step in range(4):
        for rank in run.ranks:
            run.step(rank, step, param_sum=1.0 + step + (0.5 if rank == 1 and step >= 2 else 0), fwd_ms=float(rank))
    found = run.derive().ask("SELECT name, kind, step, ranks, value, other_value, steps_equal FROM divergences")
    assert found == [("param_sum", "metric", 2, [1], "3.5", "3.0", 2)]


def test_losses_of_ranks_count_only_where_they_agreed():
    run = Ranks(2)
    for step in range(4):
        for rank in run.ranks:
            run.step(rank, step, loss=1.0 + rank)
    assert run.derive().ask("FROM divergences") == []


def test_settings_that_differ_by_rank():
    run = Ranks(3)
    for rank in run.ranks:
        run.add("env", rank, name="NCCL_ALGO", value="Tree" if rank == 2 else "Ring", origin="nccl")
        run.add("env", rank, name="local_rank", value=str(rank), origin="app")
    found = run.derive().ask("SELECT name, kind, ranks, value, other_value FROM divergences")
    assert found == [("NCCL_ALGO", "setting", [2], "Tree", "Ring")]


def two_runs(change):
    con = make_db()
    for f, key in enumerate(("a", "b"), 1):
        insert(con, "files", file_id=f, path=f"{key}/rank0.log", run_key=key, kind="text", rank=0, t_first=float(f))
        insert(con, "writers", writer_id=f, file_id=f, prefix_rank=0)
        rows = [("env", {"name": "seed", "value": "1", "origin": "app"})]
        rows += [
            ("metrics", {"step": s, "name": "loss", "value": 2.0 - s / 10, "text": str(2.0 - s / 10)}) for s in range(5)
        ]
        if key == "b":
            rows = [(t, change(t, dict(c))) for t, c in rows]
        for n, (table, columns) in enumerate(rows, 1):
            insert(con, "lines", writer_id=f, file_id=f, line_no=n, t_lo=float(f), t_hi=float(f), text="x")
            insert(con, table, writer_id=f, file_id=f, line_no=n, **columns)
    identify(con, Hints())
    derive(con)
    return con.execute(
        "SELECT run_id, other_run, name, kind, step, value, other_value, steps_equal FROM divergences"
    ).fetchall()


def test_two_runs_that_agree_do_not_part():
    assert two_runs(lambda _, c: c) == []


def test_two_runs_part_at_the_first_step_that_differs():
    def change(table, c):
        return c | {"value": 9.0, "text": "9.0"} if table == "metrics" and c["step"] == 3 else c

    assert two_runs(change) == [(2, 1, "loss", "metric", 3, "9.0", "1.7", 3)]


def test_settings_of_two_runs():
    assert two_runs(lambda t, c: c | {"value": "2"} if t == "env" else c) == [
        (2, 1, "seed", "setting", None, "2", "1", None)
    ]


# ---- outcomes


def outcome(run):
    return run.derive().ask("SELECT outcome, outcome_file, outcome_line FROM runs")[0]


def test_all_done_is_completed():
    run = train(Ranks(2))
    for rank in run.ranks:
        place = run.add("activities", rank, 9.0, kind="train-end", phase="point")
    assert outcome(run) == ("completed", place["file_id"], place["line_no"])


def test_the_last_step_of_all_is_completed():
    run = Ranks(2)
    for step in range(1, 4):
        for rank in run.ranks:
            run.step(rank, step, total=3, loss=1.0)
    assert outcome(run)[0] == "completed"


def test_one_not_done_is_not_completed():
    run = train(Ranks(2))
    run.add("activities", 0, 9.0, kind="train-end", phase="point")
    assert outcome(run)[0] == "unknown"


def test_an_exception_of_its_own_is_failed():
    run = train(Ranks(2))
    run.add("exceptions", 0, 9.0, type="RuntimeError", category="victim", is_uncaught=True)
    place = run.add("exceptions", 1, 8.0, type="KeyError", category="user", is_uncaught=True)
    assert outcome(run) == ("failed", place["file_id"], place["line_no"])


def test_a_timeout_is_hung_whatever_breaks_afterwards():
    run = train(Ranks(2))
    place = run.add("timeouts", 0, 8.0, kind="watchdog")
    run.add("crashes", 0, 9.0, signal="SIGABRT")
    run.add("exceptions", 1, 9.5, type="RuntimeError", category="user", is_uncaught=True)
    assert outcome(run) == ("hung", place["file_id"], place["line_no"])


def test_a_signal_while_all_goes_well_is_stopped_and_after_a_long_silence_hung():
    for t, word in ((1.0, "stopped"), (5000.0, "hung")):
        run = train(Ranks(2))
        run.add("signals", 0, t, signal="SIGTERM", direction="received", reason="time-limit")
        assert outcome(run)[0] == word


@pytest.mark.parametrize(("before", "outcome"), [(True, "failed"), (False, "stopped")])
def test_a_step_that_slurm_cancels_after_a_task_failed_was_not_stopped(before, outcome):
    run = Ranks(2)
    run.step(0, 1, 10.0)
    rows = [
        ("exits", {"of_rank": 1, "code": 1, "reporter": "slurm"}),
        ("signals", {"direction": "announced", "signal": "SIGTERM", "reason": "cancelled"}),
    ]
    for table, columns in rows if before else reversed(rows):
        run.add(table, 0, 11.0, **columns)
    assert run.derive().ask("SELECT outcome FROM runs") == [(outcome,)]


def test_a_host_that_failed_held_the_ranks_of_which_no_host_is_told():
    run = Ranks(4)
    for rank in run.ranks:
        run.step(rank, 1, 10.0)
    for rank in (0, 1):
        run.add("exits", 0, 12.0, of_rank=rank, of_host="a", code=-6, reporter="slurm")
    run.add("signals", 0, 11.0, direction="announced", signal="SIGTERM", reason="node-failure", of_host="b")
    assert run.derive().ask("SELECT host FROM ranks ORDER BY rank") == [("a",), ("a",), ("b",), ("b",)]


def test_a_file_that_is_called_after_its_host_names_it():
    """As the files of the others do; where one of them is called otherwise, no name is a host."""
    for names, hosts in ((("a", "b", "c"), ["a", "b", "c"]), (("a", "x", "c"), ["a", "b", None])):
        run = Ranks(3)
        for rank, name in enumerate(names):
            run.con.execute("UPDATE files SET path = ? WHERE file_id = ?", [f"logs/{name}.log.gz", rank + 1])
            run.step(rank, 1, 10.0)
        for rank, host in enumerate("ab"):
            run.add("exits", rank, 12.0, of_rank=rank, of_host=host, code=-6, reporter="torchrun")
        assert run.derive().ask("SELECT host FROM ranks ORDER BY rank") == [(host,) for host in hosts]


def test_operations_that_do_not_match_and_no_end_are_hung():
    assert outcome(run_ops([[1, 2, 3], [1, 2, 9], [1, 2, 3]]))[0] == "hung"


def test_last_words_and_ranks():
    run = train(Ranks(3), late=[7])
    run.add("activities", 1, 99.0, kind="barrier", phase="begin", text="entering barrier")
    run.derive()
    assert run.ask("SELECT rank, kind, summary, silent_s > 0 FROM last_words ORDER BY rank") == [
        (0, "step", "reported step 7", True),
        (1, "activity", "entering barrier", False),
        (2, "step", "reported step 7", True),
    ]
    assert run.ask("SELECT rank, heard, last_step, finished FROM ranks ORDER BY rank") == [
        (0, True, 7, False),
        (1, True, 7, False),
        (2, True, 7, False),
    ]


def test_ranks_that_are_only_named_are_there_and_not_heard():
    run = train(Ranks(2))
    run.add("env", 0, name="world_size", value="3", origin="app")
    assert run.derive().ask("SELECT rank, heard FROM ranks ORDER BY rank") == [(0, True), (1, True), (2, False)]
    assert run.ask("SELECT ranks_expected, ranks_seen FROM runs") == [(3, 2)]


def test_what_one_rank_logged_all_would_have():
    run = train(Ranks(2))
    run.add("guard_failures", 1, kind="size")
    run.add("comms", 0, event="start", comm_id="c", nranks=2, comm_rank=0)
    found = run.derive().ask("SELECT rank, is_on, how FROM observed WHERE what = 'recompiles' ORDER BY rank")
    assert found == [(0, True, "another rank logged it"), (1, True, "its lines")]
    assert run.ask("SELECT DISTINCT is_on FROM observed WHERE what = 'nccl-coll'") == [(False,)]


def test_events_are_in_time_order_and_within_a_moment_in_that_of_the_lines():
    run = Ranks(2)
    run.add("activities", 1, 2.0, kind="other", phase="point", text="b")
    run.add("activities", 0, 1.0, kind="other", phase="point", text="a")
    run.add("activities", 1, 2.0, kind="other", phase="point", text="c")
    assert [s for (s,) in run.derive().ask("SELECT summary FROM events ORDER BY seq")] == ["a", "b", "c"]


def test_an_empty_database_gives_no_rows():
    con = make_db()
    identify(con, Hints())
    derive(con)
    assert con.execute("SELECT count(*) FROM events").fetchone() == (0,)
    assert con.execute("SELECT table_name FROM duckdb_tables() WHERE temporary").fetchall() == []
