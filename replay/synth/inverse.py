"""Lines made from the grammars: the inverse of a production.

A production takes a text apart into its fields; here its fields are put together again. So a synthetic line is not a
second spelling of a format: where a grammar changes, the writer changes with it.

The inverse of an alternative is made once for the set of fields that a caller fills, and kept as a tuple of literals
and names: writing a line is a join. Where the grammar leaves a choice (`"."?`, `" "*`, `/[rR]/`) that no field decides,
the caller decides it: `keep` names the optional literals to write, `runs` the lengths of repeated literals, `inline`
the texts of patterns that have no name, each in the order in which they stand. Where several forms give one record with
the same fields, `saying` is a part of the literals of the one that is meant.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from lark import Token, Tree
from lark.load_grammar import GrammarBuilder

from replay.errors import ReplayError
from replay.resources import folder


class NoInverse(ReplayError):
    """No alternative of the grammar writes these fields; the text names family, record and fields."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a caller fills and decides."""

    fields: frozenset[str]
    keep: frozenset[str]
    runs: tuple[int, ...]
    inline: tuple[str, ...]
    saying: str


class _Missing(Exception):
    """An alternative needs a field that is not filled."""


@dataclass(slots=True)
class _Text:
    """Part of an inverse: literals (str) and the names of fields (in a tuple of one), the fields used, what is left of
    the caller's decisions.
    """

    parts: list[str | tuple[str]]
    used: set[str]
    runs: tuple[int, ...]
    inline: tuple[str, ...]


class _Grammar:
    """One grammar file as trees."""

    def __init__(self, name: str) -> None:
        path = folder("grammars") / f"{name}.lark"
        builder = GrammarBuilder(import_paths=[str(path.parent)])
        builder.load_grammar(path.read_text(encoding="utf8"), f"{name}.lark")
        grammar = builder.build()
        self.name = name
        self.rules: dict[str, Tree[Any]] = {str(rule[0]): rule[2] for rule in grammar.rule_defs}
        self.terms: dict[str, Any] = {str(term[0]): term[1][0] for term in grammar.term_defs}

    def alternatives(self, record: str) -> Iterator[Any]:
        """The alternatives of forms that give the record, or of the form of that name."""
        for form, tree in self.rules.items():
            if form.startswith("_") or "__" in form:
                continue
            for alternative in tree.children:
                body, alias = alternative, form
                if isinstance(alternative, Tree) and alternative.data == "alias":
                    body, told = alternative.children
                    alias = str(getattr(told, "name", told) or form).rsplit("__", maxsplit=1)[-1]
                if record in (alias, form):
                    yield body

    def write(self, node: Any, wanted: _Wanted, state: _Text) -> _Text:
        """The state behind a node; raises _Missing."""
        if isinstance(node, Token):
            return self.literal(node, state)
        if not isinstance(node, Tree):
            return self.symbol(str(node.name), wanted, state)
        kids = node.children
        match node.data:
            case "value" | "literal" | "alias":
                return self.write(kids[0], wanted, state)
            case "expansion":
                for kid in kids:
                    state = self.write(kid, wanted, state)
                return state
            case "expansions":
                return self.choose(kids, wanted, state)
            case "maybe":
                return self.optional(kids[0], wanted, state)
            case "expr" if str(kids[1]) == "?":
                return self.optional(kids[0], wanted, state)
            case "expr":
                return self.repeat(kids[0], str(kids[1]), wanted, state)
        raise _Missing(node.data)

    def literal(self, token: Token, state: _Text) -> _Text:
        text = str(token)
        if token.type == "STRING" or text.startswith('"'):
            value = (
                text[1 : -2 if text.endswith("i") else -1].encode().decode("unicode_escape").encode("latin1").decode()
            )
        elif state.inline:
            value = state.inline[0]
            return _Text([*state.parts, value], state.used, state.runs, state.inline[1:])
        else:
            raise _Missing(text)
        return _Text([*state.parts, value], state.used, state.runs, state.inline)

    def symbol(self, name: str, wanted: _Wanted, state: _Text) -> _Text:
        if name in self.rules:
            return self.write(self.rules[name], wanted, state)
        field = name.lower() if name.startswith("_") else name.rsplit("__", maxsplit=1)[-1].lower()
        if field not in wanted.fields:
            return self.constant(name, field, wanted, state)
        return _Text([*state.parts, (field,)], state.used | {field}, state.runs, state.inline)

    def constant(self, name: str, field: str, wanted: _Wanted, state: _Text) -> _Text:
        """A terminal that is one literal needs no field."""
        term = self.terms.get(name)
        while isinstance(term, Tree) and len(term.children) == 1:
            term = term.children[0]
        if isinstance(term, Token) and str(term).startswith('"'):
            return self.literal(term, state)
        raise _Missing(field)

    def choose(self, kids: Sequence[Any], wanted: _Wanted, state: _Text) -> _Text:
        """The alternative that uses most of the fields, then one whose literal is kept, then the first."""
        best: tuple[int, int] | None = None
        found: _Text | None = None
        for kid in kids:
            try:
                text = self.write(kid, wanted, state)
            except _Missing:
                continue
            added = text.parts[len(state.parts) :]
            said = [p for p in added if isinstance(p, str)]
            rank = (len(text.used), int(any(p in wanted.keep for p in said)))
            if best is None or rank > best:
                best, found = rank, text
        if found is None:
            raise _Missing("alternatives")
        return found

    def optional(self, kid: Any, wanted: _Wanted, state: _Text) -> _Text:
        """What is optional is written where it has a field that does not stand yet, or a literal that is kept."""
        try:
            text = self.write(kid, wanted, state)
        except _Missing:
            return state
        added = text.parts[len(state.parts) :]
        kept = any(isinstance(part, str) and part in wanted.keep for part in added)
        return text if text.used > state.used or kept or text.inline != state.inline else state

    def repeat(self, kid: Any, operator: str, wanted: _Wanted, state: _Text) -> _Text:
        """So many times as the caller says, else as seldom as the grammar allows."""
        times = state.runs[0] if state.runs else int(operator == "+")
        once = self.write(kid, wanted, _Text([], set(), (), state.inline))
        if once.used:
            raise _Missing("a repeated field")
        return _Text([*state.parts, *once.parts * times], state.used, state.runs[1:], once.inline)


@cache
def _grammar(name: str) -> _Grammar:
    return _Grammar(name)


@cache
def _inverse(family: str, record: str, wanted: _Wanted) -> tuple[str | tuple[str], ...]:
    grammar = _grammar(family)
    for body in grammar.alternatives(record):
        try:
            text = grammar.write(body, wanted, _Text([], set(), wanted.runs, wanted.inline))
        except _Missing:
            continue
        if text.used == wanted.fields and wanted.saying in "".join(p for p in text.parts if isinstance(p, str)):
            return _merged(text.parts)
    raise NoInverse(
        f"grammars/{family}.lark: no form of {record} writes the fields {', '.join(sorted(wanted.fields)) or 'none'}"
    )


def _merged(parts: Sequence[str | tuple[str]]) -> tuple[str | tuple[str], ...]:
    """Neighbouring literals as one."""
    found: list[str | tuple[str]] = []
    for part in parts:
        last = found[-1] if found else None
        if isinstance(part, str) and isinstance(last, str):
            found[-1] = last + part
        else:
            found.append(part)
    return tuple(found)


_NONE: frozenset[str] = frozenset()


def line(
    family: str,
    record: str,
    fields: Mapping[str, object] | None = None,
    /,
    *,
    keep: frozenset[str] = _NONE,
    runs: tuple[int, ...] = (),
    inline: tuple[str, ...] = (),
    saying: str = "",
    **more: object,
) -> str:
    """Return the text of a record (or form) of `grammars/<family>.lark` with these fields (in lower case).

    A hidden terminal (`_TAIL`) is filled under its own name (`_tail`). A field that is None is not written; a tuple
    fills the places of one field in order.
    Raises NoInverse where no form of the grammar has just these fields.
    """
    filled = {name: value for name, value in {**(fields or {}), **more}.items() if value is not None}
    parts = _inverse(family, record, _Wanted(frozenset(filled), keep, runs, inline, saying))
    turns = {name: iter(value) for name, value in filled.items() if isinstance(value, tuple)}
    return "".join(
        [
            part if isinstance(part, str) else str(next(turns[part[0]]) if part[0] in turns else filled[part[0]])
            for part in parts
        ]
    )
