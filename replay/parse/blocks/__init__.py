"""Assemblers: from segments to rows, one module a topic. The order is that of asking for continuations."""

from collections.abc import Callable

from replay.parse.blocks.compiles import Compiles
from replay.parse.blocks.graph_breaks import GraphBreaks
from replay.parse.blocks.limits import Limits
from replay.parse.blocks.nccl import NcclLines
from replay.parse.blocks.recompiles import Recompiles
from replay.parse.blocks.trainer import Trainer
from replay.parse.model import Assembler, Sink

Factory = Callable[[Sink], Assembler]

FACTORIES: list[Factory] = [
    NcclLines,
    Recompiles,
    Compiles,
    Limits,
    GraphBreaks,
    Trainer,
]
