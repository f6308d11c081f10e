"""Readers of files that are not logs of lines, by kind."""

from collections.abc import Callable, Iterable, Sequence

from replay.parse.compile_debug import read_compile_debug
from replay.parse.error_files import read_error_file
from replay.parse.flight_records import read_flight_record
from replay.parse.model import Counts, LineSink
from replay.parse.ras_json import read_ras_json
from replay.parse.trace import read_trace
from replay.sources.model import Hints, Line, SourceFile

Reader = Callable[[SourceFile, Iterable[Sequence[Line]], LineSink, Hints], Counts]

READERS: dict[str, Reader] = {
    "trace": read_trace,
    "compile-debug": read_compile_debug,
    "error-json": read_error_file,
    "flight-recorder": read_flight_record,
    "nccl-ras": read_ras_json,
}
"""Kind of file (files.kind) to what reads it; all other kinds are read line by line."""
