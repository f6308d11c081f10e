"""The warning that a function was compiled too often, to rows of `recompile_limits`."""

from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.parse.guard_reasons import parse_reason
from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import compile_id_of, record_of

_FAMILY = "limit"


@dataclass(slots=True)
class _Block:
    head: Segment
    fn: str | None = None
    file: str | None = None
    line: int | None = None
    reason: str | None = None
    seen: set[str] = field(default_factory=set)


class Limits:
    """Assembles the limit warnings of one writer. Torch 2.0 prints all lines but the first without a header."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._block: _Block | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._block.head if self._block is not None else None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        if record_of(segment) == "limit_head":
            self.close()
            self._block = _Block(segment)
            return None
        block = self._block
        if block is None:
            return None
        bare = not segment.header
        match = shared().one(_FAMILY, segment.text) if bare else segment.match
        record = match.record if match is not None and match.family == _FAMILY else ""
        fields = match.fields if match is not None else {}
        in_stack = record == "limit_stack" and "limit_reason" in block.seen
        if in_stack or (record and record not in block.seen):
            block.seen.add(record)
            self._take(block, record, fields)
        elif bare or not _same(segment, block.head):
            self.close()
            return None
        if record == "limit_end":
            self.close()
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        block, self._block = self._block, None
        if block is None:
            return
        reason = parse_reason(block.reason) if block.reason else None
        fields = block.head.fields
        self._sink.row(
            "recompile_limits",
            block.head,
            compile_id=compile_id_of(block.head),
            limit_name=fields["limit_name"],
            limit_value=int(fields["limit"]) if fields["limit"].isdigit() else None,
            fn=block.fn,
            fn_file=block.file,
            fn_line=block.line,
            last_reason=block.reason,
            kind=reason.kind if reason else None,
            cause=reason.cause if reason else None,
            complete=block.fn is not None,
        )

    def _take(self, block: _Block, record: str, fields: dict[str, str]) -> None:
        if record == "limit_function":
            block.fn, block.file, block.line = fields["fn"], fields["file"], int(fields["fn_line"])
        elif record == "limit_reason":
            block.reason = fields.get("reason", "").rstrip() or None


def _same(segment: Segment, head: Segment) -> bool:
    """Whether a line with a header belongs to the message of another: same place in torch, same compile."""
    names = ("level", "path", "lineno", "logger", "level_name", "trace_id")
    return segment.header == head.header and all(segment.head.get(name) == head.head.get(name) for name in names)
