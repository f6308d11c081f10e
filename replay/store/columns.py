"""Columns of parsing as DuckDB's types want them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from replay.grammar.texts import Coded, Listed, Mask, Numbers, Spans, cut
from replay.parse.model import Column
from replay.store import arrow
from replay.store.arrow import Child

TEXT_CUT = 400
"""Characters of a text of a line that the tables keep."""

_FORMATS: dict[str, tuple[bytes, type]] = {
    "INTEGER": (b"i", np.int32),
    "BIGINT": (b"l", np.int64),
    "DOUBLE": (b"g", np.float64),
    "BOOLEAN": (b"b", np.bool_),
}
LIMITS = {"INTEGER": 2**31, "BIGINT": 2**63}
"""Integers of a type lie from minus this to below this."""


def is_missing(column: Column | Child) -> bool:
    """Whether a column holds nothing."""
    return column is None or (isinstance(column, Coded) and all(v is None for v in column.values))


def child(kind: str, column: Column, count: int) -> Child:
    """Return a column of `count` rows for a column of the database of this type.

    Numbers that do not fit the type become NULL; NaN in `t_lo` and other doubles that come as an array is NULL.
    """
    if kind == "VARCHAR":
        return _text(column, count)
    if isinstance(column, Coded):
        values = [_fitting(kind, v) for v in column.values]
        is_null = np.array([v is None for v in values], np.bool_)
        found: npt.NDArray[Any] = np.array([0 if v is None else v for v in values], _FORMATS[kind][1])[column.codes]
        return _number(kind, found, is_null[column.codes] if is_null.any() else None)
    if isinstance(column, Numbers):
        return _number(kind, column.values, column.is_null)
    if isinstance(column, np.ndarray):
        return _number(kind, column, np.isnan(column) if kind == "DOUBLE" else None)
    if isinstance(column, Spans | Listed):
        return child(kind, column.integers(), count)
    return _number(kind, np.full(count, column, _FORMATS[kind][1]), None)


def _number(kind: str, values: npt.NDArray[Any], is_null: Mask | None) -> Child:
    format_, dtype = _FORMATS[kind]
    limit = LIMITS.get(kind)
    if kind == "INTEGER" and values.dtype != np.int32 and limit is not None:
        beyond = (values < -limit) | (values >= limit)
        if beyond.any():
            is_null = beyond if is_null is None else is_null | beyond
            values = np.where(beyond, 0, values)
    if kind == "BOOLEAN":
        return arrow.booleans(values.astype(np.bool_), is_null)
    return arrow.numbers(format_, values.astype(dtype, copy=False), is_null)


def _fitting(kind: str, value: Any) -> Any:
    limit = LIMITS.get(kind)
    return value if value is None or limit is None or -limit <= value < limit else None


def _text(column: Column, count: int) -> Child:
    if isinstance(column, Coded):
        return arrow.chosen(column.codes, [None if v is None else str(v) for v in column.values])
    if isinstance(column, Spans):
        return packed(column)
    if isinstance(column, Listed):
        return arrow.texts(column.texts)
    if isinstance(column, str):
        return arrow.chosen(np.zeros(count, np.int32), [column])
    raise TypeError(f"no texts: {type(column).__name__}")


def packed(column: Spans | Listed, most: int | None = None) -> Child:
    """A column of texts, each cut at `most` characters."""
    if isinstance(column, Listed):
        return arrow.texts(
            column.texts if most is None else [None if t is None else cut(t, most) for t in column.texts]
        )
    is_null = column.starts < 0
    return arrow.packed(*(column.packed() if most is None else column.packed(most)), is_null if is_null.any() else None)
