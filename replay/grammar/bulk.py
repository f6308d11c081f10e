"""The executor for many texts at once: the same productions in the same order as ReExecutor, and columns instead of
matches. Texts that are pieces of a buffer go through the native scanner, others through Python's patterns, production
by production; what it saves there is everything that is done for each text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from replay.grammar import texts as columns
from replay.grammar.compile import load
from replay.grammar.executor import KEY, may_begin
from replay.grammar.model import Production
from replay.grammar.program import Pattern, Program, compile_program, group_of
from replay.grammar.texts import Codes, Listed, Places, Spans, Texts

_MAX_KEYS = 8192
_UNSURE = -2
"""The scanner lost its patience with a text."""


@dataclass(slots=True)
class Taken:
    """The texts that one production took: `where` are their places in the column that was handed over."""

    family: str
    production: Production
    where: Places
    groups: Sequence[str]
    _column: Callable[[str], Texts] = field(repr=False)

    def field(self, name: str) -> Texts:
        """A field of the texts, in the order of `where`; None where it is absent."""
        own = [g for g in self.groups if g == name or g.startswith(name + "__")]
        if not own:
            return columns.absent(len(self.where))
        found = [self._column(group) for group in own]
        return found[0] if len(found) == 1 else _first(found)

    def pick(self, kept: Places) -> Taken:
        """Some of the texts, by their places in `where`."""
        whole = self._column
        return Taken(self.family, self.production, self.where[kept], self.groups, lambda group: whole(group).pick(kept))

    def rows(self) -> list[dict[str, str]]:
        """The fields of each text, as a match has them."""
        names = list(dict.fromkeys(group.split("__")[0] for group in self.groups))
        return columns.rows_of(names, [self.field(name) for name in names], len(self.where))

    def has(self, name: str) -> bool:
        """Whether the production has such a field."""
        return any(g.split("__")[0] == name for g in self.groups)


def _first(found: list[Texts]) -> Texts:
    """Of a terminal that stands in several places, the first that took something."""
    if all(isinstance(texts, Spans) for texts in found):
        spans = [texts for texts in found if isinstance(texts, Spans)]
        starts, ends = spans[0].starts.copy(), spans[0].ends.copy()
        for later in spans[1:]:
            is_absent = starts < 0
            starts[is_absent], ends[is_absent] = later.starts[is_absent], later.ends[is_absent]
        return Spans(spans[0].data, starts, ends)
    return Listed([next((t for t in row if t is not None), None) for row in zip(*found, strict=True)])


class BulkExecutor:
    """Runs the productions of some families, in order of preference, over columns of texts."""

    def __init__(self, families: Sequence[str]) -> None:
        self._all = [(family, production) for family in families for production in load(family).productions]
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._by_key: dict[str, tuple[int, ...]] = {}

    @cached_property
    def _program(self) -> Program:
        return compile_program([Pattern(p.pattern, p.needle) for _, p in self._all])

    def take(self, texts: Texts) -> tuple[list[Taken], Places]:
        """Return what each production took, a text by the first that takes the whole of it, and the rest's places."""
        return self._scan(texts) if isinstance(texts, Spans) else self._match(texts, range(len(texts)))

    def _scan(self, texts: Spans) -> tuple[list[Taken], Places]:
        by, spans = self._program.run(texts)
        taken: list[Taken] = []
        for number in np.unique(by).tolist():
            if number < 0:
                continue
            where = np.flatnonzero(by == number)
            family, production = self._all[number]
            groups = self._program.names[number]
            taken.append(Taken(family, production, where, list(groups), _Spanned(texts.data, spans, where, groups)))
        rest = np.flatnonzero(by < 0)
        unsure = np.flatnonzero(by == _UNSURE)
        if len(unsure):
            more, left = self._match(Listed(list(texts.pick(unsure))), unsure.tolist())
            taken += more
            rest = np.concatenate([rest[by[rest] != _UNSURE], left])
        return taken, rest

    def _match(self, texts: Listed, names: Sequence[int]) -> tuple[list[Taken], Places]:
        """Take texts whose places are told by `names`."""
        by_key: defaultdict[str, list[int]] = defaultdict(list)
        strings = [text or "" for text in texts.texts]
        for place, text in enumerate(strings):
            by_key[text[:KEY]].append(place)
        by_candidates: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for key, places in by_key.items():
            by_candidates[self._candidates(key) if key else ()] += places  # none takes the empty text
        found: dict[int, tuple[list[int], list[re.Match[str]]]] = {}
        left: list[int] = []
        for candidates, places in by_candidates.items():
            rest = places
            for number in candidates:
                if not rest:
                    break
                rest = self._try(number, strings, rest, found)
            left += rest
        taken = []
        for number, (where, matches) in found.items():
            family, production = self._all[number]
            groups = list(self._compiled[number].groupindex)
            at = np.array([names[place] for place in where], np.intp)
            taken.append(Taken(family, production, at, groups, _Matched(matches)))
        return taken, np.array([names[place] for place in left], np.intp)

    def _try(
        self,
        number: int,
        texts: Sequence[str],
        places: list[int],
        found: dict[int, tuple[list[int], list[re.Match[str]]]],
    ) -> list[int]:
        production = self._all[number][1]
        needle = production.needle
        likely = [p for p in places if needle in texts[p]]
        if not likely:
            return places
        pattern = self._compiled.get(number)
        if pattern is None:
            pattern = self._compiled[number] = re.compile(production.pattern)
        match = pattern.fullmatch
        tried = [match(texts[p]) for p in likely]
        hits = [m for m in tried if m is not None]
        if not hits:
            return places
        where = likely if len(hits) == len(likely) else [p for p, m in zip(likely, tried, strict=True) if m is not None]
        known = found.setdefault(number, ([], []))
        known[0].extend(where)
        known[1].extend(hits)
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


class _Spanned:
    """Groups as the scanner placed them."""

    def __init__(self, data: bytes, spans: Codes, where: Places, groups: dict[str, int]) -> None:
        self._data, self._spans, self._where, self._groups = data, spans, where, groups

    def __call__(self, group: str) -> Texts:
        return group_of(self._data, self._spans, self._groups[group], self._where)


class _Matched:
    """Groups as Python's matches have them."""

    def __init__(self, found: list[re.Match[str]]) -> None:
        self._found = found

    def __call__(self, group: str) -> Texts:
        return Listed([m[group] for m in self._found])


@cache
def shared(families: tuple[str, ...]) -> BulkExecutor:
    """Return the executor of this process for these families."""
    return BulkExecutor(families)
