"""Error files of torchelastic (`@record`): one exception as JSON, with the time that the worker failed.

Workers that failed in consequence write one, too.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from replay.grammar.executor import shared
from replay.grammar.numbers import real
from replay.parse.blocks.exceptions import Raised, frame_of, write
from replay.parse.model import Counts, LineSink
from replay.parse.places import Frame
from replay.parse.whole_files import Unreadable, content, count_lines, place, problem
from replay.sources.model import Hints, Line, SourceFile
from replay.sources.stamps import Stamps

_MAX_LINES = 2000


def read_error_file(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, hints: Hints) -> Counts:
    """Read an error file into exceptions; its row stands at line 1."""
    try:
        is_ok = _read(file, sink, hints, json.loads(content(file)))
    except (Unreadable, ValueError, RecursionError) as error:
        problem(file, sink, f"the error file {error}")
        is_ok = False
    return count_lines(file, batches, sink, "error-json", ok=is_ok)


def _read(file: SourceFile, sink: LineSink, hints: Hints, value: Any) -> bool:
    inner = value.get("message") if isinstance(value, dict) else None
    if isinstance(inner, str):
        inner = {"message": inner}
    if not isinstance(inner, dict) or not isinstance(inner.get("message"), str):
        return False
    extra = inner.get("extraInfo")
    extra = extra if isinstance(extra, dict) else {}
    seconds = real(str(extra.get("timestamp")))
    t = None if seconds is None else Stamps(hints.tz, None, None).local(seconds)
    first, *rest = inner["message"].splitlines() or [""]
    match = shared().one("traceback", first)
    is_named = match is not None and match.record == "exception"
    kind = match.fields.get("type") or match.fields.get("type_alone", "") if match and is_named else ""
    message = match.fields.get("message", "") if match and is_named else first
    stack = extra.get("py_callstack")
    found = Raised(
        place(file, sink, t, line_no=1),
        kind or "Exception",
        message.strip(),
        _frames(stack) if isinstance(stack, str) else [],
        is_uncaught=True,
        line_end=1,
        extra=[line.strip() for line in rest[:8]],
    )
    write(sink, found, t_hi=None if t is None else t + 1)  # the stamp is in whole seconds
    return True


def _frames(stack: str) -> list[Frame]:
    """Frames of the last traceback of a chain."""
    frames: list[Frame] = []
    for line in stack.splitlines()[:_MAX_LINES]:
        match = shared().one("traceback", line)
        if match is not None and match.record == "frame":
            frames.append(frame_of(match))
        elif match is not None and match.record == "nested":
            frames = []
    return frames
