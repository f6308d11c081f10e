"""All that tells of failures, for one writer: hands each segment to the part that reads it.

One assembler instead of ten: most lines of a log tell of no failure, and each costs one look here. A block that is open
(a traceback, a table, a crash's stack) is asked first, so that a quoted source line is not read as an error.
"""

from replay.grammar.executor import shared
from replay.parse.blocks.c10d import C10d
from replay.parse.blocks.checks import Checks
from replay.parse.blocks.cpp_message import CppMessage
from replay.parse.blocks.crashes import Crashes
from replay.parse.blocks.device import Device
from replay.parse.blocks.failing import TEXT_CUT, Part, Saying, level
from replay.parse.blocks.gloo import Gloo
from replay.parse.blocks.launchers import Launchers
from replay.parse.blocks.systems import Kernel, Schedulers
from replay.parse.blocks.tracebacks import Tracebacks
from replay.parse.blocks.versions import Versions
from replay.parse.model import Passing, Segment, Sink

_INNER = ("c10d", "device", "checks", "gloo", "launcher", "nccl_last_error")
"""Families of texts that stand inside other texts."""
_STEPS = {"step", "bar", "record"}
_LOUD = {"warning", "error", "critical"}


class Failures:
    """Rows of everything that went wrong, as this writer told it."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._launchers = Launchers(sink)
        self._crashes = Crashes(sink, self.tell)
        self._tracebacks = Tracebacks(sink, self.tell)
        self._message = CppMessage(sink, self.tell)
        c10d = C10d(sink, self.tell)
        self._parts: dict[str, Part] = {
            "c10d": c10d,
            "nccl_last_error": c10d,
            "gloo": Gloo(sink, self.tell),
            "checks": Checks(sink),
            "device": Device(sink),
            "launcher": self._launchers,
            "scheduler": Schedulers(sink),
            "kernel": Kernel(sink),
            "versions": Versions(sink),
        }

    def feed(self, segment: Segment) -> str | None:
        """Take the next segment; "continuation" if it belongs to a block that is open."""
        for block in (self._launchers, self._tracebacks, self._crashes, self._message):
            if block.is_open and (verdict := block.more(segment)):
                return verdict
        match = segment.match
        if match is None:
            self._unknown(segment)
            return None
        part = self._parts.get(match.family)
        if part is not None:
            part.take(Saying(segment, match, segment.text))
            if segment.header == "c10":
                self._message.begin(segment, match.record)
        elif match.family == "python":
            self._python(Saying(segment, match, segment.text))
        elif match.record in _STEPS and match.family == "trainer":
            self._tracebacks.lives(segment)
        elif segment.header == "torch":
            self._tracebacks.note(segment)
        return None

    def tell(self, segment: Segment, text: str) -> bool:
        """Read a text that stands inside the segment; whether any family knew it."""
        for family in _INNER:
            match = shared().one(family, text)
            if match is not None:
                self._parts[family].take(Saying(segment, match, text))
                return True
        return False

    def minds(self, passing: Passing) -> bool:
        """See Assembler. A traceback and a message of c10d go on in lines without a header only."""
        return self._crashes.is_open or self._launchers.is_open

    def close(self) -> None:
        """The writer's lines are over."""
        self._tracebacks.close()
        self._crashes.close()
        self._message.close()
        for part in self._parts.values():
            part.close()

    def _python(self, saying: Saying) -> None:
        if self._crashes.begin(saying):
            return
        if saying.match.record == "warned":
            fields = saying.fields
            self._log(
                saying.segment,
                "python",
                "warning",
                text=f"{fields.get('kind', '')}Warning: {fields['message']}",
                logger=f"{fields['file']}:{fields['line']}",
            )
            return
        self._tracebacks.begin(saying.segment, saying.match)

    def _unknown(self, segment: Segment) -> None:
        """A loud line of c10d or of torchrun that no production knows is a message all the same."""
        if segment.header == "torch":
            self._tracebacks.note(segment)
            path = next((segment.head[n] for n in ("path", "logger", "torch_logger") if n in segment.head), "")
            if "distributed" not in path:
                return
            source = "launcher"
        elif segment.header == "c10":
            self._message.begin(segment, "")
            source = "c10d"
        else:
            return
        loud = level(segment)
        if loud in _LOUD and segment.text.strip():
            place = segment.head.get("path") or segment.head.get("cpp_file")
            self._log(segment, source, loud, text=segment.text, logger=place)

    def _log(self, segment: Segment, source: str, loud: str, *, text: str, logger: str | None) -> None:
        self._sink.row("log_messages", segment, source=source, level=loud, logger=logger, text=text[:TEXT_CUT])
