"""Lark's own reading of a line, to compare the compiled patterns with.

The tables are those that Lark makes of a grammar (LALR), one set for each alternative of a form. Only the lexer is not
Lark's: its lexers settle what a terminal takes before they know what follows, so here each terminal is tried at every
length at which Lark's pattern of it ends, the preferred one first, and given up again where the tables go no further.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import count
from typing import Any

from lark import Lark, Token, Tree
from lark.lexer import Lexer, TerminalDef
from lark.load_grammar import Grammar, GrammarBuilder
from lark.parsers.lalr_analysis import Shift

from replay.grammar.model import Match
from replay.resources import folder

_LAZY = re.compile(r"(?<!\\)[*+?}]\?")
"""In a terminal that takes as little as it can."""
_LOOKS = re.compile(r"\(\?<?[=!]|\\b|(?<!\\)\$")
_END = "$END"

Stack = tuple[Any, ...]


class _NoLexer(Lexer):
    """In place of Lark's lexers."""

    def __init__(self, conf: object) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        raise NotImplementedError


@lru_cache(maxsize=100_000)
def _compiled(pattern: str, behind: int | None) -> re.Pattern[str]:
    """A pattern, or one that ends where `behind` characters are left."""
    return re.compile(pattern if behind is None else rf"(?:{pattern})(?=[\s\S]{{{behind}}}\Z)")


def _ends(terminal: TerminalDef, text: str, begin: int) -> Iterator[int]:
    """Where a terminal that begins at a place may end, in the order in which its pattern prefers it."""
    pattern = terminal.pattern.to_regexp()
    first = _compiled(pattern, None).match(text, begin)
    if first is None:
        return
    yield first.end()
    if terminal.pattern.type == "str":
        return
    places = range(begin + 1, len(text) + 1)
    looks = _LOOKS.search(pattern) is not None
    for end in places if _LAZY.search(pattern) else reversed(places):
        if end == first.end():
            continue
        if looks:
            found = _compiled(pattern, len(text) - end).match(text, begin)
        else:
            found = _compiled(pattern, None).fullmatch(text, begin, end)
        if found:
            yield end


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a terminal stands in an alternative; the innermost repetition around it, 0 outside of all, with its first
    and last place; and the branches that it is in, of choices outside of repetitions.
    """

    at: int
    repetition: int
    branches: dict[int, int]
    first: int = -1
    last: int = -1

    def shuts_out(self, other: "_Place") -> bool:
        """Whether the other place is in another branch of a choice."""
        return any(other.branches.get(choice, branch) != branch for choice, branch in self.branches.items())


@dataclass(slots=True)
class _Alternative:
    """The tables of one alternative. `places` of each terminal, by its name, in the order of the grammar; `named` are
    those that have their name from the grammar, not from Lark.
    """

    form: str
    record: str
    tables: dict[Any, dict[str, tuple[Any, Any]]]
    begin: Any
    end: Any
    terminals: dict[str, TerminalDef]
    places: dict[str, list[_Place]]
    named: frozenset[str]

    def tokens(self, text: str) -> list[tuple[str, str]] | None:
        """Return the names and texts of the terminals, None where the alternative does not take the text."""
        dead: set[tuple[int, Stack]] = set()

        def go(at: int, stack: Stack, last: _Place) -> list[tuple[str, str]] | None:
            if (at, stack) in dead:
                return None
            for name, place in self.next(self.tables[stack[-1]], last):
                after = self.feed(stack, name)
                if after is None:
                    continue
                for end in _ends(self.terminals[name], text, at):
                    rest = go(end, after, place)
                    if rest is not None:
                        return [(name, text[at:end]), *rest]
            if at == len(text) and self.feed(stack, _END) is not None:
                return []
            dead.add((at, stack))
            return None

        return go(0, (self.begin,), _Place(-1, 0, {}))

    def next(self, row: dict[str, Any], last: _Place) -> list[tuple[str, _Place]]:
        """Terminals that may follow, as a pattern prefers them: what is optional rather than what comes behind it, and
        once more rather than on.
        """

        def rank(place: _Place) -> tuple[int, int]:
            if last.shuts_out(place):
                return 4, place.at
            if place.at > last.at:
                return (0 if place.at <= last.last else 2), place.at
            return (1 if place.at >= last.first >= 0 else 3), place.at

        found = [(name, min(self.places[name], key=rank)) for name in row if name in self.places]
        return sorted(found, key=lambda pair: rank(pair[1]))

    def fields(self, tokens: Sequence[tuple[str, str]]) -> dict[str, str]:
        """Of a terminal that stands in several places, what it took first."""
        fields: dict[str, str] = {}
        for name, text in tokens:
            if name in self.named and not name.startswith("_"):
                fields.setdefault(name.rsplit("__", maxsplit=1)[-1].lower(), text)
        return fields

    def feed(self, stack: Stack, name: str) -> Stack | None:
        """Return the stack behind a token, None where the tables do not take it."""
        while True:
            found = self.tables[stack[-1]].get(name)
            if found is None:
                return None
            action, argument = found
            if action is Shift:
                return (*stack, argument)
            size = len(argument.expansion)
            stack = stack[: len(stack) - size]
            _, target = self.tables[stack[-1]][argument.origin.name]
            stack = (*stack, target)
            if name == _END and target == self.end:
                return stack


def _needed(node: Any, bodies: dict[str, Any]) -> set[str]:
    """The names of the rules and terminals that a tree is made of."""
    found: set[str] = set()
    left = [node]
    while left:
        node = left.pop()
        if isinstance(node, Tree):
            left += node.children[: 1 if node.data == "alias" else None]
        elif node is not None and not isinstance(node, Token) and str(node.name) not in found:
            found.add(str(node.name))
            left.append(bodies[str(node.name)])
    return found


def _places(grammar: Grammar, tree: Any) -> dict[str, list[_Place]]:
    """The places of the terminals of a tree: by their names, or by what anonymous ones take."""
    rules = {str(rule[0]): rule[2] for rule in grammar.rule_defs}
    numbers, choices = count(1), count()
    found: list[tuple[str, _Place]] = []

    def walk(node: Any, repetition: int, branches: dict[int, int]) -> None:
        name = "" if isinstance(node, Tree) else str(node) if isinstance(node, Token) else str(node.name)
        if name in rules:
            node = rules[name]
        if not isinstance(node, Tree):
            found.append((name, _Place(len(found), repetition, branches)))
            return
        if node.data == "expr" and str(node.children[1]) != "?":
            repetition = next(numbers)
        choice = next(choices) if node.data == "expansions" and not repetition else None
        for number, child in enumerate(node.children[: 1 if node.data in {"alias", "expr"} else None]):
            walk(child, repetition, branches if choice is None else branches | {choice: number})

    walk(tree, 0, {})
    spans: dict[int, list[int]] = {}
    for _, place in found:
        spans.setdefault(place.repetition, []).append(place.at)
    places: dict[str, list[_Place]] = {}
    for name, place in found:
        span = spans[place.repetition] if place.repetition else [-1]
        places.setdefault(name, []).append(replace(place, first=span[0], last=span[-1]))
    return places


class Reference:
    """One grammar file, read by Lark."""

    def __init__(self, family: str) -> None:
        self.family = family
        path = folder("grammars") / f"{family}.lark"
        builder = GrammarBuilder(import_paths=[str(path.parent)])
        builder.load_grammar(path.read_text(encoding="utf8"), path.name)
        self.grammar = builder.build()
        self.alternatives = [self._alternative(*found) for found in self._forms()]

    def _forms(self) -> Iterator[tuple[str, Any]]:
        for rule, _, tree, _ in self.grammar.rule_defs:
            if not str(rule).startswith("_") and "__" not in str(rule):
                for alternative in tree.children:
                    yield from ((str(rule), branch) for branch in self._branches(alternative))

    def _branches(self, alternative: Any) -> Iterator[Any]:
        """The alternatives of a part that is all there is of an alternative: they are tried in their order, too."""
        symbol = alternative
        while isinstance(symbol, Tree) and len(symbol.children) == 1 and symbol.data in {"expansion", "value"}:
            symbol = symbol.children[0]
        rules = {str(rule[0]): rule[2] for rule in self.grammar.rule_defs}
        part = None if isinstance(symbol, Tree) else rules.get(str(symbol.name))
        if part is None:
            yield alternative
        else:
            for branch in part.children:
                yield from self._branches(branch)

    def _alternative(self, form: str, tree: Any) -> _Alternative:
        record = form
        if isinstance(tree, Tree) and tree.data == "alias":
            record = str(getattr(tree.children[1], "name", tree.children[1]) or form).rsplit("__", maxsplit=1)[-1]
        rules = {str(rule[0]): rule for rule in self.grammar.rule_defs}
        terms = {str(term[0]): term for term in self.grammar.term_defs}
        name, params, _, options = rules[form]
        needed = _needed(tree, {n: rule[2] for n, rule in rules.items()} | {n: term[1][0] for n, term in terms.items()})
        grammar = Grammar(
            [(name, params, Tree("expansions", [tree]), options), *(rules[n] for n in rules if n in needed)],
            [terms[n] for n in terms if n in needed],
            [],
        )
        lark = Lark(grammar, parser="lalr", lexer=_NoLexer, start=form)
        tables = lark.parser.parser.parser.parse_table
        order = _places(self.grammar, tree)
        places = {t.name: order.get(t.name) or order[t.pattern.raw or ""] for t in lark.terminals}
        terminals = {terminal.name: terminal for terminal in lark.terminals}
        begin, end = tables.start_states[form], tables.end_states[form]
        return _Alternative(
            form, record, tables.states, begin, end, terminals, places, frozenset(needed & terms.keys())
        )

    def one(self, text: str) -> Match | None:
        """Return what the first alternative that takes the whole of a text makes of it."""
        for alternative in self.alternatives:
            tokens = alternative.tokens(text)
            if tokens is not None:
                return Match(self.family, alternative.form, alternative.record, alternative.fields(tokens))
        return None


@cache
def reference(family: str) -> Reference:
    """Return Lark's reading of a grammar, made once."""
    return Reference(family)
