"""Guards of compiled frames to rows of `guards`: one a leaf of the tree, or a line of the list of torch up to 2.3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.parse.guard_expressions import Expression, Tensor, parse_expression
from replay.parse.guard_reasons import parse_reason
from replay.parse.model import Passing, Segment, Sink, Value
from replay.parse.places import is_installed
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

_FAMILY = "guard_tree"
_HEADS = {"guard_head", "guard_tree", "guard_function"}
_TREES = {"guard_tree", "guard_function"}
"""Heads below which a line of no form of its own is no guard."""
_ALONE = {"guard_latency"}
_DEEPER = "| "
_TENSORS = {"TENSOR_MATCH"}
_NOTHING = Expression()
_NO_TENSOR = Tensor()


class _Level(NamedTuple):
    depth: int
    source: str | None
    accessor: str | None


class _Guard(NamedTuple):
    """A guard as it stands in a line: `above` is the manager that it belongs to."""

    segment: Segment
    guard_type: str | None
    code: str
    above: _Level | None = None
    depth: int | None = None


@dataclass(slots=True)
class _Message:
    """A message so far: where in the tree it stands, or the block of a list (verbose, up to 2.3) that is open."""

    head: Segment
    is_tree: bool = False
    nth: int = 0
    levels: list[_Level] = field(default_factory=list)
    block: Segment | None = None
    source: str | None = None
    guard_type: str | None = None
    code: str | None = None


class GuardLine(NamedTuple):
    """A line of a tree, without its header. `what` is the type of a guard, or the source of a manager; `text` the code
    of the guard, or how the tree comes to the manager.
    """

    line_no: int
    t: float | None
    is_guard: bool
    depth: str | None
    what: str | None
    text: str | None


class GuardTrees:
    """Follows the guard messages of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._message: _Message | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the message here, None where none is open."""
        return self._message.head if self._message is not None else None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record, message = record_of(segment), self._message
        if record in _TREES and message is not None and is_same_message(segment, message.head):
            message.is_tree = True
            return "continuation"
        if record in _HEADS and segment.header:
            self.close()
            self._message = _Message(segment, is_tree=record in _TREES)
            return None
        if message is None or record in _ALONE:
            self.close()
            return None
        match = segment.match
        if not segment.header:  # a format without prefixes
            match = shared().one(_FAMILY, segment.text)
            if match is None and segment.text.strip():
                self.close()
                return None
        elif not is_same_message(segment, message.head):
            self.close()
            return None
        self._line(message, segment, match)
        return "continuation"

    def goes_on(self, passing: Passing) -> bool:
        """Whether a line belongs to the message that is open."""
        head = None if self._message is None else self._message.head
        if head is None or head.header != passing.header:
            return False
        return (head.head.get("artifact"), head.head.get("trace_id")) == (passing.artifact, passing.trace_id)

    def many(self, lines: Sequence[GuardLine]) -> dict[str, list[Value]]:
        """Take lines of the tree that is open, in order; return the columns of their rows."""
        message = self._message
        rows: list[tuple[Value, ...]] = []
        if message is None:
            return {}
        compile_id, levels = compile_id_of(message.head), message.levels
        for line in lines:
            depth = len(line.depth or "") // len(_DEEPER)
            if not line.is_guard:
                message.is_tree = True
                while levels and levels[-1].depth >= depth:
                    levels.pop()
                levels.append(_Level(depth, line.what, line.text))
                continue
            above = next((level for level in reversed(levels) if level.depth < depth), None)
            source, accessor = (above.source, above.accessor) if above else (None, None)
            told = _told(line.what, line.text or "", source, accessor)
            rows.append((line.line_no, line.t, line.t, compile_id, message.nth, depth, *told))
            message.nth += 1
        names = ("line_no", "t_lo", "t_hi", "compile_id", "nth", "depth", *_TOLD)
        return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) if rows else {}

    def close(self) -> None:
        """See Assembler."""
        message, self._message = self._message, None
        if message is not None:
            self._end_block(message)

    def _line(self, message: _Message, segment: Segment, match: Match | None) -> None:
        record = match.record if match is not None else ""
        fields = match.fields if match is not None else {}
        depth = len(fields.get("depth", "")) // len(_DEEPER)
        match record:
            case "guard_tree":
                message.is_tree = True
            case "guard_manager" | "guard_pair":
                message.is_tree = True
                message.levels = [level for level in message.levels if level.depth < depth]
                message.levels.append(_Level(depth, fields.get("source"), fields.get("accessor")))
            case "guard_leaf" if "code" in fields:
                levels = [level for level in message.levels if level.depth < depth]
                above = levels[-1] if levels else None
                self._row(message, _Guard(segment, fields["guard_kind"], fields["code"], above, depth))
            case "guard_block":
                self._end_block(message)
                message.block, message.source = segment, fields.get("source") or None
                message.guard_type, message.code = fields.get("guard_kind"), None
            case "guard_create" if message.block is not None:
                message.guard_type = fields["guard_kind"]
            case "guard_code" if message.block is not None:
                message.code = None if fields["code"] == "None" else fields["code"]
            case "guard_listed":
                self._row(message, _Guard(segment, None, fields["code"]))
            case "" if segment.text.strip() and not message.is_tree and message.block is None:
                self._row(message, _Guard(segment, None, segment.text.strip()))

    def _end_block(self, message: _Message) -> None:
        block, message.block = message.block, None
        if block is not None and (message.source or message.code):
            above = _Level(0, message.source, None)
            self._row(message, _Guard(block, message.guard_type, message.code or "", above))

    def _row(self, message: _Message, guard: _Guard) -> None:
        source, accessor = (guard.above.source, guard.above.accessor) if guard.above else (None, None)
        told = dict(zip(_TOLD, _told(guard.guard_type, guard.code, source, accessor), strict=True))
        compile_id = compile_id_of(message.head)
        self._sink.row("guards", guard.segment, compile_id=compile_id, nth=message.nth, depth=guard.depth, **told)
        message.nth += 1


_TOLD = (
    "guard_type",
    "source",
    "accessor",
    "expression",
    "kind",
    "expected",
    "dim",
    "dtype",
    "shape",
    "stride",
    "requires_grad",
    "dispatch_keys",
    "symbols",
    "user_file",
    "user_line",
    "user_fn",
)


@lru_cache(maxsize=20_000)
def _told(guard_type: str | None, code: str, source: str | None, accessor: str | None) -> tuple[Value, ...]:
    """What a guard tells by itself and by the manager above it: the columns _TOLD. Each compile repeats most guards."""
    reason = parse_reason(code)
    parts = parse_expression(reason.code) or _NOTHING
    tensor = parts.tensor or _NO_TENSOR
    is_tensor = parts.tensor is not None or guard_type in _TENSORS
    user = reason.user_file is not None and not is_installed(reason.user_file)
    return (
        guard_type,
        source or reason.source or parts.source,
        accessor,
        reason.code or None,
        "tensor" if is_tensor else reason.kind,
        reason.expected or parts.expected,
        reason.dim if reason.dim is not None else parts.dim,
        tensor.dtype,
        tensor.shape,
        tensor.stride,
        tensor.requires_grad,
        tensor.dispatch_keys,
        ";".join(parts.symbols) or None,
        reason.user_file if user else None,
        reason.user_line if user else None,
        reason.user_fn if user else None,
    )
