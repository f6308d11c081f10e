"""A few hundred lines of a file, from its beginning, middle and end: enough to see how it is made."""

from dataclasses import dataclass, field
from pathlib import Path

from replay.sources.encoding import Chunks

_HEAD = 32 << 10
_PLACE = 12 << 10
_MAX_LINES = 250
_MAX_CHARS = 2000


@dataclass(slots=True)
class Sample:
    """`head` is the beginning in bytes; `places` are runs of lines, each run from one place of the file."""

    head: bytes = b""
    whole: bool = False
    places: list[list[str]] = field(default_factory=list)
    cut: str | None = None


def take(path: Path, encoding: str, size: int, brief: bool = False) -> Sample:
    """Read a sample, a small one where there are so many files that it counts; of an archive only its beginning.

    Raises OSError, EncodingMissing.
    """
    head_bytes, place_bytes = (_HEAD // 4, _PLACE // 4) if brief else (_HEAD, _PLACE)
    chunks = Chunks(path, encoding)
    head, more = b"", False
    for block in chunks:
        head += block
        if len(head) >= head_bytes:
            more = len(head) > head_bytes or encoding != "plain" or size > len(head)
            break
    sample = Sample(head[: _HEAD * 2], whole=not more and chunks.cut is None, cut=chunks.cut)
    sample.places.append(_lines(head[:head_bytes], first=True, last=sample.whole))
    if encoding == "plain" and size > 3 * head_bytes:
        with path.open("rb") as raw:
            for at in (size // 2, size - place_bytes):
                raw.seek(at)
                sample.places.append(_lines(raw.read(place_bytes), first=False, last=False))
    return sample


def _lines(block: bytes, first: bool, last: bool) -> list[str]:
    """Lines of a block; `first`, `last`: its first and last line are whole."""
    parts = block.lstrip(b"\0").split(b"\n")
    parts = parts[0 if first else 1 : None if last or len(parts) < 2 else -1]
    return [p[:_MAX_CHARS].decode("utf-8", "replace") for p in parts[:_MAX_LINES]]
