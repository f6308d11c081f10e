"""What the parts that read failures share: where a text came from, and how to tell a text of any family.

An exception's message, an abort's "what()" and a log line can hold the same text, and the text can hold another
("thread terminated with exception: ..."). So a part does not read segments but texts, and hands an inner text back to
`tell`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from replay.grammar.model import Match
from replay.grammar.numbers import integer
from replay.parse.model import Segment, Sink, Value

DEFAULT_GROUPS = {None, "0", "default_pg", "default"}
"""Names of the group of all ranks; None where a line names no group."""

TEXT_CUT = 1000
"""Characters of a message that rows keep."""


@dataclass(frozen=True, slots=True)
class Saying:
    """A text that a production took: `segment` is where it stands, `text` the part of it that was matched."""

    segment: Segment
    match: Match
    text: str

    @property
    def fields(self) -> dict[str, str]:
        """Fields of the match."""
        return self.match.fields

    @property
    def message(self) -> str:
        """The text, cut for a row."""
        return self.text[:TEXT_CUT]


Tell = Callable[[Segment, str], bool]
"""Reads a text that stands in a segment; whether any family knew it."""


class OnBehalf:
    """A sink that writes rows of another process than the writer: a table or file tells who."""

    def __init__(self, sink: Sink, columns: dict[str, Value]) -> None:
        self._sink, self._columns = sink, columns

    def row(self, table: str, segment: Segment, **columns: Value) -> None:
        """Add a row with the columns that were told; see Sink.row."""
        self._sink.row(table, segment, **self._columns | columns)


class Part(Protocol):
    """Reads the texts of some families and writes their rows."""

    def take(self, saying: Saying) -> None:
        """Take a text of one of the part's families."""
        ...

    def close(self) -> None:
        """The writer's lines are over."""
        ...


def log(sink: Sink, saying: Saying, source: str, otherwise: str = "error") -> None:
    """Write a row of log_messages, at the header's level or else at `otherwise`."""
    loud = level(saying.segment) or otherwise
    sink.row("log_messages", saying.segment, source=source, level=loud, text=saying.message)


_LEVELS = {
    "V": "debug",
    "D": "debug",
    "I": "info",
    "W": "warning",
    "E": "error",
    "F": "critical",
    "C": "critical",
}


def level(segment: Segment) -> str | None:
    """Return the level that the segment's header names, None where it names none."""
    head = segment.head.get("level") or segment.head.get("level_name")
    if not head:
        return None
    return _LEVELS.get(head) or {"warn": "warning", "fatal": "critical"}.get(head.lower(), head.lower())


def is_nameless(segment: Segment) -> bool:
    """Whether nothing says which process wrote the segment: in a merged file it may be any."""
    who = segment.identity
    return who.rank is None and who.local_rank is None and who.pid is None and who.label is None


def named_rank(segment: Segment, fields: dict[str, str]) -> dict[str, Value]:
    """The global rank where only a text of c10d tells it, as a column.

    It tells the rank inside a group, which is the global one for the default group: up to 2.1 no line has another, and
    few runs have other groups.
    """
    rank = integer(fields.get("group_rank"))
    if rank is None or fields.get("group") not in DEFAULT_GROUPS or not is_nameless(segment):
        return {}
    return {"rank": rank}
