"""Lines of a file, one batch at a time: split at newline bytes only, counted and placed exactly, wrappers peeled.

Whatever the file holds, memory is bounded by the batch: of a line longer than MAX_LINE only the beginning is kept.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from replay.grammar.texts import Listed, Mask, Spans, Texts, is_native, split
from replay.sources.encoding import Chunks, EncodingMissing
from replay.sources.model import BATCH, MAX_LINE, Batch, Hints, Problem, SourceFile, Wrapping
from replay.sources.peeling import ManyPeeler
from replay.sources.sample import take
from replay.sources.vote import outline
from replay.sources.wrappers import Peeler

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
    peel = ManyPeeler(Peeler(file.wrapping or _wrapping(file), file.identity, hints, file.mtime)).peel
    chunks = Chunks(file.abspath, file.encoding)
    number = 0
    held: Batch | None = None
    for block in _blocks(chunks):
        for piece in _pieces(block):
            if held is not None:
                yield held
            peeling = peel(piece.raws, piece.odd)
            whole = piece.whole
            whole[peeling.partial] = False
            held = Batch(
                file.file_id,
                number + 1,
                piece.offsets,
                peeling.raws,
                peeling.texts,
                file.identity,
                whole,
                peeling.is_plain & whole,
                peeling.wraps,
            )
            number += len(held)
        if not block.ends and held is not None:
            held.cut()
    if chunks.cut:
        report(Problem("truncated", f"{file.path}: {chunks.cut}", file.file_id, number or None))
        if held is not None:
            held.cut()
    if held is not None:
        yield held


class _Block(NamedTuple):
    """Lines and the newlines between them. `offset` is that of the first; `extra` its bytes that were not kept; `ends`:
    the last one had its newline.
    """

    offset: int
    data: bytes
    extra: int
    ends: bool


class _Piece(NamedTuple):
    """Some lines of a block. `offsets`: where each begins, and where the next does; see native.split for `odd`."""

    raws: Texts
    odd: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    whole: Mask


def _pieces(block: _Block) -> Iterator[_Piece]:
    """Cut a block at its newlines."""
    data = block.data
    if is_native():
        starts, ends, odd = split(data)
        parts = []
    else:
        parts = data.split(b"\n")
        sizes = np.array([len(part) for part in parts], np.int32)
        ends = np.cumsum(sizes + 1, dtype=np.int32) - np.int32(1)
        starts = ends - sizes
        odd = np.zeros(len(parts), np.uint8)
    offsets = np.append(starts, ends[-1] + 1).astype(np.int64) + block.offset
    offsets[1:] += block.extra  # only the first line of a block has bytes that were not kept
    for begin in range(0, len(odd), BATCH):
        at = slice(begin, begin + BATCH)
        long = np.flatnonzero(ends[at] - starts[at] >= MAX_LINE)
        whole = np.ones(len(odd[at]), np.bool_)
        raws: Texts
        if is_native():
            first, last = int(starts[at][0]), int(ends[at][-1])
            kept = np.minimum(ends[at], starts[at] + np.int32(_KEEP)) - np.int32(first)
            raws = Spans(data[first:last], starts[at] - np.int32(first), kept)
        else:
            listed = [
                part.decode("utf-8", "replace") if len(part) <= MAX_LINE else _beginning(part) for part in parts[at]
            ]
            raws = Listed(listed)
        for place in long.tolist():
            whole[place] = len((raws[place] or "")[:MAX_LINE]) < MAX_LINE
        yield _Piece(raws, odd[at], offsets[begin : begin + BATCH + 1], whole)


def _beginning(part: bytes) -> str:
    return part[:_KEEP].decode("utf-8", "replace")[:MAX_LINE]


def _wrapping(file: SourceFile) -> Wrapping:
    if file.abspath is None:
        return Wrapping()
    return outline(take(file.abspath, file.encoding, file.size).places).wrapping


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
        length = len(carry) + dropped + last + 1
        begin = chunk.find(b"\n") if dropped else 0
        yield _Block(offset, carry + chunk[begin:last], dropped + begin, ends=True)
        offset += length
        carry, dropped = chunk[last + 1 :], 0
    if carry or dropped:
        yield _Block(offset, carry, dropped, ends=False)


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
        found = block.data.split(b"\n")
        lines += [_beginning(part) for part in found[skip : skip + count - len(lines)]]
        skip = max(skip - len(found), 0)
        if len(lines) >= count:
            break
    return lines
