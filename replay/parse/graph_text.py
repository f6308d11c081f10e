"""The text of one graph, line by line: its calls, its collectives in order, and a digest that equal graphs share."""

import hashlib
from dataclasses import dataclass, field

from replay.grammar.executor import shared

_CALLS = {"graph_call", "graph_method", "graph_infix", "graph_collective"}
_WAIT = "wait_tensor"


@dataclass(frozen=True, slots=True)
class Call:
    """A call in a graph: what is called and, where told, what comes of it."""

    op: str
    dtype: str | None
    shape: str | None
    is_collective: bool


@dataclass(slots=True)
class GraphText:
    """Takes the lines of a graph. In generated code (`is_code`) only collectives count as calls."""

    is_code: bool = False
    calls: list[Call] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)

    def feed(self, text: str) -> None:
        """Take the next line, without header."""
        match = shared().one("graphs", text) if text.startswith("  ") else None
        record = match.record if match is not None else ""
        if record == "graph_comment":
            return
        if text.strip():
            self._lines.append(text.strip())
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
        self.calls.append(Call(op, fields.get("dtype"), fields.get("shape"), is_collective))

    @property
    def collectives(self) -> list[str]:
        """Names of the collectives in order."""
        return [call.op for call in self.calls if call.is_collective]

    @property
    def is_empty(self) -> bool:
        """Whether no line was taken."""
        return not self._lines

    def digest(self) -> str:
        """Hash of the text without comments, ids, addresses, paths, device indexes and names of symbols: 16 hex."""
        text = "\n".join(self._lines)
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
