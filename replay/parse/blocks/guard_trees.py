"""Guards of compiled frames to rows of `guards`: one a leaf of the tree, or a line of the list of torch up to 2.3."""

from dataclasses import dataclass, field
from typing import NamedTuple

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.parse.guard_expressions import Expression, Tensor, parse_expression
from replay.parse.guard_reasons import parse_reason
from replay.parse.model import Segment, Sink
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
        reason = parse_reason(guard.code)
        parts = parse_expression(reason.code) or _NOTHING
        tensor = parts.tensor or _NO_TENSOR
        is_tensor = parts.tensor is not None or guard.guard_type in _TENSORS
        user = reason.user_file is not None and not is_installed(reason.user_file)
        self._sink.row(
            "guards",
            guard.segment,
            compile_id=compile_id_of(message.head),
            nth=message.nth,
            depth=guard.depth,
            guard_type=guard.guard_type,
            source=(guard.above.source if guard.above else None) or reason.source or parts.source,
            accessor=guard.above.accessor if guard.above else None,
            expression=reason.code or None,
            kind="tensor" if is_tensor else reason.kind,
            expected=reason.expected or parts.expected,
            dim=reason.dim if reason.dim is not None else parts.dim,
            dtype=tensor.dtype,
            shape=tensor.shape,
            stride=tensor.stride,
            requires_grad=tensor.requires_grad,
            dispatch_keys=tensor.dispatch_keys,
            symbols=";".join(parts.symbols) or None,
            user_file=reason.user_file if user else None,
            user_line=reason.user_line if user else None,
            user_fn=reason.user_fn if user else None,
        )
        message.nth += 1
