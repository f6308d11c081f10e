"""Rows that a line tells by itself: which fields of a match make which columns. One table of them serves both ways of
reading, line by line and many lines at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from replay.grammar.bulk import Columns
from replay.parse.model import Segment, Sink, Value
from replay.parse.numbers import integer


class Column(NamedTuple):
    """A column made of fields: `make` gets their texts, None for those that are absent. Without fields, a constant."""

    make: Callable[..., Value]
    fields: tuple[str, ...] = ()


def constant(value: Value) -> Column:
    """A column that is the same in every row."""
    return Column(lambda: value)


def text(field: str) -> Column:
    """A field as it stands there."""
    return Column(_same, (field,))


def number(field: str, base: int = 10) -> Column:
    """The integer that a field says."""
    return Column(integer if base == 10 else lambda digits: integer(digits, base), (field,))


class Rows(NamedTuple):
    """One row of `table` for each match."""

    table: str
    columns: Mapping[str, Column]

    def row(self, sink: Sink, segment: Segment, **more: Value) -> None:
        """Add the row of one line."""
        fields = segment.fields
        told = {name: column.make(*map(fields.get, column.fields)) for name, column in self.columns.items()}
        sink.row(self.table, segment, **told | more)

    def many(self, fields: Columns, count: int) -> dict[str, Sequence[Value]]:
        """Return the columns of many lines."""
        absent = (None,) * count
        return {
            name: _made(column.make, [fields.get(field, absent) for field in column.fields], count)
            for name, column in self.columns.items()
        }


def _made(make: Callable[..., Value], fields: list[Sequence[str | None]], count: int) -> Sequence[Value]:
    """Compute a column; what a log tells of is told again and again, so each value is made once."""
    if not fields:
        return (make(),) * count
    if make is _same:
        return fields[0]
    keys: Sequence[Any] = fields[0] if len(fields) == 1 else list(zip(*fields, strict=True))
    made = {key: make(key) for key in set(keys)} if len(fields) == 1 else {key: make(*key) for key in set(keys)}
    return [made[key] for key in keys]


def _same(value: Value) -> Value:
    return value
