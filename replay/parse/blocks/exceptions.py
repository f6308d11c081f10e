"""An exception as a row: its type, message and category, and which of its frames is the user's own."""

from dataclasses import dataclass, field

from replay.grammar.model import Match
from replay.grammar.numbers import integer
from replay.parse.blocks.failing import TEXT_CUT
from replay.parse.failure_kinds import exception_category
from replay.parse.model import Segment, Sink, Value
from replay.parse.places import Frame, users_frame


@dataclass(slots=True)
class Raised:
    """An exception's line and what belongs to it."""

    segment: Segment
    qualified: str
    message: str
    frames: list[Frame]
    is_uncaught: bool
    line_end: int
    complete: bool = True
    is_cause: bool = True
    child: int | None = None
    extra: list[str] = field(default_factory=list)
    users: Frame | None = None

    @property
    def type(self) -> str:
        """The type without its module."""
        return self.qualified.rpartition(".")[2]

    @property
    def whole(self) -> str:
        """The message, its lines joined by blanks."""
        return " ".join([self.message, *self.extra]).strip()


def category(found: Raised) -> str:
    """Return what kind of failure it is; "user" where the user's own code raised it and nothing more is known."""
    last = found.frames[-1] if found.frames else None
    is_users = last is not None and last == (found.users or _users(found))
    kind = exception_category(found.type, found.whole, is_users)
    if kind in ("user", "other") and any(map(_calls_backend, found.frames)):
        return "backend-compile"
    return kind


def _users(found: Raised) -> Frame | None:
    return users_frame(f for f in found.frames if not _is_script(f.file))


def _calls_backend(frame: Frame) -> bool:
    """Whether this is where torch hands a graph to the backend: what is raised below it, the backend raised."""
    return frame.fn.endswith("call_user_compiler") and "torch/_dynamo/" in frame.file


def write(sink: Sink, found: Raised, **columns: Value) -> None:
    """Write the row of an exception; `columns` override common ones."""
    last = found.frames[-1] if found.frames else None
    user = found.users or _users(found)
    message = found.whole
    row: dict[str, Value] = {
        "complete": found.complete and found.segment.line.whole and not found.segment.torn,
        "type": found.type,
        "qualified": found.qualified,
        "message": message[:TEXT_CUT] or None,
        "category": category(found),
        "is_uncaught": found.is_uncaught,
        "is_cause": found.is_cause,
        "user_file": user.file if user else None,
        "user_line": user.line if user else None,
        "user_fn": user.fn if user else None,
        "last_file": last.file if last else None,
        "last_line": last.line if last else None,
        "last_fn": last.fn if last else None,
        "frames": len(found.frames),
        "line_end": found.line_end,
    }
    if found.child is not None:
        row["rank"] = found.child
    sink.row("exceptions", found.segment, **row | columns)


def _is_script(path: str) -> bool:
    """Whether a path is an installed command (bin/torchrun), which is nobody's own code."""
    return "/bin/" in path and not path.endswith(".py")


def frame_of(match: Match) -> Frame:
    """Return the frame of a line that traceback.lark took as one."""
    return Frame(match.fields["file"].strip(), integer(match.fields["line"]) or 0, match.fields.get("fn", "").strip())
