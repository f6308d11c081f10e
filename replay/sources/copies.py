"""Finds files that hold the same stream twice: a console that tees what per-rank files hold as well, or a saved copy.

A wrong answer drops events, so a file counts as a copy only if each of its lines stands in the other file, as often,
from a writer that is known at least as well. Where ranks are not known, enough lines must have a stamp: no two
processes print those alike.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import islice

from replay.sources.model import Hints, Identity, SourceFile
from replay.sources.read import read_batches

_MAX_BYTES = 64 << 20
"""Larger files are not compared: nothing is marked, nothing is lost."""
_MIN_TELLING = 3
_TRIED = 16
_DIGIT = re.compile(r"\d")
_MOST_HOLDERS = 64
MANY_FILES, FEW_LINES = 200, 32
"""Of so many files only so many lines each are kept to find holders by."""

Lines = dict[Identity, Counter[int]]
"""How often each line (its hash) stands in a file, by who wrote it."""


def mark_copies(files: Sequence[SourceFile], heads: Mapping[int, Sequence[str]], hints: Hints) -> None:
    """Set `duplicate_of` of files whose content another file of the same run holds as well.

    `heads` are for each file_id some peeled lines of it, its first ones first.
    """
    _same_content(files, heads)
    _twins(files)
    texts = [f for f in files if f.kind == "text" and f.duplicate_of is None and 0 < f.size <= _MAX_BYTES]
    holders = _Holders(texts, heads, many=len(files) > MANY_FILES)
    read: dict[int, Lines] = {}
    for file in sorted(texts, key=lambda f: (f.size, -f.file_id)):
        knows = _knows_rank(file.identity)
        tried = [x for x in heads.get(file.file_id, ()) if x.strip()][:_TRIED] if knows else _telling(heads, file)
        others = [f for f in holders.of(file, tried) if f.duplicate_of is None]
        if others and (knows or len(tried) >= _MIN_TELLING):
            _compare(file, others, read, hints)


class _Holders:
    """Which files show a line. Of files that are of one rank only those of the same rank are looked at."""

    def __init__(self, texts: Sequence[SourceFile], heads: Mapping[int, Sequence[str]], many: bool) -> None:
        self._merged: defaultdict[str, list[SourceFile]] = defaultdict(list)
        self._ranked: defaultdict[str, list[SourceFile]] = defaultdict(list)
        self._of_rank: defaultdict[tuple[str, object], list[SourceFile]] = defaultdict(list)
        for file in texts:
            lines = heads.get(file.file_id, ())
            if _knows_rank(file.identity):
                for line in set(_telling(heads, file)):
                    self._add(self._ranked[line], file)
                    self._add(self._of_rank[line, _rank(file)], file)
            else:
                for line in set(lines[:FEW_LINES] if many else lines):
                    self._add(self._merged[line], file)

    @staticmethod
    def _add(held: list[SourceFile], file: SourceFile) -> None:
        if len(held) < _MOST_HOLDERS:
            held.append(file)

    def of(self, file: SourceFile, lines: Sequence[str]) -> list[SourceFile]:
        """Files of the same run that show one of the lines and may be from the same writers."""
        near: dict[int, SourceFile] = {}
        for line in lines:
            known = self._of_rank.get((line, _rank(file))) if _knows_rank(file.identity) else self._ranked.get(line)
            for other in (*self._merged.get(line, ()), *(known or ())):
                if _same_run(file, other):
                    near[other.file_id] = other
        return [near[n] for n in sorted(near)]


def _rank(file: SourceFile) -> object:
    return file.identity.rank, file.identity.local_rank, file.identity.host


def _knows_rank(who: Identity) -> bool:
    return who.rank is not None or who.local_rank is not None


def _compare(file: SourceFile, others: Sequence[SourceFile], read: dict[int, Lines], hints: Hints) -> None:
    own = _lines(file, read, hints)
    union: defaultdict[Identity, Counter[int]] = defaultdict(Counter)
    for other in others:
        held = _lines(other, read, hints)
        if all(_holds(who, lines, held) for who, lines in own.items()):
            file.duplicate_of = other.file_id
            return
        for who, lines in held.items():
            union[who] += lines
    if len(others) > 1 and all(_holds(who, lines, union) for who, lines in own.items()):
        file.duplicate_of = others[0].file_id


def _holds(who: Identity, lines: Counter[int], held: Lines) -> bool:
    """True if the writers in `held` that can be `who` wrote all the lines."""
    fitting: Counter[int] = sum((c for other, c in held.items() if _is_as_well_known(who, other)), Counter())
    return lines <= fitting


def _is_as_well_known(who: Identity, other: Identity) -> bool:
    """True if nothing is lost by taking the other's word for who wrote a line."""
    ranks = [(who.rank, other.rank), (who.local_rank, other.local_rank), (who.rank_guess, other.rank_guess)]
    if any(a is not None and b is not None and a != b for a, b in [*ranks, (who.host, other.host)]):
        return False
    knows = any(a is not None for a, _ in ranks)
    return not knows or other.rank is not None or other.local_rank is not None or other.rank_guess is not None


def _same_run(file: SourceFile, other: SourceFile) -> bool:
    if other.file_id == file.file_id or (other.run_key not in {"", file.run_key}):
        return False
    streams = {file.identity.stream, other.identity.stream} - {None}
    return len(streams) < 2


def _same_content(files: Sequence[SourceFile], heads: Mapping[int, Sequence[str]]) -> None:
    """Files with equal bytes and equal writer."""
    first: dict[tuple[object, ...], SourceFile] = {}
    for file in files:
        if file.size == 0 or not file.digest or file.kind in {"binary", "source", "empty", "unreadable"}:
            continue
        if file.kind == "text" and len(_telling(heads, file)) < _MIN_TELLING:
            continue
        same = first.setdefault((file.kind, file.digest, file.run_key, file.attempt, file.identity), file)
        if same is not file:
            file.duplicate_of = same.file_id


def _twins(files: Sequence[SourceFile]) -> None:
    """Torch writes a flight record as pickle and, asked to, as JSON beside it; the pickle has more."""
    records = {f.path: f for f in files if f.kind == "flight-recorder"}
    for path, file in records.items():
        pickle = records.get(path.removesuffix(".json"))
        if pickle is not None and pickle is not file and file.duplicate_of is None:
            file.duplicate_of = pickle.file_id


def _telling(heads: Mapping[int, Sequence[str]], file: SourceFile) -> list[str]:
    return list(islice(filter(_is_telling, heads.get(file.file_id, ())), _TRIED))


def _is_telling(line: str) -> bool:
    """True for a line with a stamp of some precision."""
    return line.count(":") >= 2 and len(_DIGIT.findall(line)) >= 10


def _lines(file: SourceFile, read: dict[int, Lines], hints: Hints) -> Lines:
    if file.file_id not in read:
        found: defaultdict[Identity, Counter[int]] = defaultdict(Counter)
        for batch in read_batches(file, hints):
            for line in batch:
                if text := line.text.strip():
                    key = blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
                    found[line.identity][int.from_bytes(key)] += 1
        read[file.file_id] = dict(found)
    return read[file.file_id]
