"""Expressions of rules: SQL over the columns of steps, read just far enough to know which columns they name.

DuckDB evaluates an expression; this module only splits it into tokens, so that references can be checked against the
schema with their place in the rule file, renamed, and turned into aggregates. An expression holds no statement and no
subquery: what a rule reads are its steps, and nothing else.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<string>'(?:[^']|'')*')|(?P<name>\"(?:[^\"]|\"\")+\"|[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)|(?P<sign>::|->|=>|:=|<=|>=|<>|!=|==|\|\||//|[^\s])"
)
_FORBIDDEN = frozenset(
    {"select", "with", "insert", "update", "delete", "create", "drop", "attach", "copy", "install", "load", "pragma"}
)
_WORDS = frozenset({
    "all", "and", "any", "array", "as", "asc", "between", "by", "case", "cast", "collate", "current_date",
    "current_timestamp", "desc", "distinct", "else", "end", "escape", "exclude", "extract", "false", "filter",
    "first", "for", "from", "glob", "ilike", "in", "interval", "is", "isnull", "lambda", "last", "like", "map",
    "not", "notnull", "null", "nulls", "on", "or", "order", "over", "partition", "position", "row", "similar",
    "some", "struct", "substring", "symmetric", "then", "to", "trim", "true", "try_cast", "when", "where",
    "within", "year", "month", "day", "hour", "minute", "second",
})  # fmt: skip
_TYPES = frozenset({
    "bigint", "blob", "bool", "boolean", "char", "date", "decimal", "double", "float", "float4", "float8",
    "hugeint", "int", "int1", "int2", "int4", "int8", "integer", "json", "numeric", "real", "smallint",
    "string", "text", "time", "timestamp", "tinyint", "ubigint", "uinteger", "uuid", "varchar",
})  # fmt: skip

Naming = Callable[[str | None, str], str | None]
"""Gives the SQL for a reference (step or None, column), or None to leave it as written."""


class ExpressionError(ValueError):
    """An expression cannot be read; `at` is the offset of the fault in its text."""

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the text: kind is space, string, name, number or sign."""

    kind: str
    text: str
    at: int

    @property
    def word(self) -> str:
        """The name in lower case without quotes, "" for other kinds."""
        if self.kind != "name":
            return ""
        return self.text[1:-1] if self.text.startswith('"') else self.text.lower()


@dataclass(frozen=True, slots=True)
class Reference:
    """A column that an expression names; `step` is None for a bare name. Tokens `begin` up to `end` spell it."""

    step: str | None
    column: str
    at: int
    begin: int
    end: int


def quoted(name: str) -> str:
    """Return the identifier as SQL takes it, whatever word it is."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return the text as a SQL string."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Expression:
    """One SQL expression of a rule."""

    text: str

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The pieces of the text; together they are the text.

        Raises ExpressionError for a statement, a subquery or unbalanced parentheses.
        """
        found: list[Token] = []
        depth: list[str] = []
        pairs = {")": "(", "]": "[", "}": "{"}
        for match in _TOKEN.finditer(self.text):
            token = Token(match.lastgroup or "", match.group(), match.start())
            if token.text == ";" or (token.kind == "sign" and token.text in ("'", '"')):
                raise ExpressionError(f"{token.text} is not part of an expression", token.at)
            if token.word in _FORBIDDEN and not (found and found[-1].text == "."):
                raise ExpressionError(f"an expression holds no {token.word.upper()}: write a step instead", token.at)
            if token.text in ("(", "[", "{"):
                depth.append(token.text)
            elif token.text in pairs and (not depth or depth.pop() != pairs[token.text]):
                raise ExpressionError(f"{token.text} closes nothing", token.at)
            found.append(token)
        if depth:
            raise ExpressionError(f"{depth[-1]} is never closed", len(self.text))
        if not any(token.kind != "space" for token in found):
            raise ExpressionError("an empty expression")
        return tuple(found)

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The columns that the expression names, bare names that cannot be columns left out."""
        return tuple(self._references())

    @property
    def plain(self) -> Reference | None:
        """The reference, where the whole expression is `step.column`, else None."""
        only = [r for r in self.references if r.step is not None]
        solid = [token for token in self.tokens if token.kind != "space"]
        return only[0] if len(only) == 1 and len(solid) == only[0].end - only[0].begin else None

    def steps(self) -> set[str]:
        """Return the steps that the expression names."""
        return {r.step for r in self.references if r.step is not None}

    def _references(self) -> Iterator[Reference]:
        tokens = self.tokens
        local = self._locals()
        index = 0
        while index < len(tokens):
            token = tokens[index]
            begin = index
            index += 1
            if token.kind != "name" or _after(tokens, begin, "."):
                continue
            following = _text(tokens, begin + 1)
            if following == "." and begin + 2 < len(tokens) and tokens[begin + 2].kind == "name":
                index = begin + 3
                if token.word not in local and _next_solid(tokens, begin + 2) != "(":
                    yield Reference(token.word, tokens[begin + 2].word, token.at, begin, begin + 3)
                continue
            if _next_solid(tokens, begin) in ("(", ":=", ":") or token.word in local or _is_type(tokens, begin):
                continue
            yield Reference(None, token.word, token.at, begin, begin + 1)

    def _locals(self) -> set[str]:
        """Return the parameters of lambdas and comprehensions."""
        found: set[str] = set()
        solid = [token for token in self.tokens if token.kind != "space"]
        for before, token in pairwise(solid):
            if before.word in ("lambda", "for") and token.kind == "name":
                found.add(token.word)
            if token.text == "->" and before.kind == "name":
                found.add(before.word)
        return found

    def render(self, naming: Naming) -> str:
        """Return the SQL with each reference spelt as `naming` wants it."""
        return render(self.tokens, self.references, naming)

    def conjuncts(self) -> list["Expression"]:
        """Return the parts that a top-level AND joins."""
        parts: list[str] = []
        begin = 0
        depth = between = 0
        for token in self.tokens:
            if token.text in ("(", "[", "{") or token.word == "case":
                depth += 1
            elif token.text in (")", "]", "}") or token.word == "end":
                depth -= 1
            elif depth == 0 and token.word == "between":
                between += 1
            elif depth == 0 and token.word == "and":
                if between:
                    between -= 1
                    continue
                parts.append(self.text[begin : token.at])
                begin = token.at + len(token.text)
            elif depth == 0 and token.word == "or":
                return [self]
        return [Expression(part.strip()) for part in [*parts, self.text[begin:]]]


def is_word(name: str) -> bool:
    """Tell whether a bare name is a word of SQL and not a column that is missing."""
    return name in _WORDS or name in _TYPES


def render(tokens: Sequence[Token], references: Sequence[Reference], naming: Naming) -> str:
    """Return the SQL of the tokens with each reference spelt as `naming` wants it."""
    pieces: list[str] = []
    index = 0
    for reference in references:
        spelt = naming(reference.step, reference.column)
        if spelt is not None:
            pieces += [token.text for token in tokens[index : reference.begin]]
            pieces.append(spelt)
            index = reference.end
    pieces += [token.text for token in tokens[index:]]
    return "".join(pieces)


def closing(tokens: Sequence[Token], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(tokens)):
        if tokens[index].text in ("(", "[", "{"):
            depth += 1
        elif tokens[index].text in (")", "]", "}"):
            depth -= 1
            if depth == 0:
                return index
    raise ExpressionError("( is never closed", tokens[opening].at)


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if index < len(tokens) else ""


def _after(tokens: Sequence[Token], index: int, text: str) -> bool:
    return index > 0 and tokens[index - 1].text == text


def _next_solid(tokens: Sequence[Token], index: int) -> str:
    for token in tokens[index + 1 :]:
        if token.kind != "space":
            return token.text
    return ""


def _is_type(tokens: Sequence[Token], index: int) -> bool:
    for token in reversed(tokens[:index]):
        if token.kind != "space":
            return token.text == "::" or token.word == "as"
    return False
