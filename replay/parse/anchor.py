"""A stamp with a year, wherever these logs hold one.

torch's and c10d's stamps have no year, and the modification time of a file that was copied, mailed or unpacked tells
nothing. But collectors and trainers print dates, often into another file of the same run.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from replay.errors import InputError
from replay.grammar.executor import ReExecutor
from replay.parse.clock import Clock
from replay.parse.segments import Segmenter
from replay.sources.model import Hints, Line, SourceFile
from replay.sources.read import read_batches

_FILES = 64
_LINES = 60
"""How far to look: dates come early or not at all."""


def anchor(files: Iterable[SourceFile], hints: Hints, executor: ReExecutor) -> float | None:
    """Return the first stamp with a year [s since 1970, local time of the log], None where there is none."""
    for file in islice((f for f in files if f.kind == "text"), _FILES):
        segmenter = Segmenter(executor, Clock(None, None))
        try:
            head: Sequence[Line] = next(iter(read_batches(file, hints)), [])
        except (OSError, InputError):
            continue
        for line in head[:_LINES]:
            if line.t is not None:
                return line.t
            for segment in segmenter.split(line):
                if "date" in segment.head or "year" in segment.head:
                    return segment.t
    return None
