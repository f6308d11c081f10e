"""Assemblers: from segments to rows, one module a topic. The order is that of asking for continuations."""

from collections.abc import Callable

from replay.parse.blocks.failures import Failures
from replay.parse.blocks.nccl import ALONE, NcclLines
from replay.parse.blocks.parameters import Parameters
from replay.parse.blocks.torch_compiler import TorchCompiler
from replay.parse.blocks.trainer import Trainer
from replay.parse.model import Assembler, Sink

__all__ = ["ALONE", "FACTORIES", "Factory"]

Factory = Callable[[Sink], Assembler]

FACTORIES: list[Factory] = [
    Failures,
    NcclLines,
    Parameters,
    TorchCompiler,
    Trainer,
]
