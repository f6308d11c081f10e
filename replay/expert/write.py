"""Findings as rows: `findings`, `evidence` with the raw lines, `explains`, `premises`, `rivals`."""

from collections.abc import Sequence

import duckdb

from replay.expert.finding import Finding, Picked
from replay.expert.rivals import Rival

TEXT_CUT = 400
"""Characters of a raw line that evidence keeps."""


def write(
    con: duckdb.DuckDBPyConnection, findings: Sequence[Finding], rivals: Sequence[Rival], problems: Sequence[str]
) -> None:
    """Replace the rows of an earlier diagnosis by these."""
    con.execute(
        "DELETE FROM findings; DELETE FROM evidence; DELETE FROM explains; DELETE FROM premises; DELETE FROM rivals; "
        "DELETE FROM problems WHERE kind = 'rule'"
    )
    _insert(con, "problems (kind, text)", ("VARCHAR", "VARCHAR"), [("rule", text) for text in problems])
    _insert(
        con,
        "findings (finding_id, run_id, rule, cause, layer, kind, is_root, ranks, waiting, impact, step, t, certainty,"
        " lost_s, without, fingerprint, summary, advice, repro)",
        (*("VARCHAR", "INTEGER"), *("VARCHAR",) * 4, "BOOLEAN", "INTEGER[]", "INTEGER[]", "VARCHAR", "BIGINT",
         *("DOUBLE",) * 3, *("VARCHAR",) * 5),
        [
            (
                f.finding_id, f.run_id, f.rule, f.cause, f.layer, f.kind, f.is_root, list(f.ranks), list(f.waiting),
                f.impact, f.step, f.t, f.certainty, f.lost_s, f.without, f.fingerprint, f.summary, f.advice or None,
                f.repro,
            )
            for f in findings
        ],
    )  # fmt: skip
    _insert(
        con,
        "explains (cause_id, effect_id, how)",
        ("VARCHAR",) * 3,
        [
            (f.finding_id, other.finding_id, how)
            for f in findings
            for how, others in (("explains", f.explains), ("absorbs", f.absorbs))
            for other in sorted(others, key=lambda effect: int(effect.finding_id[1:]))
        ],
    )
    ids = {f.key: f.finding_id for f in findings}
    _insert(
        con,
        "premises (finding_id, premise_id)",
        ("VARCHAR",) * 2,
        [(f.finding_id, ids[key]) for f in findings for key in f.premises],
    )
    _insert(
        con,
        "rivals (run_id, cause, rule, finding_id, summary, why)",
        ("INTEGER", *("VARCHAR",) * 5),
        [(r.run_id, r.cause, r.rule, r.finding_id, r.summary, r.why) for r in rivals],
    )
    _write_evidence(con, [(f.finding_id, nth, picked) for f in findings for nth, picked in enumerate(f.evidence)])


def _write_evidence(con: duckdb.DuckDBPyConnection, items: Sequence[tuple[str, int, Picked]]) -> None:
    """Write evidence; the raw text, path, and where the row does not tell them rank and time, come from its line."""
    if not items:
        return
    columns = [list(column) for column in zip(*(
        (finding_id, nth, p.step, p.label, p.rank, p.t, p.file_id, p.line_no, p.at) for finding_id, nth, p in items
    ), strict=True)]  # fmt: skip
    kinds = ("VARCHAR", "INTEGER", "VARCHAR", "VARCHAR", "INTEGER", "DOUBLE", "INTEGER", "BIGINT", "VARCHAR")
    con.execute(
        f"""INSERT INTO evidence (finding_id, nth, step_name, label, rank, t, file_id, path, line_no, "at", text)
        WITH picked (finding_id, nth, step_name, label, rank, t, file_id, line_no, entry) AS (
            SELECT {", ".join(f"unnest(?::{kind}[])" for kind in kinds)}
        ), said AS (
            SELECT file_id, line_no, any_value(rank) AS rank, min(t_lo) AS t, any_value(text) AS text
            FROM lines SEMI JOIN picked USING (file_id, line_no) GROUP BY file_id, line_no
        )
        SELECT p.finding_id, p.nth, p.step_name, p.label, coalesce(l.rank, p.rank), coalesce(p.t, l.t), p.file_id,
            f.path, p.line_no, p.entry, left(coalesce(l.text, p.entry), {TEXT_CUT})
        FROM picked AS p LEFT JOIN said AS l ON l.file_id = p.file_id AND l.line_no = p.line_no
        LEFT JOIN files AS f ON f.file_id = p.file_id
        ORDER BY try_cast(p.finding_id[2:] AS INTEGER), p.nth""",
        columns,
    )


def _insert(
    con: duckdb.DuckDBPyConnection, target: str, kinds: Sequence[str], rows: Sequence[tuple[object, ...]]
) -> None:
    if rows:
        unnested = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
        con.execute(f"INSERT INTO {target} SELECT {unnested}", [list(column) for column in zip(*rows, strict=True)])
