"""Tracebacks and crashes: blocks of lines that end in an exception's text, or that a dying process leaves.

A traceback is held until its exception's line; what follows that line and belongs to the message is added to it; the
row is written when it is known whether the process lived on. In a file that several unlabelled processes write, lines
of tracebacks are mixed, even within a line: then the exceptions' own lines are what is kept.
"""

from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.grammar.numbers import integer
from replay.parse.blocks.exceptions import Raised, category, frame_of, write
from replay.parse.blocks.failing import TEXT_CUT, Tell, is_nameless
from replay.parse.blocks.figures import read
from replay.parse.model import Segment, Sink
from replay.parse.places import Frame, is_installed

_FOREIGN = 30
"""Lines that belong to nobody's block before an open one is given up."""
_EXTRA = 12
"""Further lines of a message that are kept."""
_NEAR = 4
"""Lines behind a message of torch's within which a traceback belongs to it."""
_LIVES_ON = 3
"""Steps by which a file of unlabelled processes must go on before its exception counts as survived."""
_OTHERS = {"launcher", "scheduler", "kernel"}
_DEBRIS = " ^~\t"


@dataclass(slots=True)
class _Open:
    """Tracebacks whose exception has not come: several in a file of mixed processes."""

    waiting: int
    is_survived: bool
    is_logged: bool
    frames: list[Frame] = field(default_factory=list)
    foreign: int = 0


class Tracebacks:
    """Rows of exceptions from python.lark and traceback.lark."""

    def __init__(self, sink: Sink, tell: Tell) -> None:
        self._sink, self._tell = sink, tell
        self._open: _Open | None = None
        self._raised: Raised | None = None
        self._chain: list[Raised] = []
        self._held: list[Raised] = []
        self._survives = False
        self._is_text_next = False
        self._is_blank = False
        self._child: int | None = None
        self._logged_at = -_NEAR
        self._last_step: Segment | None = None

    @property
    def is_open(self) -> bool:
        """Whether a following line may belong to a block here."""
        return self._open is not None or self._raised is not None

    # ---- what begins a block

    def begin(self, segment: Segment, match: Match) -> None:
        """Take a line that python.lark took."""
        record = match.record
        if record.startswith("traceback"):
            self._traceback(segment)
        elif record in {"ignored", "in_thread"}:
            self._survives = True
        elif record == "raised_child":
            self._raise(segment, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "")
        elif record == "raised_dynamo":
            self._raise(segment, "torch._dynamo.exc." + match.fields["name"], match.fields["message"])
        elif record.startswith("raised_"):
            suffix = "Error" if record == "raised_error" else "Exception"
            self._raise(segment, match.fields["stem"] + suffix, match.fields["message"])

    def note(self, segment: Segment) -> None:
        """Watch for lines of torch that announce a traceback which they survive."""
        if "CONVERT" in segment.text or "raph break" in segment.text:
            self._logged_at = segment.line.line_no

    def lives(self, segment: Segment) -> None:
        """The writer goes on with a step: what it raised before did not end it."""
        if not self._held and self._raised is None:
            self._last_step = segment
            return
        if is_nameless(segment):
            before = None if self._last_step is None else _step(self._last_step)
            now = _step(segment)
            if before is None:
                self._last_step = segment
            if now is None or before is None or now < before + _LIVES_ON:
                return
        self._finish()
        for found in self._held:
            found.is_uncaught = False
        self._flush()

    # ---- what follows

    def more(self, segment: Segment) -> str | None:
        """Take a line while a block is open; "continuation" if it belongs to it."""
        if segment.header not in {"", "app"}:
            return None
        text = segment.text
        match = shared().one("traceback", text)
        is_grouped = match is not None and match.record == "grouped"
        if match is not None and is_grouped:
            text = match.fields["body"]
            match = shared().one("traceback", text)
        if self._open is not None:
            return self._in_traceback(segment, text, match)
        if is_grouped and match is not None and match.record == "exception":
            self._exception(segment, match)  # of a group, without a traceback of its own
            return "continuation"
        return self._behind_exception(segment, text, match)

    def _in_traceback(self, segment: Segment, text: str, match: Match | None) -> str | None:
        opened = self._open
        if opened is None:
            return None
        if segment.match is not None and segment.match.family in _OTHERS:
            return None
        record = match.record if match else ""
        if match and record == "frame":
            opened.frames.append(frame_of(match))
            return "continuation"
        if match and record == "exception":
            self._exception(segment, match)
            return "continuation"
        if record in {"nested", "original"} or (segment.match and segment.match.record.startswith("traceback")):
            self._again(opened, segment)
            return "continuation"
        if match is not None or not text.strip(_DEBRIS) or text[0] in _DEBRIS:
            return "continuation"
        opened.foreign += 1
        if opened.foreign > _FOREIGN:
            self._open = None
        return None

    def _again(self, opened: _Open, segment: Segment) -> None:
        """A traceback begins before the last one has its exception: of another process, or the last one was cut."""
        if is_nameless(segment):
            opened.waiting += 1
        else:
            opened.waiting = 1
            opened.frames.clear()

    def _behind_exception(self, segment: Segment, text: str, match: Match | None) -> str | None:
        raised = self._raised
        if raised is None:
            return None
        record = match.record if match else ""
        if record == "child":
            self._child = integer(match.fields["rank"]) if match and is_nameless(segment) else None
            return "continuation"
        if self._is_text_next and text.strip():
            self._is_text_next = False
            return self._add(raised, segment, text.strip(), is_told=True)
        if not text.strip() or record in {"blank", "rule", "box_end"}:
            self._is_blank = True
            return "continuation"
        expects_more = not raised.message or raised.whole.endswith(":")
        if record == "chained":
            self._chain.append(raised)
            self._raised = None
            self._open = _Open(0, self._survives, raised.segment.header == "app")
            return "continuation"
        if record == "nested":
            self._traceback(segment)
            return "continuation"
        if record == "original":
            raised.is_cause = False
            self._chain.clear()
            self._finish()
            self._open = _Open(1, self._survives, is_logged=False)
            return "continuation"
        if match and record == "frame":
            frame = frame_of(match)
            if not is_installed(frame.file):
                raised.users = frame
            return self._goes_on(raised, segment)
        if match and record in {"told", "last_error"}:
            self._is_text_next = record == "last_error" and "text" not in match.fields
            return self._add(raised, segment, text.strip(), is_told=True)
        if match and record == "exception" and expects_more and raised.type != "ChildFailedError":
            return self._add(raised, segment, text, is_told=True)
        if record in {"advice", "stack", "from_user"}:
            return self._goes_on(raised, segment)
        if text[0] in " \t":
            return self._goes_on(raised, segment) if self._is_blank else self._add(raised, segment, text.strip())
        if expects_more and raised.message and not self._is_blank and segment.match is None:
            return self._add(raised, segment, text)
        self._finish()
        return None

    def _goes_on(self, raised: Raised, segment: Segment) -> str:
        raised.line_end = segment.line.line_no
        return "continuation"

    def _add(self, raised: Raised, segment: Segment, text: str, *, is_told: bool = False) -> str:
        if len(raised.extra) < _EXTRA:
            raised.extra.append(text[:TEXT_CUT])
        if is_told:
            self._tell(segment, _without_type(text))
        return self._goes_on(raised, segment)

    # ---- states

    def _traceback(self, segment: Segment) -> None:
        self._finish()
        is_logged = segment.line.line_no - self._logged_at < _NEAR or _has_level(segment)
        if self._open is not None:
            self._again(self._open, segment)
        else:
            self._open = _Open(1, self._survives, is_logged)

    def _exception(self, segment: Segment, match: Match) -> None:
        self._raise(segment, match.fields.get("type") or match.fields["type_alone"], match.fields.get("message", ""))

    def _raise(self, segment: Segment, qualified: str, message: str) -> None:
        opened = self._open
        if self._raised is not None:
            self._finish()
        is_torn = message.lstrip().startswith('File "')
        number = segment.line.line_no
        raised = Raised(
            segment,
            qualified,
            "" if is_torn else message.strip(),
            opened.frames if opened else [],
            is_uncaught=not (opened.is_survived or opened.is_logged) if opened else _is_end(segment, qualified),
            line_end=number,
            complete=not is_torn,
            child=self._child,
        )
        self._child = None
        if opened:
            opened.waiting -= 1
        if opened and opened.waiting > 0:
            opened.foreign = 0
            raised.frames = list(opened.frames)
            self._hold(raised)
        else:
            self._open, self._raised, self._is_blank = None, raised, False
        if raised.type.endswith("ExceptionGroup"):
            raised.is_cause = False
        if not raised.message or not self._tell(segment, raised.message):
            self._tell(segment, raised.type)

    def _finish(self) -> None:
        """The open exception's message is over."""
        if self._raised is not None:
            raised, self._raised = self._raised, None
            self._survives = self._is_text_next = False
            if self._chain:
                self._chain.append(raised)
                cause = next((c for c in self._chain if category(c) != "victim"), self._chain[0])
                for found in self._chain:
                    found.is_cause = found is cause
                    self._hold(found)
                self._chain.clear()
            else:
                self._hold(raised)

    def _hold(self, found: Raised) -> None:
        self._held.append(found)
        if len(self._held) > _FOREIGN:
            write(self._sink, self._held.pop(0))

    def _flush(self) -> None:
        for found in self._held:
            write(self._sink, found)
        self._held.clear()

    def close(self) -> None:
        """The writer's lines are over: nothing came behind its exceptions."""
        self._open = None
        self._finish()
        for found in self._chain:
            self._hold(found)
        self._chain.clear()
        self._flush()


def _step(segment: Segment) -> int | None:
    """The step that a trainer's line names."""
    fields = segment.fields
    return integer(fields["n"]) if "n" in fields else read(shared(), segment.text).step


def _is_end(segment: Segment, qualified: str) -> bool:
    """Whether an exception's line without a traceback is what Python prints at the end: programs print such lines, too,
    but seldom with the module, and then go on.
    """
    return not _has_level(segment) and ("." in qualified or segment.identity.rank is not None)


def _has_level(segment: Segment) -> bool:
    """Whether a logger wrote the line: it names a level."""
    return segment.header == "app" and "level" in segment.head


def _without_type(text: str) -> str:
    """The message of a line that has an exception's type before it."""
    match = shared().one("traceback", text)
    return match.fields["message"] if match and match.record == "exception" and "message" in match.fields else text
