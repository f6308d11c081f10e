"""Texts of torch's C++ distributed code: the watchdog's, the heartbeat monitor's, the store's and the sockets'.

A collective that timed out is told up to four times by its rank (error line, status line, the thread's end, the abort)
and gives one row; the status line, which comes next, adds what the rank enqueued and completed.
"""

from dataclasses import dataclass

from replay.grammar.numbers import integer, real
from replay.parse.blocks.failing import DEFAULT_GROUPS, Saying, Tell, level, log, named_rank
from replay.parse.model import Segment, Sink, Value
from replay.parse.ops import operation

_GARBAGE = 10**12
"""Above this a sequence number is memory that was never set: versions up to 2.4 print it."""

_ERRNO = {
    "32": "broken-pipe",
    "98": "address-in-use",
    "101": "unreachable",
    "104": "reset",
    "110": "unreachable",
    "111": "refused",
    "113": "no-route",
}
_WORDS = (
    ("reset by peer", "reset"),
    ("refused", "refused"),
    ("No route to host", "no-route"),
    ("unreachable", "unreachable"),
    ("timed out", "unreachable"),
    ("Broken pipe", "broken-pipe"),
    ("Name or service not known", "name-resolution"),
    ("0 bytes", "closed"),
    ("closed", "closed"),
)


@dataclass(slots=True)
class _TimedOut:
    segment: Segment
    seq: int | None
    group_rank: int | None
    columns: dict[str, Value]


class C10d:
    """Rows of timeouts, peer_losses, collectives, activities, env, packages and log_messages from the family c10d."""

    def __init__(self, sink: Sink, tell: Tell) -> None:
        self._sink, self._tell = sink, tell
        self._open: list[_TimedOut] = []
        self._told: set[tuple[int | None, int | None, str | None]] = set()
        self._dumped = False
        self._waited: set[int | None] = set()

    def take(self, saying: Saying) -> None:
        """Take a text of c10d.lark or nccl_last_error.lark."""
        record = saying.match.record
        if saying.match.family == "nccl_last_error":
            self._loss(saying, "remote-exit" if record == "completion" else kind_of(saying.text, "closed"), "nccl")
            return
        handler = getattr(self, f"_take_{record}", None)
        if handler is not None:
            handler(saying)
        elif record in _TIMEOUTS:
            self._timeout(saying, _TIMEOUTS[record])
        elif record in _LOSSES:
            self._loss(saying, *_LOSSES[record])
        else:
            log(self._sink, saying, "c10d")

    def close(self) -> None:
        """Write out collectives that timed out and whose status line never came."""
        for waiting in self._open:
            self._write(waiting)
        self._open.clear()

    def _take_barrier_begin(self, saying: Saying) -> None:
        self._barrier(saying, "begin")

    def _take_barrier_end(self, saying: Saying) -> None:
        self._barrier(saying, "end")

    def _barrier(self, saying: Saying, phase: str) -> None:
        what = saying.fields["barrier"]
        self._sink.row("activities", saying.segment, kind="barrier", phase=phase, what=what, text=saying.message)

    # ---- watchdog

    def _take_watchdog_timeout(self, saying: Saying) -> None:
        fields = saying.fields
        seq, group_rank = integer(fields.get("seq")), integer(fields.get("group_rank"))
        key = (group_rank, seq, fields.get("op"))
        if key in self._told or "what():" in saying.segment.text[:12]:
            return
        self._told.add(key)
        self._open.append(
            _TimedOut(
                saying.segment,
                seq,
                group_rank,
                {
                    "kind": "watchdog",
                    "group_name": fields.get("group"),
                    "group_rank": group_rank,
                    "logged_seq": seq,
                    "op": operation(fields["op"]),
                    "numel_in": integer(fields.get("numel_in")),
                    "numel_out": integer(fields.get("numel_out")),
                    "timeout_ms": integer(fields.get("timeout_ms")),
                    "ran_ms": integer(fields.get("ran_ms")),
                    "text": saying.message,
                    **named_rank(saying.segment, fields),
                },
            )
        )

    def _take_watchdog_status(self, saying: Saying) -> None:
        fields = saying.fields
        seq, group_rank = integer(fields.get("seq")), integer(fields.get("group_rank"))
        for waiting in self._open:
            if waiting.seq == seq and waiting.group_rank in (group_rank, None):
                waiting.columns["group_name"] = fields.get("group")
                waiting.columns |= _progress(saying.fields, seq)
                self._write(waiting)
                self._open.remove(waiting)
                return
        log(self._sink, saying, "c10d")

    def _take_watchdog_died(self, saying: Saying) -> None:
        if not self._tell(saying.segment, saying.fields["cause"]):
            log(self._sink, saying, "c10d")

    def _take_async_error(self, saying: Saying) -> None:
        log(self._sink, saying, "c10d")
        self._tell(saying.segment, saying.fields["cause"])

    def _take_aborted(self, saying: Saying) -> None:
        cause = saying.fields.get("cause")
        if cause:
            self._tell(saying.segment, cause)
        self._loss(saying, "aborted", "nccl")

    def _write(self, waiting: _TimedOut) -> None:
        columns = waiting.columns
        self._sink.row("timeouts", waiting.segment, **columns)
        rank = {"rank": columns["rank"]} if "rank" in columns else {}
        self._sink.row(
            "collectives",
            waiting.segment,
            source="watchdog",
            comm=columns["group_name"],
            comm_rank=columns["group_rank"],
            logged_seq=columns["logged_seq"],
            op=columns["op"],
            count=columns["numel_in"],
            state="timed-out",
            **rank,
        )

    # ---- told to dump, heartbeat

    def _take_dump_signal(self, saying: Saying) -> None:
        if self._dumped:
            return
        self._dumped = True
        self._sink.row(
            "timeouts",
            saying.segment,
            kind="dump-signal",
            group_name=saying.fields.get("group"),
            group_rank=integer(saying.fields.get("group_rank")),
            text=saying.message,
            **_progress(saying.fields, None),
            **named_rank(saying.segment, saying.fields),
        )

    def _take_heartbeat_stuck(self, saying: Saying) -> None:
        seconds = integer(saying.fields["stuck_s"])
        self._heartbeat(saying, None if seconds is None else 1000 * seconds)

    def _take_heartbeat_lost(self, saying: Saying) -> None:
        self._heartbeat(saying, None)

    def _heartbeat(self, saying: Saying, timeout_ms: int | None) -> None:
        self._sink.row(
            "timeouts",
            saying.segment,
            kind="heartbeat",
            group_name=saying.fields.get("group"),
            group_rank=integer(saying.fields.get("group_rank")),
            timeout_ms=timeout_ms,
            text=saying.message,
            **named_rank(saying.segment, saying.fields),
        )

    # ---- the library's errors

    def _take_nccl_error(self, saying: Saying) -> None:
        version = saying.fields.get("version")
        if version:
            self._sink.row("packages", saying.segment, name="nccl", version=version)
        if "remote process exited" in saying.fields.get("msg", ""):
            self._loss(saying, "remote-exit", "nccl")

    def _take_nccl_version(self, saying: Saying) -> None:
        self._sink.row("packages", saying.segment, name="nccl", version=saying.fields["version"])

    def _take_init_options(self, saying: Saying) -> None:
        pairs = [pair.partition(": ") for pair in saying.fields["pairs"].split(", ")]
        settings = {name.strip(): value.strip() for name, _, value in pairs if value}
        if settings.get("PG Name", "0") in DEFAULT_GROUPS and "size" in settings:
            self._sink.row("env", saying.segment, name="world_size", value=settings["size"], origin="torch")
        for name, value in settings.items():
            if name == "NCCL version":
                self._sink.row("packages", saying.segment, name="nccl", version=value)
            elif name not in {"size", "global rank", "PG Name"}:
                self._sink.row("env", saying.segment, name=name, value=value, origin="torch")

    def _take_init_options_head(self, saying: Saying) -> None:
        """The options follow, one a line."""

    # ---- store and sockets

    def _take_wait_timeout(self, saying: Saying) -> None:
        self._waited.add(integer(saying.fields["timeout_ms"]))
        self._timeout(saying, "store")

    def _take_store_timeout(self, saying: Saying) -> None:
        """The exception behind a socket's line that told the same."""
        ms = integer(saying.fields.get("timeout_ms"))
        if ms in self._waited:
            self._waited.remove(ms)
        else:
            self._timeout(saying, "store")

    def _timeout(self, saying: Saying, kind: str) -> None:
        fields = saying.fields
        ms = integer(fields.get("timeout_ms"))
        if ms is None:
            seconds = real(fields.get("timeout_s")) or real(fields.get("timeout_word", "").rstrip("s"))
            ms = None if seconds is None else int(1000 * seconds)
        self._sink.row(
            "timeouts",
            saying.segment,
            kind=kind,
            group_rank=integer(fields.get("group_rank")),
            timeout_ms=ms,
            missing=fields.get("missing"),
            text=saying.message,
        )

    def _take_unique_id(self, saying: Saying) -> None:
        cause = saying.fields["cause"]
        text = cause.partition("timeout after ")[2].partition("ms")[0] if "timeout after " in cause else None
        if not any(word in cause for word in ("timeout", "Timeout", "timed out")):
            self._loss(saying, kind_of(cause, "store"), "store")
            return
        self._sink.row(
            "timeouts",
            saying.segment,
            kind="nccl-init",
            group_rank=integer(saying.fields["group_rank"]),
            timeout_ms=integer(text),
            missing=saying.fields["missing"],
            text=saying.message,
        )

    def _take_connect_timeout(self, saying: Saying) -> None:
        self._timeout(saying, "rendezvous")
        self._loss(saying, "unreachable", "socket")

    def _take_connect_failed(self, saying: Saying) -> None:
        kind = _ERRNO.get(saying.fields["errno"])
        if kind is None:  # an address family that the host lacks: the next address is tried
            log(self._sink, saying, "c10d", "warning")
        else:
            self._loss(saying, kind, "socket")

    def _take_name_resolution(self, saying: Saying) -> None:
        if "family" in saying.fields or level(saying.segment) == "warning":
            log(self._sink, saying, "c10d", "warning")
        else:
            self._loss(saying, "name-resolution", "socket")

    def _take_store_failed(self, saying: Saying) -> None:
        self._loss(saying, kind_of(saying.fields["msg"], "store"), "store")

    def _take_bind_failed(self, saying: Saying) -> None:
        if saying.fields.get("errno", "98") == "98":
            self._loss(saying, "address-in-use", "store")
        else:
            log(self._sink, saying, "c10d", "warning")

    def _take_listen_failed(self, saying: Saying) -> None:
        if saying.fields["err_name"] == "EADDRINUSE":
            self._loss(saying, "address-in-use", "store")
        else:
            log(self._sink, saying, "c10d")

    def _take_listen_failed_old(self, saying: Saying) -> None:
        if "in use" in saying.text:
            self._loss(saying, "address-in-use", "store")
        else:
            log(self._sink, saying, "c10d")

    def _loss(self, saying: Saying, kind: str, layer: str) -> None:
        fields = saying.fields
        peer = fields.get("peer") or fields.get("remote")
        if peer is None and "port" in fields:
            peer = f"{fields.get('host', '')}:{fields['port']}"
        self._sink.row("peer_losses", saying.segment, kind=kind, layer=layer, peer=peer, text=saying.message)


_TIMEOUTS = {
    "store_barrier": "store",
    "store_clients": "store",
    "rpc_timeout": "rpc",
    "rendezvous_timeout": "rendezvous",
}
_LOSSES = {
    "store_broken": ("store", "store"),
    "rendezvous_closed": ("closed", "rendezvous"),
    "rendezvous_lost": ("store", "rendezvous"),
    "store_gone": ("closed", "store"),
    "remote_exit": ("remote-exit", "nccl"),
    "connection_reset": ("reset", "socket"),
    "broken_pipe": ("broken-pipe", "socket"),
    "connect_any": ("unreachable", "socket"),
    "address_in_use": ("address-in-use", "socket"),
}


def kind_of(text: str, otherwise: str) -> str:
    """Return the kind of loss that an error's text names."""
    return next((kind for word, kind in _WORDS if word in text), otherwise)


def _signed(number: int | None) -> int | None:
    """A number that was printed without its sign: -1 is "none yet"."""
    return -1 if number == (1 << 64) - 1 else number


def _progress(fields: dict[str, str], seq: int | None) -> dict[str, Value]:
    """What the rank enqueued and completed; a number that cannot be is NULL."""
    enqueued, completed = (_signed(integer(fields.get(name))) for name in ("last_enqueued", "last_completed"))
    if enqueued is not None and not -1 <= enqueued < _GARBAGE:
        enqueued = None
    limit = max((n for n in (enqueued, seq) if n is not None), default=_GARBAGE)
    if completed is not None and not -1 <= completed <= limit:
        completed = None
    return {"last_enqueued": enqueued, "last_completed": completed}
