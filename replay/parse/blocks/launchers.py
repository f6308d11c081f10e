"""What launchers say: how processes ended, which signals were sent, who was lost, and torchrun's table of failures."""

from dataclasses import dataclass, field

from replay.grammar.executor import shared
from replay.grammar.numbers import integer, real
from replay.parse.blocks.device import Device
from replay.parse.blocks.exceptions import Raised, frame_of, write
from replay.parse.blocks.failing import TEXT_CUT, OnBehalf, Saying, is_nameless, level, log
from replay.parse.clock import Clock
from replay.parse.model import Segment, Sink, Value
from replay.parse.places import Frame
from replay.parse.signals import exit_code, of_code, signal_name

_TRACEBACK_LINES = 400


@dataclass(slots=True)
class _Item:
    """One process in torchrun's table."""

    segment: Segment
    is_first: bool
    fields: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    line_end: int = 0


class Launchers:
    """Rows of exits, signals, peer_losses, timeouts, env and log_messages from the family launcher."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._item: _Item | None = None
        self._is_root = False
        self._stall: tuple[Saying, list[str]] | None = None

    @property
    def is_open(self) -> bool:
        """Whether a following line may belong to a table here."""
        return self._item is not None or self._stall is not None

    def more(self, segment: Segment) -> str | None:
        """Take a line while a table is open."""
        if self._stall is not None:
            match = shared().one("traceback", segment.text)
            if match is not None and match.record == "missing_rank":
                self._stall[1].append(match.fields["rank"])
                return "continuation"
            return None
        item = self._item
        if item is None or segment.header not in {"", "app"}:
            return None
        if segment.match is not None and segment.match.record.startswith("table"):
            return None
        if "text" in item.fields and (segment.text.startswith("  ") or not segment.text.strip()):
            if len(item.lines) < _TRACEBACK_LINES:
                item.lines.append(segment.text[2:])
            item.line_end = segment.line.line_no
            return "continuation"
        self._end_item()
        return None

    def take(self, saying: Saying) -> None:
        """Take a text of launcher.lark."""
        record = saying.match.record
        if record.startswith("table"):
            self._table(saying, record)
            return
        handler = getattr(self, f"_take_{record}", None)
        if handler is not None:
            handler(saying)
        elif record in _RAY:
            self._exit(saying, "ray", _RAY[record])
        elif level(saying.segment) in {"warning", "error", "critical"}:
            log(self._sink, saying, "launcher")

    def close(self) -> None:
        """The writer's lines are over."""
        self._end_item()
        self._end_stall()

    # ---- torchrun's table

    def _table(self, saying: Saying, record: str) -> None:
        fields = saying.fields
        match record:
            case "table_item":
                self._end_item()
                self._item = _Item(saying.segment, self._is_root)
            case "table_root" | "table_failures":
                self._end_item()
                self._is_root = record == "table_root"
            case "table_rule" | "table_title" | "table_none":
                self._end_item()
            case _ if self._item is not None:
                self._item.fields |= fields
                self._item.line_end = saying.segment.line.line_no
                if record == "table_code":
                    self._item.segment = saying.segment
            case _:
                pass

    def _end_item(self) -> None:
        item, self._item = self._item, None
        if item is None or not item.fields:
            return
        fields = item.fields
        rank, code = integer(fields.get("rank")), integer(fields.get("code"))
        t = Clock(None, None).dated(fields["date"], fields["clock"]) if "date" in fields else None
        text = fields.get("text")
        raised = _raised(item, text) if text else None
        if raised is not None:
            text = f"{raised.qualified}: {raised.whole}"
        elif item.lines:
            text = " ".join([text or "", *(line.strip() for line in item.lines)]).strip()
        times: dict[str, Value] = {} if t is None else {"t_lo": t, "t_hi": t + 1}
        self._sink.row(
            "exits",
            item.segment,
            of_rank=rank,
            of_local_rank=integer(fields.get("local_rank")),
            of_host=fields.get("host"),
            of_pid=integer(fields.get("pid")),
            code=code,
            signal=of_code(code),
            reporter="torchrun",
            is_first=item.is_first,
            t_exit=t,
            text=text[:TEXT_CUT] if text else None,
            **times,
        )
        if raised is not None:
            who: dict[str, Value] = {"rank": rank, "host": fields.get("host"), "pid": integer(fields.get("pid"))}
            write(self._sink, raised, **who, **times)
            found = shared().one("device", raised.message)
            if found is not None:
                Device(OnBehalf(self._sink, who | times)).take(Saying(item.segment, found, raised.message))

    # ---- torchrun's agent

    def _take_sending(self, saying: Saying) -> None:
        self._signal(saying, "sent", saying.fields["signal"], None)

    def _take_death_signal(self, saying: Saying) -> None:
        self._signal(saying, "received", saying.fields["signal"], "unknown")

    def _take_failed(self, saying: Saying) -> None:
        code = integer(saying.fields["code"])
        self._exit(saying, "torchrun", code, of_local_rank=integer(saying.fields["local_rank"]))

    def _take_agent_lost(self, saying: Saying) -> None:
        self._sink.row(
            "peer_losses",
            saying.segment,
            kind="store",
            layer="rendezvous",
            peer=saying.fields["node"],
            text=saying.message,
        )

    def _take_node_removed(self, saying: Saying) -> None:
        self._sink.row(
            "peer_losses",
            saying.segment,
            kind="remote-exit",
            layer="agent",
            peer=saying.fields["node"],
            text=saying.message,
        )

    def _take_restarting(self, saying: Saying) -> None:
        log(self._sink, saying, "launcher", "info")

    _take_membership = _take_restarting

    def _take_config(self, saying: Saying) -> None:
        if saying.segment.header == "torch" or not is_nameless(saying.segment):
            name, value = saying.fields["name"], saying.fields["value"].strip()
            self._sink.row("env", saying.segment, name=name, value=value, origin="launcher")

    # ---- other parents of processes

    def _take_child_signal(self, saying: Saying) -> None:
        signal = signal_name(saying.fields["signal"])
        local = integer(saying.fields["number"])
        self._exit(saying, "spawn", exit_code(signal), signal=signal, of_local_rank=local)

    def _take_child_code(self, saying: Saying) -> None:
        self._exit(saying, "spawn", integer(saying.fields["code"]), of_local_rank=integer(saying.fields["number"]))

    def _take_lightning_code(self, saying: Saying) -> None:
        """The tag before the message is the child's rank, not the writer's."""
        self._exit(saying, "lightning", integer(saying.fields["code"]), of_rank=saying.segment.identity.rank)

    def _take_loader_killed(self, saying: Saying) -> None:
        signal = signal_name(saying.fields["signal_name"])
        self._exit(saying, "dataloader", exit_code(signal), signal=signal)

    def _take_loader_gone(self, saying: Saying) -> None:
        self._exit(saying, "dataloader", None, of_pid=integer(saying.fields.get("pids", "").partition(",")[0]))

    def _take_command_code(self, saying: Saying) -> None:
        self._exit(saying, "shell", integer(saying.fields["code"]))

    def _take_command_signal(self, saying: Saying) -> None:
        signal = signal_name(saying.fields["signal"])
        self._exit(saying, "shell", exit_code(signal), signal=signal)

    def _take_deepspeed_code(self, saying: Saying) -> None:
        local = integer(saying.fields.get("local_rank"))
        self._exit(saying, "deepspeed", integer(saying.fields["code"]), of_local_rank=local)

    def _take_deepspeed_kill(self, saying: Saying) -> None:
        self._signal(saying, "sent", None, None)

    def _take_deepspeed_signal(self, saying: Saying) -> None:
        self._signal(saying, "received", "SIG" + saying.fields["signal_end"], "unknown")

    # ---- engines that wait

    def _take_engine_stall(self, saying: Saying) -> None:
        seconds = integer(saying.fields["timeout_s"])
        self._waited(saying, "rpc", None if seconds is None else 1000 * seconds)

    def _take_engine_rpc(self, saying: Saying) -> None:
        self._waited(saying, "rpc", None)

    def _take_engine_watchdog(self, saying: Saying) -> None:
        seconds = real(saying.fields["timeout_float"])
        self._waited(saying, "rpc", None if seconds is None else int(1000 * seconds))

    def _take_horovod_stall(self, saying: Saying) -> None:
        self._end_stall()
        self._stall = saying, []

    def _take_horovod_missing(self, _: Saying) -> None:
        """The ranks follow, one a line."""

    def _end_stall(self) -> None:
        if self._stall is not None:
            (saying, ranks), self._stall = self._stall, None
            seconds = integer(saying.fields["timeout_s"])
            self._waited(saying, "stall", None if seconds is None else 1000 * seconds, ",".join(ranks) or None)

    # ---- rows

    def _waited(self, saying: Saying, kind: str, ms: int | None, missing: str | None = None) -> None:
        self._sink.row(
            "timeouts", saying.segment, kind=kind, timeout_ms=ms, ran_ms=ms, missing=missing, text=saying.message
        )

    def _signal(self, saying: Saying, direction: str, signal: str | None, reason: str | None) -> None:
        self._sink.row(
            "signals",
            saying.segment,
            signal=signal_name(signal),
            direction=direction,
            of_pid=integer(saying.fields.get("pid")),
            reason=reason,
            text=saying.message,
        )

    def _exit(self, saying: Saying, reporter: str, code: int | None, **columns: Value) -> None:
        columns.setdefault("of_pid", integer(saying.fields.get("pid")))
        columns.setdefault("signal", of_code(code))
        self._sink.row("exits", saying.segment, code=code, reporter=reporter, text=saying.message, **columns)


_RAY: dict[str, int | None] = {"ray_died": None, "ray_oom": -9, "ray_node": None}
"""Exit codes of what Ray tells."""


def _raised(item: _Item, text: str) -> Raised | None:
    """The exception of a traceback in the table: the last line that is one, with the frames above."""
    frames: list[Frame] = []
    found: Raised | None = None
    for line in [text, *item.lines]:
        match = shared().one("traceback", line)
        if match is None:
            if found is not None and found.whole.endswith(":"):
                found.extra.append(line.strip())
        elif match.record == "frame":
            frames.append(frame_of(match))
        elif match.record == "nested":
            frames = []
        elif match.record == "exception" and (found is None or not found.whole.endswith(":")):
            kind = match.fields.get("type") or match.fields["type_alone"]
            message = match.fields.get("message", "").strip()
            found = Raised(item.segment, kind, message, frames, is_uncaught=True, line_end=item.line_end)
    return found
