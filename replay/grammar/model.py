"""What a grammar gives: productions, and matches of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Production:
    """One alternative of a top-level rule, compiled.

    `form` is the rule's name, `record` its alias (`-> alias`) or else its name. `pattern` is a regular expression for
    the whole text; its groups are named after terminals in lower case (`name__2` where one occurs twice).
    `prefix` is the literal that each matching text begins with, `needle` the longest literal that it must contain.
    """

    form: str
    record: str
    pattern: str
    prefix: str
    needle: str


@dataclass(frozen=True, slots=True)
class Family:
    """The productions of one grammar file, in order of preference."""

    name: str
    productions: tuple[Production, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """One text, taken by one production. `fields` are its terminals in lower case; an optional terminal that is absent
    is not there.
    """

    family: str
    form: str
    record: str
    fields: dict[str, str]


class Executor(Protocol):
    """Runs a family over texts. Executors are exchangeable: all give the same matches."""

    def match(self, family: str, texts: Sequence[str]) -> list[Match | None]:
        """Return for each text the match of the first production that takes the whole of it, or None."""
        ...

    def find(self, family: str, text: str, start: int = 0) -> tuple[int, Match] | None:
        """Return where, from `start` on, the leftmost production begins that takes the text from there to its end."""
        ...
