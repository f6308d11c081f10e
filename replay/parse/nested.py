"""Payloads that nest (expressions, lists of paths), parsed by Lark itself from `grammars/nested/*.lark`.

Ranks and recompiles repeat the same texts, so what a text stands for is remembered. Texts that are too long or too deep
to be a library's are not parsed: they would cost without end. Lark's tables are kept between runs: to make them takes
longer than to parse what most logs hold.
"""

from functools import cache, lru_cache
from typing import Any

import lark
from lark import Lark, Tree
from lark.exceptions import LarkError
from lark.grammar import Rule
from lark.lexer import TerminalDef

from replay.grammar.kept import keep, recall
from replay.resources import folder

_LONGEST = 20_000
"""Characters of a text that is parsed."""
_DEEPEST = 100
"""Brackets that may be open at once."""
_REMEMBERED = 8192


@cache
def _parser(grammar: str, start: str) -> Lark:
    name = f"nested-{grammar}-{start}-{lark.__version__}"
    known = recall(name)
    if known is not None:
        untyped: Any = Lark
        parser: Lark = untyped._load_from_dict(*map(_numbered, known))  # as the parsers do that Lark generates
        return parser
    text = (folder("grammars") / "nested" / f"{grammar}.lark").read_text(encoding="utf8")
    made = Lark(text, parser="lalr", start=start, maybe_placeholders=False)
    keep(name, made.memo_serialize([TerminalDef, Rule]))
    return made


def _numbered(value: Any) -> Any:
    """Give JSON the keys back that were numbers."""
    if isinstance(value, dict):
        return {int(key) if key.isdecimal() else key: _numbered(inner) for key, inner in value.items()}
    return [_numbered(inner) for inner in value] if isinstance(value, list) else value


@lru_cache(maxsize=_REMEMBERED)
def parse_nested(grammar: str, text: str, start: str = "start") -> Tree[Any] | None:
    """Return the tree of a text, None where the grammar does not take it."""
    if len(text) > _LONGEST or _depth(text) > _DEEPEST:
        return None
    try:
        tree = _parser(grammar, start).parse(text)
    except LarkError:
        return None
    return tree if isinstance(tree, Tree) else Tree(start, [tree])


def _depth(text: str) -> int:
    deepest = depth = 0
    for sign in text:
        if sign in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ")]}":
            depth -= 1
    return deepest
