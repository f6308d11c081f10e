"""The cases beside a rule: small tables on which it must fire or stay silent.

`ID.cases.yaml` beside `ID.yaml` is a list of cases: `name`, `rows` (table to rows), and `finds`, what each finding of
the rule must show, or `silent: true`. They test the rule without a log, and show a reader what it is about. A case may
be `like` an earlier one of its file `but` for a change; `silenced_by`, `fired_by` and `unmoved_by` are changes to it
that show what decides, one each.

A rule sees one run, so all cases stand in one database as runs of their own, and the book is run over it once.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
from pydantic import BaseModel, ConfigDict, model_validator

from replay.expert.engine import infer
from replay.expert.finding import Finding
from replay.expert.load import RuleBook
from replay.expert.roots import settle
from replay.expert.rule import Rule
from replay.expert.yamlfile import RuleError, YamlFile
from replay.store import schema

Rows = dict[str, list[dict[str, Any]]]
"""Rows by table."""

RUNS = 100
"""Numbers of runs, and of files, that each case has for itself."""

Change = dict[str, dict[str, Any] | list[dict[str, Any] | None] | None]
"""By table what is other than in another case: values for all its rows, or row by row (nothing: the row is not there;
beyond the last one: another row), or nothing: none of its rows is there.
"""


_ELSEWHERE = frozenset({"is_root", "kind", "impact", "steps"})
"""What a finding owes to other findings, or only shows."""


class Case(BaseModel):
    """One case. Rows without run_id belong to run 1; rows of events without a place get a line of their own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    rows: Rows = {}
    like: str | None = None
    but: Change = {}
    finds: list[dict[str, Any]] = []
    silent: bool = False
    silenced_by: list[Change] = []
    """Of a case that finds something: changes of which each makes the rule silent."""
    fired_by: list[Change] = []
    """Of a silent case: changes of which each makes the rule find one thing."""
    unmoved_by: list[Change] = []
    """Changes that leave what the rule finds as it is (not whether other findings explain it)."""

    @model_validator(mode="after")
    def _one(self) -> "Case":
        if self.silent == bool(self.finds):
            raise ValueError("a case either finds something or is silent")
        if (self.like is None) == bool(self.but):
            raise ValueError("like and but go together")
        if self.silenced_by if self.silent else self.fired_by:
            raise ValueError("silenced_by is for a case that finds something, fired_by for a silent one")
        return self


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one case: `fault` is None where it holds."""

    rule: str
    case: str
    fault: str | None


def cases_of(rule: Rule) -> list[Case]:
    """Return the cases beside the rule's file, `like` resolved.

    Raises RuleError where the file is wrong.
    """
    path = rule.path and rule.path.with_name(f"{rule.path.stem}.cases.yaml")
    if path is None or not path.is_file():
        return []
    file = YamlFile.read(path)
    found: dict[str, Case] = {}
    near: list[Case] = []
    for index, item in enumerate(file.items()):
        case = file.model(Case, item, (index,))
        if case.name in found:
            raise file.error((index, "name"), f"the case {case.name!r} is there twice")
        try:
            if case.like is not None:
                if case.like not in found:
                    raise ValueError(f"no earlier case {case.like!r}")
                case = case.model_copy(update={"rows": changed(found[case.like].rows, case.but)})
            near += (
                Case(name=f"{case.name}, silenced by {change}", rows=changed(case.rows, change), silent=True)
                for change in case.silenced_by
            )
            near += (
                Case(name=f"{case.name}, fired by {change}", rows=changed(case.rows, change), finds=[{}])
                for change in case.fired_by
            )
            own = [{name: wanted[name] for name in wanted if name not in _ELSEWHERE} for wanted in case.finds]
            near += (
                Case(
                    name=f"{case.name}, unmoved by {change}",
                    rows=changed(case.rows, change),
                    finds=own,
                    silent=case.silent,
                )
                for change in case.unmoved_by
            )
            _check(case.rows)
        except ValueError as error:
            raise file.error((index,), str(error)) from None
        found[case.name] = case
    return [*found.values(), *near]


def changed(rows: Rows, change: Change) -> Rows:
    """Return the rows after a change.

    Raises ValueError where the change names a table of which there are no rows.
    """
    result = {table: [dict(row) for row in items] for table, items in rows.items()}
    for table, edits in change.items():
        if edits is None or isinstance(edits, dict):
            if table not in result:
                raise ValueError(f"there are no rows of {table} to change")
            result[table] = [] if edits is None else [row | edits for row in result[table]]
        else:
            old = result.get(table, [])
            kept = [
                row if edit == {} else row | edit for row, edit in zip(old, edits, strict=False) if edit is not None
            ]
            result[table] = [*kept, *old[len(edits) :], *(row for row in edits[len(old) :] if row is not None)]
    return {table: items for table, items in result.items() if items}


def _check(rows: Rows) -> None:
    tables = schema.tables()
    for table, items in rows.items():
        if table not in tables:
            raise ValueError(f"there is no table {table}")
        columns = {column.name for column in tables[table].columns}
        for row in items:
            if unknown := sorted(row.keys() - columns):
                raise ValueError(f"{table} has no column {unknown[0]}")


class Bench:
    """A database with the cases of rules, each in runs of its own, and what the book finds there."""

    def __init__(self, book: RuleBook, rules: Iterable[Rule]) -> None:
        """Fill the database and run the book. Raises RuleError where a case or a rule is wrong."""
        self.cases = [(rule, case) for rule in rules for case in cases_of(rule)]
        self.con = duckdb.connect(config={"threads": 1})
        schema.create(self.con)
        fill(self.con, [case.rows for _, case in self.cases])
        self.facts, problems = infer(self.con, book)
        if problems:
            raise RuleError(problems[0])

    def results(self, book: RuleBook) -> list[Result]:
        """Say of each case whether it holds."""
        spans = dict(self.con.execute("SELECT run_id, span_s FROM runs").fetchall())
        found: dict[tuple[str, int], list[Finding]] = defaultdict(list)
        for finding in settle(
            [replace(fact, explains=[], absorbs=[]) for fact in self.facts], book.by_id, book.taxonomy, spans
        ):
            found[finding.rule, number_of(finding.run_id)].append(finding)
        return [
            Result(rule.id, case.name, _fault(case, found[rule.id, number]))
            for number, (rule, case) in enumerate(self.cases)
        ]


def number_of(run_id: int) -> int:
    """Return the number of the case that a run belongs to."""
    return (run_id - 1) // RUNS


def run_cases(book: RuleBook, rules: Iterable[Rule]) -> list[Result]:
    """Run the cases of rules. The whole book takes part, so that chains work; each rule's own findings are looked at.

    Raises RuleError where a case or a rule is wrong.
    """
    return Bench(book, rules).results(book)


def _fault(case: Case, found: Sequence[Finding]) -> str | None:
    """Return in what the findings of the rule differ from what the case expects, None where they do not."""
    if len(found) != len(case.finds):
        said = "; ".join(f"{f.cause} on {list(f.ranks)}" for f in found) or "nothing"
        return f"{len(case.finds)} findings expected, found {said}"
    for wanted, got in zip(case.finds, found, strict=True):
        for name, value in wanted.items():
            if (seen := shown(got, name)) != value:
                return f"{name} is {seen!r}, not {value!r}"
    return None


def shown(finding: Finding, name: str) -> Any:
    """Return a property of a finding as a case spells it: a column of `findings`, or `steps`, those with evidence."""
    if name == "steps":
        return list(dict.fromkeys(item.step for item in finding.evidence))
    if name == "run_id":
        return (finding.run_id - 1) % RUNS + 1
    value = getattr(finding, name, None)
    return list(value) if isinstance(value, tuple) else value


def fill(con: duckdb.DuckDBPyConnection, cases: Sequence[Rows]) -> None:
    """Insert the rows of cases, each with a run, its ranks and lines of text where it does not give them."""
    filled: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for number, rows in enumerate(cases):
        for table, items in _completed(rows).items():
            numbers = [
                column.name
                for column in schema.tables()[table].columns
                if column.type == "INTEGER" and column.name.endswith(("run_id", "_run", "file_id", "_file"))
            ]
            for row in items:
                row.update({name: row[name] + number * RUNS for name in numbers if row.get(name) is not None})
            filled[table] += items
    for table, items in filled.items():
        columns = schema.tables()[table].columns
        values = ", ".join(f"unnest(?::{column.type}[])" for column in columns)
        con.execute(f"INSERT INTO {table} SELECT {values}", [[row.get(c.name) for row in items] for c in columns])


def _completed(rows: Rows) -> Rows:
    tables = schema.tables()
    given: Rows = {table: [dict(row) for row in items] for table, items in rows.items()}
    line = 0
    for table, items in given.items():
        columns = {column.name for column in tables[table].columns}
        for row in items:
            if "run_id" in columns:
                row.setdefault("run_id", 1)
            if tables[table].has_common or "line_no" in columns:
                line += 1
                row.setdefault("file_id", 1)
                row.setdefault("line_no", line)
            if tables[table].has_common:
                row.setdefault("complete", True)
                row.setdefault("t_hi", row.get("t_lo"))
    ranks = sorted({row["rank"] for items in given.values() for row in items if row.get("rank") is not None})
    given.setdefault("files", [{"file_id": 1, "path": "case.log"}])
    given.setdefault("runs", [{"run_id": 1, "outcome": "unknown", "ranks_seen": len(ranks)}])
    given.setdefault("ranks", [{"run_id": 1, "rank": rank, "heard": True} for rank in ranks])
    given.setdefault(
        "lines", [{"run_id": 1, "file_id": 1, "line_no": n, "text": f"line {n}"} for n in range(1, line + 1)]
    )
    return given
