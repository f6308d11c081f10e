"""The table of compile times that a process prints when its interpreter ends, to rows of `compile_times`."""

from replay.grammar.executor import shared
from replay.grammar.numbers import real
from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import is_same_message, record_of

_FAMILY = "compile_times"


class CompileTimes:
    """Reads the tables of one writer: plain (name, comma, seconds), or of the package tabulate (two columns)."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._head: Segment | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the table here, None where none is open."""
        return self._head

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        if record_of(segment) == "interpreter_exit":
            self._head = segment
            return None
        head = self._head
        if head is None:
            return None
        match = shared().one(_FAMILY, segment.text)
        if match is None or (segment.header and not is_same_message(segment, head)):
            self._head = None
            return None
        if match.record == "compile_time":
            name, seconds = match.fields["name"], match.fields["seconds"]
            self._sink.row("compile_times", segment, name=name, seconds=real(seconds))
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        self._head = None
