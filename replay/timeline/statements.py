"""Runs the SQL files of this package, one statement after the other, and leaves out those that have nothing to work on.

A statement costs a millisecond or more of planning even on empty tables; most logs fill a few tables only. So each may
be headed by a comment that names what it needs:

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
_TEMPORARY = "CREATE OR REPLACE TEMP TABLE "


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file, the tables that it needs rows in, and the one that it fills."""

    text: str
    needs: frozenset[str]
    fills: str


@cache
def load(name: str) -> tuple[Statement, ...]:
    """Return the statements of sql/<name>.sql."""
    source = (files("replay.timeline") / "sql" / f"{name}.sql").read_text(encoding="utf8")
    found: list[Statement] = []
    needs: set[str] = set()
    body: list[str] = []
    for line in [*source.splitlines(), ";"]:
        if line.lstrip().startswith("--"):
            needs |= set(line[len(_NEEDS) :].split()) if line.startswith(_NEEDS) else set()
            continue
        body.append(line.removesuffix(";"))
        if line.endswith(";"):
            if any(map(str.strip, body)):
                text = "\n".join(body).strip()
                found.append(Statement(text, frozenset(needs), _filled(text)))
            needs, body = set(), []
    return tuple(found)


def _filled(text: str) -> str:
    words = text.split()
    place = {"INSERT": 2, "CREATE": 5, "DELETE": 2}.get(words[0], 1)
    return words[place]


class Runner:
    """Runs files of statements on one database; keeps what it knows of which tables hold rows."""

    def __init__(self, con: DuckDBPyConnection) -> None:
        self._con = con
        self._full: set[str] = set()
        self._known: set[str] = set()
        self._made: set[str] = set()
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
                self._known.discard(statement.fills)
                if statement.text.startswith(_TEMPORARY):
                    self._made.add(statement.fills)

    def drop(self) -> None:
        """Drop the temporary tables that were made."""
        for name in sorted(self._made):
            self._con.execute(f"DROP TABLE IF EXISTS {name}")
        self._made.clear()
