"""Small finished run databases, as the stages before the report would leave them."""

import json

import duckdb
from factory import insert, make_db

LOG = "none_x/attempt_0/{rank}/stderr.log"
START = 1_764_460_000.0


def _ranks(con: duckdb.DuckDBPyConnection, world: int) -> None:
    for rank in range(world):
        path = LOG.format(rank=rank)
        insert(
            con,
            "files",
            file_id=rank + 1,
            path=path,
            kind="text",
            lines=100,
            parsed=40,
            continuation=20,
            plain=40,
            malformed=0,
            rank=rank,
            stream="stderr",
            encoding="plain",
            size=4096,
            wrapper="",
            run_key="",
            attempt=0,
        )
        insert(
            con,
            "ranks",
            run_id=1,
            rank=rank,
            host="node-1",
            local_rank=rank,
            pid=1000 + rank,
            device=rank,
            bus_id="0000:c1",
            heard=True,
            last_step=9,
        )


def recompile(con: duckdb.DuckDBPyConnection | None = None, world: int = 4) -> duckdb.DuckDBPyConnection:
    """Rank 2 recompiled while the others waited; the run completed."""
    con = con or make_db()
    _ranks(con, world)
    insert(
        con,
        "runs",
        run_id=1,
        attempt=0,
        ranks_expected=world,
        ranks_seen=world,
        outcome="completed",
        t_first=START,
        t_last=START + 26.4,
        span_s=26.4,
        torch="2.13.0",
        last_step=9,
    )
    for what in ("recompiles", "graph_breaks", "exit", "steps"):
        for rank in range(world):
            insert(con, "observed", run_id=1, rank=rank, what=what, is_on=True, how="a line of it")
    others = [r for r in range(world) if r != 2]
    insert(
        con,
        "findings",
        finding_id="F1",
        run_id=1,
        rule="recompile-barrier-stall",
        cause="recompile-barrier-stall",
        layer="interplay",
        kind="cause",
        is_root=True,
        ranks=[2],
        waiting=others,
        impact="slow",
        step=4,
        t=START + 10.5,
        certainty=0.95,
        cost_s=5.3,
        own_s=5.4,
        lost_s=21.2,
        without="recompiles",
        fingerprint="0123456789ab",
        summary="Rank 2 recompiled forward (train.py:16) because dim 0 of 'x' was 7 and not 8; ranks 0-1,3 waited.",
        advice="Mark the dimension dynamic: torch._dynamo.mark_dynamic(x, 0)",
        repro=json.dumps({"recipe": "recompile-stall", "with": {"world": 2}}),
    )
    rows = [
        (
            0,
            "failure",
            "guard failed",
            2,
            10.5,
            270,
            "[rank2]:V1130 00:00:10.500000 1002 torch/_dynamo/guards.py:3006] "
            "[4/1] [__recompiles]     - 4/0: tensor 'x' size mismatch at index 0. expected 8, actual 7",
        ),
        (
            1,
            "recompile",
            "recompiled [4/1]",
            2,
            10.5,
            268,
            "[rank2]:V1130 00:00:10.500000 1002 torch/_dynamo/guards.py:3006]"
            " [4/1] [__recompiles] Recompiling function forward in /srv/train.py:16",
        ),
        (2, "stall", "others waited", 0, 13.6, 6, "[rank0]: step 4 loss 0.25"),
        (3, "stall", "others waited", 1, 13.6, 6, "[rank1]: step 4 loss 0.25"),
        (4, "stall", "others waited", 3, 13.6, 6, "[rank3]: step 4 loss 0.25"),
    ]
    for nth, step_name, label, rank, t, line_no, text in rows:
        insert(
            con,
            "evidence",
            finding_id="F1",
            nth=nth,
            step_name=step_name,
            label=label,
            rank=rank,
            t=START + t,
            file_id=rank + 1,
            path=LOG.format(rank=rank),
            line_no=line_no,
            text=text,
        )
    insert(
        con,
        "events",
        seq=1,
        run_id=1,
        rank=2,
        kind="guard-failure",
        severity="info",
        file_id=3,
        line_no=270,
        summary="tensor 'x' size mismatch at index 0. expected 8, actual 7",
    )
    insert(
        con,
        "findings",
        finding_id="F2",
        run_id=1,
        rule="barrier-stall",
        cause="barrier-stall",
        layer="sync",
        kind="symptom",
        is_root=False,
        ranks=[2],
        waiting=others,
        impact="slow",
        certainty=0.9,
        fingerprint="b" * 12,
        summary="Ranks 0-1,3 waited 3.1 s for rank 2 at step 4.",
        advice="",
    )
    insert(con, "explains", cause_id="F1", effect_id="F2", how="explains")
    insert(
        con,
        "findings",
        finding_id="F3",
        run_id=1,
        rule="graph-breaks-torch",
        cause="graph-break-other",
        layer="compile",
        kind="note",
        is_root=False,
        ranks=[],
        impact="none",
        certainty=1.0,
        fingerprint="c" * 12,
        advice="",
        summary="3 graph breaks in torch's own DDP code (every DDP run has them).",
    )
    insert(con, "guard_failures", run_id=1, rank=2)
    return con


def hung(con: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
    """Eight ranks, seven of them silent at step 41, no rule fired; NCCL in use and still alive."""
    con = con or make_db()
    _ranks(con, 8)
    insert(
        con,
        "runs",
        run_id=1,
        attempt=0,
        ranks_expected=8,
        ranks_seen=8,
        outcome="hung",
        t_first=START,
        t_last=START + 4000,
        span_s=4000.0,
        torch="2.6.0",
        nccl="2.21.5",
        last_step=41,
    )
    for rank in range(8):
        insert(con, "observed", run_id=1, rank=rank, what="nccl-warn", is_on=True, how="a line of it")
        insert(con, "comms", run_id=1, rank=rank)
        summary = "saving checkpoint step_41.pt" if rank == 5 else "step 41"
        insert(
            con,
            "last_words",
            run_id=1,
            rank=rank,
            kind="step",
            summary=summary,
            silent_s=3600.0 + rank,
            file_id=rank + 1,
            line_no=99,
        )
    return con


def healthy(con: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyConnection:
    """Two ranks that did what they should."""
    con = con or make_db()
    _ranks(con, 2)
    insert(
        con,
        "runs",
        run_id=1,
        attempt=0,
        ranks_expected=2,
        ranks_seen=2,
        outcome="completed",
        t_first=START,
        span_s=30.0,
        torch="2.13.0",
        last_step=9,
    )
    return con
