"""Files of torch_compile_debug trees: the graphs and the code that inductor wrote, and the messages of dynamo.

A file says nothing of time or of its compile id; its folder says which graph it is of, and the process.
"""

from collections.abc import Iterable, Sequence

from replay.grammar.executor import shared
from replay.parse.blocks.graphs import Graph, graph_rows
from replay.parse.blocks.schedules import FAMILY, Nodes
from replay.parse.blocks.torch_compiler import TorchCompiler
from replay.parse.graph_text import read_graph
from replay.parse.model import Counts, LineSink, Segment
from replay.sources.model import Hints, Line, SourceFile

_KINDS = {"fx_graph_transformed.py": "post_grad", "output_code.py": "output_code"}
_READABLE = "fx_graph_readable.py"
_STAGES = {"ir_pre_fusion.txt": "pre-fusion", "ir_post_fusion.txt": "post-fusion"}


def read_compile_debug(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, hints: Hints) -> Counts:
    """Read a file of kind "compile-debug"; see replay.parse.pipeline.parse_file."""
    folders = file.path.rsplit("/", 2)
    match = shared().one("debug_tree", "/".join(folders[-2:]))
    if match is not None and match.record == "dynamo_log":
        return _messages(file, batches, sink)
    fields = match.fields if match is not None else {}
    name = fields.get("file", "")
    if name in _STAGES:
        return _nodes(file, batches, sink, _STAGES[name])
    kind = fields.get("direction", "inference") if name == _READABLE else _KINDS.get(name)
    return _graph(file, batches, sink, kind, fields.get("model"))


def _graph(
    file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, kind: str | None, name: str | None
) -> Counts:
    """One graph a file; files that hold none of interest are only counted."""
    counts = Counts()
    texts: list[str] = []
    first: Segment | None = None
    last = 0
    for batch in batches:
        for line in batch:
            writer = sink.writer(file, line.identity)
            first = first or Segment(line, "torch", {}, line.text, line.identity, None, writer_id=writer)
            sink.line(line, writer, "parsed" if first.line is line else "continuation", "compile_debug", None)
            counts.lines += 1
            last = line.line_no
            if kind is not None:
                texts.append(line.text)
    counts.parsed = min(counts.lines, 1)
    counts.continuation = counts.lines - counts.parsed
    counts.forms = {"compile_debug": counts.lines}
    text = read_graph(tuple(texts), is_code=kind == "output_code")
    if first is not None and kind is not None and not text.is_empty:
        graph_rows(sink, first, Graph(kind, name, text), last)
    return counts


def _nodes(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, stage: str) -> Counts:
    """The scheduler's nodes: one a block of lines."""
    counts, nodes = Counts(), Nodes(sink, stage, None)
    for batch in batches:
        for line in batch:
            writer = sink.writer(file, line.identity)
            kind = "continuation" if counts.lines else "parsed"
            sink.line(line, writer, kind, "compile_debug", None)
            counts.lines += 1
            match = shared().one(FAMILY, line.text)
            nodes.line(Segment(line, "torch", {}, line.text, line.identity, None, writer_id=writer), match)
    counts.parsed = min(counts.lines, 1)
    counts.continuation = counts.lines - counts.parsed
    counts.forms = {"compile_debug": counts.lines}
    return counts


def _messages(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink) -> Counts:
    """torchdynamo/debug.log: messages without headers."""
    counts, compiler = Counts(), TorchCompiler(sink)
    for batch in batches:
        for line in batch:
            writer = sink.writer(file, line.identity)
            segment = Segment(line, "", {}, line.text, line.identity, None, writer_id=writer)
            kind = compiler.feed(segment) or "parsed"
            sink.line(line, writer, kind, "dynamo_log", None)
            counts.lines += 1
            setattr(counts, kind, getattr(counts, kind) + 1)
    compiler.close()
    counts.forms = {"dynamo_log": counts.lines}
    return counts
