"""The text of one graph: its calls, its collectives in order, a digest that equal graphs share, and the kernels of
generated code. Ranks print the same graphs, so what a text holds is remembered.
"""

import hashlib
from dataclasses import dataclass, field
from functools import lru_cache

from replay.grammar.executor import shared

_CALLS = {"graph_call", "graph_method", "graph_infix", "graph_collective"}
_WAIT = "wait_tensor"
_KERNELS = {"code_kernel", "code_extern", "code_nodes"}
_COMMENTS = {"graph_comment", "graph_place", "code_nodes"}
_CLASS = "(torch.nn.Module):"
_REMEMBERED = 64
"""Graphs: their texts stay in memory as long."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a graph: what is called and, where told, what comes of it."""

    op: str
    dtype: str | None
    shape: str | None
    is_collective: bool
    file: str | None = None
    line: int | None = None


@dataclass(slots=True)
class Kernel:
    """A kernel of generated code: its language, the nodes of the graph and the operators that it computes."""

    name: str
    language: str
    sources: str | None
    ops: str | None


@dataclass(frozen=True, slots=True)
class GraphText:
    """What the text of a graph holds. `digest` is a hash of it without comments, ids, addresses, paths, device indexes
    and names of symbols: 16 hexadecimal digits.
    """

    is_code: bool
    is_empty: bool
    calls: tuple[Call, ...]
    kernels: tuple[Kernel, ...]
    digest: str

    @property
    def collectives(self) -> list[str]:
        """Names of the collectives in order."""
        return [call.op for call in self.calls if call.is_collective]


@lru_cache(maxsize=_REMEMBERED)
def read_graph(lines: tuple[str, ...], *, is_code: bool = False) -> GraphText:
    """Return what the lines of a graph hold, without headers. In generated code (`is_code`) only collectives count as
    calls.
    """
    reader = _Reader(is_code)
    for line in lines:
        reader.feed(line)
    return GraphText(is_code, not reader.lines, tuple(reader.calls), tuple(reader.kernels), _digest(reader.lines))


@dataclass(slots=True)
class _Reader:
    """Takes the lines of a graph in order."""

    is_code: bool
    calls: list[Call] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    _place: tuple[str | None, int | None] = (None, None)
    _nodes: tuple[str | None, str | None] = (None, None)

    def feed(self, text: str) -> None:
        """Take the next line. The class that torch writes a graph as is not of the graph."""
        if not self.lines and _CLASS in text:
            return
        wanted = text.startswith("  ") or (self.is_code and _tells_kernel(text))
        match = shared().one("graphs", text) if wanted else None
        record = match.record if match is not None else ""
        if match is not None and record == "graph_place":
            self._place = match.fields["file"], int(match.fields["line"])
        if match is not None and record in _KERNELS:
            self._kernel(record, match.fields)
        if record in _COMMENTS:
            return
        if self.is_code and record not in _KERNELS:
            self._called(text)
        if text.strip():
            self.lines.append(text.strip())
        if match is None or record not in _CALLS or (self.is_code and record != "graph_collective"):
            return
        fields = match.fields
        match record:
            case "graph_collective":
                op = fields["collective"]
            case "graph_method":
                op = f"Tensor.{fields['method']}"
            case "graph_infix":
                op = fields["sign"]
            case _:
                op = fields["op"].removeprefix("torch.ops.")
        is_collective = record == "graph_collective" and op != _WAIT
        self.calls.append(Call(op, fields.get("dtype"), fields.get("shape"), is_collective, *self._place))

    def _kernel(self, record: str, fields: dict[str, str]) -> None:
        if record == "code_nodes":
            self._nodes = fields.get("sources"), fields.get("ops")
            return
        name, language = fields.get("name"), fields.get("language", "extern")
        self.kernels.append(Kernel(name or f"extern_kernels.{fields['extern']}", language, *self._nodes))
        self._nodes = None, None

    def _called(self, text: str) -> None:
        """The call of a kernel that was made above: what stands before it is of that kernel."""
        if self._nodes == (None, None):
            return
        called = text.strip().partition("(")[0].removesuffix(".run")
        for kernel in self.kernels:
            if kernel.name == called and kernel.ops is None:
                kernel.sources, kernel.ops = self._nodes
                self._nodes = None, None


def _digest(lines: list[str]) -> str:
    text = "\n".join(lines)
    symbols: dict[str, str] = {}
    parts, at = [], 0
    for start, end, fields in shared().scan("volatile", text):
        parts.append(text[at:start])
        symbol = fields.get("symbol")
        if symbol is not None:
            parts.append(symbols.setdefault(symbol, f"s#{len(symbols)}"))
        else:
            parts.append("#")
        at = end
    parts.append(text[at:])
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def _tells_kernel(text: str) -> bool:
    """Whether a line of generated code at the left edge may tell of a kernel."""
    return text.startswith("# ") or " = async_compile." in text
