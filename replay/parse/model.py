"""What the stages of parsing hand to each other. Grammars know nothing of executors, executors nothing of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from replay.grammar.model import Match
from replay.grammar.texts import Coded, Codes, Numbers, Texts
from replay.sources.model import Batch, Identity, Line, SourceFile

Value = str | int | float | bool | None
Column = Coded | Numbers | Texts | npt.NDArray[Any] | str | int | float | bool | None
"""Values of many rows; a single value is that of each."""


@dataclass(slots=True)
class Segment:
    r"""One message piece: a line (or a part of a torn or `\\r` line) with its header taken off.

    `header` is the form of the header ("" for a bare line), `head` its fields, `text` the payload,
    `match` what the payload families made of it. `writer_id` says who wrote it, `t` when (None: no stamp).
    `column` is where the segment begins in the line's text.
    """

    line: Line
    header: str
    head: dict[str, str]
    text: str
    identity: Identity
    t: float | None
    match: Match | None = None
    writer_id: int = -1
    column: int = 0
    torn: bool = False

    @property
    def record(self) -> str:
        """Record of the payload's match, "" where there is none."""
        return self.match.record if self.match else ""

    @property
    def fields(self) -> dict[str, str]:
        """Fields of the payload's match."""
        return self.match.fields if self.match else {}


class Sink(Protocol):
    """Takes typed rows. The store is one; tests use a list."""

    def row(self, table: str, segment: Segment, **columns: Value) -> None:
        """Add a row to `table`: common columns come from the segment (writer_id, t_lo, t_hi, file_id, line_no,
        complete), the rest is given; columns not given are NULL. Given columns override common ones.

        Raises KeyError if the table has no such column.
        """
        ...


KINDS: tuple[str | None, ...] = (None, "plain", "malformed", "continuation", "parsed")
"""Classes of lines by number; what tells more of a line has the higher one. None: not read yet."""


class Names:
    """Numbers for the few names that a column of many rows is made of; None is 0."""

    def __init__(self) -> None:
        self.names: list[str | None] = [None]
        self._numbers: dict[str | None, int] = {None: 0}

    def number(self, name: str | None) -> int:
        """Return the number of a name."""
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.names)
            self.names.append(name)
        return number


@dataclass(slots=True)
class Reading:
    """How the lines of a batch were read: class (number in KINDS), production (number in `names`), writer and time
    (NaN: not known) of each.
    """

    kinds: npt.NDArray[np.int8]
    forms: Codes
    writers: Codes
    ts: npt.NDArray[np.float64]
    names: Names

    @classmethod
    def empty(cls, count: int, names: Names) -> Reading:
        """No line is read yet; writers are below 0."""
        kinds, forms = np.zeros(count, np.int8), np.zeros(count, np.int32)
        return cls(kinds, forms, np.full(count, -1, np.int32), np.full(count, np.nan), names)


class Passing(NamedTuple):
    """Of a line that is read with many at once: its header ("nccl", "torch"); of one of a long message (a tree of
    guards, a graph) also the artifact and the compile id in the header.
    """

    header: str
    artifact: str | None = None
    trace_id: str | None = None


class LineSink(Sink, Protocol):
    """A sink that also numbers writers and keeps the lines themselves."""

    def writer(self, file: SourceFile, identity: Identity) -> int:
        """Return the number of the writer with this identity in this file."""
        ...

    def line(self, line: Line, writer_id: int, kind: str, form: str | None, t: float | None) -> None:
        """Keep a line: its class ("parsed", ...) and the production that took it."""
        ...

    def lines(self, batch: Batch, read: Reading) -> None:
        """Keep the lines of a batch that are read, in their order."""
        ...

    def rows(self, table: str, count: int, columns: Mapping[str, Column]) -> None:
        """Add rows by columns, common ones included. Columns not given are NULL. Raises KeyError as `row` does."""
        ...


class Assembler(Protocol):
    """Turns the segments of one writer, in order, into rows; keeps the state of open blocks (a traceback, a recompile
    message). One instance a writer and module. It sees every segment of its writer.
    """

    def feed(self, segment: Segment) -> str | None:
        """Take the next segment. Return "continuation" if it belongs to a block that this assembler holds open,
        "parsed" if it took a bare segment as meaningful, else None.
        """
        ...

    def minds(self, passing: Passing) -> bool:
        """Whether a line that is known to tell nothing but to those it is for may matter to a block that is open. Where
        not, it need not be fed.
        """
        ...

    def close(self) -> None:
        """The writer's lines are over: write out open blocks."""
        ...


@dataclass(slots=True)
class Counts:
    """How the lines of one file were classed; their sum is `lines`."""

    lines: int = 0
    parsed: int = 0
    continuation: int = 0
    plain: int = 0
    malformed: int = 0
    forms: dict[str, int] = field(default_factory=dict)
