"""The report of NCCL's RAS service."""

from nccl_lines import parse

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
