"""Rows that a line tells by itself: which fields of a match make which columns. One table of them serves both ways of
reading, line by line and many lines at once.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from replay.grammar.bulk import Taken
from replay.grammar.numbers import integer
from replay.grammar.texts import computed
from replay.parse import model
from replay.parse.model import Segment, Sink, Value


class Column(NamedTuple):
    """A column made of fields: `make` gets their texts, None for those that are absent. Without fields, a constant.
    `base`: of a column that is the integer that its only field says.
    """

    make: Callable[..., Value]
    fields: tuple[str, ...] = ()
    base: int | None = None


def constant(value: Value) -> Column:
    """A column that is the same in every row."""
    return Column(lambda: value)


def text(field: str) -> Column:
    """A field as it stands there."""
    return Column(_same, (field,))


def number(field: str, base: int = 10) -> Column:
    """The integer that a field says."""
    return Column(integer if base == 10 else lambda digits: integer(digits, base), (field,), base)


class Rows(NamedTuple):
    """One row of `table` for each match."""

    table: str
    columns: Mapping[str, Column]

    def row(self, sink: Sink, segment: Segment, **more: Value) -> None:
        """Add the row of one line."""
        fields = segment.fields
        told = {name: column.make(*map(fields.get, column.fields)) for name, column in self.columns.items()}
        sink.row(self.table, segment, **told | more)

    def many(self, taken: Taken) -> dict[str, model.Column]:
        """Return the columns of many lines. What a log tells of is told again and again: each value is made once."""
        return {name: _made(column, taken) for name, column in self.columns.items()}


def _made(column: Column, taken: Taken) -> model.Column:
    if not column.fields:
        return column.make()
    fields = [taken.field(name) for name in column.fields]
    if column.base is not None:
        return fields[0].integers(column.base)
    if column.make is _same:
        return fields[0]
    return computed(column.make, [field.coded() for field in fields])


def _same(value: Value) -> Value:
    return value
