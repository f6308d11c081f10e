"""Columns to DuckDB without a Python object for each value: Arrow's C data interface, made with ctypes.

Sources: the Arrow C data interface and C stream interface (structures `ArrowSchema`, `ArrowArray`, `ArrowArrayStream`)
and the PyCapsule protocol (`__arrow_c_stream__`). All memory stays Python's: a stream keeps its buffers until it is
gone, and DuckDB is done with it when its statement ends.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from replay.grammar.texts import Mask

_NULLABLE = 2
_END_OF_STREAM = 0


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _ReleaseSchema),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetError),
    ("release", _ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Child(NamedTuple):
    """One column of a batch. `format` is Arrow's; `buffers` without the one for NULL, which `is_null` makes.
    `dictionary`: the values that the column's numbers stand for, `size` of them.
    """

    format: bytes
    buffers: Sequence[Any]
    is_null: Mask | None = None
    dictionary: Child | None = None
    size: int = 0


class Table:
    """Rows for `SELECT * FROM table`: batches with the same columns. DuckDB may ask for them more than once."""

    def __init__(self, names: Sequence[str], batches: Sequence[tuple[int, Sequence[Child]]]) -> None:
        self._names, self._batches = names, batches
        self._kept: list[_OneStream] = []

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give a stream, as Arrow's PyCapsule protocol has it."""
        stream = _OneStream(self._names, self._batches)
        self._kept.append(stream)
        return _new_capsule(ctypes.addressof(stream.struct), b"arrow_array_stream", None)

    def close(self) -> None:
        """Let go of all memory. The statement that read the rows is over."""
        for stream in self._kept:
            stream.close()
        self._kept.clear()
        self._batches = ()


class _OneStream:
    """One run over the batches. Keeps everything that its structures point at."""

    def __init__(self, names: Sequence[str], batches: Sequence[tuple[int, Sequence[Child]]]) -> None:
        self._names, self._batches, self._next = names, batches, 0
        self._kept: list[Any] = []
        self._free_schema = _ReleaseSchema(_freed)
        self._free_array = _ReleaseArray(_freed)
        self.struct = _Stream(
            _GetSchema(self._schema), _GetNext(self._batch), _GetError(_no_error), _ReleaseStream(_freed), None
        )

    def close(self) -> None:
        """Let go of all memory: what calls back is of this object, so that nobody else would for long."""
        self.struct = _Stream()
        self._batches = ()
        self._kept.clear()

    def _schema(self, _: Any, out: Any) -> int:
        _, children = self._batches[0]
        inner = [self._schema_of(child, name) for child, name in zip(children, self._names, strict=True)]
        out[0] = self._made_schema(b"+s", b"", inner)
        return 0

    def _schema_of(self, child: Child, name: str) -> _Schema:
        made = self._made_schema(child.format, name.encode(), [])
        if child.dictionary is not None:
            made.dictionary = ctypes.pointer(self._keep(self._schema_of(child.dictionary, "")))
        return made

    def _made_schema(self, kind: bytes, name: bytes, children: list[_Schema]) -> _Schema:
        made = _Schema(format=kind, name=name, flags=_NULLABLE, n_children=len(children), release=self._free_schema)
        if children:
            pointers = (ctypes.POINTER(_Schema) * len(children))(*(ctypes.pointer(self._keep(c)) for c in children))
            made.children = self._keep(pointers)
        self._kept += [kind, name]
        return made

    def _batch(self, _: Any, out: Any) -> int:
        if self._next >= len(self._batches):
            out[0] = _Array()  # no release: the stream is over
            return _END_OF_STREAM
        count, children = self._batches[self._next]
        self._next += 1
        inner = [self._array(child, count) for child in children]
        pointers = (ctypes.POINTER(_Array) * len(inner))(*(ctypes.pointer(self._keep(c)) for c in inner))
        made = self._made_array(count, 0, [None])
        made.n_children, made.children = len(inner), self._keep(pointers)
        out[0] = made
        return 0

    def _array(self, child: Child, count: int) -> _Array:
        valid, nulls = None, 0
        if child.is_null is not None:
            nulls = int(child.is_null.sum())
            valid = np.packbits(~child.is_null, bitorder="little") if nulls else None
        made = self._made_array(count, nulls, [valid, *child.buffers])
        if child.dictionary is not None:
            made.dictionary = ctypes.pointer(self._keep(self._array(child.dictionary, child.dictionary.size)))
        return made

    def _made_array(self, count: int, nulls: int, buffers: Sequence[Any]) -> _Array:
        places = (ctypes.c_void_p * len(buffers))(*(None if b is None else self._address(b) for b in buffers))
        return _Array(
            length=count,
            null_count=nulls,
            n_buffers=len(buffers),
            buffers=self._keep(places),
            release=self._free_array,
        )

    def _address(self, buffer: Any) -> int:
        """Where the bytes of a buffer lie; it is kept."""
        found = buffer if isinstance(buffer, np.ndarray) else np.frombuffer(buffer or b"\0", np.uint8)
        found = self._keep(np.ascontiguousarray(found))
        return int(found.ctypes.data)

    def _keep(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing


def _freed(struct: Any) -> None:
    """Note that a structure is no longer used; its memory is Python's."""
    struct[0].release = type(struct[0].release)()


def _no_error(_: Any) -> None:
    """No stream has ever an error."""


def texts(values: Sequence[str | None]) -> Child:
    """A column of texts; None is NULL. Half surrogates (of JSON escapes) have no UTF-8: they become question marks."""
    encoded = [b"" if v is None else v.encode("utf-8", "replace") for v in values]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(e) for e in encoded], out=offsets[1:])
    is_null = np.array([v is None for v in values], np.bool_)
    return Child(b"u", [offsets, b"".join(encoded)], is_null, size=len(encoded))


def packed(offsets: bytes, text: bytes, is_null: Mask | None) -> Child:
    """A column of texts that lie behind each other; `offsets` are of 32 bits."""
    return Child(b"u", [offsets, text], is_null)


def chosen(codes: npt.NDArray[np.int32], values: Sequence[str | None]) -> Child:
    """A column of few different texts: row n has `values[codes[n]]`."""
    is_null = np.array([v is None for v in values], np.bool_)
    return Child(b"i", [codes], is_null[codes] if is_null.any() else None, texts([v or "" for v in values]))


def booleans(values: npt.NDArray[np.bool_], is_null: Mask | None) -> Child:
    """A column of truth values."""
    return Child(b"b", [np.packbits(values, bitorder="little")], is_null)


def numbers(kind: bytes, values: npt.NDArray[Any], is_null: Mask | None) -> Child:
    """A column of numbers: "i" of 32 bits, "l" of 64, "g" doubles; `values` are of that type."""
    return Child(kind, [values], is_null)
