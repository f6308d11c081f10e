"""The shape environment (TORCH_LOGS=dynamic) to rows of `symbols`: symbols, their ranges, what is guarded of them."""

from replay.parse.guard_expressions import parse_expression
from replay.parse.model import Segment, Sink
from replay.parse.places import is_installed
from replay.parse.torch_lines import compile_id_of, record_of

_PREFIX = "symbol_"
_STATIC = "symbol_static"


class Symbols:
    """Reads the lines of one writer; each is one thing said."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    @property
    def head(self) -> Segment | None:
        """None: no line here opens a block."""
        return None

    def feed(self, segment: Segment) -> str | None:
        """See Assembler."""
        record = record_of(segment)
        if not record.startswith(_PREFIX):
            return None
        fields = segment.fields
        expression = fields.get("expression")
        parts = parse_expression(expression) if expression else None
        if record == _STATIC and (parts is None or not parts.symbols):
            return None  # "eval True == True": of no symbol
        file = fields.get("file")
        is_users = file is not None and not is_installed(file)
        self._sink.row(
            "symbols",
            segment,
            compile_id=compile_id_of(segment),
            event=record.removeprefix(_PREFIX),
            symbol=fields.get("symbol"),
            value=fields.get("value") or fields.get("replacement") or fields.get("truth"),
            source=fields.get("source"),
            low=fields.get("low"),
            high=fields.get("high"),
            expression=expression,
            symbols=";".join(parts.symbols) or None if parts is not None else None,
            user_file=file if is_users else None,
            user_line=int(fields["lineno"]) if is_users else None,
            user_fn=fields.get("fn") if is_users else None,
        )
        return None

    def close(self) -> None:
        """See Assembler."""
