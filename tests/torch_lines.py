"""Lines of torch's logs through the parser, for tests: headers of all versions, rows by table."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import columns

from replay.grammar.executor import shared
from replay.parse.model import Column, Counts, Reading, Segment, Value
from replay.parse.pipeline import parse_file
from replay.sources.model import Batch, Hints, Identity, Line, SourceFile


class Rows:
    """A sink that keeps rows by table, each with the line it names, and how every line was classed."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.kinds: list[str] = []
        self.counts = Counts()
        self._writers: dict[Identity, int] = {}

    def writer(self, file: SourceFile, identity: Identity) -> int:
        return self._writers.setdefault(identity, len(self._writers))

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        self.kinds.append(kind)

    def lines(self, batch: Batch, read: Reading) -> None:
        self.kinds += columns.kinds(read)

    def rows(self, table: str, count: int, told: Mapping[str, Column]) -> None:
        for row in columns.rows(count, told):
            self.tables[table].append({name: value for name, value in row.items() if value is not None})

    def row(self, table: str, segment: Segment, **told: Value) -> None:
        given = {name: value for name, value in told.items() if value is not None}
        self.tables[table].append({"line_no": segment.line.line_no, "t_lo": segment.t} | given)

    def __getitem__(self, table: str) -> list[dict[str, Any]]:
        return self.tables[table]


def parse(texts: Iterable[str], kind: str = "text", path: str = "a.log") -> Rows:
    """Parse lines, as those of one file without wrappers."""
    rows = Rows()
    file = SourceFile(0, path, None, kind, "plain", 0, "", mtime=1_796_000_000.0)
    lines = [Line(0, number, 0, text, text, Identity()) for number, text in enumerate(texts, 1)]
    rows.counts = parse_file(file, [lines], rows, Hints(), shared())
    return rows


def v213(texts: Iterable[str], artifact: str = "", trace_id: str = "0/0", level: str = "V", ms: int = 100) -> list[str]:
    """Lines of one message of torch 2.5 and later: each has the header."""
    marks = f" [{trace_id}]" if trace_id else ""
    marks += f" [__{artifact}]" if artifact else ""
    head = f"[rank1]:{level}1130 10:20:30.{ms:03}000 4321 torch/_dynamo/guards.py:77]{marks}"
    return [f"{head} {text}" for text in texts]


def v23(texts: Iterable[str], artifact: str = "", trace_id: str = "0/0", level: str = "V") -> list[str]:
    """The same of 2.3 and 2.4: the number is a thread's."""
    marks = f" [{trace_id}]" if trace_id else ""
    marks += f" [__{artifact}]" if artifact else ""
    head = f"[rank1]:{level}1130 10:20:30.100000 140012345678912 torch/_dynamo/guards.py:77]{marks}"
    return [f"{head} {text}" for text in texts]


def v22(texts: Iterable[str], artifact: str = "", trace_id: str = "", level: str = "DEBUG") -> list[str]:
    """The same of 2.1 and 2.2: a year, the artifact in the logger's name."""
    mark = f" [{trace_id}]" if trace_id else ""
    logger = "torch._dynamo.guards" + (f".__{artifact}" if artifact else "")
    return [f"[rank1]:[2026-11-30 10:20:30,100]{mark} {logger}: [{level}] {text}" for text in texts]


def v20(texts: list[str], level: str = "WARNING") -> list[str]:
    """A message of 2.0: only the first line has the header."""
    return [f"[2026-11-30 10:20:30,100] torch._dynamo.convert_frame: [{level}] {texts[0]}", *texts[1:]]
