"""Which rules read a row: those with a step on its table whose own conditions the row passes."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import duckdb

from replay.expert.catalog import Catalog
from replay.expert.expression import quoted
from replay.expert.load import RuleBook
from replay.expert.rule import Rule
from replay.expert.screen import own_tests
from replay.explain.model import Reader


class Readers:
    """The rules of a book by the tables that they read, in a database that has these tables."""

    def __init__(self, con: duckdb.DuckDBPyConnection, book: RuleBook) -> None:
        self._con, self._book = con, book
        self._steps: dict[str, list[tuple[Rule, str, str]]] = defaultdict(list)
        tables = Catalog.of(con).tables
        for rule in book:
            for name, step in rule.steps:
                if not step.absent and (table := tables.get(step.table)):
                    tests = " AND ".join(own_tests(name, step, table)) or "TRUE"
                    self._steps[step.table].append((rule, name, tests))

    def of(self, table: str, rowid: int) -> Iterator[Reader]:
        """Give the rules that read this row, those with the fewest other steps first."""
        steps = self._steps[table]
        held = holding(self._con, table, rowid, [tests for _, _, tests in steps])
        fitting = [(rule, name) for (rule, name, _), holds in zip(steps, held, strict=True) if holds]
        seen: set[str] = set()
        for rule, name in sorted(fitting, key=lambda pair: (len(pair[0].steps), pair[0].id)):
            if rule.id not in seen:
                seen.add(rule.id)
                yield reader(self._book, rule, name)


def holding(con: duckdb.DuckDBPyConnection, table: str, rowid: int, tests: Sequence[str]) -> Sequence[bool]:
    """Return for each condition in SQL whether it holds of a row."""
    if not tests:
        return ()
    columns = ", ".join(f"coalesce(({test}), FALSE)" for test in tests)
    return con.execute(f"SELECT {columns} FROM {quoted(table)} WHERE rowid = ?", [rowid]).fetchone() or ()


def reader(book: RuleBook, rule: Rule, step: str) -> Reader:
    """Return a rule as somebody who reads a row at that step."""
    cause = rule.cause or rule.id
    known = book.taxonomy.get(cause)
    kind = rule.kind or (known.kind if known else "cause")
    return Reader(rule.id, step, "as its rows say" if "{" in cause else cause, kind, rule.title)
