"""Columns of texts: pieces of one buffer, which the native scanner works on, or Python's strings. Both say the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from replay.grammar.numbers import integer

try:
    from replay.grammar import _scan
except ImportError:  # built only where there was a compiler; what needs it is never made then
    _scan = None  # type: ignore[assignment]

_AGREED = 3
"""What the scanner is to be, so that one that was built from another version of its source is not used."""
native: Any = _scan if getattr(_scan, "AGREED", None) == _AGREED else None
"""The module written in C; None where it was not built."""

Places = npt.NDArray[np.intp]
Codes = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]

_LIMIT = 2**63
_LONGEST = 2**30
_OFTEN = b"kvbgwymfuhpdl()]['=,-._:/scatinor9876543210e "
"""Characters that logs hold often, from the rarer ones on."""


def is_native() -> bool:
    """Whether the native scanner was built."""
    return native is not None


class Coded(NamedTuple):
    """A column by its different values: row n has `values[codes[n]]`. A value may stand there twice."""

    codes: Codes
    values: Sequence[Any]

    def map(self, make: Callable[..., Any]) -> Coded:
        """Compute a value from each."""
        return Coded(self.codes, [make(value) for value in self.values])

    def pick(self, where: Places) -> Coded:
        """The rows at these places."""
        return Coded(self.codes[where], self.values)


class Numbers(NamedTuple):
    """A column of numbers; `is_null`: where there is none, None: nowhere."""

    values: npt.NDArray[Any]
    is_null: Mask | None = None


class Spans(Sequence["str | None"]):
    """Pieces [start, end) of a buffer; a start below 0 is None. Where more is asked than to hand them out, they are
    ASCII without newlines.
    """

    def __init__(self, data: bytes, starts: Codes, ends: Codes) -> None:
        self.data, self.starts, self.ends = data, starts, ends

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.starts)

    @overload
    def __getitem__(self, at: int) -> str | None: ...
    @overload
    def __getitem__(self, at: slice) -> Spans: ...
    def __getitem__(self, at: int | slice) -> str | Spans | None:
        """Return a text; bytes that are no UTF-8 become U+FFFD."""
        if isinstance(at, slice):
            return Spans(self.data, self.starts[at], self.ends[at])
        start = int(self.starts[at])
        return None if start < 0 else self.data[start : int(self.ends[at])].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str | None]:
        """Give the texts in order."""
        data = self.data
        for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True):
            yield None if start < 0 else data[start:end].decode("utf-8", "replace")

    def pick(self, where: Places) -> Spans:
        """The texts at these places."""
        return Spans(self.data, self.starts[where], self.ends[where])

    def coded(self) -> Coded:
        """The different texts."""
        codes, firsts = native.intern(self.data, self.starts, self.ends)
        return Coded(_ints(codes), [self[int(first)] for first in _ints(firsts)])

    def integers(self, base: int = 10) -> Numbers:
        """The numbers that they say; see `integer`. What does not fit into 64 bits is none."""
        found, told = native.integers(self.data, self.starts, self.ends, base)
        values, states = np.frombuffer(found, np.int64), np.frombuffer(told, np.uint8)
        odd = np.flatnonzero(states == 2)
        if len(odd):
            values, states = values.copy(), states.copy()
            for place in odd:
                number = integer(self[int(place)], base)
                fits = number is not None and -_LIMIT <= number < _LIMIT
                values[place], states[place] = (number or 0, 0) if fits else (0, 1)
        return Numbers(values, states == 1 if states.any() else None)

    def begin(self, size: int) -> Spans:
        """Their first characters."""
        return Spans(self.data, self.starts, np.minimum(self.ends, self.starts + np.int32(size)))

    def holding(self, *words: str) -> Mask:
        """Which hold one of the words."""
        needles = tuple(word.encode() for word in words)
        found = native.find(self.data, self.starts, self.ends, needles, bytes(rarest(needle) for needle in needles))
        return np.frombuffer(found, np.bool_)

    def is_there(self, shortest: int = 0) -> Mask:
        """Which are there, and have so many characters."""
        found: Mask = (self.starts >= 0) & (self.ends - self.starts >= shortest)
        return found

    def seconds(self, begin: int) -> npt.NDArray[np.float64]:
        """The numbers that their characters from `begin` on say ("29.204", "29,204"); NaN where a text is absent."""
        values = np.frombuffer(native.seconds(self.data, self.starts, self.ends, begin), np.float64)
        odd = np.flatnonzero(np.isinf(values))
        if len(odd):
            values = values.copy()
            values[odd] = Listed(list(self.pick(odd))).seconds(begin)
        return values

    def packed(self, most: int = _LONGEST) -> tuple[bytes, bytes]:
        """Offsets (32 bits, one more than texts) and the texts behind each other, as UTF-8. A text with more than
        `most` characters is cut there, with an ellipsis as its last.
        """
        data, starts, ends, whole = self.data, self.starts, self.ends, len(self.data)
        odd = self._odd()
        if len(odd):
            behind = [cut(self[n] or "", most).encode() for n in odd.tolist()]
            sizes = np.cumsum([len(text) for text in behind]) + whole
            starts, ends = starts.copy(), ends.copy()
            starts[odd], ends[odd] = [whole, *sizes[:-1].tolist()], sizes
            data += b"".join(behind)
        found: tuple[bytes, bytes] = native.pack(data, starts, ends, most, whole)
        return found

    def _odd(self) -> Places:
        """The texts that are not ASCII."""
        if self.data.isascii():
            return np.empty(0, np.intp)
        is_high = np.concatenate(([0], np.cumsum(np.frombuffer(self.data, np.uint8) >= 128, dtype=np.int32)))
        return np.flatnonzero((self.starts >= 0) & (is_high[self.ends] > is_high[np.maximum(self.starts, 0)]))


class Listed(Sequence["str | None"]):
    """Texts as Python has them."""

    def __init__(self, texts: Sequence[str | None]) -> None:
        self.texts = texts

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.texts)

    @overload
    def __getitem__(self, at: int) -> str | None: ...
    @overload
    def __getitem__(self, at: slice) -> Listed: ...
    def __getitem__(self, at: int | slice) -> str | Listed | None:
        """Return a text."""
        return Listed(self.texts[at]) if isinstance(at, slice) else self.texts[at]

    def pick(self, where: Places) -> Listed:
        """The texts at these places."""
        return Listed([self.texts[n] for n in where.tolist()])

    def coded(self) -> Coded:
        """The different texts."""
        values = list(dict.fromkeys(self.texts))
        numbers = {value: number for number, value in enumerate(values)}
        return Coded(np.fromiter(map(numbers.__getitem__, self.texts), np.int32, len(self.texts)), values)

    def integers(self, base: int = 10) -> Numbers:
        """The numbers that they say; see `integer`. What does not fit into 64 bits is none."""
        coded = self.coded()
        numbers = [integer(text, base) for text in coded.values]
        fitting = [n if n is not None and -_LIMIT <= n < _LIMIT else None for n in numbers]
        values = np.array([n or 0 for n in fitting], np.int64)[coded.codes]
        is_null = np.array([n is None for n in fitting], np.bool_)[coded.codes]
        return Numbers(values, is_null if is_null.any() else None)

    def begin(self, size: int) -> Listed:
        """Their first characters."""
        return Listed([None if text is None else text[:size] for text in self.texts])

    def holding(self, *words: str) -> Mask:
        """Which hold one of the words."""
        return np.fromiter(
            (text is not None and any(word in text for word in words) for text in self.texts), np.bool_, len(self)
        )

    def is_there(self, shortest: int = 0) -> Mask:
        """Which are there, and have so many characters."""
        found = (text is not None and len(text) >= shortest for text in self.texts)
        return np.fromiter(found, np.bool_, len(self))

    def seconds(self, begin: int) -> npt.NDArray[np.float64]:
        """The numbers that their characters from `begin` on say ("29.204", "29,204"); NaN where a text is absent."""
        found = (np.nan if text is None else float(text[begin:].replace(",", ".")) for text in self.texts)
        return np.fromiter(found, np.float64, len(self))


Texts = Spans | Listed


def cut(text: str, most: int) -> str:
    """Return a text at the length that is wanted, the cut marked."""
    return text if len(text) <= most else text[: most - 1] + "…"


def rarest(word: bytes) -> int:
    """Where in a word, among its first 256 characters, the character is that logs hold least often, by and large."""
    return min(range(min(len(word), 256)), key=lambda at: _OFTEN.find(word[at : at + 1]), default=0)


def filled(texts: Texts) -> Texts:
    """Texts that are empty where they were absent."""
    if isinstance(texts, Spans):
        return Spans(texts.data, np.maximum(texts.starts, 0), np.maximum(texts.ends, 0))
    return Listed([text or "" for text in texts.texts])


def absent(count: int) -> Listed:
    """Texts that are not there."""
    return Listed((None,) * count)


def combined(columns: Sequence[Coded]) -> tuple[Codes, Places]:
    """Number the different rows of columns; return the number of each row, and where each number stands first."""
    first, *others = columns
    keys, size = first.codes.astype(np.int64), len(first.values)
    for column in others:
        if size * len(column.values) >= _LIMIT:
            keys = numbered(keys)[0].astype(np.int64)
            size = len(keys)
        keys = keys * len(column.values) + column.codes
        size *= len(column.values)
    return numbered(keys)


def numbered(keys: npt.NDArray[np.int64]) -> tuple[Codes, Places]:
    """Number different keys; return the number of each, and where each number stands first."""
    if native is not None:
        codes, firsts = native.rank(keys)
        return _ints(codes), _ints(firsts).astype(np.intp)
    _, places, found = np.unique(keys, return_index=True, return_inverse=True)
    return found.astype(np.int32), places


def computed(make: Callable[..., Any], columns: Sequence[Coded]) -> Coded:
    """Compute a column from others, once for each different row."""
    if len(columns) == 1:
        return columns[0].map(make)
    codes, firsts = combined(columns)
    rows = zip(*([c.values[code] for code in c.codes[firsts].tolist()] for c in columns), strict=True)
    return Coded(codes, [make(*row) for row in rows])


def rows_of(names: Sequence[str], fields: Sequence[Texts], count: int) -> list[dict[str, str]]:
    """Return the texts of each of `count` rows by the names of their columns, without those that are None."""
    spans = [texts for texts in fields if isinstance(texts, Spans)]
    if spans and len(spans) == len(fields) and all(texts.data is spans[0].data for texts in spans):
        columns = ((name, texts.starts, texts.ends) for name, texts in zip(names, spans, strict=True))
        found: list[dict[str, str]] = native.rows(spans[0].data, tuple(columns))
        return found
    listed = zip(*fields, strict=True) if fields else [()] * count
    return [{n: v for n, v in zip(names, row, strict=True) if v is not None} for row in listed]


def _ints(raw: bytes) -> Codes:
    return np.frombuffer(raw, np.int32)


def split(data: bytes) -> tuple[Codes, Codes, npt.NDArray[np.uint8]]:
    """Cut a buffer into lines, natively: where they begin and end, and what is odd about them (1: bytes that are not
    ASCII, 2: carriage returns or escape sequences).
    """
    starts, ends, odd = native.split(data)
    return _ints(starts), _ints(ends), np.frombuffer(odd, np.uint8)
