"""Crashes: what Python's faulthandler, the C++ runtime and signal handlers leave of a process that a signal ends."""

from replay.grammar.executor import shared
from replay.parse.blocks.exceptions import frame_of
from replay.parse.blocks.failing import TEXT_CUT, Saying, Tell, named_rank
from replay.parse.model import Segment, Sink
from replay.parse.places import Frame, is_installed
from replay.parse.signals import signal_name

_FOREIGN = 30
"""Lines that belong to nobody's block before an open one is given up."""


class Crashes:
    """Rows of crashes from python.lark and traceback.lark: a signal, the abort's text, and where Python was."""

    def __init__(self, sink: Sink, tell: Tell) -> None:
        self._sink, self._tell = sink, tell
        self._saying: Saying | None = None
        self._signal: str | None = None
        self._text = self._what = ""
        self._user: Frame | None = None
        self._is_current = True
        self._line_end = 0
        self._foreign = 0

    @property
    def is_open(self) -> bool:
        """Whether a following line may belong to a crash here."""
        return self._saying is not None

    def begin(self, saying: Saying) -> bool:
        """Take a line that python.lark took; whether it tells a crash."""
        record, fields = saying.match.record, saying.fields
        if record == "what" and self._saying is not None:
            self._what = fields["what"]
            self._tell(saying.segment, self._what)
            self._text = f"{self._text}: {fields['what']}" if self._text else fields["what"]
            self._line_end = saying.segment.line.line_no
            return True
        if record not in _CRASHES:
            return False
        self.close()
        if record in {"mpi_signal_head", "glog", "terminate_again"}:
            return True
        self._saying, self._foreign, self._is_current, self._user = saying, 0, record != "fatal", None
        self._signal = _CRASHES[record] or _signal(fields)
        self._text, self._what = saying.text.strip(), ""
        self._line_end = saying.segment.line.line_no
        return True

    def more(self, segment: Segment) -> str | None:
        """Take a line while a crash is open."""
        match = shared().one("traceback", segment.text) if segment.header in {"", "app"} else None
        if segment.match is not None and segment.match.record in _CRASHES:
            return None
        record = match.record if match else ""
        if match and record == "frame":
            frame = frame_of(match)
            if self._is_current and self._user is None and not is_installed(frame.file):
                self._user = frame
        elif record in {"current_thread", "other_thread"}:
            self._is_current = record == "current_thread"
        elif segment.text.strip() and record not in {"stack", "extensions", "blank"}:
            self._foreign += 1
            if self._foreign > _FOREIGN:
                self.close()
            return None
        self._line_end = segment.line.line_no
        return "continuation"

    def close(self) -> None:
        """The crash is over."""
        if self._saying is None:
            return
        saying, self._saying = self._saying, None
        user = self._user
        found = shared().one("c10d", self._what) if self._what else None
        own = {} if found is None else named_rank(saying.segment, found.fields)
        self._sink.row(
            "crashes",
            saying.segment,
            signal=self._signal,
            text=self._text[:TEXT_CUT],
            user_file=user.file if user else None,
            user_line=user.line if user else None,
            line_end=self._line_end,
            **own,
        )


_CRASHES: dict[str, str | None] = {
    "fatal": None,
    "terminate": "SIGABRT",
    "terminate_again": "SIGABRT",
    "what": "SIGABRT",
    "glibc": "SIGABRT",
    "torch_segfault": "SIGSEGV",
    "glog": None,
    "glog_signal": None,
    "mpi_signal_head": None,
    "mpi_signal": None,
    "ucx_signal": None,
    "c_assert": "SIGABRT",
}


def _signal(fields: dict[str, str]) -> str | None:
    """The signal that a crash's line names; Python aborts itself on a fatal error of its own."""
    if "signal" in fields:
        return signal_name(fields["signal"])
    if "number" in fields:
        return signal_name(fields["number"])
    return signal_name(fields.get("what")) or "SIGABRT"
