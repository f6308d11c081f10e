"""Productions to programs: the words that the native scanner runs over bytes.

A production's pattern is parsed by Python's own parser of regular expressions, so that both mean the same; the scanner
backtracks as Python's does, so that both choose the same. Where nothing that may follow a repeated character could take
that character, the repeat gives nothing back. Programs are for ASCII text without newlines.
"""

from __future__ import annotations

import hashlib
import importlib
import re
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from replay.grammar.kept import keep, recall
from replay.grammar.texts import Codes, Places, Spans, native, rarest

codes: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
# Python's own parser has no public name; where it stands is the same since Python 3.11, the first that we run on.

_MATCH, _LITERAL, _SET, _REPEAT, _SPLIT, _JUMP, _SAVE, _BEHIND, _AHEAD, _AHEAD_END, _END, _BEGIN = range(12)
_GREEDY, _POSSESSIVE, _LAZY = range(3)
_ANYTHING = -1
_HEAD = 3
_EVERY = frozenset(range(128))
_SPACES = frozenset(c for c in range(128) if chr(c).isspace())
_DIGITS = frozenset(range(ord("0"), ord("9") + 1))
_WORDS = frozenset(c for c in range(128) if chr(c).isalnum() or c == ord("_"))
_CATEGORIES = {
    codes.CATEGORY_SPACE: _SPACES,
    codes.CATEGORY_NOT_SPACE: _EVERY - _SPACES,
    codes.CATEGORY_DIGIT: _DIGITS,
    codes.CATEGORY_NOT_DIGIT: _EVERY - _DIGITS,
    codes.CATEGORY_WORD: _WORDS,
    codes.CATEGORY_NOT_WORD: _EVERY - _WORDS,
}
_NEWLINE = frozenset({ord("\n")})
_MOST_COPIES = 64

Characters = frozenset[int]


class ProgramError(Exception):
    """A pattern uses what programs cannot do; the text says what."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern to be one production of a program. `needle` must be in each text that it takes."""

    pattern: str
    needle: str = ""


@dataclass(slots=True)
class Program:
    """What the scanner runs. `names`: for each production its groups, by name; group g is the rows 2g and 2g + 1."""

    words: npt.NDArray[np.int32]
    sets: npt.NDArray[np.uint8]
    slots: int
    names: list[dict[str, int]]

    def one(self, text: str) -> tuple[Any, ...] | None:
        """Return the production that takes a text of ASCII without newlines (-2: Python is to say) and what its groups
        took, None where none does.
        """
        found: tuple[Any, ...] | None = native.one(self.words, self.sets, text)
        return found

    def run(self, texts: Spans) -> tuple[npt.NDArray[np.int16], Codes]:
        """Return which production took each text (-1: none, -2: Python is to say), and a row for each begin and end of
        a group: where in the buffer it is, below 0 where the group took nothing. Of a text only the groups of its
        production are set.
        """
        taken = np.empty(len(texts), np.int16)
        spans = np.empty((self.slots, len(texts)), np.int32)
        starts, ends = np.ascontiguousarray(texts.starts), np.ascontiguousarray(texts.ends)
        native.match(self.words, self.sets, texts.data, starts, ends, taken, spans)
        return taken, spans


def group_of(data: bytes, spans: Codes, group: int, where: Places) -> Spans:
    """What a group took of the texts at these places, from what Program.run tells."""
    starts, ends = spans[2 * group], spans[2 * group + 1]
    if len(where) < len(starts):
        starts, ends = starts.take(where), ends.take(where)
    return Spans(data, starts, ends)


@dataclass(slots=True)
class _Assembler:
    words: list[int] = field(default_factory=list)
    sets: dict[Characters, int] = field(default_factory=dict)

    def set(self, characters: Characters) -> int:
        return _ANYTHING if characters >= _EVERY - _NEWLINE else self.sets.setdefault(characters, len(self.sets))

    def literal(self, text: bytes) -> None:
        self.words += [_LITERAL, len(text), *_packed(text)]


def compile_program(patterns: Sequence[Pattern]) -> Program:
    """Compile patterns, in order of preference. Raises ProgramError."""
    name = "program-" + hashlib.sha256(repr(patterns).encode()).hexdigest()[:16]
    known = recall(name)
    if known is not None:
        words = np.frombuffer(b64decode(known["words"]), np.int32)
        sets = np.frombuffer(b64decode(known["sets"]), np.uint8).reshape(-1, 256)
        return Program(words, sets, known["slots"], known["names"])
    made = _compiled(patterns)
    words_text, sets_text = (b64encode(array.tobytes()).decode() for array in (made.words, made.sets))
    keep(name, {"words": words_text, "sets": sets_text, "slots": made.slots, "names": made.names})
    return made


def _compiled(patterns: Sequence[Pattern]) -> Program:
    out = _Assembler()
    trees = [parser.parse(p.pattern) for p in patterns]
    items = [_plain(list(tree), folds=False) for tree in trees]
    names = [{name: number - 1 for name, number in tree.state.groupdict.items()} for tree in trees]
    slots = max((2 * (tree.state.groups - 1) for tree in trees), default=0)
    table = _HEAD + 256
    out.words = [slots, _HEAD, table] + [0] * 256 + [0] * (4 * len(trees))
    for number, (tree, pattern, sequence) in enumerate(zip(trees, patterns, items, strict=True)):
        needle = pattern.needle.encode()
        place = 0
        if len(needle) > 1:
            place = len(out.words)
            out.words += [len(needle), rarest(needle), *_packed(needle)]
        at = table + 4 * number
        out.words[at : at + 4] = [len(out.words), 2 * (tree.state.groups - 1), _shortest(sequence), place]
        _sequence(out, sequence, frozenset())
        out.words.append(_MATCH)
    firsts = [_first(sequence) for sequence in items]
    lists: dict[tuple[int, ...], int] = {}
    for character in range(256):
        chosen = tuple(n for n, (begins, _) in enumerate(firsts) if character in begins or character >= 128)
        if chosen not in lists:
            lists[chosen] = len(out.words)
            out.words += [len(chosen), *chosen]
        out.words[_HEAD + character] = lists[chosen]
    sets = np.zeros((max(len(out.sets), 1), 256), np.uint8)
    for characters, number in out.sets.items():
        sets[number, list(characters)] = 1
    return Program(np.array(out.words, np.int32), sets, slots, names)


def _plain(items: list[Any], *, folds: bool) -> list[Any]:
    """Items without flags: where case is ignored, both cases of a letter are named."""
    plain: list[Any] = []
    for operator, argument in items:
        if operator is codes.SUBPATTERN:
            group, on, off, inner = argument
            if off or on not in {0, re.IGNORECASE}:
                raise ProgramError("flags inside a pattern")
            plain.append((operator, (group, 0, 0, _plain(list(inner), folds=folds or bool(on)))))
        elif operator in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
            least, most, inner = argument
            plain.append((operator, (least, most, _plain(list(inner), folds=folds))))
        elif operator is codes.BRANCH:
            plain.append((operator, (argument[0], [_plain(list(branch), folds=folds) for branch in argument[1]])))
        elif operator in {codes.ASSERT, codes.ASSERT_NOT}:
            plain.append((operator, (argument[0], _plain(list(argument[1]), folds=folds))))
        elif folds and (characters := _characters(operator, argument)) is not None and operator is not codes.ANY:
            both = {ord(case) for c in characters for case in (chr(c).lower(), chr(c).upper()) if c < 128}
            is_negated = operator is codes.NOT_LITERAL or (operator is codes.IN and argument[0][0] is codes.NEGATE)
            if is_negated:
                gone = _EVERY - characters
                both = set(_EVERY) - {ord(case) for c in gone for case in (chr(c).lower(), chr(c).upper())}
            plain.append((codes.IN, [(codes.LITERAL, c) for c in sorted(both)]))
        else:
            plain.append((operator, argument))
    return plain


def _shortest(items: list[Any]) -> int:
    """The fewest characters that a sequence takes."""
    total = 0
    for operator, argument in items:
        if _characters(operator, argument) is not None:
            total += 1
        elif operator in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
            total += argument[0] * _shortest(argument[2])
        elif operator is codes.SUBPATTERN:
            total += _shortest(argument[3])
        elif operator is codes.BRANCH:
            total += min(_shortest(branch) for branch in argument[1])
    return total


def _packed(text: bytes) -> list[int]:
    padded = text + b"\0" * (-len(text) % 4)
    return [int(word) for word in np.frombuffer(padded, np.int32)]


def _sequence(out: _Assembler, items: list[Any], follow: Characters) -> None:
    """Write a sequence; `follow` is what may come behind it, nothing if that is the end of the text."""
    run = bytearray()
    for n, (operator, argument) in enumerate(items):
        if operator is codes.LITERAL:
            run.append(_ascii(argument))
            continue
        if run:
            out.literal(bytes(run))
            run.clear()
        begins, may_be_empty = _first(items[n + 1 :])
        _item(out, operator, argument, begins | follow if may_be_empty else begins)
    if run:
        out.literal(bytes(run))


def _item(out: _Assembler, operator: Any, argument: Any, follow: Characters) -> None:
    words = out.words
    characters = _characters(operator, argument)
    if characters is not None:
        words += [_SET, out.set(characters)]
    elif operator in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        _repeat(out, operator, argument, follow)
    elif operator is codes.SUBPATTERN:
        group, _on, _off, inner = argument
        if group is not None:
            words += [_SAVE, 2 * (group - 1)]
        _sequence(out, list(inner), follow)
        if group is not None:
            words += [_SAVE, 2 * (group - 1) + 1]
    elif operator is codes.BRANCH:
        ends = []
        branches = argument[1]
        for branch in branches[:-1]:
            at = len(words)
            words += [_SPLIT, at + 3, 0]
            _sequence(out, list(branch), follow)
            ends.append(len(words) + 1)
            words += [_JUMP, 0]
            words[at + 2] = len(words)
        _sequence(out, list(branches[-1]), follow)
        for end in ends:
            words[end] = len(words)
    elif operator in {codes.ASSERT, codes.ASSERT_NOT}:
        _look(out, argument, is_to=int(operator is codes.ASSERT))
    elif operator is codes.AT:
        words.append(_END if argument in {codes.AT_END, codes.AT_END_STRING} else _begin(argument))
    else:
        raise ProgramError(f"{operator}")


def _begin(where: Any) -> int:
    if where in {codes.AT_BEGINNING, codes.AT_BEGINNING_STRING}:
        return _BEGIN
    raise ProgramError(f"{where}")


def _look(out: _Assembler, argument: tuple[int, Any], *, is_to: int) -> None:
    direction, inner = argument
    if _has_groups(list(inner)):
        raise ProgramError("a group inside of an assertion")
    if direction < 0:
        items = list(inner)
        characters = _characters(*items[0]) if len(items) == 1 else None
        if characters is None:
            raise ProgramError("a look behind at more than one character")
        out.words += [_BEHIND, out.set(characters), is_to]
        return
    at = len(out.words)
    out.words += [_AHEAD, is_to, 0]
    _sequence(out, list(inner), _EVERY)
    out.words.append(_AHEAD_END)
    out.words[at + 2] = len(out.words)


def _repeat(out: _Assembler, operator: Any, argument: tuple[int, int, Any], follow: Characters) -> None:
    least, most, inner = argument
    words, items = out.words, list(inner)
    is_endless = most is codes.MAXREPEAT
    characters = _characters(*items[0]) if len(items) == 1 else None
    is_lazy = operator is codes.MIN_REPEAT
    if characters is not None:
        kind = _LAZY if is_lazy else _GREEDY if characters & follow else _POSSESSIVE
        words += [_REPEAT, out.set(characters), int(least), -1 if is_endless else int(most), kind]
        return
    if is_endless and _shortest(items) == 0:
        raise ProgramError("an endless repeat of what may be empty")
    copies = int(least) + (0 if is_endless else int(most) - int(least))
    if copies > _MOST_COPIES:
        raise ProgramError("too many copies of a group")
    inside = _first(items)[0] | follow
    for _ in range(least):
        _sequence(out, items, inside)
    if is_endless:
        begin = len(words)
        at = _split(words, is_lazy=is_lazy)
        _sequence(out, items, inside)
        words += [_JUMP, begin]
        words[at] = len(words)
        return
    exits = []
    for _ in range(int(most) - int(least)):
        exits.append(_split(words, is_lazy=is_lazy))
        _sequence(out, items, inside)
    for at in exits:
        words[at] = len(words)


def _split(words: list[int], *, is_lazy: bool) -> int:
    """Write a choice between going on behind it and a place to be filled in; return where that is."""
    at = len(words)
    words += [_SPLIT, 0, at + 3] if is_lazy else [_SPLIT, at + 3, 0]
    return at + 1 if is_lazy else at + 2


def _characters(operator: Any, argument: Any) -> Characters | None:
    """The characters that an item of one character takes, None where it is of another kind."""
    if operator is codes.LITERAL:
        return frozenset({_ascii(argument)})
    if operator is codes.NOT_LITERAL:
        return _EVERY - {argument}
    if operator is codes.ANY:
        return _EVERY - _NEWLINE
    if operator is not codes.IN:
        return None
    members: set[int] = set()
    is_negated = False
    for kind, value in argument:
        if kind is codes.NEGATE:
            is_negated = True
        elif kind is codes.LITERAL:
            members.add(value)
        elif kind is codes.RANGE:
            members.update(range(value[0], min(value[1], 127) + 1))
        elif kind is codes.CATEGORY and value in _CATEGORIES:
            members |= _CATEGORIES[value]
        else:
            raise ProgramError(f"{kind} {value}")
    return _EVERY - members if is_negated else _EVERY & members


def _ascii(character: int) -> int:
    """A character as a byte; one that is not ASCII is in no text, so a byte does for it that is in none."""
    return character if character < 128 else 255


def _first(items: list[Any]) -> tuple[Characters, bool]:
    """The characters that a sequence may begin with, and whether it may take nothing."""
    begins: Characters = frozenset()
    for operator, argument in items:
        own, may_be_empty = _first_of(operator, argument)
        begins |= own
        if not may_be_empty:
            return begins, False
    return begins, True


def _first_of(operator: Any, argument: Any) -> tuple[Characters, bool]:
    characters = _characters(operator, argument)
    if characters is not None:
        return characters, False
    if operator in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
        begins, may_be_empty = _first(list(argument[2]))
        return begins, may_be_empty or argument[0] == 0
    if operator is codes.SUBPATTERN:
        return _first(list(argument[3]))
    if operator is codes.BRANCH:
        found = [_first(list(branch)) for branch in argument[1]]
        return frozenset[int]().union(*(f[0] for f in found)), any(f[1] for f in found)
    if operator is codes.AT and argument in {codes.AT_END, codes.AT_END_STRING}:
        return frozenset(), True
    return _EVERY, True  # an assertion takes nothing, and lets through what it likes


def _has_groups(items: list[Any]) -> bool:
    return any(
        (operator is codes.SUBPATTERN and (argument[0] is not None or _has_groups(list(argument[3]))))
        or (operator in {codes.MAX_REPEAT, codes.MIN_REPEAT} and _has_groups(list(argument[2])))
        or (operator is codes.BRANCH and any(_has_groups(list(branch)) for branch in argument[1]))
        for operator, argument in items
    )
