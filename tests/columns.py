"""Columns of many rows as lists of Python's values."""

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

from replay.grammar.bulk import Taken
from replay.grammar.texts import Coded, Listed, Numbers, Spans, Texts
from replay.parse.model import KINDS, Column, Reading


def values(column: Column, count: int) -> list[Any]:
    """One value for each row."""
    match column:
        case Coded(codes, told):
            return [told[code] for code in codes.tolist()]
        case Numbers(numbers, is_null):
            nulls = [False] * count if is_null is None else is_null.tolist()
            return [None if none else value for value, none in zip(numbers.tolist(), nulls, strict=True)]
        case Spans() | Listed():
            return list(column)
        case np.ndarray():
            return [None if isinstance(value, float) and isnan(value) else value for value in column.tolist()]
        case _:
            return [column] * count


def rows(count: int, columns: Mapping[str, Column]) -> list[dict[str, Any]]:
    """The rows of some columns."""
    told = {name: values(column, count) for name, column in columns.items()}
    return [{name: column[n] for name, column in told.items()} for n in range(count)]


def kinds(read: Reading) -> list[str]:
    """The classes of the lines of a batch that were read."""
    return [kind for number in read.kinds.tolist() if (kind := KINDS[number]) is not None]


def spans(strings: Sequence[str]) -> Spans:
    """Texts of ASCII as pieces of one buffer."""
    sizes = np.array([len(text) for text in strings], np.int32)
    ends = (np.cumsum(sizes + 1) - 1).astype(np.int32)
    return Spans("\n".join(strings).encode(), ends - sizes, ends)


def fields(taken: Taken) -> dict[str, Texts]:
    """All fields of the texts that one production took."""
    return {name: taken.field(name) for name in dict.fromkeys(group.split("__")[0] for group in taken.groups)}
