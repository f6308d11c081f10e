"""Takes wrappers off many lines at once, layer by layer, as Peeler does line by line.

The scanner says which form begins each line; what a form says of the writer and the time is made out once for each
different wrapper. Lines that it cannot judge (other than ASCII, escape sequences, JSON records, a form that the file
did not vote for) are peeled by themselves; their texts are put behind the buffer, so that all are pieces of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from replay.grammar.program import Pattern, Program, compile_program, group_of
from replay.grammar.texts import Coded, Codes, Listed, Mask, Places, Spans, Texts, combined, is_native
from replay.sources.model import MAX_LINE, Identity, Peeled, Wraps
from replay.sources.wrappers import MAX_LAYERS, Form, Peeler, Writer, fits, is_partial

_UNSURE = -2
_NOT_PLAIN = frozenset("\r\n")
_NOWHERE = np.empty(0, np.intp)


class Peeling(NamedTuple):
    """Lines without their wrappers. `raws` are the lines again, in the buffer of `texts`; `partial` those that go on in
    the container engine's next record; `is_plain` those of ASCII in one piece.
    """

    raws: Texts
    texts: Texts
    wraps: Wraps | None
    partial: Places
    is_plain: Mask


@lru_cache(maxsize=256)
def _program(patterns: tuple[str, ...]) -> Program:
    """The program of a launcher's forms; files of one run have few launchers."""
    return compile_program([Pattern(pattern) for pattern in patterns])


class ManyPeeler:
    """Peels the lines of one file."""

    def __init__(self, peeler: Peeler) -> None:
        self._peeler = peeler
        self._program = _program(tuple(form.pattern for form in peeler.forms)) if is_native() else None

    def peel(self, raws: Texts, odd: npt.NDArray[np.uint8]) -> Peeling:
        """Peel lines; `odd` as native.split tells it."""
        return self._spans(raws, odd) if isinstance(raws, Spans) else self._listed(raws)

    def _listed(self, raws: Listed) -> Peeling:
        strings = [text or "" for text in raws.texts]
        blob = "\n".join(strings)
        is_clean = not any(mark in blob for mark in ("\x1b", "\r", "\ufeff"))
        is_clean = is_clean and not (self._peeler.has_lost_escapes and "[" in blob)
        if is_clean and not any(map(self._peeler.begins, strings)):
            return Peeling(raws, raws, None, _NOWHERE, np.ones(len(strings), np.bool_))
        peeled = [self._peeler.peel(text) for text in strings]
        is_plain = np.array([_NOT_PLAIN.isdisjoint(line.text) for line in peeled], np.bool_)
        is_wrapped = np.array([line.text != text for line, text in zip(peeled, strings, strict=True)], np.bool_)
        ts = np.array([np.nan if line.t is None else line.t for line in peeled], np.float64)
        partial = np.array([n for n, line in enumerate(peeled) if line.partial], np.intp)
        wraps = Wraps(_writers(peeled), ts, is_wrapped)
        return Peeling(raws, Listed([line.text for line in peeled]), wraps, partial, is_plain)

    def _spans(self, raws: Spans, odd: npt.NDArray[np.uint8]) -> Peeling:
        work = _Work(self._peeler, raws, odd)
        if self._program is not None:
            for _ in range(MAX_LAYERS):
                active = work.active
                if not len(active):
                    break
                by, spans = self._program.run(Spans(raws.data, work.starts[active], work.ends[active]))
                work.by_hand[active[by == _UNSURE]] = True
                work.active = _NOWHERE
                for number in np.unique(by[by >= 0]).tolist():
                    chosen = np.flatnonzero(by == number)
                    groups = {
                        name: group_of(raws.data, spans, at, chosen) for name, at in self._program.names[number].items()
                    }
                    work.layer(number, self._peeler.forms[number], active[chosen], groups)
        return work.result()


class _Work:
    """Lines on the way: where what is left of each begins and ends, and what its layers told so far."""

    def __init__(self, peeler: Peeler, raws: Spans, odd: npt.NDArray[np.uint8]) -> None:
        self._peeler, self._raws = peeler, raws
        count = len(raws)
        self._bytes = np.frombuffer(raws.data, np.uint8)
        self.starts, self.ends = raws.starts.copy(), raws.ends.copy()
        self.by_hand = (odd > 0) | self._is_record(np.arange(count))
        if peeler.has_lost_escapes:
            self.by_hand |= raws.holding("[")
        self.active: Places = np.flatnonzero(~self.by_hand & (self.ends > self.starts))
        self._writers: list[Writer] = [peeler.root]
        self._numbers = {id(peeler.root): 0}
        self._who = np.zeros(count, np.int32)
        self._ts = np.full(count, np.nan)
        self._used = np.zeros(count, np.int64)
        self._partial = np.zeros(count, np.bool_)

    def _is_record(self, lines: Places) -> Mask:
        """Whether what is left of lines begins as a JSON record does."""
        if not len(self._bytes):
            return np.zeros(len(lines), np.bool_)
        starts = self.starts[lines]
        begins: Mask = self._bytes[np.minimum(starts, len(self._bytes) - 1)] == ord("{")
        return begins & (self.ends[lines] > starts)

    def layer(self, number: int, form: Form, lines: Places, groups: Mapping[str, Spans]) -> None:
        """Take one layer off lines that one form took."""
        voted = self._peeler.voted.get(form.name)
        coded = {name: texts.coded() for name, texts in groups.items() if name != "text"}
        codes, firsts = combined([Coded(self._who[lines], self._writers), *coded.values()])
        who = np.zeros(len(firsts), np.int32)
        ts = np.full(len(firsts), np.nan)
        is_cut = np.zeros(len(firsts), np.bool_)
        is_strange = np.zeros(len(firsts), np.bool_)
        for n, first in enumerate(firsts.tolist()):
            told = {name: column.values[column.codes[first]] for name, column in coded.items()}
            said = form.read(told)
            if voted is not None and not fits(voted, told, said):
                is_strange[n] = True
                continue
            who[n] = self._number(self._peeler.after(self._writers[self._who[lines[first]]], said))
            stamp = self._peeler.stamp(form, told)
            ts[n] = np.nan if stamp is None else stamp
            is_cut[n] = is_partial(form, told)
        strange = is_strange[codes]
        if voted is not None:
            bit = np.int64(1 << (number % 63))
            strange |= (self._used[lines] & bit) != 0
            self._used[lines] |= bit
        self.by_hand[lines[strange]] = True
        kept = ~strange
        lines, codes, texts = lines[kept], codes[kept], groups["text"]
        self._who[lines] = who[codes]
        self._ts[lines] = np.where(np.isnan(self._ts[lines]), ts[codes], self._ts[lines])
        self._partial[lines] |= is_cut[codes]
        is_absent = texts.starts[kept] < 0
        self.starts[lines] = np.where(is_absent, self.ends[lines], texts.starts[kept])
        self.by_hand[lines[self._is_record(lines)]] = True
        going = lines[(self.ends[lines] > self.starts[lines]) & ~self.by_hand[lines]]
        self.active = np.concatenate([self.active, going])

    def _number(self, writer: Writer) -> int:
        number = self._numbers.get(id(writer))
        if number is None:
            number = self._numbers[id(writer)] = len(self._writers)
            self._writers.append(writer)
        return number

    def result(self) -> Peeling:
        """Peel what is left to be peeled by itself, and put all together."""
        raws, count = self._raws, len(self._raws)
        is_plain = np.ones(count, np.bool_)
        is_wrapped = self.starts != raws.starts
        identities = [writer.identity for writer in self._writers]
        behind: list[bytes] = []
        end = len(raws.data)
        for place in np.flatnonzero(self.by_hand).tolist():
            raw = (raws[place] or "")[:MAX_LINE]
            line = self._peeler.peel(raw)
            is_plain[place] = line.text.isascii() and _NOT_PLAIN.isdisjoint(line.text)
            is_wrapped[place] = line.text != raw
            self._ts[place] = np.nan if line.t is None else line.t
            self._partial[place] = line.partial
            self._who[place] = 0
            self.starts[place] = raws.starts[place]
            if is_wrapped[place] or line.identity is not identities[0] or line.t is not None:
                self._who[place] = len(identities)
                identities.append(line.identity)
                text = line.text.encode("utf-8", "replace")
                behind.append(text)
                self.starts[place], self.ends[place] = end, end + len(text)
                end += len(text)
        partial = np.flatnonzero(self._partial)
        if not is_wrapped.any() and not behind:
            return Peeling(raws, raws, None, partial, is_plain)
        data = raws.data + b"".join(behind) if behind else raws.data
        wraps = Wraps(Coded(self._who, identities), self._ts, is_wrapped)
        texts = Spans(data, self.starts, self.ends)
        return Peeling(Spans(data, raws.starts, raws.ends), texts, wraps, partial, is_plain)


def _writers(peeled: list[Peeled]) -> Coded:
    numbers: dict[int, int] = {}
    identities: list[Identity] = []
    codes: Codes = np.empty(len(peeled), np.int32)
    for n, line in enumerate(peeled):
        number = numbers.get(id(line.identity))
        if number is None:
            number = numbers[id(line.identity)] = len(identities)
            identities.append(line.identity)
        codes[n] = number
    return Coded(codes, identities)
