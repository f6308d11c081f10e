"""What the assemblers of torch's compiler ask of a segment."""

from replay.parse.model import Passing, Segment

FAMILIES = frozenset(
    {
        "autotune",
        "break_hint",
        "cache",
        "compile",
        "compile_times",
        "cudagraphs",
        "ddp",
        "dynamic",
        "graph_breaks",
        "graphs",
        "guard_tree",
        "limit",
        "recompiles",
        "schedule",
        "torch_bare",
    }
)
"""Grammars of torch's compiler; other grammars may use the same names for their records."""


def record_of(segment: Segment) -> str:
    """Record of a line that a grammar of torch's compiler took, else ""."""
    match = segment.match
    return match.record if match is not None and match.family in FAMILIES else ""


def compile_id_of(segment: Segment) -> str | None:
    """Compile id in the header, without the number of the attempt; None where there is none."""
    trace_id = segment.head.get("trace_id")
    return trace_id.partition("_")[0] if trace_id and trace_id != "-/-" else None


def nth_of(compile_id: str) -> int:
    """How many times the frame was compiled before: 2 of "4/2"; 0 where the id does not tell."""
    last = compile_id.rpartition("/")[2]
    return int(last) if last.isdigit() and "/" in compile_id else 0


def frame_number(compile_id: str) -> int | None:
    """Number of the frame: 4 of "4/2" and of "!0/4/2"."""
    parts = compile_id.split("/")
    return int(parts[-2]) if len(parts) > 1 and parts[-2].isdigit() else None


def is_headed_alike(head: Segment, passing: Passing) -> bool:
    """Whether a line that passes has the header of a message's first line."""
    own = head.head
    return (head.header, own.get("artifact"), own.get("trace_id")) == passing


def is_same_message(segment: Segment, head: Segment) -> bool:
    """Whether a line has the artifact and the compile id of another: torch gives every line of a message its header."""
    return segment.header == head.header and all(
        segment.head.get(name) == head.head.get(name) for name in ("artifact", "trace_id")
    )
