"""The executor for one text: the productions of a family, tried in order, compiled when first needed."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from replay.grammar.compile import load
from replay.grammar.model import Family, Match, Production
from replay.grammar.program import Pattern, Program, ProgramError, compile_program
from replay.grammar.texts import is_native

KEY = 4
"""Characters of a text that choose the productions worth trying."""
_MAX_KEYS = 8192


class _Candidate:
    """A production with its pattern, compiled on first use."""

    __slots__ = ("_match", "_scan", "_search", "family", "groups", "needle", "production")

    def __init__(self, family: str, production: Production) -> None:
        self.family, self.production, self.needle = family, production, production.needle
        self._match: Callable[[str], re.Match[str] | None] | None = None
        self._search: Callable[[str, int], re.Match[str] | None] | None = None
        self._scan: Callable[[str], Iterator[re.Match[str]]] | None = None

    def match(self, text: str) -> Match | None:
        if self._match is None:
            self._match = re.compile(self.production.pattern).fullmatch
        found = self._match(text)
        return self.result(found) if found else None

    def search(self, text: str, start: int) -> re.Match[str] | None:
        if self._search is None:
            self._search = re.compile(self.production.pattern + r"\Z").search
        return self._search(text, start)

    def scan(self, text: str) -> Iterator[re.Match[str]]:
        if self._scan is None:
            self._scan = re.compile(self.production.pattern).finditer
        return self._scan(text)

    def result(self, found: re.Match[str]) -> Match:
        return Match(self.family, self.production.form, self.production.record, _fields(found))


def _fields(found: re.Match[str]) -> dict[str, str]:
    """The groups of a match; of a terminal that stands in several places, the first that took something."""
    fields = {k: v for k, v in found.groupdict().items() if v is not None}
    for name in [n for n in fields if "__" in n]:
        fields.setdefault(name.split("__")[0], fields.pop(name))
    return fields


class _Dispatch:
    """The candidates of one family by the first characters of a text. `program`: the same for the native scanner, None
    where there is none or a pattern is beyond it.
    """

    def __init__(self, family: Family) -> None:
        self.program: Program | None = None
        if is_native():
            with suppress(ProgramError):
                self.program = compile_program([Pattern(p.pattern, p.needle) for p in family.productions])
        self.names = [[g.split("__")[0] for g in groups] for groups in (self.program.names if self.program else [])]
        self.all = [_Candidate(family.name, p) for p in family.productions]
        self.by_key: dict[str, list[_Candidate]] = {}

    def candidates(self, text: str) -> list[_Candidate]:
        key = text[:KEY]
        found = self.by_key.get(key)
        if found is None:
            found = [c for c in self.all if may_begin(c.production.prefix, key)]
            if len(self.by_key) < _MAX_KEYS:
                self.by_key[key] = found
        return found


def may_begin(prefix: str, key: str) -> bool:
    return prefix.startswith(key) if len(prefix) >= len(key) == KEY else key.startswith(prefix)


class ReExecutor:
    """Implements `replay.grammar.model.Executor` with Python's `re`, and with the native scanner where that can say."""

    def __init__(self) -> None:
        self._families: dict[str, _Dispatch] = {}

    def _family(self, name: str) -> _Dispatch:
        if name not in self._families:
            self._families[name] = _Dispatch(load(name))
        return self._families[name]

    def one(self, family: str, text: str) -> Match | None:
        """Match one text; see Executor.match. No production takes the empty text."""
        if not text:
            return None
        dispatch = self._family(family)
        if dispatch.program is not None and text.isascii() and "\n" not in text:
            told = dispatch.program.one(text)
            if told is None:
                return None
            number, *groups = told
            if number >= 0:
                fields: dict[str, str] = {}
                for name, value in zip(dispatch.names[number], groups, strict=True):
                    if value is not None:
                        fields.setdefault(name, value)
                production = dispatch.all[number].production
                return Match(family, production.form, production.record, fields)
        for candidate in dispatch.candidates(text):
            if candidate.needle in text and (found := candidate.match(text)):
                return found
        return None

    def match(self, family: str, texts: Sequence[str]) -> list[Match | None]:
        """See Executor.match."""
        return [self.one(family, text) for text in texts]

    def scan(self, family: str, text: str) -> list[tuple[int, int, dict[str, str]]]:
        """Return start, end and fields of all that the only production of a family takes in a text, in order."""
        candidates = self._family(family).all
        if len(candidates) != 1:
            raise ValueError(f"{family} has {len(candidates)} productions; only a family of one is scanned")
        return [(found.start(), found.end(), _fields(found)) for found in candidates[0].scan(text)]

    def find(self, family: str, text: str, start: int = 0) -> tuple[int, Match] | None:
        """See Executor.find."""
        best: tuple[int, Match] | None = None
        for candidate in self._family(family).all:
            if candidate.needle and candidate.needle not in text[start:]:
                continue
            found = candidate.search(text, start)
            if found and (best is None or found.start() < best[0]):
                best = (found.start(), candidate.result(found))
        return best


@cache
def shared() -> ReExecutor:
    """Return the executor of this process, so that every pattern is compiled once."""
    return ReExecutor()
