"""Inductor's scheduler to rows of `kernels` (nodes before and after fusion) and `fusion_rounds`."""

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

FAMILY = "schedule"
STAGES = {"schedule_before": "pre-fusion", "schedule_after": "post-fusion"}


class Schedules:
    """Follows the scheduler's messages of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head: Segment | None = None
        self._nodes: Nodes | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the message here, None where none is open."""
        return self._head

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if record in STAGES:
            self._head, self._nodes = segment, Nodes(self._sink, STAGES[record], compile_id_of(segment))
            return None
        if record == "fusion_round":
            fields = segment.fields
            self._sink.row(
                "fusion_rounds",
                segment,
                compile_id=compile_id_of(segment),
                round=int(fields["round"]),
                nodes_before=int(fields["before"]),
                nodes_after=int(fields["after"]),
            )
        if self._head is None:
            return None
        match = segment.match
        if not segment.header:
            match = shared().one(FAMILY, segment.text)
        if segment.header and not is_same_message(segment, self._head):
            self.close()
            return None
        if not segment.header and match is None and segment.text.strip() and not segment.text.startswith((" ", "]")):
            self.close()
            return None
        if self._nodes is not None:
            self._nodes.line(segment, match)
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        self._head = self._nodes = None


class Nodes:
    """The nodes of one dump, a log's message or a file, in order."""

    def __init__(self, sink: Sink, stage: str, compile_id: str | None) -> None:
        self._sink, self._stage, self._compile_id = sink, stage, compile_id
        self._nth = 0

    def line(self, segment: Segment, match: Match | None) -> None:
        """Take a line of the dump."""
        if match is None or match.record != "schedule_node":
            return
        fields = match.fields
        inner = [part.strip() for part in fields["inner"].split(",")]
        self._sink.row(
            "kernels",
            segment,
            compile_id=self._compile_id,
            nth=self._nth,
            name=fields["name"],
            language=self._stage,
            type=fields["type"],
            fused=len(inner) if fields["type"].startswith("Fused") else 1,
            ops=fields["inner"] if not fields["type"].startswith("Fused") else None,
        )
        self._nth += 1
