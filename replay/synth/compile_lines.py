"""What torch's compiler says, in the form of one version: recompiles with their reasons, the stages of a compile."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replay.synth.inverse import line
from replay.synth.torch_lines import Torch

_CONVERT, _OUTPUT = "torch/_dynamo/symbolic_convert.py", "torch/_dynamo/output_graph.py"
_INDUCTOR = "torch/_inductor/compile_fx.py"


@dataclass(frozen=True, slots=True)
class Frame:
    """A compiled frame: its number, function and place, and its cache key."""

    number: int
    name: str
    file: str
    line: int
    key: str


@dataclass(frozen=True, slots=True)
class Speaker:
    """A process: its rank, once there is a group, and its pid."""

    rank: int | None
    pid: int


@dataclass(frozen=True, slots=True)
class Compile:
    """One compile of a frame: which of the frame's, how long it takes, and what the logs show of it."""

    frame: Frame
    number: int
    seconds: float
    is_hit: bool
    shows_inductor: bool


def recompiled(torch: Torch, at: float, who: Speaker, frame: Frame, reasons: Sequence[str]) -> Iterator[str]:
    """TORCH_LOGS=recompiles: a recompile of a frame, with why each of its entries does not fit (the oldest first)."""
    texts = [
        line("recompiles", "recompile_head", fn=frame.name, file=frame.file, fn_line=frame.line),
        line("recompiles", "recompile_reasons", runs=(4,)),
    ]
    for entry, reason in reversed(list(enumerate(reasons))):
        if torch.version >= (2, 5):
            failed = f"{frame.number}/{entry}"
            texts.append(line("recompiles", "recompile_reason", failed_id=failed, reason=reason, runs=(4,)))
        else:
            texts.append(line("recompiles", "recompile_item", reason=reason, runs=(4,)))
    trace_id = f"{frame.number}/{len(reasons)}" if torch.version >= (2, 3) else None
    for text in texts:
        yield torch.python(
            at,
            who.rank,
            "V",
            who.pid,
            path="torch/_dynamo/guards.py",
            lineno=2976,
            text=text,
            trace_id=trace_id,
            artifact="recompiles",
        )


def compiling(torch: Torch, at: float, who: Speaker, work: Compile) -> Iterator[tuple[float, str]]:
    """TORCH_LOGS=dynamo,inductor: the stages of a compile, with their times."""
    for share, path, lineno, text in _stages(work):
        moment = at + work.seconds * share
        trace_id = f"{work.frame.number}/{work.number}"
        yield (
            moment,
            torch.python(moment, who.rank, "I", who.pid, path=path, lineno=lineno, text=text, trace_id=trace_id),
        )


def _stages(work: Compile) -> Iterator[tuple[float, str, int, str]]:
    frame = work.frame
    yield 0, _CONVERT, 2706, line("compile", "compile_start", fn=frame.name, file=frame.file, fn_line=frame.line)
    yield 0.1, _CONVERT, 3028, line("compile", "compile_traced", fn=frame.name, _op="RETURN_VALUE")
    yield 0.1, _OUTPUT, 1458, line("compile", "compile_backend", backend="inductor")
    if work.shows_inductor:
        record = "cache_fx_hit" if work.is_hit else "cache_fx_miss"
        yield 0.14, "torch/_inductor/codecache.py", 1135, line("cache", record, key=f"f{frame.key}")
        if not work.is_hit:
            fields = {"direction": "FORWARDS", "graph": work.number}
            yield 0.15, _INDUCTOR, 762, line("compile", "compile_inductor", fields)
            yield 0.98, _INDUCTOR, 774, line("compile", "compile_inductor_done", fields)
    yield 0.99, _OUTPUT, 1463, line("compile", "compile_backend_done", backend="inductor")
