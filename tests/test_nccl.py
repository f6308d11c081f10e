"""What NCCL 2.10 to 2.32 prints: headers, and the rows that its messages give."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError
from nccl_lines import EXECUTOR, parse, row, said

from replay.parse.families import families
from replay.resources import folder

HEADERS = [
    ("vm:7:8 [3] NCCL INFO Connected all trees", {"pid": "7", "tid": "8", "dev": "3", "nccl_level": "INFO"}),
    ("node-1:7:8 [-1] NCCL INFO x", {"nccl_host": "node-1", "dev": "-1"}),
    ("vm:7:8 [1835627630] init.cc:1117 NCCL WARN x", {"dev": "1835627630", "nccl_place": "init.cc:1117"}),
    ("vm:7:8 [0] misc/argcheck.cc:204 (ArgsCheck) NCCL WARN x", {"nccl_func": "ArgsCheck"}),
    ("vm:7:8 [0] init.cc:1 (f) NCCL ATTN x", {"nccl_level": "ATTN"}),
    ("[2026-11-29 23:14:27] vm:7:8 [0] a.cc:1 NCCL WARN x", {"date": "2026-11-29", "clock": "23:14:27"}),
    ("[2026-11-29 23:14:27.123456] vm:7:8 [0] NCCL INFO x", {"clock": "23:14:27.123456"}),
    ("2026-11-29T23:14:27 vm:7:8 [0] NCCL INFO x", {"date": "2026-11-29"}),
    ("1795993465.811 vm:7:8 [0] NCCL INFO x", {"epoch": "1795993465.811", "nccl_host": "vm"}),
    ("[11/29/26 23:14] vm:7:8 [0] NCCL INFO x", {"nccl_host": "vm"}),
    ("vm:7:8 NCCL CALL ncclGroupStart()", {"nccl_level": "CALL"}),
    ("vm:7:8 [0] 12.345678 ncclInit:55 NCCL TRACE x", {"nccl_ms": "12.345678", "nccl_place": "ncclInit:55"}),
]


@pytest.mark.parametrize(("line", "fields"), HEADERS)
def test_headers(line, fields):
    match = EXECUTOR.one("headers", line)
    assert match.record == "nccl"
    assert {k: match.fields.get(k) for k in fields} == fields


INIT = {"comm_rank": 1, "nranks": 8, "device": 1, "bus_id": "1c000"}
COMMS = [
    ("comm 0x5f rank 1 nranks 8 cudaDev 1 busId 1c000 - Init COMPLETE", INIT | {"event": "complete", "ptr": "0x5f"}),
    ("comm 0x5f rank 1 nranks 8 cudaDev 1 busId 1c000 commId 0x3fa9 - Init COMPLETE", {"comm_id": "3fa9/8"}),
    ("comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 3 busId 1c000 commId 0x3fa9 - Init START", {"nvml_dev": 3}),
    (
        "ncclCommInitRank comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 1c000 commId 0x3fa9 - Init START",
        INIT | {"event": "start", "fn": "ncclCommInitRank", "comm_id": "3fa9"},
    ),
    (
        "[Rank 1] ncclCommInitRankConfig comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 1c000 "
        "commId 0x3 - Init START",
        {"fn": "ncclCommInitRankConfig", "comm_rank": 1},
    ),
    (
        "ncclCommSplit comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 1c000 parent 0x4 color 0 key "
        "-1 commId 0x3 - Init START",
        {"parent": "0x4", "color": 0, "key": -1, "comm_id": "3/1"},
    ),
    (
        "ncclCommSplit comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 1c000 parent 0x4 splitCount "
        "1 color 0 key 1- Init START",
        {"event": "start", "parent": "0x4", "key": 1},
    ),
    (
        "ncclCommSplit comm 0x5f rank 1 nranks 8 cudaDev 1 nvmlDev 1 busId 1c000 commId 0x3 parent 0x4 "
        "childCount 1 color 0 key 1 - Init COMPLETE",
        {"event": "complete", "parent": "0x4", "comm_id": "3/1"},
    ),
    ("comm 0x5f rank 1 nranks 8 cudaDev 1 busId 1c000 - Destroy COMPLETE", INIT | {"event": "destroy"}),
    ("comm 0x5f rank 1 nRanks 8 cudaDev 1 busId 1c000 commId 0x3 - Abort START", {"event": "abort-start"}),
    ("comm 0x5f rank 1 nRanks 8 cudaDev 1 busId 1c000 - Revoke COMPLETE, result 0", {"event": "revoke"}),
    (
        "comm 0x5f rank 1 nRanks 8 nNodes 2 localRanks 4 localRank 1 MNNVL 0",
        {"event": "layout", "nodes": 2, "local_ranks": 4},
    ),
    (
        "Init timings - ncclCommInitRank: rank 1 nranks 8 total 5.46 (kernels 0.00, alloc 0.00, bootstrap 0.09)",
        {"event": "timings", "total_s": 5.46},
    ),
    ("Init timings: rank 1 nranks 8 total 0.50 (kernels 0.20, bootstrap 0.01)", {"total_s": 0.5}),
]


@pytest.mark.parametrize(("text", "columns"), COMMS)
def test_the_life_of_communicators(text, columns):
    assert columns.items() <= row("comms", text).items()


CHANNELS = [
    (
        "Channel 00 : 0[1a000] -> 1[1c000] via P2P/IPC",
        {
            "channel": 0,
            "comm_rank": 0,
            "peer": 1,
            "dev": "1a000",
            "peer_dev": "1c000",
            "transport": "P2P",
            "method": "IPC",
        },
    ),
    ("Channel 03/1 : 5[5] -> 0[0] via P2P/CUMEM/read", {"channel": 3, "conn": 1, "method": "CUMEM"}),
    ("Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", {"method": "direct pointer"}),
    ("Channel 00/0 : 0[0] -> 1[1] via P2P/indirect/3[3]", {"method": "indirect/3[3]"}),
    ("Channel 00 : 0[1a000] -> 1[1c000] via direct shared memory", {"transport": "SHM"}),
    ("Channel 08 : 3[3] -> 2[2] via SHM/direct/direct", {"transport": "SHM", "method": "direct/direct"}),
    (
        "Channel 01/0 : 9[1] -> 1[1] [receive] via NET/IB/0/GDRDMA",
        {"transport": "NET", "direction": "receive", "method": "IB", "net_dev": 0, "gdr": True},
    ),
    ("Channel 01/0 : 1[1] -> 9[1] [send] via NET/IB/2(4)/GDRDMA(PCI)/Shared", {"net_dev": 2, "gdr": True}),
    ("Channel 01/0 : 1[1] -> 9[1] [send] via NET/AWS Libfabric/7", {"method": "AWS Libfabric", "gdr": False}),
    ("Channel 01/0 : 1[1] -> 9[1] [receive] via NET/IB/0/GDRDMA/flush=None", {"gdr": True}),
    ("Channel 01/0 : 1[1] -> 9[1] [send] via NET/Socket/0/Shared", {"gdr": False, "method": "Socket"}),
    ("Ring 00 : 9 -> 0 [receive] via NET/IB/0", {"transport": "NET", "comm_rank": 9, "peer": 0}),
    ("CollNet 00/0 : 3 [send] via COLLNET/SHARP/0/GDRDMA", {"transport": "COLLNET", "comm_rank": 3, "gdr": True}),
]


@pytest.mark.parametrize(("text", "columns"), CHANNELS)
def test_connections(text, columns):
    assert columns.items() <= row("channels", text).items()


def test_rings_and_trees():
    assert row("rings", "Ring 04 : 3 -> 0 -> 1") == {"channel": 4, "prev": 3, "me": 0, "next": 1}
    assert row("trees", "Tree 2 : -1 -> 0 -> 1/-1/-1") == {"channel": 2, "up": -1, "me": 0, "down": "1/-1/-1"}
    rows, _ = parse([said("Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->3"), said("Trees [0] -1->0->1/-1/-1 [1] 4->")])
    assert [(r["channel"], r["up"], r["me"], r["down"]) for r in rows.tables["trees"]] == [
        (0, -1, 0, "1/-1/-1"),
        (1, 3, 0, "-1/-1/-1"),
        (0, -1, 0, "1/-1/-1"),
    ]


def test_the_depth_of_a_node_follows_from_its_column():
    rows, _ = parse(
        [
            said("=== System : maxBw 48.0 totalBw 360.0 ==="),
            said("CPU/0-0 (1/1/2)"),
            said("+ PCI[5000.0] - NIC/0-0"),
            said("                + NET[1.2] - NET/0-0 (0/0/1.2)"),
            said("+ PCI[24.0] - PCI/0-1a000 (1000c0301000a096)"),
            said("              + PCI[24.0] - GPU/0-1b000 (0)"),
            said("                            + NVL[360.0] - NVS/0"),
            said("+ SYS[10.0] - CPU/0-1"),
            said("=========================================="),
        ]
    )
    assert [(r["depth"], r["node"], r.get("link"), r.get("bw")) for r in rows.tables["topology"]] == [
        (0, "CPU/0-0", None, None),
        (1, "NIC/0-0", "PCI", 5000.0),
        (2, "NET/0-0", "NET", 1.2),
        (1, "PCI/0-1a000", "PCI", 24.0),
        (2, "GPU/0-1b000", "PCI", 24.0),
        (3, "NVS/0", "NVL", 360.0),
        (1, "CPU/0-1", "SYS", 10.0),
    ]


COLL = "opCount {} sendbuff 0x7f01 recvbuff 0x7f02 count {} datatype {} op {} root {} comm 0x5f [nranks=4] stream 0x9"
OPERATIONS = [
    ("AllReduce", (7, 2, 0), {"op": "allreduce", "dtype": "float32", "redop": "max"}),
    ("AllGather", (9, 0, 0), {"op": "allgather", "dtype": "bfloat16"}),
    ("ReduceScatter", (6, 4, 0), {"op": "reducescatter", "redop": "avg", "dtype": "float16"}),
    ("Broadcast", (0, 0, 3), {"op": "broadcast", "root": 3, "dtype": "int8"}),
    ("Reduce", (8, 0, 2), {"op": "reduce", "root": 2, "redop": "sum"}),
    ("Send", (7, 0, 1), {"op": "send", "peer": 1}),
    ("Recv", (7, 0, 2), {"op": "recv", "peer": 2}),
    ("AlltoAll", (7, 0, 0), {"op": "alltoall"}),
    ("AllReduce", (7, 77, 0), {"redop": "user"}),
]


@pytest.mark.parametrize(("name", "numbers", "columns"), OPERATIONS)
def test_operations(name, numbers, columns):
    dtype, redop, root = numbers
    found = row("collectives", f"{name}: {COLL.format('1a', 256, dtype, redop, root)}")
    size = {7: 4, 9: 2, 6: 2, 0: 1, 8: 8}[dtype]
    common = {"source": "nccl-coll", "comm": "0x5f", "nranks": 4, "logged_seq": 26, "count": 256, "bytes": 256 * size}
    assert (columns | common).items() <= found.items()
    assert ("root" in found, "peer" in found, "redop" in found) == (
        "root" in columns,
        "peer" in columns,
        "redop" in columns,
    )


def test_an_operation_knows_the_communicator_of_its_pointer():
    init = "ncclCommInitRank comm 0x5f rank {} nranks 4 cudaDev 0 nvmlDev 0 busId 1a000 commId 0x{} - Init START"
    end = "comm 0x5f rank 2 nranks 4 cudaDev 0 busId 1a000 - Destroy COMPLETE"
    coll = f"AllReduce: {COLL.format(0, 1, 7, 0, 0)}"
    rows, _ = parse([said(t) for t in (coll, init.format(2, "aa"), coll, end, coll, init.format(1, "bb"), coll)])
    assert [(r.get("comm_id"), r.get("comm_rank")) for r in rows.tables["collectives"]] == [
        (None, None),
        ("aa", 2),
        (None, None),
        ("bb", 1),
    ]


def split(pointer, nth, color, nranks=2, comm_id=" commId 0xcc"):
    tail = f"busId 1a000 parent 0x1 color {color} key {nth}{comm_id}"
    return said(f"ncclCommSplit comm {pointer} rank 0 nranks {nranks} cudaDev 0 nvmlDev 0 {tail} - Init START")


def test_splits_of_one_colour_are_told_apart_by_their_number():
    world = "ncclCommInitRank comm 0x1 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 1a000 commId 0xaa - Init START"
    out = "Rank 0 has color with NCCL_SPLIT_NOCOLOR, not creating a new communicator"
    lines = [said(world), split("0x2", 0, 0), said(out), split("0x3", 1, 0)]
    rows, _ = parse(lines)
    assert [r["comm_id"] for r in rows.tables["comms"]] == ["aa", "cc/1", "cc/3"]
    rows, _ = parse([said(world), split("0x2", 0, 0, comm_id=""), split("0x3", 1, 5, comm_id="")])
    assert [r["comm_id"] for r in rows.tables["comms"]] == ["aa", "aa/1/0", "aa/2/5"]


def test_calls():
    rows, counts = parse(
        [
            "vm:7:7 NCCL CALL ncclGetUniqueId(0x4cc999104d394eb4)",
            "vm:7:7 NCCL CALL ncclCommInitRank(0x56, 2, 0x4cc999104d394eb4, 0, 0)",
            "vm:8:8 NCCL CALL ncclCommInitRank(0x57,2,0x4cc999104d394eb4,1,1)",
            "vm:7:7 NCCL CALL ncclGroupStart()",
            "vm:7:7 NCCL CALL ncclSend(0,7f8fbd000000,256,7,0,1,0x56,0x99)",
            "vm:7:9 NCCL CALL ncclCommSplit(0x56, 0, 1, 0x58, 0, 1)",
            "vm:7:7 NCCL CALL ncclCommDestroy(0x56)",
        ]
    )
    assert counts.parsed == 7
    (send,) = rows.tables["collectives"]
    assert (send["source"], send["op"], send["peer"], send["comm_id"]) == ("nccl-call", "send", 1, "4cc999104d394eb4")
    assert [(r["event"], r["ptr"], r.get("nranks"), r.get("parent")) for r in rows.tables["comms"]] == [
        ("start", "0x56", 2, None),
        ("start", "0x57", 2, None),
        ("start", "0x58", 1, "0x56"),
        ("destroy-start", "0x56", None, None),
    ]


TUNING = [
    ("524288 Bytes -> Algo 1 proto 2 time 12.345678", {"bytes": 524288, "algo": "RING", "proto": "SIMPLE"}),
    ("AllReduce: 8 Bytes -> Algo 0 proto 0 time 1.0", {"op": "AllReduce", "algo": "TREE", "proto": "LL"}),
    (
        "AllReduce: 8 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}",
        {"algo": "NVLS", "proto": "SIMPLE", "channels": "0..15"},
    ),
    ("AllReduce: 8 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0} cgaClusterSize 4", {"channels": "0..0"}),
    ("AllGather [Symmetric]: 8 Bytes -> Kernel AllGather_LL nchannels 1 nthreads 512", {"algo": "AllGather_LL"}),
    ("AllGather [Copy Engine]: 8 Bytes -> cudaMemcpyBatchAsync", {"algo": "Copy Engine"}),
]


@pytest.mark.parametrize(("text", "columns"), TUNING)
def test_tuning(text, columns):
    assert columns.items() <= row("tuning", text).items()


NETWORK = [
    ("Bootstrap : Using eth0:10.0.0.1<0>", [("bootstrap", "eth0", "10.0.0.1", True)]),
    ("Bootstrap: Using node1:29500", [("bootstrap", "node1", "29500", True)]),
    (
        "Bootstrap : Using [0]ib0:10.0.0.1<0> [1]ib1:fe80::2%ib1<0>",
        [("bootstrap", "ib0", "10.0.0.1", True), ("bootstrap", "ib1", "fe80::2%ib1", True)],
    ),
    ("NET/Socket : Using [0]eth0:10.0.0.1<0>", [("Socket", "eth0", "10.0.0.1", True)]),
    ("NET/IB : No device found.", [("IB", None, None, False)]),
    ("Failed to open libibverbs.so[.1]", [("IB", "libibverbs.so[.1]", None, False)]),
    ("Using network AWS Libfabric", [("AWS Libfabric", None, None, True)]),
    ("Failed to initialize NET plugin IB", [("IB", None, None, False)]),
]


@pytest.mark.parametrize(("text", "expected"), NETWORK)
def test_interfaces(text, expected):
    rows, _ = parse([said(text)])
    found = [(r["transport"], r.get("name"), r.get("address"), r["usable"]) for r in rows.tables["net_devices"]]
    assert found == expected


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        (
            "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE/SHARP [RO]; OOB eth0:10.0.0.1<0>",
            [("mlx5_0", 1, "IB"), ("mlx5_1", 1, "RoCE")],
        ),
        (
            "NET/IB : Using [0]{[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} ; OOB eth0:10.0.0.1<0>",
            [("mlx5_0", 1, "RoCE"), ("mlx5_1", 1, "RoCE")],
        ),
        ("NET/IB : Using [0]mlx5_bond_0:1/RoCE [RO]; OOB bond0:10.0.0.1<0>", [("mlx5_bond_0", 1, "RoCE")]),
    ],
)
def test_network_cards(text, devices):
    rows, _ = parse([said(text)])
    found = rows.tables["net_devices"]
    assert [(r["name"], r["port"], r["link"]) for r in found if r["transport"] == "IB"] == devices
    assert [r["address"] for r in found if r["transport"] == "bootstrap"] == ["10.0.0.1"]


@pytest.mark.parametrize(
    ("text", "gdr"),
    [
        ("NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'", True),
        ("NET/IB : GPU Direct RDMA Disabled for HCA 3 'mlx5_0'", False),
        (
            "NET/IB : GPU Direct RDMA Disabled for GPU 1[1a000] / HCA 0 'mlx5_0' (no module or not supported by GPU)",
            False,
        ),
    ],
)
def test_direct_rdma_of_a_card(text, gdr):
    assert row("net_devices", text) == {"transport": "IB", "name": "mlx5_0", "gdr": gdr}


ENV = [
    ("NCCL_IB_TIMEOUT set by environment to 22.", ("NCCL_IB_TIMEOUT", "22")),
    ("NCCL_COLLNET_ENABLE set by environment to 0", ("NCCL_COLLNET_ENABLE", "0")),
    ("NCCL_P2P_LEVEL set by environment to LOC", ("NCCL_P2P_LEVEL", "LOC")),
    ("NCCL_SOCKET_IFNAME set to ^lo,docker", ("NCCL_SOCKET_IFNAME", "^lo,docker")),
    ("NCCL_TOPO_FILE set by environment to /opt/topo.v1.xml", ("NCCL_TOPO_FILE", "/opt/topo.v1.xml")),
    ("TUNER/Plugin: NCCL_TUNER_PLUGIN set to none", ("NCCL_TUNER_PLUGIN", "none")),
]


@pytest.mark.parametrize(("text", "expected"), ENV)
def test_variables(text, expected):
    found = row("env", text)
    assert (found["name"], found["value"], found["origin"]) == (*expected, "nccl")


def test_versions():
    rows, counts = parse(
        [
            "NCCL version 2.21.5+cuda12.4",
            "[2026-11-29 23:14:27] NCCL version 2.27.7+cuda12.9",
            said("NCCL version 2.31.2+cuda12.9"),
            said("cudaDriverVersion 12040"),
        ]
    )
    assert counts.parsed == 4
    assert [(r["name"], r["version"], r.get("built_for")) for r in rows.tables["packages"]] == [
        ("nccl", "2.21.5", "cuda12.4"),
        ("nccl", "2.27.7", "cuda12.9"),
        ("nccl", "2.31.2", "cuda12.9"),
        ("cuda-driver", "12.4", None),
    ]


def test_what_is_not_known_is_parsed_and_gives_no_row():
    rows, counts = parse([said("Something that no version has said yet"), said("")])
    assert (counts.parsed, counts.malformed) == (2, 0)
    assert not rows.tables


def test_stamps_are_the_time_of_rows():
    rows, _ = parse(["[2026-11-29 23:14:27.5] vm:7:8 [0] NCCL INFO cudaDriverVersion 12040"])
    rows2, _ = parse(["1795993465.811 vm:7:8 [0] NCCL INFO cudaDriverVersion 12040"])
    assert rows.tables["packages"][0]["t"] % 60 == 27.5
    assert rows2.tables["packages"][0]["t"] == 1795993465.811


def test_the_other_lines_of_a_failed_bind_belong_to_it():
    rows, counts = parse(
        [
            said("Failed to bind NVLink SHARP (NVLS) Multicast memory of size 16777216 : CUDA error 401 'x'.", "WARN"),
            "This is usually caused by a system or configuration error in the Fabric Manager or NVSwitches.",
            "Do not force-enable NVLS (NCCL_NVLS_ENABLE=1) if you wish to avoid this error in the future.",
        ]
    )
    assert (counts.parsed, counts.continuation) == (1, 2)
    assert (rows.tables["nccl_warnings"][0]["family"], rows.tables["nccl_warnings"][0]["code"]) == ("nvls", 401)


numbers = st.integers(0, 10**9)
devices = st.from_regex(r"[0-9a-f]{1,6}", fullmatch=True)


@given(st.tuples(numbers, numbers, numbers), st.tuples(devices, devices), st.sampled_from(["IPC", "direct pointer"]))
def test_fields_of_a_connection_are_what_it_was_made_of(places, devs, method):
    (channel, rank, peer), (dev, peer_dev) = places, devs
    text = f"Channel {channel:02d}/1 : {rank}[{dev}] -> {peer}[{peer_dev}] via P2P/{method}/read"
    found = row("channels", text)
    assert found == {
        "channel": channel,
        "conn": 1,
        "comm_rank": rank,
        "peer": peer,
        "dev": dev,
        "peer_dev": peer_dev,
        "transport": "P2P",
        "method": method,
    }


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r"), max_size=200))
def test_no_text_breaks_the_parser(text):
    _, counts = parse([said(text), said(text, "WARN"), text])
    assert counts.lines == 3


SAMPLE = [
    ("nccl_comm", "comm_init", [text for text, _ in COMMS[:8]]),
    ("nccl_channel", "channel_net", [text for text, c in CHANNELS if c.get("transport") == "NET"]),
    ("nccl_coll", "coll", [f"AllReduce: {COLL.format('ff', 1, 7, 0, 0)}"]),
    ("nccl_env", "env_number", ["NCCL_IB_TIMEOUT set by environment to 22."]),
]


@pytest.mark.parametrize(("grammar", "form", "texts"), SAMPLE)
def test_lark_takes_the_same_lines(grammar, form, texts):
    path = folder("grammars") / f"{grammar}.lark"
    lark = Lark(path.read_text(), start=form, parser="earley", lexer="dynamic", import_paths=[str(path.parent)])
    for text in texts:
        for line in (text, text[:-1], text + " x", text.replace("0", "", 1)):
            try:
                lark.parse(line)
                taken = True
            except LarkError:
                taken = False
            match = next((m for f in families("nccl", "INFO") if (m := EXECUTOR.one(f, line))), None)
            assert taken == (match is not None and match.form == form), line


def test_paths_and_graphs_and_costs() -> None:
    rows, _ = parse(
        [
            said("GPU/0-1a000 :GPU/0-1a000 (0/5000.0/LOC) NVS/0-0 (1/480.0/NVL) CPU/0-0 (2/24.0/PHB) "),
            said("Pattern 4, crossNic 0, nChannels 12, bw 30.000000/24.0, type NVL/PIX, sameChannels 1"),
            said("  Algorithm   |                            Tree                  |"),
            said("  Protocol    |             LL |          LL128 |         Simple |"),
            said(" Max NThreads |            512 |            640 |            512 |"),
            said("    AllReduce |    10.6/  13.9 |    19.0/  32.9 |    -1.0/  -1.0 |"),
            said("    AllReduce |    10.6/  13.9 |    19.0/  32.9 |"),
        ]
    )
    paths = [(p["node"], p["peer"], p["hops"], p["bw"], p["type"]) for p in rows.tables["topology_paths"]]
    assert paths[1:] == [("GPU/0-1a000", "NVS/0-0", 1, 480.0, "NVL"), ("GPU/0-1a000", "CPU/0-0", 2, 24.0, "PHB")]
    (graph,) = rows.tables["channel_graphs"]
    assert (graph["pattern"], graph["channels"], graph["bw_intra"], graph["type_inter"]) == ("ring", 12, 30.0, "PIX")
    costs = [(c["algo"], c["proto"], c["latency_us"], c["bw"]) for c in rows.tables["tuning_costs"]]
    assert costs == [("Tree", "LL", 10.6, 13.9), ("Tree", "LL128", 19.0, 32.9), ("Tree", "Simple", -1.0, -1.0)]


def test_costs_up_to_2_17_stand_in_one_table() -> None:
    rows, _ = parse(
        [
            said("Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Ring/Simple |"),
            said("   Max NThreads |            512 |            640 |            512 |"),
            said("  AllReduce |    10.6/  13.9 |    19.0/  32.9 |    15.0/   6.0 |"),
        ]
    )
    assert [(c["algo"], c["proto"]) for c in rows.tables["tuning_costs"]] == [
        ("Tree", "LL"),
        ("Tree", "LL128"),
        ("Ring", "Simple"),
    ]


def test_what_the_initialisation_took() -> None:
    told = row(
        "comms",
        "Init timings - ncclCommInitRank: rank 0 nranks 2 total 1.37 (kernels 0.24, alloc 0.01, bootstrap 0.75, "
        "allgathers 0.01, topo 0.06, graphs 0.02, connections 0.25, rest 0.03)",
    )
    assert (told["total_s"], told["bootstrap_s"], told["topo_s"], told["connections_s"]) == (1.37, 0.75, 0.06, 0.25)
    older = row("comms", "Init timings: rank 0 nranks 2 total 1.37 (kernels 0.24, bootstrap 0.75, rest 0.03)")
    assert (older["bootstrap_s"], older.get("topo_s")) == (0.75, None)
