"""Assemblers: from segments to rows, one module a topic. The order is that of asking for continuations."""

from collections.abc import Callable

from replay.parse.model import Assembler, Sink

Factory = Callable[[Sink], Assembler]

FACTORIES: list[Factory] = []
