"""Lines made from a grammar's own productions: its trees, with every choice, repetition and character drawn.

What a pattern looks at behind or before itself is not made on purpose, so some of the lines are near misses.
"""

import random
import re
from collections.abc import Sequence
from functools import cache
from re import _constants as sre  # the only way to see what a pattern is made of
from re import _parser
from typing import Any

from hypothesis import strategies as st
from lark import Token, Tree
from lark.load_grammar import GrammarBuilder

from replay.resources import folder

FILL = "abxyzLRTI0123459 _.:-/,=()[]{}<>'\"|#*+%>\té\x00"
"""Characters of free text."""
MOST = 3
"""Repetitions beyond the least."""
LONGEST = 160
_CATEGORIES = {sre.CATEGORY_SPACE: r"\s", sre.CATEGORY_NOT_SPACE: r"\S", sre.CATEGORY_WORD: r"\w"}
JOINTS = (" ", "", "\n", " - ", ": ", "'", '"', "NCCL INFO ", "[rank1]:", " = ", ".", "0", "]", ")", "\r", "\x1b[0m")


class Maker:
    """Makes lines of one grammar file."""

    def __init__(self, family: str) -> None:
        path = folder("grammars") / f"{family}.lark"
        builder = GrammarBuilder(import_paths=[str(path.parent)])
        builder.load_grammar(path.read_text(encoding="utf8"), path.name)
        grammar = builder.build()
        self._rules: dict[str, Tree[Any]] = {str(rule[0]): rule[2] for rule in grammar.rule_defs}
        self._terms: dict[str, Any] = {str(term[0]): term[1][0] for term in grammar.term_defs}
        self.alternatives = [
            alternative
            for form, tree in self._rules.items()
            if not form.startswith("_") and "__" not in form
            for alternative in tree.children
        ]

    def line(self, chance: random.Random) -> str:
        """Make a line of any alternative."""
        return self.of(chance.choice(self.alternatives), chance)

    def of(self, node: Any, chance: random.Random) -> str:
        """Make a text of a part of the grammar."""
        if isinstance(node, Token):
            return _token(node, chance)
        if not isinstance(node, Tree):
            name = str(node.name)
            return self.of(self._rules[name] if name in self._rules else self._terms[name], chance)
        kids = node.children
        match node.data:
            case "expansions":
                return self.of(chance.choice(kids), chance)
            case "expansion":
                return "".join(self.of(kid, chance) for kid in kids)
            case "maybe":
                return self.of(kids[0], chance) if chance.random() < 0.5 else ""
            case "expr":
                least, most = {"?": (0, 1), "*": (0, MOST), "+": (1, MOST)}[str(kids[1])]
                return "".join(self.of(kids[0], chance) for _ in range(chance.randint(least, most)))
            case "range":
                low, high = (str(kid)[1:-1] for kid in kids)
                return chr(chance.randint(ord(low), ord(high)))
        return self.of(kids[0], chance)  # an alias, a value


def _token(token: Token, chance: random.Random) -> str:
    text = str(token)
    if token.type == "STRING" or text.startswith('"'):
        is_any_case = text.endswith("i")
        value = text[1 : -2 if is_any_case else -1].encode().decode("unicode_escape").encode("latin1").decode()
        return chance.choice([value, value.upper()]) if is_any_case else value
    body, flags = text[1:].rsplit("/", 1)
    body = body.replace(r"\/", "/")
    return _text(_parsed(f"(?{flags}:{body})" if flags else body), chance)


@cache
def _parsed(pattern: str) -> Any:
    return _parser.parse(pattern)


def _text(nodes: Any, chance: random.Random) -> str:
    return "".join(_node(kind, value, chance) for kind, value in nodes)


def _node(kind: Any, value: Any, chance: random.Random) -> str:
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.NOT_LITERAL:
        return chance.choice([c for c in FILL if ord(c) != value])
    if kind is sre.ANY:
        return chance.choice(FILL)
    if kind is sre.IN:
        return _one_of(value, chance)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        least, most, inner = value
        return "".join(_text(inner, chance) for _ in range(chance.randint(least, min(int(most), least + MOST))))
    if kind is sre.SUBPATTERN:
        return _text(value[3], chance)
    if kind is sre.BRANCH:
        return _text(chance.choice(value[1]), chance)
    return ""  # looks at what is around it


def _one_of(items: Sequence[Any], chance: random.Random) -> str:
    if items[0][0] is sre.NEGATE:
        return chance.choice([c for c in FILL if not any(_is_in(item, ord(c)) for item in items[1:])])
    kind, value = item = chance.choice(items)
    if kind is sre.CATEGORY:
        return chance.choice([c for c in FILL if _is_in(item, ord(c))])
    return chr(value) if kind is sre.LITERAL else chr(chance.randint(*value))


def _is_in(item: Any, code: int) -> bool:
    kind, value = item
    if kind is sre.CATEGORY:
        return re.match(_CATEGORIES[value], chr(code)) is not None
    return code == value if kind is sre.LITERAL else value[0] <= code <= value[1]


@cache
def maker(family: str) -> Maker:
    """Return the maker of a grammar, made once."""
    return Maker(family)


def made(family: str) -> st.SearchStrategy[str]:
    """Give lines made from a grammar."""
    return st.randoms(use_true_random=False).map(maker(family).line).filter(lambda text: len(text) <= LONGEST)


def mutated(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Give texts that are cut, joined to others, or hold what does not belong there."""
    return st.builds(_mutate, texts, texts, st.randoms(use_true_random=False))


def _mutate(text: str, other: str, chance: random.Random) -> str:
    at, end = sorted(chance.randint(0, len(text)) for _ in range(2))
    what = chance.randrange(6)
    if what == 0:
        text = text[:at] + text[end:]
    elif what == 1:
        text = text[:end] + text[at:]
    elif what == 2:
        text = text[:at] + chance.choice(JOINTS) + text[at:]
    elif what == 3:
        text = text[:at] + other[chance.randint(0, len(other)) :]
    elif what == 4:
        text = text[:at] + re.sub("[0-9]", lambda _: chance.choice("0123456789"), text[at:])
    else:
        text = text[:at] + chance.choice(FILL) + text[at + 1 :]
    return text[:LONGEST]
