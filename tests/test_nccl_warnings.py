"""What NCCL warns of: families and typed fields, over the wordings of versions; storms; lost peers."""

import pytest
from nccl_lines import parse, row, said

PEER = "10.0.0.2<41234>"
WARNINGS = [
    (
        "Cuda failure 'an illegal memory access was encountered'",
        "cuda",
        {"detail": "an illegal memory access was encountered"},
    ),
    ("Cuda failure 700 'an illegal memory access'", "cuda", {"code": 700, "detail": "an illegal memory access"}),
    ("Failed to create CUDA context on device 3", "cuda", {"device": "3"}),
    (
        "Duplicate GPU detected : rank 5 and rank 4 both on CUDA device 9d000",
        "duplicate-gpu",
        {"peer_rank": 5, "other_rank": 4, "device": "9d000"},
    ),
    (
        "Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable "
        "this configuration.",
        "duplicate-gpu",
        {},
    ),
    (
        f"NET/IB : Got completion from peer {PEER} with error 12, opcode 0, len 0, vendor err 129",
        "ib-completion",
        {"peer": PEER, "code": 12, "vendor_err": 129},
    ),
    (
        f"NET/IB : Got completion from peer {PEER} with error 4, opcode 1, len 32, vendor err 81 (Send) "
        "localGid fe80::1 remoteGids fe80::2",
        "ib-completion",
        {"code": 4, "vendor_err": 81},
    ),
    (
        f"NET/IB: Got completion from peer {PEER} with status=12 opcode=1 len=0 vendor err 129 (Recv) hca mlx5_1",
        "ib-completion",
        {"code": 12, "device": "mlx5_1", "peer": PEER},
    ),
    (
        f"NET/IB: Got completion from peer {PEER} with status=IBV_WC_RETRY_EXC_ERR(12) "
        "opcode=IBV_WC_RDMA_WRITE(1) reqSize=0 vendor_err=129 req_type=Send hca mlx5_0",
        "ib-completion",
        {"code": 12, "vendor_err": 129, "device": "mlx5_0"},
    ),
    (
        f"NET/IB: Got completion from peer {PEER} with status=IBV_WC_WR_FLUSH_ERR(5) "
        "opcode=IBV_WC_SEND(0) vendor_err=244 qp_num=77  hca mlx5_0",
        "ib-completion",
        {"code": 5, "device": "mlx5_0"},
    ),
    ("Call to pipe failed: Too many open files", "system", {"func": "pipe", "detail": "Too many open files"}),
    ("Call to bind failed with error Permission denied errno 13", "system", {"code": 13, "func": "bind"}),
    ("Could not find real path of /sys/class/net/eth0/device", "topology", {}),
    ("Error : ring 3 does not contain rank 5", "topology", {"detail": "3 does not contain rank 5"}),
    (
        "Coll AllReduce size 4096 symmetric registration check failed on rank 3: "
        "recv buffer window (0x10) mismatch with rank 0 (0x20)",
        "argument",
        {"func": "AllReduce", "peer_rank": 3},
    ),
    ("Window registration capabilities disagree between rank 3 and rank 0", "argument", {"other_rank": 0}),
    ("ncclAllReduce: communicator was revoked", "argument", {"detail": "communicator was revoked"}),
    (
        "Detected mixed local Net device counts across ranks (min 1, max 4). "
        "Set NCCL_IGNORE_NET_MISMATCH=1 to continue.",
        "interface",
        {"device": "Net"},
    ),
    ("[Proxy Service UDS] Poll failed: Interrupted system call", "proxy", {"detail": "Interrupted system call"}),
    (
        "UDS: Sending data over socket /tmp/nccl-1-2 failed : Connection refused (111)",
        "socket",
        {"code": 111, "detail": "Connection refused"},
    ),
    (
        "NET/IB: Work completion status is IBV_WC_RETRY_EXC_ERR(12), expected IBV_WC_SUCCESS(0)",
        "ib-completion",
        {"code": 12},
    ),
    ("NET/IB : Got async event : port error", "ib-async", {"detail": "port error"}),
    ("NET/IB : mlx5_0:1 Got async event : port active", "ib-async", {"device": "mlx5_0", "detail": "port active"}),
    ("NET/IB : mlx5_0:1 Got non-fatal async event: GID table change(18)", "ib-async", {"device": "mlx5_0"}),
    (
        "Call to ibv_reg_mr failed with error Cannot allocate memory",
        "verbs",
        {"func": "ibv_reg_mr", "detail": "Cannot allocate memory"},
    ),
    (
        "Call to ibv_modify_qp failed with error Connection timed out errno 110",
        "verbs",
        {"code": 110, "detail": "Connection timed out"},
    ),
    (
        "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR",
        "verbs",
        {"code": 110, "device": "mlx5_0", "detail": "Connection timed out"},
    ),
    ("NET/IB : Unable to open device mlx5_3", "verbs", {"device": "mlx5_3"}),
    ("Message truncated : received 104 bytes instead of 64", "truncation", {"detail": "104 bytes instead of 64"}),
    (f"NET/Socket : peer {PEER} message truncated : receiving 8 bytes instead of 4", "truncation", {"peer": PEER}),
    (
        f"NET/IB : req 0/1 tag 7 peer {PEER} collective mismatch error, local size 8 remote size 4",
        "truncation",
        {"peer": PEER},
    ),
    (f"socketProgress: Connection closed by remote peer {PEER}", "socket", {"peer": PEER}),
    (
        f"ncclOsSocketPollConnect to {PEER} failed with error Connection refused",
        "socket",
        {"detail": "Connection refused"},
    ),
    (
        "Broadcast : invalid root 99 (root should be in the 0..2 range)",
        "argument",
        {"func": "Broadcast", "code": 99, "detail": "0..2"},
    ),
    ("AllReduce : invalid type 77", "argument", {"code": 77, "detail": "invalid type"}),
    ("AllReduce : reduction operation 77 unknown to this communicator", "argument", {"code": 77}),
    ("AllReduce : sendbuff argument is NULL", "argument", {"detail": "sendbuff argument is NULL"}),
    ("AllReduce : sendbuff allocated on device 1 mismatchs with NCCL device 0", "argument", {"device": "1", "code": 0}),
    ("Invalid rank requested : 8/8", "argument", {"detail": "8/8"}),
    ("comm 0x5f has already been destroyed", "argument", {}),
    ("Error: failed to extend /dev/shm/nccl-abc to 9637892 bytes", "shm", {"detail": "/dev/shm/nccl-abc"}),
    (
        "Error while creating shared memory segment /dev/shm/nccl-abc (size 9637888), error: No space "
        "left on device (28)",
        "shm",
        {"detail": "/dev/shm/nccl-abc", "code": 28},
    ),
    ("Call to posix_fallocate failed : No space left on device", "shm", {"func": "posix_fallocate"}),
    (
        "[Proxy Service 3] Failed to execute operation Setup from rank 3, retcode 1",
        "proxy",
        {"peer_rank": 3, "code": 1, "detail": "Setup"},
    ),
    ("Proxy Call to rank 2 failed (Connect)", "proxy", {"peer_rank": 2, "detail": "Connect"}),
    ("Bootstrap : no socket interface found", "interface", {}),
    ("no device found matching eth9, verify NCCL_OOB_NET_IFNAME", "interface", {"device": "eth9"}),
    ("Bootstrap Root : rank 1 of 4 ranks has already checked in", "bootstrap", {"peer_rank": 1}),
    (
        "nvmlDeviceGetHandleByPciBusId() failed: Not Found",
        "nvml",
        {"func": "nvmlDeviceGetHandleByPciBusId", "detail": "Not Found"},
    ),
    ("P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case", "p2p", {}),
    ("MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration", "p2p", {}),
    ("Failed to CUDA calloc 6291456 bytes", "memory", {}),
    ("Error: network AWS not found.", "plugin", {"device": "AWS"}),
    ("NVLS something new", "nvls", {}),
    ("Something that no version has said yet", "other", {}),
]


@pytest.mark.parametrize(("text", "family", "columns"), WARNINGS)
def test_families(text, family, columns):
    found = row("nccl_warnings", text, "WARN", "init.cc:77")
    assert (found["level"], found["family"], found["text"]) == ("warn", family, text)
    assert (found["src_file"], found["src_line"]) == ("init.cc", 77)
    assert columns.items() <= found.items()


def test_attention_and_functions_of_later_versions():
    found = row("nccl_warnings", "Failed to initialize NET plugin IB", "ATTN", "plugin/net.cc:9 (netPluginInit)")
    assert (found["level"], found["family"], found["func"]) == ("attn", "other", "netPluginInit")


def test_what_is_only_informed_of_is_no_warning():
    assert row("nccl_warnings", "Could not enable P2P between dev 3(=5f000) and dev 2(=4e000)")["level"] == "info"
    rows, counts = parse(
        [said("NET/IB: NCCL Dev 0 IbDev 0 Port 1 qpn 7 mtu 5 LID 1"), said("NVLS comm 0x1 headRank 0")]
    )
    assert (counts.parsed, dict(rows.tables)) == (2, {})


CHAINS = [
    ("init.cc:1117 -> 1", {"src_file": "init.cc", "src_line": 1117, "code": 1}),
    ("misc/socket.cc:47 -> 3 [Async thread]", {"src_file": "misc/socket.cc", "detail": "Async thread"}),
    ("init.cc:2031 (ncclCommInitRankFunc) -> 5", {"func": "ncclCommInitRankFunc", "code": 5}),
    ("proxy.cc:897 -> 6 [Progress Thread]", {"code": 6}),
]


@pytest.mark.parametrize(("text", "columns"), CHAINS)
def test_the_way_of_an_error(text, columns):
    rows, _ = parse([said("Cuda failure 'unknown error'", "WARN"), said(text)])
    found = rows.tables["nccl_warnings"][1]
    assert (found["level"], found["family"]) == ("chain", "chain")
    assert columns.items() <= found.items()


def test_the_way_of_an_error_that_nobody_was_warned_of_is_information():
    rows, _ = parse(
        [
            said("transport/net_ib/init.cc:531 (ncclIbInit) -> 3"),
            said("Failed to initialize NET plugin IB", "ATTN", "plugin/net.cc:9"),
            said("lib wrapper not initialized.", "WARN", "misc/ibvwrap.cc:190"),
            said("transport/net_ib/gdr.cc:55 (ibDmaBufSupportInitOnce) -> 3"),
        ]
    )
    assert [r["level"] for r in rows.tables["nccl_warnings"]] == ["info", "attn", "warn", "info"]


LOSSES = [
    (f"Net : Connection closed by remote peer {PEER}", "closed"),
    (f"socketProgress: Connection closed by remote peer {PEER}", "closed"),
    (f"cryptSocketProgressRaw: Connection closed by remote peer {PEER}", "closed"),
    (f"Net : Connect to {PEER} failed : No route to host", "no-route"),
    (f"socketStartConnect: Connect to {PEER} failed : Network is unreachable", "unreachable"),
    (f"socketPollConnect to {PEER} failed with error Connection timed out", "timed-out"),
    (f"ncclOsSocketPollConnect to {PEER} failed with error Connection refused", "refused"),
    (f"socketProgressOpt: Call to recv from {PEER} failed : Connection reset by peer", "reset"),
    (f"ncclOsSocketProgressOpt: Call to send to {PEER} failed : 32 (Broken pipe)", "broken-pipe"),
    (
        f"socketPollConnect: connect to {PEER} returned Connection refused, exceeded error retry count "
        "after 34 attempts",
        "refused",
    ),
]


@pytest.mark.parametrize(("text", "kind"), LOSSES)
def test_lost_peers(text, kind):
    assert row("peer_losses", text, "WARN") == {"kind": kind, "layer": "nccl", "peer": PEER, "text": text}


@pytest.mark.parametrize("peer", ["<>", "<\ufffd\x05\ufffd>", ":<`\x03\x7f>"])
def test_garbage_is_no_address(peer):
    found = row("peer_losses", f"socketProgress: Connection closed by remote peer {peer}", "WARN")
    assert "peer" not in found


def test_waiting_for_a_peer_is_not_losing_it():
    rows, _ = parse([said("Call to connect returned Connection refused, retrying")])
    assert [r["level"] for r in rows.tables["nccl_warnings"]] == ["info"]
    assert "peer_losses" not in rows.tables


def test_versions_that_differ():
    text = "Mismatched NCCL version detected : rank 3 version 22501 rank 0 version 22304"
    found = row("mismatches", text, "WARN")
    assert found == {"aspect": "version", "other_rank": 0, "mine": "22501", "theirs": "22304", "detail": text}
    text = "NCCL version mismatch with remote peer 10.0.0.2<1> (local: 22501, remote 22304)"
    assert (row("mismatches", text, "WARN")["mine"], row("mismatches", text, "WARN")["theirs"]) == ("22501", "22304")


def test_memory_that_was_not_there():
    assert row("memory", "Failed to CUDA calloc 6291456 bytes", "WARN")["requested_mb"] == 6.0
    assert row("memory", "Cuda failure 2 'out of memory'", "WARN")["kind"] == "cuda-oom"


def test_a_storm_is_counted_as_lines_and_kept_in_a_few_rows():
    storm = [said(f"socketProgress: Connection closed by remote peer {PEER}", "WARN"), said("proxy.cc:897 -> 6")] * 500
    other = said("socketProgress: Connection closed by remote peer 10.0.0.3<1>", "WARN")
    rows, counts = parse([*storm, other])
    assert counts.parsed == 1001
    assert len(rows.tables["nccl_warnings"]) == 41
    assert rows.tables["peer_losses"][-1]["peer"] == "10.0.0.3<1>"


def test_a_peer_that_closed_a_connection_of_rma_is_lost() -> None:
    text = "RMA/Socket : receive socket from peer=3 closed after 5/64 control message bytes"
    rows, _ = parse([said(text, "WARN")])
    assert rows.tables["nccl_warnings"][0]["peer_rank"] == 3
    assert [loss["kind"] for loss in rows.tables["peer_losses"]] == ["closed"]
