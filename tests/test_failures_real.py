"""Real logs, where they are at hand: what of their failures becomes rows. Skipped without them."""

import json
from pathlib import Path

import pytest
from failure_lines import Rows

from replay.grammar.executor import shared
from replay.parse.pipeline import parse_file
from replay.sources.discover import discover
from replay.sources.model import Hints
from replay.sources.read import read_batches

SHARED = Path(__file__).parents[2] / "shared"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the labelled runs are not here")

KINDS = {"text", "flight-recorder", "error-json"}


def rows_of(path: Path) -> Rows:
    rows = Rows()
    for file in discover([str(path)], Hints()).files:
        if file.kind in KINDS and file.duplicate_of is None:
            parse_file(file, read_batches(file, Hints()), rows, Hints(), shared())
    return rows


def cases(*, healthy: bool) -> list[Path]:
    found = sorted((SHARED / "cases").glob("*/truth.json")) if SHARED.is_dir() else []
    return [p.parent for p in found if (json.loads(p.read_text())["cause"] is None) == healthy]


@pytest.mark.parametrize("case", cases(healthy=True), ids=lambda p: p.name)
def test_a_healthy_run_tells_no_failure(case):
    rows = rows_of(case / "logs")
    assert not [r for r in rows.tables["exceptions"] if r["is_uncaught"]]
    for table in ("timeouts", "crashes", "exits", "device_faults", "mismatches"):
        assert not rows.tables[table], table


FAILED = {
    "exception": ("exceptions", {"rank": 1, "type": "ValueError", "category": "user", "user_line": 21}),
    "restart_same_failure": ("exceptions", {"rank": 1, "type": "KeyError", "category": "user"}),
    "pg_double_init": ("exceptions", {"rank": 0, "category": "misuse"}),
    "pg_rank_outside_group": ("exceptions", {"rank": 1, "category": "misuse"}),
    "open_files_shards": ("exceptions", {"rank": 0, "category": "limit"}),
    "memory_growth_rank1": ("memory", {"rank": 1, "kind": "alloc-failed", "requested_mb": 64.0}),
    "fsdp2-load": ("exceptions", {"rank": 1, "category": "state-dict"}),
    "ddp-unused": ("exceptions", {"rank": 0, "category": "ddp-unused"}),
    "temp-file-race": ("exceptions", {"rank": 44, "category": "backend-compile", "is_uncaught": True}),
    "parameter-shapes-differ": ("mismatches", {"rank": 1, "aspect": "params", "other_rank": 0}),
    "shape-mismatch-detail": ("mismatches", {"rank": 1, "aspect": "shape", "mine": "12", "theirs": "16"}),
    "op-mismatch-detail": ("mismatches", {"rank": 1, "aspect": "op", "op": "broadcast"}),
    "no-images-on-one-rank": ("collectives", {"rank": 1, "source": "fingerprint", "count": 187301888}),
    "size-differs-in-dump": ("mismatches", {"rank": 93, "mine": "[[131072]]", "theirs": "[[2049]]"}),
    "skipped-allreduce": ("timeouts", {"rank": 0, "kind": "gloo", "timeout_ms": 8000}),
    "skipped-allreduce--docker-json": ("timeouts", {"rank": 1, "kind": "gloo"}),
    "iterable-shards": ("timeouts", {"rank": 3, "logged_seq": 23, "last_completed": 22}),
    "dataset-activates": ("timeouts", {"rank": 0, "kind": "dump-signal", "last_enqueued": 41211}),
    "two-threads-one-comm": ("timeouts", {"rank": 15, "group_name": "108", "logged_seq": 83}),
    "rank0-tokenises": ("timeouts", {"rank": 2, "kind": "nccl-init", "missing": "0"}),
    "store-host": ("peer_losses", {"kind": "refused", "peer": "[head-0]:29500"}),
    "port_taken_torchrun": ("peer_losses", {"kind": "address-in-use"}),
    "agent-killed": ("peer_losses", {"layer": "rendezvous"}),
    "agent_sigterm": ("signals", {"direction": "received", "signal": "SIGTERM"}),
    "segv_ctypes": ("exits", {"of_rank": 1, "code": -11, "signal": "SIGSEGV", "is_first": True}),
    "rank-killed-a": ("exits", {"reporter": "shell", "of_pid": 47311, "signal": "SIGKILL"}),
    "collective-shape-mismatch-a": ("signals", {"direction": "announced", "reason": "time-limit"}),
    "ecc": ("device_faults", {"kind": "xid", "code": 48, "bus_id": "52000"}),
    "compiled-order-differs": ("flight_records", {"rank": 1, "state": "status", "last_enqueued": 6}),
    "zero-size-send": ("timeouts", {"kind": "stall", "missing": "2,3,4,5"}),
    "acs-on": ("timeouts", {"kind": "rpc", "timeout_ms": 60000}),
}


@pytest.mark.parametrize("case", FAILED)
def test_what_a_failed_run_tells(case):
    if not (SHARED / "cases" / case).is_dir():
        pytest.skip("this run is not here")
    table, expected = FAILED[case]
    found = rows_of(SHARED / "cases" / case / "logs").tables[table]
    assert any(expected.items() <= row.items() for row in found), found


def test_garbage_is_no_number_and_each_rank_timed_out_once():
    rows = rows_of(SHARED / "wild" / "46_watchdog_garbage_completed.log")
    told = sorted(rows.of("timeouts", "rank", "last_enqueued", "last_completed"))
    assert told == [(rank, 1, None) for rank in range(8)]
    assert sorted(r["rank"] for r in rows.tables["crashes"]) == list(range(8))


def test_ranks_that_only_the_launchers_table_shows():
    rows = rows_of(SHARED / "wild" / "27_torchtitan_oom_8r.log")
    assert sorted(r["rank"] for r in rows.tables["memory"] if r["kind"] == "cuda-oom") == [0, 1, 3]


def test_tracebacks_that_are_mixed_within_lines():
    rows = rows_of(SHARED / "wild" / "51_interleaved_py311_tb.log")
    assert ("IsADirectoryError", 16) in rows.of("exceptions", "type", "user_line")
    assert [r for r in rows.of("exits", "of_rank", "is_first") if r[1]] == [(1, True)]


def test_ddps_check_after_a_timeout():
    rows = rows_of(SHARED / "wild" / "52_watchdog27_ddp_shape_check.log")
    assert sorted(rows.of("timeouts", "rank", "last_completed")) == [(n, -1) for n in range(4)]
    assert len(rows.tables["mismatches"]) == 4


def test_a_time_limit():
    rows = rows_of(SHARED / "wild" / "11_srun_label_ib_error_timelimit.log")
    assert {r["reason"] for r in rows.tables["signals"]} == {"time-limit"}
