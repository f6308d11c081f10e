"""Lines on their way to files: in the order of their times, in bounded memory.

The simulation runs rank by rank, so what it writes comes out of order. Lines wait here until no rank can write an
earlier one; then they go, sorted, to the files of the launcher. Files are appended to in pieces and never held open:
ten thousand ranks have more files than a process may open.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_PIECE = 1 << 16
_BLOCK = 4096


@dataclass(order=True, slots=True)
class Entry:
    """A line (or, `is_raw`, a piece of lines) that `writer` wrote at `time`. Writers are ranks, agents (-1 - node), and
    JOB for what the scheduler says.
    """

    time: float
    order: int
    writer: int = field(compare=False)
    stream: str = field(compare=False)
    text: str = field(compare=False)
    is_raw: bool = field(compare=False, default=False)


JOB = -(1 << 30)


class Files:
    """Text that grows at the end of files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._text: defaultdict[str, list[str]] = defaultdict(list)
        self._size: defaultdict[str, int] = defaultdict(int)
        self._made: set[str] = set()

    def append(self, path: str, text: str) -> None:
        """Add text to a file; its folders are made."""
        self._text[path].append(text)
        self._size[path] += len(text)
        if self._size[path] >= _PIECE:
            self._flush(path)

    def touch(self, path: str) -> None:
        """Make a file that may stay empty."""
        self._text.setdefault(path, [])

    def _flush(self, path: str) -> None:
        place = self.folder / path
        if path not in self._made:
            place.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path)
        with place.open("a", encoding="utf8", newline="") as file:
            file.write("".join(self._text[path]))
        self._text[path] = []
        self._size[path] = 0

    def close(self) -> None:
        """Write what is left."""
        for path in list(self._text):
            if self._text[path] or path not in self._made:
                self._flush(path)


class Spool:
    """Holds lines until their time has come. `cuts` are the times from which on nothing of a writer is kept."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._order = 0
        self._blocks: dict[int, str] = {}
        self.cuts: dict[int, float] = {}

    def add(self, time: float, writer: int, stream: str, text: str) -> None:
        """Take a line."""
        self._order += 1
        self._entries.append(Entry(time, self._order, writer, stream, text))

    def add_block(self, time: float, writer: int, text: str) -> None:
        """Take a line of a process whose stdout is a pipe: libc hands it on in blocks that end anywhere."""
        held = self._blocks.get(writer, "") + text + "\n"
        while len(held) >= _BLOCK:
            self._order += 1
            self._entries.append(Entry(time, self._order, writer, "stdout", held[:_BLOCK], True))
            held = held[_BLOCK:]
        self._blocks[writer] = held

    def flush_block(self, time: float, writer: int) -> None:
        """Take the rest of a process that ends in order; that of one that is killed is lost."""
        if held := self._blocks.pop(writer, ""):
            self._order += 1
            self._entries.append(Entry(time, self._order, writer, "stdout", held, True))

    def take(self, until: float = float("inf")) -> Iterable[Entry]:
        """Return the lines of before `until` in their order, without those that their writer did not live to write."""
        due = sorted(e for e in self._entries if e.time < until)
        self._entries = [e for e in self._entries if e.time >= until]
        return [e for e in due if e.time <= self.cuts.get(e.writer, float("inf"))]
