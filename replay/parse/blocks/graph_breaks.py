"""Graph breaks, logged or fatal, to rows of `graph_breaks`."""

from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.parse.graph_break_kinds import OTHER, kind_of
from replay.parse.model import Segment, Sink, Value
from replay.parse.places import Frame, inside, is_installed, is_wrapper, users_frame
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

_FAMILY = "graph_breaks"
_HINT = "break_item"
_FIRST_FRAME = "break_old_frame"
_STACK_FOLLOWS = {"break_exception", "break_exception_skip", "break_old", _FIRST_FRAME}
_HEADS = {
    _HINT,
    _FIRST_FRAME,
    "break_head",
    "break_duplicate",
    "break_exception",
    "break_exception_skip",
    "break_old",
    "break_old_open",
    "break_fatal",
}
_SKIPS = {"break_exception_skip", "break_failed"}
_CUT = 2000


@dataclass(slots=True)
class _Block:
    """A message so far. `part` is what lines without a form of their own belong to."""

    head: Segment
    is_hint: bool
    is_fatal: bool
    is_duplicate: bool
    part: str
    fatal_type: str | None = None
    file: str | None = None
    line: int | None = None
    gb_id: str | None = None
    skips_frame: bool = False
    reason: list[str] = field(default_factory=list)
    explanation: list[str] = field(default_factory=list)
    context: list[str] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)


class GraphBreaks:
    """Assembles the graph breaks of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._block: _Block | None = None
        self._is_logged = False
        self._hints: list[tuple[Segment, dict[str, Value]]] = []
        """Breaks that were only warned of: rows if the writer logs no breaks, else those breaks are logged as well."""
        self._users: dict[tuple[str | None, int | None], Frame] = {}
        """The user's frame of a break that was shown with its stack: a duplicate has none."""

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._block.head if self._block is not None else None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        if record_of(segment) in _HEADS:
            self._head(segment)
            return None
        block = self._block
        if block is None:
            return None
        match = self._match(segment, block)
        if match is None:
            self._end()
            return None
        if match.record == "break_end":
            self._end()
        else:
            self._take(block, segment, match)
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        self._end()
        if not self._is_logged:
            for segment, columns in self._hints:
                self._sink.row("graph_breaks", segment, **columns)
        self._hints = []

    def _end(self) -> None:
        block, self._block = self._block, None
        if block is None:
            return
        lines = [line for line in block.reason if line.strip()]
        reason = " ".join(line.strip() for line in lines)[:_CUT]
        gb_type = lines[0].strip() if lines else None
        explanation, context = _joined(block.explanation), _joined(block.context)
        kind = kind_of(block.gb_id, gb_type, " ".join([reason, explanation or "", context or ""]))
        if block.fatal_type == "UserError" and kind == OTHER:
            return
        place = block.frames[-1] if block.frames else None
        user = users_frame(inside(block.frames))
        file, line = block.file or (place.file if place else None), block.line or (place.line if place else None)
        user = self._users.setdefault((file, line), user) if user else self._users.get((file, line))
        if user is None and file is not None and line is not None and not is_installed(file):
            user = Frame(file, line, place.fn if place else "")
        columns: dict[str, Value] = {
            "compile_id": compile_id_of(block.head),
            "gb_id": block.gb_id,
            "gb_type": gb_type,
            "reason": reason or None,
            "explanation": explanation,
            "context": context,
            "kind": kind,
            "cause": f"graph-break-{kind}",
            "file": file,
            "line": line,
            "user_file": user.file if user else None,
            "user_line": user.line if user else None,
            "user_fn": (user.fn or None) if user else None,
            "is_framework": user is None or (file is not None and is_wrapper(file)),
            "is_fatal": block.is_fatal,
            "is_duplicate": block.is_duplicate,
            "skips_frame": block.skips_frame,
            "complete": bool(lines) or block.is_duplicate,
        }
        if block.is_hint:
            self._hints.append((block.head, columns))
            return
        self._is_logged = self._is_logged or not block.is_fatal
        self._sink.row("graph_breaks", block.head, **columns)

    def _head(self, segment: Segment) -> None:
        """A new message. Behind a stack (2.3 to 2.5) the exception is not one, but the reason of the message."""
        record, fields, block = segment.record, segment.fields, self._block
        if record == "break_fatal" and block is not None and segment.header == block.head.header == "torch":
            block.reason, block.part = [fields.get("reason", "")], "reason"
            return
        if record == "break_fatal" and segment.header == "torch":
            return
        self._end()
        self._block = block = _Block(
            head=segment,
            is_hint=record == _HINT,
            is_fatal=record == "break_fatal",
            is_duplicate=record == "break_duplicate",
            part="stack" if record in _STACK_FOLLOWS else "reason",
            fatal_type=fields.get("fatal_type"),
            file=fields.get("file"),
            line=int(fields["line"]) if "line" in fields else None,
            skips_frame=record in _SKIPS,
        )
        if record == _FIRST_FRAME:
            block.frames.append(Frame(fields["file"], int(fields["line"]), fields["fn"]))
            block.file = block.line = None
        if block.is_hint:
            block.reason, block.part = [segment.text], "aside"
        elif "reason" in fields:
            block.reason.append(fields["reason"])

    def _match(self, segment: Segment, block: _Block) -> Match | None:
        """The match of a line that goes on with the message; "text" where it has no form of its own."""
        text = Match(_FAMILY, "text", "text", {})
        if segment.header == "torch":
            if not is_same_message(segment, block.head):
                return None
            own = segment.match is not None and segment.match.family == _FAMILY
            return (segment.match if own else shared().one(_FAMILY, segment.text)) or text
        if segment.header:
            return None
        match = shared().one(_FAMILY, segment.text)
        if match is not None and match.record not in {"break_traceback", *_HEADS}:
            return match
        # a bare message ends where its stack does
        ended = block.part == "stack" and not segment.text.startswith(" ")
        return None if ended or match is not None else text

    def _take(self, block: _Block, segment: Segment, match: Match) -> None:
        record, fields = match.record, match.fields
        match record:
            case "break_reason":
                block.reason, block.part = [fields["reason"]], "reason"
            case "break_failed" | "break_wrapped":
                block.reason, block.part = [], "reason"
                block.skips_frame = block.skips_frame or record in _SKIPS
            case "break_old_end":
                block.reason.append(fields.get("reason", ""))
                block.part = "stack"
            case "break_explanation":
                block.explanation, block.part = [fields["text"]], "explanation"
            case "break_context":
                block.context, block.part = [fields.get("text", "")], "context"
            case "break_url":
                block.gb_id, block.part = f"GB{fields['gb_number']}", "aside"
            case "break_stack" | "break_exception":
                block.part = "stack"
            case "break_region":
                block.frames, block.part = [], "stack"
            case "break_hint" | "break_aside" | "break_traceback":
                block.part = "aside"
            case "break_frame" if block.part == "stack":
                block.frames.append(Frame(fields["file"], int(fields["line"]), fields["fn"]))
            case _:
                self._text(block, segment.text)

    def _text(self, block: _Block, text: str) -> None:
        parts = {"reason": block.reason, "explanation": block.explanation, "context": block.context}
        if block.part in parts and len(parts[block.part]) < 40:
            parts[block.part].append(text)


def _joined(lines: list[str]) -> str | None:
    return " ".join(line.strip() for line in lines if line.strip())[:_CUT] or None
