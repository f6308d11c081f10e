"""Code of guards and of symbolic shapes to its parts: what is guarded, what it has to be, which symbols take part.

The expression is parsed by Lark (grammars/nested/expression.lark); `guard_reasons` says what kind of guard it is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lark import Token, Tree

from replay.parse.nested import parse_nested

_TENSOR = "check_tensor"
_KEYS = "DispatchKeySet"
_SIZE = "size"
_SYMBOLS = ("s", "u", "zf", "zuf", "sym")
"""What the names of symbols begin with; a number follows."""
_LITERALS = {"number", "text", "object", "sequence"}
_CONSTANTS = {"None", "True", "False"}


@dataclass(frozen=True, slots=True)
class Tensor:
    """What a guard of a tensor asks for."""

    dtype: str | None = None
    shape: str | None = None
    stride: str | None = None
    requires_grad: bool | None = None
    device: str | None = None
    dispatch_keys: str | None = None


@dataclass(frozen=True, slots=True)
class Expression:
    """The parts of an expression. `symbols` are symbols and sizes ("s77", "L['x'].size()[0]"), each once, in order."""

    source: str | None = None
    expected: str | None = None
    dim: int | None = None
    symbols: tuple[str, ...] = ()
    tensor: Tensor | None = None


@lru_cache(maxsize=8192)
def parse_expression(code: str) -> Expression | None:
    """Return the parts of a guard's code, None where it is no expression."""
    tree = parse_nested("expression", code)
    if tree is None:
        return None
    root = tree.children[0] if tree.data == "start" else tree
    if isinstance(root, Tree) and root.data == "call" and _name(root.children[0]) == _TENSOR:
        return _tensor(root)
    symbols, dim = _symbols(tree)
    source, expected = _sides(root)
    return Expression(source, expected, dim, symbols)


def _tensor(call: Tree[Any]) -> Expression:
    source, dtype, keys = None, None, None
    named: dict[str, str] = {}
    for nth, argument in enumerate(_arguments(call)):
        if isinstance(argument, Tree) and argument.data == "named":
            named[str(argument.children[0])] = written(argument.children[1])
        elif nth == 0:
            source = written(argument)
        elif isinstance(argument, Tree) and argument.data == "call" and _name(argument.children[0]) == _KEYS:
            keys = ", ".join(written(key) for key in _arguments(argument))
        elif isinstance(argument, Tree) and argument.data == "attribute":
            dtype = written(argument).removeprefix("torch.")
    grad = named.get("requires_grad")
    return Expression(
        source=source,
        tensor=Tensor(
            dtype=dtype,
            shape=named.get("size"),
            stride=named.get("stride"),
            requires_grad=None if grad is None else grad == "True",
            device=named.get("device"),
            dispatch_keys=keys,
        ),
    )


def _arguments(call: Tree[Any]) -> list[Any]:
    last = call.children[-1]
    return last.children if len(call.children) > 1 and isinstance(last, Tree) else []


def _sides(root: Any) -> tuple[str | None, str | None]:
    """The value and the constant of a comparison of two; of a call its first argument."""
    if not isinstance(root, Tree):
        return None, None
    if root.data == "negated":
        return _sides(root.children[0])
    if root.data == "compared" and len(root.children) == 3:
        left, _, right = root.children
        if _is_constant(left) and not _is_constant(right):
            left, right = right, left
        return written(left), written(right)
    if root.data == "call":
        arguments = _arguments(root)
        return (written(arguments[0]), None) if arguments else (None, None)
    return (written(root), None) if root.data in {"item", "attribute", "name"} else (None, None)


def _is_constant(node: Any) -> bool:
    return not isinstance(node, Tree) or node.data in _LITERALS or _name(node) in _CONSTANTS


def _symbols(tree: Tree[Any]) -> tuple[tuple[str, ...], int | None]:
    found: dict[str, None] = {}
    dim = None
    for node in _subtrees(tree):
        name = _name(node)
        if name is not None and name.startswith(_SYMBOLS) and name.lstrip("abcdefghijklmnopqrstuvwxyz").isdigit():
            found.setdefault(name)
        elif _is_size(node):
            found.setdefault(written(node))
            index = written(node.children[1])
            dim = int(index) if dim is None and index.isdigit() else dim
    return tuple(found), dim


def _subtrees(tree: Tree[Any]) -> Iterator[Tree[Any]]:
    """All trees in a tree, itself first, from left to right."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [kid for kid in reversed(node.children) if isinstance(kid, Tree)]


def _is_size(node: Tree[Any]) -> bool:
    """Whether a node is "x.size()[0]"."""
    if node.data != "item" or len(node.children) != 2:
        return False
    call = node.children[0]
    if not isinstance(call, Tree) or call.data != "call" or len(call.children) != 1:
        return False
    called = call.children[0]
    return isinstance(called, Tree) and called.data == "attribute" and str(called.children[1]) == _SIZE


def _name(node: Any) -> str | None:
    return str(node.children[0]) if isinstance(node, Tree) and node.data == "name" else None


def written(node: Any) -> str:
    """Return a part of an expression as text, with single blanks."""
    return "".join(_parts(node))


def _parts(node: Any) -> Iterator[str]:
    if isinstance(node, Token):
        yield str(node)
        return
    kids = node.children
    match node.data:
        case "attribute":
            yield from (*_parts(kids[0]), ".", str(kids[1]))
        case "item":
            yield from _parts(kids[0])
            yield from _listed(kids[1:], "[", "]")
        case "call":
            yield from _parts(kids[0])
            yield from _listed(_arguments(node), "(", ")")
        case "named":
            yield from (*_parts(kids[0]), "=", *_parts(kids[-1]))
        case "sequence":
            yield from _listed(kids, "[", "]")
        case "negated":
            yield from ("not ", *_parts(kids[0]))
        case "either" | "both":
            word = " or " if node.data == "either" else " and "
            for nth, kid in enumerate(kids):
                yield from (word if nth else "", *_parts(kid))
        case "arithmetic":
            yield "("
            for kid in kids:
                yield from _parts(kid)
            yield ")"
        case _:
            for nth, kid in enumerate(kids):
                yield from (" " if nth else "", *_parts(kid))


def _listed(kids: list[Any], begin: str, end: str) -> Iterator[str]:
    yield begin
    for nth, kid in enumerate(kids):
        yield from (", " if nth else "", *_parts(kid))
    yield end
