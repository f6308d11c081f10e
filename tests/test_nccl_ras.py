"""The report of NCCL's RAS service."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nccl_lines import parse
from test_flight_records import read

from replay.sources.discover import discover
from replay.sources.model import Hints

REPORT = """\
NCCL version 2.28.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 12090

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          8            1         16       16

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2         8        16        16   RUNNING  MISMATCH
    1         8       1-2       1-2       1-2        16   RUNNING  INCOMPLETE

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 5103 on node 10.0.0.2 managing GPU 3

Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  14 ranks have launched up to operation 6650
  Rank 11 has launched up to operation 6649 -- GPU 3 managed by process 5103 on node 10.0.0.2
  Rank 12 has not launched any operations -- [process information not found]
  Communicator ranks have different status
  15 ranks have status RUNNING
  Rank 2 has status FINALIZE -- GPU 2 (NVML 5) managed by process 4102 on node 10.0.0.1
#1-3 (27a079b828ff1a76) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 1 -- GPU 3 managed by process 5103 on node 10.0.0.2
""".splitlines()


def test_ranks_that_are_behind_are_rows_below_their_communicator() -> None:
    rows, _ = parse(REPORT)
    found = rows.tables["ras_reports"]
    common = {"comm_hash": "27a079b828ff1a75", "group_no": 0, "comm_size": 16, "finding": "mismatch"}
    assert all(row.items() >= common.items() for row in found[:5])
    told = [(r["aspect"], r.get("comm_rank"), r["ranks_count"], r.get("launched"), r.get("status")) for r in found]
    assert told == [
        ("launched", None, 14, 6650, None),
        ("launched", 11, 1, 6649, None),
        ("launched", 12, 1, 0, None),
        ("status", None, 15, None, "RUNNING"),
        ("status", 2, 1, None, "FINALIZE"),
        ("missing", 1, 1, None, None),
    ]
    assert (found[1]["op"], found[1]["of_pid"], found[1]["node"], found[1]["gpu"]) == (
        "allreduce",
        5103,
        "10.0.0.2",
        "3",
    )
    assert "op" not in found[4]
    assert "comm_size" not in found[5]
    assert rows.tables["packages"][0]["version"] == "2.28.9"
    words = [text for kind, _, text in rows.kinds if kind == "plain" and any(map(str.isalpha, text))]
    assert words == ["Job summary", "Errors", "INCOMPLETE", "Warnings"]


def member(rank: int, allreduces: int, **status: object) -> dict[str, object]:
    known = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    counts = {"Broadcast": 1, "AllReduce": allreduces}
    place = {"host": "10.0.0.2", "pid": 5100 + rank, "cuda_dev": rank, "nvml_dev": rank}
    return {"rank": rank, **place, "status": known | status, "collective_counts": counts}


def report() -> dict[str, object]:
    missing = {"rank": 3, "host": "10.0.0.2", "pid": 5103, "status": {"unresponsive": True, "considered_dead": False}}
    comm = {"hash": "0xae94423cfbb2ef4a", "secondary_hash": "0x1:0x2", "size": 4, "ranks_count": 3}
    ranks = [member(0, 17), member(1, 16), member(2, 17, abort_flag=True, async_error=6)]
    return {
        "nccl_version": "2.29.1",
        "timestamp": "2026-11-19 13:06:53",
        "communicators_count": 1,
        "communicators": [comm | {"missing_ranks_count": 1, "ranks": ranks, "missing_ranks": [missing]}],
    }


def test_the_report_as_json_gives_the_rows_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "ras.json"
    path.write_text(json.dumps(report(), indent=2))
    (file,) = discover([str(path)], Hints()).files
    assert file.kind == "nccl-ras"
    rows = read(path, "nccl-ras")
    found = rows.tables["ras_reports"]
    told = [(r["finding"], r["aspect"], r.get("comm_rank"), r.get("launched"), r.get("status")) for r in found]
    assert told == [
        ("mismatch", "launched", None, 17, None),
        ("mismatch", "launched", 1, 16, None),
        ("mismatch", "status", None, None, "RUNNING"),
        ("mismatch", "status", 2, None, "ABORT"),
        ("error", "error", 2, None, "asynchronous error 6"),
        ("incomplete", "missing", 3, None, "unresponsive"),
    ]
    behind = found[1]
    assert (behind["op"], behind["node"], behind["of_pid"], behind["gpu"]) == ("allreduce", "10.0.0.2", 5101, "1")
    assert (behind["comm_hash"], behind["comm_size"]) == ("ae94423cfbb2ef4a", 4)
    assert path.read_text().splitlines()[behind["line_no"] - 1].strip() == '"rank": 1,'
    assert rows.one("packages")["version"] == "2.29.1"


def test_the_comma_that_2_28_9_forgets_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "ras.json"
    whole = json.dumps(report(), indent=2)
    path.write_text(whole.replace('"pid": 5103,', '"pid": 5103'))
    (file,) = discover([str(path)], Hints()).files
    assert file.kind == "nccl-ras"
    assert read(path, "nccl-ras").tables["ras_reports"][-1]["comm_rank"] == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"communicators": 3}', '{"communicators": [3, {"ranks": [4]}]}'])
def test_reports_of_another_shape_give_no_row(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ras.json"
    path.write_text(text)
    assert not read(path, "nccl-ras").tables["ras_reports"]


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
KEYS = st.sampled_from(["rank", "status", "collective_counts", "hash", "size", "ranks", "missing_ranks", "AllReduce"])
ODD = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner))


@given(ODD)
def test_members_may_be_anything(tmp_path_factory: pytest.TempPathFactory, odd: object) -> None:
    path = tmp_path_factory.mktemp("ras") / "ras.json"
    path.write_text(
        json.dumps({"nccl_version": "2.29.1", "communicators_count": 1, "communicators": [odd, {"ranks": [odd]}]})
    )
    rows = read(path, "nccl-ras")
    assert rows.kinds == ["parsed"]
