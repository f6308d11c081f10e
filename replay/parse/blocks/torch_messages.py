"""Warnings and errors of torch that have no table of their own, to rows of `log_messages`: one row a message."""

from dataclasses import dataclass, field

from replay.parse.model import Segment, Sink

_LEVELS = {"W": "warning", "E": "error", "C": "critical", "F": "critical"}
_NAMES = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "critical"}
_SAME = ("level", "level_name", "path", "lineno", "logger", "torch_logger", "trace_id", "artifact", "clock")
_ADVICE = {"perf_hints"}
"""Artifacts whose messages are kept although they are no warnings."""
_OPTIMIZER = ("backends/distributed.py", "backends.distributed")
"""Where the part of torch.compile speaks that splits graphs for DDP."""
_CUT = 1000


@dataclass(slots=True)
class _Message:
    head: Segment
    level: str
    lines: list[str] = field(default_factory=list)


class TorchMessages:
    """Puts together the messages of one writer. All lines of a message have the same header, stamp included."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._message: _Message | None = None

    @property
    def is_open(self) -> bool:
        """Whether a message may go on."""
        return self._message is not None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler. Takes lines of torch that no other part wants."""
        message = self._message
        if message is not None:
            if _is_same(segment, message.head):
                message.lines.append(segment.text)
                return "continuation"
            self.close()
        head = segment.head
        level = _LEVELS.get(head.get("level", "")) or _NAMES.get(head.get("level_name", ""))
        if level is None and (head.get("artifact") in _ADVICE or _is_optimizer(head)):
            level = "info"
        # c10d and torchrun are read where failures are
        place = head.get("path") or head.get("logger") or head.get("torch_logger") or ""
        is_elsewhere = "distributed" in place and not _is_optimizer(head)
        if level is not None and segment.text.strip() and not is_elsewhere:
            self._message = _Message(segment, level, [segment.text])
        return None

    def close(self) -> None:
        """See Assembler."""
        message, self._message = self._message, None
        if message is None:
            return
        head = message.head.head
        self._sink.row(
            "log_messages",
            message.head,
            source="torch",
            level=message.level,
            logger=head.get("path") or head.get("logger") or head.get("torch_logger"),
            text=" ".join(line.strip() for line in message.lines if line.strip())[:_CUT],
        )


def _is_optimizer(head: dict[str, str]) -> bool:
    place = head.get("path") or head.get("logger") or head.get("torch_logger") or ""
    return place.endswith(_OPTIMIZER)


def _is_same(segment: Segment, head: Segment) -> bool:
    return segment.header == head.header and all(segment.head.get(name) == head.head.get(name) for name in _SAME)
