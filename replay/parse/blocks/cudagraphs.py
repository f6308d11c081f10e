"""CUDA graph messages to rows of `cudagraphs`."""

from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import is_same_message, record_of

_EVENTS = {
    "cudagraph_skipped": "skipped",
    "cudagraph_limit": "skipped",
    "cudagraph_sizes": "rerecord",
    "cudagraph_rerecord": "rerecord",
    "cudagraph_recorded": "recorded",
    "cudagraph_tree": "recorded",
    "cudagraph_warmup": "warmup",
    "cudagraph_overwritten": "overwritten",
}


class CudaGraphs:
    """Reads the CUDA graph lines of one writer. A skip may name the place in the user's code in the lines below it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._skipped: Segment | None = None
        self._reason = ""

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._skipped

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if self._skipped is not None:
            if record not in _EVENTS and is_same_message(segment, self._skipped) and segment.text.strip():
                self._reason += " " + segment.text.strip()
                return "continuation"
            self.close()
        if record == "cudagraph_skipped":
            self._skipped, self._reason = segment, segment.fields["reason"]
        elif record in _EVENTS:
            self._row(segment, segment.fields.get("reason") or segment.text)
        return None

    def close(self) -> None:
        """See Assembler."""
        skipped, self._skipped = self._skipped, None
        if skipped is not None:
            self._row(skipped, self._reason)

    def _row(self, segment: Segment, reason: str) -> None:
        fields = segment.fields
        self._sink.row(
            "cudagraphs",
            segment,
            event=_EVENTS[segment.record],
            reason=reason.strip(),
            function=int(fields["function"]) if "function" in fields else None,
            count=int(fields["count"]) if "count" in fields else None,
        )
