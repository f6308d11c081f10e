"""Messages of torch's C++ distributed code, by version: own values, real wordings."""

import pytest
from failure_lines import Identity, parse
from hypothesis import given
from hypothesis import strategies as st

WORK = "WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=300000)"

TIMEOUTS = {
    "1.13": "[E ProcessGroupNCCL.cpp:737] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=300000) ran for 300012 milliseconds before timing out.",
    "2.0": "[E ProcessGroupNCCL.cpp:828] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=57, OpType=ALLREDUCE, TensorShape=[64, 64], Timeout(ms)=300000) ran for 300012 milliseconds "
    "before timing out.",
    "2.1": "[E ProcessGroupNCCL.cpp:475] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=300000) ran for 300012 "
    "milliseconds before timing out.",
    "2.3": f"[rank3]:[E ProcessGroupNCCL.cpp:523] [Rank 3] Watchdog caught collective operation timeout: {WORK} "
    "ran for 300012 milliseconds before timing out.",
    "2.8": f"[rank3]:[E314 09:26:53.589793238 ProcessGroupNCCL.cpp:655] [Rank 3] Watchdog caught collective operation "
    f"timeout: {WORK} ran for 300012 milliseconds before timing out.",
    "glog": "E0314 09:26:53.589793 4711 ProcessGroupNCCL.cpp:655] [Rank 3] Watchdog caught collective operation "
    f"timeout: {WORK} ran for 300012 milliseconds before timing out.",
}


@pytest.mark.parametrize("version", TIMEOUTS)
def test_a_watchdog_timeout_is_a_row_in_every_version(version):
    rows = parse(TIMEOUTS[version])
    row = rows.one("timeouts")
    assert (row["kind"], row["op"], row["timeout_ms"], row["ran_ms"]) == ("watchdog", "allreduce", 300000, 300012)
    assert row["group_rank"] == 3
    assert row["logged_seq"] == (None if version == "1.13" else 57)
    assert row["numel_in"] == (None if version in {"1.13", "2.0"} else 4096)
    assert rows.of("collectives", "source", "op", "state", "logged_seq") == [
        ("watchdog", "allreduce", "timed-out", row["logged_seq"])
    ]


def test_where_no_line_has_a_rank_the_texts_rank_of_the_default_group_is_the_writers():
    assert parse(TIMEOUTS["2.1"]).one("timeouts")["rank"] == 3
    assert parse(TIMEOUTS["2.1"], Identity(label="pod-a")).one("timeouts")["rank"] is None


STATUS = {
    "2.3": "[PG 0 Rank 1] Timeout at NCCL work: 9, last enqueued NCCL work: 11, last completed NCCL work: 8.",
    "2.4": "[PG 0 (default_pg) Rank 1] Exception (either an error or timeout) detected by watchdog at work: 9, "
    "last enqueued NCCL work: 11, last completed NCCL work: 8.",
    "2.5": "[PG ID 4 PG GUID 71(mesh_tp) Rank 1] Exception (either an error or timeout) detected by watchdog at "
    "work: 9, "
    "last enqueued NCCL work: 11, last completed NCCL work: 8.",
    "2.7": "[PG ID 4 PG GUID 71(mesh_tp) Rank 1]  failure detected by watchdog at work sequence id: 9 PG status: "
    "last enqueued work: 11, last completed work: 8",
    "2.7 without description": "[PG ID 4 PG GUID 71 Rank 1]  failure detected by watchdog at work sequence id: 9 "
    "PG status: last enqueued work: 11, last completed work: 8",
}


def event(status: str, seq: int = 9) -> str:
    """One timeout as its rank prints it: error, status, aftermath, thread's end, abort."""
    work = f"WorkNCCL(SeqNum={seq}, OpType=_ALLGATHER_BASE, NumelIn=2, NumelOut=16, Timeout(ms)=1000)"
    caught = (
        f"[Rank 1] Watchdog caught collective operation timeout: {work} ran for 1003 milliseconds before timing out."
    )
    return "\n".join(
        [
            f"[rank5]:[E101 01:02:03.000000004 ProcessGroupNCCL.cpp:1] {caught}",
            f"[rank5]:[E101 01:02:03.000000005 ProcessGroupNCCL.cpp:2] {status}",
            "[rank5]:[E101 01:02:03.000000006 ProcessGroupNCCL.cpp:3] Stack trace of the failed collective: ",
            "#0 all_gather from /srv/env/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py:12",
            "#1 main from /srv/job/train.py:77",
            "",
            "[rank5]:[E101 01:02:03.000000006 ProcessGroupNCCL.cpp:3] [Rank 1] Some NCCL operations have failed "
            "or timed "
            "out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on "
            "corrupted/incomplete data.",
            "[rank5]:[E101 01:02:03.000000007 ProcessGroupNCCL.cpp:4] [PG ID 4 PG GUID 71(mesh_tp) Rank 1] "
            "Process group "
            f"watchdog thread terminated with exception: {caught}",
            "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:5 "
            "(most recent call first):",
            "frame #0: c10::Error::Error() + 0x96 (0x7f0000000001 in /srv/env/libc10.so)",
            "",
            "terminate called after throwing an instance of 'c10::DistBackendError'",
            f"  what():  [PG ID 4 PG GUID 71(mesh_tp) Rank 1] Process group watchdog thread terminated with "
            f"exception: {caught}",
            "Exception raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:5 "
            "(most recent call first):",
        ]
    )


@pytest.mark.parametrize("version", STATUS)
def test_one_event_is_one_row_and_its_status_line_adds_to_it(version):
    rows = parse(event(STATUS[version]))
    row = rows.one("timeouts")
    assert (row["rank"], row["line_no"], row["last_enqueued"], row["last_completed"]) == (5, 1, 11, 8)
    assert row["group_name"] == ("0" if version in {"2.3", "2.4"} else "71")
    assert (row["op"], row["numel_in"], row["numel_out"]) == ("allgather", 2, 16)
    assert rows.one("collectives")["comm"] == row["group_name"]
    crash = rows.one("crashes")
    assert crash["signal"] == "SIGABRT"
    assert "watchdog thread terminated" in crash["text"]
    assert "plain" not in rows.kinds


def test_two_groups_of_one_rank_time_out_each_for_itself():
    first, second = event(STATUS["2.7"]).split("\n")[:2], event(STATUS["2.7"], seq=12).split("\n")[:2]
    second = [line.replace("id: 9", "id: 12").replace("GUID 71", "GUID 80") for line in second]
    rows = parse("\n".join([*first, *second]))
    assert rows.of("timeouts", "logged_seq", "group_name") == [(9, "71"), (12, "80")]


@pytest.mark.parametrize(
    ("enqueued", "completed", "expected"),
    [
        (1, 3904955349522264369, (1, None)),
        (-1, -1, (-1, -1)),
        (1, 18446744073709551615, (1, -1)),
        (4294967297000000, 0, (None, 0)),
        (7, 140234, (7, None)),
        (3, 2, (3, 2)),
    ],
)
def test_numbers_that_cannot_be_are_null(enqueued, completed, expected):
    status = (
        f"[PG 0 Rank 1] Timeout at NCCL work: 1, last enqueued NCCL work: {enqueued}, last completed NCCL "
        f"work: {completed}."
    )
    work = "WorkNCCL(SeqNum=1, OpType=ALLGATHER, NumelIn=1, NumelOut=8, Timeout(ms)=5)"
    caught = f"[Rank 1] Watchdog caught collective operation timeout: {work} ran for 6 milliseconds before timing out."
    rows = parse(f"[rank1]:[E ProcessGroupNCCL.cpp:1] {caught}\n[rank1]:[E ProcessGroupNCCL.cpp:2] {status}")
    assert rows.of("timeouts", "last_enqueued", "last_completed") == [expected]


DUMPS = {
    "2.3": "[PG 0 Rank 2] Received a global timeout from another rank and will start to dump the debug info. "
    "Last enqueued NCCL work: 40, last completed NCCL work: 40.",
    "2.5": "[PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout from  rank "
    "6 and we "
    "will try our best to dump the debug info. Last enqueued NCCL work: 40, last completed NCCL work: 40.This is most "
    "likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks.",
}


@pytest.mark.parametrize("version", DUMPS)
def test_a_rank_that_is_told_to_dump_says_how_far_it_came(version):
    line = f"[rank2]:[E202 02:02:02.000000002 ProcessGroupNCCL.cpp:9] {DUMPS[version]}"
    rows = parse(f"{line}\n{line}")
    assert rows.of("timeouts", "kind", "rank", "last_enqueued", "last_completed") == [("dump-signal", 2, 40, 40)]


def test_a_dump_for_its_own_timeout_is_no_second_row():
    own = DUMPS["2.5"].replace(" rank 6", "this local rank")
    assert not parse(f"[rank2]:[E202 02:02:02.000000002 ProcessGroupNCCL.cpp:9] {own}").tables["timeouts"]


HEARTBEATS = {
    "[PG 3 Rank 1] Heartbeat monitor timed out! Process will be terminated after dumping debug info. "
    "workMetaList_.size()=12": None,
    "[PG 3 Rank 1] [PG 3 Rank 1] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in "
    "monitoring enqueued collectives. This typically indicates a NCCL/CUDA API hang.": 480000,
}


@pytest.mark.parametrize("text", HEARTBEATS)
def test_a_stuck_watchdog_is_a_heartbeat(text):
    row = parse(f"[rank1]:[F ProcessGroupNCCL.cpp:9] {text}").one("timeouts")
    assert (row["kind"], row["timeout_ms"], row["group_name"]) == ("heartbeat", HEARTBEATS[text], "3")


def test_the_barrier_of_the_store_is_entered_and_left():
    began = "INFO:torch.distributed.distributed_c10d:Added key: store_based_barrier_key:1 to store for rank: 3"
    ended = (
        "[rank3]:I0830 11:00:00.000000 7 torch/distributed/distributed_c10d.py:1087] Rank 3: Completed store-based "
        "barrier for key:store_based_barrier_key:1 with 8 nodes."
    )
    assert parse(f"{began}\n{ended}").of("activities", "kind", "phase", "what") == [
        ("barrier", "begin", "store_based_barrier_key:1"),
        ("barrier", "end", "store_based_barrier_key:1"),
    ]


STORE = [
    ("wait timeout after 600000ms, keys: /default_pg/0//cuda//0", "store", 600000, None),
    ("Timed out after 901 seconds waiting for clients. 3/8 clients joined.", "store", 901000, None),
    ("Timeout waiting for key: default_pg/0/0 after 1800000 ms", "store", 1800000, None),
    (
        "Timed out initializing process group in store based barrier on rank: 2, for key: store_based_barrier_key:1 "
        "(world_size=4, worker_count=3, timeout=0:30:00)",
        "store",
        None,
        None,
    ),
    (
        "[2] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key "
        "'0:1', but store->get('0:1') got error: wait timeout after 120000ms, keys: /default_pg/0//cuda//0",
        "nccl-init",
        120000,
        "0",
    ),
    (
        "Watchdog caught collective operation timeout: " + WORK + " ran for 1 milliseconds before timing out.",
        "watchdog",
        300000,
        None,
    ),
    ("RPC ran for more than set timeout (60000 ms) and will now be marked with an error", "rpc", 60000, None),
    (
        "[../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv "
        "operation to complete",
        "gloo",
        1800000,
        None,
    ),
    ("[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:12] Read timeout [10.0.0.7]:40001", "gloo", None, None),
    ("[Rank 0]: Rank 1 failed to pass monitoredBarrier in 6000 ms", "monitored-barrier", 6000, "1"),
    ("[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 8000 ms", "monitored-barrier", 8000, "1,3"),
    (
        "Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank "
        "0. Please check rank 0 logs for faulty rank.",
        "monitored-barrier",
        None,
        None,
    ),
    ("RPC call to execute_model timed out.", "rpc", None, None),
]


@pytest.mark.parametrize(("text", "kind", "ms", "missing"), STORE)
def test_waits_in_vain_are_timeouts_wherever_the_text_stands(text, kind, ms, missing):
    raised = (
        f'[rank1]: Traceback (most recent call last):\n[rank1]:   File "/srv/t.py", line 4, in f\n[rank1]:   '
        f"  g()\n[rank1]: RuntimeError: {text}"
    )
    rows = parse(raised)
    assert rows.of("timeouts", "kind", "rank", "timeout_ms", "missing", "line_no") == [(kind, 1, ms, missing, 4)]
    assert rows.one("exceptions")["category"] == "victim"


LOSSES = [
    (
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.1.2.3]:4711",
        "closed",
        "gloo",
        "[10.1.2.3]:4711",
    ),
    (
        "[/__w/gloo/transport/tcp/pair.cc:553] Connection closed by peer [fe80::1]:4711. This is typically "
        "caused by a remote worker crashing. GLHF! 🏖️",
        "closed",
        "gloo",
        "[fe80::1]:4711",
    ),
    (
        "[/__w/gloo/transport/tcp/pair.cc:537] Read error [10.1.2.3]:9: Connection reset by peer. This is typically",
        "reset",
        "gloo",
        "[10.1.2.3]:9",
    ),
    ("[../gloo/transport/tcp/pair.cc:598] writev [10.1.2.3]:9: Broken pipe", "broken-pipe", "gloo", "[10.1.2.3]:9"),
    (
        "[../gloo/transport/tcp/pair.cc:575] read [10.1.2.3]:9: Connection reset by peer",
        "reset",
        "gloo",
        "[10.1.2.3]:9",
    ),
    ("Application timeout caused pair closure", "aborted", "gloo", None),
    ("Connection reset by peer", "reset", "socket", None),
    ("Broken pipe", "broken-pipe", "socket", None),
    ("NCCL communicator was aborted on rank 1. ", "aborted", "nccl", None),
    (
        "The client socket has failed to connect to any network address of (head, 29400). The client socket has failed",
        "unreachable",
        "socket",
        "head:29400",
    ),
    (
        "The server socket has failed to listen on any local network address. port: 29400, useIpv6: false, code: "
        "-98, name: EADDRINUSE, message: address already in use",
        "address-in-use",
        "store",
        ":29400",
    ),
    (
        "The server socket has failed to listen on any local network address. The server socket has failed to "
        "bind to [::]:29500 (errno: 98 - Address already in use).",
        "address-in-use",
        "store",
        None,
    ),
    ("[Errno 98] Address already in use", "address-in-use", "socket", None),
]


@pytest.mark.parametrize(("text", "kind", "layer", "peer"), LOSSES)
def test_lost_peers_are_rows_wherever_the_text_stands(text, kind, layer, peer):
    rows = parse(
        f'[rank1]: Traceback (most recent call last):\n[rank1]:   File "/srv/t.py", line 4, in f\n[rank1]: '
        f"RuntimeError: {text}"
    )
    assert rows.of("peer_losses", "kind", "layer", "peer", "rank") == [(kind, layer, peer, 1)]
    assert rows.one("exceptions")["category"] in {"victim", "address"}


SOCKETS = [
    (
        "W",
        "[c10d] The client socket has failed to connect to [head-0]:29400 (errno: 111 - Connection refused).",
        ("refused", "socket", "[head-0]:29400"),
    ),
    (
        "W",
        "[c10d] The client socket has failed to connect to [head-0]:29400 (errno: 113 - No route to host).",
        ("no-route", "socket", "[head-0]:29400"),
    ),
    (
        "W",
        "[c10d] The client socket has failed to connect to [::1]:29400 (errno: 97 - Address family not supported "
        "by protocol).",
        None,
    ),
    (
        "W",
        "[c10d] The IPv6 network addresses of (head-0, 29400) cannot be retrieved (gai error: -2 - Name or "
        "service not known).",
        None,
    ),
    (
        "E",
        "[c10d] The network addresses of (head-0, 29400) cannot be retrieved (gai error: -2 - Name or service "
        "not known).",
        ("name-resolution", "socket", "head-0:29400"),
    ),
    (
        "W",
        "[c10d] recvValue failed on SocketImpl(fd=4, addr=[a]:51310, remote=[b]:29500): failed to recv, got 0 bytes",
        ("closed", "store", "[b]:29500"),
    ),
    (
        "W",
        "[c10d] sendBytes failed on SocketImpl(fd=4, addr=[a]:51310, remote=[b]:29500): Broken pipe",
        ("broken-pipe", "store", "[b]:29500"),
    ),
]


@pytest.mark.parametrize(("level", "text", "expected"), SOCKETS)
def test_socket_lines_are_losses_unless_the_next_address_is_tried(level, text, expected):
    rows = parse(f"[{level}1123 01:02:03.000000004 socket.cpp:7] {text}")
    assert rows.of("peer_losses", "kind", "layer", "peer") == ([expected] if expected else [])
    assert len(rows.tables["log_messages"]) == (0 if expected else 1)


def test_the_librarys_last_error_belongs_to_the_line_above_it():
    rows = parse(
        "[rank6]:[E415 21:17:08.000641115 ProcessGroupNCCL.cpp:552] [Rank 6] Collective "
        + WORK
        + " raised the following async exception: NCCL error: remote process exited or there was a network error, "
        "NCCL version 2.22.3\n"
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n"
        "Last error:\n"
        "socketProgress: Connection closed by remote peer node-b<31001>\n"
        "Exception raised from checkForNCCLErrorsInternal at x.cpp:1 (most recent call first):\n"
    )
    assert rows.of("peer_losses", "rank", "kind", "peer") == [(6, "remote-exit", None), (6, "closed", "node-b<31001>")]
    assert rows.one("packages")["version"] == "2.22.3"
    assert rows.kinds.count("continuation") == 4


def test_a_program_that_calls_the_library_itself_tells_the_same():
    rows = parse(
        "2026-11-30 00:31:54,933 ERROR rank 2: ncclAllReduce returned 6: remote process exited or there "
        "was a network error"
    )
    assert rows.of("peer_losses", "rank", "kind", "layer") == [(2, "remote-exit", "nccl")]


DESYNC = (
    "[E ProcessGroupNCCL.cpp:341] [Rank 0] \n"
    "\t - [0] Timeout at collective: ALLREDUCE, #3\n"
    "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n"
    "\t   - [1, 2] finished collective #2, but didn't join collective #3 (count from 1)\n"
    "\t - Snapshot of ranks' latest states:\n"
    "\t   #2 finished ranks:\n"
    "\t     [1, 2] finished BROADCAST\n"
    "\t   #3 started ranks:\n"
    "\t     [0] started ALLREDUCE"
)


def test_a_desync_report_names_the_lagging_ranks():
    row = parse(DESYNC).one("timeouts")
    assert (row["kind"], row["missing"], row["logged_seq"], row["op"]) == ("desync", "1,2", 3, "allreduce")
    never = parse(
        "[rank0]:[E ProcessGroupNCCL.cpp:341] Rank 0 \n\t - [0] Timeout at collective: BARRIER, #1\n\t - To our best "
        "knowledge, ranks [3] are the lagging ranks that caused this timeout. They never joined any collectives"
    )
    assert never.one("timeouts")["missing"] == "3"


def test_options_of_a_process_group_are_settings():
    rows = parse(
        "[rank3]:[I123 01:02:03.000000004 ProcessGroupNCCL.cpp:7] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL "
        "initialization options: size: 16, global rank: 3, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0, "
        "SPLIT_FROM: 0, SPLIT_COLOR: -1, PG Name: 0\n"
        "[rank3]:[I123 01:02:03.000000004 ProcessGroupNCCL.cpp:8] [PG ID 0 PG GUID 0 Rank 3] ProcessGroupNCCL "
        "environments: NCCL version: 2.25.1, TORCH_NCCL_BLOCKING_WAIT: 0, TORCH_NCCL_DESYNC_DEBUG: 1"
    )
    settings = dict(rows.of("env", "name", "value"))
    assert settings["world_size"] == "16"
    assert settings["TIMEOUT(ms)"] == "600000"
    assert settings["TORCH_NCCL_DESYNC_DEBUG"] == "1"
    assert rows.one("packages")["version"] == "2.25.1"
    old = parse(
        "[I ProcessGroupNCCL.cpp:669] [Rank 0] ProcessGroupNCCL initialized with following options:\n"
        "NCCL_ASYNC_ERROR_HANDLING: 1\nNCCL_DESYNC_DEBUG: 0\nTIMEOUT(ms): 1800000\n"
    )
    assert dict(old.of("env", "name", "value"))["NCCL_DESYNC_DEBUG"] == "0"


RENDEZVOUS = "torch.distributed.elastic.rendezvous.api."


def test_exceptions_of_the_rendezvous_tell_by_their_type():
    head = 'Traceback (most recent call last):\n  File "/srv/run.py", line 1, in main\n'
    assert parse(f"{head}{RENDEZVOUS}RendezvousTimeoutError").of("timeouts", "kind") == [("rendezvous",)]
    lost = "The connection to the C10d store has failed. See inner exception for details."
    assert parse(f"{RENDEZVOUS}RendezvousConnectionError: {lost}").of("peer_losses", "kind", "layer") == [
        ("store", "rendezvous")
    ]


def test_a_barriers_error_line_and_its_exception_are_one_timeout():
    text = "[Rank 0]: Ranks 2 failed to pass monitoredBarrier in 8000 ms"
    rows = parse(f"[rank0]:[E101 01:02:03.000000004 ProcessGroupGloo.cpp:7] {text}\n[rank0]: RuntimeError: {text}")
    assert rows.of("timeouts", "kind", "missing") == [("monitored-barrier", "2")]


def test_a_stores_wait_is_told_by_the_socket_and_by_the_exception():
    waited = "waitForInput: socket SocketImpl(fd=4, addr=[a]:1, remote=[b]:2) timed out after 2000ms"
    raised = "torch.distributed.DistStoreError: wait timeout after 2000ms, keys: /default_pg/0//key"
    rows = parse(
        f"[rank0]:[W101 01:02:03.000000004 socket.cpp:7] [c10d] {waited}\n[rank0]: {raised}\n[rank0]: {raised}"
    )
    assert rows.of("timeouts", "kind", "timeout_ms", "line_no") == [("store", 2000, 1), ("store", 2000, 3)]


NOISE = [
    "[W ProcessGroupNCCL.cpp:1] Warning: WARNING: destroy_process_group() was not called before program exit, "
    "which can "
    "leak resources. (function operator())",
    '[rank0]:[W123 01:02:03.000000004 ProcessGroupNCCL.cpp:7] [PG ID 0 PG GUID 0 Rank 0] Failed to check the "should '
    'dump" flag on TCPStore, (maybe TCPStore server has shut down too early), with error: Broken pipe',
]


@pytest.mark.parametrize("line", NOISE)
def test_teardown_noise_is_a_message_and_nothing_more(line):
    rows = parse(line)
    assert list(rows.tables) == ["log_messages"]
    assert rows.one("log_messages")["level"] == "warning"


WRITTEN = st.sampled_from(
    [*TIMEOUTS.values(), *(f"[rank1]:[E ProcessGroupNCCL.cpp:1] {s}" for s in STATUS.values()), *NOISE]
)


@given(st.lists(WRITTEN, max_size=8), st.data())
def test_cut_lines_are_classed_once_and_repeated_ones_tell_nothing_new(lines, data):
    cut = [line[: data.draw(st.integers(0, len(line)))] if data.draw(st.booleans()) else line for line in lines]
    once, twice = parse("\n".join([*cut, "end"])), parse("\n".join([*cut, *cut, "end"]))
    assert len(once.kinds) == len(cut) + 1
    assert len(once.tables["timeouts"]) == len(twice.tables["timeouts"])
    assert len(once.tables["collectives"]) == len(twice.tables["collectives"])
