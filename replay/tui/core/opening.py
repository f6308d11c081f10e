"""Reading logs for the first time: how far it is, and the lines that were read meanwhile."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from replay.report.wording import duration, size, visible
from replay.run import Progress
from replay.sources import paths
from replay.sources.encoding import encoding_of, read_bytes

_PEEK = 1 << 16


@dataclass(frozen=True, slots=True)
class Listed:
    """One file to be read, and its size on disk [bytes]."""

    name: str
    path: Path
    size: int


def listed(logs: Sequence[str]) -> list[Listed]:
    """Return the files of what was named, in the order in which they are read. Raises InputError where there is
    none.
    """
    return [
        Listed(visible(name), path, path.stat().st_size) for name, path in paths.expand(logs).files if path.is_file()
    ]


def told(progress: Progress, seconds: float) -> str:
    """Return how far it is after `seconds`: `reading 120.0 MiB of 1.2 GiB, 24.1 MiB/s, 45 s left`."""
    if not progress.total:
        return f"{progress.stage} …"
    text = f"{progress.stage} {size(progress.done)} of {size(progress.total)}"
    if progress.done and seconds > 0:
        rate = progress.done / seconds
        text += f", {size(int(rate))}/s, {duration((progress.total - progress.done) / rate)} left"
    return text


def share(progress: Progress) -> float:
    """Return how much was read, 0 to 1: all of it where something else is done by now."""
    if progress.stage not in {"looking", "reading"}:
        return 1.0
    return min(progress.done / progress.total, 1.0) if progress.total else 0.0


def at(files: Sequence[Listed], progress: Progress) -> int:
    """Return the position of the file that is being read; behind the last where all were."""
    if share(progress) == 1.0:
        return len(files)
    done = progress.done
    for n, file in enumerate(files):
        if done < file.size:
            return n
        done -= file.size
    return len(files)


@lru_cache(maxsize=8)
def peek(file: Listed) -> tuple[str, ...]:
    """Return the first lines of a file (64 KiB of it), safe to show; nothing of one that cannot be read."""
    try:
        with file.path.open("rb") as raw:
            encoding = encoding_of(raw.read(_PEEK))
        head = read_bytes(file.path, encoding, _PEEK)
    except (OSError, EOFError, ValueError):
        return ()
    if b"\0" in head:
        return ("(a binary file)",)
    return tuple(visible(line) for line in head.decode("utf-8", "replace").split("\n"))
