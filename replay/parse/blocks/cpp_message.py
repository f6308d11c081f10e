"""The bare lines behind a line of c10d: the library's last error, stacks, options, and the desync report.

The ranks that a desync report calls lagging give one row of timeouts.
"""

from replay.grammar.executor import shared
from replay.grammar.numbers import integer
from replay.parse.blocks.failing import TEXT_CUT, Tell
from replay.parse.model import Segment, Sink
from replay.parse.ops import operation


class CppMessage:
    """Open behind every line of c10d, until the writer's next line."""

    def __init__(self, sink: Sink, tell: Tell) -> None:
        self._sink, self._tell = sink, tell
        self.is_open = False
        self._has_options = False
        self._is_error_next = False
        self._segment: Segment | None = None
        self._fields: dict[str, str] = {}
        self._missing: list[str] = []
        self._texts: list[str] = []

    def begin(self, segment: Segment, record: str) -> None:
        """A line of c10d; `record` is what it was taken for."""
        self.close()
        self.is_open = True
        self._has_options = record == "init_options_head"
        self._is_error_next = False

    def more(self, segment: Segment) -> str | None:
        """Take a line behind it."""
        text = segment.text
        if segment.header or (segment.match is not None and text[:1] not in {" ", "\t"}):
            return None
        if self._is_error_next and text.strip():
            self._is_error_next = False
            self._tell(segment, text.strip())
            return "continuation"
        match = shared().one("cpp_message", text)
        if match is None:
            return None if text.strip() else self._blank()
        fields = match.fields
        match match.record:
            case "option":
                if not self._has_options:
                    return None
                self._sink.row("env", segment, name=fields["name"], value=fields["value"].strip(), origin="torch")
            case "last_error" if "text" in fields:
                self._tell(segment, fields["text"])
            case "last_error":
                self._is_error_next = True
            case "timed_out":
                self._fields, self._segment = dict(fields), segment
                self._texts.append(text.strip(" \t-"))
            case "never_joined" | "unfinished" | "not_joined":
                self._segment = segment
                self._missing += [rank.strip() for rank in fields["ranks"].split(",")]
                self._texts.append(text.strip(" \t-"))
            case _:
                pass
        return "continuation"

    def _blank(self) -> str:
        """An empty line ends a stack; a report or another stack has its own line of c10d."""
        self.close()
        return "continuation"

    def close(self) -> None:
        """The message is over."""
        if self._segment is not None:
            self._sink.row(
                "timeouts",
                self._segment,
                kind="desync",
                group_rank=integer(self._fields.get("rank")),
                logged_seq=integer(self._fields.get("seq")),
                op=operation(self._fields["op"]) if "op" in self._fields else None,
                missing=",".join(self._missing) or None,
                text="; ".join(self._texts)[:TEXT_CUT],
            )
        self.is_open, self._segment = False, None
        self._fields, self._missing, self._texts = {}, [], []
