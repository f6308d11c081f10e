"""Readers of files that are not logs of lines, by kind."""

from collections.abc import Callable, Iterable

from replay.parse.compile_debug import read_compile_debug
from replay.parse.model import Counts, LineSink
from replay.parse.trace import read_trace
from replay.sources.model import Hints, Line, SourceFile

Reader = Callable[[SourceFile, Iterable[list[Line]], LineSink, Hints], Counts]

READERS: dict[str, Reader] = {
    "trace": read_trace,
    "compile-debug": read_compile_debug,
}
"""Kind of file (files.kind) to what reads it; all other kinds are read line by line."""
