"""Payloads that nest (expressions, lists of paths), parsed by Lark itself from `grammars/nested/*.lark`.

Ranks and recompiles repeat the same texts, so what a text stands for is remembered. Texts that are too long or too deep
to be a library's are not parsed: they would cost without end.
"""

from functools import cache, lru_cache
from typing import Any

from lark import Lark, Tree
from lark.exceptions import LarkError

from replay.resources import folder

_LONGEST = 20_000
"""Characters of a text that is parsed."""
_DEEPEST = 100
"""Brackets that may be open at once."""
_REMEMBERED = 8192


@cache
def _parser(grammar: str, start: str) -> Lark:
    text = (folder("grammars") / "nested" / f"{grammar}.lark").read_text(encoding="utf8")
    return Lark(text, parser="lalr", start=start, maybe_placeholders=False)


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
