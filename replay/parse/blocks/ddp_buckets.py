"""What DDPOptimizer says of the buckets that it split a graph at, to rows of `ddp_buckets`."""

from dataclasses import dataclass, field

from replay.parse.model import Segment, Sink, Value
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

_CUT = 4000
"""Characters of a bucket's names."""


@dataclass(slots=True)
class _Bucket:
    segment: Segment
    parameters: list[str] = field(default_factory=list)


class DdpBuckets:
    """Reads the summaries and the tables of one writer; the summary stands before its table."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head: Segment | None = None
        self._bucket: _Bucket | None = None
        self._of: tuple[str | None, Value] = None, None
        """Compile id and bucket cap of the last summary."""

    @property
    def head(self) -> Segment | None:
        """The line that opened the table here, None where none is open."""
        return self._head

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record, compile_id = record_of(segment), compile_id_of(segment)
        if self._head is not None and (not record.startswith("ddp_") or not is_same_message(segment, self._head)):
            self.close()
        match record:
            case "ddp_summary":
                self.close()
                cap = int(segment.fields["cap"])
                self._of = compile_id, cap
                self._row(segment, cap_bytes=cap, buckets=int(segment.fields["buckets"]))
            case "ddp_title":
                self.close()
                self._head = segment
            case "ddp_bucket" | "ddp_parameter" | "ddp_rule" if self._head is not None:
                self._line(segment, record)
                return "continuation"
        return None

    def close(self) -> None:
        """See Assembler."""
        self._ended()
        self._head = None

    def _line(self, segment: Segment, record: str) -> None:
        if record == "ddp_bucket":
            self._ended()
            self._bucket = _Bucket(segment)
        if self._bucket is not None and record != "ddp_rule":
            self._bucket.parameters.append(segment.fields["name"])

    def _ended(self) -> None:
        bucket, self._bucket = self._bucket, None
        if bucket is None:
            return
        fields, (compile_id, cap) = bucket.segment.fields, self._of
        self._row(
            bucket.segment,
            cap_bytes=cap if compile_id == compile_id_of(bucket.segment) else None,
            bucket=int(fields["bucket"]),
            bytes=int(fields["size"]),
            parameters=len(bucket.parameters),
            names=";".join(bucket.parameters)[:_CUT],
        )

    def _row(self, segment: Segment, **columns: Value) -> None:
        self._sink.row("ddp_buckets", segment, compile_id=compile_id_of(segment), **columns)
