"""TORCH_TRACE files: one JSON record a line behind a header of torch's, its payload in the lines below, after a tab."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay.grammar.executor import ReExecutor, shared
from replay.parse.clock import Clock
from replay.parse.model import Counts, LineSink, Segment
from replay.parse.trace_json import read_object
from replay.parse.trace_rows import TraceRows
from replay.sources.model import Hints, Identity, Line, SourceFile

_EVENT = '{"chromium_event"'
"""Begin of the records that are most of a file; they say nothing that others do not say as well."""
_NOT_KINDS = frozenset(
    {
        "rank",
        "compiled_autograd_id",
        "frame_id",
        "frame_compile_id",
        "attempt",
        "severity",
        "timestamp",
        "pathname",
        "thread",
        "subgraph_name",
        "has_payload",
        "stack",
    }
)


@dataclass(slots=True)
class Record:
    """A record. `meta` is what stands under its kind, `members` the whole object."""

    segment: Segment
    kind: str
    meta: dict[str, Any]
    members: dict[str, Any]
    is_whole: bool
    payload: list[Line] = field(default_factory=list)


class TraceReader:
    """Reads one file. Rows go to the sink as records end."""

    def __init__(self, file: SourceFile, sink: LineSink, hints: Hints, executor: ReExecutor) -> None:
        self._file, self._sink, self._executor = file, sink, executor
        self._clock = Clock(hints.year, file.mtime, file.near)
        self._rows = TraceRows(sink)
        self._record: Record | None = None
        self._in_record = False
        self._writer = -1
        self._t: float | None = None
        self._identity: Identity | None = None
        self.counts = Counts()

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text
        if text.startswith("\t"):
            if self._record is not None:
                self._record.payload.append(line)
            self._count(line, "continuation" if self._in_record else "malformed", None)
            return
        self.end()
        form = self._begin(line, text)
        kind = "parsed" if form else "malformed" if text.strip() else "plain"
        self._in_record = form is not None
        self._count(line, kind, form)

    def end(self) -> None:
        """The record is over: write its rows."""
        record, self._record = self._record, None
        if record is not None:
            self._rows.take(record.segment, record.kind, record.meta, record.members, record.payload)

    def close(self) -> None:
        """The file is over."""
        self.end()
        self._rows.close()

    def _begin(self, line: Line, text: str) -> str | None:
        """Take the head of a record; its kind, None where the line is none."""
        match = self._executor.one("headers", text)
        body = match.fields.get("text", "") if match is not None else ""
        if match is None or not body.startswith("{"):
            return None
        head = match.fields
        digits = head.get("mmdd")
        self._t = self._clock.month_day(digits, head["clock"]) if digits else line.t
        if body.startswith(_EVENT) and self._identity is not None:
            return "chromium_event"
        members, is_whole = read_object(body)
        kind = next((name for name in members if name not in _NOT_KINDS), None)
        if kind is None:
            return None
        meta = members[kind] if isinstance(members[kind], dict) else {"": members[kind]}
        self._identify(line, head, members)
        assert self._identity is not None
        segment = Segment(line, "torch", _header(members, meta), body, self._identity, self._t, writer_id=self._writer)
        if kind != "chromium_event":
            self._record = Record(segment, kind, meta, members, is_whole and line.whole)
        return kind

    def _identify(self, line: Line, head: dict[str, str], members: dict[str, Any]) -> None:
        """The writer: the process of the header, the rank of the file's name or of the record."""
        said, known = line.identity, self._identity
        rank = members.get("rank")
        if said.rank is not None or not isinstance(rank, int):
            rank = said.rank if said.rank is not None else known.rank if known is not None else None
        pid = int(head["id"]) if "id" in head and len(head["id"]) < 12 else said.pid
        identity = Identity(rank, said.local_rank, said.host, pid, None, said.label, said.stream)
        if identity != known:
            self._identity = identity
            self._writer = self._sink.writer(self._file, identity)

    def _count(self, line: Line, kind: str, form: str | None) -> None:
        counts = self.counts
        counts.lines += 1
        setattr(counts, kind, getattr(counts, kind) + 1)
        if form:
            counts.forms[form] = counts.forms.get(form, 0) + 1
        if self._writer < 0:
            self._writer = self._sink.writer(self._file, line.identity)
        self._sink.line(line, self._writer, kind, form, self._t)


def _header(members: dict[str, Any], meta: dict[str, Any]) -> dict[str, str]:
    """What the assemblers of text logs read from a header: the compile id with its attempt."""
    frame, nth = members.get("frame_id"), members.get("frame_compile_id")
    autograd, attempt = members.get("compiled_autograd_id"), members.get("attempt")
    trace_id = f"{frame}/{nth}" if frame is not None and nth is not None else meta.get("compile_id")
    if not isinstance(trace_id, str):
        return {}
    if autograd is not None and not trace_id.startswith("!"):
        trace_id = f"!{autograd}/{trace_id}"
    return {"trace_id": f"{trace_id}_{attempt}" if attempt else trace_id}


def read_trace(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, hints: Hints) -> Counts:
    """Read a file of kind "trace"; see replay.parse.pipeline.parse_file."""
    reader = TraceReader(file, sink, hints, shared())
    for batch in batches:
        for line in batch:
            reader.feed(line)
    reader.close()
    return reader.counts
