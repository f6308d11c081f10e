"""Files that are read as one value: their bytes, and the rows that point to a place in them."""

from collections.abc import Iterable, Sequence

from replay.parse.model import Counts, LineSink, Segment
from replay.sources.encoding import Chunks, EncodingMissing
from replay.sources.model import Identity, Line, SourceFile

MAX_BYTES = 64 << 20
"""A file that expands to more is not read as one value: its values take up to twenty times its bytes."""


class Unreadable(Exception):
    """The file cannot be read as a whole; the text says why."""


def content(file: SourceFile) -> bytes:
    """Return all bytes of a file, decompressed. Raises Unreadable."""
    if file.abspath is None:
        raise Unreadable("has no place on disk")
    parts: list[bytes] = []
    size = 0
    try:
        for chunk in Chunks(file.abspath, file.encoding):
            parts.append(chunk)
            size += len(chunk)
            if size > MAX_BYTES:
                raise Unreadable(f"is larger than {MAX_BYTES >> 20} MiB")
    except (OSError, EncodingMissing) as error:
        raise Unreadable(str(error)) from None
    return b"".join(parts)


def place(file: SourceFile, sink: LineSink, t: float | None = None, line_no: int = 0) -> Segment:
    """Return a segment for rows of the file as a whole, at one time."""
    line = Line(file.file_id, line_no, 0, "", "", file.identity, t)
    identity: Identity = file.identity
    return Segment(line, "", {}, "", identity, t, writer_id=sink.writer(file, identity))


def count_lines(file: SourceFile, batches: Iterable[Sequence[Line]], sink: LineSink, form: str, *, ok: bool) -> Counts:
    """Keep the lines of a text file that was read as one value, and count them."""
    counts = Counts()
    kind = "parsed" if ok else "malformed"
    for batch in batches:
        for line in batch:
            sink.line(line, sink.writer(file, line.identity), kind, form, None)
            counts.lines += 1
    setattr(counts, kind, counts.lines)
    if counts.lines:
        counts.forms[form] = counts.lines
    return counts


def problem(file: SourceFile, sink: LineSink, text: str) -> None:
    """Say what is wrong with a file."""
    kind = "malformed"
    sink.row("problems", place(file, sink), kind=kind, text=f"{file.path}: {text}", line_no=None, complete=False)
