"""What else it might have been, and why it was not: the rivals of a finding in its run.

A rival is another cause that was found but is no root, or a rule all of whose steps are there and that one of its own
vetoes kept silent. Rules that lack a step are no rivals; `why_not` tells of each what it lacks.
"""

from dataclasses import dataclass

import duckdb

from replay.expert.catalog import Catalog
from replay.expert.coverage import Coverage
from replay.expert.engine import show_facts
from replay.expert.load import RuleBook
from replay.expert.query import build
from replay.expert.roots import LIKELY
from replay.expert.rule import Rule, Step
from replay.expert.screen import candidates

_FOUND = """
SELECT o.finding_id, o.rule, o.cause, o.summary, o.certainty,
    (SELECT list(
        e.cause_id || CASE e.how WHEN 'absorbs' THEN ' holds it as a part' ELSE ' explains it' END ORDER BY e.cause_id
    ) FROM explains AS e WHERE e.effect_id = o.finding_id)
FROM findings AS o
WHERE o.run_id = ? AND o.finding_id <> ? AND o.kind = 'cause' AND NOT o.is_root
ORDER BY len(o.finding_id), o.finding_id
"""


@dataclass(frozen=True, slots=True)
class Rival:
    """Another cause, the rule that speaks for it, its finding if it made one, and why it lost."""

    cause: str
    rule: str
    finding_id: str | None
    summary: str
    why: str


def rivals(con: duckdb.DuckDBPyConnection, finding_id: str, book: RuleBook) -> list[Rival]:
    """Return the rivals of a finding of the database, those that made a finding first."""
    row = con.execute("SELECT run_id FROM findings WHERE finding_id = ?", [finding_id]).fetchone()
    if row is None:
        return []
    found = [
        Rival(cause, rule, other, summary, _lost(certainty, causes))
        for other, rule, cause, summary, certainty, causes in con.execute(_FOUND, [row[0], finding_id]).fetchall()
    ]
    with con.cursor() as reader:
        return found + _vetoed(reader, row[0], book)


def _lost(certainty: float, causes: list[str] | None) -> str:
    if causes:
        return "; ".join(causes)
    return f"{certainty:.2f} sure, less than the {LIKELY} that a root needs"


def _vetoed(con: duckdb.DuckDBPyConnection, run_id: int, book: RuleBook) -> list[Rival]:
    """Return the rules that only a veto kept silent in the run."""
    book.prepare(con)
    coverage = Coverage.measure(con)
    show_facts(con, [])
    catalog = Catalog.of(con)
    fired = {rule for (rule,) in con.execute("SELECT rule FROM findings WHERE run_id = ?", [run_id]).fetchall()}
    result = []
    for rule in candidates(con, book.rules, catalog):
        if rule.id in fired or rule.is_chained or not rule.unless or coverage.missing(run_id, rule.requires):
            continue
        query = build(rule, catalog)
        try:
            if not _has(con, query.unvetoed, run_id) or _has(con, query.proofs, run_id):
                continue
            number = next(n for n, sql in enumerate(query.vetoed, 1) if not _has(con, sql, run_id))
        except duckdb.Error:
            continue  # on odd data; the report says so of the rule
        cause = rule.id if rule.cause is None else rule.cause if "{" not in rule.cause else rule.id
        result.append(Rival(cause, rule.id, None, rule.title, f"unless {number} holds: {_veto(rule, number)}"))
    return result


def _has(con: duckdb.DuckDBPyConnection, sql: str, run_id: int) -> bool:
    return any(run == run_id for run, _ in con.execute(sql).fetchall())


def _veto(rule: Rule, number: int) -> str:
    return " and ".join(_spelt(step) for _, step in rule.vetoes[number - 1])


def _spelt(step: Step) -> str:
    how = "no row of " if step.absent else ""
    return " ".join(f"{how}{step.table}{f' where {step.where}' if step.where else ''}".split())
