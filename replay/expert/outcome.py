"""The verdict over a database: what `diagnose` says in one word."""

from typing import Literal

import duckdb

Verdict = Literal["cause", "symptom", "healthy", "insufficient"]


def verdict(con: duckdb.DuckDBPyConnection) -> Verdict:
    """Return `cause` or `symptom` where a finding of that kind is a root, else `healthy` or `insufficient`.

    A database is healthy only where every run was seen to end well and neither cause nor symptom was found.
    """
    kinds = {kind for (kind,) in con.execute("SELECT DISTINCT kind FROM findings WHERE is_root").fetchall()}
    if "cause" in kinds:
        return "cause"
    if "symptom" in kinds:
        return "symptom"
    outcomes = [outcome for (outcome,) in con.execute("SELECT outcome FROM runs").fetchall()]
    suspected = con.execute("SELECT count(*) FROM findings WHERE kind IN ('cause', 'symptom')").fetchone()
    if outcomes and all(outcome == "completed" for outcome in outcomes) and suspected == (0,):
        return "healthy"
    return "insufficient"
