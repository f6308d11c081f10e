"""The SQL pad: what can be typed next, what was asked before, the answer, and its way into a file."""

import csv
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection

from replay.errors import InputError, UsageError
from replay.report.wording import visible
from replay.resources import cache_dir
from replay.store import database
from replay.store.queries import named_queries, named_query

MOST_ROWS = 10_000
"""Rows of an answer that are shown; an export has all."""
_HISTORY = "sql-history.json"
_KEPT = 200
_WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP BY ALL", "ORDER BY", "LIMIT", "JOIN", "USING", "COUNT(*)", "DISTINCT", "DESC",
    "AND", "OR", "NOT", "IS NULL", "LIKE", "BETWEEN",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Answer:
    """Columns and rows as text that is safe to show; `more`: there are more rows than these."""

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]
    more: bool

    @property
    def leads(self) -> bool:
        """True where a row can name a place."""
        names = set(self.columns)
        return bool(names & {"finding_id", "t_lo", "t"} or ("line_no" in names and names & {"file_id", "path"}))


class Names:
    """Tables and columns of a run database."""

    def __init__(self, con: DuckDBPyConnection) -> None:
        rows = con.execute(
            """
            SELECT table_name, column_name FROM duckdb_columns()
            WHERE NOT internal AND database_name = current_database() ORDER BY table_name, column_index
            """
        ).fetchall()
        self.columns: dict[str, list[str]] = {}
        for table, column in rows:
            self.columns.setdefault(table, []).append(column)

    def complete(self, text: str, cursor: int) -> tuple[int, list[str]]:
        """Return where the word at the cursor begins, and what it may become: the likeliest first."""
        begin = cursor
        while begin and (text[begin - 1].isalnum() or text[begin - 1] in "_.@"):
            begin -= 1
        word = text[begin:cursor]
        low = word.lower()
        if word.startswith("@"):
            return begin, [f"@{name}" for name in named_queries() if name.startswith(low[1:])]
        table, dot, column = low.rpartition(".")
        if dot:
            return begin + len(table) + 1, [c for c in self._of(table, text) if c.startswith(column)]
        before = text[:begin].split()
        after_table = before[-1].lower() if before else ""
        tables = [t for t in self.columns if t.startswith(low)]
        if after_table in {"from", "join"}:
            return begin, tables
        named = [c for t in self._named(text) for c in self.columns[t] if c.startswith(low)]
        words = [w if not word.islower() else w.lower() for w in _WORDS if word and w.lower().startswith(low)]
        found = dict.fromkeys([*named, *words, *(tables if word else [])])
        return begin, [name for name in found if name.lower() != low]

    def _named(self, text: str) -> list[str]:
        return [w for w in dict.fromkeys(text.replace(",", " ").replace("(", " ").lower().split()) if w in self.columns]

    def _of(self, name: str, text: str) -> list[str]:
        """Columns of a table or of what an alias stands for."""
        if name in self.columns:
            return self.columns[name]
        words = text.replace(",", " ").lower().split()
        for n, word in enumerate(words):
            if word == name and n:
                table = words[n - 2] if words[n - 1] == "as" and n > 1 else words[n - 1]
                if table in self.columns:
                    return self.columns[table]
        return []


def ask(con: DuckDBPyConnection, query: str) -> Answer:
    """Return the answer to a query or to `@name`. Raises UsageError, with DuckDB's words in one line, where it is
    wrong.
    """
    text = named_query(query.strip()[1:]).sql if query.strip().startswith("@") else query
    try:
        con.execute(text)
        if con.description is None:
            raise UsageError("the query is empty")
        columns = tuple(c[0] for c in con.description)
        rows = con.fetchmany(MOST_ROWS + 1)
    except duckdb.Error as error:
        raise UsageError(" ".join(str(error).split("\n\n", maxsplit=1)[0].split())) from error
    numbers = frozenset(
        n for n in range(len(columns))
        if rows and all(r[n] is None or (isinstance(r[n], int | float) and not isinstance(r[n], bool)) for r in rows)
    )  # fmt: skip
    shown = tuple(tuple(map(_cell, row)) for row in rows[:MOST_ROWS])
    return Answer(text, tuple(map(visible, columns)), shown, numbers, len(rows) > MOST_ROWS)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else visible(str(value))


def export(con: DuckDBPyConnection, place: Path, query: str, target: Path) -> str:
    """Write the whole answer to a file: `.csv`, `.jsonl` or `.parquet`, by its name. Returns what was written, in
    words.

    Raises UsageError for another ending or a wrong query, InputError if the file cannot be written.
    """
    try:
        if target.suffix == ".parquet":
            database.export(place, query, Path(os.path.abspath(target)))
            return f"wrote {target}"
        if target.suffix not in {".csv", ".jsonl"}:
            raise UsageError(f"{target}: a file ends in .csv, .jsonl or .parquet")
        return _write(con, query, target)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror})") from error
    except duckdb.Error as error:
        raise UsageError(" ".join(str(error).split("\n\n", maxsplit=1)[0].split())) from error


def _write(con: DuckDBPyConnection, query: str, target: Path) -> str:
    con.execute(query)
    columns = [c[0] for c in con.description or ()]
    count = 0
    with target.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        if target.suffix == ".csv":
            lines.writerow(columns)
        while rows := con.fetchmany(1000):
            count += len(rows)
            if target.suffix == ".csv":
                lines.writerows(["" if v is None else v for v in row] for row in rows)
            else:
                file.writelines(json.dumps(dict(zip(columns, row, strict=True)), default=str) + "\n" for row in rows)
    return f"wrote {count:,} rows to {target}"


class History:
    """Queries asked before, newest last, kept over sessions in the cache folder (mode 0600)."""

    def __init__(self) -> None:
        self.queries: list[str] = []
        try:
            kept = json.loads((cache_dir() / _HISTORY).read_text())
            self.queries = [q for q in kept if isinstance(q, str)] if isinstance(kept, list) else []
        except (OSError, ValueError, InputError):
            return

    def add(self, query: str) -> None:
        """Keep a query. A cache that cannot be written is no reason to fail."""
        self.queries = [*(q for q in self.queries if q != query), query][-_KEPT:]
        try:
            path = cache_dir() / _HISTORY
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(self.queries, file)
        except (OSError, InputError):
            return
