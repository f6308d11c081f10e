"""Knowledge tables: facts about the world that rules look up instead of spelling them out.

Each file rules/knowledge/NAME.yaml (a list of maps) or NAME.csv (with a head line) is a table `know_NAME` while rules
run.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from replay.expert.expression import quoted
from replay.expert.yamlfile import RuleError, YamlFile

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Cell = str | int | float | bool | None

_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}


@dataclass(frozen=True, slots=True)
class Knowledge:
    """One table: column names, their DuckDB types, and rows."""

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def create(self, con: "DuckDBPyConnection") -> None:
        """Make it a temporary table of the connection, in place of an earlier one."""
        spelt = ", ".join(f"{quoted(c)} {t}" for c, t in zip(self.columns, self.types, strict=True))
        con.execute(f"CREATE OR REPLACE TEMP TABLE {quoted(self.name)} ({spelt})")
        values = [list(column) for column in zip(*self.rows, strict=True)]
        unnested = ", ".join(f"unnest(?::{t}[])" for t in self.types)
        if self.rows:
            con.execute(f"INSERT INTO {quoted(self.name)} SELECT {unnested}", values)


def load_knowledge(folders: Sequence[Path]) -> dict[str, Path]:
    """Return the files that hold knowledge tables, by the name of the table; a later folder wins."""
    return {
        f"know_{path.stem.replace('-', '_')}": path
        for folder in folders
        for path in sorted((folder / "knowledge").glob("*"))
        if path.suffix in (".yaml", ".csv")
    }


def read_knowledge(name: str, path: Path) -> Knowledge:
    """Read one table.

    Raises RuleError, with its place, for a value that fits no column or a row of another shape.
    """
    return _read_csv(name, path) if path.suffix == ".csv" else _read_yaml(name, path)


def _read_yaml(name: str, path: Path) -> Knowledge:
    file = YamlFile.read(path)
    columns: dict[str, type | None] = {}
    for index, item in enumerate(file.items()):
        if not isinstance(item, dict):
            raise file.error((index,), "a row is a map of columns to values")
        for column, value in item.items():
            known = columns.setdefault(column, None)
            if value is None:
                continue
            if type(value) not in _TYPES:
                raise file.error((index, column), "a value is a text, a number or true/false")
            if known not in (None, type(value)):
                raise file.error((index, column), f"{column} holds {_TYPES[known]} in the rows above")
            columns[column] = type(value)
    rows = tuple(tuple(item.get(column) for column in columns) for item in file.value)
    return Knowledge(name, tuple(columns), _column_types(columns.values()), rows)


def _read_csv(name: str, path: Path) -> Knowledge:
    with path.open(newline="", encoding="utf8") as lines:
        head, *rows = list(csv.reader(lines)) or [[]]
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            raise RuleError(f"{path}:{number}:1: {len(row)} values for {len(head)} columns")
    columns = [[_number(cell) for cell in column] for column in zip(*rows, strict=True)] or [[] for _ in head]
    kinds: list[type | None] = []
    for index, column in enumerate(columns):
        kinds.append(int if column and all(isinstance(cell, int | None) for cell in column) else str)
        if kinds[-1] is str:
            columns[index] = [row[index] or None for row in rows]
    return Knowledge(name, tuple(head), _column_types(kinds), tuple(zip(*columns, strict=True)))


def _number(text: str) -> Cell:
    if not text:
        return None
    return int(text) if text.removeprefix("-").isdigit() else text


def _column_types(kinds: Iterable[type | None]) -> tuple[str, ...]:
    return tuple(_TYPES[kind or str] for kind in kinds)
