"""The engine: rules over the tables of a run database until nothing new follows, then what explains what.

Findings may be steps of rules, so rules run in rounds. A round reads the findings of the round before, which makes the
order of rules irrelevant; a rule that reads findings runs again only when there are other ones. Nothing is ever taken
back, and identities come from the rows of finite tables, so the rounds end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb

from replay.expert.catalog import FACT_COLUMNS, FACTS, Catalog
from replay.expert.conclude import Setting, conclude, merged
from replay.expert.coverage import Coverage
from replay.expert.finding import Finding, Key
from replay.expert.load import RuleBook
from replay.expert.query import build
from replay.expert.rivals import found as rivals_found
from replay.expert.rivals import vetoed
from replay.expert.roots import settle
from replay.expert.rule import Rule, as_list
from replay.expert.screen import candidates
from replay.expert.write import write

_MISTAKES = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
"""Errors that are the rule's and not the data's."""


def diagnose(con: duckdb.DuckDBPyConnection, book: RuleBook) -> None:
    """Run the rules over the database and write its section of findings anew.

    What is read must be committed: rules run on a connection of their own, since one that fails on odd data must not
    end the caller's transaction. Such a failure becomes a row of `problems`. Raises RuleError where a rule names a
    table, column or function that does not exist.
    """
    with con.cursor() as reader:
        session = Session.over(reader, book)
        able = candidates(reader, book.rules, session.catalog)
        findings = session.fixed_point(able)
        silent = list(vetoed(reader, able, session.catalog, session.setting, findings))
    spans = dict(con.execute("SELECT run_id, span_s FROM runs").fetchall())
    findings = settle(findings, book.by_id, book.taxonomy, spans)
    write(con, findings, [*rivals_found(findings), *silent], session.told_problems)


@dataclass(frozen=True, slots=True)
class Session:
    """One database while rules run over it. `shared` are the causes that some rule absorbs by a shared row: only their
    findings need to know all their rows. `problems` gathers what could not be asked.
    """

    con: duckdb.DuckDBPyConnection
    catalog: Catalog
    setting: Setting
    shared: frozenset[str]
    problems: list[str]

    @classmethod
    def over(cls, con: duckdb.DuckDBPyConnection, book: RuleBook) -> "Session":
        """Make the knowledge tables, and ask what could be seen and which versions ran."""
        book.prepare(con)
        setting = Setting(book.taxonomy, Coverage.measure(con), versions(con))
        return cls(con, Catalog.of(con), setting, _shared_causes(book.rules), [])

    def run(self, rule: Rule, facts: Sequence[Finding]) -> list[Finding]:
        """Return what a rule concludes from the tables and from `facts`."""
        absorbs = any(effect.sharing == "row" for effect in rule.conclude.absorbed)
        cause = rule.cause or rule.id
        query = build(rule, self.catalog, with_places=absorbs or cause in self.shared or "{" in cause)
        try:
            cursor = self.con.execute(query.sql)
            names = [column[0] for column in cursor.description or ()]
            rows = [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]
        except _MISTAKES as error:
            raise rule.error((), f"rule {rule.id}: {_first_line(error)}") from None
        except duckdb.Error as error:
            self.problems.append(f"rule {rule.id} could not be asked: {_first_line(error)}")
            return []
        results = [conclude(query, row, self.setting, facts) for row in rows]
        self.problems.extend(result for result in results if isinstance(result, str))
        return [result for result in results if isinstance(result, Finding)]

    def fixed_point(self, able: Sequence[Rule]) -> list[Finding]:
        """Return all that follows from rules, without order, edges and roots."""
        chained = [rule for rule in able if rule.is_chained]
        due = [rule for rule in able if not rule.is_chained]
        found: dict[Key, Finding] = {}
        while due:
            facts = [found[key] for key in sorted(found)]
            if any(rule.is_chained for rule in due):
                show_facts(self.con, facts)
            new = [finding for rule in due for finding in self.run(rule, facts)]
            changed = False
            for finding in new:
                old = found.get(finding.key)
                found[finding.key] = merged(old, finding)
                changed |= old is None or _face(old) != _face(finding)
            due = chained if changed else []
        return list(found.values())

    @property
    def told_problems(self) -> list[str]:
        """What could not be asked, each once."""
        return list(dict.fromkeys(self.problems))


def infer(con: duckdb.DuckDBPyConnection, book: RuleBook) -> tuple[list[Finding], list[str]]:
    """Return all findings that follow, without order, edges and roots, and what could not be asked.

    `con` must be in no transaction, and is left with temporary tables.
    """
    session = Session.over(con, book)
    findings = session.fixed_point(candidates(con, book.rules, session.catalog))
    return findings, session.told_problems


def _face(finding: Finding) -> tuple[object, ...]:
    """Return what other rules can see of a finding."""
    return (
        finding.kind, finding.ranks, finding.waiting, finding.impact, finding.step, finding.t, finding.certainty,
        finding.lost_s, finding.summary,
    )  # fmt: skip


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _shared_causes(rules: Sequence[Rule]) -> frozenset[str]:
    return frozenset(
        cause
        for rule in rules
        for effect in rule.conclude.absorbed
        if effect.sharing == "row"
        for cause in as_list(effect.cause)
    )


def versions(con: duckdb.DuckDBPyConnection) -> dict[int, dict[str, str]]:
    """Return by run the versions that it told; where ranks differ, the smallest text."""
    found: dict[int, dict[str, str]] = {}
    for run_id, torch, nccl in con.execute("SELECT run_id, torch, nccl FROM runs").fetchall():
        found[run_id] = {name: text for name, text in (("torch", torch), ("nccl", nccl)) if text}
    told = "SELECT run_id, lower(name), min(version) FROM packages WHERE version IS NOT NULL GROUP BY ALL ORDER BY ALL"
    for run_id, name, version in con.execute(told).fetchall():
        found.setdefault(run_id, {}).setdefault(name, version)
    return found


def show_facts(con: duckdb.DuckDBPyConnection, facts: Sequence[Finding]) -> None:
    """Make the table of findings that rules read; a finding's row stands at its place in `facts`."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE {FACTS} ({', '.join(f'{n} {t}' for n, t in FACT_COLUMNS.items())})")
    if not facts:
        return
    rows = [
        (
            f.run_id, f.rule, f.cause, f.layer, f.kind, list(f.ranks), list(f.waiting), f.impact, f.step, f.t,
            f.certainty, f.lost_s, f.summary,
            f.evidence[0].file_id if f.evidence else None, f.evidence[0].line_no if f.evidence else None,
        )
        for f in facts
    ]  # fmt: skip
    columns = [list(column) for column in zip(*rows, strict=True)]
    unnested = ", ".join(f"unnest(?::{kind}[])" for kind in FACT_COLUMNS.values())
    con.execute(f"INSERT INTO {FACTS} SELECT {unnested}", columns)
