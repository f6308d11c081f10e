"""Pickles of plain values, read without being executed.

A pickle is a program; Python's own unpickler runs it, and even with all globals refused it can be made to ask for any
amount of memory. Here its opcodes are read one by one and only those are obeyed that build None, booleans, numbers,
texts, lists, tuples and dicts, which is all that torch's recorder writes.
"""

import pickletools
from typing import Any

MAX_OPCODES = 20_000_000
_MAX_KEYS = (str, int)


class PickleRefused(ValueError):
    """The pickle is damaged or holds something that is no plain value; the text says what."""


def loads(data: bytes) -> Any:
    """Return the value of a pickle of plain values.

    Raises PickleRefused for anything else: it is refused, not skipped.
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "STOP":
                return machine.result()
            if count > MAX_OPCODES:
                raise PickleRefused("is longer than any flight record")
            machine.obey(opcode.name, argument)
    except PickleRefused:
        raise
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise PickleRefused(f"is damaged: {error}") from None
    raise PickleRefused("has no end")


class _Machine:
    """A stack, the stacks below its marks, and the memo."""

    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def result(self) -> Any:
        if len(self._stack) != 1 or self._below:
            raise PickleRefused("is damaged: values are left over")
        return self._stack[0]

    def obey(self, name: str, argument: Any) -> None:
        """Obey one opcode."""
        stack = self._stack
        match name:
            case "BINUNICODE" | "SHORT_BINUNICODE" | "BINUNICODE8" | "BINSTRING" | "SHORT_BINSTRING":
                stack.append(argument)
            case "BININT" | "BININT1" | "BININT2" | "LONG1" | "LONG4" | "BINFLOAT":
                stack.append(argument)
            case "BINGET" | "LONG_BINGET":
                stack.append(self._memo[argument])
            case "BINPUT" | "LONG_BINPUT":
                self._memo[argument] = stack[-1]
            case "MEMOIZE":
                self._memo[len(self._memo)] = stack[-1]
            case "MARK":
                self._below.append(stack)
                self._stack = []
            case "APPEND":
                value = stack.pop()
                _of(list, stack).append(value)
            case "APPENDS":
                values = self._pop_mark()
                _of(list, self._stack).extend(values)
            case "SETITEM":
                value, key = stack.pop(), stack.pop()
                _of(dict, stack)[_key(key)] = value
            case "SETITEMS":
                values = self._pop_mark()
                target = _of(dict, self._stack)
                for key, value in zip(values[::2], values[1::2], strict=True):
                    target[_key(key)] = value
            case "TUPLE":
                values = self._pop_mark()
                self._stack.append(tuple(values))
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                size = int(name[-1])
                if len(stack) < size:
                    raise PickleRefused("is damaged: a tuple lacks values")
                stack[-size:] = [tuple(stack[-size:])]
            case "EMPTY_DICT":
                stack.append({})
            case "EMPTY_LIST":
                stack.append([])
            case "EMPTY_TUPLE":
                stack.append(())
            case "NONE":
                stack.append(None)
            case "NEWTRUE" | "NEWFALSE":
                stack.append(name == "NEWTRUE")
            case "PROTO" | "FRAME":
                pass
            case _:
                raise PickleRefused(f"holds {name}, which is no plain value")

    def _pop_mark(self) -> list[Any]:
        values, self._stack = self._stack, self._below.pop()
        return values


def _of(kind: type, stack: list[Any]) -> Any:
    if not isinstance(stack[-1], kind):
        raise PickleRefused(f"is damaged: no {kind.__name__} to put a value in")
    return stack[-1]


def _key(key: object) -> object:
    """Keys are texts and numbers: hashing what a stranger nested can take the process down."""
    if not isinstance(key, _MAX_KEYS):
        raise PickleRefused("has a key that is neither text nor number")
    return key
