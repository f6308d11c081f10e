"""Line grammars are regular: each top-level rule of a `.lark` file becomes one pattern per alternative.

The grammar is read by Lark's own loader, before Lark expands it, so what is compiled here is what Lark would parse.
Rules: a rule is a form unless its name begins with `_` (then it is a part, put in place where it is used); a terminal
is a field unless its name begins with `_`. Not allowed: recursion, templates, capture groups, terminals of no width,
fields in a repetition.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lark import Token, Tree
from lark.load_grammar import GrammarBuilder

from replay.grammar.kept import keep, recall
from replay.grammar.model import Family, Production
from replay.resources import folder


class GrammarError(Exception):
    """A grammar file breaks the rules of line grammars; the text names file and rule."""


@dataclass(slots=True)
class _Piece:
    """A part of a pattern: its text, the literal it begins with, whether it is only that, and its longest literal."""

    pattern: str
    prefix: str = ""
    exact: bool = False
    needle: str = ""


def _join(pieces: list[_Piece]) -> _Piece:
    prefix, exact, run, needle = "", True, "", ""
    for piece in pieces:
        if exact:
            prefix += piece.prefix
            exact = piece.exact
        if piece.exact:
            run += piece.prefix
        else:
            needle = max(needle, run + piece.prefix, piece.needle, key=len)
            run = ""
    return _Piece("".join(p.pattern for p in pieces), prefix, exact, max(needle, run, key=len))


def _branches(alternative: Any) -> list[Any]:
    """The alternatives that a leading choice or option stands for: ("a" | "b")? c is a c, b c and c."""
    if not isinstance(alternative, Tree):
        return [alternative]
    first, *rest = alternative.children
    match alternative.data:
        case "expansions":
            return [branch for child in alternative.children for branch in _branches(child)]
        case "expansion" if isinstance(first, Tree) and first.data == "expr" and str(first.children[1]) == "?":
            present = _branches(Tree("expansion", [first.children[0], *rest]))
            return present + (_branches(Tree("expansion", rest)) if rest else [])
        case "expansion":
            return [Tree("expansion", [branch, *rest]) for branch in _branches(first)]
    return [alternative]


class _Compiler:
    def __init__(self, name: str, rules: dict[str, Tree[Any]], terms: dict[str, Any]) -> None:
        self.name, self.rules, self.terms = name, rules, terms
        self.counts: dict[str, int] = {}
        self.open: list[str] = []

    def fail(self, what: str) -> GrammarError:
        return GrammarError(f"grammars/{self.name}.lark, {self.open[0] if self.open else '?'}: {what}")

    def productions(self, form: str, alternative: Tree[Any]) -> list[Production]:
        """The production of an alternative; where it begins with a choice of literals, one production for each."""
        record = form
        if alternative.data == "alias":
            alternative, alias = alternative.children
            # an imported rule's alias has the grammar's name before it
            record = str(getattr(alias, "name", alias) or form).rsplit("__", maxsplit=1)[-1]
        branches = [self.top(form, branch) for branch in _branches(alternative)]
        if not all(piece.prefix for piece in branches):
            branches = [self.top(form, alternative)]
        return [Production(form, record, piece.pattern, piece.prefix, piece.needle) for piece in branches]

    def top(self, form: str, alternative: Tree[Any]) -> _Piece:
        self.counts, self.open = {}, [form]
        return self.piece(alternative, in_term=False)

    def piece(self, node: Any, in_term: bool) -> _Piece:
        if isinstance(node, Token):
            return self.literal(node)
        if not isinstance(node, Tree):
            return self.symbol(node, in_term)
        kids = node.children
        match node.data:
            case "value" | "literal" | "alias":
                return self.piece(kids[0], in_term)
            case "expansion":
                return _join([self.piece(k, in_term) for k in kids])
            case "expansions":
                if len(kids) == 1:
                    return self.piece(kids[0], in_term)
                return _Piece("(?:" + "|".join(self.piece(k, in_term).pattern for k in kids) + ")")
            case "maybe":
                return _Piece("(?:" + self.piece(kids[0], in_term).pattern + ")?")
            case "expr":
                inner, op = self.piece(kids[0], in_term), str(kids[1])
                if op not in "?*+":
                    raise self.fail(f"operator {op} is not for line grammars")
                if op != "?" and "(?P<" in inner.pattern:
                    raise self.fail("a field that is repeated has no one value")
                return _Piece(f"(?:{inner.pattern}){op}")
            case "range":
                low, high = (str(k)[1:-1] for k in kids)
                return _Piece(f"[{re.escape(low)}-{re.escape(high)}]")
        raise self.fail(f"{node.data} is not for line grammars")

    def literal(self, token: Token) -> _Piece:
        text = str(token)
        if token.type == "STRING" or text.startswith('"'):
            flags = "i" if text.endswith("i") else ""
            value = text[1 : -1 - len(flags)].encode().decode("unicode_escape").encode("latin1").decode()
            if flags:
                return _Piece(f"(?i:{re.escape(value)})")
            return _Piece(re.escape(value), value, exact=True, needle=value)
        body, flags = text[1:].rsplit("/", 1)
        body = body.replace(r"\/", "/")
        if re.compile(body).groups:
            raise self.fail(f"capture group in /{body}/")
        return _Piece(f"(?{flags}:{body})" if flags else f"(?:{body})")

    def symbol(self, symbol: Any, in_term: bool) -> _Piece:
        name = str(symbol.name)
        if name in self.terms:
            self.open.append(name)
            piece = self.piece(self.terms[name], in_term=True)
            self.open.pop()
            if in_term or name.startswith("_"):
                return piece
            if re.fullmatch(piece.pattern, ""):
                raise self.fail(f"terminal {name} can be empty; make it optional where it is used")
            field = name.rsplit("__", maxsplit=1)[-1].lower()
            self.counts[field] = self.counts.get(field, 0) + 1
            group = field if self.counts[field] == 1 else f"{field}__{self.counts[field]}"
            return _Piece(f"(?P<{group}>{piece.pattern})", piece.prefix, False, piece.needle)
        if name not in self.rules:
            raise self.fail(f"{name} is not defined")
        if name in self.open:
            raise self.fail(f"{name} is recursive")
        self.open.append(name)
        piece = self.piece(self.rules[name], in_term=False)
        self.open.pop()
        return piece


@dataclass(frozen=True, slots=True)
class Alternative:
    """One alternative of a form, as Lark's loader reads it, and the productions that it is compiled to."""

    form: str
    tree: Any
    productions: tuple[Production, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A grammar file before it is a family: parts and terminals by name, and the alternatives of its forms."""

    parts: dict[str, Tree[Any]]
    terminals: dict[str, Any]
    alternatives: tuple[Alternative, ...]


def read_text(name: str, text: str, import_paths: list[Path]) -> Source:
    """Read the grammar `text`. Raises GrammarError, or Lark's own errors for bad syntax."""
    builder = GrammarBuilder(import_paths=[str(p) for p in import_paths])
    builder.load_grammar(text, f"{name}.lark")
    grammar = builder.build()
    rules = {str(rule[0]): rule[2] for rule in grammar.rule_defs}
    terms = {str(term[0]): term[1][0] for term in grammar.term_defs}
    compiler = _Compiler(name, rules, terms)
    found = []
    for rule, params, tree, _options in grammar.rule_defs:
        form = str(rule)
        if params:
            raise GrammarError(f"grammars/{name}.lark, {form}: templates are not for line grammars")
        if form.startswith("_") or "__" in form:
            continue
        found += [Alternative(form, child, tuple(compiler.productions(form, child))) for child in tree.children]
    return Source(rules, terms, tuple(found))


def compile_text(name: str, text: str, import_paths: list[Path]) -> Family:
    """Compile the grammar `text`. Raises GrammarError, or Lark's own errors for bad syntax."""
    source = read_text(name, text, import_paths)
    return Family(name, tuple(p for alternative in source.alternatives for p in alternative.productions))


@cache
def load(name: str) -> Family:
    """Compile `grammars/<name>.lark`. Raises FileNotFoundError if there is none."""
    known = recall(f"family-{name}")
    if known is not None:
        return Family(name, tuple(Production(*fields) for fields in known))
    path = folder("grammars") / f"{name}.lark"
    family = compile_text(name, path.read_text(encoding="utf8"), [path.parent])
    keep(f"family-{name}", [[p.form, p.record, p.pattern, p.prefix, p.needle] for p in family.productions])
    return family
