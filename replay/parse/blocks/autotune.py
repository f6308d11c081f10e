"""Inductor's tables of measured kernels to rows of `autotune`."""

from replay.grammar.executor import shared
from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import record_of

_FAMILY = "autotune"


class Autotune:
    """Assembles the tables of one writer. Lines have no header; a table ends where a line is not of it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head: Segment | None = None
        self._rows = 0
        self._stats: Segment | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._head or self._stats

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if record == "autotune_head":
            self._head, self._rows, self._stats = segment, 0, None
            return None
        if record == "autotune_stats":
            self._head, self._stats = None, segment
            return None
        if segment.header or (self._head is None and self._stats is None):
            return None
        match = shared().one(_FAMILY, segment.text)
        record = match.record if match is not None else ""
        if self._stats is not None and record == "autotune_json":
            return "continuation"
        self._stats = None
        if match is None or self._head is None:
            self._head = None
            return None
        if record == "autotune_choice":
            self._row(segment, self._head, match.fields)
        elif record == "autotune_end":
            self._head = None
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        self._head = None

    def _row(self, segment: Segment, head: Segment, fields: dict[str, str]) -> None:
        time_ms = float(fields["time"]) if "time" in fields else float(fields["seconds"]) * 1e3
        self._sink.row(
            "autotune",
            segment,
            op=head.fields["op"],
            shape=head.fields["shape"],
            choice=fields["choice"],
            time_ms=time_ms,
            is_best=self._rows == 0,
        )
        self._rows += 1
