"""Run databases made by hand, for tests of the stages that read them."""

from typing import Any

import duckdb

from replay.store import schema


def make_db() -> duckdb.DuckDBPyConnection:
    """Return an empty run database in memory."""
    con = duckdb.connect()
    schema.create(con)
    return con


def insert(con: duckdb.DuckDBPyConnection, table: str, **columns: Any) -> None:
    """Add one row; columns that are not given are NULL."""
    names = ", ".join(f'"{name}"' for name in columns)
    con.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(columns))})", list(columns.values()))
