"""Guards of compiled frames to rows of `guards`: one a leaf of the tree, or a line of the list of torch up to 2.3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.grammar.texts import Coded, Codes
from replay.parse.guard_expressions import Expression, Tensor, parse_expression
from replay.parse.guard_reasons import parse_reason
from replay.parse.model import Column, Passing, Segment, Sink, Value
from replay.parse.places import is_installed
from replay.parse.torch_lines import compile_id_of, is_headed_alike, is_same_message, record_of

_FAMILY = "guard_tree"
_HEADS = {"guard_head", "guard_tree", "guard_function"}
_TREES = {"guard_tree", "guard_function"}
"""Heads below which a line of no form of its own is no guard."""
_ALONE = {"guard_latency"}
DEEPER = "| "
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


NOTHING, MANAGER, GUARD = range(3)
"""What a line of a tree is."""


class GuardLines(NamedTuple):
    """Lines of one tree, without their headers, by columns: what each is, and how deep it stands. `what` is the type of
    a guard, or the source of a manager; `texts` the code of the guard, or how the tree comes to the manager.
    """

    numbers: npt.NDArray[np.int64]
    ts: npt.NDArray[np.float64]
    roles: npt.NDArray[np.int8]
    depths: Codes
    what: Coded
    texts: Coded


_Arrays = dict[str, npt.NDArray[Any]]


class GuardRows:
    """Rows of `guards`, gathered over several trees. Each compile repeats most guards of those before it."""

    def __init__(self) -> None:
        self._told: list[tuple[Value, ...]] = []
        self._numbers: dict[int, int] = {}
        self._codes: list[int] = []
        self._parts: list[tuple[_Arrays, int, str | None]] = []

    def add(
        self, columns: dict[str, npt.NDArray[Any]], told: Sequence[tuple[Value, ...]], compile_id: str | None
    ) -> None:
        """Add the rows of one tree: `told` are their columns _TOLD."""
        for row in told:
            number = self._numbers.get(id(row))
            if number is None:
                number = self._numbers[id(row)] = len(self._told)
                self._told.append(row)  # kept, so that no other gets its id
            self._codes.append(number)
        self._parts.append((columns, len(told), compile_id))

    def columns(self) -> tuple[int, dict[str, Column]]:
        """Return the number of rows, and their columns."""
        if not self._codes:
            return 0, {}
        sizes = [size for _, size, _ in self._parts]
        names = self._parts[0][0]
        columns: dict[str, Column] = {
            name: np.concatenate([part[name] for part, _, _ in self._parts]) for name in names
        }
        ids = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        columns["compile_id"] = Coded(ids, [compile_id for _, _, compile_id in self._parts])
        codes = np.array(self._codes, np.int32)
        columns |= {
            name: Coded(codes, values) for name, values in zip(_TOLD, zip(*self._told, strict=True), strict=True)
        }
        return len(codes), columns


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
        """Whether a line belongs to the tree that is open."""
        return self._message is not None and self._message.is_tree and is_headed_alike(self._message.head, passing)

    def many(self, lines: GuardLines, rows: GuardRows, writer_id: int) -> None:
        """Take lines of the tree that is open, in order; their rows go to `rows`."""
        message = self._message
        if message is None:
            return
        levels, whats, texts = message.levels, lines.what.values, lines.texts.values
        told: dict[tuple[int, int, _Level | None], tuple[Value, ...]] = {}
        found: list[tuple[Value, ...]] = []
        told_by = (lines.roles, lines.depths, lines.what.codes, lines.texts.codes)
        for role, depth, what, text in zip(*(column.tolist() for column in told_by), strict=True):
            if role == NOTHING:
                continue
            top = len(levels)
            while top and levels[top - 1].depth >= depth:
                top -= 1
            if role == MANAGER:
                del levels[top:]
                levels.append(_Level(depth, whats[what], texts[text]))
                continue
            above = levels[top - 1] if top else None
            row = told.get((what, text, above))
            if row is None:
                source, accessor = (above.source, above.accessor) if above else (None, None)
                row = told[what, text, above] = _told(whats[what], texts[text] or "", source, accessor)
            found.append(row)
        if found:
            where = np.flatnonzero(lines.roles == GUARD)
            ts = lines.ts[where]
            nth = np.arange(message.nth, message.nth + len(found))
            message.nth += len(found)
            common: _Arrays = {
                "line_no": lines.numbers[where],
                "t_lo": ts,
                "t_hi": ts,
                "nth": nth,
                "depth": lines.depths[where],
            }
            writers = np.full(len(found), writer_id, np.int32)
            rows.add(common | {"writer_id": writers}, found, compile_id_of(message.head))

    def close(self) -> None:
        """See Assembler."""
        message, self._message = self._message, None
        if message is not None:
            self._end_block(message)

    def _line(self, message: _Message, segment: Segment, match: Match | None) -> None:
        record = match.record if match is not None else ""
        fields = match.fields if match is not None else {}
        depth = len(fields.get("depth", "")) // len(DEEPER)
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
