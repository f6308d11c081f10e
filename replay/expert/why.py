"""Why a finding stands, and why a rule made none: both asked of a finished database.

`why` reads what the engine wrote. `why_not` counts how far a rule came: the rows that passed each step, one step after
the other, until nothing was left.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from replay.errors import UsageError
from replay.expert.catalog import Catalog
from replay.expert.coverage import Coverage
from replay.expert.engine import infer, show_facts
from replay.expert.expression import quoted
from replay.expert.load import RuleBook
from replay.expert.query import build
from replay.expert.rule import Rule
from replay.expert.screen import own_tests


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a proof."""

    step: str
    label: str
    rank: int | None
    t: float | None
    path: str | None
    line_no: int | None
    at: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class Proof:
    """A finding with its lines, and the proofs of the findings that it builds on, and that it explains or absorbs."""

    finding_id: str
    rule: str
    cause: str
    kind: str
    is_root: bool
    summary: str
    certainty: float
    lines: tuple[Line, ...]
    premises: tuple["Proof", ...]
    effects: tuple[tuple[str, "Proof"], ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Another cause that it might have been: what spoke for it, its finding if there is one, and why it lost."""

    cause: str
    rule: str
    finding_id: str | None
    summary: str
    why: str


def rivals(con: duckdb.DuckDBPyConnection, finding_id: str) -> list[Lost]:
    """Return what else it might have been in the run of a finding, without the finding itself."""
    rows = con.execute(
        """
        SELECT r.cause, r.rule, r.finding_id, r.summary, r.why FROM rivals AS r JOIN findings AS f USING (run_id)
        WHERE f.finding_id = $1 AND r.finding_id IS DISTINCT FROM $1 ORDER BY r.rowid
        """,
        [finding_id],
    ).fetchall()
    return [Lost(*row) for row in rows]


def why(con: duckdb.DuckDBPyConnection, finding_id: str) -> Proof:
    """Return the proof of a finding as a tree: its lines, the findings that it builds on, and what follows from it with
    how (explains, absorbs).

    Raises UsageError if there is no such finding.
    """
    return _proof(con, finding_id, frozenset())


def _proof(con: duckdb.DuckDBPyConnection, finding_id: str, above: frozenset[str]) -> Proof:
    row = con.execute(
        "SELECT rule, cause, kind, is_root, summary, certainty FROM findings WHERE finding_id = ?", [finding_id]
    ).fetchone()
    if row is None:
        known = [
            name
            for (name,) in con.execute(
                "SELECT finding_id FROM findings ORDER BY len(finding_id), finding_id"
            ).fetchall()
        ]
        raise UsageError(f"there is no finding {finding_id}; there are {', '.join(known) or 'none'}")
    lines = con.execute(
        'SELECT step_name, label, rank, t, path, line_no, "at", text FROM evidence WHERE finding_id = ? ORDER BY nth',
        [finding_id],
    ).fetchall()
    edges = con.execute(
        "SELECT how, effect_id FROM explains WHERE cause_id = ? ORDER BY len(effect_id), effect_id", [finding_id]
    ).fetchall()
    causes = con.execute(
        "SELECT cause_id FROM explains WHERE effect_id = ? ORDER BY len(cause_id), cause_id", [finding_id]
    ).fetchall()
    builds_on = con.execute(
        "SELECT premise_id FROM premises WHERE finding_id = ? ORDER BY len(premise_id), premise_id", [finding_id]
    ).fetchall()
    seen = above | {finding_id}
    premises = tuple(_proof(con, premise, seen) for (premise,) in builds_on if premise not in seen)
    below = seen | {premise.finding_id for premise in premises}  # a premise is told once, as what the finding builds on
    effects = tuple((how, _proof(con, effect, below)) for how, effect in edges if effect not in below)
    rule, cause, kind, is_root, summary, certainty = row
    return Proof(
        finding_id, rule, cause, kind, is_root, summary, certainty,
        tuple(Line(*line) for line in lines), premises, effects, tuple(name for (name,) in causes),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a rule came with one step: rows of its table, rows that pass its own conditions, rows that also fit the
    steps before (for `unless N`: what is left of them). -1: not counted.
    """

    name: str
    table: str
    rows: int
    passing: int
    fitting: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a rule made no finding: the first step that found nothing, and one sentence."""

    rule: str
    fired: int
    steps: tuple[Reached, ...]
    failed: str | None
    text: str


def why_not(con: duckdb.DuckDBPyConnection, rule: Rule, book: RuleBook) -> WhyNot:
    """Say for a rule of the book how near it came in this database, over all its runs."""
    with con.cursor() as reader:
        return _why_not(reader, rule, book)


def _why_not(con: duckdb.DuckDBPyConnection, rule: Rule, book: RuleBook) -> WhyNot:
    findings, _ = infer(con, book)
    fired = sum(finding.rule == rule.id for finding in findings)
    catalog = Catalog.of(con)
    show_facts(con, sorted(findings, key=lambda f: f.key))
    query = build(rule, catalog)
    steps: list[Reached] = []
    by_name = dict(rule.steps)
    for name, sql in query.prefixes:
        fitting = _number(con, sql)
        step = by_name.get(name)
        if step is None:
            steps.append(Reached(name, "", -1, -1, fitting))
        else:
            table = catalog.tables[step.table]
            tests = " AND ".join(own_tests(name, step, table)) or "TRUE"
            rows = _number(con, f"SELECT count(*) FROM {quoted(table.source)}")
            passing = _number(con, f"SELECT count(*) FROM {quoted(table.source)} WHERE {tests}")
            steps.append(Reached(name, step.table, rows, passing, fitting))
        if fitting == 0:
            break
    coverage = Coverage.measure(con)
    runs = [run for (run,) in con.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall()]
    blind = sorted({what for run in runs for what in coverage.missing(run, rule.requires)})
    failed = steps[-1].name if steps and steps[-1].fitting == 0 else None
    text = f"It did fire: {fired} findings." if fired else _reason(rule, steps, blind)
    return WhyNot(rule.id, fired, tuple(steps), failed, text)


def _number(con: duckdb.DuckDBPyConnection, sql: str) -> int:
    row = con.execute(sql).fetchone()
    return int(row[0]) if row else 0


def _reason(rule: Rule, steps: Sequence[Reached], blind: Sequence[str]) -> str:
    """Return one sentence on the last of the steps; `blind` is what the rule requires and no run logged."""
    last = steps[-1]
    if last.fitting:
        return f"It cannot tell: {', '.join(blind)} not logged." if blind else "Its rows name no cause of the taxonomy."
    before = steps[-2].fitting if len(steps) > 1 else 0
    if not last.table:
        reason = f"{last.name} holds for all {before}"
    elif dict(rule.steps)[last.name].absent:
        reason = f"Step {last.name}: such rows of {last.table} are there, or could not have been seen"
    elif last.rows == 0:
        reason = f"Step {last.name}: {last.table} is empty"
    elif last.passing == 0:
        reason = f"Step {last.name}: none of {last.rows} rows of {last.table} passes its conditions"
    else:
        reason = f"Step {last.name}: {last.passing} of {last.rows} rows of {last.table} pass its conditions, none fits"
    near = f"; {before} fitted the steps before" if before and last.table else ""
    return f"{reason}{near}." + (f" Not logged: {', '.join(blind)}." if blind else "")
