"""Graph texts to rows of `graphs`, `graph_ops` and, of generated code, `kernels`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.parse.graph_text import GraphText, read_graph
from replay.parse.model import Passing, Segment, Sink
from replay.parse.torch_lines import compile_id_of, is_headed_alike, is_same_message, record_of

_CODE = "output_code"
_OF_ARTIFACT = {
    "graph_code": "dynamo",
    "graph_code_verbose": "dynamo",
    "graph": "dynamo",
    "aot_joint_graph": "joint",
    "aot_graphs": "forward",
    "pre_grad_graphs": "pre_grad",
    "post_grad_graphs": "post_grad",
    "ddp_graphs": "ddp",
    "output_code": _CODE,
    "compiled_autograd": "compiled_autograd",
}
"""Artifacts that print graphs, and the kind of graph where its name tells no other."""
_OF_RECORD = {
    "graph_forward": "forward",
    "graph_backward": "backward",
    "graph_joint": "joint",
    "graph_pre_grad": "pre_grad",
    "graph_post_grad": "post_grad",
    "graph_autograd": "compiled_autograd",
}
_HEADS = {"graph_head", "graph_ddp", "graph_output", "graph_cached"}
_ENDS = {"graph_end", "graph_aside"}
MARKS = frozenset({*_HEADS, *_ENDS, *_OF_RECORD, "graph_name"})
"""Records of lines that are not of a graph's own text."""


@dataclass(slots=True)
class Graph:
    """A graph as it was found: what kind, its name without a unique suffix, what its text holds."""

    kind: str
    name: str | None
    text: GraphText
    nth: int = 0


@dataclass(slots=True)
class _Block:
    head: Segment
    last: Segment
    kind: str
    name: str | None
    is_code: bool
    lines: list[str] = field(default_factory=list)


class Graphs:
    """Assembles the graphs that one writer printed."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._block: _Block | None = None
        self._counts: dict[str, int] = {}

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._block.head if self._block is not None else None

    def goes_on(self, passing: Passing) -> bool:
        """Whether a line of a graph's text belongs to the graph that is open."""
        return self._block is not None and is_headed_alike(self._block.head, passing)

    def many(self, last: Segment, texts: Sequence[str]) -> None:
        """Take lines of the text of the graph that is open; `last` is the last of them."""
        if self._block is not None:
            self._block.last = last
            self._block.lines += texts

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        artifact = segment.head.get("artifact")
        if not segment.header and self._block is not None:
            return self._bare(segment, self._block)
        if artifact not in _OF_ARTIFACT:
            self.close()
            return None
        record, block = record_of(segment), self._block
        if record in _HEADS:
            self.close()
            kind = _OF_ARTIFACT[artifact]
            if record == "graph_cached":
                kind = segment.fields["name"].partition(" ")[0].lower()
            self._block = _Block(segment, segment, kind, segment.fields.get("name"), artifact == _CODE)
            return None
        if block is None:
            return None
        if record in _ENDS or not is_same_message(segment, block.head):
            self.close()
            return "continuation" if record == "graph_end" else None
        self._line(block, segment, record, segment.fields)
        return "continuation"

    def _bare(self, segment: Segment, block: _Block) -> str | None:
        """A format without prefixes: lines of a graph are indented, or blank; those of code look like code."""
        match = shared().one("graphs", segment.text)
        is_code = block.is_code and match is not None and match.record.startswith("code_")
        if segment.text.strip() and not segment.text.startswith(" ") and not is_code:
            self.close()
            return None
        self._line(block, segment, match.record if match else "", match.fields if match else {})
        return "continuation"

    def _line(self, block: _Block, segment: Segment, record: str, fields: dict[str, str]) -> None:
        block.last = segment
        if record in _OF_RECORD or record == "graph_name":
            block.kind, block.name = _OF_RECORD.get(record, block.kind), fields["name"]
        else:
            block.lines.append(segment.text)

    def close(self) -> None:
        """See Assembler."""
        block, self._block = self._block, None
        if block is None:
            return
        text = read_graph(tuple(block.lines), is_code=block.is_code)
        if text.is_empty:
            return
        nth = self._counts.get(block.kind, 0)
        self._counts[block.kind] = nth + 1
        graph_rows(self._sink, block.head, Graph(block.kind, block.name, text, nth), block.last.line.line_no)


def graph_rows(sink: Sink, segment: Segment, graph: Graph, line_end: int) -> None:
    """Write a graph, its calls and its kernels; `segment` is the line that the graph begins with."""
    text, collectives = graph.text, graph.text.collectives
    sink.row(
        "graphs",
        segment,
        compile_id=compile_id_of(segment),
        kind=graph.kind,
        name=graph.name,
        nth=graph.nth,
        ops=None if text.is_code else len(text.calls),
        collectives=len(collectives),
        collective_list=";".join(collectives),
        digest=text.digest,
        line_end=line_end,
    )
    for index, call in enumerate(text.calls):
        sink.row(
            "graph_ops",
            segment,
            graph_line=segment.line.line_no,
            nth=index,
            op=call.op,
            dtype=call.dtype,
            shape=call.shape,
            is_collective=call.is_collective,
            user_file=call.file,
            user_line=call.line,
        )
    for index, kernel in enumerate(text.kernels):
        sink.row(
            "kernels",
            segment,
            compile_id=compile_id_of(segment),
            graph_line=segment.line.line_no,
            nth=index,
            name=kernel.name,
            language=kernel.language,
            sources=kernel.sources,
            ops=kernel.ops,
        )
