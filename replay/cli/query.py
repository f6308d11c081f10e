"""`replay sql`: any question, in SQL, on the locked read-only database."""

import csv
import io
import json
import math
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replay.cli import screen
from replay.cli.source import Source, reads_logs
from replay.errors import InputError, UsageError

if TYPE_CHECKING:
    from replay.run import Result, Run

_BATCH = 1000
_CELL = 72
"""Characters of a cell that a table on a terminal shows."""


class TableFormat(StrEnum):
    """How rows are written."""

    TABLE = "table"
    CSV = "csv"
    JSONL = "jsonl"
    PARQUET = "parquet"


@reads_logs
def sql(
    source: Source,
    query: Annotated[str, typer.Argument(help="SQL, @name for a query that comes with the tool, or @ to list those.")],
    output: Annotated[TableFormat, typer.Option("--format", "-f", help="How to write the rows.")] = TableFormat.TABLE,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file instead of stdout.")
    ] = None,
) -> None:
    """Ask anything: every record of the logs is a row (docs/schema.md lists the tables)."""
    from replay.store.queries import named_queries, named_query

    if query == "@":
        rows = [["query", "what it answers"], *([f"@{q.name}", q.doc] for q in named_queries().values())]
        screen.write(screen.table(rows))
        return
    if query.startswith("@"):
        query = named_query(query[1:]).sql
    if output is TableFormat.PARQUET and file is None:
        raise UsageError("--format parquet needs a file: -o FILE")
    with source.open() as run:
        if output is TableFormat.PARQUET and file is not None:
            run.export(query, file)
        elif file is None:
            for part in _written(run, query, output, on_terminal=sys.stdout.isatty()):
                screen.write(part)
        else:
            _save(file, _written(run, query, output, on_terminal=False))


def _save(file: Path, parts: Iterator[str]) -> None:
    first = next(parts, "")  # a wrong query must not empty the file
    try:
        with file.open("w", encoding="utf-8", newline="") as target:
            target.write(first)
            target.writelines(parts)
    except OSError as error:
        raise InputError(f"{file}: cannot be written ({error.strerror})") from error


def _written(run: "Run", query: str, output: TableFormat, *, on_terminal: bool) -> Iterator[str]:
    """The rows in the wanted form, in parts; log text cannot act on a terminal."""
    result = run.ask(query)
    if output is TableFormat.TABLE:
        yield _table(result, on_terminal=on_terminal)
    elif output is TableFormat.CSV:
        yield from _csv(result, on_terminal=on_terminal)
    else:
        for batch in result.batches(_BATCH):
            rows = (dict(zip(result.columns, map(_plain, row), strict=True)) for row in batch)
            yield "".join(json.dumps(row, ensure_ascii=on_terminal) + "\n" for row in rows)


def _table(result: "Result", *, on_terminal: bool) -> str:
    rows = [row for batch in result.batches(_BATCH) for row in batch]
    numbers = frozenset(
        n for n in range(len(result.columns))
        if rows and all(r[n] is None or (isinstance(r[n], int | float) and not isinstance(r[n], bool)) for r in rows)
    )  # fmt: skip
    cells = [list(map(_cell, result.columns)), *([_cell(value) for value in row] for row in rows)]
    return screen.table(cells, numbers, _CELL if on_terminal else None) + f"({len(rows):,} rows)\n"


def _csv(result: "Result", *, on_terminal: bool) -> Iterator[str]:
    def text(rows: Iterable[Iterable[Any]]) -> str:
        buffer = io.StringIO()
        lines = csv.writer(buffer, lineterminator="\n")
        lines.writerows([_csv_cell(value, on_terminal=on_terminal) for value in row] for row in rows)
        return buffer.getvalue()

    yield text([result.columns])
    yield from map(text, result.batches(_BATCH))


def _csv_cell(value: Any, *, on_terminal: bool) -> str:
    from replay.report.wording import visible

    if value is None:
        return ""
    text = json.dumps(_plain(value)) if isinstance(value, list | dict | tuple) else str(value)
    return visible(text) if on_terminal else text


def _cell(value: Any) -> str:
    from replay.report.wording import visible

    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.15g}"
    return visible(str(value))


def _plain(value: Any) -> Any:
    """A value as JSON can hold it."""
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)
