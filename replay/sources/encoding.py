"""Bytes of a file, decompressed as they are asked for: what an archive expands to never decides the memory used."""

import bz2
import importlib.util
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO, Protocol

CHUNK = 1 << 21
"""Most bytes handed out at once."""

_MAGIC = ((b"\x1f\x8b", "gz"), (b"\x28\xb5\x2f\xfd", "zst"), (b"BZh", "bz2"), (b"\xfd7zXZ\x00", "xz"))
_IN = 1 << 16
_BOMB_BYTES = 256 << 20
_BOMB_RATIO = 200
"""Logs shrink to a tenth or a fiftieth; a line that is repeated for ever, to less than a two-hundredth."""
_LINE_COSTS = 64
"""What a line costs beside its bytes: an archive of empty lines is a bomb as well."""
_XZ_MEMORY = 256 << 20
"""What the best setting of xz needs is a quarter of it; an archive may ask for gigabytes."""
_ZST_FRAME = 0xFD2FB528
_ZST_SKIPPABLE = 0x184D2A50


class EncodingMissing(Exception):
    """The decompressor of this encoding is not installed; the text says what to install."""


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    @property
    def needs_input(self) -> bool: ...
    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


class _Gzip:
    """zlib's decompressor in the shape of those of bz2 and lzma."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, max_length: int = CHUNK) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, max_length)


_FACTORIES: dict[str, Callable[[], _Decompressor]] = {
    "gz": _Gzip,
    "bz2": bz2.BZ2Decompressor,
    "xz": partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY),
}


def encoding_of(head: bytes) -> str:
    """Encoding by the first bytes of a file: gz, zst, bz2, xz, else plain."""
    return next((name for magic, name in _MAGIC if head.startswith(magic)), "plain")


class Chunks:
    """The decompressed content of one file, in order, at most CHUNK bytes at a time.

    An archive that is cut or damaged gives what can be had; then `cut` says in a few words what is wrong.
    Raises EncodingMissing for a zst file without the package zstandard, OSError where the file cannot be read.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        self._path, self._encoding = path, encoding
        self.cut: str | None = None
        if encoding == "zst" and importlib.util.find_spec("zstandard") is None:
            raise EncodingMissing("is compressed with zstd: pip install 'torchreplay[zstd]'")

    def __iter__(self) -> Iterator[bytes]:
        size, given = self._path.stat().st_size, 0
        with self._path.open("rb") as raw:
            for block in self._blocks(raw):
                yield block
                if self._encoding == "plain":
                    continue
                given += len(block) + _LINE_COSTS * block.count(b"\n")
                if given > _BOMB_BYTES and given > _BOMB_RATIO * size:
                    self.cut = "expands to far more than a log does; the rest was not read"
                    return

    def _blocks(self, raw: BinaryIO) -> Iterator[bytes]:
        if self._encoding == "plain":
            while block := raw.read(CHUNK):
                yield block
        elif self._encoding == "zst":
            yield from self._zst(raw)
        else:
            yield from self._members(raw)

    def _members(self, raw: BinaryIO) -> Iterator[bytes]:
        """Archives may be several members after one another (appended logs)."""
        data = raw.read(_IN)
        while data:
            inner = _FACTORIES[self._encoding]()
            try:
                while not inner.eof:
                    out = inner.decompress(data, CHUNK)
                    if out:
                        yield out
                    data = raw.read(_IN) if inner.needs_input and not inner.eof else b""
                    if not (data or out or inner.eof):
                        self.cut = "ends in the middle of the archive"
                        return
            except (zlib.error, OSError, EOFError, lzma.LZMAError, ValueError) as error:
                self.cut = f"is damaged: {error}"
                return
            data = (inner.unused_data or raw.read(_IN)).lstrip(b"\0")
            if data and encoding_of(data) != self._encoding and len(data) >= 6:
                self.cut = "has bytes behind the archive that are no archive"
                return

    def _zst(self, raw: BinaryIO) -> Iterator[bytes]:
        import zstandard  # noqa: PLC0415  an extra: absent where nobody has zst logs

        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_size=_IN, read_across_frames=True, closefd=False)
        try:
            while block := reader.read(CHUNK):
                yield block
        except zstandard.ZstdError as error:
            self.cut = f"is damaged: {error}"
            return
        if not _zst_whole(raw):
            self.cut = "ends in the middle of the archive"


def _zst_whole(raw: BinaryIO) -> bool:
    """True if the last frame has all its blocks: zstandard's reader does not tell."""
    import zstandard  # noqa: PLC0415  see _zst

    raw.seek(0, 2)
    end, at = raw.tell(), 0
    while at < end:
        raw.seek(at)
        head = raw.read(18)
        magic = int.from_bytes(head[:4], "little")
        if magic & 0xFFFFFFF0 == _ZST_SKIPPABLE:
            at += 8 + int.from_bytes(head[4:8], "little")
            continue
        if magic != _ZST_FRAME or len(head) < 6:
            return False
        try:
            at += zstandard.frame_header_size(head)
            checksum = zstandard.get_frame_parameters(head).has_checksum
        except zstandard.ZstdError:
            return False
        last = False
        while not last:
            raw.seek(at)
            block = raw.read(3)
            if len(block) < 3:
                return False
            bits = int.from_bytes(block, "little")
            last = bool(bits & 1)
            at += 3 + (1 if (bits >> 1) & 3 == 1 else bits >> 3)
        at += 4 if checksum else 0
    return at == end


def read_bytes(path: Path, encoding: str, limit: int) -> bytes:
    """At most `limit` bytes of the decompressed content. Raises as Chunks does."""
    parts, left = [], limit
    for block in Chunks(path, encoding):
        parts.append(block[:left])
        left -= len(parts[-1])
        if left <= 0:
            break
    return b"".join(parts)
