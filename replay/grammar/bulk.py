"""The executor for many texts at once. It runs the same patterns in the same order as ReExecutor; what it saves is
everything that is done for each text: it goes production by production, and hands out columns instead of matches.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from replay.grammar.compile import load
from replay.grammar.executor import KEY, may_begin
from replay.grammar.model import Production

_MAX_KEYS = 8192

Columns = dict[str, Sequence[str | None]]
"""Values by field, of texts in one order; None where an optional field is absent."""


@dataclass(slots=True)
class Taken:
    """The texts that one production took: `where` are their places in the list that was handed over."""

    family: str
    production: Production
    where: list[int]
    found: list[re.Match[str]] = field(repr=False)

    def columns(self) -> Columns:
        """Return the fields of the texts, in the order of `where`."""
        names = list(self.found[0].re.groupindex) if self.found else []
        columns: Columns = dict(zip(names, zip(*[m.groups() for m in self.found], strict=True), strict=True))
        for name in [n for n in columns if "__" in n]:
            # of a terminal that stands in several places, the first that took something
            later, first = columns.pop(name), name.split("__")[0]
            before = columns.get(first)
            columns[first] = (
                later if before is None else [a if a is not None else b for a, b in zip(before, later, strict=True)]
            )
        return columns


class BulkExecutor:
    """Runs the productions of some families, in order of preference, over lists of texts."""

    def __init__(self, families: Sequence[str]) -> None:
        self._all = [(family, production) for family in families for production in load(family).productions]
        self._compiled: dict[int, Callable[[str], re.Match[str] | None]] = {}
        self._by_key: dict[str, tuple[int, ...]] = {}

    def take(self, texts: Sequence[str]) -> tuple[list[Taken], list[int]]:
        """Return what each production took, a text by the first that takes the whole of it, and the rest's places."""
        by_key: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            by_key[text[:KEY]].append(place)
        by_candidates: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for key, places in by_key.items():
            by_candidates[self._candidates(key)] += places
        taken: dict[int, Taken] = {}
        left: list[int] = []
        for candidates, places in by_candidates.items():
            rest = places
            for number in candidates:
                if not rest:
                    break
                rest = self._try(number, texts, rest, taken)
            left += rest
        return list(taken.values()), left

    def _try(self, number: int, texts: Sequence[str], places: list[int], taken: dict[int, Taken]) -> list[int]:
        family, production = self._all[number]
        needle = production.needle
        likely = [p for p in places if needle in texts[p]]
        if not likely:
            return places
        match = self._compiled.get(number)
        if match is None:
            match = self._compiled[number] = re.compile(production.pattern).fullmatch
        found = [match(texts[p]) for p in likely]
        hits = [m for m in found if m is not None]
        if not hits:
            return places
        where = likely if len(hits) == len(likely) else [p for p, m in zip(likely, found, strict=True) if m is not None]
        known = taken.get(number)
        if known is None:
            taken[number] = Taken(family, production, where, hits)
        else:
            known.where += where
            known.found += hits
        if len(where) == len(places):
            return []
        gone = set(where)
        return [p for p in places if p not in gone]

    def _candidates(self, key: str) -> tuple[int, ...]:
        found = self._by_key.get(key)
        if found is None:
            found = tuple(n for n, (_, p) in enumerate(self._all) if may_begin(p.prefix, key))
            if len(self._by_key) < _MAX_KEYS:
                self._by_key[key] = found
        return found


@cache
def shared(families: tuple[str, ...]) -> BulkExecutor:
    """Return the executor of this process for these families."""
    return BulkExecutor(families)
