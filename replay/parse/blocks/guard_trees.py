"""Guards of compiled frames. Lines of a tree belong to its head; they are kept as lines, not yet as rows."""

from replay.parse.model import Segment, Sink
from replay.parse.torch_lines import is_same_message, record_of

_HEADS = {"guard_head", "guard_tree"}
_ALONE = {"guard_latency"}


class GuardTrees:
    """Follows the guard messages of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._head: Segment | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the message here, None where none is open."""
        return self._head

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if record in _HEADS:
            self._head = segment
            return None
        head = self._head
        if head is None or record in _ALONE or not is_same_message(segment, head):
            self._head = None
            return None
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        self._head = None
