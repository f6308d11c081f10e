"""Rows into DuckDB, many at once.

Parsing hands over rows, many by columns and others one at a time; DuckDB takes columns. Between them stands a buffer:
columns wait as Arrow has them, rows as dicts that are turned into numpy columns, and each is inserted by one statement
(row by row takes 1,000 times as long). Memory is bounded by FLUSH_ROWS, whatever the size of the log.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numpy as np
from duckdb import DuckDBPyConnection

from replay.grammar.texts import Coded, cut
from replay.parse.model import KINDS, Column, Counts, Reading, Segment, Value
from replay.sources.model import Batch, Identity, Line, Problem, SourceFile
from replay.store import schema
from replay.store.arrow import Child, Table
from replay.store.columns import LIMITS, TEXT_CUT, child, is_missing, packed

FLUSH_ROWS = 50_000
_NULL, _NAN = 1, 2
_LINE_COLUMNS = ("writer_id", "file_id", "line_no", "byte_offset", "class", "form", "t_lo", "t_hi", "text")


class TableSink:
    """Takes the rows of parsing (a replay.parse.pipeline.LineSink) and writes them to the tables of `con`."""

    def __init__(self, con: DuckDBPyConnection) -> None:
        self.con = con
        self._known = {t.name: frozenset(c.name for c in t.columns) for t in schema.tables().values()}
        self._rows: dict[str, list[dict[str, Value]]] = {}
        self._lines: list[tuple[Value, ...]] = []
        self._many: dict[tuple[str, tuple[tuple[str, bytes], ...]], list[tuple[int, list[Child]]]] = {}
        self._many_waiting = 0
        self._waiting = 0
        self._writers: dict[tuple[int, Identity], int] = {}

    def writer(self, file: SourceFile, identity: Identity) -> int:
        """Return the number of the writer with this identity in this file; a new one becomes a row of `writers`."""
        key = (file.file_id, identity)
        number = self._writers.get(key)
        if number is None:
            number = self._writers[key] = len(self._writers)
            self.add(
                "writers",
                writer_id=number,
                file_id=file.file_id,
                run_key=file.run_key,
                prefix_rank=identity.rank,
                local_rank=identity.local_rank,
                host=identity.host,
                pid=identity.pid,
                device=identity.device,
                label=identity.label,
                stream=identity.stream,
                rank_guess=identity.rank_guess,
            )
        return number

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        """Keep a line: its class ("parsed", ...), the production that took it and its time, None where it has none."""
        text = cut(line.raw, TEXT_CUT)
        self._lines.append((writer_id, line.file_id, line.line_no, line.byte_offset, kind, form, t, t, text))
        if len(self._lines) >= FLUSH_ROWS:
            self._flush_lines()

    def row(self, table: str, segment: Segment, **columns: Value) -> None:
        """Add a row to an event table. Columns not given come from the segment, else they are NULL.

        Raises KeyError if the table has no such column.
        """
        line = segment.line
        common: dict[str, Value] = {
            "writer_id": segment.writer_id,
            "t_lo": segment.t,
            "t_hi": segment.t,
            "file_id": line.file_id,
            "line_no": line.line_no,
            "complete": line.whole and not segment.torn,
        }
        self.add(table, **(common | columns))

    def lines(self, batch: Batch, read: Reading) -> None:
        """Keep those lines of a batch that were read; see `line`."""
        where = np.flatnonzero(read.kinds)
        count = len(where)
        if not count:
            return
        raws, kinds, forms, ts, writers = batch.raws, read.kinds, read.forms, read.ts, read.writers
        if count < len(raws):
            raws, kinds, forms, ts, writers = raws.pick(where), kinds[where], forms[where], ts[where], writers[where]
        columns: dict[str, Column | Child] = {
            "writer_id": writers,
            "file_id": batch.file_id,
            "line_no": where + batch.first_no,
            "byte_offset": batch.offsets[where],
            "class": Coded(kinds.astype(np.int32), KINDS),
            "form": Coded(forms, list(read.names.names)),
            "t_lo": ts,
            "t_hi": ts,
            "text": packed(raws, TEXT_CUT),
        }
        self._flush_lines()
        self.rows("lines", count, columns)

    def rows(self, table: str, count: int, columns: Mapping[str, Column | Child]) -> None:
        """Add rows by columns, common ones included. Raises KeyError if the table has no such column."""
        if not columns.keys() <= self._known[table]:
            raise KeyError(f"{table} has no column {', '.join(sorted(columns.keys() - self._known[table]))}")
        names = [c for c in schema.tables()[table].columns if not is_missing(columns.get(c.name))]
        children = [_child(c.type, columns[c.name], count) for c in names]
        key = table, tuple((c.name, a.format) for c, a in zip(names, children, strict=True))
        self._many.setdefault(key, []).append((count, children))
        self._many_waiting += count
        if self._many_waiting >= FLUSH_ROWS:
            self._flush_many()

    def _flush_many(self) -> None:
        """Write out rows that came by columns."""
        for (table, columns), batches in self._many.items():
            rows = Table([name for name, _ in columns], batches)
            names = ", ".join(f'"{name}"' for name, _ in columns)
            self.con.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM rows")
            rows.close()
        self._many.clear()
        self._many_waiting = 0

    def add(self, table: str, **columns: Value) -> None:
        """Add a row to any table. Raises KeyError if it has no such column."""
        if not columns.keys() <= self._known[table]:
            raise KeyError(f"{table} has no column {', '.join(sorted(columns.keys() - self._known[table]))}")
        self._rows.setdefault(table, []).append(columns)
        self._waiting += 1
        if self._waiting >= FLUSH_ROWS:
            self._flush_rows()

    def file(self, file: SourceFile, counts: Counts, *, ends_whole: bool | None) -> None:
        """Add the row of a file that was read."""
        identity = file.identity
        self.add(
            "files",
            file_id=file.file_id,
            path=file.path,
            abspath=None if file.abspath is None else str(file.abspath),
            kind=file.kind,
            encoding=file.encoding,
            size=file.size,
            digest=file.digest,
            run_key=file.run_key,
            attempt=file.attempt,
            rank=identity.rank,
            local_rank=identity.local_rank,
            host=identity.host,
            stream=identity.stream,
            wrapper=file.wrapper,
            lines=counts.lines,
            parsed=counts.parsed,
            continuation=counts.continuation,
            plain=counts.plain,
            malformed=counts.malformed,
            mtime=file.mtime,
            duplicate_of=file.duplicate_of,
            ends_whole=ends_whole,
        )

    def problem(self, problem: Problem) -> None:
        """Add something odd about the input."""
        self.add("problems", kind=problem.kind, text=problem.text, file_id=problem.file_id, line_no=problem.line_no)

    def flush(self) -> None:
        """Write out everything that waits."""
        self._flush_lines()
        self._flush_rows()
        self._flush_many()

    def _flush_lines(self) -> None:
        if self._lines:
            self._flush_many()
            columns = dict(zip(_LINE_COLUMNS, map(list, zip(*self._lines, strict=True)), strict=True))
            insert_columns(self.con, "lines", columns)
            self._lines.clear()

    def _flush_rows(self) -> None:
        for table, rows in self._rows.items():
            if rows:
                used: set[str] = set().union(*rows)
                insert_columns(self.con, table, {name: [row.get(name) for row in rows] for name in used})
                rows.clear()
        self._waiting = 0


def _child(kind: str, column: Column | Child, count: int) -> Child:
    return column if isinstance(column, Child) else child(kind, column, count)


def insert_columns(con: DuckDBPyConnection, table: str, columns: Mapping[str, Sequence[Value]]) -> None:
    """Append rows, given as equally long columns; columns not given are NULL.

    A value that does not fit its column's type (a number beyond 64 bits in a hostile log) becomes NULL.
    """
    arrays: dict[str, Any] = {}
    expressions: list[str] = []
    names: list[str] = []
    for number, column in enumerate(schema.tables()[table].columns):
        values = columns.get(column.name)
        if values is None:
            continue
        key = f"c{number}"
        arrays |= _arrays(key, column.type, values)
        names.append(column.quoted)
        expressions.append(_expression(key, column.type, has_flag=f"{key}_flag" in arrays))
    con.execute(f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(expressions)} FROM arrays")


def _arrays(key: str, kind: str, values: Sequence[Value]) -> dict[str, Any]:
    """Return the numpy columns of one column: its values and, where there is NULL or NaN, a flag for each."""
    if kind == "VARCHAR":
        return {key: _texts(values)}
    numbers: Any
    if kind != "DOUBLE" and None not in values:
        with suppress(OverflowError, ValueError, TypeError):
            return {key: np.array(values, dtype=_dtype(kind))}
    try:
        flags = np.array([_NULL if v is None else 0 for v in values], dtype=np.int8)
        numbers = np.array([0 if v is None else v for v in values], dtype=_dtype(kind))
    except (OverflowError, ValueError, TypeError):
        checked = [_fitting(kind, v) for v in values]
        flags = np.array([_NULL if v is None else 0 for v in checked], dtype=np.int8)
        numbers = np.array([0 if v is None else v for v in checked], dtype=_dtype(kind))
    if kind == "DOUBLE":  # DuckDB reads NaN in a numpy column as NULL, and a loss of NaN is what we look for
        flags[np.isnan(numbers)] = _NAN
    return {key: numbers, f"{key}_flag": flags} if flags.any() else {key: numbers}


def _dtype(kind: str) -> type:
    return {"INTEGER": np.int64, "BIGINT": np.int64, "DOUBLE": np.float64, "BOOLEAN": np.bool_}[kind]


def _fitting(kind: str, value: Value) -> int | float | None:
    """Return the number that a value of doubtful type stands for, None if it is none or too large."""
    if value is None:
        return None
    try:
        if kind == "DOUBLE":
            return float(value)
        number = int(value)
    except (ValueError, OverflowError):
        return None
    limit = LIMITS.get(kind)
    return number if limit is None or -limit <= number < limit else None


def _texts(values: Sequence[Value]) -> Any:
    """Return texts as an array that DuckDB can read: half surrogates (from JSON escapes) have no UTF-8."""
    try:
        if "".join(cast("list[str]", [v for v in values if v is not None])).isascii():
            return _objects(values)
    except TypeError:
        pass  # not all are texts
    texts = [v if v is None or type(v) is str else str(v) for v in values]
    try:
        "".join(t for t in texts if t is not None).encode()
    except UnicodeEncodeError:
        texts = [t if t is None else t.encode("utf-8", "replace").decode() for t in texts]
    return _objects(texts)


def _objects(values: Sequence[Value]) -> Any:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _expression(key: str, kind: str, *, has_flag: bool) -> str:
    value = f"{key}::VARCHAR" if kind == "VARCHAR" else f"TRY_CAST({key} AS {kind})"
    if not has_flag:
        return value
    nan = f" WHEN {_NAN} THEN 'nan'::DOUBLE" if kind == "DOUBLE" else ""
    return f"CASE {key}_flag WHEN {_NULL} THEN NULL{nan} ELSE {value} END"
