"""What `explain` answers with."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["cause", "victim", "either", "none"]
"""cause: tells what went wrong; victim: suffers from something elsewhere; either: does not tell; none: no blame."""


@dataclass(frozen=True, slots=True)
class Field:
    """One value: its name, and what the name stands for ("" where the grammar alone names it)."""

    name: str
    value: str
    means: str


@dataclass(frozen=True, slots=True)
class Reader:
    """A rule that reads such a row: the step that does, and what the rule concludes."""

    rule: str
    step: str
    cause: str
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code or name stands for. `what` is its kind (signal, Xid, variable), `source` the file that says it."""

    what: str
    name: str
    means: str
    role: Role
    look: str
    source: str
    read_by: tuple[Reader, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """The form of a text: who writes it (the head of the grammar file), where the form stands, what is said of it."""

    writer: str
    record: str
    place: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One row that the line makes, and how to take it."""

    table: str
    doc: str
    fields: tuple[Field, ...]
    role: Role
    means: str
    look: str
    codes: tuple[Meaning, ...]
    read_by: tuple[Reader, ...]


@dataclass(frozen=True, slots=True)
class PastedLine:
    """One line: its class (parsed, continuation, plain, malformed), header, form with fields and codes, and rows."""

    line: int
    text: str
    kind: str
    wrapper: str
    header: Written | None
    head: tuple[Field, ...]
    form: Written | None
    fields: tuple[Field, ...]
    codes: tuple[Meaning, ...]
    rows: tuple[Row, ...]

    @property
    def is_known(self) -> bool:
        """Something of it is known: its header, its form, or a row that it made."""
        return self.header is not None or self.form is not None or bool(self.rows)


@dataclass(frozen=True, slots=True)
class Near:
    """A known form or name that resembles what is not known."""

    looks: str
    place: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """The answer: meanings of a code, or lines; where nothing is known, what comes nearest."""

    text: str
    codes: tuple[Meaning, ...]
    lines: tuple[PastedLine, ...]
    nearest: tuple[Near, ...]

    @property
    def is_known(self) -> bool:
        """Something of it is known."""
        return bool(self.codes) or any(line.is_known for line in self.lines)
