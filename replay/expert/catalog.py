"""What the engine knows about tables: their columns, and what a row means in time, size and visibility.

Columns are asked of the database itself, so views, knowledge tables and user tables are all the same to a rule.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replay.expert.expression import quoted

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FACTS = "replay_facts"
"""Temporary table that holds what was found so far; a rule calls it `findings`."""
HEARD = "replay_heard"
"""Temporary table of run_id, what, heard, seen, unseen: ranks heard, and those of whom `what` could (not) be seen."""

FACT_COLUMNS = {
    "run_id": "INTEGER", "rule": "VARCHAR", "cause": "VARCHAR", "layer": "VARCHAR", "kind": "VARCHAR",
    "ranks": "INTEGER[]", "waiting": "INTEGER[]", "impact": "VARCHAR", "step": "BIGINT", "t": "DOUBLE",
    "certainty": "DOUBLE", "lost_s": "DOUBLE", "summary": "VARCHAR", "file_id": "INTEGER", "line_no": "BIGINT",
}  # fmt: skip
"""Columns of `findings` as a step of a rule: what does not depend on the other findings, and the first evidence."""

SPANS: dict[str, tuple[str, str, str, str]] = {
    "stalls": ("t_lo", "t_lo", "t_hi", "t_hi"),
    "steps": ("t_lo", "t_lo", "t_hi", "t_hi"),
    "matched": ("first_enter", "first_enter", "last_enter", "last_enter"),
    "ranks": ("first_t", "first_t", "last_t", "last_t"),
    "runs": ("t_first", "t_first", "t_last", "t_last"),
    "last_words": ("t", "t", "t", "t"),
    "findings": ("t", "t", "t", "t"),
    # A launcher tells of an end after it came: how long after is not known.
    "exits": ("", "coalesce(t_exit, t_hi)", "", "coalesce(t_exit, t_hi)"),
}
"""Bounds of start and end, where they are not t_lo, t_hi, end_lo, end_hi; "" is not bounded."""

BACKGROUND = frozenset({"runs", "ranks", "files", "observed", "rank_stats", "comm_groups", "env", "packages"})
"""Tables whose rows are no events: they do not date a finding."""

SIZES = {
    "compiles": "duration_s", "stalls": "lost_s", "steps": "duration_s", "timeouts": "ran_ms", "memory": "requested_mb",
    "collectives": "bytes", "activities": "duration_s", "recompiles": "duration_s", "rank_stats": "median",
    "divergences": "rel_max", "last_words": "silent_s", "findings": "lost_s",
}  # fmt: skip
"""The column that makes one row of a table larger than another, for evidence."""

OBSERVABLES = {
    "recompiles": "recompiles", "compiles": "compiles", "guard_failures": "recompiles",
    "graph_breaks": "graph_breaks", "graphs": "graphs", "graph_ops": "graphs", "cache_events": "cache",
    "comms": "nccl-init", "comm_groups": "nccl-init", "channels": "nccl-channels", "rings": "nccl-channels",
    "trees": "nccl-channels", "topology": "nccl-channels", "collectives": "nccl-coll", "matched": "nccl-coll",
    "nccl_warnings": "nccl-warn", "timeouts": "watchdog", "flight_records": "flight-recorder", "steps": "steps",
    "step_lines": "steps", "stalls": "steps", "metrics": "metrics", "rank_stats": "metrics", "exits": "exit",
    "env": "env",
}  # fmt: skip
"""What of `observed` must be on for the absence of a table's row to mean something; others are always seen."""

WHATS = frozenset({*OBSERVABLES.values(), "guards"})


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view as a step sees it: `source` is its name in SQL, `columns` maps names to DuckDB types."""

    name: str
    source: str
    columns: Mapping[str, str]
    has_rowid: bool

    def __contains__(self, column: str) -> bool:
        """Tell whether rows have the column; `rowid` tells rows of one table apart."""
        return column in self.columns or column == "rowid"

    @property
    def relation(self) -> str:
        """The table as FROM takes it; a view gets a rowid."""
        name = quoted(self.source)
        return name if self.has_rowid else f"(SELECT *, row_number() OVER () AS rowid FROM {name})"

    def bounds(self, alias: str) -> tuple[str, str, str, str] | None:
        """Return SQL for the bounds of start and end of a row, None where the table has no times.

        A bound that is not known is NULL; an end that is not known is bounded below by the start.
        """
        if self.name in SPANS:
            columns = SPANS[self.name]
        elif "t_lo" in self.columns:
            high = "t_hi" if "t_hi" in self.columns else "t_lo"
            low_end, high_end = next(
                ((lo, hi) for lo, hi in (("end_lo", "end_hi"), ("exit_lo", "exit_hi")) if hi in self.columns),
                ("t_lo", high),
            )
            columns = ("t_lo", high, low_end if low_end in self.columns else high_end, high_end)
        else:
            return None
        lo, hi, end_lo, end_hi = (_bound(column, alias) for column in columns)
        return lo, hi, f"coalesce({end_lo}, {lo})", end_hi


def _bound(column: str, alias: str) -> str:
    if not column:
        return "NULL::DOUBLE"
    if column.startswith("coalesce("):
        inner = column[9:-1].split(", ")
        return f"coalesce({', '.join(f'{alias}.{name}' for name in inner)})"
    return f"{alias}.{quoted(column)}"


@dataclass(frozen=True, slots=True)
class Catalog:
    """All tables that rules can read."""

    tables: Mapping[str, Table]

    @classmethod
    def of(cls, con: "DuckDBPyConnection") -> "Catalog":
        """Ask the database for its tables and views; knowledge tables must be there already."""
        rows = con.execute(
            """SELECT c.table_name, t.table_name IS NOT NULL, list(c.column_name ORDER BY c.column_index),
                   list(c.data_type ORDER BY c.column_index)
            FROM duckdb_columns() AS c LEFT JOIN duckdb_tables() AS t USING (table_oid, schema_oid, database_oid)
            WHERE NOT c.internal AND c.table_name NOT IN ('findings', 'evidence', 'explains')
            GROUP BY ALL"""
        ).fetchall()
        tables = {
            name: Table(name, name, dict(zip(columns, types, strict=True)), is_table)
            for name, is_table, columns, types in rows
        }
        tables["findings"] = Table("findings", FACTS, FACT_COLUMNS, True)
        return cls(tables)
