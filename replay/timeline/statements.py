"""Runs the SQL files of this package, one statement after the other, and leaves out those that have nothing to work on.

A statement costs a millisecond or more of planning even on empty tables; most logs fill a few tables only. So each may be
headed by a comment that names what it needs:

    -- @needs compiles steps        all of these tables hold rows, else the statement is skipped
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from duckdb import DuckDBPyConnection

from replay.store import schema

_NEEDS = "-- @needs "


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file and the tables that it needs rows in."""

    text: str
    needs: frozenset[str]


@cache
def load(name: str) -> tuple[Statement, ...]:
    """Return the statements of sql/<name>.sql."""
    text = (files("replay.timeline") / "sql" / f"{name}.sql").read_text(encoding="utf8")
    found: list[Statement] = []
    needs: set[str] = set()
    body: list[str] = []
    for line in [*text.splitlines(), ";"]:
        if line.lstrip().startswith("--"):
            needs |= set(line[len(_NEEDS) :].split()) if line.startswith(_NEEDS) else set()
            continue
        body.append(line.removesuffix(";"))
        if line.endswith(";"):
            if any(map(str.strip, body)):
                found.append(Statement("\n".join(body).strip(), frozenset(needs)))
            needs, body = set(), []
    return tuple(found)


class Runner:
    """Runs files of statements on one database; keeps what it knows of which tables hold rows."""

    def __init__(self, con: DuckDBPyConnection) -> None:
        self._con = con
        self._full: set[str] = set()
        self._known: set[str] = set()
        self.look([t.name for t in schema.tables().values()])

    def look(self, tables: list[str]) -> None:
        """Ask which of these tables hold rows."""
        asked = ", ".join(f"(SELECT count(*) > 0 FROM (FROM {name} LIMIT 1))" for name in tables)
        row = self._con.execute(f"SELECT {asked}").fetchone() or ()
        self._known |= set(tables)
        self._full -= set(tables)
        self._full |= {name for name, has_rows in zip(tables, row, strict=True) if has_rows}

    def has(self, table: str) -> bool:
        """True if a table held rows when it was looked at last."""
        return table in self._full

    def run(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Run sql/<name>.sql; `parameters` are passed to the statements that name them."""
        for statement in load(name):
            unknown = statement.needs - self._known
            if unknown:
                self.look(sorted(unknown))
            if statement.needs <= self._full:
                used = {k: v for k, v in (parameters or {}).items() if f"${k}" in statement.text}
                self._con.execute(statement.text, used or None)

    def made(self, *tables: str) -> None:
        """These tables were filled or changed: look again when a statement needs them."""
        self._known -= set(tables)
