r"""Puts together what several processes tore from each other.

NCCL writes to stdout through libc's buffer. Where stdout is a pipe or a file, a process's output comes in blocks of
4096 bytes that end anywhere in a line, and processes that share the pipe interleave by blocks: one physical line is the
head of a line of one process and the tail of a line of another. Two such pieces can look like a line that nobody wrote,
with a count of one and a communicator of the other. But a tail comes directly before whole lines of its process, and
blocks have a length: a process's run of bytes begins where its header is seen first and ends after a multiple of 4096.
A process's first block can be shorter in the log, by lines that were taken out of it. Where no end of a block leads to
a line that makes sense, the only place is taken that does.

Nothing is changed in a file in which no header stands in mid-line.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from replay.parse.model import Segment
from replay.sources.model import Line

BLOCK = 4096
"""Bytes of libc's buffer, or a divisor of them, for pipes and all usual file systems."""
_UNSEEN = 512
"""Bytes that may be missing from the first block of a process."""
_LONGEST = 1100
"""Characters of a line up to which all places are tried; NCCL cut its own lines at 1 KB for long."""
_SEARCHES = 1000
"""Lines of a file in which all places are tried: a file that others thinned out must not cost minutes."""

Process = tuple[str | None, int | None]
Piece = tuple[Line, list[Segment]]


@dataclass(slots=True)
class _Head:
    """The begin of a line whose rest comes later."""

    line: Line
    text: str
    segment: Segment


class Rejoiner:
    """Takes the lines of one file in order; gives lines with their segments, where needed later.

    `split` makes the segments of a line, `is_known` tells whether a production knows the message of a segment.
    """

    def __init__(self, split: Callable[[Line], list[Segment]], is_known: Callable[[Segment], bool]) -> None:
        self._split, self._is_known = split, is_known
        self._process: Process | None = None
        self._start = 0
        self._met: set[Process] = set()
        self._unseen: list[int] = []
        self._foreign = self._foreign_next = 0
        self._searches = _SEARCHES
        self._heads: dict[Process, _Head] = {}
        self._held: list[Piece] = []

    def push(self, line: Line) -> Iterator[Piece]:
        """Take the next line. A segment whose rest is still to come is left out until then."""
        segments = self._split(line)
        if line.raw != line.text:  # a launcher read it line by line
            yield from self.flush()
            self._process = None
            yield line, segments
            return
        opening = _process(segments[0])
        if self._held and not line.text:  # a warning begins with an empty line
            self._held.append((line, segments))
            return
        is_doubtful = bool(self._heads) and opening not in self._met and opening not in self._heads
        if is_doubtful and opening != self._process:
            opening = None  # nobody's yet: two halves of numbers can make a third
        if self._held and opening != self._process:
            self._resolve(opening)
        yield from self._given()
        self._foreign, self._foreign_next = self._foreign + self._foreign_next, 0
        if opening and opening != self._process:
            self._begin(opening, line.byte_offset)
        segments = self._cut(line, segments)
        if all(segment.header != "nccl" for segment in segments) and line.text:
            self._foreign_next = len(line.raw.encode()) + 1
        if self._heads:
            self._held.append((line, segments))
        else:
            yield line, segments

    @property
    def is_holding(self) -> bool:
        """Whether a line is waited for."""
        return bool(self._heads or self._held)

    def pass_by(self, process: Process | None, offset: int, size: int, *, is_wrapped: bool) -> None:
        """Note lines that follow each other, are whole, and are not to be put together with others: all of one process,
        None: not of NCCL. `offset` is where they begin, `size` their bytes. Nothing is held when they come.
        """
        if is_wrapped:
            self._process = None
            return
        self._foreign, self._foreign_next = self._foreign + self._foreign_next, 0
        if process and process != self._process:
            self._begin(process, offset)
        if process is None:
            self._foreign_next = size

    def flush(self) -> Iterator[Piece]:
        """Give the lines that are held back."""
        if self._held:
            self._resolve(None)
        yield from self._given()

    def _given(self) -> Iterator[Piece]:
        for line, segments in self._held:
            opening = _process(segments[0]) if segments and not segments[0].column else None
            if opening and opening not in self._met and opening != self._process:
                self._begin(opening, line.byte_offset)
            yield line, segments
        self._held.clear()

    def leftovers(self) -> list[Segment]:
        """The heads whose rest never came; their lines were given before."""
        heads = [head.segment for head in self._heads.values()]
        self._heads.clear()
        return heads

    def _begin(self, process: Process, offset: int) -> None:
        if self._process and self._process not in self._met:
            self._met.add(self._process)
            unseen = (self._start - offset) % BLOCK
            if self._process in self._heads and 0 < unseen < _UNSEEN and unseen not in self._unseen:
                self._unseen.insert(0, unseen)
        self._process, self._start, self._foreign, self._foreign_next = process, offset, 0, 0

    def _cut(self, line: Line, segments: list[Segment]) -> list[Segment]:
        """Take out the pieces that the header of another process cut."""
        kept = segments[:1]
        for segment in segments[1:]:
            process = _process(segment)
            if process and process != self._process:
                if process not in self._heads and any(process[1] == pid for _, pid in self._heads):
                    kept[-1] = replace(kept[-1], text=kept[-1].text + line.text[segment.column :])
                    break  # the rest of a header that was cut in its host's name, behind letters of another line
                if self._is_begin_of_line(kept[-1]):
                    self._keep(line, kept.pop(), segment.column)
                self._begin(process, line.byte_offset + segment.column)
            kept.append(segment)
        return kept

    def _is_begin_of_line(self, segment: Segment) -> bool:
        """Whether a piece before a header is the begin of an NCCL line, not of another that went without an end."""
        if self._process is None or "\r" in segment.line.text:
            return False
        host, text = self._process[0] or "", segment.text
        return segment.header == "nccl" or host.startswith(text) or text.startswith(f"{host}:")

    def _keep(self, line: Line, segment: Segment, end: int) -> None:
        if self._process:
            segment.torn = True
            self._heads[self._process] = _Head(line, line.text[segment.column : end], segment)

    def _resolve(self, following: Process | None) -> None:
        """Split the held line, behind which another process goes on: its end is the rest of what that one began.

        Or of what a third began that had no more to say.
        """
        line, segments = self._held[0]
        lost = self._heads.pop(following) if following in self._heads else None
        if segments and line.text.isascii():
            found = self._place(line, segments[-1], lost, following, everywhere=True) if lost and following else None
            if found and following:
                self._take(line, segments, following, *found)
                return
            others = [
                (process, *place)
                for process, head in self._heads.items()
                if process != self._process
                and (place := self._place(line, segments[-1], head, process, everywhere=False))
            ]
            if len(others) == 1 and not self._is_known(segments[-1]):
                self._take(line, segments, *others[0])
            elif others:  # whole, or of two that cannot be told from each other
                segments[-1].torn = True
        if lost:
            line, segments = self._held[0]
            self._held[0] = line, [lost.segment, *segments]

    def _take(self, line: Line, segments: list[Segment], process: Process, at: int, joined: list[Segment]) -> None:
        """The end of the held line, from a column on, is the process's."""
        self._heads.pop(process, None)
        if at > segments[-1].column:
            self._keep(line, segments[-1], at)
        self._begin(process, line.byte_offset + at)
        self._held[0] = line, segments[:-1] + joined

    def _place(
        self, line: Line, last: Segment, head: _Head, process: Process, everywhere: bool
    ) -> tuple[int, list[Segment]] | None:
        """Where in the line the rest of the process's head begins, and what both make together."""
        first = last.column + (1 if _process(last) == self._process else 0)
        told = [at for at in self._ends(line, first) if first <= at <= len(line.text)]
        if first == last.column:
            told.append(first)  # a process that ends writes what it has, up to the end of a line
        for at in told:
            joined = self._join(line, at, head, process)
            if joined and self._is_known(joined[-1]):
                return at, joined
        if not everywhere or not self._searches:
            return None
        self._searches -= 1
        places: list[tuple[int, list[Segment]]] = []
        for at in range(first, min(len(line.text), first + _LONGEST) + 1):
            if places and at == len(line.text):
                break  # all of the line was the head of the other: only if nothing else is possible
            joined = self._join(line, at, head, process)
            if joined and self._is_known(joined[-1]):
                places.append((at, joined))
        if len(places) > 1:  # the pieces are whose they are, but their numbers are not to be trusted
            last.torn = True
            for segment in places[0][1]:
                segment.torn = True
        return places[0] if places else None

    def _ends(self, line: Line, first: int) -> list[int]:
        """The columns from the first on at which blocks of the process end that writes, the likeliest first.

        Lines without a header can be another's, an application's that writes line by line, or its own.
        """
        begin = self._start - line.byte_offset
        moved = [0] if self._process in self._met else [*(-short for short in self._unseen), 0]
        if self._foreign:
            moved.append(self._foreign)
        return [begin + by + -(-(first - begin - by) // BLOCK) * BLOCK for by in moved]

    def _join(self, line: Line, at: int, head: _Head, process: Process) -> list[Segment] | None:
        text = head.text + line.text[at:]
        joined = self._split(replace(head.line, text=text, raw=text))
        return joined if len(joined) == 1 and _process(joined[0]) == process else None


def _process(segment: Segment) -> Process | None:
    if segment.header != "nccl":
        return None
    return segment.identity.host, segment.identity.pid
