"""Old rows of unchanged files beside new rows of changed ones, as if all had been read now.

The rows come from a copy that was kept right after parsing, before later stages filled in runs and ranks. Files and
writers are numbered anew in the order of a fresh ingest, and every table gets the order that a fresh ingest gives it:
whatever is computed from it is then the same to the byte.
"""

from pathlib import Path

from duckdb import DuckDBPyConnection

from replay.store import schema
from replay.store.schema import Column, Table


def merge(con: DuckDBPyConnection, base: Path, kept: dict[int, int], duplicates: dict[int, int | None]) -> None:
    """Add the rows of unchanged files from the copy `base` to a database that holds only the changed files' rows.

    `kept` maps the number of each unchanged file in `base` to its number now; `duplicates` maps present numbers to the
    file that they are a copy of, or None.
    """
    place = str(base).replace("'", "''")
    con.execute(f"ATTACH '{place}' AS base (TYPE duckdb, READ_ONLY)")
    try:
        _number(con, kept, duplicates)
        for table in schema.base_tables():
            _merge_table(con, table)
    finally:
        con.execute("DROP TABLE IF EXISTS temp.file_map; DROP TABLE IF EXISTS temp.writer_map")
        con.execute("DETACH base")


def _number(con: DuckDBPyConnection, kept: dict[int, int], duplicates: dict[int, int | None]) -> None:
    con.execute(
        "CREATE TEMP TABLE file_map AS SELECT unnest($1::INTEGER[]) AS old_id, unnest($2::INTEGER[]) AS new_id, "
        "unnest($3::INTEGER[]) AS duplicate_of",
        [list(kept), list(kept.values()), [duplicates.get(new) for new in kept.values()]],
    )
    con.execute("""
        CREATE TEMP TABLE writer_map AS
        SELECT origin, old_id, row_number() OVER (ORDER BY file_id, old_id) - 1 AS new_id
        FROM (
            SELECT 'now' AS origin, writer_id AS old_id, file_id FROM writers
            UNION ALL
            SELECT 'base', w.writer_id, m.new_id FROM base.writers AS w JOIN file_map AS m ON m.old_id = w.file_id
        )
    """)


def _merge_table(con: DuckDBPyConnection, table: Table) -> None:
    names = {c.name for c in table.columns}
    has_writer = "writer_id" in names
    columns = ", ".join(c.quoted for c in table.columns)
    con.execute(f"""
        CREATE TABLE merged AS
        SELECT {columns} FROM (
            SELECT {_selected(table, "t.file_id", "t.duplicate_of")}, t.rowid AS place
            FROM {table.name} AS t {_writer_join("now") if has_writer else ""}
            UNION ALL
            SELECT {_selected(table, "m.new_id", "m.duplicate_of")}, t.rowid
            FROM base.{table.name} AS t JOIN file_map AS m ON m.old_id = t.file_id
            {_writer_join("base") if has_writer else ""}
        )
        ORDER BY file_id, place
    """)
    con.execute(f"DROP TABLE {table.name}")
    con.execute(f"ALTER TABLE merged RENAME TO {table.name}")


def _writer_join(origin: str) -> str:
    return f"LEFT JOIN writer_map AS w ON w.origin = '{origin}' AND w.old_id = t.writer_id"


def _selected(table: Table, file_id: str, duplicate_of: str) -> str:
    def value(column: Column) -> str:
        if column.name == "file_id":
            return f"{file_id} AS file_id"
        if column.name == "writer_id":
            return "w.new_id::INTEGER AS writer_id"
        if column.name == "duplicate_of":
            return f"{duplicate_of} AS duplicate_of"
        return f"t.{column.quoted}"

    return ", ".join(value(c) for c in table.columns)
