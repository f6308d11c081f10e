"""NCCL lines through the parser, for tests: no files, no database."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from replay.grammar.executor import shared
from replay.parse.model import Counts, Segment, Value
from replay.parse.pipeline import parse_file
from replay.sources.model import Hints, Identity, Line, SourceFile

EXECUTOR = shared()


class Rows:
    """A sink that keeps the rows by table and the classes of lines."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.kinds: list[tuple[str, str | None, str]] = []
        self.lines: list[int] = []
        self.numbers: dict[Identity, int] = {}

    def writer(self, file: SourceFile, identity: Identity) -> int:
        return self.numbers.setdefault(identity, len(self.numbers))

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        self.kinds.append((kind, form, line.text))
        self.lines.append(line.line_no)

    def row(self, table: str, segment: Segment, **columns: Value) -> None:
        given = {k: v for k, v in columns.items() if v is not None}
        self.tables[table].append(given | {"pid": segment.identity.pid, "t": segment.t, "complete": not segment.torn})


def lines(data: bytes) -> list[Line]:
    """The lines of a file's bytes, unwrapped."""
    found, offset = [], 0
    for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), 1):
        text = raw.decode("utf8", "replace")
        found.append(Line(0, number, offset, text, text, Identity()))
        offset += len(raw) + 1
    return found


def parse(data: bytes | Iterable[str]) -> tuple[Rows, Counts]:
    """Parse the bytes of a file, or its lines."""
    if not isinstance(data, bytes):
        data = "".join(f"{line}\n" for line in data).encode()
    rows = Rows()
    file = SourceFile(0, "nccl.log", None, "text", "plain", len(data), "", mtime=1_796_000_000.0)
    counts = parse_file(file, [lines(data)], rows, Hints(), EXECUTOR)
    return rows, counts


def said(text: str, level: str = "INFO", place: str = "") -> str:
    """A line of process 100, device 0."""
    return f"node-1:100:200 [0] {place + ' ' if place else ''}NCCL {level} {text}"


def row(table: str, text: str, level: str = "INFO", place: str = "") -> dict[str, Any]:
    """The only row of a table that one message gives, without the columns of every row."""
    rows, _ = parse([said(text, level, place)])
    (found,) = rows.tables[table]
    return {k: v for k, v in found.items() if k not in {"pid", "t", "complete"}}
