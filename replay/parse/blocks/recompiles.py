"""Recompile messages to rows of `guard_failures`: one row a reason, newest cache entry first."""

from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.grammar.model import Match
from replay.parse.guard_reasons import Reason, parse_reason, split_reasons
from replay.parse.model import Segment, Sink
from replay.parse.places import Frame, is_installed, users_frame
from replay.parse.torch_lines import compile_id_of, is_same_message, record_of

_FAMILY = "recompiles"
_LAST_QUOTES = str.maketrans("", "", "\\")


@dataclass(slots=True)
class Item:
    """One reason with the stack below it."""

    segment: Segment
    failed_id: str | None
    text: str
    frames: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class Block:
    """A message so far; `head` is None where the file begins behind it."""

    first: Segment
    head: Segment | None
    fn: str | None
    file: str | None
    line: int | None
    compile_id: str | None
    artifact: str | None
    items: list[Item] = field(default_factory=list)
    in_stack: bool = False
    stack_is_guards: bool = False

    @property
    def has_ids(self) -> bool:
        """Whether torch names the entry that failed before each reason (2.5 and later)."""
        return bool(self.items) and self.items[-1].failed_id is not None

    def add(self, segment: Segment, match: Match | None) -> None:
        """Take a line below the head, as recompiles.lark read it."""
        record = match.record if match else ""
        fields = match.fields if match else {}
        if record == "recompile_reason":
            self.items.append(Item(segment, fields["failed_id"], fields.get("reason", "")))
            self.in_stack = False
        elif record in {"recompile_stack", "recompile_python_stack"}:
            self.in_stack, self.stack_is_guards = True, record == "recompile_stack"
        elif record == "recompile_frame" and self.items and self.stack_is_guards:
            self.items[-1].frames.append(Frame(fields["file"], int(fields["line"]), fields["fn"]))
        elif record == "recompile_guard":
            self.in_stack = False
        elif record == "recompile_item" and not self.in_stack:
            if not self.has_ids:
                self.items.append(Item(segment, None, fields.get("reason", "")))
            else:
                self.items[-1].text += " " + fields.get("reason", "").strip()


class Recompiles:
    """Assembles the recompile messages of one writer."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._block: Block | None = None

    @property
    def head(self) -> Segment | None:
        """The line that opened the block here, None where none is open."""
        return self._block.first if self._block is not None else None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if record == "recompile_head":
            self.close()
            self._begin(segment, segment.fields)
            return None
        block = self._block
        if block is None:
            if record == "recompile_reason":
                self._orphan(segment)
            return None
        match = self._match(segment, block)
        if match is None:
            self.close()
            return None
        block.add(segment, match)
        return "continuation"

    def close(self) -> None:
        """See Assembler."""
        block, self._block = self._block, None
        if block is not None:
            write(self._sink, block)

    def _begin(self, segment: Segment, fields: dict[str, str]) -> None:
        self._block = Block(
            first=segment,
            head=segment,
            fn=fields["fn"],
            file=fields["file"],
            line=int(fields["fn_line"]),
            compile_id=compile_id_of(segment),
            artifact=segment.head.get("artifact"),
        )
        if "reason" in fields:
            self._block.items.append(Item(segment, None, fields["reason"].translate(_LAST_QUOTES)))

    def _orphan(self, segment: Segment) -> None:
        """A reason whose head was not seen: the file begins in the middle of the message."""
        self._block = Block(segment, None, None, None, None, compile_id_of(segment), segment.head.get("artifact"))
        self._block.add(segment, segment.match)

    def _match(self, segment: Segment, block: Block) -> Match | None:
        """The match of a line that goes on with the block. Lines of its own header are matched already; bare ones (a
        format without prefixes) are tried here, where it is known that a block is open.
        """
        if segment.header == "torch":
            if not is_same_message(segment, block.first):
                return None
            return segment.match or shared().one(_FAMILY, segment.text) or Match(_FAMILY, "text", "text", {})
        if segment.header:
            return None
        match = shared().one(_FAMILY, segment.text)
        loose = {"recompile_source"} | ({"recompile_item"} if block.has_ids else set())
        return None if match is None or (match.record in loose and not block.in_stack) else match


def write(sink: Sink, block: Block) -> None:
    """Write the rows of a message that is whole."""
    nth = 0
    for item in block.items:
        texts = split_reasons(item.text) if block.artifact == "recompiles_verbose" else [item.text]
        for text in texts:
            _row(sink, block, item, text, nth)
            nth += 1


def _row(sink: Sink, block: Block, item: Item, text: str, nth: int) -> None:
    reason = parse_reason(text)
    user_file, user_line = place_of(reason, item.frames, block.file)
    sink.row(
        "guard_failures",
        item.segment,
        compile_id=block.compile_id,
        failed_id=item.failed_id,
        nth=nth,
        fn=block.fn,
        fn_file=block.file,
        fn_line=block.line,
        is_framework=is_installed(block.file) if block.file else None,
        reason=text.strip(),
        kind=reason.kind,
        source=reason.source,
        expected=reason.expected,
        actual=reason.actual,
        dim=reason.dim,
        detail=reason.detail,
        user_file=user_file,
        user_line=user_line,
        cause=reason.cause,
        compile_line=block.head.line.line_no if block.head else None,
        complete=block.head is not None and item.segment.line.whole,
    )


def place_of(reason: Reason, frames: list[Frame], fn_file: str | None) -> tuple[str | None, int | None]:
    """The user's place of a guard: of the stack below it, else of its comment. Comments hold shortened paths; where
    one is the tail of the function's file, that is meant.
    """
    frame = users_frame(frames)
    if frame is not None:
        return frame.file, frame.line
    file = reason.user_file
    if file is None or is_installed(file):
        return None, None
    if fn_file is not None and fn_file.endswith(file):
        return (None, None) if is_installed(fn_file) else (fn_file, reason.user_line)
    return file, reason.user_line
