"""The run database's schema, read from schema.sql: the one place where tables, columns and their meaning are written.

Everything that needs to know the tables (the writer, the documentation, the rules) asks here, so that the SQL file
stays the contract and no list of columns is kept twice.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from duckdb import DuckDBPyConnection

SCHEMA_VERSION = 5
"""Raised whenever schema.sql changes so that an older database cannot be used any more."""

HERE = Path(__file__).parent

_CREATE = re.compile(r"CREATE TABLE ([a-z0-9_]+) \( -- (.+)")
_COLUMN = re.compile(r'    "?([a-z0-9_]+)"? ([A-Z]+(?:\[\])?)(?: USING COMPRESSION ([a-z]+))?,? -- (.+)')
_COMMON = re.compile(r"--   ([a-z0-9_]+) ([A-Z]+) +-- (.+)")
_SECTION = re.compile(r"-- section ([a-z]+)$")
_VIEW = re.compile(r"^CREATE (VIEW|MACRO) ([a-z0-9_]+)(\([^)]*\))? AS(?: TABLE)? -- (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Column:
    """One column: `type` is DuckDB's name of it, `doc` what it holds; `compression` is left to DuckDB where empty."""

    name: str
    type: str
    doc: str
    compression: str = ""

    @property
    def quoted(self) -> str:
        """The name as SQL can always take it (`at` is a word of the language)."""
        return f'"{self.name}"'


@dataclass(frozen=True, slots=True)
class Table:
    """One table; `section` says who writes it: input, event, derived or finding."""

    name: str
    section: str
    doc: str
    columns: tuple[Column, ...]
    has_common: bool

    @property
    def ddl(self) -> str:
        """The statement that makes the table."""
        columns = (
            f"{c.quoted} {c.type}" + (f" USING COMPRESSION {c.compression}" if c.compression else "")
            for c in self.columns
        )
        return f"CREATE TABLE {self.name} ({', '.join(columns)})"


@dataclass(frozen=True, slots=True)
class Derivation:
    """One view or macro of views.sql; `arguments` is empty for a view."""

    name: str
    kind: str
    arguments: str
    doc: str


@cache
def common() -> tuple[Column, ...]:
    """Return the columns that every event table has, in order."""
    head = (HERE / "schema.sql").read_text().split("-- section input\n\n", 1)[0]
    return tuple(Column(*found.groups()) for found in _COMMON.finditer(head))


@cache
def tables() -> dict[str, Table]:
    """Return all tables by name, in the order of schema.sql.

    Raises ValueError, naming the line, if a line of schema.sql has another form than its head says.
    """
    found: dict[str, Table] = {}
    section, name, doc = "", "", ""
    columns: list[Column] = []
    has_common = False
    for number, line in enumerate((HERE / "schema.sql").read_text().splitlines(), 1):
        if begin := _SECTION.match(line):
            section = begin[1]
        elif begin := _CREATE.match(line):
            name, doc = begin.groups()
            columns, has_common = [], False
        elif line.startswith(");"):
            found[name] = Table(name, section, doc, tuple(columns), has_common)
        elif line.strip() == "@common,":
            columns += common()
            has_common = True
        elif column := _COLUMN.match(line):
            name_, kind, compression, told = column.groups()
            columns.append(Column(name_, kind, told, compression or ""))
        elif line and not line.startswith("--"):
            raise ValueError(f"schema.sql:{number}: not a column with its documentation: {line.strip()}")
    return found


@cache
def derivations() -> tuple[Derivation, ...]:
    """Return the views and macros of views.sql, in their order."""
    text = (HERE / "views.sql").read_text()
    return tuple(
        Derivation(name, kind.lower(), arguments or "", doc) for kind, name, arguments, doc in _VIEW.findall(text)
    )


def base_tables() -> tuple[Table, ...]:
    """Return the tables that reading files fills (sections input and event), without meta."""
    return tuple(t for t in tables().values() if t.section in ("input", "event") and t.name != "meta")


def create(con: DuckDBPyConnection) -> None:
    """Make all tables, macros and views in an empty database."""
    con.execute(";\n".join(table.ddl for table in tables().values()))
    con.execute((HERE / "views.sql").read_text())
