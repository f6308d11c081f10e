"""Lines of a file, one batch at a time: split at newline bytes only, counted and placed exactly, wrappers peeled.

Whatever the file holds, memory is bounded by the batch: of a line longer than MAX_LINE only the beginning is kept.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from replay.sources.encoding import Chunks, EncodingMissing
from replay.sources.model import MAX_LINE, Batch, Hints, Problem, SourceFile, Wrapping
from replay.sources.sample import take
from replay.sources.vote import outline
from replay.sources.wrappers import Peeler

BATCH = 8192
"""Most lines in a batch."""

_KEEP = 4 * MAX_LINE
"""Bytes that surely hold MAX_LINE characters."""
_SCAN = 1 << 16
_NO_LINES = frozenset({"binary", "unreadable", "empty"})

OnProblem = Callable[[Problem], None]


def read_batches(file: SourceFile, hints: Hints, on_problem: OnProblem | None = None) -> Iterator[Batch]:
    """Read the lines of `file`; a binary or unreadable one has none.

    Bytes that are no UTF-8 become U+FFFD as Python's "replace" has it.

    Offsets count bytes after decompression. `whole` is false for a line cut at MAX_LINE, for a last line without its
    newline, for one that a container engine split, and for the last line of a cut archive. What is wrong with the
    file goes to `on_problem`: truncated, unreadable, permission.
    """
    try:
        yield from _read(file, hints, on_problem or _ignore)
    except (OSError, EncodingMissing) as error:
        kind = "permission" if isinstance(error, PermissionError) else "unreadable"
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        (on_problem or _ignore)(Problem(kind, f"{file.path}: {text}", file.file_id))


def _ignore(_: Problem) -> None:
    """Nobody asked."""


def _read(file: SourceFile, hints: Hints, report: OnProblem) -> Iterator[Batch]:
    if file.abspath is None or file.kind in _NO_LINES:
        return
    peeler = Peeler(file.wrapping or _wrapping(file), file.identity, hints, file.mtime)
    chunks = Chunks(file.abspath, file.encoding)
    number = 0
    held: Batch | None = None
    for block in _blocks(chunks):
        offset, extra = block.offset, block.extra
        for start in range(0, len(block.lines), BATCH):
            if held is not None:
                yield held
            group = block.lines[start : start + BATCH]
            ends = list(accumulate((len(part) + 1 for part in group), initial=offset))
            if extra:  # only the first line of a block has bytes that were not kept
                ends[1:] = [end + extra for end in ends[1:]]
                extra = 0
            held = _batch(file, number + 1, ends[:-1], group, peeler)
            number, offset = number + len(group), ends[-1]
        if not block.ends and held is not None:
            held.cut()
    if chunks.cut:
        report(Problem("truncated", f"{file.path}: {chunks.cut}", file.file_id, number or None))
        if held is not None:
            held.cut()
    if held is not None:
        yield held


def _batch(file: SourceFile, number: int, offsets: list[int], parts: list[bytes], peeler: Peeler) -> Batch:
    raws = [part.decode("utf-8", "replace") if len(part) <= MAX_LINE else _beginning(part) for part in parts]
    peeled = peeler.peel_all(raws)
    if peeled is None:
        batch = Batch(file.file_id, number, offsets, raws, raws, file.identity)
    else:
        texts, identities, ts, partial = map(list, zip(*peeled, strict=True))
        batch = Batch(file.file_id, number, offsets, raws, texts, file.identity, identities, ts)
        if any(partial):
            batch.whole = [not p for p in partial]
    if max(map(len, raws)) >= MAX_LINE:
        batch.whole = [batch.line(at).whole and len(raw) < MAX_LINE for at, raw in enumerate(raws)]
    return batch


def _beginning(part: bytes) -> str:
    return part[:_KEEP].decode("utf-8", "replace")[:MAX_LINE]


def _wrapping(file: SourceFile) -> Wrapping:
    if file.abspath is None:
        return Wrapping()
    return outline(take(file.abspath, file.encoding, file.size).places).wrapping


class _Block(NamedTuple):
    """Lines without their newlines. `offset` is that of the first; `extra` its bytes that were not kept; `ends`: the
    last one had its newline.
    """

    offset: int
    lines: list[bytes]
    extra: int
    ends: bool


def _blocks(chunks: Iterable[bytes], offset: int = 0) -> Iterator[_Block]:
    """Cut chunks at newlines; `offset` is that of the first byte."""
    carry, dropped = b"", 0
    for chunk in chunks:
        last = chunk.rfind(b"\n")
        if last < 0:
            kept = chunk[: max(_KEEP - len(carry), 0)]
            carry += kept
            dropped += len(chunk) - len(kept)
            continue
        if dropped:
            first = chunk.find(b"\n")
            dropped += first
            lines = [carry, *(chunk[first + 1 : last].split(b"\n") if last > first else ())]
            length = len(carry) + dropped + last + 1 - first
        else:
            lines = (carry + chunk[:last]).split(b"\n")
            length = len(carry) + last + 1
        yield _Block(offset, lines, dropped, ends=True)
        offset += length
        carry, dropped = chunk[last + 1 :], 0
    if carry or dropped:
        yield _Block(offset, [carry], dropped, ends=False)


def read_line(file: SourceFile, line_no: int, byte_offset: int | None = None) -> str | None:
    """Read one line as it stands in the file, cut at MAX_LINE; None if the file has no such line.

    With `byte_offset`, the line's offset, a plain file is not scanned. Raises OSError, EncodingMissing.
    """
    found = read_lines(file, line_no, 1, byte_offset)
    return found[0] if found else None


def read_lines(file: SourceFile, first: int, count: int, byte_offset: int | None = None) -> list[str]:
    """Read `count` lines from line `first` (from 1) on as they stand in the file; fewer at its end. See read_line."""
    if file.abspath is None or first < 1 or count < 1:
        return []
    if byte_offset is not None and file.encoding == "plain":
        with file.abspath.open("rb") as raw:
            raw.seek(byte_offset)
            return _take(_blocks(iter(lambda: raw.read(_SCAN), b"")), 0, count)
    return _take(_blocks(Chunks(file.abspath, file.encoding)), first - 1, count)


def _take(blocks: Iterable[_Block], skip: int, count: int) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        wanted = block.lines[skip : skip + count - len(lines)]
        lines += [_beginning(part) for part in wanted]
        skip = max(skip - len(block.lines), 0)
        if len(lines) >= count:
            break
    return lines
