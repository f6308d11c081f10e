"""Whose lines are whose: ranks of writers, runs, bounds of time, communicators."""

import pytest
from factory import insert, make_db

from replay.sources.model import Hints
from replay.timeline.identify import identify


class Logs:
    """A run database filled by hand: files, writers and lines with running numbers."""

    def __init__(self):
        self.con = make_db()
        self.files, self.writers = 0, 0
        self.line_nos = {}

    def file(self, path="run.log", **columns):
        self.files += 1
        given = {"run_key": "", "attempt": 0, "kind": "text", "lines": 1} | columns
        insert(self.con, "files", file_id=self.files, path=path, **given)
        self.line_nos[self.files] = 0
        return self.files

    def writer(self, file_id, **columns):
        self.writers += 1
        insert(self.con, "writers", writer_id=self.writers, file_id=file_id, **columns)
        self.line(self.writers, file_id)
        return self.writers

    def line(self, writer_id, file_id, t=None, text=""):
        self.line_nos[file_id] += 1
        n = self.line_nos[file_id]
        insert(self.con, "lines", writer_id=writer_id, file_id=file_id, line_no=n, t_lo=t, t_hi=t, text=text)
        return n

    def event(self, table, writer_id, file_id, t=None, **columns):
        n = self.line(writer_id, file_id, t)
        insert(self.con, table, writer_id=writer_id, file_id=file_id, line_no=n, t_lo=t, t_hi=t, **columns)
        return n

    def identify(self, **hints):
        identify(self.con, Hints(**hints))
        return dict(self.con.execute("SELECT writer_id, rank FROM writers").fetchall())

    def ask(self, query):
        return self.con.execute(query).fetchall()


@pytest.fixture
def logs():
    return Logs()


def test_a_prefix_is_the_rank(logs):
    f = logs.file()
    a, b = logs.writer(f, prefix_rank=3), logs.writer(f, prefix_rank=0)
    assert logs.identify() == {a: 3, b: 0}
    assert logs.ask("SELECT DISTINCT how FROM writers") == [("prefix",)]


def test_what_one_writer_of_a_process_says_holds_for_the_process(logs):
    f = logs.file()
    a = logs.writer(f, prefix_rank=3, pid=77)
    b = logs.writer(f, pid=77)
    c = logs.writer(f, pid=78)
    assert logs.identify() == {a: 3, b: 3, c: None}


def world(logs, ranks, nranks, comm_id="c0", *, file_id=None, pid=100):
    """Processes that join a communicator, one file for all."""
    f = file_id or logs.file()
    found = []
    for k, rank in enumerate(ranks):
        w = logs.writer(f, host="h", pid=pid + k, device=k)
        logs.event("comms", w, f, event="start", comm_id=comm_id, ptr=f"0x{k}", comm_rank=rank, nranks=nranks)
        found.append(w)
    return f, found


def test_the_place_in_the_world_communicator_is_the_rank(logs):
    _, writers = world(logs, [1, 0, 2], 3)
    assert logs.identify() == dict(zip(writers, [1, 0, 2], strict=True))
    assert logs.ask("SELECT DISTINCT how FROM writers") == [("nccl-init",)]


def test_places_in_groups_smaller_than_the_world_are_no_ranks(logs):
    f, writers = world(logs, [0, 1], 2, "a")
    world(logs, [0, 1], 2, "b", file_id=f, pid=200)
    for w in writers:
        logs.line(w, f)  # both groups are alive at once
    assert set(logs.identify().values()) == {None}


def test_places_are_no_ranks_where_the_world_is_told_to_be_larger(logs):
    f, writers = world(logs, [0, 1], 2)
    logs.event("env", writers[0], f, name="world_size", value="8", origin="app")
    assert set(logs.identify().values()) == {None}


def test_a_process_that_drives_several_devices_has_several_ranks(logs):
    f = logs.file()
    writers = [logs.writer(f, host="h", pid=5, device=d) for d in range(2)]
    for d, w in enumerate(writers):
        logs.event("comms", w, f, event="start", comm_id="c", comm_rank=d, nranks=2)
    assert logs.identify() == {writers[0]: 0, writers[1]: 1}


def test_folders_of_one_host_name_ranks(logs):
    writers = []
    for k in range(3):
        f = logs.file(f"x/attempt_0/{k}/stdout.log", local_rank=k)
        writers.append(logs.writer(f, local_rank=k))
    assert logs.identify() == dict(zip(writers, range(3), strict=True))


def test_folders_of_two_hosts_do_not(logs):
    for host in ("node0", "node1"):
        for k in range(2):
            f = logs.file(f"{host}/attempt_0/{k}/stdout.log", local_rank=k, host=host)
            logs.writer(f, local_rank=k, host=host)
    assert set(logs.identify().values()) == {None}


def test_the_launchers_table_gives_the_offset_of_a_host(logs):
    writers = []
    for n, host in enumerate(("node0", "node1")):
        for k in range(2):
            f = logs.file(f"{host}/attempt_0/{k}/stdout.log", local_rank=k, host=host)
            writers.append(logs.writer(f, local_rank=k, host=host))
        console = logs.file(f"{host}/console.log", host=host)
        agent = logs.writer(console)
        logs.event("exits", agent, console, of_rank=2 * n, of_local_rank=0, of_host=host, code=1)
    ranks = logs.identify()
    assert [ranks[w] for w in writers] == [0, 1, 2, 3]


def test_a_file_whose_lines_name_one_rank_is_that_ranks_where_each_has_its_own(logs):
    bare = []
    for k in range(2):
        f = logs.file(f"out{k}.log")
        logs.writer(f, prefix_rank=k)
        bare.append(logs.writer(f))
    ranks = logs.identify()
    assert [ranks[w] for w in bare] == [0, 1]


def test_a_console_that_shows_one_ranks_error_is_not_that_ranks(logs):
    f = logs.file("console.log")
    logs.writer(f, prefix_rank=1)
    bare = logs.writer(f)
    assert logs.identify()[bare] is None


@pytest.mark.parametrize(
    ("numbers", "ranks"), [([0, 1, 2], [0, 1, 2]), ([1, 2, 3], [None] * 3), ([0, 2, 3], [None] * 3)]
)
def test_numbers_in_labels_are_ranks_only_if_complete(logs, numbers, ranks):
    writers = [logs.writer(logs.file(f"trainer-{n}.log"), rank_guess=n, label=f"trainer-{n}") for n in numbers]
    found = logs.identify()
    assert [found[w] for w in writers] == ranks


def test_a_lone_process_is_rank_0_and_a_lone_excerpt_is_nobody(logs):
    f = logs.file()
    w = logs.writer(f)
    assert logs.identify() == {w: 0}
    other = Logs()
    f = other.file()
    w = other.writer(f)
    other.event("timeouts", w, f, kind="watchdog")
    assert other.identify() == {w: None}


def test_sources_that_contradict_each_other_are_problems_and_the_prefix_stays(logs):
    f = logs.file()
    a = logs.writer(f, prefix_rank=1, host="h", pid=5, device=0)
    logs.event("comms", a, f, event="start", comm_id="c", comm_rank=0, nranks=2)
    b = logs.writer(f, host="h", pid=6, device=1)
    logs.event("comms", b, f, event="start", comm_id="c", comm_rank=1, nranks=2)
    assert logs.identify()[a] == 1
    assert logs.ask("SELECT kind, text FROM problems") == [("rank-conflict", "the line says rank 1, NCCL says rank 0")]


def test_a_rank_outside_of_the_told_world_is_a_problem(logs):
    logs.writer(logs.file(), prefix_rank=9)
    logs.identify(world_size=4)
    assert [kind for (kind,) in logs.ask("SELECT kind FROM problems")] == ["rank-conflict"]


def test_rows_get_run_rank_host_and_process(logs):
    f, _ = world(logs, [0, 1], 2)
    bare = logs.writer(f, prefix_rank=1)
    logs.event("step_lines", bare, f, t=5.0, step=1)
    logs.identify()
    assert logs.ask("SELECT run_id, rank, host, pid FROM step_lines") == [(1, 1, "h", 101)]
    assert logs.ask("SELECT run_id, rank FROM lines WHERE line_no = 1") == [(1, 0)]


def test_lines_without_stamp_lie_between_their_neighbours_of_the_same_rank(logs):
    f = logs.file()
    a, b = logs.writer(f, prefix_rank=0), logs.writer(f, prefix_rank=1)
    logs.line(a, f, 10.0)
    logs.line(b, f, 100.0)
    n = logs.event("exceptions", a, f, type="E")
    logs.line(b, f, 101.0)
    logs.line(a, f, 12.0)
    logs.identify()
    assert logs.ask(f"SELECT t_lo, t_hi FROM lines WHERE line_no = {n}") == [(10.0, 12.0)]
    assert logs.ask("SELECT t_lo, t_hi FROM exceptions") == [(10.0, 12.0)]


def test_folders_and_attempts_are_runs_in_time_order(logs):
    for key, t in (("late", 50.0), ("early", 10.0)):
        f = logs.file(f"{key}/rank0.log", run_key=key, rank=0, t_first=t)
        logs.line(logs.writer(f, prefix_rank=0), f, t)
    logs.identify()
    assert logs.ask("SELECT run_id, name FROM runs ORDER BY run_id") == [(1, "early"), (2, "late")]


def test_the_launchers_own_file_belongs_to_the_attempt_that_was_going_on(logs):
    for attempt in range(2):
        f = logs.file(f"attempt_{attempt}/0/stdout.log", attempt=attempt, local_rank=0)
        logs.line(logs.writer(f, prefix_rank=0, local_rank=0), f, 100.0 * attempt)
    console = logs.file("torchrun.log")
    agent = logs.writer(console)
    for t in (50.0, 150.0):
        logs.event("exits", agent, console, t=t, of_rank=0, code=1)
    logs.identify()
    assert logs.ask("SELECT t_lo, run_id FROM exits ORDER BY t_lo") == [(50.0, 1), (150.0, 2)]
    assert logs.ask("SELECT run_id, attempt FROM runs ORDER BY run_id") == [(1, 0), (2, 1)]


def test_a_restart_inside_a_file_is_a_run_of_its_own(logs):
    f = logs.file()
    writers = [logs.writer(f, prefix_rank=k) for k in range(2)]
    for _ in range(2):
        for w in writers:
            logs.event("activities", w, f, kind="init", phase="point")
        for w in writers:
            logs.event("step_lines", w, f, step=0)
        logs.event("exceptions", writers[0], f, type="E", is_uncaught=True)
        logs.event("exceptions", writers[1], f, type="E", is_uncaught=True)
    logs.identify()
    assert logs.ask("SELECT run_id, count(*) FROM step_lines GROUP BY run_id ORDER BY run_id") == [(1, 2), (2, 2)]
    assert logs.ask("SELECT run_id, count(*) FROM exceptions GROUP BY run_id ORDER BY run_id") == [(1, 2), (2, 2)]


def test_two_worlds_one_after_the_other_are_two_runs_with_the_same_ranks(logs):
    f, first = world(logs, [0, 1], 2, "a")
    _, second = world(logs, [0, 1], 2, "b", file_id=f, pid=200)
    ranks = logs.identify()
    assert [ranks[w] for w in (*first, *second)] == [0, 1, 0, 1]
    assert logs.ask("SELECT run_id, list(DISTINCT comm_id) FROM comms GROUP BY run_id ORDER BY run_id") == [
        (1, ["a"]),
        (2, ["b"]),
    ]


def test_the_same_steps_under_another_label_are_another_run(logs):
    f = logs.file()
    w = logs.writer(f, prefix_rank=0)
    for mode in ("eager", "compiled"):
        for step in range(3):
            n = logs.event("step_lines", w, f, step=step)
            for name, value, text in (("mode", None, mode), ("loss", 1.0, "1.0")):
                insert(
                    logs.con, "metrics", writer_id=w, file_id=f, line_no=n, step=step, name=name, value=value, text=text
                )
    logs.identify()
    assert logs.ask("SELECT name FROM runs ORDER BY run_id") == [("mode=eager",), ("mode=compiled",)]
    assert logs.ask("SELECT run_id, count(*) FROM step_lines GROUP BY run_id ORDER BY run_id") == [(1, 3), (2, 3)]


def test_training_and_evaluation_are_one_run(logs):
    f = logs.file()
    w = logs.writer(f, prefix_rank=0)
    for phase in ("train", "eval"):
        for step in range(3):
            n = logs.event("step_lines", w, f, step=step)
            insert(logs.con, "metrics", writer_id=w, file_id=f, line_no=n, step=step, name="split", text=phase)
    logs.identify()
    assert len(logs.ask("FROM runs")) == 1


def test_rows_of_a_copy_are_not_counted(logs):
    f = logs.file("rank0.log", rank=0)
    w = logs.writer(f, prefix_rank=0)
    logs.event("step_lines", w, f, step=1)
    copy = logs.file("console.log", duplicate_of=f)
    v = logs.writer(copy, prefix_rank=0)
    logs.event("step_lines", v, copy, step=1)
    logs.identify()
    assert logs.ask("SELECT file_id FROM step_lines") == [(f,)]


def test_pointers_become_communicators_over_ranks(logs):
    f, writers = world(logs, [0, 1], 2, "cafe")
    for k, w in enumerate(writers):
        logs.event("collectives", w, f, source="nccl-coll", comm=f"0x{k}", nranks=2, op="allreduce")
    logs.identify()
    assert logs.ask("SELECT DISTINCT comm_id FROM collectives") == [("cafe",)]


def test_communicators_without_id_are_counted_by_size(logs):
    f = logs.file()
    for rank in range(2):
        w = logs.writer(f, prefix_rank=rank)
        for k in range(2):
            logs.event("collectives", w, f, source="nccl-coll", comm=f"0x{rank}{k}", nranks=2, op="allreduce")
    logs.identify()
    assert logs.ask("SELECT comm_id, list(rank ORDER BY rank) FROM collectives GROUP BY comm_id ORDER BY comm_id") == [
        ("size2.1", [0, 1]),
        ("size2.2", [0, 1]),
    ]


def test_what_is_printed_and_traced_is_one_event(logs):
    f = logs.file("stderr.log", local_rank=0)
    w = logs.writer(f, prefix_rank=0)
    logs.event("compiles", w, f, compile_id="4/1", is_recompile=True, fn="forward")
    trace = logs.file("trace.log", kind="trace", rank=0)
    v = logs.writer(trace, prefix_rank=0)
    logs.event("compiles", v, trace, compile_id="4/1", duration_s=1.5, user_file="train.py", user_line=3)
    logs.event("compiles", v, trace, compile_id="4/0", duration_s=2.5)
    logs.identify()
    assert logs.ask(
        "SELECT compile_id, file_id, duration_s, user_file, is_recompile FROM compiles ORDER BY compile_id"
    ) == [
        ("4/0", trace, 2.5, None, None),
        ("4/1", f, 1.5, "train.py", True),
    ]


def test_no_working_table_is_left(logs):
    logs.writer(logs.file())
    logs.identify()
    assert logs.ask("SELECT table_name FROM duckdb_tables() WHERE temporary") == []


@pytest.mark.parametrize(("on_log", "kept"), [([0, 1], ["log", "log"]), ([0], ["log", "trace", "trace"])])
def test_graphs_that_a_log_and_a_trace_print_are_counted_once(logs, on_log, kept):
    for rank in (0, 1):
        trace = logs.file(f"trace{rank}.log", kind="trace", rank=rank)
        logs.event(
            "graphs",
            logs.writer(trace, prefix_rank=rank),
            trace,
            compile_id="0/0",
            kind="joint",
            digest="a",
            name="trace",
        )
        if rank in on_log:
            log = logs.file(f"rank{rank}.log", rank=rank)
            logs.event(
                "graphs",
                logs.writer(log, prefix_rank=rank),
                log,
                compile_id="0/0",
                kind="joint",
                digest="b",
                name="log",
            )
    logs.identify()
    assert logs.ask("SELECT name FROM graphs ORDER BY name") == [(name,) for name in kept]


def test_a_folder_of_compile_debug_repeats_the_log(logs):
    log, debug = logs.file("rank0.log", rank=0), logs.file("debug.log", kind="compile-debug")
    w, d = logs.writer(log, prefix_rank=0), logs.writer(debug)
    logs.event("graphs", w, log, compile_id="0/0", kind="joint", name="log")
    logs.event("graphs", d, debug, kind="joint", name="debug")
    logs.event("graphs", d, debug, kind="output_code", name="debug only")
    logs.identify()
    assert logs.ask("SELECT name FROM graphs ORDER BY name") == [("debug only",), ("log",)]


@pytest.mark.parametrize(("second", "expected"), [(1, 1), (8, None)])
def test_what_a_pod_writes_is_of_the_one_rank_that_it_names_where_pods_are_ranks(logs, second, expected):
    f = logs.file()
    logs.writer(f, prefix_rank=0, label="trainer-0")
    logs.writer(f, prefix_rank=second, label="trainer-1")
    silent = logs.writer(f, label="trainer-1", pid=42)
    assert logs.identify()[silent] == expected
