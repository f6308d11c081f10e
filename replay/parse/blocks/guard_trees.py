"""Guards of compiled frames to rows of `guards`: one a leaf of the tree, or a line of the list of torch up to 2.3."""

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.grammar.texts import Coded, Codes, Places, computed
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


MANAGER, GUARD = 1, 2
"""What a line of a tree is."""
_NEVER = -1


class _Taken(NamedTuple):
    """Guards, by their numbers from `begin` to `end`, that are rows: `nth` is the first one's place in its tree."""

    begin: int
    end: int
    nth: int
    writer_id: int
    compile_id: str | None


class GuardLines:
    """Lines of trees of guards among those of a batch, by columns: each stands at its place. Once all are put, those of
    one tree after the other are taken; each compile repeats most guards of those before it.
    """

    def __init__(self, count: int) -> None:
        self._roles = np.zeros(count, np.int8)
        self._depths, self._what, self._texts = (np.zeros(count, np.int32) for _ in range(3))
        self._values: list[str | None] = [None]
        self._taken: list[_Taken] = []

    def put(self, places: Places, role: int, depths: Codes, what: Coded, texts: Coded) -> None:
        """Put lines at their places. `what` is the type of a guard, or the source of a manager; `texts` the code of the
        guard, or how the tree comes to the manager.
        """
        self._roles[places], self._depths[places] = role, depths
        for column, values in ((self._what, what), (self._texts, texts)):
            column[places] = values.codes + len(self._values)
            self._values += values.values

    def take(self, begin: int, end: int, message: "_Message", writer_id: int) -> None:
        """Take the lines from one place to another: they go on with the tree of a message."""
        lo, hi = bisect_left(self._guards, begin), bisect_left(self._guards, end)
        if lo < hi:
            self._taken.append(_Taken(lo, hi, message.nth, writer_id, compile_id_of(message.head)))
            message.nth += hi - lo
            for n in (lo + np.flatnonzero(self._above[self._guards[lo:hi]] < begin)).tolist():
                place = self._guards[n]
                above = next((level for level in reversed(message.levels) if level.depth < self._depths[place]), None)
                self._again(n, self._values[self._what[place]], self._values[self._texts[place]], above)
        found: list[_Level] = []
        nth = bisect_left(self._managers, end)
        place = self._managers[nth - 1] if nth else _NEVER
        while place >= begin:
            found.append(self._level(place))
            place = int(self._above[place])
        if found:
            message.levels = [level for level in message.levels if level.depth < found[-1].depth] + found[::-1]

    def columns(self, first_no: int, ts: npt.NDArray[np.float64]) -> tuple[int, dict[str, Column]]:
        """Return the number of rows taken, and their columns: of a batch whose first line has this number, and whose
        lines have these times.
        """
        if not self._taken:
            return 0, {}
        sizes = np.array([taken.end - taken.begin for taken in self._taken])
        chosen = np.concatenate([np.arange(taken.begin, taken.end) for taken in self._taken])
        nths = np.concatenate([np.arange(taken.nth, taken.nth + taken.end - taken.begin) for taken in self._taken])
        places = np.array(self._guards)[chosen]
        told = self._told
        columns: dict[str, Column] = {
            "line_no": places + first_no,
            "t_lo": ts[places],
            "t_hi": ts[places],
            "nth": nths,
            "depth": self._depths[places],
            "writer_id": np.repeat(np.array([taken.writer_id for taken in self._taken], np.int32), sizes),
            "compile_id": Coded(
                np.repeat(np.arange(len(sizes), dtype=np.int32), sizes), [taken.compile_id for taken in self._taken]
            ),
        }
        codes = told.codes[chosen]
        columns |= {
            name: Coded(codes, values) for name, values in zip(_TOLD, zip(*told.values, strict=True), strict=True)
        }
        return len(chosen), columns

    @cached_property
    def _guards(self) -> list[int]:
        places: list[int] = np.flatnonzero(self._roles == GUARD).tolist()
        return places

    @cached_property
    def _managers(self) -> list[int]:
        places: list[int] = np.flatnonzero(self._roles == MANAGER).tolist()
        return places

    @cached_property
    def _above(self) -> Places:
        """Where the manager stands that each line belongs to: the nearest before it that is less deep. Of the first
        lines of a tree that is another tree's, or none.
        """
        above = np.full(len(self._roles), _NEVER)
        managers, lines = np.array(self._managers, np.intp), np.flatnonzero(self._roles)
        depths, of_managers = self._depths[lines], self._depths[managers]
        for depth in np.unique(depths).tolist():
            shallow = np.append(_NEVER, managers[of_managers < depth])
            deep = lines[depths == depth]
            above[deep] = shallow[np.searchsorted(shallow, deep) - 1]
        return above

    @cached_property
    def _told(self) -> Coded:
        """What each guard tells: columns _TOLD."""
        places = np.array(self._guards, np.intp)
        above = self._above[places]
        columns = [(self._what, places), (self._texts, places), (self._what, above), (self._texts, above)]
        told = computed(_told, [Coded(np.where(at < 0, 0, codes[at]), self._values) for codes, at in columns])
        return Coded(told.codes.copy(), list(told.values))

    def _again(self, n: int, guard_type: str | None, code: str | None, above: _Level | None) -> None:
        """Tell a guard again whose manager is not among these lines."""
        source, accessor = (above.source, above.accessor) if above else (None, None)
        self._told.codes[n] = len(self._told.values)
        cast("list[Any]", self._told.values).append(_told(guard_type, code, source, accessor))

    def _level(self, place: int) -> _Level:
        what, text = self._values[self._what[place]], self._values[self._texts[place]]
        return _Level(int(self._depths[place]), what, text)


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

    def many(self, lines: GuardLines, begin: int, end: int, writer_id: int) -> None:
        """Take lines of the tree that is open, in order."""
        if self._message is not None:
            lines.take(begin, end, self._message, writer_id)

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
def _told(guard_type: str | None, code: str | None, source: str | None, accessor: str | None) -> tuple[Value, ...]:
    """What a guard tells by itself and by the manager above it: the columns _TOLD. Each compile repeats most guards."""
    reason = parse_reason(code or "")
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
