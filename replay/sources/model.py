"""What sources hand on: files, and lines that know who wrote them before anybody asks what they mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from replay.grammar.texts import Coded, Mask, Places, Texts

MAX_LINE = 65536
"""Characters of a line that anything behind sources gets to see; the rest is kept by offset only."""

BATCH = 16384
"""Most lines in a batch."""


@dataclass(frozen=True, slots=True)
class Hints:
    """What the user said about the logs that the logs do not say themselves."""

    rank_from: str | None = None
    """Regular expression, searched in a file's path; its first group is the global rank."""
    world_size: int | None = None
    year: int | None = None
    """Year of stamps without one; else the file's modification year."""
    tz: str | None = None
    """IANA zone of stamps without one; stamps with a zone are brought to it (UTC if not given)."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who wrote a line, as far as the line (its wrappers) or its file's path says it. None: not said."""

    rank: int | None = None
    local_rank: int | None = None
    host: str | None = None
    pid: int | None = None
    device: int | None = None
    label: str | None = None
    stream: str | None = None
    rank_guess: int | None = None
    """Number in a label or a file's name that may be the rank; to be used only if nothing better is known."""


@dataclass(frozen=True, slots=True)
class Voted:
    """A wrapper form that the lines of a file voted for. `width`: characters of its number or name with padding (None:
    any); `stems`: its names with the numbers replaced by `#` (empty: any).
    """

    form: str
    width: int | None = None
    stems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wrapping:
    """What launchers put before the lines of one file, as far as it is not plain from each line."""

    voted: tuple[Voted, ...] = ()
    task_is_rank: bool = True
    """The launcher's number of a task is the global rank; false where one task holds several ranks."""
    outer_rank_is_local: bool = False
    """Of two `[rankN]:` the outer counts on one node (torchrun --role rank --tee)."""
    label_is_rank: bool = False
    """The number at the end of a label may be the rank."""
    colours: bool = False
    """Colour codes lost their ESC."""


@dataclass(slots=True)
class SourceFile:
    """One file of the input. `path` is what a report shows: relative to LOGS, with forward slashes."""

    file_id: int
    path: str
    abspath: Path | None
    kind: str
    encoding: str
    size: int
    digest: str
    run_key: str = ""
    attempt: int = 0
    identity: Identity = field(default_factory=Identity)
    wrapper: str = ""
    mtime: float | None = None
    near: float | None = None
    """A stamp with a year in these logs [s since 1970]: stamps without one are of the year that brings them nearest."""
    duplicate_of: int | None = None
    wrapping: Wrapping | None = None
    """How its lines are peeled; None: not looked at yet."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something odd about the input; a row of the table `problems`."""

    kind: str
    text: str
    file_id: int | None = None
    line_no: int | None = None


@dataclass(slots=True)
class Inventory:
    """Everything that was handed over. `root` is the folder that paths are relative to, None for stdin."""

    root: Path | None
    files: list[SourceFile]
    problems: list[Problem]


@dataclass(slots=True)
class Line:
    r"""One physical line (bytes up to `\n`), with its wrappers peeled.

    `raw` is the decoded line (bad UTF-8 replaced, cut at MAX_LINE); `text` is what the program wrote: wrappers and
    ANSI sequences gone, a trailing `\r` gone; inner `\r` are kept (the parser looks at each piece).
    `t` is the stamp of the outermost wrapper that has one, in seconds since 1970.
    """

    file_id: int
    line_no: int
    byte_offset: int
    raw: str
    text: str
    identity: Identity
    t: float | None = None
    whole: bool = True


class Peeled(NamedTuple):
    """A line without its wrappers. `partial`: the container engine said that it goes on in its next record."""

    text: str
    identity: Identity
    t: float | None
    partial: bool = False


class Wraps(NamedTuple):
    """What was peeled off the lines of a batch: who wrote them, their stamps (NaN: none), and which had a wrapper."""

    writers: Coded
    ts: npt.NDArray[np.float64]
    is_wrapped: Mask


@dataclass(slots=True, eq=False)
class Batch(Sequence[Line]):
    """Lines that follow each other in one file, by columns: most lines of a large log are never looked at one by one.

    `offsets` has one more than there are lines: where the next begins. `texts` is `raws` itself, and `wraps` None,
    where no line had anything to peel: all are written by `identity`. `is_plain` says which lines are whole and one
    message of characters that `texts` can hand out many at once.
    """

    file_id: int
    first_no: int
    offsets: npt.NDArray[np.int64]
    raws: Texts
    texts: Texts
    identity: Identity
    whole: Mask
    is_plain: Mask
    wraps: Wraps | None = None

    def cut(self) -> None:
        """Note that the last line is not whole."""
        self.whole[-1] = self.is_plain[-1] = False

    def line(self, at: int) -> Line:
        """Return one line."""
        raw = text = (self.raws[at] or "")[:MAX_LINE]
        who, t = self.identity, None
        if self.wraps is not None:
            text = (self.texts[at] or "")[:MAX_LINE]
            who = self.wraps.writers.values[self.wraps.writers.codes[at]]
            stamp = float(self.wraps.ts[at])
            t = None if isnan(stamp) else stamp
        offset = int(self.offsets[at])
        return Line(self.file_id, self.first_no + at, offset, raw, text, who, t, bool(self.whole[at]))

    def part(self, begin: int, end: int) -> Batch:
        """Return some of the lines."""
        at = slice(begin, end)
        wraps = self.wraps
        if wraps is not None:
            writers = Coded(wraps.writers.codes[at], wraps.writers.values)
            wraps = Wraps(writers, wraps.ts[at], wraps.is_wrapped[at])
        raws = self.raws[at]
        return Batch(
            self.file_id,
            self.first_no + begin,
            self.offsets[begin : end + 1],
            raws,
            raws if self.texts is self.raws else self.texts[at],
            self.identity,
            self.whole[at],
            self.is_plain[at],
            wraps,
        )

    def writers(self, where: Places) -> Coded:
        """Who wrote the lines at these places."""
        if self.wraps is None:
            return Coded(np.zeros(len(where), np.int32), [self.identity])
        return self.wraps.writers.pick(where)

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        """Return a line, or several."""
        if isinstance(at, slice):
            return [self.line(i) for i in range(*at.indices(len(self.raws)))]
        return self.line(at if at >= 0 else at + len(self.raws))

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.raws)

    def __iter__(self) -> Iterator[Line]:
        """Give the lines, in order."""
        return map(self.line, range(len(self.raws)))
