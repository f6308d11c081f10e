"""Lines of failures through the parser, for tests: no files, no database. "[rank3]: " is peeled as sources peel it."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import columns

from replay.grammar.executor import shared
from replay.parse.model import Column, Counts, Reading, Segment, Value
from replay.parse.pipeline import parse_file
from replay.sources.model import Batch, Hints, Identity, Line, SourceFile
from replay.store import schema


class Rows:
    """A sink that keeps rows by table; it knows the columns, and who wrote each row."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.kinds: list[str] = []
        self.identities: list[Identity] = []
        self._columns = {t.name: {c.name for c in t.columns} for t in schema.tables().values()}

    def writer(self, file: SourceFile, identity: Identity) -> int:
        if identity not in self.identities:
            self.identities.append(identity)
        return self.identities.index(identity)

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        self.kinds.append(kind)

    def lines(self, batch: Batch, read: Reading) -> None:
        self.kinds += columns.kinds(read)

    def rows(self, table: str, count: int, told: Mapping[str, Column]) -> None:
        assert told.keys() <= self._columns[table] | {"writer_id"}
        for row in columns.rows(count, told):
            self.tables[table].append({"rank": self.identities[row["writer_id"]].rank} | row)

    def row(self, table: str, segment: Segment, **told: Value) -> None:
        assert told.keys() <= self._columns[table], f"{table} lacks {told.keys() - self._columns[table]}"
        row: dict[str, Any] = {"rank": self.identities[segment.writer_id].rank, "line_no": segment.line.line_no}
        row |= {"t_lo": segment.t, "complete": segment.line.whole and not segment.torn} | told
        self.tables[table].append(row)

    def of(self, table: str, *names: str) -> list[tuple[Any, ...]]:
        """The named columns of a table's rows, in the order of lines."""
        rows = sorted(self.tables[table], key=lambda row: row["line_no"] or 0)
        return [tuple(row.get(name) for name in names) for row in rows]

    def one(self, table: str) -> dict[str, Any]:
        """The only row of a table."""
        (row,) = self.tables[table]
        return row


def peeled(number: int, raw: str) -> Line:
    """A line with its rank taken off."""
    identity, text = Identity(), raw
    if raw.startswith("[rank") and "]:" in raw[:12]:
        rank, _, text = raw[5:].partition("]:")
        identity, text = Identity(rank=int(rank)), text.removeprefix(" ")
    return Line(0, number, 0, raw, text, identity)


def parse(text: str, identity: Identity | None = None) -> Rows:
    """Parse a file's text. With `identity`, all lines are of that process."""
    rows, _ = parse_counted(text, identity)
    return rows


def parse_counted(text: str, identity: Identity | None = None) -> tuple[Rows, Counts]:
    """Parse, and tell how the lines were classed."""
    rows = Rows()
    lines = [peeled(n, raw) for n, raw in enumerate(text.removesuffix("\n").split("\n"), 1)]
    if identity is not None:
        lines = [Line(0, line.line_no, 0, line.raw, line.text, identity) for line in lines]
    file = SourceFile(0, "x.log", None, "text", "plain", 0, "", mtime=1_796_000_000.0)
    return rows, parse_file(file, [lines], rows, Hints(), shared())
