"""A stamp with a year, wherever these logs hold one.

torch's and c10d's stamps have no year, and the modification time of a file that was copied, mailed or unpacked tells
nothing. But collectors and trainers print dates, often into another file of the same run. Where no file holds one,
stamps without a day need one all the same, and all files the same one: a stamp's that has a day, else that on which the
first of these files was written.
"""

import time
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
_DAYS = frozenset({"mmdd", "mdd", "month"})
"""Fields of stamps that have a day and no year."""


def anchor(files: Iterable[SourceFile], hints: Hints, executor: ReExecutor) -> float | None:
    """Return the first stamp with a year [s since 1970, local time of the log], None where there is none.

    Where stamps without a day need one and there is none, it is a stamp of a day, or when their file was written.
    """
    with_day: float | None = None
    without: float | None = None
    for file in islice((f for f in files if f.kind == "text"), _FILES):
        written = file.mtime if file.mtime is not None else time.time()
        segmenter = Segmenter(executor, Clock(hints.year, written, written))
        try:
            head: Sequence[Line] = next(iter(read_batches(file, hints)), [])
        except (OSError, InputError):
            continue
        for line in head[:_LINES]:
            if line.t is not None:
                return line.t
            for segment in segmenter.split(line):
                said = segment.head.keys()
                if "date" in said or "year" in said:
                    return segment.t
                if with_day is None and said & _DAYS:
                    with_day = segment.t
                elif without is None and "clock" in said:
                    without = segment.t
    return None if without is None else with_day if with_day is not None else without
