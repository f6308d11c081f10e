"""Which rules can fire at all: asked of each table once, so that the others are never compiled.

Most rules find nothing in most runs. One scan a table answers, for all steps of all rules that read it, whether it has
a row that passes the step's own conditions; only rules whose every step has one go on to be planned and joined.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import duckdb

from replay.expert.catalog import Catalog, Table
from replay.expert.expression import Expression, ExpressionError, is_word, quoted
from replay.expert.rule import Rule, Step


def candidates(con: duckdb.DuckDBPyConnection, rules: Sequence[Rule], catalog: Catalog) -> list[Rule]:
    """Return the rules that have a row for each step that needs one. Steps on findings are taken as possible."""
    asked: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    unreadable: set[str] = set()
    for rule in rules:
        for name, step in rule.steps:
            table = catalog.tables.get(step.table)
            if table is None:
                unreadable.add(rule.id)
            elif not (step.absent or step.optional) and step.table != "findings":
                asked[step.table][" AND ".join(own_tests(name, step, table)) or "TRUE"].add(rule.id)
    # A rule that cannot be read stays, so that compiling it says what is wrong.
    out = {
        rule for table, tests in asked.items() for rule in _without_rows(con, catalog.tables[table], tests)
    } - unreadable
    return [rule for rule in rules if rule.id not in out]


def own_tests(name: str, step: Step, table: Table) -> Iterator[str]:
    """Yield the conditions of a step that its own row decides."""
    if step.where is None:
        return
    try:
        parts = Expression(step.where).conjuncts()
        for part in parts:
            names = {(r.step or name, r.column) for r in part.references if r.step is not None or not is_word(r.column)}
            if all(step_name == name and column in table for step_name, column in names):
                spelt = part.render(lambda s, c: quoted(c) if s is not None or c in table else None)
                yield f"({spelt})"
    except ExpressionError:
        return


def _without_rows(con: duckdb.DuckDBPyConnection, table: Table, tests: dict[str, set[str]]) -> set[str]:
    """Return the rules one of whose tests no row of the table passes."""
    columns = ", ".join(f"coalesce(bool_or({test}), FALSE)" for test in tests)
    try:
        found = con.execute(f"SELECT {columns} FROM {quoted(table.source)}").fetchone()
    except duckdb.Error:
        return set()  # One of the tests cannot be run; its rule will say so itself.
    return {rule for passed, ids in zip(found or (), tests.values(), strict=True) if not passed for rule in ids}
