"""What the stages of parsing hand to each other. Grammars know nothing of executors, executors nothing of tables."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from replay.grammar.model import Match
from replay.sources.model import Batch, Identity, Line, SourceFile

Value = str | int | float | bool | None


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


@dataclass(slots=True)
class Reading:
    """How the lines of a batch were read: class, production, writer and time of each; class None: not read yet."""

    kinds: list[str | None]
    forms: list[str | None]
    writers: list[int]
    ts: list[float | None]


class Passing(NamedTuple):
    """Of a line that is read with many at once: its header ("nccl", "torch"); of one of a tree of guards also the
    artifact and the compile id in the header.
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

    def rows(self, table: str, columns: dict[str, Sequence[Value]]) -> None:
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
