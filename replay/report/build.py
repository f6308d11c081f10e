"""A run database becomes a report: reads findings and their evidence, weighs them into one verdict."""

import json
from dataclasses import dataclass
from typing import Any

from duckdb import DuckDBPyConnection

import replay
from replay.expert import outcome
from replay.report import outlook
from replay.report.model import Coverage, Evidence, Finding, LastWords, Link, Report, Rival, RunInfo, Where

_LAST_WORDS_SHOWN = 4


def build(con: DuckDBPyConnection) -> Report:
    """Return the report of everything that the database holds."""
    runs = _runs(con)
    findings = _findings(con)
    coverage = _coverage(con)
    verdict = outcome.verdict(con)
    unseen = outlook.unseen(con)
    return Report(
        version=replay.__version__,
        verdict=verdict,
        runs=runs,
        coverage=coverage,
        findings=findings,
        rivals=_rivals(con),
        unseen=unseen,
        next_time=outlook.next_time(con, verdict, findings, runs, unseen),
        collect_now=outlook.collect_now(con, findings, runs),
        ruled_out=() if verdict == "healthy" else outlook.ruled_out(con),
        last_words=_last_words(con),
        is_foreign=_is_foreign(con),
    )


def _rows(con: DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    cursor = con.execute(query)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _runs(con: DuckDBPyConnection) -> tuple[RunInfo, ...]:
    rows = _rows(
        con,
        """
        SELECT r.*, (SELECT coalesce(list(DISTINCT k.host ORDER BY k.host), []) FROM ranks AS k
                     WHERE k.run_id = r.run_id AND k.host IS NOT NULL) AS hosts
        FROM runs AS r ORDER BY r.run_id
        """,
    )
    return tuple(
        RunInfo(
            id=r["run_id"],
            attempt=r["attempt"] or 0,
            ranks_expected=r["ranks_expected"],
            ranks_seen=r["ranks_seen"] or 0,
            outcome=r["outcome"] or "unknown",
            hosts=tuple(r["hosts"]),
            torch=r["torch"],
            nccl=r["nccl"],
            span_s=_rounded(r["span_s"]),
            last_step=r["last_step"],
        )
        for r in rows
    )


def _coverage(con: DuckDBPyConnection) -> Coverage:
    row = con.execute("""
        SELECT count(*), coalesce(sum(lines), 0), coalesce(sum(parsed), 0), coalesce(sum(continuation), 0),
               coalesce(sum(plain), 0), coalesce(sum(malformed), 0)
        FROM files
    """).fetchone()
    assert row is not None, "an aggregate without groups has one row"
    return Coverage(*(int(n) for n in row))


def _is_foreign(con: DuckDBPyConnection) -> bool:
    """Whether all that was read are lines of text that no production knows; other kinds are known by their kind."""
    row = con.execute("""
        SELECT coalesce(bool_and(plain = lines AND kind IN ('text', 'source', 'binary', 'empty', 'unreadable')), FALSE)
        FROM files
    """).fetchone()
    return row is not None and bool(row[0])


def _findings(con: DuckDBPyConnection) -> tuple[Finding, ...]:
    rows = _rows(
        con,
        """
        SELECT f.*, r.t_first FROM findings AS f LEFT JOIN runs AS r USING (run_id)
        ORDER BY TRY_CAST(f.finding_id[2:] AS INTEGER), f.finding_id
        """,
    )
    evidence: dict[str, list[dict[str, Any]]] = {}
    for row in _evidence_rows(con):
        evidence.setdefault(row["finding_id"], []).append(row)
    links, places = _Links.read(con), _places(con)
    return tuple(_finding(r, evidence.get(r["finding_id"], []), links, places) for r in rows)


def _rivals(con: DuckDBPyConnection) -> tuple[Rival, ...]:
    rows = con.execute("SELECT run_id, cause, rule, finding_id, summary, why FROM rivals ORDER BY rowid").fetchall()
    return tuple(Rival(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class _Links:
    """By finding the others that it explains (or holds as a part), that explain it, and that it builds on."""

    explains: dict[str, tuple[str, ...]]
    explained_by: dict[str, tuple[str, ...]]
    premises: dict[str, tuple[str, ...]]

    @classmethod
    def read(cls, con: DuckDBPyConnection) -> "_Links":
        def others(table: str, of: str, other: str) -> dict[str, tuple[str, ...]]:
            rows = con.execute(
                f"SELECT DISTINCT {of}, {other} FROM {table} ORDER BY try_cast({other}[2:] AS INTEGER), {other}"
            ).fetchall()
            found: dict[str, tuple[str, ...]] = {}
            for own, name in rows:
                found[own] = (*found.get(own, ()), name)
            return found

        return cls(
            others("explains", "cause_id", "effect_id"),
            others("explains", "effect_id", "cause_id"),
            others("premises", "finding_id", "premise_id"),
        )


def _evidence_rows(con: DuckDBPyConnection) -> list[dict[str, Any]]:
    """Each evidence with the one-line summary that its event has, for people."""
    return _rows(
        con,
        """
        WITH told AS (  -- the semi join comes first: of a million events only these have their words read
            SELECT v.file_id, v.line_no, arg_min(v.summary, v.seq) AS summary
            FROM events AS v SEMI JOIN evidence USING (file_id, line_no) GROUP BY ALL
        )
        SELECT e.*, t.summary FROM evidence AS e LEFT JOIN told AS t USING (file_id, line_no)
        ORDER BY e.finding_id, e.nth
        """,
    )


def _places(con: DuckDBPyConnection) -> dict[tuple[int, int], Where]:
    rows = con.execute("SELECT run_id, rank, host, local_rank, device, bus_id, pid FROM ranks").fetchall()
    return {(run, rank): Where(rank, *rest) for run, rank, *rest in rows}


def _finding(
    row: dict[str, Any],
    evidence: list[dict[str, Any]],
    links: "_Links",
    places: dict[tuple[int, int], Where],
) -> Finding:
    own, run, start = row["finding_id"], row["run_id"], row["t_first"]
    ranks = tuple(row["ranks"] or ())
    return Finding(
        id=own,
        run=run,
        rule=row["rule"] or "",
        cause=row["cause"] or "",
        layer=row["layer"] or "",
        kind=row["kind"] or "",
        root=bool(row["is_root"]),
        ranks=ranks,
        where=tuple(places.get((run, rank), Where(rank, None, None, None, None, None)) for rank in ranks),
        waiting=tuple(row["waiting"] or ()),
        impact=row["impact"] or "none",
        step=row["step"],
        t=_since(row["t"], start),
        certainty=round(row["certainty"] if row["certainty"] is not None else 1.0, 3),
        cost_s=_rounded(row["cost_s"]),
        own_s=_rounded(row["own_s"]),
        lost_s=_rounded(row["lost_s"]),
        without=row["without"],
        fingerprint=row["fingerprint"] or "",
        summary=row["summary"] or "",
        advice=row["advice"] or "",
        chain=_chain(evidence, start),
        evidence=tuple(_evidence(e) for e in evidence),
        explains=links.explains.get(own, ()),
        explained_by=links.explained_by.get(own, ()),
        premises=links.premises.get(own, ()),
        repro=json.loads(row["repro"]) if row["repro"] else None,
    )


def _evidence(row: dict[str, Any]) -> Evidence:
    return Evidence(row["path"] or "", row["line_no"], row["rank"], row["text"] or "", row["at"])


def _chain(rows: list[dict[str, Any]], start: float | None) -> tuple[Link, ...]:
    """One link per step of the rule, in the rule's order.

    A label may say it all (`guard failed: tensor 'x' ...`); else the words of the line's event stand for the line.
    """
    groups: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        groups.setdefault(row["step_name"] or row["label"] or "", []).append(position)
    links = []
    for step_name, positions in groups.items():
        members = [rows[p] for p in positions]
        times = [t for m in members if (t := _since(m["t"], start)) is not None]
        label, _, said = (members[0]["label"] or step_name).partition(": ")
        links.append(
            Link(
                label=label,
                ranks=tuple(sorted({m["rank"] for m in members if m["rank"] is not None})),
                t=min(times) if times else None,
                text=said or members[0]["summary"] or members[0]["text"] or "",
                evidence=tuple(positions),
            )
        )
    return tuple(links)


def _last_words(con: DuckDBPyConnection) -> tuple[LastWords, ...]:
    """What was last heard of ranks of runs that did not complete; the smallest groups first: the odd one matters."""
    rows = con.execute("""
        SELECT list(w.rank ORDER BY w.rank), w.summary, max(w.silent_s),
               arg_min(f.path, w.rank), arg_min(w.line_no, w.rank)
        FROM last_words AS w
        JOIN runs AS r USING (run_id)
        LEFT JOIN files AS f ON f.file_id = w.file_id
        WHERE r.outcome IS DISTINCT FROM 'completed' AND w.rank IS NOT NULL
        GROUP BY w.run_id, w.summary
        ORDER BY count(*), max(w.silent_s) DESC NULLS LAST, min(w.rank)
    """).fetchall()
    return tuple(
        LastWords(tuple(ranks), summary or "", _rounded(silent), path, line)
        for ranks, summary, silent, path, line in rows[:_LAST_WORDS_SHOWN]
    )


def _since(t: float | None, start: float | None) -> float | None:
    return None if t is None or start is None else _rounded(t - start)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
